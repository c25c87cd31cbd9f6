"""Samples that a loader leaves out because they cannot be read. Imports no jax."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from pathlib import Path

from framework.core.errors import FormatError, InputError, OarError

UNREADABLE = (InputError, FormatError, OSError)
"""What a data set raises for a sample that is damaged or gone; anything else is a fault of a program."""
SKIPPED_FILE = "skipped_samples.jsonl"
_log = logging.getLogger("oar")


@dataclass(frozen=True)
class SkippedSample:
    """Which sample was left out, and why."""

    where: str
    reason: str


def describe_skipped(error: Exception, index: int, dataset: object) -> SkippedSample:
    """The sample `index` of a data set, whose reading raised this."""
    if not isinstance(error, OarError):
        return SkippedSample(
            f"sample {index} of {type(dataset).__name__}", f"{type(error).__name__}: {error}"
        )
    received = "" if error.received is None else f" ({error.received})"
    where = f"sample {index} of {type(dataset).__name__}" if error.where is None else str(error.where)
    return SkippedSample(where, error.problem + received)


def _parse_row(line: str) -> SkippedSample | None:
    """None of a line that was cut off when a run was killed."""
    try:
        return SkippedSample(**json.loads(line))
    except (ValueError, TypeError):
        return None


@dataclass
class SkipLog:
    """Says of each sample once that it was left out: a line of the log and, with a `file`, a JSON line there.

    Samples that the file names already, as after a resumed run, are not added again.
    """

    file: Path | None = None
    found: dict[str, str] = field(default_factory=dict)
    """Reason by place."""

    def __post_init__(self) -> None:
        if self.file is not None and self.file.is_file():
            text = self.file.read_text(encoding="utf-8", errors="replace")
            self.found |= {row.where: row.reason for row in filter(None, map(_parse_row, text.splitlines()))}
            if text and not text.endswith("\n"):
                self._write("\n")

    def add(self, sample: SkippedSample) -> None:
        """Note one sample."""
        if sample.where in self.found:
            return
        self.found[sample.where] = sample.reason
        _log.warning(f"left out, sample {len(self.found)} so far: {sample.where}: {sample.reason}")
        self._write(json.dumps({"where": sample.where, "reason": sample.reason}, ensure_ascii=False) + "\n")

    def _write(self, text: str) -> None:
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as out:
                out.write(text)
