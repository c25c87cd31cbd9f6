"""What predictors give back: the base classes of all results."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeAlias, TypeVar, cast

import numpy as np

from framework.core.errors import FormatError
from framework.vision import image as vision_image
from framework.workflow.domain.outputs import write_json

R = TypeVar("R")
D = TypeVar("D")
Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


def read_result(data: Mapping[str, Json], make: Callable[[D], R], allowed: str) -> R:
    """The result that `make` makes of what `to_dict` wrote. Raises: FormatError, where keys or values do not fit."""
    try:
        return make(cast("D", data))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FormatError(
            "this is no such result",
            received=f"no key {error}" if isinstance(error, KeyError) else error,
            allowed=allowed,
            fix="pass what to_dict() gave",
        ) from error


class Result(ABC):
    """What a model says of one input."""

    @abstractmethod
    def to_dict(self) -> dict[str, Json]:
        """Plain data for JSON."""


@dataclass(frozen=True, kw_only=True)
class ImageResult(Result):
    """What a model says of an image. A subclass adds its own fields, and `_content` for JSON.

    Attributes:
        source: The path of the image, or "".
        width, height: Of the image, in pixels.
        image: The image, [H, W, 3] uint8 RGB; it takes no part in comparison.
        extra_suffixes: Of the files that `save` writes besides the drawing and the JSON, such as "_label.png".
    """

    source: str = ""
    width: int
    height: int
    image: np.ndarray | None = field(default=None, repr=False, compare=False)

    extra_suffixes: ClassVar[tuple[str, ...]] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found; False of results that say something of every image."""
        return False

    @property
    def size_hw(self) -> tuple[int, int]:
        """(height, width)"""
        return self.height, self.width

    @property
    def size(self) -> tuple[int, int]:
        """(height, width): the name of before, for one release; of a page the other way. See `size_hw`."""
        return self.size_hw

    @property
    def pixels(self) -> np.ndarray:
        """The image, [H, W, 3] uint8 RGB. Raises: ValueError, where the result holds none."""
        if self.image is None:
            raise ValueError("this result was read without its image, so there is nothing to draw on")
        return self.image

    @abstractmethod
    def _content(self) -> Mapping[str, Json]:
        """What `to_dict` says besides source, width and height."""

    def to_dict(self) -> dict[str, Json]:
        """{"source", "width", "height", …}"""
        return {"source": self.source, "width": self.width, "height": self.height, **self._content()}

    @abstractmethod
    def overlay(self) -> np.ndarray:
        """The result drawn on the image, of the image's size, [H, W, 3] uint8 RGB: for video."""

    def draw(self) -> np.ndarray:
        """A drawing of the result, of any size, [H, W, 3] uint8 RGB; by default the overlay."""
        return self.overlay()

    def write_extra(self, suffix: str, path: Path) -> None:
        """Write the file of one of `extra_suffixes`."""
        raise ValueError(f"{type(self).__name__} writes no file that ends in {suffix}")

    def save(self, folder: str | os.PathLike[str], stem: str | None = None) -> list[Path]:
        """Write <stem>.png (the drawing), <stem>.json and a file for each of `extra_suffixes`; returns the paths.

        `stem` is by default that of the source's file name, or "image".
        """
        stem = stem or Path(self.source).stem or "image"
        drawing, facts = Path(folder) / f"{stem}.png", Path(folder) / f"{stem}.json"
        extra = {suffix: Path(folder) / f"{stem}{suffix}" for suffix in self.extra_suffixes}
        vision_image.write(drawing, self.draw())
        for suffix, path in extra.items():
            self.write_extra(suffix, path)
        write_json(facts, self.to_dict())
        return [drawing, *extra.values(), facts]


@dataclass(frozen=True)
class TextResult(Result):
    """What a model says of a text."""

    text: str
