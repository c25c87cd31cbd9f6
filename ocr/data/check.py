"""The check of pages with text before a detector is trained on them: what it would learn, and what is broken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from framework.io import data_check
from framework.io.data_check import Observe, nothing_to_learn, read_samples, validate_samples
from framework.io.dataset import Dataset
from framework.vision.sample import Sample
from ocr.data.pages import LabelledPages


@dataclass(frozen=True)
class PagesReport(data_check.Report):
    """What is found in a data set of pages with the polygons of their text."""

    pages: int
    without: int
    """Pages without a region to learn."""
    regions: int
    """Regions that a detector learns."""
    untold: int
    """Those of them whose text is not said."""
    unreadable: int
    """Regions that count nowhere."""
    outside: tuple[str, ...]
    """Regions that lie wholly outside of their page."""
    broken: tuple[str, ...]

    def summary(self) -> list[str]:
        untold = f", {self.untold} of them without a text" if self.untold else ""
        return [
            f"{self.pages} pages, {self.without} of them without text to learn",
            f"{self.regions} regions{untold}; {self.unreadable} more that nobody can read",
        ]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            "pages that cannot be used": self.broken,
            "regions outside of their page": self.outside,
            **nothing_to_learn(self.regions, "region that can be read"),
        }


def validate_any(dataset: Dataset, observe: Observe | None = None) -> data_check.Report:
    """Reads every sample; of pages with text their regions are counted."""
    return (
        validate_pages(dataset, observe)
        if isinstance(dataset, LabelledPages)
        else validate_samples(dataset, observe)
    )


def validate_pages(dataset: Dataset, observe: Observe | None = None) -> PagesReport:
    """Reads every page of a data set and counts its regions. Raises: OarError, where it cannot be read at all."""
    broken: list[str] = []
    outside: list[str] = []
    without = regions = untold = unreadable = 0
    for sample in read_samples(dataset, broken, observe):
        assert isinstance(sample, Sample) and sample.polygons is not None and sample.valid is not None
        texts = sample.text if isinstance(sample.text, tuple) else ("",) * len(sample.polygons)
        counted = int(np.count_nonzero(sample.valid))
        regions, unreadable = regions + counted, unreadable + len(sample.valid) - counted
        without += not counted
        untold += sum(
            bool(valid) and not text.strip() for valid, text in zip(sample.valid, texts, strict=True)
        )
        height, width = sample.size_hw
        outside += [
            f"{sample.id}: region {number}, {polygon.tolist()}"
            for number, polygon in enumerate(sample.polygons, start=1)
            if (polygon.max(axis=0) <= 0).any() or (polygon.min(axis=0) >= (width, height)).any()
        ]
    return PagesReport(len(dataset), without, regions, untold, unreadable, tuple(outside), tuple(broken))
