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

    def summary(self) -> list[str]:
        total = sum(count for _, count in self.classes)
        rows = [(name, str(count), f"{count / max(1, total):.1%}") for name, count in self.classes]
        more = f"; {len(self.sizes) - 5} other sizes" if len(self.sizes) > 5 else ""
        empty = [name for name, count in self.classes if not count]
        return [
            f"{total} images: {'; '.join(f'{count} of {size}' for size, count in self.sizes[:5])}{more}",
            *format_table({"images": 7, "share": 6}, sorted(rows, key=lambda row: -int(row[1]))),
            *([f"{len(empty)} classes without an image: {', '.join(empty[:10])}"] if empty else ()),
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
    counts, seen = [0] * len(names), dict[bytes, tuple[int, str]]()
    broken, wrong, contradictory, repeated = [], [], [], 0
    for sample in read_samples(dataset, broken, observe):
        height, width = sample.image.shape[:2]
        sizes[f"{width} x {height}"] += 1
        assert sample.labels is not None
        label = int(sample.labels)
        if not 0 <= label < len(names):
            wrong.append(f"{sample.id}: {label}, but there are {len(names)} classes")
            continue
        counts[label] += 1
        before, first = seen.setdefault(hash_image(sample.image), (label, str(sample.id)))
        if first != str(sample.id) and before == label:
            repeated += 1
        elif before != label:
            contradictory.append(f"{sample.id} is {names[label]}, {first} is {names[before]}")
    return Report(
        tuple(zip(names, counts)),
        tuple(sizes.most_common()),
        repeated,
        tuple(broken),
        tuple(wrong),
        tuple(contradictory),
    )
