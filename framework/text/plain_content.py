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
from framework.text.segmenter import SubwordEncoding
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


def encode_broken(tokenizer: Tokenizer, text: str, mark: str) -> tuple[int, ...]:
    """The tokens of a rendered chat whose values were broken; as of the text without marks where there are none."""
    split = tokenizer.segmenter.split
    whole = split(text)
    if not mark or mark not in text:
        return tuple(map(int, whole.ids))
    ids: list[int] = []
    begin = first = 0
    for index, start, stop in [
        *_control_tokens(tokenizer, text, whole),
        (len(whole.ids), len(text), len(text)),
    ]:
        between, stretch = whole.ids[first:index].tolist(), text[begin:start]
        ids += _literal(tokenizer, stretch, mark, between) if mark in stretch else between
        ids += whole.ids[index : index + 1].tolist()
        begin, first = stop, index + 1
    return tuple(ids)


def _control_tokens(
    tokenizer: Tokenizer, text: str, encoding: SubwordEncoding
) -> Iterator[tuple[int, int, int]]:
    """Which tokens stand in the text as control tokens, and their characters. That of unknown characters shows none."""
    special = tokenizer.segmenter.special_ids
    for index, (number, (start, stop)) in enumerate(zip(encoding.ids.tolist(), encoding.offsets.tolist())):
        if number in special and text[start:stop].strip() == (tokenizer.token_of(number) or "").strip():
            yield index, start, stop


def _literal(tokenizer: Tokenizer, stretch: str, mark: str, within: Sequence[int]) -> list[int]:
    """The tokens of a stretch between two control tokens, its special tokens as characters.

    Tokenizers may begin a text otherwise than what stands behind a control token: with the space of a first word. Then
    a mark is put before the stretch, and its tokens are left out. `within`: the tokens of the broken stretch there.
    """

    def behind_mark(text: str) -> list[int]:
        encoding = tokenizer.segmenter.split(mark + text, False)
        return encoding.ids[encoding.offsets[:, 1] > 1].tolist()

    if tokenizer.segmenter.split(stretch, False).ids.tolist() != list(within):
        return behind_mark(stretch.replace(mark, ""))
    return tokenizer.segmenter.split(stretch.replace(mark, ""), False).ids.tolist()


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
