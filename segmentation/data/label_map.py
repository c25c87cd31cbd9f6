"""What the values of mask files stand for: from stored numbers or colours to class indices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from framework.core.errors import ConfigError, InputError
from framework.vision import raw_images

Color = tuple[int, int, int]
_MAX_NAMES = 8


def name_classes(classes: int | Sequence[str], where: str) -> tuple[str, ...]:
    """The names of the classes; of a number the numbers themselves.

    Raises:
        ConfigError: there are fewer than two classes, or two of one name.
    """
    names = tuple(str(index) for index in range(classes)) if isinstance(classes, int) else tuple(classes)
    if len(names) < 2:
        raise ConfigError(
            "a pixel of one class cannot be told from any other",
            where=f"{where}.classes",
            received=f"{len(names)} class{'' if len(names) == 1 else 'es'}",
            allowed="2 or more",
            fix="of one kind of object make two classes: [background, object]",
        )
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError("classes have the same name", where=f"{where}.classes", received=", ".join(twice))
    return names


@dataclass(frozen=True)
class LabelMap:
    """How a mask file says the class of a pixel.

    Attributes:
        num_classes: The values 0 to `num_classes` - 1 are the classes, as far as `values` says nothing else.
        ignore_index: Stands for pixels without a class, in the file and in the result.
        values: Stored value to class, or to `ignore_index`; it may name any value.
        colors: Of a mask in colours, each colour and the class it stands for.

    Raises:
        ConfigError: `ignore_index` is a class or negative, a value stands for no class, or colours are no such.
    """

    num_classes: int
    ignore_index: int = 255
    values: Mapping[int, int] | None = None
    colors: tuple[tuple[Color, int], ...] = ()

    def __post_init__(self) -> None:
        if not self.num_classes <= self.ignore_index <= 65535:
            raise ConfigError(
                "ignore_index is the number of a class, or out of range",
                where="ignore_index",
                received=self.ignore_index,
                allowed=f"{self.num_classes} to 65535, as there are {self.num_classes} classes",
                fix="set ignore_index: 65535 for the data sets, the losses, the metric and the transforms that have it",
            )
        targets = {*(self.values or {}).values(), *(index for _, index in self.colors)}
        if wrong := sorted(targets - {*range(self.num_classes), self.ignore_index}):
            raise ConfigError(
                "values of the masks stand for classes that are not there",
                where="label_map",
                received=", ".join(map(str, wrong)),
                allowed=f"0 to {self.num_classes - 1}, or {self.ignore_index} to ignore",
            )
        if wrong := [value for value in self.values or {} if not 0 <= value <= 65535]:
            raise ConfigError(
                "masks have no such values", where="label_map", received=wrong, allowed="0 to 65535"
            )
        colors = [color for color, _ in self.colors]
        if len(set(colors)) < len(colors) or any(not 0 <= c <= 255 for color in colors for c in color):
            raise ConfigError(
                "colors must be a different colour for each class",
                where="colors",
                received=colors,
                allowed="[red, green, blue] of 0 to 255, each class another",
            )

    def read(self, path: Path) -> np.ndarray:
        """The mask in a file: [H, W] of class indices and `ignore_index`, uint8, or int32 if these are above 255.

        A mask in colours whose three channels are equal is read as the grey one that it is, unless there are `colors`.

        Raises:
            InputError: it cannot be read, or has values or colours that stand for nothing; the message counts them.
        """
        raw = raw_images.read_labels(path)
        return self._map_colors(raw, path) if raw.ndim == 3 else self._map_values(raw, path)

    @cached_property
    def _dtype(self) -> type[np.generic]:
        return np.uint8 if self.ignore_index <= 255 else np.int32

    @cached_property
    def _table(self) -> np.ndarray:
        """By stored value: the class, or -1."""
        table = np.full(65536, -1, np.int32)
        table[: self.num_classes] = np.arange(self.num_classes)
        table[self.ignore_index] = self.ignore_index
        for value, index in (self.values or {}).items():
            table[value] = index
        return table

    @cached_property
    def _small_tables(self) -> tuple[np.ndarray, np.ndarray]:
        """Of bytes: the class, and whether there is one; a mask of them is mapped in a quarter of the time."""
        table = self._table[:256]
        return table.astype(self._dtype), table >= 0

    def _map_values(self, raw: np.ndarray, path: Path) -> np.ndarray:
        if raw.dtype == np.uint8:
            table, valid = self._small_tables
            if not valid[raw].all():
                raise self._unknown_values(raw, ~valid[raw], path)
            return table[raw]
        out_of_range = (raw < 0) | (raw > 65535)
        mapped = self._table[np.where(out_of_range, 0, raw)]
        wrong = out_of_range | (mapped < 0)
        if wrong.any():
            raise self._unknown_values(raw, wrong, path)
        return mapped.astype(self._dtype)

    def _unknown_values(self, raw: np.ndarray, wrong: np.ndarray, path: Path) -> InputError:
        fix = "correct the mask, set num_classes and classes, or say with label_map what the values stand for"
        if self.num_classes == 2 and set(np.unique(raw).tolist()) <= {0, 255}:
            fix = "if 255 is the second class, set label_map: {255: 1}"
        elif path.suffix.lower() in (".jpg", ".jpeg"):
            fix = "JPEG changes values: save masks as PNG"
        return InputError(
            "the mask has values outside the classes",
            where=path,
            received=_count_values(raw[wrong], str),
            allowed=f"0 to {self.num_classes - 1}, {self.ignore_index} to ignore"
            + (f", and {', '.join(map(str, sorted(self.values)))}" if self.values else ""),
            fix=fix,
        )

    def _map_colors(self, raw: np.ndarray, path: Path) -> np.ndarray:
        if not self.colors:
            if (raw[..., :1] == raw).all():
                return self._map_values(raw[..., 0], path)
            raise InputError(
                "the mask holds colours, and nothing says what they stand for",
                where=path,
                received=_count_values(_pack_colors(raw).ravel(), _hex),
                allowed="class indices, one number a pixel",
                fix="set colors: a list of [red, green, blue], one a class",
            )
        keys = _pack_colors(np.array([color for color, _ in self.colors], np.uint8))
        order = np.argsort(keys)
        keys, indices = keys[order], np.array([index for _, index in self.colors])[order]
        codes = _pack_colors(raw)
        positions = np.minimum(np.searchsorted(keys, codes), len(keys) - 1)
        wrong = keys[positions] != codes
        if wrong.any():
            raise InputError(
                "the mask has colours that stand for no class",
                where=path,
                received=_count_values(codes[wrong], _hex),
                allowed=", ".join(_hex(key) for key in keys[:_MAX_NAMES])
                + (" ..." if len(keys) > _MAX_NAMES else ""),
                fix="JPEG changes colours: save masks as PNG"
                if path.suffix.lower() in (".jpg", ".jpeg")
                else "correct the mask or colors",
            )
        return indices[positions].astype(self._dtype)


def _pack_colors(rgb: np.ndarray) -> np.ndarray:
    """[..., 3] as one number a colour."""
    return (rgb.astype(np.int32) * (65536, 256, 1)).sum(-1, dtype=np.int32)


def _hex(code: int) -> str:
    return f"#{code:06x}"


def _count_values(values: np.ndarray, name: Callable[[int], str]) -> str:
    """The most frequent of `values` with how often they come."""
    present, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    lines = [f"{name(int(present[i]))}: {counts[i]:,} pixels" for i in order[:_MAX_NAMES]]
    more = f", and {len(present) - _MAX_NAMES} more values" if len(present) > _MAX_NAMES else ""
    return ", ".join(lines) + more
