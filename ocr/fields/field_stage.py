"""A tagger of fields at run time: lines of a page become fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from framework.inference import Engine
from framework.io.collate import PadToBucket
from ocr.fields.features import word_features, word_places
from ocr.fields.field_decoding import FieldKind, decode_fields
from ocr.fields.words import PageWords, split_page
from ocr.results.blocks import Field
from ocr.results.page_text import line_box
from ocr.results.pages import Page

PADDING = {"features": 0, "places": 0.0, "mask": False}
"""What pads the program's inputs."""


@dataclass(frozen=True)
class FieldOptions:
    """How a tagger sees a page, and what becomes of its tags.

    Attributes:
        buckets: How many numbers features are hashed to.
        max_words: What comes after so many words of a page is not seen.
        lengths: To which the words of a page are padded, ascending.
        kinds: How values of labels are read, in lower case; others are texts.
    """

    buckets: int = 16384
    max_words: int = 1024
    lengths: tuple[int, ...] = (64, 128, 256, 512, 1024)
    kinds: dict[str, FieldKind] = field(default_factory=dict)


class FieldReader:
    """The fields of pages. Safe to call from several threads."""

    def __init__(self, engine: Engine, options: FieldOptions, tags: Sequence[str]) -> None:
        self.engine, self.options, self.tags = engine, options, tuple(tags)
        self._collate = PadToBucket(options.lengths, PADDING)

    @property
    def reads_images(self) -> bool:
        """Whether pages must have their image."""
        return False

    def __call__(self, page: Page) -> list[Field]:
        """The fields that the lines of a page say, each name once; their boxes are those of their words."""
        lines = page.lines
        texts = [line.text for line in lines]
        boxes = np.array([line_box(line) for line in lines], np.float32).reshape(-1, 4)
        words = split_page(texts, boxes).first(min(self.options.max_words, self.options.lengths[-1]))
        if not len(words):
            return []
        scores = self.engine(self._collate([pack_words(words, self.options.buckets)]))["scores"]
        found = decode_fields(
            np.asarray(scores)[0, : len(words)], self.tags, words, texts, self.options.kinds
        )
        return [
            Field(
                one.name,
                one.value,
                one.score,
                "",
                page.page,
                tuple(_boxes(words, one.words)),
                one.text,
            )
            for one in found
        ]


def pack_words(words: PageWords, buckets: int) -> dict[str, np.ndarray]:
    """What a FieldTagger reads of T words: {"features" [T, K], "places" [T, P], "mask" [T]}."""
    return {
        "features": word_features(words, buckets),
        "places": word_places(words),
        "mask": np.ones(len(words), bool),
    }


def _boxes(words: PageWords, places: Sequence[int]) -> list[tuple[float, float, float, float]]:
    """The bounds of the words of each line."""
    found = []
    for line in dict.fromkeys(words.lines[place] for place in places):
        own = words.boxes[[place for place in places if words.lines[place] == line]]
        low, high = own[:, :2].min(axis=0), own[:, 2:].max(axis=0)
        found.append((float(low[0]), float(low[1]), float(high[0]), float(high[1])))
    return found
