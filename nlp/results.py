"""What models say of a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from framework.text.spans import spans, split_tag
from framework.workflow.domain.result import Json, TextResult


def _left_out(tokens: int) -> dict[str, Json]:
    """Of JSON: a text that the model did not read whole says so."""
    return {"left_out_tokens": tokens} if tokens else {}


@dataclass(frozen=True)
class Label:
    """A class with its probability in [0, 1]."""

    label: str
    category_id: int
    score: float

    def to_dict(self) -> dict[str, Json]:
        return {**vars(self), "score": round(self.score, 6)}


@dataclass(frozen=True)
class TextLabels(TextResult):
    """The classes of a text, or of a pair of texts, best first; none of a text that is blank, or that has none.

    Attributes:
        token_count: Tokens as the model read them; no part of JSON.
        left_out_tokens: Tokens that it did not read, as there was no room.
    """

    classes: tuple[Label, ...]
    pair: str | None = None
    token_count: int = 0
    left_out_tokens: int = 0

    @property
    def label(self) -> str:
        """The best class; "" where there is none."""
        return self.classes[0].label if self.classes else ""

    @property
    def score(self) -> float:
        return self.classes[0].score if self.classes else 0.0

    def to_dict(self) -> dict[str, Json]:
        pair = {} if self.pair is None else {"pair": self.pair}
        classes: list[Json] = [label.to_dict() for label in self.classes]
        return {"text": self.text, **pair, "classes": classes, **_left_out(self.left_out_tokens)}


@dataclass(frozen=True)
class Similarity(TextResult):
    """How well two texts match: the larger `score` the better.

    It is the model's: a probability in [0, 1], or of vectors the cosine in [-1, 1].

    Attributes:
        token_count: Tokens of both texts as the model read them; no part of JSON.
        left_out_tokens: Tokens that it did not read, as there was no room.
    """

    pair: str
    score: float
    token_count: int = 0
    left_out_tokens: int = 0

    def to_dict(self) -> dict[str, Json]:
        score = round(self.score, 6)
        return {"text": self.text, "pair": self.pair, "score": score, **_left_out(self.left_out_tokens)}


@dataclass(frozen=True)
class Span:
    """A word or an entity: `text` is what stands from character `start` to the one before `end`.

    `score` in [0, 1] is the lowest probability among its tags.
    """

    text: str
    label: str
    start: int
    end: int
    score: float

    def to_dict(self) -> dict[str, Json]:
        return {**vars(self), "score": round(self.score, 4)}


@dataclass(frozen=True)
class Tagged(TextResult):
    """The words of a text with their tags, or the entities in it, in order."""

    spans: tuple[Span, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(span.text for span in self.spans)

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(span.label for span in self.spans)

    def to_dict(self) -> dict[str, Json]:
        return {"text": self.text, "spans": [span.to_dict() for span in self.spans]}


@dataclass(frozen=True)
class Translated(TextResult):
    """What a text says in another language.

    `score` is the logarithm of the translation's probability, divided by the length penalty: 0 is certain. Of a text
    that was translated in pieces it is their mean.
    """

    translation: str
    score: float

    def to_dict(self) -> dict[str, Json]:
        return {**vars(self), "score": round(self.score, 4)}


def labelled(scores: np.ndarray, labels: Sequence[str], top: int) -> tuple[Label, ...]:
    """The best `top` of probabilities [C], best first; ties go to the lower class."""
    best = map(int, np.argsort(-scores, kind="stable")[:top])
    return tuple(Label(labels[i] if i < len(labels) else str(i), i, float(scores[i])) for i in best)


def marks_spans(labels: Sequence[str]) -> bool:
    """Whether tags mark spans, by letters such as B- and I-, and are not the tags of single words."""
    tags = [split_tag(label) for label in labels if label != "O"]
    # A word may have the tag I or E by itself; B, M, E and S together are a segmenter's.
    return None not in tags and (all(tag and tag[1] for tag in tags) or ("B", "") in tags)


def tagged(
    text: str, offsets: np.ndarray, tags: Sequence[str], scores: np.ndarray, joined: bool
) -> tuple[Span, ...]:
    """Spans of a text from the tags of its tokens.

    Args:
        offsets: [T, 2], where each token begins and ends.
        scores: [T]
        joined: The tags mark spans (`marks_spans`); else each token is one.
    """
    singles = [(place, place + 1, str(tag)) for place, tag in enumerate(tags)]
    pairs = []
    for first, behind, label in spans(tags) if joined else singles:
        start, end = int(offsets[first, 0]), int(offsets[behind - 1, 1])
        pairs.append(Span(text[start:end], label, start, end, float(scores[first:behind].min())))
    return tuple(pairs)


@dataclass(frozen=True, eq=False)
class TextVector:
    """A text, or a pair of texts, with its embedding [D] float32.

    Attributes:
        token_count: Tokens of the text as the model read it, its prompt included; no part of JSON.
        left_out_tokens: Tokens that it did not read, as there was no room.
    """

    text: str
    vector: np.ndarray
    pair: str | None = None
    token_count: int = 0
    left_out_tokens: int = 0

    def to_dict(self) -> dict[str, Json]:
        pair = {} if self.pair is None else {"pair": self.pair}
        # Six digits behind the first one tell float32 values apart as far as models are exact.
        vector: list[Json] = [float(f"{value:.7g}") for value in self.vector]
        return {"text": self.text, **pair, "vector": vector, **_left_out(self.left_out_tokens)}
