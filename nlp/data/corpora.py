"""Texts for pre-training: files of any size as tokens that are kept on the disk, cut into rows of one length."""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.bounded import check_file
from framework.core.errors import ConfigError, FormatError, InputError
from framework.core.home import home
from framework.io.dataset import LazyDataset
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import load_tokenizer
from nlp.data.json_files import is_parquet, read_entries
from nlp.data.packing import IGNORED, TokenSample
from nlp.data.token_files import TokenFile, TokenFileWriter, read_token_file, smallest_dtype

_log = logging.getLogger("oar")
_BLOCK = 1 << 20  # characters that are divided into tokens at a time
Division = Literal["file", "blank_line", "line"]


def plain_ids(tokenizer: Tokenizer, text: str) -> np.ndarray:
    """[T] int32: the tokens of a text without what a tokenizer puts around it."""
    encoding = tokenizer.encode(text)
    return encoding.ids[~encoding.special]


def bos_ids(tokenizer: Tokenizer) -> np.ndarray:
    """[B] int32: what the tokenizer of a decoder puts before a text. A [CLS] is none: own texts are trained without."""
    first = itertools.takewhile(
        lambda item: not isinstance(item, str), (item for item, _ in tokenizer.single)
    )
    return np.array(list(first) if "bos" in tokenizer.roles else [], np.int32)


def end_token(tokenizer: Tokenizer, token: str | None = None) -> int:
    """The number of the token that ends a text: this one, or what the tokenizer calls its end.

    Raises:
        ConfigError: there is none.
    """
    if token is None:
        return tokenizer.sep_id
    number = tokenizer.id_of(token)
    if number is None:
        raise ConfigError(
            "the end of texts is no token",
            where="end",
            received=repr(token),
            allowed="a token of the vocabulary",
        )
    return number


class Windows(LazyDataset):
    """Base of data sets that cut a stream of tokens into rows of `max_length`, each with the token behind it.

    What is left over at the end is a row of its own if it is as long as `max_length`, and is left out else, which one
    line of the log says.
    """

    max_length: int
    separate: bool

    @property
    def source(self) -> TokenFile:
        raise NotImplementedError(f"{type(self).__name__}.source")

    def decode(self, ids: np.ndarray) -> str | None:
        """The text of tokens, where it can be told."""
        return None

    @cached_property
    def _file(self) -> TokenFile:
        file = self.source
        count = (len(file.tokens) - 1) // self.max_length
        if count < 1:
            raise InputError(
                "there are fewer tokens than a row has",
                where=file.path,
                received=f"{len(file.tokens)} tokens",
                allowed=f"{self.max_length + 1} or more, as max_length says",
            )
        left = len(file.tokens) - 1 - count * self.max_length
        _log.info(
            f"{file.path}: {len(file)} texts, {len(file.tokens)} tokens, {count} rows of {self.max_length}"
            + (f"; {left} tokens at the end fill no row" if left else "")
        )
        return file

    def __len__(self) -> int:
        return (len(self._file.tokens) - 1) // self.max_length

    def __getitem__(self, index: int) -> TokenSample:
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of a {type(self).__name__} with {len(self)} rows")
        start = (index % len(self)) * self.max_length
        tokens = np.asarray(self._file.tokens[start : start + self.max_length + 1]).astype(np.int32)
        ids, targets = tokens[:-1], tokens[1:].copy()
        order = np.arange(self.max_length, dtype=np.int32)
        text = self.decode(targets)
        size = 0 if text is None else len(text.encode("utf-8", "replace"))
        name = f"{self._file.path.stem}, row {index % len(self)}"
        if not self.separate:
            return TokenSample(ids, targets, order, None, size, id=name)
        starts = self._file.starts
        document = np.searchsorted(starts, np.arange(start, start + self.max_length + 1), "right") - 1
        targets[document[1:] != document[:-1]] = IGNORED
        segments = (document[:-1] - document[0] + 1).astype(np.int32)
        is_first = np.concatenate([[True], document[1:-1] != document[:-2]])
        begins = np.maximum.accumulate(np.where(is_first, order, 0))
        return TokenSample(ids, targets, (order - begins).astype(np.int32), segments, size, id=name)


