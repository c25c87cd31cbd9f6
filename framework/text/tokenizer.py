"""Texts into the tokens of a vocabulary, and back.

Kinds: WordPiece (BERT, ERNIE), byte-level BPE (RoBERTa, GPT-2) and whatever else a tokenizer.json of the library
`tokenizers` says; SentencePiece (ALBERT); whole words; characters. The last two need no library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from framework.core.disk import write_file
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.types import JSON
from framework.text.segmenter import FORMAT, Frame, Kind, Segmenter, SubwordEncoding
from framework.text.tokenizer_files import damage_errors, parse_tokenizer, read_tokenizer
from framework.text.tokenizer_training import train_tokenizer

# A half of a surrogate pair is no character: libraries refuse it. Its replacement keeps the places of the others.
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, eq=False)
class Encoding:
    """T tokens of one text or of two, with the special tokens around them."""

    ids: np.ndarray
    """[T] int32"""
    type_ids: np.ndarray
    """[T] int32: the segment, by the rules of the model; RoBERTa has only segment 0."""
    offsets: np.ndarray
    """[T, 2] int32: first character and the one after the last, in the text, or in the word where words were given;
    (0, 0) of special tokens."""
    words: np.ndarray
    """[T] int32: the word of the first text, where words were given; else -1."""
    texts: np.ndarray
    """[T] int32: 0 for tokens of the first text, 1 for those of the second, -1 for what was put around them."""
    left_out: int = 0
    """Tokens of the texts that had no room."""

    @property
    def special(self) -> np.ndarray:
        """[T] bool: put around the texts."""
        return self.texts < 0

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer:
    """Divides texts into tokens and joins tokens to texts. Safe to call from several threads; never asks a network.

    `from_file`, `from_json` and `train` make one.

    Args:
        roles: The special token of each of ROLES that there is. "cls" begins a text and "sep" ends it, also where a
            model calls them bos and eos.
        single, pair: What surrounds one text, and two.
        truncation_side: The end of texts that is cut where they are too long.
        where: The file, for messages.

    Raises:
        FormatError: a special token is not in the vocabulary, or a text is missing in what surrounds it.
    """

    def __init__(
        self,
        segmenter: Segmenter,
        roles: Mapping[str, str],
        single: Frame,
        pair: Frame,
        truncation_side: Literal["right", "left"] = "right",
        where: object = "tokenizer",
    ) -> None:
        self.segmenter, self.roles, self.single, self.pair = segmenter, dict(roles), single, pair
        self.truncation_side: Literal["right", "left"] = truncation_side
        self.where = where
        self._special: dict[str, int] = {}
        _check_frame(single, "A", segmenter.size, where)
        _check_frame(pair, "AB", segmenter.size, where)
        for role, token in self.roles.items():
            number = segmenter.id_of(token)
            if number is None:
                raise FormatError(
                    "a special token is not in the vocabulary",
                    where=where,
                    received=f"{role}_token {token!r}",
                    allowed="a token of the vocabulary",
                    fix="name it in tokenizer_config.json or special_tokens_map.json beside the file",
                )
            self._special[role] = number
        self.special_ids = self._find_special()
        """Tokens that are no text: those that `decode` leaves out. What stands for an unknown word, or for one to be
        guessed, is none of them, but where texts are generated: there it is of no use."""

    @classmethod
    def from_file(cls, path: str | Path, settings: Mapping[str, JSON] | None = None) -> Tokenizer:
        """Reads tokenizer.json (this toolkit's or that of `tokenizers`), vocab.txt, vocab.json with merges.txt beside
        it, a SentencePiece .model, or a folder with one of these, whose tokenizer_config.json,
        special_tokens_map.json and added_tokens.json are respected.

        Args:
            settings: What tokenizer_config.json would say, such as {"do_lower_case": False}; goes before it.

        Raises:
            InputError: there is no such file, or no tokenizer in the folder. FormatError: it is damaged, of another
            format, not UTF-8, or lacks a special token. MissingExtraError: its library is not installed.
        """
        with damage_errors(path):
            return cls(*read_tokenizer(Path(path), dict(settings or {})), path)

    @classmethod
    def train(
        cls, kind: Kind, texts: Iterable[str | Sequence[str]], vocab_size: int, lower: bool = False
    ) -> Tokenizer:
        """A tokenizer for these texts, with [PAD] as token 0, [UNK] 1, [CLS] 2, [SEP] 3 and [MASK] 4.

        Args:
            kind: "bpe" is byte-level, so that nothing is unknown; "unigram" is SentencePiece's; "characters" leaves
                white space out, "spaced_characters" has a token for each such character too.
            texts: Texts, or lists of words.
            vocab_size: At most so many tokens.
            lower: Texts are put into lower case; "wordpiece" and "unigram" then drop accents too.

        Raises:
            ConfigError: `kind` is unknown, there is no text, or the vocabulary is too small for the letters.
        """
        return cls(*train_tokenizer(kind, texts, vocab_size, lower))

    @classmethod
    def from_json(cls, text: str, where: object = "tokenizer") -> Tokenizer:
        """What `to_json` gave, or the tokenizer.json of the library `tokenizers`. Raises: as `from_file`."""
        with damage_errors(where):
            return cls(*parse_tokenizer(text, where, {}), where)

    def to_json(self) -> str:
        """All of it as one JSON text."""
        return json.dumps(
            {
                "oar_tokenizer": FORMAT,
                "roles": self.roles,
                "single": self.single,
                "pair": self.pair,
                **({"truncation_side": "left"} if self.truncation_side == "left" else {}),
                **self.segmenter.to_plain(),
            },
            ensure_ascii=False,
        )

    def save(self, path: str | Path) -> Path:
        """Write `to_json`; a folder gets a tokenizer.json."""
        path = Path(path)
        path = path / "tokenizer.json" if path.is_dir() or not path.suffix else path
        write_file(path, self.to_json().encode("utf-8"))
        return path

    @property
    def vocab_size(self) -> int:
        """Rows that an embedding needs: numbers of tokens are below this."""
        return self.segmenter.size

    @property
    def pad_id(self) -> int:
        """What fills up batches. Raises, as the next four: ConfigError, where the tokenizer has no such token."""
        return self._role("pad")

    @property
    def unk_id(self) -> int:
        """Stands for what is not in the vocabulary."""
        return self._role("unk")

    @property
    def cls_id(self) -> int:
        """Begins a text; bos where a model calls it so."""
        return self._role("cls")

    @property
    def sep_id(self) -> int:
        """Ends a text; eos where a model calls it so."""
        return self._role("sep")

    @property
    def mask_id(self) -> int:
        """Stands for a token that is to be guessed."""
        return self._role("mask")

    @property
    def bos_id(self) -> int | None:
        """What begins a text that a decoder writes on; None: nothing does."""
        return self._special.get("bos", self._special.get("cls"))

    @property
    def eos_id(self) -> int | None:
        """What ends a text; None: nothing does."""
        return self._special.get("eos", self._special.get("sep"))

    def _find_special(self) -> frozenset[int]:
        ends = {self._special[role] for role in ("pad", "cls", "sep", "bos", "eos") if role in self._special}
        special = self.segmenter.special_ids | ends
        if not self._special.keys() & {"bos", "eos"}:
            special -= {self._special[role] for role in ("unk", "mask") if role in self._special} - ends
        return frozenset(special)

    def _role(self, role: str) -> int:
        if role not in self._special:
            raise ConfigError(
                f"this tokenizer has no {role} token",
                where="tokenizer",
                received=", ".join(f"{name} {token}" for name, token in self.roles.items()) or "none at all",
                fix=f'name one of its tokens as "{role}_token" in tokenizer_config.json beside it',
            )
        return self._special[role]

    def id_of(self, token: str) -> int | None:
        """The number of a token of the vocabulary, or None."""
        return self.segmenter.id_of(token)

    def token_of(self, token_id: int) -> str | None:
        """The token as the vocabulary spells it ("##ing", "Ġthe"), or None where there is none."""
        return self.segmenter.token_of(int(token_id))

    def is_special(self, token_id: int) -> bool:
        """Whether a token is one of `special_ids`."""
        return int(token_id) in self.special_ids

    def encode(
        self,
        text: str | Sequence[str],
        pair: str | Sequence[str] | None = None,
        max_length: int | None = None,
        add_special: bool = True,
        parse_special: bool = True,
    ) -> Encoding:
        """The tokens of a text, or of two, with special tokens around them.

        What is longer than `max_length` tokens is cut at the end (at the beginning where `truncation_side` is left),
        token by token from whichever text is longer, the second where both are of one length.

        Args:
            text, pair: Texts, or lists of words: then no token reaches over the end of a word.
            add_special: Put special tokens around the texts. A text that a chat template wrote has them already.
            parse_special: A special token that stands in a text, such as <|im_start|>, is that token. False takes it
                for the characters that it shows: for text of strangers, who could else end a turn of a chat.

        Raises:
            InputError: this is no text. ConfigError: `max_length` is below the number of special tokens.
        """
        texts = [self._split(part, parse_special) for part in ((text,) if pair is None else (text, pair))]
        frame = self.single if pair is None else self.pair
        if not add_special:
            frame = tuple((item, kind) for item, kind in frame if isinstance(item, str))
        count = sum(len(part.ids) for part in texts)
        if max_length is not None:
            texts = _truncate(texts, max_length, len(frame) - len(texts), self.truncation_side)
        return _surround(texts, frame, count - sum(len(part.ids) for part in texts))

    def windows(
        self, first: str, second: str, max_length: int, stride: int, first_length: int
    ) -> list[tuple[int, Encoding]]:
        """Two texts, of which the second one may be too long for one row: as many rows as it takes, which overlap.

        Each row is what `encode` would make of the first text and a window of the second one. The number before it says
        how many tokens of the second text come before its window.

        Args:
            max_length: So many tokens of a row at most, with the special ones.
            stride: So many tokens behind the beginning of a window the next one begins, or behind its end if that is
                nearer.
            first_length: So many tokens of the first text at most; the rest is left out.

        Raises:
            ConfigError: nothing of the second text fits beside the first one.
        """
        one, two = self._split(first), self._split(second)
        one = SubwordEncoding(*(rows[:first_length] for rows in one))
        room = max_length - (len(self.pair) - 2) - len(one.ids)
        if room < 1 or stride < 1:
            raise ConfigError(
                "there is no room for a window of the text",
                where="max_length",
                received=f"{max_length} with {len(one.ids)} tokens of the first text, stride {stride}",
                allowed=f"{max_length - room + 1} or more, stride from 1",
            )
        windows, start = [], 0
        while True:
            window = SubwordEncoding(*(rows[start : start + room] for rows in two))
            windows.append((start, _surround([one, window], self.pair)))
            if start + room >= len(two.ids):
                return windows
            start += min(stride, room)

    def _split(self, text: str | Sequence[str], parse_special: bool = True) -> SubwordEncoding:
        if isinstance(text, str):
            with damage_errors(self.where):
                return self.segmenter.split(_SURROGATE.sub("\ufffd", text), parse_special)
        if not isinstance(text, list | tuple) or not all(isinstance(word, str) for word in text):
            raise InputError(
                "the input of a tokenizer must be text",
                where="tokenizer",
                received=type(text).__name__,
                allowed="str, or a list of words",
                fix="decode bytes first: data.decode('utf-8')" if isinstance(text, bytes) else None,
            )
        with damage_errors(self.where):
            return self.segmenter.split_words([_SURROGATE.sub("\ufffd", word) for word in text])

    def decode(self, ids: Iterable[int], skip_special: bool = True) -> str:
        """The text of tokens, as far as it can be told. Numbers beyond the vocabulary are left out.

        Args:
            skip_special: Leave out padding, what begins and ends a text, and all tokens that the tokenizer's files call
                special.
        """
        left_out = self.special_ids if skip_special else frozenset()
        numbers = [int(one) for one in ids]
        with damage_errors(self.where):
            return self.segmenter.join(
                [one for one in numbers if 0 <= one < self.vocab_size and one not in left_out]
            )


def _surround(encodings: list[SubwordEncoding], frame: Frame, left_out: int = 0) -> Encoding:
    """One or two texts with their special tokens."""
    ids, offsets, words, types, texts = [], [], [], [], []
    for item, type_id in frame:
        if isinstance(item, str):
            index = "AB".index(item)
            encoding = encodings[index]
            word = encoding.words if index == 0 else np.full(len(encoding.ids), -1, np.int32)
        else:
            encoding = SubwordEncoding(np.array([item]), np.zeros((1, 2)), np.empty(0))
            index, word = -1, np.array([-1])
        ids.append(encoding.ids)
        offsets.append(encoding.offsets)
        words.append(word)
        types.append(np.full(len(encoding.ids), type_id))
        texts.append(np.full(len(encoding.ids), index))
    arrays = (np.concatenate(rows).astype(np.int32) for rows in (ids, types, offsets, words, texts))
    return Encoding(*arrays, left_out=left_out)


def _check_frame(frame: Frame, texts: str, size: int, where: object) -> None:
    """Raises: FormatError, unless each text stands once in its frame, among tokens of the vocabulary."""
    slots = [item for item, _ in frame if isinstance(item, str)]
    numbers = [item for item, _ in frame if not isinstance(item, str)]
    kinds = [kind for _, kind in frame]
    in_vocabulary = all(type(number) is int and 0 <= number < size for number in numbers)
    if sorted(slots) != list(texts) or not in_vocabulary or not all(0 <= kind < 256 for kind in kinds):
        raise FormatError(
            "what is put around texts does not fit the vocabulary",
            where=where,
            received=f"{frame!r}"[:200],
            allowed=f"{' and '.join(texts)} once, numbers of tokens below {size}",
            fix="use the files of one model together",
        )


def _truncate(
    texts: list[SubwordEncoding], max_length: int, around: int, side: Literal["right", "left"]
) -> list[SubwordEncoding]:
    room = max_length - around
    if room < 0:
        raise ConfigError(
            "there is no room for a text beside the special tokens",
            where="max_length",
            received=max_length,
            allowed=f"{around} or more",
        )
    if len(texts) == 1:
        lengths = [room]
    else:
        first, second = len(texts[0].ids), len(texts[1].ids)
        # The first text may fill its half, the odd token with it, and what the second leaves free.
        first = min(first, max(-(-room // 2), room - second))
        lengths = [first, room - first]
    if side == "left":
        starts = [max(len(part.ids) - count, 0) for part, count in zip(texts, lengths)]
        return [SubwordEncoding(*(rows[start:] for rows in part)) for part, start in zip(texts, starts)]
    return [SubwordEncoding(*(rows[:count] for rows in part)) for part, count in zip(texts, lengths)]
