"""Sizes of the programs of text detection and recognition where they have to be fixed, as on a phone."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.workflow.domain.capabilities import FixedProgram
from ocr.text.characters import CharacterSet

_STRIDE = 32  # of a detector's network: its sides are multiples
_WIDTHS = (320, 640, 1280)  # of lines of 48 rows, for a recogniser that has no widths of its own


def choose_fixed_sizes(config: Mapping[str, JSON], size_hw: tuple[int, int] | None) -> FixedProgram | None:
    """A detector sees a square of its largest side, or all combinations of the two sides of `size_hw`; a recogniser
    lines of all its widths; other stages have one size each.

    Raises:
        ConfigError: the sides are no multiples of 32.
    """
    kind, options = config.get("kind"), config.get("options")
    if not isinstance(options, dict):
        return None
    if kind == "detector":
        return _detector(options, size_hw)
    if kind == "recognizer":
        return _recognizer(config, options)
    return FixedProgram(({"n": 1},)) if kind == "orientation" else None


def _detector(options: Mapping[str, JSON], size_hw: tuple[int, int] | None) -> FixedProgram:
    listed = options.get("sides")
    largest = (
        max((int(str(side)) for side in listed), default=960) if isinstance(listed, list | tuple) else 960
    )
    sides = (largest,) if size_hw is None else tuple(sorted(set(size_hw)))
    if uneven := [side for side in sides if side < _STRIDE or side % _STRIDE]:
        raise ConfigError(
            "a text detector sees multiples of 32 pixels",
            where="--input_size",
            received=", ".join(map(str, uneven)),
            allowed="such as --input_size 960 640",
        )
    sizes = tuple({"n": 1, "h": h // _STRIDE, "w": w // _STRIDE} for h, w in product(sides, sides))
    return FixedProgram(sizes, {"options": {**options, "sides": list(sides)}})


def _recognizer(config: Mapping[str, JSON], options: Mapping[str, JSON]) -> FixedProgram:
    height, listed = int(str(options.get("height", 48))), options.get("widths")
    widths = [int(str(width)) for width in listed] if isinstance(listed, list | tuple) else []
    widths = widths or [width * height // 48 for width in _WIDTHS]
    characters = config.get("characters")
    vocabulary: tuple[str, ...] = ()
    if isinstance(characters, list | tuple):
        symbols = (str(symbol) for symbol in characters)
        vocabulary = CharacterSet.from_symbols(symbols, use_space_char=bool(config.get("space"))).symbols
    sizes = tuple({"n": 1, "w": width} for width in widths)
    return FixedProgram(sizes, {"options": {**options, "widths": widths}}, vocabulary)
