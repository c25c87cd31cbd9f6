"""MNIST and FashionMNIST of paddle.vision.datasets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from PIL import Image

from framework.io.benchmark_files import read_idx_pair
from framework.io.dataset import Dataset
from framework.paddle.vision.datasets.files import RemoteFile, check_mode, find_file
from framework.vision.backend import check_backend

_MNIST = "https://dataset.bj.bcebos.com/mnist/"
_FASHION = "https://dataset.bj.bcebos.com/fashion_mnist/"


class MNIST(Dataset):
    """Grey images 28 x 28 of ten classes, as (image, label [1] int64).

    Images are PIL images of mode L, with `backend` "cv2" arrays [28, 28] float32 of 0 to 255.

    Args:
        image_path, label_path: The IDX files, plain or .gz; None: the published ones.
        mode: "train" or "test".
        download: Whether published files may be downloaded, to OAR_HOME/datasets.

    Raises:
        HubError: a published file is not here and cannot be had. FormatError: a file is damaged, or the two do not
            belong together.
    """

    files: ClassVar[dict[str, tuple[RemoteFile, RemoteFile]]] = {
        "train": (
            RemoteFile("mnist", f"{_MNIST}train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
            RemoteFile("mnist", f"{_MNIST}train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ),
        "test": (
            RemoteFile("mnist", f"{_MNIST}t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
            RemoteFile("mnist", f"{_MNIST}t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
        ),
    }

    def __init__(
        self,
        image_path: str | os.PathLike[str] | None = None,
        label_path: str | os.PathLike[str] | None = None,
        mode: str = "train",
        transform: Callable[..., object] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        where = type(self).__name__
        self.mode = check_mode(mode, ("train", "test"), where)
        self.backend = check_backend(backend, where)
        self.transform = transform
        images, labels = self.files[self.mode]
        self.image_path = find_file(image_path, images, download, f"{where}.image_path")
        self.label_path = find_file(label_path, labels, download, f"{where}.label_path")
        self.images, self.labels = read_idx_pair(self.image_path, self.label_path, 10)

    def __getitem__(self, idx: int) -> tuple[object, np.ndarray]:
        pixels = self.images[idx]
        image = Image.fromarray(pixels) if self.backend == "pil" else pixels.astype(np.float32)
        label = np.array([self.labels[idx]], np.int64)
        image = image if self.transform is None else self.transform(image)
        return (image if self.backend == "pil" else np.asarray(image, np.float32)), label

    def __len__(self) -> int:
        return len(self.labels)


class FashionMNIST(MNIST):
    """Grey images 28 x 28 of ten kinds of clothes, in the files and with the arguments of `MNIST`."""

    files: ClassVar[dict[str, tuple[RemoteFile, RemoteFile]]] = {
        "train": (
            RemoteFile(
                "fashion-mnist", f"{_FASHION}train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"
            ),
            RemoteFile(
                "fashion-mnist", f"{_FASHION}train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"
            ),
        ),
        "test": (
            RemoteFile(
                "fashion-mnist", f"{_FASHION}t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"
            ),
            RemoteFile(
                "fashion-mnist", f"{_FASHION}t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"
            ),
        ),
    }
