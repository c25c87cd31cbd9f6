"""Images of a folder by the names that annotations have for them."""

from __future__ import annotations

from pathlib import Path

from framework.core.errors import InputError
from framework.vision.dataset_files import is_file
from framework.vision.image import list_images


class ImageIndex:
    """The images of a folder, and of all folders in it, by path, name and name without suffix."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self._paths: dict[str, Path] | None = None

    def look_up(self, name: str) -> Path | None:
        """The image of a name, which may be a path of another machine; None where there is none."""
        relative = name.replace("\\", "/")
        path = self.folder / relative
        if relative and is_file(path):
            return path.resolve()
        if self._paths is None:
            listed = list_images(self.folder, recursive=True) if self.folder.is_dir() else []
            self._paths = {one.stem: one for one in listed} | {one.name: one for one in listed}
        return self._paths.get(relative.rpartition("/")[2])

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
