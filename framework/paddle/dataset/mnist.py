"""paddle.dataset.mnist: readers of handwritten digits; new programs use paddle.vision.datasets.MNIST."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator

import numpy as np

from framework.paddle.dataset import common

Reader = Callable[[], Iterator[tuple[np.ndarray, int]]]

URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
TEST_IMAGE_MD5 = "9fb629c4189551a2d022fa330f9573f3"
TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
TEST_LABEL_MD5 = "ec29112dd5afa0611ce80d1b7f02629c"
TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
TRAIN_IMAGE_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873"
TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
TRAIN_LABEL_MD5 = "d53e105ee54ea40749a09fcbcd1e9432"


def reader_creator(image_filename: str, label_filename: str, buffer_size: int) -> Reader:
    """A reader of two files: each call of it gives (784 pixels from -1 to 1, label) for each image.

    Args:
        buffer_size: ignored: the files are read at once.
    """

    def reader() -> Iterator[tuple[np.ndarray, int]]:
        with gzip.open(image_filename) as images, gzip.open(label_filename) as labels:
            pixels, classes = images.read(), labels.read()
        _, count, rows, columns = np.frombuffer(pixels, ">i4", 4)
        values = np.frombuffer(pixels, np.uint8, offset=16).reshape(count, rows * columns)
        for row, label in zip(values, np.frombuffer(classes, np.uint8, offset=8), strict=True):
            yield row.astype(np.float32) / 255.0 * 2.0 - 1.0, int(label)

    return reader


def train() -> Reader:
    """The reader of the 60,000 images for training."""
    return reader_creator(
        common.download(TRAIN_IMAGE_URL, "mnist", TRAIN_IMAGE_MD5),
        common.download(TRAIN_LABEL_URL, "mnist", TRAIN_LABEL_MD5),
        100,
    )


def test() -> Reader:
    """The reader of the 10,000 images for tests."""
    return reader_creator(
        common.download(TEST_IMAGE_URL, "mnist", TEST_IMAGE_MD5),
        common.download(TEST_LABEL_URL, "mnist", TEST_LABEL_MD5),
        100,
    )
