"""How the arrays of a program are divided on a mesh: from its inputs on, as GSPMD carries shardings (arXiv 2105.04663).

A dimension is divided over a set of axes, written as bits. What contracts a divided dimension has a part of each sum on
every device, and is followed by an all-reduce.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_

from jax.sharding import PartitionSpec

from framework.distributed.mesh import AXES, BATCH_AXES
from framework.distributed.planning.trace import Array, Equation, Trace, split_names

Bits = tuple[int, ...]
"""The axes over which each dimension of an array is divided, as bits in the order of AXES."""
Operands = Sequence[tuple[Array, Bits]]

# What XLA makes inside the operation that reads it: it takes no memory, and costs nothing beside it.
FUSED = split_names(
    """
    abs acos acosh add add_any and asin asinh atan atan2 atanh bitcast_convert_type broadcast_in_dim cbrt
    ceil clamp convert_element_type copy copy_p cos cosh digamma div eq erf erf_inv erfc exp exp2
    expand_dims expm1 floor ge gt integer_pow iota is_finite le lgamma log log1p logistic lt max min mul
    name ne neg nextafter not or pad population_count pow pvary rem reshape rev round rsqrt select_n
    shift_left shift_right_arithmetic shift_right_logical sign sin sinh slice sqrt square squeeze
    stop_gradient sub tan tanh transpose xor real imag random_bits random_wrap random_unwrap random_fold_in
    random_seed random_split threefry2x32 optimization_barrier sharding_constraint reduce_precision split
    """
)
_SPATIAL = split_names(
    """
    slice pad rev dynamic_slice dynamic_update_slice cumsum cummax cummin cumprod cumlogsumexp sort
    reduce_window reduce_window_sum reduce_window_max reduce_window_min select_and_scatter_add
    select_and_gather_add concatenate top_k split
    """
)
_REDUCE = split_names(
    """
    reduce reduce_sum reduce_max reduce_min reduce_prod reduce_and reduce_or argmax argmin
    """
)


@dataclass(frozen=True)
class Traffic:
    """One collective: `kind` is all-gather, all-reduce, reduce-scatter or all-to-all, over the axes of `bits`. Its
    result, of a reduce-scatter its operand, has `bytes` on a device."""

    kind: str
    bits: int
    bytes: int
    operation: int


@dataclass
class Spread:
    """The division of each array of a program, and the collectives that it asks for.

    Attributes:
        divisions: By array.
        gathered: Arrays that a device has as copies of what is divided.
        laid: Gradients that come divided as their parameters are: no constraint moves them.
        summed: Sums of products over devices that all of them have, and what is computed of them alike on all.
        copies: Operands that a product takes with fewer divisions than they have, by operation: (array, bytes of the
            copy).
        bodies: Of loops and branches, by operation.
    """

    divisions: list[Bits]
    traffic: list[Traffic] = field(default_factory=list)
    gathered: set[int] = field(default_factory=set)
    laid: set[int] = field(default_factory=set)
    summed: set[int] = field(default_factory=set)
    copies: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    bodies: dict[int, list[Spread]] = field(default_factory=dict)


def bits_of(spec: PartitionSpec, rank: int) -> Bits:
    """The bits of a PartitionSpec of an array of `rank` dimensions."""
    result = []
    for one in (*spec, *([None] * (rank - len(spec)))):
        names = () if one is None else (one,) if isinstance(one, str) else one
        result.append(reduce(or_, (1 << AXES.index(name) for name in names), 0))
    return tuple(result)


def input_bits(program: Trace, specs: Sequence[PartitionSpec]) -> list[Bits]:
    """The bits of the arguments of a program."""
    arguments = program.inputs[program.constants :]
    return [bits_of(spec, len(program.arrays[one].shape)) for spec, one in zip(specs, arguments)]


def shards(bits: Sequence[int], sizes: Sequence[int]) -> int:
    """Among how many devices an array of this division is divided."""
    count = 1
    used = reduce(or_, bits, 0)
    for axis, size in enumerate(sizes):
        if used >> axis & 1:
            count *= size
    return count


class Spreader:
    """Divides the arrays of programs on one mesh.

    Args:
        sizes: Devices of each axis, in the order of AXES.
        scatter: Shapes whose gradients are summed and divided in one (reduce-scatter) over the axis fsdp, and how.
    """

    def __init__(self, sizes: Sequence[int], scatter: Mapping[tuple[int, ...], Bits] | None = None) -> None:
        self.sizes = tuple(sizes)
        self.scatter = scatter or {}
        self.present = reduce(or_, (1 << axis for axis, size in enumerate(sizes) if size > 1), 0)
        self._samples = sum(1 << AXES.index(axis) for axis in BATCH_AXES)
        self.fsdp = 1 << AXES.index("fsdp")

    def spread(self, program: Trace, inputs: Sequence[Bits | None]) -> Spread:
        """The divisions of all arrays, from those of the inputs (None: whole)."""
        result = Spread([(0,) * len(array.shape) for array in program.arrays])
        for index, bits in zip(program.inputs, inputs):
            if bits is not None:
                result.divisions[index] = self._fit(bits, program.arrays[index])
        for index, operation in enumerate(program.operations):
            self._apply(program, index, operation, result)
        self._adopt(program, result)
        return result

    def _fit(self, bits: Bits, array: Array) -> Bits:
        """Without axes of one device, axes that do not divide a dimension, and axes that were used before."""
        used, fitted = 0, []
        for one, size in zip(bits, array.shape):
            one &= self.present & ~used
            if one and size % shards((one,), self.sizes):
                one = 0
            used |= one
            fitted.append(one)
        return tuple(fitted)

    def _apply(self, program: Trace, index: int, operation: Equation, result: Spread) -> None:
        arrays, divisions = program.arrays, result.divisions
        operands = [
            (arrays[one], divisions[one]) if one is not None else (Array((), 4), ())
            for one in operation.operands
        ]
        if operation.bodies:
            self._loop(program, index, operation, operands, result)
            return
        if operation.name == "sharding_constraint":
            (target,) = operation.results
            bits = operands[0][1]
            if operation.operands[0] in result.laid:
                divisions[target] = bits
                return
            whole = tuple(one & ~self.fsdp for one in bits)
            divisions[target] = whole
            if whole != bits:
                size = arrays[target].bytes // shards(whole, self.sizes)
                result.traffic.append(Traffic("all-gather", self.fsdp, size, index))
                result.gathered.add(target)
            return
        rule = _RULES.get(operation.name)
        first = arrays[operation.results[0]]
        if operation.name == "optimization_barrier":
            for (_, bits), target in zip(operands, operation.results):
                divisions[target] = bits
            return
        if rule is not None:
            bits, partial = rule(operation.parameters, operands, first)
        elif operation.name in _REDUCE:
            bits, partial = _reduce(operation.parameters, operands, first)
        elif operation.name in _SPATIAL:
            bits, partial = _spatial(operands, first), 0
        else:
            bits, partial = _elementwise(operands, first), 0
        partial &= self.present
        if operation.name == "gather" and partial & reduce(or_, bits, 0):
            # Samples ask the devices that have the rows of a table: nothing is summed, and each keeps its own.
            bits, partial = self._fit(bits, first), 0
            size = first.bytes // shards(bits, self.sizes)
            result.traffic.append(Traffic("all-to-all", reduce(or_, operands[0][1], 0), size, index))
        if operation.name in ("scatter_add", "scatter-add"):
            bits, partial = self._divide_columns(operation, bits, partial, operands, first, index, result)
        if operation.name in ("dot_general", "conv_general_dilated"):
            partial = self._gather_contracted(operation, bits, partial, operands, index, result)
        if operation.name == "dot_general":
            bits = self._gather_free(operation, bits, operands, index, result)
        bits = self._fit(tuple(one & ~partial for one in bits), first)
        for target in operation.results:
            fits = arrays[target].shape == first.shape
            divisions[target] = bits if fits else (0,) * len(arrays[target].shape)
        if partial:
            self._sum(partial, first, bits, index, result)
            if partial & ~self._samples and operation.name == "dot_general":
                result.summed.update(operation.results)
        elif operation.name in FUSED and any(
            one in result.summed and reduce(or_, divisions[one], 0) == reduce(or_, bits, 0)
            for one in operation.operands
            if one is not None
        ):
            result.summed.update(operation.results)

    def _divide_columns(
        self,
        operation: Equation,
        bits: Bits,
        partial: int,
        operands: Operands,
        table: Array,
        index: int,
        result: Spread,
    ) -> tuple[Bits, int]:
        """The gradient of a table that lies by columns: each device gets the ids of all samples and its columns of what
        is added, and no sum over devices is left."""
        stored = self.scatter.get(table.shape)
        inserted = operation.parameters["dimension_numbers"].inserted_window_dims  # type: ignore[attr-defined]
        if stored is None or not partial & self.fsdp:
            return bits, partial
        columns = [axis for axis, one in enumerate(stored) if one & self.fsdp and axis not in inserted]
        if not columns:
            return bits, partial
        (ids, of_ids), (updates, of_updates) = operands[1], operands[2]
        whole = tuple(one & ~self.fsdp for one in of_ids)
        size = ids.bytes // shards(whole, self.sizes)
        result.traffic.append(Traffic("all-gather", self.fsdp, size, index))
        size = updates.bytes // shards(of_updates, self.sizes)
        result.traffic.append(Traffic("all-to-all", self.fsdp, size, index))
        result.laid.add(operation.results[0])
        bits = tuple(one | (self.fsdp if axis in columns else 0) for axis, one in enumerate(bits))
        return bits, partial & ~self.fsdp

    def _gather_contracted(
        self, operation: Equation, bits: Bits, partial: int, operands: Operands, index: int, result: Spread
    ) -> int:
        """The axes that stay sums, where an axis divides both what is contracted of one operand and what the other
        gives to the result: the first is gathered."""
        both = partial & reduce(or_, bits, 0) & ~self._samples
        if not both:
            return partial
        for position, axes in enumerate(_contracted(operation)):
            if any(operands[position][1][axis] & both for axis in axes):
                self._gather(operation, position, both, operands, index, result)
        return partial & ~both

    def _gather_free(
        self, operation: Equation, bits: Bits, operands: Operands, index: int, result: Spread
    ) -> Bits:
        """The division of a product where an axis divides what both operands give to the result, as in the gradient of
        a weight: what the weight's own product has gathered is gathered again, else the smaller operand."""
        free = _free(operation, operands)
        both = reduce(and_, (reduce(or_, (operands[i][1][axis] for axis in free[i]), 0) for i in (0, 1)))
        both &= self.present & ~self._samples
        if not both:
            return bits
        before = {one for copies in result.copies.values() for one, _ in copies}
        again = [i for i in (0, 1) if operation.operands[i] in before]
        which = again[0] if len(again) == 1 else int(operands[1][0].bytes < operands[0][0].bytes)
        self._gather(operation, which, both, operands, index, result)
        first = len(bits) - len(free[1]) if which else len(bits) - len(free[0]) - len(free[1])
        gathered = range(first, first + len(free[which]))
        return tuple(one & ~both if axis in gathered else one for axis, one in enumerate(bits))

    def _gather(
        self, operation: Equation, position: int, bits: int, operands: Operands, index: int, result: Spread
    ) -> None:
        array, division = operands[position]
        size = array.bytes // shards(tuple(one & ~bits for one in division), self.sizes)
        result.traffic.append(Traffic("all-gather", bits, size, index))
        operand = operation.operands[position]
        if operand is not None:
            result.copies.setdefault(index, []).append((operand, size))

    def _sum(self, partial: int, array: Array, bits: Bits, index: int, result: Spread) -> None:
        size = array.bytes // shards(bits, self.sizes)
        if partial & self.fsdp and array.shape in self.scatter:
            result.traffic.append(Traffic("reduce-scatter", self.fsdp, size, index))
            partial &= ~self.fsdp
            size //= shards((self.fsdp,), self.sizes)
        if partial:
            result.traffic.append(Traffic("all-reduce", partial, size, index))

    def _loop(
        self,
        program: Trace,
        index: int,
        operation: Equation,
        operands: Sequence[tuple[Array, Bits]],
        result: Spread,
    ) -> None:
        arguments = [bits for _, bits in operands]
        values = operation.parameters
        if operation.name == "scan":
            constants, carries = int(values["num_consts"]), int(values["num_carry"])  # type: ignore[call-overload]
            inner = [
                *arguments[: constants + carries],
                *(bits[1:] for bits in arguments[constants + carries :]),
            ]
            body = operation.bodies[0]
            spread = self.spread(body, [*[None] * body.constants, *inner])
            outputs = [spread.divisions[one] if one is not None else () for one in body.outputs]
            outputs = [*outputs[:carries], *((0, *bits) for bits in outputs[carries:])]
            spreads = [spread]
        elif operation.name == "while":
            skipped = int(values["cond_nconsts"])  # type: ignore[call-overload]
            body = operation.bodies[-1]
            spread = self.spread(body, [*[None] * body.constants, *arguments[skipped:]])
            outputs = [spread.divisions[one] if one is not None else () for one in body.outputs]
            spreads = [spread]
        else:
            spreads = [
                self.spread(one, [*[None] * one.constants, *arguments[1:]]) for one in operation.bodies
            ]
            outputs = [
                spreads[0].divisions[one] if one is not None else () for one in operation.bodies[0].outputs
            ]
        result.bodies[index] = spreads
        for target, bits in zip(operation.results, outputs):
            array = program.arrays[target]
            result.divisions[target] = (
                self._fit(bits, array) if len(bits) == len(array.shape) else (0,) * len(array.shape)
            )

    def _adopt(self, program: Trace, result: Spread) -> None:
        """Divide what is whole and made of nothing, such as zeros and random numbers, as it is read."""
        for operation in reversed(program.operations):
            into = operation.name in (
                "scatter_add",
                "scatter-add",
            )  # its first operand is what it writes into
            if (operation.name not in FUSED and not into) or operation.bodies:
                continue
            target = operation.results[0]
            bits, shape = result.divisions[target], program.arrays[target].shape
            if not any(bits):
                continue
            for operand in operation.operands[: 1 if into else None]:
                if operand is None or program.arrays[operand].shape != shape:
                    continue
                fixed = operand in result.gathered or operand in program.inputs
                if not fixed and not any(result.divisions[operand]):
                    result.divisions[operand] = bits


