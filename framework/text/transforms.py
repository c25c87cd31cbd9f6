"""The transform that makes tokens of texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.core.model_config import setting_of
from framework.core.transform import Transform
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.tokenizer_files import file_states
from framework.text.words import find_continuations, find_words, split_characters, split_words

SOURCE, _TARGET = "tokenizer.json", "target_tokenizer.json"


@register("transform")
@dataclass(frozen=True)
class Tokenize(Transform[TextSample]):
    """Gives a text, or a pair of texts, the tokens of a vocabulary with special tokens around them.

    Words that the sample has are kept: each token belongs to one of them. Where nobody divided the text, `unit` does:
    "words" and "characters" divide it before the tokenizer does; behind it, "text" takes each token for a word, and
    "subwords" the tokens of one run of letters, which is what a tagger with a vocabulary of parts of words needs. A
    sample with a `target` or a `negative` gets its tokens too.

    Attributes:
        tokenizer: A file or a folder that `Tokenizer.from_file` reads, or the JSON of one.
        max_length: So many tokens at most, with the special ones; of a pair the longer text is cut first.
        apart: Each text of a pair gets tokens for itself, for models that read them apart; else one row has both.
        target_tokenizer: The same for `target`; None: one tokenizer for both.

    Raises:
        ConfigError: at the first text, `max_length` is below the number of special tokens.
        OarError: at the first text, as `Tokenizer.from_file`.
    """

    tokenizer: str
    max_length: int = 512
    unit: Literal["text", "subwords", "words", "characters"] = "text"
    target_tokenizer: str | None = None
    apart: bool = False

    def __post_init__(self) -> None:
        if self.max_length < 1:
            raise ConfigError(
                "the length is out of range",
                where="Tokenize.max_length",
                received=self.max_length,
                allowed="1 or more",
            )

    def source(self) -> Tokenizer:
        """The tokenizer of texts. It is read once in a process, however many transforms name it."""
        return load_tokenizer(self.tokenizer)

    def target(self) -> Tokenizer:
        """The tokenizer of `target`."""
        return load_tokenizer(self.target_tokenizer or self.tokenizer)

    def __call__(self, sample: TextSample, rng: np.random.Generator) -> TextSample:
        words = sample.words
        spans = None
        if words is not None:
            spans = find_words(sample.text, words)
        elif self.unit in ("words", "characters"):
            words, spans = (split_words if self.unit == "words" else split_characters)(sample.text)
        text = sample.text if words is None else words
        pair = None if self.apart else sample.pair
        encoding = self.source().encode(text, pair, self.max_length)
        offsets, word_ids = encoding.offsets, encoding.words
        if spans is None:
            of_text = encoding.texts == 0
            starts = of_text.copy()
            if self.unit == "subwords":
                starts[of_text] = ~find_continuations(sample.text, offsets[of_text])
            word_ids = np.where(of_text, np.cumsum(starts) - 1, -1).astype(np.int32)
        elif len(spans):
            offsets = offsets + np.where(word_ids < 0, 0, spans[word_ids, 0])[:, None]
        sample = sample.replace(
            words=words,
            ids=encoding.ids,
            type_ids=encoding.type_ids,
            offsets=offsets,
            word_ids=word_ids,
            left_out=encoding.left_out,
        )
        if self.apart and sample.pair is not None:
            second = self.source().encode(sample.pair, max_length=self.max_length)
            sample = sample.replace(pair_ids=second.ids, left_out=sample.left_out + second.left_out)
        if sample.negative is not None:
            sample = sample.replace(negative=self(sample.negative, rng))
        if sample.target is None:
            return sample
        target = self.target().encode(sample.target, max_length=self.max_length)
        return sample.replace(target_ids=target.ids, left_out=sample.left_out + target.left_out)

    def check(self, model: object) -> None:
        """Raises: ConfigError, where the model has no vector for some of the tokens."""
        check_vocabulary(self.tokenizer, model, "Tokenize.tokenizer")
        target = self.tokenizer if self.target_tokenizer is None else self.target_tokenizer
        check_vocabulary(target, model, "Tokenize.target_tokenizer", "target_size")

    def pack_assets(self) -> tuple[Tokenize, dict[str, bytes]]:
        """As the base class says; each tokenizer is one JSON file."""
        files = {SOURCE: self.source().to_json().encode("utf-8")}
        if self.target_tokenizer is None:
            return replace(self, tokenizer=SOURCE), files
        files[_TARGET] = self.target().to_json().encode("utf-8")
        return replace(self, tokenizer=SOURCE, target_tokenizer=_TARGET), files

    def load_assets(self, files: Mapping[str, bytes]) -> Tokenize:
        """As the base class says."""
        target = None if self.target_tokenizer is None else read_asset(files, self.target_tokenizer)
        return replace(self, tokenizer=read_asset(files, self.tokenizer), target_tokenizer=target)


def check_vocabulary(tokenizer: str, model: object, where: str, size_name: str = "vocab_size") -> None:
    """Raises: ConfigError, where the model has no vector for some of the tokens. `size_name` is what the model, or its
    config, calls the size of its vocabulary; one that has none of this name takes any tokens."""
    rows: int | None = getattr(model, size_name, setting_of(model, size_name, int))
    size = load_tokenizer(tokenizer).vocab_size
    if rows is not None and size > rows:
        raise ConfigError(
            "the tokenizer and the model are of different vocabularies",
            where=where,
            received=f"{tokenizer[:200]} with {size} tokens, a model with {rows}",
            allowed=f"at most {rows} tokens",
            fix="take the tokenizer from the folder of the model's weights, or set the size in the model's config",
        )


def read_asset(files: Mapping[str, bytes], name: str) -> str:
    """A tokenizer's file of an artifact. Raises: FormatError, where it is missing."""
    if name not in files:
        raise FormatError(
            "the artifact lacks its tokenizer",
            where=name,
            received=", ".join(files) or "no files",
            fix="export it again",
        )
    return files[name].decode("utf-8")


def load_tokenizer(source: str) -> Tokenizer:
    """The tokenizer of a path, or of the JSON of one; read again only where a file of it has changed.

    Raises: as `Tokenizer.from_file`.
    """
    if source.startswith("{"):
        return _load(source, ())
    path = Path(source).expanduser()
    return _load(str(path), file_states(path))


@lru_cache(maxsize=16)
def _load(source: str, states: tuple[tuple[str, int, int], ...]) -> Tokenizer:
    return Tokenizer.from_json(source) if source.startswith("{") else Tokenizer.from_file(source)
