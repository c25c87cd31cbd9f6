"""The check of images with a class each: how the classes are balanced, and what is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from framework.io import data_check
from framework.io.data_check import Observe, format_table, read_samples
from framework.io.weighting import LabelledDataset
from framework.vision.dataset_files import hash_image
from framework.vision.sample import Sample


@dataclass(frozen=True)
class Report(data_check.Report):
    """What `validate` found."""

    classes: tuple[tuple[str, int], ...]
    """Name and number of images."""
    sizes: tuple[tuple[str, int], ...]
    """Sizes of images, and how many have them; the most frequent first."""
    repeated: int
    """Images that are there before, with the same class."""
    broken: tuple[str, ...]
    out_of_range: tuple[str, ...]
    contradictory: tuple[str, ...]
    """Images that are there before, with another class."""
    without: int = 0
    """Images of no class, where one may have several."""

    def summary(self) -> list[str]:
        total, images = (sum(count for _, count in rows) for rows in (self.classes, self.sizes))
        rows = [(name, str(count), f"{count / max(1, total):.1%}") for name, count in self.classes]
        more = f"; {len(self.sizes) - 5} other sizes" if len(self.sizes) > 5 else ""
        empty = [name for name, count in self.classes if not count]
        return [
            f"{images} images: {'; '.join(f'{count} of {size}' for size, count in self.sizes[:5])}{more}",
            *format_table({"images": 7, "share": 6}, sorted(rows, key=lambda row: -int(row[1]))),
            *([f"{len(empty)} classes without an image: {', '.join(empty[:10])}"] if empty else ()),
            *([f"{self.without} images of no class"] if self.without else ()),
            *([f"{self.repeated} images are there twice, with the same class"] if self.repeated else ()),
        ]

    def faults(self) -> Mapping[str, Sequence[str]]:
        return {
            "images that cannot be used": self.broken,
            "images with labels that are no class": self.out_of_range,
            "images that are there before with another class": self.contradictory,
        }


class LabelledImages(LabelledDataset, Protocol):
    """Images by index, whose classes are known without reading them."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...


def validate(dataset: LabelledImages, observe: Observe | None = None) -> Report:
    """Reads every image. Raises: OarError, where the list of its files itself cannot be read."""
    names, sizes = dataset.class_names, Counter[str]()
    counts, seen = [0] * len(names), dict[bytes, tuple[tuple[int, ...], str]]()
    broken, wrong, contradictory, repeated, without = [], [], [], 0, 0
    for sample in read_samples(dataset, broken, observe):
        height, width = sample.image.shape[:2]
        sizes[f"{width} x {height}"] += 1
        assert sample.labels is not None
        labels = tuple(sorted(sample.labels.reshape(-1).tolist()))
        if unknown := [label for label in labels if not 0 <= label < len(names)]:
            wrong.append(f"{sample.id}: {unknown[0]}, but there are {len(names)} classes")
            continue
        for label in labels:
            counts[label] += 1
        without += not labels
        before, first = seen.setdefault(hash_image(sample.image), (labels, str(sample.id)))
        if first != str(sample.id) and before == labels:
            repeated += 1
        elif before != labels:
            texts = (", ".join(names[label] for label in one) or "no class" for one in (labels, before))
            contradictory.append(f"{sample.id} is {next(texts)}, {first} is {next(texts)}")
    return Report(
        tuple(zip(names, counts)),
        tuple(sizes.most_common()),
        repeated,
        tuple(broken),
        tuple(wrong),
        tuple(contradictory),
        without,
    )
