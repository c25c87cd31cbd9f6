"""What happens beside the steps: lines of the log, metrics.jsonl, TensorBoard, profiles, early stops."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import jax

from framework.config.registry import register
from framework.core.disk import disk_errors, write_file
from framework.core.errors import ConfigError, FormatError, did_you_mean
from framework.core.types import JSON

if TYPE_CHECKING:
    from framework.engine.trainer import Trainer

log = logging.getLogger("oar")
Row = Mapping[str, Any]


class Callback:
    """Base: every method may be overridden. `row` holds `step`, `epoch` and numbers by name.

    Attributes:
        every_process: Whether it runs in each process of a run of several, as what decides about the training must.
            What writes files runs in the first one alone.
    """

    every_process: ClassVar[bool] = True

    def on_begin(self, trainer: Trainer) -> None:
        """Before the first step; `trainer.step` is where it goes on from."""

    def on_step(self, trainer: Trainer, step: int) -> None:
        """After a step was given to the device."""

    def on_log(self, trainer: Trainer, row: Row) -> None:
        """At the first step, every `log_every` steps and at the end of each epoch: the learning rate of the step, and
        means of the other numbers since the last time."""

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        """After an evaluation; `row["best"]` says whether it was the best so far."""

    def on_end(self, trainer: Trainer) -> None:
        """After the last step, also when training failed."""

    def state_dict(self) -> dict[str, JSON]:
        """Plain data that a checkpoint keeps, so that a resumed run goes on as if it had not been stopped."""
        return {}

    def set_state_dict(self, state: Mapping[str, JSON]) -> None:
        """Take back what `state_dict` gave, before `on_begin`."""


class LogLines(Callback):
    """Lines with step, losses, learning rate, samples a second, share of time spent waiting for data, time left.

    Scores of single classes ("iou/car") are left to metrics.jsonl.
    """

    def on_begin(self, trainer: Trainer) -> None:
        self.started_at, self.first = time.monotonic(), trainer.step

    def on_log(self, trainer: Trainer, row: Row) -> None:
        done = row["step"] - self.first
        left = (time.monotonic() - self.started_at) / max(1, done) * (trainer.total_steps - row["step"])
        summary = {"step", "epoch", "lr", "samples_per_second", "wait_share", "seconds"}
        losses = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if name not in summary)
        log.info(
            f"step {row['step']}/{trainer.total_steps}  epoch {row['epoch']}  {losses}  lr {row['lr']:.3g}  "
            f"{row['samples_per_second']:.1f} samples/s  data wait {row['wait_share']:.0%}  eta {_clock(left)}"
        )

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        scores = "  ".join(
            f"{name} {value:.4f}"
            for name, value in row.items()
            if isinstance(value, float) and name != "seconds" and "/" not in name
        )
        best = "  (best so far)" if row["best"] else ""
        log.info(f"step {row['step']}  eval  {scores}{best}")


class _StandardOutput(logging.StreamHandler):
    """A full disk behind it, or a reader that has enough (`| head`), is said once, and the training goes on."""

    _is_lost = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self._is_lost:
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            super().handleError(record)
            return
        self._is_lost = True
        log.warning(f"standard output takes no more lines of the log: {error.strerror or error}")


@contextmanager
def print_log(*handlers: logging.Handler) -> Iterator[None]:
    """Show lines of the log on stdout inside the block, and give them to these handlers."""
    outputs = (_StandardOutput(sys.stdout), *handlers)
    level = log.level
    for handler in outputs:
        log.addHandler(handler)
    log.setLevel(min(level or logging.INFO, logging.INFO))
    try:
        yield
    finally:
        log.setLevel(level)
        for handler in outputs:
            log.removeHandler(handler)
            handler.close()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


class MetricsFile(Callback):
    """One JSON object a line in `path`. A resumed run takes out what was logged after its checkpoint."""

    every_process = False

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_begin(self, trainer: Trainer) -> None:
        """Raises: DiskError, here and below, where the file cannot be written."""
        lines = []
        if self.path.is_file():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except ValueError:  # a line that a killed run did not finish
                    continue
                if row["step"] <= trainer.step:
                    lines.append(line + "\n")
        write_file(self.path, "".join(lines).encode("utf-8"))

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self._write({"kind": "train", **row})

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        self._write({"kind": "eval", **row})

    def _write(self, row: Row) -> None:
        row = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        line = json.dumps(row, ensure_ascii=False) + "\n"
        with (
            disk_errors(self.path, len(line.encode())),
            self.path.open("a", encoding="utf-8") as file,
        ):
            file.write(line)


class Profile(Callback):
    """A trace of three steps for TensorBoard's or Perfetto's profile viewer."""

    every_process = False

    def __init__(self, folder: Path, step: int) -> None:
        self.folder, self.step, self.running = folder, step, False

    def on_step(self, trainer: Trainer, step: int) -> None:
        if step == self.step:
            jax.profiler.start_trace(str(self.folder))
            self.running = True
        elif self.running and step >= self.step + 3:
            self._stop(trainer)

    def on_end(self, trainer: Trainer) -> None:
        if self.running:
            self._stop(trainer)

    def _stop(self, trainer: Trainer) -> None:
        jax.block_until_ready(trainer.state.step)
        jax.profiler.stop_trace()
        self.running = False
        log.info(f"profile of steps {self.step} to {self.step + 2} in {self.folder}")


_LESS = ("loss", "perplexity", "error", "entropy", "distance")
_LESS_ALONE = frozenset(
    ("nats", "bits", "ne", "mae", "mse", "rmse", "mape", "cer", "wer", "ter", "nme", "fid", "eer")
)
"""In the names of scores of which less is better: anywhere, and as words of their own."""


@register("callback")
@dataclass(frozen=True)
class EarlyStopping(Callback):
    """Ends training after `patience` evaluations in a row that are no better than the best one before.

    Attributes:
        monitor: The score to watch; None is the one that chooses the best checkpoint.
        mode: Whether less ("min") or more ("max") is better; "auto" is what the metric says for the score that chooses
            the best checkpoint, and for another one less where its name has a word for what is wrong or surprising,
            such as loss, error, perplexity, nats or mae.
        min_delta: An evaluation is better by more than this.
        baseline: The best score at the start: what is not better does not count.
    """

    monitor: str | None = None
    mode: Literal["auto", "min", "max"] = "auto"
    patience: int = 1
    min_delta: float = 0.0
    baseline: float | None = None
    _best: dict[str, float] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if self.patience < 1 or self.min_delta < 0:
            raise ConfigError(
                "training would end at once",
                where="EarlyStopping",
                received=f"patience {self.patience}, min_delta {self.min_delta}",
                allowed="patience from 1, min_delta from 0",
            )

    def on_begin(self, trainer: Trainer) -> None:
        if trainer.step == 0:  # else a resumed run goes on with what it kept
            self._best.clear()

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        scores = {
            name: value for name, value in row.items() if isinstance(value, float) and name != "seconds"
        }
        if not scores:
            return
        first = next(iter(scores))
        name = first if self.monitor is None else self.monitor
        if name not in scores:
            raise ConfigError(
                "the evaluation has no such score",
                where="EarlyStopping.monitor",
                received=repr(name),
                allowed=", ".join(scores),
                fix=did_you_mean(name, scores),
            )
        sign = 1.0 if self._more_is_better(name, trainer, first) else -1.0
        best = self._best.get("best", self.baseline)
        # a score that is no number is never the best one, or nothing would be better than it
        better = not math.isnan(scores[name]) and (
            best is None or sign * (scores[name] - best) > self.min_delta
        )
        self._best.update(
            {"best": scores[name], "bad": 0} if better else {"bad": self._best.get("bad", 0) + 1}
        )
        if self._best["bad"] >= self.patience:
            log.info(f"no better {name} in {self.patience} evaluations: training ends")
            trainer.stop = True

    def _more_is_better(self, name: str, trainer: Trainer, first: str) -> bool:
        if self.mode != "auto":
            return self.mode == "max"
        if name == first:
            return trainer.higher_is_better
        return not any(word in name.lower() for word in _LESS) and not _LESS_ALONE.intersection(
            re.split(r"[\W_]+", name.lower())
        )

    def state_dict(self) -> dict[str, JSON]:
        return dict(self._best)

    def set_state_dict(self, state: Mapping[str, JSON]) -> None:
        numbers = {name: value for name, value in state.items() if isinstance(value, (int, float))}
        if len(numbers) != len(state):
            raise FormatError(
                "the state of EarlyStopping must hold numbers", received=dict(state), allowed="numbers"
            )
        self._best.update(numbers)
