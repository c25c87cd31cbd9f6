"""DatasetFolder and ImageFolder of paddle.vision.datasets: images in folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from framework.core.errors import InputError
from framework.io.dataset import Dataset
from framework.vision.backend import image_load
from framework.vision.image import SUFFIXES

Check = Callable[[str], bool]


class DatasetFolder(Dataset):
    """`root/<class>/**/<file>` as (sample, class index); classes and files in the order of their names.

    Args:
        loader: Makes a sample of a path; None: `image_load`, whose formats are also the default `extensions`.
        extensions: Endings of names that count, whatever their case.
        is_valid_file: Says of a path whether it counts, where `extensions` is None.

    Raises:
        InputError: there is no such folder, no class in it, or no file that counts.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any] | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None,
        is_valid_file: Check | None = None,
    ) -> None:
        self.root, self.transform = Path(root).expanduser(), transform
        self.loader = image_load if loader is None else loader
        self.extensions, counts = _choose_files(extensions, is_valid_file)
        _check_folder(self.root, "DatasetFolder")
        self.classes = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples = [
            (path, number)
            for name, number in self.class_to_idx.items()
            for path in _walk(self.root / name, counts)
        ]
        self.targets = [target for _, target in self.samples]
        _check_found(self.samples, self.root, self.extensions, "a folder for each class with files in it")

    def __getitem__(self, index: int) -> tuple[Any, int]:
        path, target = self.samples[index]
        sample = self.loader(path)
        return sample if self.transform is None else self.transform(sample), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(Dataset):
    """All files below `root` as [sample], without labels; arguments as of `DatasetFolder`.

    Raises:
        InputError: there is no such folder, or no file in it that counts.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[[str], Any] | None = None,
        extensions: Sequence[str] | None = None,
        transform: Callable[[Any], Any] | None = None,
        is_valid_file: Check | None = None,
    ) -> None:
        self.root, self.transform = Path(root).expanduser(), transform
        self.loader = image_load if loader is None else loader
        self.extensions, counts = _choose_files(extensions, is_valid_file)
        _check_folder(self.root, "ImageFolder")
        self.samples = _walk(self.root, counts)
        _check_found(self.samples, self.root, self.extensions, "files in it or in folders below")

    def __getitem__(self, index: int) -> list[Any]:
        sample = self.loader(self.samples[index])
        return [sample if self.transform is None else self.transform(sample)]

    def __len__(self) -> int:
        return len(self.samples)


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


def _check_folder(root: Path, where: str) -> None:
    if not root.is_dir():
        raise InputError(
            "there is no such folder",
            where=f"{where}.root",
            received=root,
            fix=f"the current folder is {Path.cwd()}",
        )


def _check_found(found: Sequence[object], root: Path, extensions: Sequence[str] | None, wanted: str) -> None:
    if not found:
        raise InputError(
            "the folder holds no files that count",
            where=root,
            allowed=f"{wanted}; endings: {', '.join(extensions) if extensions else 'what is_valid_file takes'}",
        )
