"""A look over a data set before it is trained on: how its classes are balanced, and what is broken."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from framework.core.errors import ConfigError, OarError

_SHOWN = 10


@dataclass(frozen=True)
class ClassCount:
    """How much of a data set a class is."""

    name: str
    pixels: int
    images: int
    """Those with a pixel of it."""


@dataclass(frozen=True)
class Report:
    """What `validate` found. `str` makes a page of it."""

    images: int
    classes: tuple[ClassCount, ...]
    ignored: int
    """Pixels without a class."""
    sizes: tuple[tuple[str, int], ...]
    """Sizes and kinds of images, and how many have them; the most frequent first."""
    broken: tuple[str, ...]
    """Images and masks that cannot be used, and why."""

    @property
    def absent(self) -> tuple[str, ...]:
        """Classes without a pixel."""
        return tuple(one.name for one in self.classes if not one.pixels)

    @property
    def is_clean(self) -> bool:
        """Whether every file can be used. Absent classes are told, and are no fault: a small part may lack some."""
        return not self.broken

    def __str__(self) -> str:
        labelled = sum(one.pixels for one in self.classes)
        total = max(1, labelled + self.ignored)
        width = max(len("class"), *(len(one.name) for one in self.classes))
        lines = [
            f"{self.images} images: "
            + "; ".join(f"{count} of {size}" for size, count in self.sizes[:5])
            + (f"; {len(self.sizes) - 5} other sizes" if len(self.sizes) > 5 else ""),
            f"{labelled:,} pixels with a class, {self.ignored:,} without ({self.ignored / total:.1%})",
            f"{'class':<{width}}          pixels   share  images",
            *(
                f"{one.name:<{width}}  {one.pixels:14,d}  {one.pixels / max(1, labelled):6.2%}  {one.images:8d}"
                for one in sorted(self.classes, key=lambda one: -one.pixels)
            ),
        ]
        if self.absent:
            lines.append(
                f"{len(self.absent)} classes without a pixel: {', '.join(self.absent[:_SHOWN])}"
                + (" ..." if len(self.absent) > _SHOWN else "")
            )
        lines.append(f"{len(self.broken)} images that cannot be used")
        lines += [f"  {line}" for line in self.broken[:_SHOWN]]
        lines += [f"  ... and {len(self.broken) - _SHOWN} more"] if len(self.broken) > _SHOWN else []
        return "\n".join(lines)


def validate(dataset: Any) -> Report:
    """Reads every image and mask of a data set of this package.

    Raises:
        ConfigError: it is a data set without masks of classes.
        OarError: the list of its files itself cannot be had.
    """
    if not hasattr(dataset, "ignore_index"):
        raise ConfigError(
            "this data set has no classes of pixels",
            received=type(dataset).__name__,
            allowed="a data set of segmentation.data, such as MaskFolder or MaskListFile",
        )
    names = dataset.class_names
    pixels, images = np.zeros(len(names), np.int64), np.zeros(len(names), np.int64)
    sizes: Counter[str] = Counter()
    ignored, broken = 0, []
    for index in range(len(dataset)):
        try:
            sample = dataset[index]
        except OarError as error:
            received = "" if error.received is None else f" ({error.received})"
            broken.append(f"{error.where}: {error.problem}{received}")
            continue
        height, width, channels = sample.image.shape
        sizes[f"{width} x {height}, {channels} channels of {sample.image.dtype}"] += 1
        mask = sample.mask
        counted = mask != dataset.ignore_index
        counts = np.bincount(mask[counted], minlength=len(names))
        pixels += counts
        images += counts > 0
        ignored += mask.size - int(counts.sum())
    rows = (ClassCount(*row) for row in zip(names, pixels.tolist(), images.tolist()))
    return Report(len(dataset), tuple(rows), ignored, tuple(sizes.most_common()), tuple(broken))
