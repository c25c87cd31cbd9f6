"""How to divide a configuration's training among devices that may not be here: what `oar plan` does."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from framework.config import build
from framework.core.device import Device
from framework.core.dtypes import narrow
from framework.core.errors import ConfigError, InputError
from framework.distributed.mesh import AXES, ParallelOptions
from framework.distributed.planning.hardware import Hardware
from framework.distributed.planning.search import SPACE, Division, Search, Variant, search
from framework.engine.abstract_step import AbstractStep
from framework.engine.experiment import Experiment, LoaderConfig
from framework.engine.task import Task
from framework.io.device import without_texts
from framework.nn.functional.tables import LARGE
from framework.nn.layer import Layer
from framework.nn.lookups import Table
from framework.workflow.train.loaders import make_loader


@dataclass(frozen=True)
class Plan:
    """The divisions of a training among `devices`, best first.

    Attributes:
        batch_size: Samples of a step over all devices.
        parameters: Numbers that are trained or kept.
    """

    devices: int
    batch_size: int
    parameters: int
    hardware: Hardware
    search: Search
    steps: Mapping[str | None, AbstractStep]

    @property
    def best(self) -> Division | None:
        """The fastest one that fits."""
        return self.search.fitting[0] if self.search.fitting else None

    def compiled(self, devices: Sequence[Device], count: int, *, run: bool = False) -> Plan:
        """The same, in which the best `count` divisions have the memory that the compiler for these devices says.

        Args:
            run: Run these too, on zeros, and sort them by the time that they took.
        """

        def compile_division(division: Division) -> Division:
            options = dataclasses.replace(division.options, data=None)
            step = self.steps[division.recompute].compile(devices, options)
            memory = step.memory()
            if memory is None:
                raise ConfigError(
                    "the compiler of this device does not say what a program needs of memory",
                    where="oar plan",
                    received=str(devices[0]),
                    fix="plan with --compile 0",
                )
            needs = dataclasses.replace(division.needs, state=memory[0], working=memory[1])
            fits = needs.memory <= SPACE * self.hardware.memory
            measured = step.measure() if run and fits else None
            return dataclasses.replace(division, needs=needs, compiled=True, measured=measured)

        return dataclasses.replace(
            self, search=self.search.compiled(count, self.hardware.memory, compile_division)
        )

    def describe(self, top: int = 5) -> str:
        """The best divisions as a table, and why others lose."""
        lines = [
            f"{self.parameters:,} parameters, batch {self.batch_size}, {self.devices} devices of "
            f"{self.hardware.memory / 1e9:g} GB",
            f"{'':2}{'data':>5}{'fsdp':>6}{'tensor':>8}{'stage':>7}  {'recompute':<12}{'memory':>11}"
            f"{'step':>11}{'computing':>12}{'hidden':>11}{'exposed':>11}{'traffic':>12}",
        ]
        rows = self.search.fitting[:top] or self.search.too_large[:top]
        for one in rows:
            data, fsdp, tensor = (one.sizes[AXES.index(axis)] for axis in ("data", "fsdp", "tensor"))
            stage = str(one.options.stage) if fsdp > 1 else "-"
            total = sum(one.traffic(axis) for axis in AXES)
            lines.append(
                f"{'':2}{data:>5}{fsdp:>6}{tensor:>8}{stage:>7}  {'blocks' if one.recompute else 'no':<12}"
                f"{_size(one.needs.memory):>11}{_time(one.seconds):>11}{_time(one.computing):>12}"
                f"{_time(one.hidden):>11}{_time(one.exposed):>11}{_size(total):>12}"
            )
        if count := sum(one.compiled for one in rows):
            measured = ", and the time of a step is that of one that was run" if rows[0].measured else ""
            lines.append(f"compiled, the first {count}: memory is what the compiler says{measured}")
        if not self.search.fitting:
            lines.append(
                f"none fits into {SPACE:.0%} of a device; the smallest stand above: take more devices, a smaller "
                "batch, or train.amp=bfloat16"
            )
        lines += [f"not tried, {count}: {reason}" for reason, count in self.search.dropped.items()]
        if self.search.too_large and self.search.fitting:
            least = self.search.too_large[0]
            lines.append(
                f"too large, {len(self.search.too_large)}: the smallest, {_name(least)}, needs "
                f"{_size(least.needs.memory)}, {_size(least.needs.state)} of them for the state"
            )
        lines += self._explain()
        return "\n".join(lines)

    def _explain(self) -> list[str]:
        """Why the first loses to nobody: against the best one of other axes."""
        best = self.best
        if best is None:
            return []
        lines = []
        for axis in AXES:
            index = AXES.index(axis)
            others = [one for one in self.search.fitting if one.compiled == best.compiled]
            other = next((one for one in others if one.sizes[index] > best.sizes[index]), None)
            if other is not None:
                lines.append(
                    f"more {axis}: {_name(other)} takes {_time(other.seconds)}, {_reason(best, other)}"
                )
        return lines


def plan(experiment: Experiment, devices: int, hardware: Hardware) -> Plan:
    """Try the divisions of a training among `devices` of a kind. One batch of data is read, and no parameter is drawn.

    Raises:
        InputError: there is nothing to train on.
        ConfigError: a rule of names fits no parameter; the model has a table, or the config axes, that are not planned.
    """
    first = abstract_step(experiment)
    large = [
        name
        for name, one in first.model.named_parameters()
        if isinstance(one, Table) and one.shape[0] >= LARGE
    ]
    if large:
        raise ConfigError(
            "a table of 2**31 rows or more cannot be planned",
            where=large[0],
            received=f"{len(large)} of nn.ShardedEmbedding",
            allowed=f"tables of fewer rows than {LARGE}",
            fix="plan with fewer rows; a table takes its bytes, and those of its optimizer, divided by all devices",
        )
    patterns: list[str | None] = [experiment.train.recompute]
    if patterns[0] is None and (blocks := find_blocks(first.model)) is not None:
        patterns.append(blocks)
    steps: dict[str | None, AbstractStep] = {}
    variants = []
    for pattern in patterns:
        options = dataclasses.replace(experiment.train, recompute=pattern)
        step = dataclasses.replace(first, options=options)
        steps[pattern] = step
        variants.append(Variant(pattern, functools.partial(step.trace, devices), step.inputs))
    base = experiment.parallel if isinstance(experiment.parallel, ParallelOptions) else ParallelOptions()
    others = {axis: size for axis in ("pipeline", "sequence", "expert") if (size := getattr(base, axis)) > 1}
    if others:
        raise ConfigError(
            "plans divide over data, fsdp and tensor alone",
            where="parallel",
            received=", ".join(f"{axis}: {size}" for axis, size in others.items()),
            allowed="1 device of each other axis",
            fix="-o " + " ".join(f"parallel.{axis}=1" for axis in others),
        )
    batch = max((leaf.shape[0] for leaf in first.batch.values() if leaf.ndim), default=1)
    count = sum(math.prod(one.shape) for _, one in first.model.named_parameters())
    return Plan(devices, batch, count, hardware, search(variants, devices, batch, hardware, base), steps)


def abstract_step(experiment: Experiment) -> AbstractStep:
    """The training step of an experiment by shapes. One batch of its data is read, and no parameter is drawn.

    Raises:
        InputError: there is nothing to train on.
    """
    experiment.require("model", "task", "optim")
    data = experiment.data.train
    if data is None:
        raise InputError(
            "there is nothing to train on", where="data.train", allowed="a dataset, transforms, batch_size"
        )
    config, task = experiment.model_and_task()
    task = task.adapt(data.dataset)
    model = build(task.adapt_model(config))
    assert experiment.optim is not None
    batch = _batch_shapes(data, task, experiment.train.seed)
    return AbstractStep(model, task, experiment.optim, experiment.train, batch)


def find_blocks(model: Layer) -> str | None:
    """A pattern of the names of the equal blocks that a model mostly consists of; None where it has none."""
    sizes: Counter[tuple[str, type]] = Counter()
    counts: Counter[tuple[str, type]] = Counter()
    for name, layer in model.named_sublayers():
        parent, _, last = name.rpartition(".")
        if last.isdigit() and layer.has_forward():
            key = parent, type(layer)
            counts[key] += 1
            sizes[key] += sum(math.prod(one.shape) for _, one in layer.named_parameters())
    parents = [key for key, _ in sizes.most_common() if counts[key] > 1]
    if not parents:
        return None
    parent = f"{re.escape(parents[0][0])}\\." if parents[0][0] else ""
    return rf"^{parent}\d+$"


def _batch_shapes(data: LoaderConfig, task: Task, seed: int) -> Mapping[str, jax.ShapeDtypeStruct]:
    """The arrays of a whole batch, by one of two samples; texts are as long as the longest bucket."""
    buckets = data.buckets and data.buckets[-1:]
    short = dataclasses.replace(data, batch_size=2, buckets=buckets, num_workers=0)
    loader = make_loader(short, task, seed, train=True)
    with contextlib.closing(loader.batches(0)) as batches:
        arrays = without_texts(next(iter(batches)).data)
    shapes = {}
    for name, value in arrays.items():
        array = narrow(np.asarray(value), name)
        size = data.batch_size if array.ndim and len(array) == 2 else len(array)
        shapes[name] = jax.ShapeDtypeStruct((size, *array.shape[1:]), array.dtype)
    return shapes


def _name(division: Division) -> str:
    return (
        " x ".join(f"{axis} {size}" for axis, size in zip(AXES, division.sizes) if size > 1) or "one device"
    )


def _size(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.2f} MiB"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms" if seconds < 10 else f"{seconds:.1f} s"


def _reason(best: Division, other: Division) -> str:
    """What makes the second one slower."""
    terms = {
        "computes longer": other.computing - best.computing,
        "waits for its tensors": other.exposed - best.exposed,
        "has more to gather and to sum than it computes": max(0.0, other.hidden - other.computing)
        - max(0.0, best.hidden - best.computing),
    }
    return max(terms, key=lambda name: terms[name])
