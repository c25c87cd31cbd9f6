"""Which division of a training step over devices fits into their memory and takes the least time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from jax.sharding import PartitionSpec

from framework.distributed.mesh import AXES, BATCH_AXES, ParallelOptions
from framework.distributed.planning.estimate import Needs, estimate
from framework.distributed.planning.hardware import REACHED, Hardware, collective_seconds
from framework.distributed.planning.spread import Traffic, input_bits
from framework.distributed.planning.trace import Trace

SPACE = 0.9
"""The share of a device's memory that a step may take."""
_BUCKET = (
    30 << 20
)  # bytes that one collective of many arrays takes (xla_gpu_all_reduce_combine_threshold_bytes)
Layout = Callable[[ParallelOptions, dict[str, int]], list[PartitionSpec]]
"""(options, sizes of the axes) -> the division of each argument of the step."""


@dataclass(frozen=True)
class Division:
    """One way to divide a step, and what it needs.

    Attributes:
        recompute: What is computed again in the backward pass, as `train.recompute`.
        computing: Seconds of products and of reading and writing memory.
        hidden: Seconds of collectives that go on beside them: of parameters and gradients.
        exposed: Seconds of those that the next operation waits for.
        compiled: The memory in `needs` is the compiler's.
        measured: Seconds of a step that was run.
    """

    options: ParallelOptions
    sizes: tuple[int, ...]
    recompute: str | None
    needs: Needs
    computing: float
    hidden: float
    exposed: float
    compiled: bool = False
    measured: float | None = None

    @property
    def seconds(self) -> float:
        """Of one step."""
        return max(self.computing, self.hidden) + self.exposed if self.measured is None else self.measured

    def traffic(self, axis: str) -> int:
        """Bytes that a device exchanges over an axis in a step."""
        bit = 1 << AXES.index(axis)
        return sum(one.bytes for one in self.needs.traffic if one.bits & bit)


@dataclass(frozen=True)
class Search:
    """What was tried: the divisions that fit, those that were compiled before others and the fastest first; those that
    do not fit, smallest first; and why others were not tried, with their number."""

    fitting: list[Division]
    too_large: list[Division]
    dropped: dict[str, int]

    def compiled(self, count: int, memory: float, compile_division: Callable[[Division], Division]) -> Search:
        """The same with `count` of the best divisions compiled: what the compiler says of their memory decides whether
        they fit. Where none is estimated to fit, the smallest are compiled.

        Args:
            memory: Bytes of a device.
            compile_division: Gives a division with `needs` by the compiler.
        """
        fitting, too_large = list(self.fitting), list(self.too_large)
        candidates = fitting or too_large[:count]
        compiled: list[Division] = []
        for division in list(candidates):
            if len(compiled) == count:
                break
            candidates.remove(division)
            if division in too_large:
                too_large.remove(division)
            done = compile_division(division)
            (compiled if done.needs.memory <= SPACE * memory else too_large).append(done)
        return Search(_fastest_first([*fitting, *compiled]), _smallest_first(too_large), self.dropped)


def _fastest_first(divisions: Sequence[Division]) -> list[Division]:
    return sorted(divisions, key=lambda one: (not one.compiled, one.seconds, one.needs.memory))


def _smallest_first(divisions: Sequence[Division]) -> list[Division]:
    return sorted(divisions, key=lambda one: one.needs.memory)


@dataclass(frozen=True)
class Variant:
    """A step, with or without parts that are computed again; it is traced when it is tried."""

    recompute: str | None
    trace: Callable[[], Trace]
    layout: Layout


