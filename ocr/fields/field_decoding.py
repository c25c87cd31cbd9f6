"""From the probabilities of words' tags to fields: which words make a value, and what the value is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from ocr.fields.values import find_amounts, find_dates
from ocr.fields.words import PageWords, text_of

FieldKind = Literal["text", "date", "amount"]
# Probability below which a value is left out. Dates and amounts need less, as their form says something too.
LEAST_PROBABILITY: Mapping[FieldKind, float] = {"text": 0.2, "date": 0.05, "amount": 0.05}


class FoundField(NamedTuple):
    """A value as it is written and in plain form, its score in [0, 1], and the places of its words."""

    name: str
    text: str
    value: str
    score: float
    words: tuple[int, ...]


class _Candidate(NamedTuple):
    text: str
    value: str
    words: tuple[int, ...]


def label_names(tags: Sequence[str]) -> tuple[str, ...]:
    """The labels of tags such as O, B-TOTAL, I-TOTAL, in their order."""
    return tuple(dict.fromkeys(tag.partition("-")[2] for tag in tags if "-" in tag))


def label_probabilities(probabilities: np.ndarray, tags: Sequence[str]) -> np.ndarray:
    """[T, tags] -> [T, 1 + labels]: O first, then each label's tags together."""
    names = ["", *label_names(tags)]
    found = np.zeros((len(probabilities), len(names)), np.float32)
    for place, tag in enumerate(tags):
        found[:, names.index(tag.partition("-")[2])] += probabilities[:, place]
    return found


def decode_fields(
    probabilities: np.ndarray,
    tags: Sequence[str],
    words: PageWords,
    texts: Sequence[str],
    kinds: Mapping[str, FieldKind],
) -> list[FoundField]:
    """The best value of each label, in the order of the labels.

    A value of text is a run of words of which each is most likely of the label. A date or an amount is what can be read
    as one and is most likely: where the same one stands in several places, the probabilities add up.

    Args:
        probabilities: [T, tags].
        texts: What the lines say that the words are of.
        kinds: By label, in lower case; others are "text".
    """
    shares = label_probabilities(probabilities, tags)
    best = shares.argmax(axis=1)
    found = []
    for number, name in enumerate(label_names(tags), 1):
        kind = kinds.get(name.lower(), "text")
        share = shares[:, number]
        candidates = list(_candidates(kind, best == number, words, texts))
        if not candidates:
            continue
        means = [float(share[list(one.words)].mean()) for one in candidates]
        if kind == "text":
            points = [float(share[list(one.words)].sum()) for one in candidates]
        else:
            points = [
                sum(mean for mean, other in zip(means, candidates) if other.value == one.value)
                for one in candidates
            ]
        place = max(range(len(candidates)), key=lambda one: (points[one], means[one]))
        score = means[place] if kind == "text" else min(points[place], 1.0)
        if score >= LEAST_PROBABILITY[kind]:
            chosen = candidates[place]
            found.append(FoundField(name.lower(), chosen.text, chosen.value, score, chosen.words))
    return found


def _candidates(
    kind: FieldKind, marked: np.ndarray, words: PageWords, texts: Sequence[str]
) -> Iterator[_Candidate]:
    if kind == "text":
        for run in _runs(marked):
            text = text_of(words, texts, run).strip()
            if text:
                yield _Candidate(text, text, tuple(run))
        return
    by_line: dict[int, list[int]] = {}
    for place, line in enumerate(words.lines.tolist()):
        by_line.setdefault(line, []).append(place)
    find_values = find_dates if kind == "date" else find_amounts
    for line, places in by_line.items():
        for one in find_values(texts[line]):
            own = tuple(p for p in places if words.spans[p, 0] < one.end and one.start < words.spans[p, 1])
            if own:
                yield _Candidate(one.text, one.value, own)


def _runs(marked: np.ndarray) -> Iterator[list[int]]:
    run: list[int] = []
    for place, one in enumerate(marked.tolist()):
        if one:
            run.append(place)
        elif run:
            yield run
            run = []
    if run:
        yield run


def plain_text(text: str) -> str:
    """Letters and digits alone, in upper case: what counts when values are compared."""
    return re.sub(r"[\W_]", "", text).upper()
