"""Formulas as their networks take them: the image, and the numbers of the tokens of its LaTeX."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.core.model_config import config_of
from framework.core.transform import Transform
from framework.text.transforms import SOURCE, read_asset
from framework.vision.sample import Sample
from ocr.formulas.image import prepare_formula
from ocr.formulas.text import find_tokenizer


@register("transform")
@dataclass(frozen=True)
class FormulaImage(Transform[Sample]):
    """An image of one formula without its margins, grey, in the middle of `size_hw`; see `prepare_formula`.

    Raises:
        ConfigError: a side is smaller than 1.
    """

    size_hw: tuple[int, int] = (384, 384)

    def __post_init__(self) -> None:
        if min(self.size_hw) < 1:
            raise ConfigError(
                "an image has a size",
                where="FormulaImage.size_hw",
                received=self.size_hw,
                allowed="1 or more",
            )

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        return sample.replace(image=prepare_formula(sample.image, self.size_hw))


@register("transform")
@dataclass(frozen=True)
class FormulaTokens(Transform[Sample]):
    """The numbers of the tokens of a sample's LaTeX as its `labels`, with those that begin and end a text.

    Attributes:
        tokenizer: As of `find_tokenizer`: a path, or weights of the hub. It is read at the first use.
    """

    tokenizer: str

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if not isinstance(sample.text, str):
            raise InputError("a sample has no formula", where=sample.id, allowed="LaTeX as text")
        ids = find_tokenizer(self.tokenizer).encode(sample.text).ids
        return sample.replace(labels=np.asarray(ids, np.int32))

    def check(self, model: object) -> None:
        """Raises: ConfigError, where the model has no vector for some of the tokens."""
        rows = getattr(getattr(config_of(model), "parts", None), "vocab_size", None)
        size = find_tokenizer(self.tokenizer).vocab_size
        if rows is not None and rows < size:
            raise ConfigError(
                "the tokenizer has more tokens than the model",
                where="FormulaTokens.tokenizer",
                received=f"{size} for {rows}",
                fix=f"-o model.vocab_size={size}, or the tokenizer that the weights were trained with",
            )

    def pack_assets(self) -> tuple[FormulaTokens, Mapping[str, bytes]]:
        """As the base class says; the tokenizer is one JSON file."""
        data = find_tokenizer(self.tokenizer).to_json().encode("utf-8")
        return replace(self, tokenizer=SOURCE), {SOURCE: data}

    def load_assets(self, files: Mapping[str, bytes]) -> FormulaTokens:
        """As the base class says."""
        return replace(self, tokenizer=read_asset(files, self.tokenizer))