def search(
    variants: Sequence[Variant],
    devices: int,
    batch: int,
    hardware: Hardware,
    base: ParallelOptions | None = None,
) -> Search:
    """Try every division of `devices` over the axes. The rules of names of `base` hold in all of them.

    A later variant is tried where no division of those before fits.

    Args:
        batch: Samples of a step.
    """
    base = base or ParallelOptions()
    dropped: Counter[str] = Counter()
    fitting: list[Division] = []
    too_large: list[Division] = []
    for number, variant in enumerate(variants):
        if number and fitting:
            break
        program = variant.trace()
        counted = dropped if number == 0 else Counter()
        for options, sizes in _divisions(devices, base):
            specs = variant.layout(options, sizes)
            reason = _impossible(specs, sizes, batch, hardware)
            if reason is not None:
                counted[reason] += 1
                continue
            division = evaluate(variant, program, specs, options, sizes, hardware)
            fits = division.needs.memory <= SPACE * hardware.memory
            (fitting if fits else too_large).append(division)
    return Search(_fastest_first(fitting), _smallest_first(too_large), dict(dropped))


def _divisions(devices: int, base: ParallelOptions) -> list[tuple[ParallelOptions, dict[str, int]]]:
    divisions = []
    for tensor in _divisors(devices):
        for fsdp in _divisors(devices // tensor):
            data = devices // tensor // fsdp
            for stage in (1, 3) if fsdp > 1 else (3,):
                options = replace(base, data=data, fsdp=fsdp, tensor=tensor, stage=stage)
                sizes = dict.fromkeys(map(str, AXES), 1)
                divisions.append((options, {**sizes, "data": data, "fsdp": fsdp, "tensor": tensor}))
    return divisions


def _divisors(number: int) -> list[int]:
    return [one for one in range(1, number + 1) if number % one == 0]


def _impossible(
    specs: Sequence[PartitionSpec], sizes: dict[str, int], batch: int, hardware: Hardware
) -> str | None:
    """Why a division is not worth a look, in words."""
    if batch % math.prod(sizes[axis] for axis in BATCH_AXES):
        return f"the batch of {batch} is no multiple of data x fsdp"
    if sizes["tensor"] > hardware.per_node:
        return f"tensor is wider than a node of {hardware.per_node}"
    for axis in ("tensor", "fsdp"):
        if sizes[axis] > 1 and not any(axis in spec for spec in specs):
            return f"{axis} of this size divides no parameter"
    return None


def evaluate(
    variant: Variant,
    program: Trace,
    specs: Sequence[PartitionSpec],
    options: ParallelOptions,
    sizes: dict[str, int],
    hardware: Hardware,
) -> Division:
    """The needs and the times of one division of a variant, whose trace is `program`, with its arguments laid out as
    `specs`."""
    counts = tuple(sizes[axis] for axis in AXES)
    arguments = program.inputs[program.constants :]
    inputs = input_bits(program, specs)
    divided = {
        program.arrays[one].shape: bits
        for spec, one, bits in zip(specs, arguments, inputs)
        if "fsdp" in spec and bits is not None
    }
    needs = estimate(program, inputs, counts, divided, combined=hardware.shared)
    work = needs.products / hardware.products / (1.0 if hardware.shared else REACHED)
    computing = max(work, needs.moved_by_products / hardware.bandwidth) + needs.moved / hardware.bandwidth
    tensor = 1 << AXES.index("tensor")
    hidden = exposed = 0.0
    together: Counter[tuple[str, int]] = Counter()  # of parameters and gradients: compilers make few of many
    for one in needs.traffic:
        combined = one.kind != "all-gather" if hardware.shared else True
        if one.bits & tensor or not combined:
            exposed += collective_seconds(one, counts, hardware)
        else:
            together[one.kind, one.bits] += one.bytes
    for (kind, bits), size in together.items():
        buckets = 1 if hardware.shared else -(-size // _BUCKET)
        hidden += buckets * collective_seconds(Traffic(kind, bits, size // buckets, -1), counts, hardware)
    if hardware.shared:  # nothing goes on beside: the devices have the same cores
        exposed, hidden = exposed + hidden, 0.0
        computing *= math.prod(counts)
    return Division(options, counts, variant.recompute, needs, computing, hidden, exposed)