# -- rules: (parameters, operands, first result) -> (division, axes that the result is a part of a sum over) ----------

Outcome = tuple[Bits, int]


def _elementwise(operands: Operands, result: Array) -> Bits:
    bits = [0] * len(result.shape)
    for array, division in operands:
        if array.shape == result.shape:
            bits = [one | other for one, other in zip(bits, division)]
    if not any(bits):  # of another shape: samples stay samples
        for array, division in operands:
            if array.shape and result.shape and array.shape[0] == result.shape[0] and division[0]:
                bits[0] = division[0]
                break
    return tuple(bits)


def _spatial(operands: Operands, result: Array) -> Bits:
    bits = [0] * len(result.shape)
    for array, division in operands:
        if len(array.shape) != len(result.shape):
            continue
        for axis, (size, other) in enumerate(zip(array.shape, result.shape)):
            if size == other:
                bits[axis] |= division[axis]
    return tuple(bits)


def _reduce(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    _, division = operands[0]
    named = parameters["axes"] if "axes" in parameters else parameters["dimensions"]
    axes = set(named)  # type: ignore[call-overload]
    partial = reduce(or_, (division[axis] for axis in axes), 0)
    return tuple(one for axis, one in enumerate(division) if axis not in axes), partial


def _dot(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    (contract_l, contract_r), (batch_l, batch_r) = parameters["dimension_numbers"]  # type: ignore[misc]
    left, right = operands[0][1], operands[1][1]
    partial = 0
    for one, other in zip(contract_l, contract_r):
        partial |= left[one] | right[other]
    batch = [left[one] | right[other] for one, other in zip(batch_l, batch_r)]
    free_l = [left[axis] for axis in range(len(left)) if axis not in {*contract_l, *batch_l}]
    free_r = [right[axis] for axis in range(len(right)) if axis not in {*contract_r, *batch_r}]
    return (*batch, *free_l, *free_r), partial


def _conv(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    numbers = parameters["dimension_numbers"]
    lhs, rhs, out = numbers.lhs_spec, numbers.rhs_spec, numbers.out_spec  # type: ignore[attr-defined]
    left, right = operands[0][1], operands[1][1]
    bits = [0] * len(result.shape)
    bits[out[0]] = left[lhs[0]]
    grouped = int(parameters["feature_group_count"]) > 1  # type: ignore[call-overload]
    of_batch = int(parameters["batch_group_count"]) > 1  # type: ignore[call-overload]
    bits[out[1]] = right[rhs[0]] | (left[lhs[1]] if grouped else 0)
    partial = 0 if grouped else left[lhs[1]] | right[rhs[1]]
    if of_batch:  # the gradient of a grouped convolution: its samples are in the other dimension
        partial |= left[lhs[1]]
        bits[out[0]] = 0
    return tuple(bits), partial


def _broadcast(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    bits = [0] * len(result.shape)
    array, division = operands[0]
    for axis, target in enumerate(parameters["broadcast_dimensions"]):  # type: ignore[arg-type, call-overload]
        if array.shape[axis] == result.shape[target]:
            bits[target] = division[axis]
    return tuple(bits), 0


def _transpose(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    return tuple(operands[0][1][axis] for axis in parameters["permutation"]), 0  # type: ignore[attr-defined]


def _squeeze(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    gone = set(parameters["dimensions"])  # type: ignore[call-overload]
    return tuple(one for axis, one in enumerate(operands[0][1]) if axis not in gone), 0


def _reshape(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    array, division = operands[0]
    bits = [0] * len(result.shape)
    i = j = 0
    while i < len(array.shape) and j < len(result.shape):
        first, second = i, j
        left, right = array.shape[i], result.shape[j]
        while left != right:
            if left < right:
                i += 1
                if i == len(array.shape):
                    return tuple(bits), 0
                left *= array.shape[i]
            else:
                j += 1
                if j == len(result.shape):
                    return tuple(bits), 0
                right *= result.shape[j]
        target = next((one for one in range(second, j + 1) if result.shape[one] > 1), second)
        source = next((one for one in range(first, i + 1) if array.shape[one] > 1), first)
        bits[target] = division[source]
        i, j = i + 1, j + 1
    return tuple(bits), 0


def _gather(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    numbers = parameters["dimension_numbers"]
    (array, division), (_, of_ids) = operands[0], operands[1]
    sizes = parameters["slice_sizes"]
    offsets = numbers.offset_dims  # type: ignore[attr-defined]
    batching = tuple(numbers.operand_batching_dims)  # type: ignore[attr-defined]
    collapsed = {*numbers.collapsed_slice_dims, *batching}  # type: ignore[attr-defined]
    bits = [0] * len(result.shape)
    for axis, one in zip((a for a in range(len(result.shape)) if a not in offsets), of_ids):
        bits[axis] = one
    left = [axis for axis in range(len(array.shape)) if axis not in collapsed]
    for target, axis in zip(offsets, left):
        if sizes[axis] == array.shape[axis]:  # type: ignore[index]
            bits[target] |= division[axis]
    partial = reduce(or_, (division[axis] for axis in collapsed if axis not in batching), 0)
    return tuple(bits), partial


def _scatter(parameters: Mapping[str, object], operands: Operands, result: Array) -> Outcome:
    numbers = parameters["dimension_numbers"]
    (array, division), (_, of_updates) = operands[0], operands[2]
    window = numbers.update_window_dims  # type: ignore[attr-defined]
    batching = tuple(numbers.operand_batching_dims)  # type: ignore[attr-defined]
    inserted = {*numbers.inserted_window_dims, *batching}  # type: ignore[attr-defined]
    bits = list(division)
    left = [axis for axis in range(len(array.shape)) if axis not in inserted]
    for source, axis in zip(window, left):
        bits[axis] |= of_updates[source]
    over = [one for axis, one in enumerate(of_updates) if axis not in window]
    for axis, one in zip(batching, over):
        bits[axis] |= one
    partial = reduce(or_, over[len(batching) :], 0)
    return tuple(bits), partial


_RULES: dict[str, Callable[[Mapping[str, object], Operands, Array], Outcome]] = {
    "dot_general": _dot,
    "conv_general_dilated": _conv,
    "broadcast_in_dim": _broadcast,
    "transpose": _transpose,
    "squeeze": _squeeze,
    "reshape": _reshape,
    "gather": _gather,
    "scatter": _scatter,
    "scatter_add": _scatter,
    "scatter-add": _scatter,
    "scatter_max": _scatter,
    "scatter_min": _scatter,
}


def _contracted(operation: Equation) -> tuple[Sequence[int], Sequence[int]]:
    """The dimensions of both operands over which a product or a convolution sums."""
    numbers = operation.parameters["dimension_numbers"]
    if operation.name == "dot_general":
        return numbers[0]  # type: ignore[index]
    return numbers.lhs_spec[1:2], numbers.rhs_spec[1:2]  # type: ignore[attr-defined]


def _free(operation: Equation, operands: Operands) -> list[list[int]]:
    """The dimensions of both operands of a product that neither are summed over nor pair up."""
    contracted, paired = operation.parameters["dimension_numbers"]  # type: ignore[misc]
    return [
        [axis for axis in range(len(operands[i][0].shape)) if axis not in {*contracted[i], *paired[i]}]
        for i in (0, 1)
    ]


def products(operation: Equation, program: Trace) -> int:
    """Floating-point operations of a matrix product or a convolution on one device that does it all; 0 of others."""
    if operation.name == "dot_general" and operation.operands[0] is not None:
        (contract, _), _ = operation.parameters["dimension_numbers"]  # type: ignore[misc]
        left = program.arrays[operation.operands[0]].shape
        return 2 * program.arrays[operation.results[0]].numbers * math.prod(left[axis] for axis in contract)
    if operation.name == "conv_general_dilated" and operation.operands[1] is not None:
        numbers = operation.parameters["dimension_numbers"]
        kernel = program.arrays[operation.operands[1]]
        out_channels = kernel.shape[numbers.rhs_spec[0]]  # type: ignore[attr-defined]
        each = kernel.numbers // max(1, out_channels)
        return 2 * program.arrays[operation.results[0]].numbers * each // _dilation(operation)
    return 0


def _dilation(operation: Equation) -> int:
    """Of the numbers that a convolution meets one in so many is no zero between samples (lhs_dilation)."""
    return math.prod(operation.parameters["lhs_dilation"])  # type: ignore[arg-type, call-overload]
