"""The fonts that synthetic text is drawn with, and which of them have which characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from framework.core.errors import InputError
from framework.vision.fonts import find_fonts, has_ink, is_font
from ocr.data.synthetic.glyphs import can_shape, needs_shaping

_SUFFIXES = (".ttf", ".ttc", ".otf", ".otc")


def list_fonts(paths: Sequence[Path]) -> tuple[str, ...]:
    """The font files of `paths`, files or folders that are searched with what is below them, sorted in each.

    Without paths: the fonts that `framework.vision.fonts` finds on this machine.

    Raises:
        InputError: a path is not there, a file is no font, or a folder holds none.
    """
    if not paths:
        return find_fonts()
    found: list[str] = []
    for path in map(Path, paths):
        if not path.exists():
            raise InputError(
                "there is no such font",
                where=path,
                allowed="a TrueType or OpenType file, or a folder of them",
                fix=f"the current folder is {Path.cwd()}",
            )
        files = [path]
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in _SUFFIXES]
            if not files:
                raise InputError(
                    "the folder holds no fonts",
                    where=path,
                    allowed=f"files that end in {', '.join(_SUFFIXES)}",
                )
        if wrong := [file for file in files if not is_font(file)]:
            raise InputError("this is no font", where=wrong[0], allowed="a TrueType or OpenType file")
        found += map(str, files)
    return tuple(dict.fromkeys(found))


class FontSet:
    """Fonts by number, and the characters that each can draw. May be used from several threads."""

    def __init__(self, sources: Sequence[str]) -> None:
        self.sources = tuple(sources)
        self._bits: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.sources)

    def bits_of(self, char: str) -> int:
        """Bit i says that font i draws `char`, which shows something. Spaces are in every font.

        A character of a script that needs Pillow's raqm layout is in none where Pillow has no raqm.
        """
        bits = self._bits.get(char)
        if bits is None:
            if char == " ":
                bits = (1 << len(self.sources)) - 1
            elif needs_shaping(char) and not can_shape():
                bits = 0
            else:
                bits = sum(1 << i for i, source in enumerate(self.sources) if has_ink(source, char))
            self._bits[char] = bits
        return bits

    def find_missing(self, chars: Iterable[str]) -> list[str]:
        """Those of `chars` that no font draws, sorted."""
        return sorted(char for char in set(chars) if not self.bits_of(char))

    def choose(self, text: str, rng: np.random.Generator, preferred: str | None = None) -> tuple[str, str]:
        """A font drawn from those with all characters, or the preferred one if it is among them, and the text.

        Where no font has all, the beginning of the text that one has; every character is in some font.
        """
        common, kept = (1 << len(self.sources)) - 1, 0
        for kept, char in enumerate(text):  # noqa: B007
            both = common & self.bits_of(char)
            if not both:
                break
            common = both
        else:
            kept = len(text)
        candidates = [source for i, source in enumerate(self.sources) if common >> i & 1]
        drawn = candidates[int(rng.integers(len(candidates)))]
        return preferred if preferred in candidates else drawn, text[:kept].rstrip()
