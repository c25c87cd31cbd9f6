"""What the texts of a data set hold that a recogniser cannot learn, told before training begins."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass

from framework.core.errors import InputError
from ocr.tasks.alphabet import Alphabet

log = logging.getLogger("oar")
_SHOWN = 5


@dataclass(frozen=True)
class TextSurvey:
    """Of `count` texts.

    Attributes:
        unknown: Characters outside of the dictionary, each with where it stands first; `unknown_count` texts have some.
        long: Where texts stand that are longer than the longest.
    """

    count: int
    unknown_count: int
    unknown: dict[str, str]
    long: tuple[str, ...]

    def report(self, alphabet: Alphabet) -> None:
        """Log what is left out. Raises: InputError, where characters are unknown and that is an error."""
        shown = ", ".join(f"{c!r} ({place})" for c, place in [*self.unknown.items()][:_SHOWN])
        if self.unknown and alphabet.unknown == "error":
            symbols = alphabet.characters
            raise InputError(
                f"{self.unknown_count} of {self.count} texts have characters that are not in the dictionary",
                where=next(iter(self.unknown.values())),
                received=shown,
                allowed=f"the {symbols.num_classes - 1} symbols of {symbols.source}",
                fix="add them to the dictionary; or task.unknown: skip leaves such lines out, drop the characters",
            )
        if self.unknown:
            log.warning(
                "%d of %d texts have characters outside of the dictionary and %s: %s",
                self.unknown_count,
                self.count,
                "are left out" if alphabet.unknown == "skip" else "lose them",
                shown,
            )
        if self.long:
            log.warning(
                "%d of %d texts are longer than max_text_length %d and are left out: %s",
                len(self.long),
                self.count,
                alphabet.max_text_length,
                ", ".join(self.long[:_SHOWN]),
            )


def survey_texts(labels: Iterable[tuple[str, str]], alphabet: Alphabet) -> TextSurvey:
    """The survey of (text, place) pairs."""
    known = {symbol for symbols in alphabet.characters.symbols for symbol in symbols}
    unknown: dict[str, str] = {}
    count = unknown_count = 0
    long = []
    for label, place in labels:
        text = alphabet.written(label)
        strange = [character for character in text if character not in known]
        count += 1
        unknown_count += bool(strange)
        for character in strange:
            unknown.setdefault(character, place)
        if len(text) > alphabet.max_text_length:
            long.append(place)
    return TextSurvey(count, unknown_count, unknown, tuple(long))
