"""Samples of texts as the arrays that models read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.core.errors import InputError
from framework.text.sample import TextSample
from nlp.contracts import Tokens

if TYPE_CHECKING:
    from framework.engine.task import Batch


def pack_tokens(sample: TextSample) -> dict[str, np.ndarray]:
    """The tokens of a sample.

    Raises:
        InputError: no transform made any, or the texts of a pair stand apart.
    """
    if sample.pair_ids is not None:
        raise InputError(
            "the model reads one row of tokens, and the texts of a pair have one each",
            where=sample.id,
            fix="put both into one row with Tokenize (apart: false), or take a task such as TextMatching",
        )
    if sample.ids is None:
        raise InputError(
            "the text was not divided into tokens",
            where=sample.id,
            fix="put a transform such as Tokenize or HashFeatures into `transforms`",
        )
    arrays = {"input_ids": sample.ids.astype(np.int32), "mask": np.ones(len(sample.ids), bool)}
    if sample.type_ids is not None:
        arrays["type_ids"] = sample.type_ids.astype(np.int32)
    return arrays


def count_tokens(samples: Sequence[TextSample]) -> int:
    """Of what went through a program for a text."""
    return sum(len(sample.ids) for sample in samples if sample.ids is not None)


def count_left_out(samples: Sequence[TextSample]) -> int:
    """Tokens of a text that did not go through a program, as there was no room."""
    return sum(sample.left_out for sample in samples)


def tokens_of(batch: Batch) -> Tokens:
    """What a model reads of a batch."""
    return Tokens(batch["input_ids"], batch["mask"], batch.get("type_ids"))


def first_tokens(word_ids: np.ndarray) -> np.ndarray:
    """[T] bool of `TextSample.word_ids`: whether a token is the first one of its word."""
    return (word_ids >= 0) & (word_ids != np.concatenate([[-1], word_ids[:-1]]))
