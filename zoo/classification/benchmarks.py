"""Small benchmark sets in their official binary files: MNIST and its kin, CIFAR-10.

As in `data`: nothing is read before the first use, and a pickled dataset carries its settings alone.
"""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError, InputError
from framework.io.dataset import LazyDataset
from framework.vision.image import check_file
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
                "this is no part of the data",
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
        images, labels = _read_idx(Path(self.images), 3), _read_idx(Path(self.labels), 1)
        if len(images) != len(labels):
            raise FormatError(
                "images and labels do not belong together",
                where=self.labels,
                received=f"{len(labels)} labels",
                allowed=f"{len(images)}, the images in {self.images}",
            )
        _check_labels(labels, len(self.class_names), Path(self.labels))
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
            data = np.fromfile(path, np.uint8)
            if data.size == 0 or data.size % 3073:
                raise FormatError(
                    "the file does not consist of whole records",
                    where=path,
                    received=f"{data.size} bytes",
                    allowed="a multiple of 3073: a label and 3 x 32 x 32 values",
                    fix="unpack the archive again",
                )
            records = data.reshape(-1, 3073)
            _check_labels(records[:, 0], len(_CIFAR10_CLASSES), path)
            batches.append((path, records))
        return batches


_CIFAR10_CLASSES = tuple(
    ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
)
_MAX_BYTES = 2**31 - 1  # a damaged header can ask for any amount


def _check_labels(labels: np.ndarray, num_classes: int, path: Path) -> None:
    outside = np.flatnonzero(labels >= num_classes)
    if outside.size:
        raise FormatError(
            f"{outside.size} labels are no classes",
            where=path,
            received=f"{int(labels[outside[0]])} at index {int(outside[0])}",
            allowed=f"0 to {num_classes - 1}",
        )


def _read_idx(path: Path, rank: int) -> np.ndarray:
    # Source: http://yann.lecun.com/exdb/mnist: 0, 0, the type (8: bytes), the rank, then each size as big-endian int32.
    with check_file(path, "IDX").open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        try:
            header = stream.read(4 + 4 * rank)
            if len(header) < 4 + 4 * rank or header[:4] != bytes([0, 0, 8, rank]):
                raise FormatError(
                    "this is no IDX file of that kind",
                    where=path,
                    received=f"a file that begins with {header[:4].hex(' ')}",
                    allowed=f"00 00 08 {rank:02x}: bytes in {rank} dimension{'s' * (rank > 1)}",
                    fix="images have 3 dimensions, labels 1: check that the two are not exchanged",
                )
            shape = [int.from_bytes(header[i : i + 4], "big") for i in range(4, len(header), 4)]
            data = stream.read(min(math.prod(shape), _MAX_BYTES))
        except (OSError, EOFError, zlib.error) as error:
            raise FormatError("the file cannot be unpacked", where=path, received=error) from error
    if len(data) < math.prod(shape) or 0 in shape:
        raise FormatError(
            "the file is cut off",
            where=path,
            received=f"{len(data)} bytes",
            allowed=f"{math.prod(shape)} for the shape {shape}",
            fix="copy or download it again",
        )
    return np.frombuffer(data, np.uint8).reshape(shape)
