"""Small benchmark sets in their official binary files: MNIST and its kin, CIFAR-10.

As in `data`: nothing is read before the first use, and a pickled dataset carries its settings alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.io.benchmark_files import read_cifar_records, read_idx_pair
from framework.io.dataset import LazyDataset
from framework.vision.sample import Sample
from zoo.classification.data import read_class_names


@register("dataset")
@dataclass(frozen=True)
class Mnist(LazyDataset):
    """Grey images in IDX files, plain or .gz: MNIST, Fashion-MNIST, KMNIST. Samples are RGB like all others.

    `start` and `stop` take a part of the files, `stop` excluded; None is the end. Classes are the digits, or as in
    `labels_file`, one name a line.

    Raises:
        ConfigError: `start` or `stop` is negative, or `stop` is not after `start`.
        InputError: at the first use, there is no such file, or `start` or `stop` is beyond the last image.
        FormatError: at the first use, a file is no IDX file of bytes, is cut off or damaged, the two do not belong
            together, or a label is no class.
    """

    images: Path
    labels: Path
    start: int = 0
    stop: int | None = None
    labels_file: Path | None = None

    def __post_init__(self) -> None:
        if self.start < 0 or (self.stop is not None and self.stop <= self.start):
            raise ConfigError(
                "start and stop are out of order",
                where="Mnist.start, stop",
                received=(self.start, self.stop),
                allowed="0 <= start < stop, or null for the end",
            )

    @cached_property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index."""
        return tuple("0123456789") if self.labels_file is None else read_class_names(self.labels_file)

    def __len__(self) -> int:
        return len(self._data[1])

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class index [1] of each sample."""
        return list(self._data[1][:, None])

    def __getitem__(self, index: int) -> Sample:
        images, labels = self._data
        label = labels[index]  # raises IndexError beyond the end
        number = self.start + (index if index >= 0 else index + len(labels))
        rgb = np.repeat(images[index][..., None], 3, axis=2)
        return Sample(rgb, labels=np.asarray(label, np.int32), id=f"{self.images}:{number}")

    @cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        images, labels = read_idx_pair(Path(self.images), Path(self.labels), len(self.class_names))
        stop = len(labels) if self.stop is None else self.stop
        if stop > len(labels) or self.start >= stop:
            raise InputError(
                "the part reaches beyond the last image",
                where=self.images,
                received=f"start {self.start}, stop {self.stop}",
                allowed=f"start < stop <= {len(labels)}",
            )
        return images[self.start : stop], labels[self.start : stop]


@register("dataset")
@dataclass(frozen=True)
class Cifar10(LazyDataset):
    """The binary version of CIFAR-10: `data_batch_1.bin` to `data_batch_5.bin` and `test_batch.bin`.

    `root` holds the files or their folder `cifar-10-batches-bin`.

    Raises:
        InputError: at the first use, files are missing.
        FormatError: at the first use, a file does not consist of whole records, or a label is no class.
    """

    root: Path
    split: Literal["train", "test"] = "train"

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of the classes by index, as in batches.meta.txt."""
        return _CIFAR10_CLASSES

    def __len__(self) -> int:
        return sum(len(records) for _, records in self._batches)

    def read_labels(self) -> Sequence[np.ndarray]:
        """The class index [1] of each sample."""
        return [label for _, records in self._batches for label in records[:, :1]]

    def __getitem__(self, index: int) -> Sample:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"index {index} of {count} samples")
        ends = np.cumsum([len(records) for _, records in self._batches])
        batch = int(np.searchsorted(ends, index % count, side="right"))
        path, records = self._batches[batch]
        place = index % count - (int(ends[batch]) - len(records))
        rgb = np.ascontiguousarray(records[place, 1:].reshape(3, 32, 32).transpose(1, 2, 0))
        return Sample(rgb, labels=np.asarray(records[place, 0], np.int32), id=f"{path}:{place}")

    @cached_property
    def _batches(self) -> list[tuple[Path, np.ndarray]]:
        folder = Path(self.root)
        if (folder / "cifar-10-batches-bin").is_dir():
            folder = folder / "cifar-10-batches-bin"
        names = [f"data_batch_{i}.bin" for i in range(1, 6)] if self.split == "train" else ["test_batch.bin"]
        missing = [name for name in names if not (folder / name).is_file()]
        if missing:
            raise InputError(
                "files of CIFAR-10 are missing",
                where=folder,
                received=f"no {', '.join(missing)}",
                allowed="the binary version (the one for Python is pickled, and a pickle may run any program)",
                fix="unpack https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            )
        batches = []
        for path in (folder / name for name in names):
            batches.append((path, read_cifar_records(path, len(_CIFAR10_CLASSES))))
        return batches


_CIFAR10_CLASSES = tuple(
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
)