@register("dataset")
@dataclass(frozen=True)
class TokenRows(Windows):
    """Rows of a file of tokens: `path` is the name of x.idx and x.bin (nlp/data/token_files.py).

    Attributes:
        max_length: Tokens of a row.
        separate: No text sees another in its row; else a text goes on where the one before ended, as in GPT.
        tokenizer: Tells how many bytes the tokens spell, for bits per byte; None: that is not told.
        share: From where to where documents are taken, of all of them; (0, 0.99) for training, (0.99, 1) besides.

    Raises:
        InputError, FormatError: at the first use, the files are missing or damaged, or shorter than a row.
    """

    path: Path
    max_length: int
    separate: bool = True
    tokenizer: str | None = None
    share: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_length(self.max_length)
        check_share(self.share)

    @property
    def source(self) -> TokenFile:
        file = read_token_file(self.path)
        if self.share == (0.0, 1.0):
            return file
        first, last = (round(len(file) * one) for one in self.share)
        starts = file.starts[first : last + 1]
        return TokenFile(file.tokens[starts[0] : starts[-1]], starts - starts[0], file.path)

    def decode(self, ids: np.ndarray) -> str | None:
        return None if self.tokenizer is None else load_tokenizer(self.tokenizer).decode(ids)


@register("dataset")
@dataclass(frozen=True)
class TextRows(Windows):
    """Rows of texts: .txt, .jsonl and .parquet files of any size, divided into tokens once and kept in OAR_HOME.

    Each begins with bos, where the tokenizer of a decoder puts one before texts, and ends with `end`.

    Attributes:
        paths: Files, or folders of them.
        tokenizer: As in Tokenize; the vocabulary should keep spaces and line ends.
        max_length: Tokens of a row.
        separate: As in TokenRows.
        division: Of a .txt file: what is a text: the file, what stands between blank lines, or a line.
        column: Of .jsonl and .parquet: the key, or the column, of the text.
        end: The token behind each text; None: what the tokenizer calls its end ("sep", or eos).
        share: From where to where each .txt file is taken, of its characters, and of other files their lines: (0, 0.9)
            for training, (0.9, 1) to judge it.

    Raises:
        InputError, FormatError: at the first use, a file is missing or damaged, or there is less than a row of text.
    """

    paths: tuple[Path, ...]
    tokenizer: str
    max_length: int
    separate: bool = True
    division: Division = "file"
    column: str = "text"
    end: str | None = None
    share: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        check_length(self.max_length)
        check_share(self.share)
        if not self.paths:
            raise ConfigError(
                "there are no texts", where="TextRows.paths", received="[]", allowed="files or folders"
            )

    @property
    def source(self) -> TokenFile:
        return tokens_of_texts(self)

    def decode(self, ids: np.ndarray) -> str | None:
        return load_tokenizer(self.tokenizer).decode(ids)

    def texts(self) -> Iterator[Iterator[str]]:
        """The texts, each in pieces that are not too long for a tokenizer."""
        for path in text_files(self.paths):
            if path.suffix == ".txt":
                yield from _plain_texts(path, self.division, self.share)
            else:
                rows = _column_texts(path, self.column)
                yield from ((text,) for text in _share_of(rows, path, self.share, self.column))  # pyright: ignore[reportReturnType]


def check_length(max_length: int) -> None:
    """Raises: ConfigError, where a row would have no token."""
    if max_length < 1:
        raise ConfigError("a row needs tokens", where="max_length", received=max_length, allowed="1 or more")


def check_share(share: tuple[float, float]) -> None:
    """Raises: ConfigError, where nothing would be taken."""
    if not 0 <= share[0] < share[1] <= 1:
        raise ConfigError(
            "the share of the data is no range",
            where="share",
            received=list(share),
            allowed="0 <= first < last <= 1",
        )


def text_files(paths: tuple[Path, ...]) -> list[Path]:
    """The files of `paths`, and of folders among them those with texts. Raises: InputError, where there is none."""
    files = []
    for path in paths:
        endings = (".txt", ".jsonl", ".json", ".parquet")
        inside = sorted(one for one in path.rglob("*") if one.suffix in endings) if path.is_dir() else [path]
        if not inside:
            raise InputError("the folder holds no texts", where=path, allowed=", ".join(endings))
        files += [check_file(one, "text file", InputError) for one in inside]
    return files


