"""What a step needs on each device of a mesh: memory, products, bytes that are read and written, and traffic."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import or_

from framework.distributed.mesh import AXES, BATCH_AXES
from framework.distributed.planning.spread import FUSED, Bits, Spread, Spreader, Traffic, products, shards
from framework.distributed.planning.trace import Equation, Trace, split_names

# The same array under another shape.
_ALIASES = split_names(
    """
    reshape squeeze expand_dims optimization_barrier name copy stop_gradient bitcast_convert_type reduce_precision
    copy_p pvary
    """
)
# Costly functions: XLA computes them once and keeps the result, where two operations read it.
_COSTLY = split_names(
    """
    exp exp2 expm1 log log1p logistic tanh tan sin cos erf erfc erf_inv pow rsqrt sqrt cbrt lgamma digamma
    sinh cosh asin acos atan atan2 threefry2x32 random_bits
    """
)
# Operations that compute their operand as they read it.
_READERS = split_names(
    """
    reduce reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin dynamic_slice
    concatenate
    """
)


_SUMS = ("all-reduce", "reduce-scatter")
_GAPS = 1.03  # memory between arrays of different lives: 1.014 to 1.05 of six programs that were compiled
_SAMPLES = sum(1 << AXES.index(axis) for axis in BATCH_AXES)


@dataclass(frozen=True)
class Needs:
    """Of one step on one device.

    Attributes:
        state: Bytes of parameters, optimizer, averages, buffers and the batch.
        working: Most bytes of intermediate arrays at once.
        products: Floating-point operations of matrix products and convolutions.
        moved_by_products: Bytes that those read and write in the device's memory.
        moved: Bytes that all other operations read and write.
        traffic: Collectives.
    """

    state: int
    working: int
    products: float
    moved_by_products: float
    moved: float
    traffic: tuple[Traffic, ...]

    @property
    def memory(self) -> int:
        """Bytes in all."""
        return self.state + self.working


def estimate(
    program: Trace,
    inputs: Sequence[Bits | None],
    sizes: Sequence[int],
    scatter: Mapping[tuple[int, ...], Bits] | None = None,
    *,
    combined: bool = False,
) -> Needs:
    """The needs of a training step whose state is donated.

    Args:
        inputs: The division of each argument of the program.
        sizes: Devices of each axis of the mesh.
        scatter: Shapes whose gradients are summed and divided in one, and how.
        combined: The compiler makes one all-reduce of all gradients, as that of CPUs does, so that all of them and
            their sums are there at once, and gathers all parameters at the start.
    """
    spreader = Spreader(sizes, scatter)
    spread = spreader.spread(program, [*[None] * program.constants, *inputs])
    state = sum(_bytes(program, spread, one, sizes) for one in program.inputs)
    peak, gathered, together, work, moved, traffic = _measure(program, spread, sizes, combined)
    # The operands of one all-reduce and its results are two blocks without gaps, and so is what is gathered first.
    working = max(int(_GAPS * peak) + gathered, 2 * together)
    for argument, left in zip(program.inputs[program.constants :], program.outputs):
        traffic += _regather(program, spread, argument, left, sizes)
    return Needs(state, working, work, *moved, tuple(traffic))


def _bytes(program: Trace, spread: Spread, array: int, sizes: Sequence[int]) -> int:
    return program.arrays[array].bytes // shards(spread.divisions[array], sizes)


def _regather(
    program: Trace, spread: Spread, argument: int, left: int | None, sizes: Sequence[int]
) -> list[Traffic]:
    """The all-gather of a new parameter that lies whole, where its update was computed in shards."""
    if left is None or program.arrays[argument] != program.arrays[left]:
        return []
    bits = sum(spread.divisions[left]) & ~sum(spread.divisions[argument])
    return [Traffic("all-gather", bits, _bytes(program, spread, argument, sizes), -1)] if bits else []


def _measure(
    program: Trace, spread: Spread, sizes: Sequence[int], combined: bool
) -> tuple[int, int, int, float, tuple[float, float], list[Traffic]]:
    """(most bytes at once, bytes of parameters gathered first beside them, bytes of gradients that are summed in one,
    products, (bytes that these move, that all else moves), collectives)."""
    stored, twice = _in_memory(program, spread), _made_twice(program)
    moments = _moments(program)
    if combined:
        moments = _gathers_first(program, spread, moments)
    last = _last_uses(program, stored, moments)
    outputs = {one for one in program.outputs if one is not None}
    live = peak = 0
    held, held_then = 0, 0  # bytes of what is gathered before all else: now, and at the peak
    released: dict[int, int] = {}
    work, moved = 0.0, [0.0, 0.0]  # bytes of products, of all else
    traffic = list(spread.traffic)
    freed: dict[int, list[int]] = {}
    copies = _copies(program, spread, moments, combined)
    sums = _gradients(program, spread) if combined else {}
    together = 0
    for index in sorted(range(len(program.operations)), key=lambda one: moments[one]):
        operation, moment = program.operations[index], moments[index]
        inner = 0
        for size, end in copies.pop(moment, ()):
            live += size
            freed.setdefault(end, []).append(size)
        if operation.bodies:
            inner, flops, bytes_inside, more = _loop(operation, spread.bodies[index], sizes, index)
            work, traffic = work + flops, traffic + more
            moved = [moved[0] + bytes_inside[0], moved[1] + bytes_inside[1]]
        bits = spread.divisions[operation.results[0]]
        count = products(operation, program)
        if count:
            sums_over = [one.bits for one in spread.traffic if one.operation == index and one.kind in _SUMS]
            work += count / shards((*bits, *sums_over), sizes)
        dying = freed.pop(moment, [])
        size = written = 0
        for result in operation.results:
            if result not in stored:
                continue
            bytes_made = _bytes(program, spread, result, sizes) * (1 + (result in twice))
            if result in outputs:  # over what the step was given
                written += bytes_made
                continue
            if result in sums:
                together += sums[result]
                continue
            if moment < 0:
                held += bytes_made
                released[last[result]] = released.get(last[result], 0) + bytes_made
                continue
            size += bytes_made
            if last[result] > moment:
                freed.setdefault(last[result], []).append(bytes_made)
        if size or written or operation.name not in FUSED:
            read = {one for one in operation.operands if one is not None and one in stored}
            moved[0 if count else 1] += (
                size + written + sum(_bytes(program, spread, one, sizes) for one in read)
            )
        if operation.name in FUSED and size in dying:  # written over an operand that is not read again
            dying.remove(size)
            live -= size
        live += size
        if _GAPS * (live + inner + together) + held > _GAPS * peak + held_then:
            peak, held_then = live + inner + together, held
        held -= released.pop(moment, 0)
        live -= sum(dying)
        live -= sum(
            _bytes(program, spread, result, sizes) * (1 + (result in twice))
            for result in operation.results
            if moment >= 0
            and result in stored
            and result not in outputs
            and result not in sums
            and last[result] <= moment
        )
    return peak, held_then, together, work, (moved[0], moved[1]), traffic


def _copies(
    program: Trace, spread: Spread, moments: Sequence[int], combined: bool
) -> dict[int, list[tuple[int, int]]]:
    """What products take as copies: by the moment at which a copy is made, its bytes and the moment of the product. A
    CPU's compiler makes a copy as soon as it can, so that those for the backward pass lie there from the forward pass
    on; others make it where it is read."""
    ready = [-1] * len(program.arrays)
    for operation, moment in zip(program.operations, moments):
        for result in operation.results:
            ready[result] = moment
    copies: dict[int, list[tuple[int, int]]] = {}
    for index, operands in spread.copies.items():
        for operand, size in operands:
            begins = ready[operand] if combined and ready[operand] >= 0 else moments[index]
            copies.setdefault(begins, []).append((size, moments[index]))
    if combined:
        for index, size in _turned_kernels(program, spread):
            copies.setdefault(min(moments), []).append((size, moments[index]))
    return copies


def _turned_kernels(program: Trace, spread: Spread) -> list[tuple[int, int]]:
    """The convolutions for which a CPU's compiler turns a kernel that is a parameter into its own order of dimensions,
    and the bytes of that copy. They hang on parameters alone, so all of them are made at the start. (What is gathered
    first is gathered into such a copy.)"""
    early = set(program.inputs)
    kernels = []
    for index, operation in enumerate(program.operations):
        gathers = any(one in spread.gathered for one in operation.results)
        if (
            operation.name in FUSED
            and not gathers
            and all(one in early for one in operation.operands if one is not None)
        ):
            early.update(operation.results)
        elif operation.name == "conv_general_dilated" and operation.operands[1] in early:
            order = operation.parameters["dimension_numbers"].rhs_spec  # type: ignore[attr-defined]
            if order[:2] != (len(order) - 1, len(order) - 2):
                kernels.append((index, program.arrays[operation.operands[1]].bytes))
    return kernels


def _loop(
    operation: Equation, spreads: Sequence[Spread], sizes: Sequence[int], index: int
) -> tuple[int, float, tuple[float, float], list[Traffic]]:
    """Of a loop: its body once in memory, and as often as it runs in time; of a branch the dearest one."""
    times = int(operation.parameters.get("length", 1) or 1)  # type: ignore[call-overload]
    bodies = operation.bodies[-1:] if operation.name == "while" else operation.bodies
    summed = [_measure(body, spread, sizes, False) for body, spread in zip(bodies, spreads)]
    working, _, _, work, moved, traffic = max(summed, key=lambda one: one[0])
    repeated = [Traffic(one.kind, one.bits, one.bytes * times, index) for one in traffic]
    return working, work * times, (moved[0] * times, moved[1] * times), repeated


def _in_memory(program: Trace, spread: Spread) -> set[int]:
    """The arrays that are written to memory; all others are computed where they are read."""
    consumers, twice = program.consumers, _made_twice(program)
    result: set[int] = set(program.inputs)
    required: set[int] = {one for one in program.outputs if one is not None}
    readers = [0] * len(program.arrays)  # operations that read an array or one of its aliases
    times = [1] * len(program.arrays)  # how often what computes it where it is read does so
    for operation in reversed(program.operations):
        alias = operation.name in _ALIASES
        first = operation.results[0]
        if first in twice:
            times[first] = 2
        elif operation.name not in FUSED or first in required:
            times[first] = 1
        for source in operation.operands if times[first] > 1 else ():
            if source is not None:
                times[source] = 2
        for position, target in enumerate(operation.results):
            if alias and len(operation.results) > 1:
                sources = [operation.operands[position]]
            else:
                sources = list(operation.operands)
            for source in sources:
                if source is None:
                    continue
                if alias:
                    readers[source] += max(1, readers[target])
                    if target in required:
                        required.add(source)
                elif position == 0:
                    readers[source] += times[first]
                    if operation.name not in FUSED and operation.name not in _READERS:
                        required.add(source)
    costly: set[int] = set()
    for operation in program.operations:
        fused = operation.name in FUSED
        for target in operation.results:
            if not fused or target in spread.gathered:
                result.add(target)
                continue
            dear = operation.name in _COSTLY or any(
                one in costly for one in operation.operands if one is not None and one not in result
            )
            if operation.name in _ALIASES:
                if dear:
                    costly.add(target)
                continue
            folded = operation.name == "transpose" and all(
                program.operations[one].name in ("dot_general", "conv_general_dilated", *_ALIASES)
                for one in consumers[target]
            )
            if folded and target in required:  # the product that reads it does it
                continue
            if target in required or (dear and readers[target] > 1) or _is_slice(operation, target, spread):
                result.add(target)
            elif dear:
                costly.add(target)
    return result


@functools.lru_cache(maxsize=16)  # the same for every mesh
def _made_twice(program: Trace) -> set[int]:
    """What is summed over its samples and goes behind the barrier of a checkpoint into a product too, as the gradient
    of a layer's output does: XLA sums the array and takes its rows as a matrix, each by a computation of its own."""
    result: set[int] = set()
    for number, operation in enumerate(program.operations):
        array = operation.results[0]
        if operation.name not in FUSED or operation.name in _ALIASES or len(program.arrays[array].shape) < 3:
            continue
        consumers, pending = [], [array]
        while pending:
            for index in program.consumers[pending.pop()]:
                consumers.append(index)
                if program.operations[index].name in _ALIASES:
                    pending += program.operations[index].results
        products = [one for one in consumers if program.operations[one].name == "dot_general"]
        behind = any(
            one in inside and number not in inside for inside in program.recomputed for one in products
        )
        if behind and any(program.operations[one].name == "reduce_sum" for one in consumers):
            result.add(array)
    return result


