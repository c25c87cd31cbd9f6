"""A learning rate and a batch size to begin with: a sweep of rising rates, and what a step needs of memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.device import Device
from framework.core.dtypes import narrow
from framework.core.errors import ConfigError
from framework.engine.callbacks import Callback, Row
from framework.engine.experiment import TrainOptions
from framework.engine.reports import write_table
from framework.engine.task import Task
from framework.engine.trainer import DIVERGED, Trainer, TrainingError
from framework.io.device import without_texts
from framework.io.loader import DataLoader
from framework.nn import functional_core
from framework.nn.layer import Layer
from framework.optimizer import Optimizer
from framework.optimizer.lr.base import LRScheduler, Number
from framework.vision import charts, image

_SMOOTHING = 0.9  # share of the mean so far in the next one
_ENOUGH = 4.0  # times the least loss: the sweep is over
_SKIPPED = 10  # steps at the beginning that suggest nothing


# -- the learning rate -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LRFinding:
    """What a sweep found.

    Attributes:
        suggestion: The rate at which the loss fell most steeply over the logarithm of the rate; None where it never
            fell.
        rates, losses: Of each step, the losses smoothed.
    """

    suggestion: float | None
    rates: tuple[float, ...]
    losses: tuple[float, ...]

    def write(self, folder: Path) -> list[Path]:
        """lr_finder.csv and lr_finder.png, with a line at the suggestion; returns their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        rows = [{"learning_rate": rate, "loss": loss} for rate, loss in zip(self.rates, self.losses)]
        write_table(folder / "lr_finder.csv", rows)
        title = f"loss over learning rate; suggestion {self.suggestion:.3g}" if self.suggestion else "loss"
        panel = charts.Panel(title, {"loss": (self.rates, self.losses)}, log_x=True, mark=self.suggestion)
        image.write(folder / "lr_finder.png", charts.draw_panels([panel]))
        return [folder / "lr_finder.csv", folder / "lr_finder.png"]


@dataclass(frozen=True)
class _Sweep(LRScheduler):
    """From `start` to `end` in `steps` steps, each by the same factor."""

    start: float
    end: float
    steps: int
    counts: ClassVar[tuple[str, ...]] = ("steps",)

    def rate(self, step: Number, xp: ModuleType) -> Number:
        return self.start * xp.exp(math.log(self.end / self.start) * step / (self.steps - 1))


class _Losses(Callback):
    """Keeps the smoothed loss of each step, and ends the sweep where it has become large."""

    def __init__(self) -> None:
        self.smoothed: list[float] = []
        self._mean = 0.0

    def on_log(self, trainer: Trainer, row: Row) -> None:
        self._mean = _SMOOTHING * self._mean + (1 - _SMOOTHING) * row["loss"]
        self.smoothed.append(self._mean / (1 - _SMOOTHING ** (len(self.smoothed) + 1)))
        least = min(self.smoothed)
        if len(self.smoothed) > _SKIPPED and self.smoothed[-1] > least + (_ENOUGH - 1) * abs(least):
            trainer.stop = True


def find_lr(
    model: Layer,
    task: Task,
    optimizer: Optimizer,
    train: DataLoader,
    options: TrainOptions,
    *,
    start: float = 1e-7,
    end: float = 1.0,
    steps: int = 100,
) -> LRFinding:
    """Train `steps` steps with rates from `start` to `end`, until the loss grows, and suggest one of them.

    The model has its own values again afterwards, and nothing is written. `options` are those of the training to come:
    precision, recomputation, the batch size that the rate is meant for.

    Raises:
        ConfigError: the range is empty, or the steps are too few to suggest anything.

    Source: Smith 2015, https://arxiv.org/abs/1506.01186.
    """
    if not 0 < start < end or steps < 2 * _SKIPPED:
        raise ConfigError(
            "there is nothing to sweep over",
            where="find_lr",
            received=f"start {start}, end {end}, steps {steps}",
            allowed=f"0 < start < end, steps from {2 * _SKIPPED}",
        )
    sweep, losses = _Sweep(start, end, steps), _Losses()
    options = replace(
        options,
        epochs=None,
        iters=steps,
        log_every=1,
        ema=None,
        early_stop=None,
        callbacks=(),
        tensorboard=False,
    )
    swept = replace(optimizer, learning_rate=sweep, accumulate=1)
    # Copies: the step consumes arrays that the model shares with it.
    params, buffers = jax.tree.map(jnp.copy, functional_core.split(model)[1:])
    try:
        Trainer(model, task, swept, train, options, callbacks=[losses]).fit()
    except TrainingError as error:
        if error.problem != DIVERGED:  # the largest rates may well end in no number
            raise
    finally:
        functional_core.update(model, params, buffers)
    rates = tuple(float(sweep.at(step)) for step in range(len(losses.smoothed)))
    return LRFinding(_suggest(rates, losses.smoothed), rates, tuple(losses.smoothed))


def _suggest(rates: tuple[float, ...], losses: list[float]) -> float | None:
    """The rate of the steepest fall, up to the least loss."""
    if len(losses) <= _SKIPPED + 1:
        return None
    end = max(_SKIPPED + 2, int(np.argmin(losses)) + 1)
    slopes = np.gradient(np.array(losses[:end]), np.log(rates[:end]))[_SKIPPED:]
    steepest = int(slopes.argmin())
    return rates[_SKIPPED + steepest] if slopes[steepest] < 0 else None


