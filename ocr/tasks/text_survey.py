"""What the texts of a data set hold that a recogniser cannot learn, told before training begins."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from framework.core.errors import InputError
from ocr.tasks.alphabet import Alphabet

log = logging.getLogger("oar")
_SHOWN = 5


def survey_texts(labels: Sequence[tuple[str, str]], alphabet: Alphabet) -> None:
    """Log what `describe_texts` says.

    Raises: InputError, where `alphabet.unknown` says that characters outside of the dictionary are an error, or no text
    can be learnt: a training would run to its end with a loss of 0.
    """
    lines = describe_texts(labels, alphabet)
    if lines and not any(alphabet.encode(alphabet.written(text))[1] for text, _ in labels):
        raise InputError(
            "no text of the training data can be learnt",
            where=labels[0][1],
            received="; ".join(lines),
            allowed=f"texts of the symbols of {alphabet.characters.source}, up to {alphabet.max_text_length} long",
            fix="give the dictionary of these texts: -o task.characters.file=dict.txt, or task.characters.labels=[...]",
        )
    for line in lines:
        log.warning(line)


def describe_texts(labels: Sequence[tuple[str, str]], alphabet: Alphabet) -> list[str]:
    """Which of (text, place) pairs have characters outside of the dictionary, and which are too long: a line of each.

    Raises: InputError, where `alphabet.unknown` says that such characters are an error.
    """
    symbols = alphabet.characters
    unknown: dict[str, str] = {}  # with where each stands first
    lines, long = 0, []
    for label, place in labels:
        text = alphabet.written(label)
        strange = [character for character in text if character not in symbols.classes]
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
    described = []
    if unknown:
        what = "are left out" if alphabet.unknown == "skip" else "lose them"
        described.append(
            f"{lines} of {len(labels)} texts have characters outside of the dictionary and {what}: {shown}"
        )
    if long:
        described.append(
            f"{len(long)} of {len(labels)} texts are longer than max_text_length {alphabet.max_text_length} and are "
            f"left out: {', '.join(long[:_SHOWN])}"
        )
    return described