def _is_slice(operation: Equation, target: int, spread: Spread) -> bool:
    """Whether a device computes its shard alone of what is made of a sum that all devices have: it keeps the shard, and
    not the sum, for the backward pass."""
    shard = functools.reduce(or_, spread.divisions[target], 0)
    return any(
        one in spread.summed and functools.reduce(or_, spread.divisions[one], 0) != shard
        for one in operation.operands
        if one is not None
    )


@functools.lru_cache(maxsize=16)  # the same for every mesh
def _moments(program: Trace) -> list[int]:
    """When each operation runs: in the order of the program, but for updates of the state, which follow their
    gradients at once."""
    used = _inputs_of_products(program)
    ready = [0] * len(program.arrays)
    moments = []
    for index, operation in enumerate(program.operations):
        moment = index
        early = operation.name in FUSED or operation.name in _READERS
        if early and not any(one in used for one in operation.results):
            moment = max((ready[one] for one in operation.operands if one is not None), default=0)
        moments.append(moment)
        for result in operation.results:
            ready[result] = moment
    return moments


def _gathers_first(program: Trace, spread: Spread, moments: Sequence[int]) -> list[int]:
    """The moments of a CPU's compiler, which gathers divided parameters before all else, those for the backward pass
    too: they lie there until they are read."""
    early = set(program.inputs)
    result = list(moments)
    for index, operation in enumerate(program.operations):
        if operation.name == "optimization_barrier":  # each result waits for its own operand alone
            early.update(target for one, target in zip(operation.operands, operation.results) if one in early)
        gathers = any(one in spread.gathered for one in operation.results)
        if operation.name in ("sharding_constraint", *_ALIASES) and operation.operands[0] in early:
            if gathers:
                result[index] = -1
            else:
                early.update(operation.results)
    return result


