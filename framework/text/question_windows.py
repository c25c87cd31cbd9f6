"""The transform that makes rows of tokens of a question and a text of any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.core.transform import WindowTransform
from framework.text.sample import TextSample
from framework.text.transforms import SOURCE, check_vocabulary, load_tokenizer, read_asset


@register("transform")
@dataclass(frozen=True)
class QuestionWindows(WindowTransform[TextSample]):
    """Gives a text with a question (the sample's `pair`) its tokens: the question first, then a window of the text.

    A text that is too long is divided into windows that overlap: `split_windows` gives a sample for each. It is the
    first of the transforms. Tokens of the text count as its words.

    Source: https://github.com/google-research/bert, run_squad.py, `convert_examples_to_features`

    Attributes:
        tokenizer: A file or a folder that `Tokenizer.from_file` reads, or the JSON of one.
        max_length: So many tokens of a row at most, with the special ones.
        doc_stride: So many tokens behind the beginning of a window the next one begins.
        question_length: So many tokens of a question at most.

    Raises:
        ConfigError: a length is below 1; at the first text, the question leaves no room for it.
        InputError: a text has no question.
    """

    tokenizer: str
    max_length: int = 384
    doc_stride: int = 128
    question_length: int = 64

    def __post_init__(self) -> None:
        if min(self.max_length, self.doc_stride, self.question_length) < 1:
            raise ConfigError(
                "the lengths of the windows do not fit",
                where="QuestionWindows",
                received=f"max_length {self.max_length}, doc_stride {self.doc_stride}, question_length "
                f"{self.question_length}",
                allowed="1 or more",
            )

    def split_windows(self, sample: TextSample) -> list[TextSample]:
        """A sample for each window, in order."""
        if sample.pair is None:
            raise InputError(
                "the text has no question",
                where=sample.id,
                received=repr(sample.text[:40]),
                fix="give a tuple of the text and the question",
            )
        windows = load_tokenizer(self.tokenizer).windows(
            sample.pair, sample.text, self.max_length, self.doc_stride, self.question_length
        )
        rows = []
        for before, row in windows:
            of_text = row.texts == 1
            words = np.where(of_text, before + np.cumsum(of_text) - 1, -1).astype(np.int32)
            rows.append(
                sample.replace(ids=row.ids, type_ids=row.type_ids, offsets=row.offsets, word_ids=words)
            )
        return rows

    def check(self, model: object) -> None:
        """As `Tokenize.check`."""
        check_vocabulary(self.tokenizer, model, "QuestionWindows.tokenizer")

    def pack_assets(self) -> tuple[QuestionWindows, dict[str, bytes]]:
        """As `Tokenize.pack_assets`."""
        text = load_tokenizer(self.tokenizer).to_json()
        return replace(self, tokenizer=SOURCE), {SOURCE: text.encode("utf-8")}

    def load_assets(self, files: Mapping[str, bytes]) -> QuestionWindows:
        """As `Tokenize.load_assets`."""
        return replace(self, tokenizer=read_asset(files, self.tokenizer))
