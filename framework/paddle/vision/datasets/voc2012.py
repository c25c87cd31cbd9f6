"""VOC2012 of paddle.vision.datasets: the segmentation part of Pascal VOC 2012."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable
from typing import Any

import numpy as np
from PIL import Image

from framework.core.errors import FormatError
from framework.io.dataset import Dataset
from framework.paddle.vision.datasets.files import RemoteFile, check_mode, find_file
from framework.vision.backend import check_backend
from framework.vision.image import check_file, damage_error, open_header

ARCHIVE = RemoteFile(
    "voc2012",
    "https://dataset.bj.bcebos.com/voc/VOCtrainval_11-May-2012.tar",
    "6cd6e144f989b92b3379bac3b3de84fd",
)
_ROOT = "VOCdevkit/VOC2012"
_SPLITS = {"train": "trainval", "test": "train", "valid": "val"}
_MAX_MEMBER = 2**26  # bytes of an image, a mask or a list


class VOC2012(Dataset):
    """Photos with their masks of classes, as (image, mask): 0 is background, 1 to 20 objects, 255 their borders.

    Both are PIL images, the mask of mode P; with `backend` "cv2" they are float32 arrays [H, W, 3] RGB and [H, W].
    `transform` takes the image alone. The archive is read in place and not unpacked.

    Args:
        data_file: VOCtrainval_11-May-2012.tar; None: the published one.
        mode: "train" (VOC's trainval), "valid" (val) or "test" (train): so Paddle names them.
        download: Whether the published file may be downloaded, to OAR_HOME/datasets.

    Raises:
        HubError: the published file is not here and cannot be had. FormatError: the file is damaged.
    """

    def __init__(
        self,
        data_file: str | os.PathLike[str] | None = None,
        mode: str = "train",
        transform: Callable[..., object] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        self.flag = _SPLITS[check_mode(mode, ("train", "valid", "test"), "VOC2012")]
        self.backend = check_backend(backend, "VOC2012")
        self.transform = transform
        self.data_file = find_file(data_file, ARCHIVE, download, "VOC2012.data_file")
        check_file(self.data_file, "VOC archive")
        try:
            with tarfile.open(self.data_file, mode="r:") as archive:
                self._places = {
                    member.name: (member.offset_data, member.size) for member in archive if member.isfile()
                }
        except (tarfile.TarError, EOFError) as error:
            raise FormatError(
                "this is no tar", where=self.data_file, received=error, allowed="the archive, not compressed"
            ) from error
        self.names = self._read(f"{_ROOT}/ImageSets/Segmentation/{self.flag}.txt").decode("utf-8").split()

    def __getitem__(self, idx: int) -> tuple[object, object]:
        name = self.names[idx]
        image: Any = self._open(f"{_ROOT}/JPEGImages/{name}.jpg")
        mask: Any = self._open(f"{_ROOT}/SegmentationClass/{name}.png")
        if self.backend == "cv2":
            image, mask = np.asarray(image), np.asarray(mask, np.float32)
        image = image if self.transform is None else self.transform(image)
        return (image if self.backend == "pil" else np.asarray(image, np.float32)), mask

    def __len__(self) -> int:
        return len(self.names)

    def _open(self, name: str) -> Image.Image:
        data, where = self._read(name), f"{self.data_file}, {name}"
        image = open_header(data, where)
        try:
            image.load()
        except Exception as error:  # damaged data makes the decoders raise anything
            raise damage_error(data, where, error) from error
        return image

    def _read(self, name: str) -> bytes:
        start, size = self._places.get(name, (0, -1))
        if not 0 <= size <= _MAX_MEMBER:
            raise FormatError(
                "the archive has no such file" if size < 0 else "a file of the archive is too large",
                where=self.data_file,
                received=f"{name}, {size:,} bytes" if size >= 0 else name,
                allowed=f"at most {_MAX_MEMBER:,} bytes" if size >= 0 else "VOCtrainval_11-May-2012.tar",
            )
        with open(self.data_file, "rb") as file:  # opened each time: workers read at once
            file.seek(start)
            return file.read(size)