def _last_uses(program: Trace, stored: set[int], moments: Sequence[int]) -> list[int]:
    """For each array the last moment at which it is needed in memory: itself, or for what is computed from it then."""
    last = [-1] * len(program.arrays)
    for index in range(len(program.operations) - 1, -1, -1):
        operation = program.operations[index]
        uses = [last[one] for one in operation.results if one not in stored]
        use = max([moments[index] if any(one in stored for one in operation.results) else -1, *uses])
        for operand in operation.operands:
            if operand is not None:
                last[operand] = max(last[operand], use)
    return last


def _gradients(program: Trace, spread: Spread) -> dict[int, int]:
    """The arrays that a CPU's compiler sums over samples in one all-reduce, each with its bytes: those that no product
    takes afterwards. They are whole even where devices keep a shard of them alone."""
    used = _inputs_of_products(program)
    summed: dict[int, int] = {}
    for one in spread.traffic:
        operation = program.operations[one.operation]
        sums = one.kind in _SUMS
        if sums and not operation.bodies and one.bits & _SAMPLES:
            for target in operation.results:
                if target not in used:
                    summed[target] = max(one.bytes, summed.get(target, 0))
    return summed


@functools.lru_cache(maxsize=16)
def _inputs_of_products(program: Trace) -> set[int]:
    """The arrays that a later product or loop is computed from."""
    used: set[int] = set()
    for operation in reversed(program.operations):
        product = operation.name in ("dot_general", "conv_general_dilated") or operation.bodies
        if product or any(one in used for one in operation.results):
            used.update(one for one in operation.operands if one is not None)
    return used
