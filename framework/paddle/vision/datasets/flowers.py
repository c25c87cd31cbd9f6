"""Flowers of paddle.vision.datasets: the 102 categories of Nilsback & Zisserman 2008."""

from __future__ import annotations

import os
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from framework.core.disk import whole_folder
from framework.core.errors import FormatError
from framework.io.dataset import Dataset
from framework.paddle.vision.datasets.files import RemoteFile, check_mode, find_file
from framework.paddle.vision.datasets.formats import read_mat
from framework.vision.backend import check_backend, image_load
from framework.vision.image import check_file

_URL = "http://paddlemodels.bj.bcebos.com/flowers/"
IMAGES = RemoteFile("flowers", f"{_URL}102flowers.tgz", "52808999861908f626f3c1f4e79d11fa")
LABELS = RemoteFile("flowers", f"{_URL}imagelabels.mat", "e0620be6f572b9609742df49c70aed4d")
SPLITS = RemoteFile("flowers", f"{_URL}setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c")
_SPLIT_NAMES = {"train": "tstid", "test": "trnid", "valid": "valid"}  # Paddle trains on the large part
_MAX_IMAGE = 2**26  # bytes of one JPEG


class Flowers(Dataset):
    """Photos of flowers of 102 classes, as (image, label [1] int64, from 1 up as in the file).

    Images are PIL images, with `backend` "cv2" arrays [H, W, 3] RGB, which are float32 of 0 to 255 unless `transform`
    makes them something else. The archive is unpacked once, into a folder beside it.

    Args:
        data_file, label_file, setid_file: 102flowers.tgz, imagelabels.mat, setid.mat; None: the published ones.
        mode: "train" (6149 images: the split that its authors test on), "valid" (1020) or "test" (1020).
        download: Whether published files may be downloaded, to OAR_HOME/datasets.

    Raises:
        HubError: a published file is not here and cannot be had. FormatError: a file is damaged.
    """

    def __init__(
        self,
        data_file: str | os.PathLike[str] | None = None,
        label_file: str | os.PathLike[str] | None = None,
        setid_file: str | os.PathLike[str] | None = None,
        mode: str = "train",
        transform: Callable[..., object] | None = None,
        download: bool = True,
        backend: str | None = None,
    ) -> None:
        split = _SPLIT_NAMES[check_mode(mode, ("train", "valid", "test"), "Flowers")]
        self.backend = check_backend(backend, "Flowers")
        self.transform = transform
        archive = find_file(data_file, IMAGES, download, "Flowers.data_file")
        labels = find_file(label_file, LABELS, download, "Flowers.label_file")
        splits = find_file(setid_file, SPLITS, download, "Flowers.setid_file")
        self.labels = _read_vector(labels, "labels")
        self.indexes = _read_vector(splits, split)
        if self.indexes.size and not 1 <= self.indexes.min() <= self.indexes.max() <= self.labels.size:
            raise FormatError(
                "labels and splits do not belong together",
                where=splits,
                received=f"images {self.indexes.min()} to {self.indexes.max()}",
                allowed=f"1 to {self.labels.size}, the labels in {labels}",
            )
        self.data_path = _unpack(archive)

    def __getitem__(self, idx: int) -> tuple[object, np.ndarray]:
        index = int(self.indexes[idx])
        image = image_load(self.data_path / "jpg" / f"image_{index:05d}.jpg", self.backend)
        image = image if self.transform is None else self.transform(image)
        label = np.array([self.labels[index - 1]], np.int64)
        return (image if self.backend == "pil" else np.asarray(image, np.float32)), label

    def __len__(self) -> int:
        return len(self.indexes)


def _read_vector(path: Path, name: str) -> np.ndarray:
    found = read_mat(path).get(name)
    if found is None or found.ndim != 2 or 1 not in found.shape:
        raise FormatError(
            "the file does not hold what it should",
            where=path,
            received="nothing" if found is None else list(found.shape),
            allowed=f"a row of numbers {name!r}",
        )
    return found.ravel().astype(np.int64)


def _unpack(archive: Path) -> Path:
    """The folder with the archive's images, made if it is not there; it appears whole or not at all."""
    folder = check_file(archive, "102flowers.tgz").with_suffix("")
    if folder.is_dir():
        return folder
    try:
        with whole_folder(folder) as work, tarfile.open(archive, mode="r:*") as members:
            (work / "jpg").mkdir()
            for member in members:
                name = member.name.rpartition("/")[2]
                if member.isfile() and name.endswith(".jpg") and member.size <= _MAX_IMAGE:
                    file = members.extractfile(member)
                    assert file is not None  # it is a file
                    (work / "jpg" / name).write_bytes(file.read())
    except (tarfile.TarError, EOFError, zlib.error) as error:
        raise FormatError(
            "the archive cannot be unpacked", where=archive, received=error, fix="download it again"
        ) from error
    return folder
