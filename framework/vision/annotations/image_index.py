"""Images of a folder by the names that annotations have for them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from unicodedata import normalize

from framework.core.errors import InputError
from framework.vision.dataset_files import abbreviate, is_file
from framework.vision.image import list_images


def _count_shared(name: str, path: Path) -> int:
    """How many folders above an image a name has too, from the nearest on."""
    pairs = zip(name.split("/")[-2::-1], path.parts[-2::-1])
    return next((count for count, (one, other) in enumerate(pairs) if one != other), len(path.parts))


class ImageIndex:
    """The images of a folder, and of all folders in it, by path, name and name without suffix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._paths: dict[str, list[Path]] | None = None

    def look_up(self, name: str) -> Path | None:
        """The image of a name, which may be a path of another machine; None where there is none.

        Of several images of one name that is meant which lies in folders of the same names. Raises: InputError, where
        that does not tell them apart.
        """
        relative = name.replace("\\", "/")
        path = self.folder / relative
        if relative and is_file(path):
            return path.resolve()
        if self._paths is None:
            self._paths = self._list()
        last = normalize("NFC", relative.rpartition("/")[2])
        candidates = self._paths.get(last, [])
        shared = [_count_shared(relative, one) for one in candidates]
        best = [one for one, count in zip(candidates, shared) if count == max(shared)]
        if len(best) > 1 and last == normalize("NFC", best[0].name):
            raise InputError(
                "several images have the name that annotations have",
                where=self.folder,
                received=f"{name}: {abbreviate([str(one) for one in best])}",
                fix="name one folder of the images with --images, or let annotations name their folders",
            )
        return best[-1] if best else None

    def look_up_inside(self, names: Iterable[str]) -> Path | None:
        """The first image in the folder that one of the names leads to; None where none does."""
        paths = map(self.look_up, names)
        return next((path for path in paths if path is not None and path.is_relative_to(self.folder)), None)

    def _list(self) -> dict[str, list[Path]]:
        """Images by name, and by name without suffix where no image is called so: in one form of Unicode, since macOS
        and its archives keep a letter and its accent apart."""
        listed = list_images(self.folder, recursive=True) if self.folder.is_dir() else []
        by_stem: dict[str, list[Path]] = {}
        by_name: dict[str, list[Path]] = {}
        for one in listed:
            by_stem.setdefault(normalize("NFC", one.stem), []).append(one)
            by_name.setdefault(normalize("NFC", one.name), []).append(one)
        return by_stem | by_name

    def find(self, name: str, where: str) -> Path:
        """As `look_up`. Raises: InputError, where there is no such image."""
        if (path := self.look_up(name)) is None:
            raise InputError(
                "an image of the annotations is not there",
                where=where,
                received=name or "no name",
                allowed=f"an image in {self.folder}",
                fix="name the folder of the images with --images",
            )
        return path

    def name(self, path: Path) -> str:
        """What an image is called in the data set: its path below the folder, or below `images` in it."""
        if not path.is_relative_to(self.folder):
            return path.name
        return path.relative_to(self.folder).as_posix().removeprefix("images/")