# -- the batch size --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BatchSizeFinding:
    """The largest batch whose step fits into the memory.

    Attributes:
        batch_size: A power of two times the number of devices.
        needed, free: Bytes on each device, of a step with this batch and in all.
        limited_by: "memory", or "data", where the data set has no larger batch.
    """

    batch_size: int
    needed: int
    free: int
    limited_by: str


def find_batch_size(trainer: Trainer, free: int | None = None, share: float = 0.9) -> BatchSizeFinding:
    """The largest batch for a step of `trainer`, whose own batch size does not matter. Nothing is computed.

    Steps are compiled for growing batches, and the compiler says what they need: two sizes tell how much a sample
    takes, a third one whether the guess is right.

    Args:
        free: Bytes that may be taken on each device; None asks the device, and a CPU's operating system.
        share: Of `free` that a step may take.

    Raises:
        ConfigError: not even the smallest batch fits, or the memory of the device is unknown.
    """
    free = free_memory(trainer.partitioner.devices[0]) if free is None else free
    with contextlib.closing(trainer.train.batches(0)) as batches:
        batch = {
            name: narrow(np.asarray(value), name)
            for name, value in without_texts(next(iter(batches)).data).items()
        }
    unit = len(trainer.partitioner.devices)
    most = unit
    while most * 2 <= len(trainer.train.dataset):  # type: ignore[arg-type]
        most *= 2
    measured: dict[int, int] = {}

    def needed(size: int) -> int:
        if size not in measured:
            measured[size] = _measure(trainer, batch, size)
        return measured[size]

    allowed = int(share * free)
    size = _grow(needed, unit, most, allowed)
    if size is None:
        raise ConfigError(
            "not even the smallest batch fits",
            where="find_batch_size",
            received=f"{needed(unit):,} bytes for {unit} samples",
            allowed=f"{allowed:,} bytes, {share:.0%} of what is free",
            fix="smaller images or a smaller model; train.amp=bfloat16; train.recompute",
        )
    return BatchSizeFinding(size, needed(size), free, "data" if size == most else "memory")


def _grow(needed: Callable[[int], int], unit: int, most: int, allowed: int) -> int | None:
    """The largest of unit * 2^k up to `most` that needs no more than `allowed`."""
    if needed(unit) > allowed:
        return None
    first, second = min(4 * unit, most), min(8 * unit, most)
    size = unit
    if second > first:
        a_sample = max(1, (needed(second) - needed(first)) // (second - first))
        guess = second + (allowed - needed(second)) // a_sample
        size = min(most, unit << max(0, (guess // unit).bit_length() - 1))
    while size > unit and needed(size) > allowed:
        size //= 2
    while size * 2 <= most and needed(size * 2) <= allowed:
        size *= 2
    return size


def _measure(trainer: Trainer, batch: Mapping[str, np.ndarray], size: int) -> int:
    """Bytes on a device for a step with `size` samples, and for the two batches that wait for theirs."""
    specs: dict[str, jax.ShapeDtypeStruct] = {
        name: jax.ShapeDtypeStruct((size, *value.shape[1:]), value.dtype, sharding=trainer.partitioner.batch)
        for name, value in batch.items()
    }
    analysis = trainer.compile_step(specs).memory_analysis()
    if analysis is None:
        raise ConfigError(
            "the compiler of this device does not say what a program needs of memory",
            where="find_batch_size",
            received=str(trainer.partitioner.devices[0]),
            fix="try batch sizes: -o data.train.batch_size=... train.iters=2",
        )
    step = (
        analysis.temp_size_in_bytes
        + analysis.argument_size_in_bytes
        + analysis.output_size_in_bytes
        - analysis.alias_size_in_bytes
    )
    waiting = 2 * size * sum(value.nbytes // len(value) for value in batch.values())
    return int(step + waiting // len(trainer.partitioner.devices))


def free_memory(device: Device) -> int:
    """Bytes that are left on a device; of a CPU what the operating system, or the container, has left.

    Raises:
        ConfigError: nobody says.
    """
    stats = device.memory_stats() or {}
    if "bytes_limit" in stats:
        return int(stats["bytes_limit"]) - int(stats.get("bytes_in_use", 0))
    if device.platform == "cpu":
        limits = [left for left in (_system_memory(), _container_memory()) if left is not None]
        if limits:
            return min(limits)
    raise ConfigError(
        "the memory of the device is unknown",
        where="find_batch_size",
        received=str(device),
        fix="say how many bytes may be taken: find_batch_size(..., free=...)",
    )


def _system_memory() -> int | None:
    path = Path("/proc/meminfo")
    if not path.is_file():
        return None
    rows = dict(line.split(":", 1) for line in path.read_text(encoding="utf-8").splitlines())
    return int(rows["MemAvailable"].split()[0]) * 1024 if "MemAvailable" in rows else None


def _container_memory() -> int | None:
    limit, used = (Path("/sys/fs/cgroup") / f"memory.{name}" for name in ("max", "current"))
    if not (limit.is_file() and used.is_file()):
        return None
    text = limit.read_text(encoding="utf-8").strip()
    return max(0, int(text) - int(used.read_text(encoding="utf-8"))) if text.isdecimal() else None
