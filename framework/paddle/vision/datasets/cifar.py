"""Cifar10 and Cifar100 of paddle.vision.datasets."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from PIL import Image

from framework.io.dataset import Dataset
from framework.paddle.vision.datasets.files import RemoteFile, check_mode, find_file
from framework.paddle.vision.datasets.formats import read_cifar_archive
from framework.vision.backend import check_backend

_URL = "https://dataset.bj.bcebos.com/cifar/"


class Cifar10(Dataset):
    """Images 32 x 32 of ten classes, as (image, label int64).

    Images are PIL images, with `backend` "cv2" arrays [32, 32, 3] RGB, which are float32 of 0 to 255 unless
    `transform` makes them something else.

    Args:
        data_file: cifar-10-python.tar.gz; None: the published one. Its pickles are read without running anything.
        mode: "train" or "test".
        download: Whether a published file may be downloaded, to OAR_HOME/datasets.

    Raises:
        HubError: the published file is not here and cannot be had. FormatError: the file is damaged.
    """

    file: ClassVar[RemoteFile] = RemoteFile(
        "cifar", f"{_URL}cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"
    )
    prefixes: ClassVar[dict[str, str]] = {"train": "data_batch", "test": "test_batch"}
    num_classes: ClassVar[int] = 10

    def __init__(
        self,
        data_file: str | os.PathLike[str] | None = None,
        mode: str = "train",
        transform: Callable[..., object] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        where = type(self).__name__
        self.mode = check_mode(mode, ("train", "test"), where)
        self.backend = check_backend(backend, where)
        self.transform = transform
        self.data_file = find_file(data_file, self.file, download, f"{where}.data_file")
        self.images, self.labels = read_cifar_archive(
            self.data_file, self.prefixes[self.mode], self.num_classes
        )

    def __getitem__(self, idx: int) -> tuple[object, np.ndarray]:
        pixels, label = self.images[idx], np.asarray(self.labels[idx])
        image = Image.fromarray(pixels) if self.backend == "pil" else pixels
        image = image if self.transform is None else self.transform(image)
        return (image if self.backend == "pil" else np.asarray(image, np.float32)), label

    def __len__(self) -> int:
        return len(self.labels)


class Cifar100(Cifar10):
    """Images 32 x 32 of a hundred classes; arguments as of `Cifar10`, of the file cifar-100-python.tar.gz."""

    file: ClassVar[RemoteFile] = RemoteFile(
        "cifar", f"{_URL}cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"
    )
    prefixes: ClassVar[dict[str, str]] = {"train": "train", "test": "test"}
    num_classes: ClassVar[int] = 100
