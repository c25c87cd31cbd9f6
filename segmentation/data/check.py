"""The check of a data set before it is trained on: how its classes are balanced, and what is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from framework.core.errors import ConfigError
from framework.io import data_check
from framework.io.data_check import SHOWN, Observe, format_table, nothing_to_learn, read_samples
from framework.io.dataset import Dataset
from framework.vision.dataset_files import describe_similar
from segmentation.data.records import SegmentationDataset


@dataclass(frozen=True)
class ClassCount:
    """How much of a data set a class is."""

    name: str
    pixels: int
    images: int
    """Those with a pixel of it."""


@dataclass(frozen=True)
class Report(data_check.Report):
    """What `validate` found. Absent classes are named, and are no fault: a small part may lack some."""

    images: int
    classes: tuple[ClassCount, ...]
    ignored: int
    """Pixels without a class."""
    sizes: tuple[tuple[str, int], ...]
    """Sizes and kinds of images, and how many have them; the most frequent first."""
    broken: tuple[str, ...]
    """Images and masks that cannot be used, and why."""
    left_out: tuple[str, ...] | None = None
    """Annotations that cannot be drawn; None where the data set reads masks."""
    notes: tuple[str, ...] = ()
    """What is worth a word and need be no fault."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Classes without a pixel."""
        return tuple(one.name for one in self.classes if not one.pixels)

    def summary(self) -> list[str]:
        labelled = sum(one.pixels for one in self.classes)
        total = max(1, labelled + self.ignored)
        lines = [
            f"{self.images} images: "
            + "; ".join(f"{count} of {size}" for size, count in self.sizes[:5])
            + (f"; {len(self.sizes) - 5} other sizes" if len(self.sizes) > 5 else ""),
            f"{labelled:,} pixels with a class, {self.ignored:,} without ({self.ignored / total:.1%})",
            *format_table(
                {"pixels": 14, "share": 6, "images": 8},
                [
                    (one.name, f"{one.pixels:,d}", f"{one.pixels / max(1, labelled):.2%}", str(one.images))
                    for one in sorted(self.classes, key=lambda one: -one.pixels)
                ],
            ),
        ]
        if self.absent:
            lines.append(
                f"{len(self.absent)} classes without a pixel: {', '.join(self.absent[:SHOWN])}"
                + (" ..." if len(self.absent) > SHOWN else "")
            )
        return [*lines, *self.notes]

    def faults(self) -> Mapping[str, Sequence[str]]:
        left_out = {} if self.left_out is None else {"entries that are left out": self.left_out}
        labelled = sum(one.pixels for one in self.classes)
        return {
            "images that cannot be used": self.broken,
            **left_out,
            **nothing_to_learn(labelled, "pixel with a class"),
        }


def validate(dataset: Dataset, observe: Observe | None = None) -> Report:
    """Reads every image and mask.

    Raises:
        ConfigError: it is no SegmentationDataset.
        OarError: the list of its files itself cannot be had.
    """
    if not isinstance(dataset, SegmentationDataset):
        raise ConfigError(
            "this data set has no classes of pixels",
            received=type(dataset).__name__,
            allowed="a SegmentationDataset of segmentation.data, such as MaskFolder or MaskListFile",
        )
    names = dataset.class_names
    pixels, images = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    sizes: Counter[str] = Counter()
    ignored, broken = 0, []
    for sample in read_samples(dataset, broken, observe):
        height, width, channels = sample.image.shape
        sizes[f"{width} x {height}, {channels} channels of {sample.image.dtype}"] += 1
        assert sample.mask is not None
        counted = sample.mask[sample.mask != dataset.ignore_index]
        counts = np.bincount(counted, minlength=len(names))
        pixels += counts
        images += counts > 0
        ignored += sample.mask.size - counted.size
    rows = (ClassCount(*row) for row in zip(names, pixels.tolist(), images.tolist()))
    return Report(
        len(dataset),
        tuple(rows),
        ignored,
        tuple(sizes.most_common()),
        tuple(broken),
        getattr(dataset, "problems", None),
        tuple(describe_similar(names)),
    )
