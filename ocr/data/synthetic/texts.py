"""The texts that are drawn: parts of corpora, random strings, receipts."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from framework.core.errors import InputError
from framework.vision.dataset_files import abbreviate, read_lines
from ocr.data.synthetic.fonts import FontSet
from ocr.data.synthetic.receipts import draw_receipt_text
from ocr.text.characters import CharacterSet

log = logging.getLogger("oar")
_ASCII = "".join(map(chr, range(33, 127)))
_TRIES = 50  # lines of a corpus that are looked at for one with characters that are wanted


def read_characters(characters: str | None) -> tuple[str, ...] | None:
    """The characters of a dictionary file (the name of one that is there, or ends in .txt), or those of the string.

    Of a file, symbols of several characters and white space are left out.

    Raises:
        InputError: there is no such file, or nothing is left. FormatError: it is no dictionary.
    """
    if characters is None:
        return None
    found: Sequence[str] = characters
    if characters.endswith(".txt") or (len(characters) > 1 and _is_file(characters)):
        found = CharacterSet.from_file(characters, use_space_char=False).symbols
    listed = tuple(
        dict.fromkeys(char for char in found if len(char) == 1 and (char == " " or not char.isspace()))
    )
    if not any(char != " " for char in listed):
        raise InputError(
            "there are no characters to draw",
            where="characters",
            received=repr(characters),
            allowed="a string of characters, or a file with one a line",
        )
    return listed


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except (OSError, ValueError):  # too long for a name, or with characters that no name has
        return False


class Texts:
    """Draws texts of `length` (least, most) characters, which some font of `fonts` can draw.

    Args:
        corpus: Text files in UTF-8, one text a line; none: random strings of `characters`.
        characters: What texts consist of; see `read_characters`. None: whatever the corpus has, or ASCII.
        words: Share of the corpus' texts that are single words.
        receipts: Share of texts that are such as receipts have.
        skip_missing: Leave out characters that no font has, with a warning.
        upper, title: Shares of texts that are put into capitals, and of the others whose words get one.

    Raises:
        InputError: a file cannot be read, the corpus has no text, or characters are in no font and not skipped.
    """

    def __init__(
        self,
        fonts: FontSet,
        corpus: Sequence[Path],
        characters: str | None,
        length: tuple[int, int],
        words: float,
        receipts: float,
        skip_missing: bool,
        upper: float = 0.0,
        title: float = 0.0,
    ) -> None:
        self._length, self._words, self._receipts = length, words, receipts
        self._upper, self._title = upper, title
        self._fonts = fonts
        wanted = read_characters(characters)
        self._lines = [line for path in corpus for line in read_lines(Path(path), "corpus") if line.strip()]
        if corpus and not self._lines:
            raise InputError(
                "the corpus has no text",
                where=abbreviate([str(path) for path in corpus]),
                allowed="text files in UTF-8, one text a line",
            )
        self._wanted = None if wanted is None else frozenset((*wanted, " "))
        needed = set(wanted or _ASCII)
        found: set[str] = set()
        if self._lines:
            for line in self._lines:
                found.update(unicodedata.normalize("NFC", line))
            needed = {char for char in found if self._is_wanted(char)}
            if not any(not char.isspace() for char in needed):
                raise InputError(
                    "the corpus has none of the characters",
                    where=abbreviate([str(path) for path in corpus]),
                    received=f"characters: {''.join(wanted or ())[:40]!r}",
                )
        needed = {char for char in needed if not char.isspace()}
        if missing := fonts.find_missing(needed):
            self._refuse_missing(missing, needed, skip_missing)
        left_out = {char for char in found - needed if not char.isspace()}.union(missing)
        self._leave_out = str.maketrans("", "", "".join(sorted(left_out)))
        # A space is drawn only where it is among the characters.
        self._alphabet = sorted(needed.difference(missing)) + ([" "] if wanted and " " in wanted else [])

    def _refuse_missing(self, missing: list[str], needed: set[str], skip: bool) -> None:
        shown = abbreviate([f"{char} (U+{ord(char):04X})" for char in missing])
        if len(missing) == len(needed) or not skip:
            raise InputError(
                f"{len(missing)} of {len(needed)} characters are in none of the fonts",
                where=abbreviate([source or "Pillow's own font" for source in self._fonts.sources]),
                received=shown,
                fix="add a font that has them to `fonts`"
                + ("" if len(missing) == len(needed) else ", or leave them out with skip_missing: true"),
            )
        log.warning(
            "no font has %d of %d characters, which are left out: %s", len(missing), len(needed), shown
        )

    def _is_wanted(self, char: str) -> bool:
        return self._wanted is None or char in self._wanted or char.isspace()

    def keep(self, text: str) -> str:
        """`text` in NFC with single spaces, without what is not wanted or in no font."""
        text = " ".join(unicodedata.normalize("NFC", text).split())
        kept = "".join(char for char in text if self._is_wanted(char) and self._fonts.bits_of(char))
        return " ".join(kept.split())

    def draw(self, rng: np.random.Generator, most: int | None = None) -> str:
        """A text of at most `most` characters, or of the length's; it is not empty and has no space at its ends."""
        longest = self._length[1] if most is None else max(1, min(most, self._length[1]))
        text = self._draw(rng, longest)
        changed = text
        if self._upper and rng.random() < self._upper:
            changed = text.upper()
        elif self._title and rng.random() < self._title:
            changed = " ".join(word[:1].upper() + word[1:] for word in text.split(" "))
        # Some capitals are longer (SS), or not wanted.
        kept = self.keep(changed) if changed != text else text
        return kept if len(kept) == len(text) else text

    def _draw(self, rng: np.random.Generator, longest: int) -> str:
        if rng.random() < self._receipts:
            text = self.keep(draw_receipt_text(rng))
            if self._length[0] <= len(text) <= longest:
                return text
        return self._from_corpus(rng, longest) if self._lines else self._random(rng, longest)

    def draw_as(self, kind: Callable[[np.random.Generator], str], rng: np.random.Generator) -> str:
        """A text that `kind` makes, or another one where nothing of it can be drawn."""
        return self.keep(kind(rng)) or self.draw(rng)

    def _from_corpus(self, rng: np.random.Generator, longest: int) -> str:
        single, text = rng.random() < self._words, ""
        for _ in range(_TRIES):
            line = unicodedata.normalize("NFC", self._lines[int(rng.integers(len(self._lines)))])
            line = " ".join(line.translate(self._leave_out).split())
            if single and line:
                words = line.split(" ")
                line = words[int(rng.integers(len(words)))]
            text = _cut(line, longest, rng) or text
            if len(text) >= self._length[0]:
                return text
        return text or self._random(rng, longest)

    def _random(self, rng: np.random.Generator, longest: int) -> str:
        least = min(self._length[0], longest)
        for _ in range(_TRIES):
            count = int(rng.integers(least, longest + 1))
            text = "".join(self._alphabet[i] for i in rng.integers(0, len(self._alphabet), count).tolist())
            if text := " ".join(text.split()):
                return text
        return next(char for char in self._alphabet if char != " ")


def _cut(line: str, longest: int, rng: np.random.Generator) -> str:
    """A random part of at most `longest` characters, of whole words where there is one short enough."""
    if len(line) <= longest:
        return line
    starts = [0, *(place + 1 for place, char in enumerate(line) if char == " ")]
    start = starts[int(rng.integers(len(starts)))]
    part = line[start : start + longest + 1]
    if len(part) > longest:
        end = part.rfind(" ")
        if end <= 0:  # one long word, or a script without spaces
            start = int(rng.integers(len(line) - longest + 1))
            part, end = line[start : start + longest], longest
        part = part[:end]
    return part.strip()
