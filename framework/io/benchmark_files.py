"""Readers of the binary files of small benchmark sets: IDX (MNIST and its kin), CIFAR-10's records."""

from __future__ import annotations

import gzip
import math
import zlib
from pathlib import Path

import numpy as np

from framework.core.bounded import check_file
from framework.core.errors import FormatError, InputError

_MAX_BYTES = 2**31 - 1  # a damaged header can ask for any amount


def read_idx(path: Path, rank: int) -> np.ndarray:
    """The bytes of an IDX file, plain or .gz, as uint8 of that rank.

    Source: http://yann.lecun.com/exdb/mnist: 0, 0, the type (8: bytes), the rank, then each size as big-endian int32.

    Raises:
        InputError: there is no such file. FormatError: it is no IDX file of bytes of that rank, or cut off or damaged.
    """
    with check_file(path, "IDX file", InputError).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        stream = gzip.GzipFile(fileobj=file) if packed else file
        try:
            header = stream.read(4 + 4 * rank)
            if len(header) < 4 + 4 * rank or header[:4] != bytes([0, 0, 8, rank]):
                raise FormatError(
                    "the file is not an IDX file of that kind",
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


def read_idx_pair(images: Path, labels: Path, num_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """(images [count, H, W], labels [count]) uint8 of two IDX files.

    Raises:
        FormatError: a file is damaged, there are not as many labels as images, or a label is no class.
    """
    pixels, classes = read_idx(images, 3), read_idx(labels, 1)
    if len(pixels) != len(classes):
        raise FormatError(
            "images and labels do not belong together",
            where=labels,
            received=f"{len(classes)} labels",
            allowed=f"{len(pixels)}, the images in {images}",
        )
    check_labels(classes, num_classes, labels)
    return pixels, classes


def check_labels(labels: np.ndarray, num_classes: int, path: Path) -> None:
    """Raises: FormatError, where a label is no class."""
    outside = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if outside.size:
        raise FormatError(
            f"{outside.size} labels are no classes",
            where=path,
            received=f"{int(labels[outside[0]])} at index {int(outside[0])}",
            allowed=f"0 to {num_classes - 1}",
        )


def read_cifar_records(path: Path, num_classes: int) -> np.ndarray:
    """The records [count, 3073] uint8 of CIFAR-10's binary version: a label and 3 x 32 x 32 values.

    Raises:
        FormatError: the file does not consist of whole records, or a label is no class.
    """
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
    check_labels(records[:, 0], num_classes, path)
    return records
