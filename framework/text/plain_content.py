"""Chats whose content yields no control tokens: what a stranger wrote cannot end its message and begin another.

A chat template writes marks such as <|im_end|> and content into one text, in which a mark of the content is the
template's own. So each special token that stands in the messages is broken by a character before the template runs,
and taken for characters when the text is divided. Texts without one have the tokens that they always have.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from framework.core.errors import InputError
from framework.text.chat_template import plain_value
from framework.text.segmenter import SubwordEncoding, encode_pieces
from framework.text.tokenizer import Tokenizer

_BREAKS = range(0xE000, 0xF8FF)  # of private use: no text has all of them


class BrokenValues(NamedTuple):
    """Values for a template, in whose texts `mark` stands behind the first character of each special token."""

    values: tuple[object, ...]
    mark: str


def break_special(tokenizer: Tokenizer, *values: object) -> BrokenValues:
    """Values of JSON with their special tokens broken.

    Raises: InputError: they are nested too deeply, or all marks stand in them.
    """
    values = tuple(map(plain_value, values))
    tokens = {tokenizer.token_of(number) for number in tokenizer.segmenter.special_ids}
    longer = sorted(
        (token for token in tokens if token is not None and len(token) > 1), key=len, reverse=True
    )
    if not longer:
        return BrokenValues(values, "")
    present = {character for text in _texts(values) for character in text}
    mark = next((chr(code) for code in _BREAKS if chr(code) not in present), None)
    if mark is None:
        raise InputError("the chat has every character of private use", where="messages")
    # Looks ahead, as tokens may overlap: one that begins within another is broken, too.
    pattern = re.compile("(?=(?:" + "|".join(map(re.escape, longer)) + "))(.)", re.DOTALL)
    return BrokenValues(tuple(_replace(value, pattern, rf"\1{mark}") for value in values), mark)


def encode_broken(tokenizer: Tokenizer, text: str, mark: str) -> SubwordEncoding:
    """The tokens of a rendered chat whose values were broken; as of the text without marks where there are none.

    Offsets are characters of the text with its marks.
    """
    whole = _split(tokenizer, text)
    if not mark or mark not in text:
        return whole
    ids: list[int] = []
    offsets: list[tuple[int, int]] = []
    begin = first = 0
    for index, start, stop in [
        *_control_tokens(tokenizer, text, whole),
        (len(whole.ids), len(text), len(text)),
    ]:
        between, stretch = whole.ids[first:index].tolist(), text[begin:start]
        if mark in stretch:
            numbers, spans = _literal(tokenizer, stretch, mark, between)
            ids += numbers
            offsets += [(begin + one, begin + other) for one, other in spans]
        else:
            ids += between
            offsets += map(tuple, whole.offsets[first:index].tolist())
        ids += whole.ids[index : index + 1].tolist()
        offsets += map(tuple, whole.offsets[index : index + 1].tolist())
        begin, first = stop, index + 1
    return encode_pieces(ids, offsets, None)


def _split(tokenizer: Tokenizer, text: str, parse_special: bool = True) -> SubwordEncoding:
    encoding = tokenizer.encode(text, add_special=False, parse_special=parse_special)
    return SubwordEncoding(encoding.ids, encoding.offsets, encoding.words)


def _control_tokens(
    tokenizer: Tokenizer, text: str, encoding: SubwordEncoding
) -> Iterator[tuple[int, int, int]]:
    """Which tokens stand in the text as control tokens, and their characters. That of unknown characters shows none."""
    special = tokenizer.segmenter.special_ids
    for index, (number, (start, stop)) in enumerate(zip(encoding.ids.tolist(), encoding.offsets.tolist())):
        if number in special and text[start:stop].strip() == (tokenizer.token_of(number) or "").strip():
            yield index, start, stop


def _literal(
    tokenizer: Tokenizer, stretch: str, mark: str, within: Sequence[int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """The tokens of a stretch between two control tokens, its special tokens as characters, and where they stand in it.

    Tokenizers may begin a text otherwise than what stands behind a control token: with the space of a first word. Then
    a mark is put before the stretch, and its tokens are left out. `within`: the tokens of the broken stretch there.
    """
    begins_alike = _split(tokenizer, stretch, False).ids.tolist() == list(within)
    before = 0 if begins_alike else len(mark)
    encoding = _split(tokenizer, mark[:before] + stretch.replace(mark, ""), False)
    inside = slice(None) if begins_alike else encoding.offsets[:, 1] > before
    positions = [index for index, character in enumerate(stretch) if character != mark]
    spans = [
        (_position(positions, start - before), _position(positions, stop - before - 1) + 1)
        for start, stop in encoding.offsets[inside].tolist()
    ]
    return encoding.ids[inside].tolist(), spans


def _position(positions: Sequence[int], index: int) -> int:
    """That of a character in the text with marks; of one beside the text, that of the nearest."""
    return positions[min(max(index, 0), len(positions) - 1)] if positions else 0


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _replace(value: object, pattern: re.Pattern[str], by: str) -> object:
    if isinstance(value, str):
        return pattern.sub(by, value)
    if isinstance(value, Mapping):
        return {_replace(key, pattern, by): _replace(item, pattern, by) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace(item, pattern, by) for item in value]
    return value