def tokens_of_texts(texts: TextRows) -> TokenFile:
    """The tokens of a data set, from OAR_HOME/tokens where they are there for these files and this tokenizer."""
    tokenizer = load_tokenizer(texts.tokenizer)
    files = text_files(texts.paths)
    states = [(path.resolve().as_posix(), path.stat().st_size, path.stat().st_mtime_ns) for path in files]
    about = [states, tokenizer.to_json(), texts.division, texts.column, texts.end, texts.share]
    about += bos_ids(tokenizer).tolist()
    name = hashlib.sha256(json.dumps(about).encode("utf-8")).hexdigest()[:24]
    prefix = home() / "tokens" / name
    if not prefix.with_suffix(".idx").is_file():
        _log.info(f"dividing {', '.join(str(path) for path in files[:3])} into tokens, once: {prefix}.bin")
        _write(texts, prefix)
    file = read_token_file(prefix)
    return TokenFile(file.tokens, file.starts, files[0])


def write_tokens(
    paths: tuple[Path, ...],
    output: Path,
    tokenizer: str,
    division: Division = "file",
    column: str = "text",
    end: str | None = None,
) -> TokenFile:
    """Divide texts into tokens and write them as `output`.idx and .bin. See TextRows."""
    _write(TextRows(paths, tokenizer, 1, division=division, column=column, end=end), output)
    return read_token_file(output)


def _write(texts: TextRows, prefix: Path) -> None:
    tokenizer = load_tokenizer(texts.tokenizer)
    first, end = bos_ids(tokenizer), end_token(tokenizer, texts.end)
    with TokenFileWriter(prefix, smallest_dtype(tokenizer.vocab_size)) as writer:
        for text in texts.texts():
            chunks = [plain_ids(tokenizer, piece) for piece in text]
            if any(len(chunk) for chunk in chunks):
                writer.add([np.concatenate([first, *chunks, np.array([end], np.int32)])])


def _plain_texts(path: Path, division: Division, share: tuple[float, float]) -> Iterator[Iterator[str]]:
    """Those of a .txt file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FormatError(
            "the text is not UTF-8",
            where=path,
            received=f"byte {error.start}: {error.reason}",
            allowed="UTF-8",
        ) from error
    first, last = (round(len(text) * one) for one in share)
    text = text[first:last]
    if division == "file":
        sections = [text]
    else:
        sections = text.split("\n\n") if division == "blank_line" else text.split("\n")
    for section in sections:
        if section.strip():
            yield _blocks(section)


def _blocks(text: str) -> Iterator[str]:
    """Of at most _BLOCK characters where lines allow it."""
    start = 0
    while start < len(text):
        end = start + _BLOCK
        if end < len(text):
            end = text.rfind("\n", start, end) + 1 or end
        yield text[start:end]
        start = end


def _column_texts(path: Path, column: str) -> Iterator[str]:
    return _parquet_texts(path, column) if is_parquet(path) else _json_texts(path, column)


def _json_texts(path: Path, key: str) -> Iterator[str]:
    for where, fields in read_entries(path):
        text = fields.get(key) if isinstance(fields, dict) else None
        if not isinstance(text, str):
            keys = list(fields) if isinstance(fields, dict) else type(fields).__name__
            raise FormatError(
                "the line has no text", where=where, received=keys, allowed=f"a text under {key!r}"
            )
        yield text


def _parquet_texts(path: Path, column: str) -> Iterator[str]:
    """Row group by row group: no more than one is in memory. Rows without a text are passed over."""
    for where, row in read_entries(path):
        assert isinstance(row, dict)
        if column not in row:
            raise FormatError(
                "there is no such column", where=where, received=repr(column), allowed=", ".join(row)
            )
        text = row[column]
        if isinstance(text, str):
            yield text
        elif text is not None:
            raise FormatError(
                "the row has no text",
                where=f"{where}, column {column}",
                received=repr(text)[:80],
                allowed="a column of texts",
            )


def _share_of(texts: Iterator[str], path: Path, share: tuple[float, float], column: str) -> Iterator[str]:
    """The texts of a share of the lines; their number is counted first."""
    if share == (0.0, 1.0):
        yield from texts
        return
    total = sum(1 for _ in _column_texts(path, column))
    first, last = (round(total * one) for one in share)
    yield from (text for number, text in enumerate(texts) if first <= number < last)
