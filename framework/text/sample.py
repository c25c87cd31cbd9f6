"""One text with what is known about it: what datasets of texts yield and transforms change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framework.core.errors import ShapeError
from framework.core.sample import Sample


@dataclass(frozen=True, eq=False)
class TextSample(Sample):
    """A text, or a pair of texts, and the T tokens that a transform made of it.

    Raises:
        ShapeError: there are not as many tags as words.
    """

    text: str = ""
    pair: str | None = None
    """A second text: of a matching pair, or the question to the text."""
    words: tuple[str, ...] | None = None
    """The words of `text` where somebody divided it; what `tags` and results count."""
    label: int | None = None
    labels: tuple[int, ...] | None = None
    """The classes of a text that may have several, or none."""
    tags: tuple[int, ...] | None = None
    """The class of each word."""
    target: str | None = None
    """The text that a model is to write, such as a translation."""
    ids: np.ndarray | None = None
    """`[T]` int32: the tokens; `[T, K]` where K features of each are added up."""
    type_ids: np.ndarray | None = None
    """`[T]` int32: 0 for `text` and 1 for `pair`."""
    pair_ids: np.ndarray | None = None
    """`[S]` or `[S, K]` int32: the tokens of `pair`, where a model reads it apart from `text`."""
    negative: TextSample | None = None
    """The same text with a pair that fits it less, where a model learns to rank."""
    offsets: np.ndarray | None = None
    """`[T, 2]` int32: first character and the one after the last, in the text that the token comes from."""
    word_ids: np.ndarray | None = None
    """`[T]` int32: the word of each token, -1 where it belongs to none."""
    left_out: int = 0
    """Tokens of the texts that had no room among `ids`."""
    target_ids: np.ndarray | None = None
    """`[S]` int32: the tokens of `target`, or those that stood at `positions`."""
    positions: np.ndarray | None = None
    """`[S]` int32, ascending: the places in `ids` of the tokens that a model is to guess."""
    spans: tuple[tuple[int, int], ...] | None = None
    """First character and the one after the last of phrases or entities in `text`."""
    answers: tuple[tuple[int, int], ...] | None = None
    """First character and the one after the last, in `text`, of each right answer to `pair`; none: it has no answer."""

    def __post_init__(self) -> None:
        if self.tags is not None and len(self.tags) != len(self.words or ()):
            raise ShapeError(
                "there are not as many tags as words",
                where="TextSample" if self.id is None else f"sample {self.id!r}",
                received=f"{len(self.tags)} tags, {len(self.words or ())} words",
                allowed="one tag a word",
            )
