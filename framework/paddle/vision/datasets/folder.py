"""DatasetFolder and ImageFolder of paddle.vision.datasets: images in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from PIL import Image

from framework.core.errors import InputError
from framework.io.dataset import Dataset
from framework.vision.backend import image_load
from framework.vision.image import SUFFIXES

Check = Callable[[str], bool]

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")  # Paddle's


def pil_loader(path: str | os.PathLike[str]) -> Image.Image:
    """The image as RGB of PIL."""
    loaded = image_load(path, "pil")
    assert not isinstance(loaded, np.ndarray)
    return loaded


class _Folder(Dataset):
    """What both take of a folder. `_list` gives the samples that `counts` lets through."""

    _content: ClassVar[str]

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], object] | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable[..., object] | None = None,
        is_valid_file: Check | None = None,
    ) -> None:
        self.root, self.transform = Path(root).expanduser(), transform
        self.loader = image_load if loader is None else loader
        self.extensions, counts = _choose_files(extensions, is_valid_file)
        if not self.root.is_dir():
            raise InputError(
                "there is no such folder",
                where=f"{type(self).__name__}.root",
                received=self.root,
                fix=f"the current folder is {Path.cwd()}",
            )
        self.samples = self._list(counts)
        if not self.samples:
            endings = ", ".join(self.extensions) if self.extensions else "what is_valid_file takes"
            raise InputError(
                "the folder holds no files that count",
                where=self.root,
                allowed=f"{self._content}; endings: {endings}",
            )

    def _list(self, counts: Check) -> list[Any]:
        raise NotImplementedError

    def _load(self, path: str) -> object:
        sample = self.loader(path)
        return sample if self.transform is None else self.transform(sample)

    def __len__(self) -> int:
        return len(self.samples)


class DatasetFolder(_Folder):
    """`root/<class>/**/<file>` as (sample, class index); classes and files in the order of their names.

    Args:
        loader: Makes a sample of a path; None: `image_load`, whose formats are also the default `extensions`.
        extensions: Endings of names that count, whatever their case.
        is_valid_file: Says of a path whether it counts, where `extensions` is None.

    Raises:
        InputError: there is no such folder, no class in it, or no file that counts.
    """

    _content = "a folder for each class with files in it"

    def _list(self, counts: Check) -> list[tuple[str, int]]:
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        samples = [
            (path, number)
            for name, number in self.class_to_idx.items()
            for path in _walk(self.root / name, counts)
        ]
        self.targets = [target for _, target in samples]
        return samples

    def __getitem__(self, index: int) -> tuple[object, int]:
        path, target = self.samples[index]
        return self._load(path), target


class ImageFolder(_Folder):
    """All files below `root` as [sample], without labels; arguments as of `DatasetFolder`.

    Raises:
        InputError: there is no such folder, or no file in it that counts.
    """

    _content = "files in it or in folders below"

    def _list(self, counts: Check) -> list[str]:
        return _walk(self.root, counts)

    def __getitem__(self, index: int) -> list[object]:
        return [self._load(self.samples[index])]


def _choose_files(
    extensions: Sequence[str] | None, is_valid_file: Check | None
) -> tuple[Sequence[str] | None, Check]:
    if is_valid_file is not None and extensions is None:
        return None, is_valid_file
    endings = tuple(ending.lower() for ending in (SUFFIXES if extensions is None else extensions))
    return endings, lambda path: path.lower().endswith(endings)


def _walk(folder: Path, counts: Check) -> list[str]:
    found = []
    for root, _, names in sorted(os.walk(folder, followlinks=True)):
        found += [path for name in sorted(names) if counts(path := os.path.join(root, name))]
    return found
