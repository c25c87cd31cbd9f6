"""The folder of results of a batch: files of rows that appear whole or not at all, and what of the batch is done.

A run that is killed leaves the files that were whole; the next run reads the names of their rows and does the rest. A
shard that is computed twice, as its worker died behind it, takes the name of the same file twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from filelock import Timeout

from framework.core.bounded import DATASET, read_text
from framework.core.disk import disk_errors, whole_file
from framework.core.errors import ConfigError, InputError
from framework.core.file_lock import acquire_lock
from framework.core.types import JSON
from framework.workflow.batch import tables
from framework.workflow.batch.inputs import SourceRef
from framework.workflow.batch.rows import ResultRow
from framework.workflow.domain.outputs import make_folder, text_file, write_json

Format = Literal["parquet", "jsonl"]
_SETTINGS = "_batch.json"  # readers of tables leave out what begins so
_LOCK, _ATTEMPTS = ".lock", ".attempts"


@dataclass(frozen=True)
class Shard:
    """Sources that one worker does at a time, and whose rows are one file. Its name says what is in it."""

    name: str
    references: tuple[SourceRef, ...]

    def to_json(self) -> str:
        """A text, which every kind of column can hold."""
        return json.dumps([self.name, [(one.name, one.path, one.row) for one in self.references]])

    @classmethod
    def from_json(cls, text: str) -> Shard:
        """What `to_json` wrote."""
        name, references = json.loads(text)
        return cls(name, tuple(SourceRef(*one) for one in references))


def make_shards(references: Sequence[SourceRef], finished: frozenset[str], size: int) -> Iterator[Shard]:
    """Shards of at most `size` sources without those that are finished.

    All sources are divided, and not those that are left: so a run that goes on has the shards of the one before, and
    what a worker of that one still writes is the file that comes again here.
    """
    for start in range(0, len(references), size):
        rest = tuple(one for one in references[start : start + size] if one.name not in finished)
        if rest:
            digest = hashlib.sha256("\0".join(one.name for one in rest).encode())
            yield Shard(digest.hexdigest()[:20], rest)


@dataclass(frozen=True)
class PartFolder:
    """The folder of the results.

    Attributes:
        format: Of its files: Parquet tables, or JSON lines.
    """

    path: Path
    format: Format = "parquet"

    def file_of(self, shard: Shard) -> Path:
        """The file of a shard."""
        return self.path / f"part-{shard.name}.{self.format}"

    def write(self, shard: Shard, rows: Sequence[ResultRow]) -> None:
        """The file of a shard, whole. Raises: DiskError."""
        if self.format == "jsonl":
            with text_file(self.file_of(shard)) as out:
                out.writelines(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows)
            return
        with whole_file(self.file_of(shard)) as temporary, disk_errors(self.path):
            tables.write_rows(temporary, rows)

    def finished(self) -> frozenset[str]:
        """The names of the sources that have a row. Raises: FormatError, OSError, where a file is damaged."""
        names: set[str] = set()
        for file in sorted(self.path.glob(f"part-*.{self.format}")):
            if self.format == "parquet":
                names.update(tables.read_sources(file))
            else:
                lines = read_text(file, DATASET, "rows of a batch").split("\n")
                names.update(json.loads(line)["source"] for line in lines if line.strip())
        return frozenset(names)

    def errors(self, shard: Shard) -> list[tuple[str, str]]:
        """The sources of a shard that is written whose rows are errors, and these."""
        file = self.file_of(shard)
        if self.format == "parquet":
            return tables.read_errors(file)
        lines = read_text(file, DATASET, "rows of a batch").split("\n")
        rows = [json.loads(line) for line in lines if line.strip()]
        return [(row["source"], row["error"]) for row in rows if row["error"] is not None]

    def drop_failed(self) -> int:
        """Take out the rows that are errors, so that their sources are not finished; returns how many."""
        return sum(self._drop_failed(file) for file in sorted(self.path.glob(f"part-*.{self.format}")))

    def _drop_failed(self, file: Path) -> int:
        if self.format == "parquet":
            table = tables.read_table(file)
            rest = table.filter(table.column("error").is_null())
            count, left = len(table), len(rest)
            if 0 < left < count:
                with whole_file(file) as temporary, disk_errors(file):
                    tables.write_table(temporary, rest)
        else:
            rows = [one for one in read_text(file, DATASET, "rows of a batch").split("\n") if one.strip()]
            good = [f"{one}\n" for one in rows if json.loads(one)["error"] is None]
            count, left = len(rows), len(good)
            if 0 < left < count:
                with text_file(file) as out:
                    out.writelines(good)
        if not left:
            file.unlink()
        return count - left

    def forget_attempts(self) -> None:
        """What workers noted who died; see `Attempts`."""
        shutil.rmtree(self.path / _ATTEMPTS, ignore_errors=True)

    @contextlib.contextmanager
    def open(self, settings: Mapping[str, JSON]) -> Iterator[None]:
        """Make it the folder of a batch with these settings, for one run at a time.

        Raises: ConfigError, where it holds results of other settings. InputError, where another run works on it.
        """
        make_folder(self.path)
        try:
            lock = acquire_lock(self.path / _LOCK)
        except Timeout:
            raise InputError(
                "another run writes into this folder",
                where=self.path,
                fix="wait for it, or name another --output_dir",
            ) from None
        try:
            self._check_settings({**settings, "format": self.format})
            yield
        finally:
            if lock is not None:
                lock.release()

    def _check_settings(self, settings: Mapping[str, JSON]) -> None:
        file = self.path / _SETTINGS
        if not file.is_file():
            if others := sorted(one.name for one in self.path.glob("part-*")):
                raise ConfigError(
                    "the folder has results of something else", where=self.path, received=others[0]
                )
            write_json(file, settings)
            return
        before = json.loads(read_text(file, DATASET, "settings of a batch"))
        changed = [name for name in {**before, **settings} if before.get(name) != settings.get(name)]
        if changed:
            raise ConfigError(
                "the folder has results of other settings",
                where=self.path,
                received="; ".join(f"{name}: {settings.get(name)}" for name in changed),
                allowed="; ".join(f"{name}: {before.get(name)}" for name in changed),
                fix="name another --output_dir, or remove this one",
            )


_MOST_DEATHS = 2
_DEATHS = (
    f"the worker died, or took too long, {_MOST_DEATHS} times while it read this: the file ends programs, or memory is "
    "short; --retry_failed does it again"
)


class Attempts:
    """Which source of a shard was under way when its worker died: a file that kills its worker is left out at last.

    The first time, the sources of a shard share batches. Where the worker died on the way, they run one after the
    other, each noted before, and one that was under way at two deaths gets a row that says so.
    """

    def __init__(self, folder: PartFolder, run: str, shard: Shard) -> None:
        self._file = folder.path / _ATTEMPTS / f"{run}-{shard.name}"
        self._noted = self._file.read_text(encoding="utf-8").split() if self._file.is_file() else []

    @property
    def is_first(self) -> bool:
        """Whether nobody has begun the shard in this run."""
        return not self._noted

    def deaths(self, number: int) -> int:
        """How often a worker died while the source of this index ran alone."""
        return sum(one == f"{number}:" for one in self._noted) - sum(
            one == f"{number}." for one in self._noted
        )

    def note(self, text: str) -> None:
        """Write down what begins: "all", "7:" for a source, "7." where it has ended."""
        with disk_errors(self._file):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as out:
                out.write(f"{text}\n")

    def forget(self) -> None:
        """The shard is written."""
        self._file.unlink(missing_ok=True)


def compute_shard(
    folder: PartFolder, run: str, shard: Shard, predict: Callable[[Sequence[SourceRef]], Iterator[ResultRow]]
) -> list[ResultRow] | None:
    """The rows of a shard, which are written then. Those of one that has its file are not computed again: None.

    Args:
        run: The name of the run, whose attempts count.
        predict: A row for each reference, in order.
    """
    if folder.file_of(shard).is_file():
        return None
    attempts = Attempts(folder, run, shard)
    if attempts.is_first:
        attempts.note("all")
        rows = list(predict(shard.references))
    else:
        rows = []
        for number, one in enumerate(shard.references):
            if attempts.deaths(number) >= _MOST_DEATHS:
                rows.append(ResultRow(one.name, None, _DEATHS))
                continue
            attempts.note(f"{number}:")
            rows += predict([one])
            attempts.note(f"{number}.")
    folder.write(shard, rows)
    attempts.forget()
    return rows
