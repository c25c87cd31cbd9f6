"""Transforms of labelled pages: what recognisers misread, leave out and add; the tokens of XLM-R."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from framework import hub
from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, InputError, did_you_mean
from framework.core.model_config import config_of
from framework.core.transform import Transform
from framework.text.xlm_roberta import FILE, XLMRobertaTokenizer
from framework.vision.sample import Sample
from ocr.fields.forms import FormSample
from ocr.fields.words import tb_yx_order
from ocr.formulas.tokenizer_files import find_tokenizer_file

_ALIKE = (
    "0oOD", "1lI|i", "5S", "8B", "2Z", "6G", "9gq", "ceo", "uv", "nmh", "rt", "EF", "HNM", "UV", "PR", "CG", ".,",
    ":;", "-~",
)  # fmt: skip
_SWAPS = {char: [other for other in group if other != char] for group in _ALIKE for char in group}
_SIGNS = "0123456789"


@register("transform")
@dataclass(frozen=True)
class PerturbTexts(Transform[Sample]):
    """Lines of a labelled page as a recogniser might have read them. For pages with a text and a class for each line,
    such as those of FormFiles and SROIE, in training alone.

    Attributes:
        misread: Share of the characters that become one that looks alike, or go.
        join: Share of the spaces that go.
        drop: Share of the lines without a label that are left out.
        add: Up to so many numbers are added in empty places, as stamps and handwriting are.
        shift: Boxes move and grow by up to this share of their height.

    Raises:
        ConfigError: a share is not from 0 to 1, or `add` is below 0.
    """

    misread: float = 0.02
    join: float = 0.03
    drop: float = 0.05
    add: int = 2
    shift: float = 0.1

    def __post_init__(self) -> None:
        shares = {name: getattr(self, name) for name in ("misread", "join", "drop", "shift")}
        wrong = {name: value for name, value in shares.items() if not 0 <= value <= 1}
        if wrong or self.add < 0:
            raise ConfigError(
                "these are no shares",
                where="PerturbTexts",
                received=", ".join(f"{name} {value}" for name, value in wrong.items()) or f"add {self.add}",
                allowed="shares from 0 to 1; add from 0",
            )

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if not isinstance(sample.text, tuple) or sample.boxes is None or sample.labels is None:
            return sample
        height, width = sample.size_hw
        kept = [
            place
            for place, label in enumerate(sample.labels.tolist())
            if label or rng.random() >= self.drop or self._is_linked(sample, place)
        ]
        texts = [self._misread(sample.text[place], rng) for place in kept]
        boxes = sample.boxes[kept].astype(np.float32)
        lines = boxes[:, 3:] - boxes[:, 1:2]
        boxes = boxes + rng.uniform(-self.shift, self.shift, boxes.shape).astype(np.float32) * lines
        labels = sample.labels[kept].tolist()
        added, places = self._add(boxes, rng, (height, width))
        limit = np.array([width, height, width, height], np.float32)
        boxes = np.clip(np.concatenate([boxes, places]), 0, limit)
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1e-3)
        linked: dict[str, np.ndarray] = {}
        if isinstance(sample, FormSample) and sample.links is not None:
            numbers = {old: new for new, old in enumerate(kept)}
            pairs = [[numbers[one] for one in pair] for pair in sample.links.tolist()]
            linked["links"] = np.array(pairs, np.int32).reshape(-1, 2)
        return sample.replace(
            text=(*texts, *added),
            boxes=boxes,
            labels=np.array([*labels, *[0] * len(added)], np.int32),
            valid=np.ones(len(boxes), bool),
            **dict.fromkeys(("mask", "polygons", "keypoints", "areas")),
            **linked,
        )

    @staticmethod
    def _is_linked(sample: Sample, place: int) -> bool:
        links = sample.links if isinstance(sample, FormSample) else None
        return links is not None and bool((links == place).any())

    def _misread(self, text: str, rng: np.random.Generator) -> str:
        said = []
        for place, char in enumerate(text):
            draw = rng.random()
            if char == " ":
                ends = place in (0, len(text) - 1)
                said += [] if draw < self.join and not ends else [char]
            elif draw >= self.misread:
                said.append(char)
            elif options := _SWAPS.get(char):
                said.append(options[int(rng.integers(len(options)))])
            elif len(text) < 4 or draw >= self.misread / 2:
                said.append(char)
        return "".join(said) if "".join(said).strip() else text

    def _add(
        self, boxes: np.ndarray, rng: np.random.Generator, size_hw: tuple[int, int]
    ) -> tuple[list[str], np.ndarray]:
        """Numbers, and boxes that lie over none of the others."""
        texts: list[str] = []
        places: list[np.ndarray] = []
        if not self.add or not len(boxes):
            return texts, np.zeros((0, 4), np.float32)
        usual = max(float(np.median(boxes[:, 3] - boxes[:, 1])), 2.0)
        for _ in range(int(rng.integers(self.add + 1))):
            count = int(rng.integers(1, 9))
            tall = usual * rng.uniform(0.8, 2.0)
            left = rng.uniform(0, max(size_hw[1] - 0.6 * tall * count, 1.0))
            top = rng.uniform(0, size_hw[0] * (0.25 if rng.random() < 0.6 else 1.0))
            box = np.array([left, top, left + 0.6 * tall * count, top + tall], np.float32)
            low, high = np.maximum(boxes[:, :2], box[:2]), np.minimum(boxes[:, 2:], box[2:])
            if not (high > low).all(axis=1).any() and box[3] <= size_hw[0] and box[2] <= size_hw[1]:
                texts.append("".join(_SIGNS[int(rng.integers(len(_SIGNS)))] for _ in range(count)))
                places.append(box)
        return texts, np.array(places, np.float32).reshape(-1, 4)


@register("transform")
@dataclass(frozen=True)
class TokenizeForm(Transform[Sample]):
    """Gives a labelled page the tokens of XLM-R, line after line.

    Attributes:
        tokenizer: sentencepiece.bpe.model, a folder with it, or weights of the hub that have one, such as
            layoutxlm_base_uncased. It is read at the first use.
        order: "tb-yx" sorts lines from top to bottom and left to right first, as VI-LayoutXLM has it; null takes them
            as they come.
        max_seq_len: So many tokens at most; what comes after them is not seen.

    Raises:
        ConfigError: `max_seq_len` is below 1. At the first page InputError, FormatError: there is no such tokenizer;
        HubError: it cannot be fetched.
    """

    tokenizer: str
    order: Literal["tb-yx"] | None = "tb-yx"
    max_seq_len: int = 512

    def __post_init__(self) -> None:
        if self.max_seq_len < 1:
            raise ConfigError(
                "this is no length",
                where="TokenizeForm.max_seq_len",
                received=self.max_seq_len,
                allowed="1 or more",
            )

    def __call__(self, sample: Sample, rng: np.random.Generator) -> Sample:
        if not isinstance(sample, FormSample) or not isinstance(sample.text, tuple) or sample.boxes is None:
            raise InputError(
                "a page has no lines",
                where=sample.id,
                received=type(sample).__name__,
                allowed="a FormSample, as of FormFiles, XFUND and FUNSD",
            )
        tokenizer = self.source()
        places = tb_yx_order(sample.boxes) if self.order else range(len(sample.text))
        ids: list[int] = []
        segments: list[int] = []
        for place in places:
            found = tokenizer.encode(sample.text[place])
            ids += found
            segments += [place] * len(found)
        return sample.replace(
            token_ids=np.array(ids[: self.max_seq_len], np.int32),
            token_segments=np.array(segments[: self.max_seq_len], np.int32),
        )

    def source(self) -> XLMRobertaTokenizer:
        """The tokenizer."""
        if self.tokenizer.startswith(_INSIDE):
            return _decode(self.tokenizer)
        file = find_tokenizer_file(self.tokenizer, "vocab")
        if file is None:
            names = [name for name, entry in hub.entries("ocr").items() if "vocab" in entry.files]
            raise InputError(
                "the tokenizer is missing",
                where="TokenizeForm.tokenizer",
                received=self.tokenizer,
                allowed=f"{FILE}, a folder with it, or weights that have one, such as layoutxlm_base_uncased",
                fix=did_you_mean(self.tokenizer, names),
            )
        return XLMRobertaTokenizer.from_file(file)

    def check(self, model: object) -> None:
        """Raises: ConfigError, where the model has no vector for some of the tokens."""
        size = getattr(config_of(model), "size", None)
        rows = None if size is None else size().vocab_size
        count = self.source().vocab_size
        if rows is not None and count > rows:
            raise ConfigError(
                "the tokenizer and the model are of different vocabularies",
                where="TokenizeForm.tokenizer",
                received=f"{self.tokenizer[:200]} with {count} tokens, a model with {rows}",
                allowed=f"at most {rows} tokens",
                fix="take the tokenizer from the folder of the model's weights, or set model.vocab_size",
            )

    def pack_assets(self) -> tuple[TokenizeForm, dict[str, bytes]]:
        """As the base class says."""
        return replace(self, tokenizer=FILE), {FILE: self.source().model}

    def load_assets(self, files: Mapping[str, bytes]) -> TokenizeForm:
        """As the base class says."""
        if self.tokenizer not in files:
            raise FormatError(
                "the artifact lacks its tokenizer",
                where=self.tokenizer,
                received=", ".join(files) or "no files",
                fix="export it again",
            )
        return replace(self, tokenizer=_INSIDE + base64.b64encode(files[self.tokenizer]).decode("ascii"))


_INSIDE = "base64:"


@lru_cache(maxsize=4)
def _decode(text: str) -> XLMRobertaTokenizer:
    return XLMRobertaTokenizer(base64.b64decode(text.removeprefix(_INSIDE)))
