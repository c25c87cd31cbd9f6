"""What the texts of a data set hold that a recogniser cannot learn, told before training begins."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from framework.core.errors import InputError
from ocr.tasks.alphabet import Alphabet

log = logging.getLogger("oar")
_SHOWN = 5


def survey_texts(labels: Sequence[tuple[str, str]], alphabet: Alphabet) -> None:
    """Log which of (text, place) pairs have characters outside of the dictionary, and which are too long.

    Raises: InputError, where `alphabet.unknown` says that such characters are an error.
    """
    symbols = alphabet.characters
    known = set("".join(symbols.symbols))
    unknown: dict[str, str] = {}  # with where each stands first
    lines, long = 0, []
    for label, place in labels:
        text = alphabet.written(label)
        strange = [character for character in text if character not in known]
        lines += bool(strange)
        for character in strange:
            unknown.setdefault(character, place)
        if len(text) > alphabet.max_text_length:
            long.append(place)
    shown = ", ".join(f"{character!r} ({place})" for character, place in [*unknown.items()][:_SHOWN])
    if unknown and alphabet.unknown == "error":
        raise InputError(
            f"{lines} of {len(labels)} texts have characters that are not in the dictionary",
            where=next(iter(unknown.values())),
            received=shown,
            allowed=f"the {symbols.num_classes - 1} symbols of {symbols.source}",
            fix="add them to the dictionary; or task.unknown: skip leaves such lines out, drop the characters",
        )
    if unknown:
        what = "are left out" if alphabet.unknown == "skip" else "lose them"
        log.warning(
            "%d of %d texts have characters outside of the dictionary and %s: %s",
            *(lines, len(labels), what, shown),
        )
    if long:
        log.warning(
            "%d of %d texts are longer than max_text_length %d and are left out: %s",
            *(len(long), len(labels), alphabet.max_text_length, ", ".join(long[:_SHOWN])),
        )
