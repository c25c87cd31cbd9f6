"""Data sets of rows: in memory with an index, or streamed from files of any size.

`paths` may hold patterns such as data/day_*.csv. Nothing is read before the first use.
"""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.io.dataset import IterableDataset, LazyDataset
from zoo.recommendation.data.formats import Block, Format, Row, RowFormat
from zoo.recommendation.sample import RowSample


def expand_paths(paths: Sequence[str]) -> list[Path]:
    """The files of paths and patterns, in order. Raises: InputError, where one leads to none."""
    files: list[Path] = []
    for path in paths:
        matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else [path]
        if not matches:
            raise InputError(
                "no file matches the pattern", where=path, fix=f"the current folder is {Path.cwd()}"
            )
        files += map(Path, matches)
    return files


@register("dataset")
@dataclass(frozen=True)
class Rows(LazyDataset):
    """Rows of files that fit into memory.

    Attributes:
        paths: Files, and patterns of files.
        format, columns, separator: See `RowFormat`.
        start, stop: Rows that are taken of all; None is the end.
    """

    paths: tuple[str, ...]
    format: Format = "auto"
    columns: tuple[str, ...] | None = None
    separator: str | None = None
    start: int = 0
    stop: int | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> RowSample:
        where, row, is_complete = self._rows[index]
        return RowSample(values=row, id=where, is_complete=is_complete)

    @cached_property
    def _rows(self) -> list[tuple[str, Row, bool]]:
        reader = RowFormat(self.format, self.columns, self.separator)
        rows = (
            (where, row, reader.has_all_columns(path))
            for path in expand_paths(self.paths)
            for where, row in reader.read_file(path)
        )
        selected = list(islice(rows, self.start, self.stop))
        if not selected:
            raise InputError(
                "there are no rows",
                where=", ".join(self.paths),
                received=f"none from row {self.start}"
                if self.start
                else "files that are empty or hold a header alone",
            )
        return selected


@register("dataset")
@dataclass(frozen=True)
class RowStream(IterableDataset):
    """Rows of files larger than memory. Of text a line is a row.

    In training the blocks of all files are put in a new order each epoch, `readers` of them are read at the same time,
    and a row is drawn from a window of `window` rows: a window alone would leave rows near those of their time.

    Attributes:
        paths, format, columns, separator: As of `Rows`.
        shuffle: False keeps the order of the files: for evaluation, and for training once through in the order of time.
        readers: Blocks that are open at once.
        window: Rows in memory.
        rows: How many there are; without it they are counted once.
    """

    paths: tuple[str, ...]
    format: Format = "auto"
    columns: tuple[str, ...] | None = None
    separator: str | None = None
    shuffle: bool = True
    readers: int = 8
    window: int = 100_000
    rows: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.readers < 1 or self.window < 1 or (self.rows is not None and self.rows < 1):
            raise ConfigError(
                "a setting of the stream is out of range",
                where="RowStream",
                received=f"readers {self.readers}, window {self.window}, rows {self.rows}",
                allowed="1 or more",
            )

    def set_epoch(self, epoch: int) -> None:
        """The order of rows depends on it."""
        vars(self)["_epoch"] = epoch

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        reader = RowFormat(self.format, self.columns, self.separator)
        return self.rows or sum(reader.count(path) for path in expand_paths(self.paths))

    def __iter__(self) -> Iterator[RowSample]:
        reader = RowFormat(self.format, self.columns, self.separator)
        blocks = [block for path in expand_paths(self.paths) for block in reader.blocks(path)]
        rng = np.random.default_rng((self.seed, vars(self).get("_epoch", 0)))
        samples = (
            self._interleave(reader, blocks, rng)
            if self.shuffle
            else (sample for block in blocks for sample in _read(reader, block))
        )
        count = 0
        for sample in islice(samples, self.rows):
            count += 1
            yield sample
        if count < self._count:
            raise InputError(
                "the files have fewer rows than was said",
                where="RowStream.rows" if self.rows else ", ".join(self.paths)[:300],
                received=f"{count} rows",
                allowed=str(self._count),
                fix="leave `rows` out, and they are counted"
                if self.rows
                else "a file tells a wrong number of its rows: write it anew",
            )

    def _interleave(
        self, reader: RowFormat, blocks: list[Block], rng: np.random.Generator
    ) -> Iterator[RowSample]:
        """A row of a window, which is filled by turns from several blocks."""
        waiting = iter([blocks[index] for index in rng.permutation(len(blocks))])
        opened = [_read(reader, block) for block in islice(waiting, self.readers)]
        window: list[RowSample] = []
        turn = 0
        while opened:
            turn %= len(opened)
            sample = next(opened[turn], None)
            if sample is None:
                block = next(waiting, None)
                if block is None:
                    opened.pop(turn)
                else:
                    opened[turn] = _read(reader, block)
                continue
            turn += 1
            if len(window) < self.window:
                window.append(sample)
                continue
            index = int(rng.integers(self.window))
            yield window[index]
            window[index] = sample
        for index in rng.permutation(len(window)):
            yield window[index]


def _read(reader: RowFormat, block: Block) -> Iterator[RowSample]:
    is_complete = reader.has_all_columns(block.path)
    return (RowSample(values=row, id=where, is_complete=is_complete) for where, row in reader.read(block))
