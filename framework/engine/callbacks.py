"""What happens beside the steps: lines of the log, metrics.jsonl, TensorBoard, profiles, early stops."""

from __future__ import annotations

import json
import logging
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax

from framework.core.errors import MissingExtraError

if TYPE_CHECKING:
    from framework.engine.trainer import Trainer

log = logging.getLogger("oar")
Row = Mapping[str, Any]


class Callback:
    """Base: every method may be overridden. `row` holds `step`, `epoch` and numbers by name."""

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

    def state_dict(self) -> dict[str, Any]:
        """Plain data that a checkpoint keeps, so that a resumed run goes on as if it had not been stopped."""
        return {}

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
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
        shown = {"step", "epoch", "lr", "samples_per_second", "wait_share", "seconds"}
        losses = "  ".join(f"{name} {value:.4f}" for name, value in row.items() if name not in shown)
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


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


class MetricsFile(Callback):
    """One JSON object a line in `path`. A resumed run takes out what was logged after its checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def on_begin(self, trainer: Trainer) -> None:
        kept = []
        if self.path.is_file():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                try:
                    row = json.loads(line)
                except ValueError:  # a line that a killed run did not finish
                    continue
                if row["step"] <= trainer.step:
                    kept.append(line + "\n")
        work = self.path.with_name(f".{self.path.name}")
        work.write_text("".join(kept), encoding="utf-8")
        os.replace(work, self.path)

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self._write({"kind": "train", **row})

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        self._write({"kind": "eval", **row})

    def _write(self, row: Row) -> None:
        row = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in row.items()}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


class TensorBoard(Callback):
    """Scalars, and the images that the task draws of evaluated samples, as TensorBoard event files."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboardX import SummaryWriter
        except ImportError:
            raise MissingExtraError("tensorboardX", "log", "writing TensorBoard files") from None
        self.writer = SummaryWriter(str(folder))

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self._scalars("train", row)

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        self._scalars("eval", row)
        first = trainer.evaluator and trainer.evaluator.first
        drawing = trainer.task.visualize(*first, trainer.labels) if first else None
        if drawing is not None:
            self.writer.add_image("eval/sample", drawing, row["step"], dataformats="HWC")
        self.writer.flush()

    def _scalars(self, group: str, row: Row) -> None:
        for name, value in row.items():
            if isinstance(value, float):
                self.writer.add_scalar(f"{group}/{name}", value, row["step"])

    def on_end(self, trainer: Trainer) -> None:
        self.writer.close()


class Profile(Callback):
    """A trace of three steps for TensorBoard's or Perfetto's profile viewer."""

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


class EarlyStop(Callback):
    """Ends training after `patience` evaluations in a row without a better score."""

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        if trainer.since_best >= self.patience:
            log.info(f"no better score in {self.patience} evaluations: training ends")
            trainer.stop = True
