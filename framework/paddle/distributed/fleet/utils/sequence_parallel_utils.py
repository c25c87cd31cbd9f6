"""Sequence parallelism: outside of the divided layers each process of a tensor-parallel group holds a part of the
sequence, the first axis (Korthikanti et al., arXiv 2205.05198).
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.core.errors import DeviceError
from framework.distributed import collectives
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.autograd import PyLayer
from framework.paddle.distributed.collective import Group
from framework.paddle.distributed.env import get_rank, is_initialized
from framework.paddle.distributed.fleet.layers.mpu.mp_layers import (
    ColumnParallelLinear,
    RowParallelLinear,
    _model_group,
)
from framework.paddle.distributed.gradients import average_gradients, watch_backward
from framework.paddle.nn import functional as F
from framework.paddle.nn.layer import Layer


def _rows_of_rank(length: int, group: Group, where: str) -> slice:
    """The rows of this process. Raises: ShapeError, where a length cannot be divided among the group."""
    if length % group.nranks:
        raise ShapeError(
            "the sequence cannot be divided among the processes",
            where=f"sequence_parallel_utils.{where}",
            received=f"length {length} for {group.nranks} processes",
            allowed=f"a multiple of {group.nranks}",
        )
    rows = length // group.nranks
    start = group.get_group_rank(get_rank()) * rows
    return slice(start, start + rows)


def scatter(input: Tensor) -> Tensor:
    """The part of this process along the first axis. Raises: ShapeError, where it cannot be divided."""
    return wrap(input._value[_rows_of_rank(input.shape[0], _model_group(None), "scatter")])


def all_gather(input: Tensor) -> Tensor:
    """The rows of all processes along the first axis."""
    with x64():
        rows = collectives.all_gather(input._value, tuple(_model_group(None).ranks))
        return wrap(rows.reshape(-1, *rows.shape[2:]))


def reduce_scatter(input: Tensor) -> Tensor:
    """This process's rows of the sum over all processes. Raises: ShapeError, where they cannot be divided."""
    group = _model_group(None)
    own_rows = _rows_of_rank(input.shape[0], group, "reduce_scatter")
    with x64():
        return wrap(collectives.all_reduce(input._value, "sum", tuple(group.ranks))[own_rows])


class ScatterOp(PyLayer):
    """[s, b, h] -> [s / n, b, h]; gradients are gathered."""

    @staticmethod
    def forward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return scatter(args[0])

    @staticmethod
    def backward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return all_gather(args[0])


class GatherOp(PyLayer):
    """[s / n, b, h] -> [s, b, h]; of gradients each process takes its part."""

    @staticmethod
    def forward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return all_gather(args[0])

    @staticmethod
    def backward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return scatter(args[0])


class AllGatherOp(PyLayer):
    """[s / n, b, h] -> [s, b, h]; gradients are summed over the processes and divided."""

    @staticmethod
    def forward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return all_gather(args[0])

    @staticmethod
    def backward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return reduce_scatter(args[0])


class ReduceScatterOp(PyLayer):
    """[s, b, h] -> [s / n, b, h] of the sum over the processes; gradients are gathered."""

    @staticmethod
    def forward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return reduce_scatter(args[0])

    @staticmethod
    def backward(ctx: object, *args: Tensor) -> Tensor:  # type: ignore[override]
        return all_gather(args[0])


def mark_as_sequence_parallel_parameter(parameter: Parameter) -> None:
    """Say that each process computes the gradient of this parameter from its part of the sequence."""
    parameter.sequence_parallel = True  # type: ignore[attr-defined]


def is_sequence_parallel_parameter(parameter: Parameter) -> bool:
    """Whether it is marked so."""
    return getattr(parameter, "sequence_parallel", False)


class _GradientSum:
    """Sums the gradients of marked parameters over the group after every `accumulation_steps` backwards."""

    def __init__(self, parameters: Sequence[Parameter], group: Group, accumulation_steps: int) -> None:
        self._parameters, self._group, self._every = list(parameters), group, accumulation_steps
        self._count = 0

    def after_backward(self, leaves: Sequence[Tensor]) -> None:
        reached = {id(leaf) for leaf in leaves}
        if not any(id(parameter) in reached for parameter in self._parameters):
            return
        self._count += 1
        if self._count % self._every == 0:
            average_gradients(self._parameters, self._group, average=False)


def register_sequence_parallel_allreduce_hooks(
    model: Layer, accumulation_steps: int, fuse_sequence_parallel_allreduce: bool
) -> None:
    """Sum the gradients of marked parameters over the tensor-parallel group after every `accumulation_steps`
    backwards; they always travel together."""
    if accumulation_steps <= 0 or not is_initialized():
        return
    group = _model_group(None)
    marked = [one for one in model.parameters() if is_sequence_parallel_parameter(one)]
    if group.nranks > 1 and marked:
        total = _GradientSum(marked, group, accumulation_steps)
        model._sequence_parallel_gradients = total  # type: ignore[attr-defined]  # watched as long as the model lives
        watch_backward(total)


def is_fused_matmul_bias_supported() -> bool:
    """False: XLA fuses the bias by itself."""
    return False


def _check_fused(fuse_matmul_bias: bool, where: str) -> None:
    """Raises: DeviceError, where the kernel of one GPU is asked for, as Paddle does on a CPU."""
    if fuse_matmul_bias:
        raise DeviceError(
            "this kernel is for one GPU",
            where=where,
            received="fuse_matmul_bias=True",
            allowed="False",
            fix="leave it out: XLA fuses the bias by itself",
        )


class ColumnSequenceParallelLinear(ColumnParallelLinear):
    """Linear of a part of the sequence [s / n, b, h] to this process's columns for the whole of it [s, b, c / n]."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: object = None,
        has_bias: bool | None = None,
        gather_output: bool = True,
        fuse_matmul_bias: bool = False,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        assert gather_output is False, "If sequence_parallel is True, gather_output is False"
        _check_fused(fuse_matmul_bias, "ColumnSequenceParallelLinear")
        super().__init__(
            in_features, out_features, weight_attr, has_bias, gather_output, mp_group=mp_group, name=name
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(AllGatherOp.apply(x) if self.is_mp else x, self.weight, self.bias)


class RowSequenceParallelLinear(RowParallelLinear):
    """Linear of this process's columns [s, b, c / n] to its part of the sequence [s / n, b, h]."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: object = None,
        has_bias: bool = True,
        input_is_parallel: bool = False,
        fuse_matmul_bias: bool = False,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        assert input_is_parallel is True, "If sequence_parallel is True, input_is_parallel should be true."
        _check_fused(fuse_matmul_bias, "RowSequenceParallelLinear")
        super().__init__(
            in_features, out_features, weight_attr, has_bias, input_is_parallel, mp_group=mp_group, name=name
        )
        self.in_features, self.out_features = in_features, out_features
        if self.is_mp and self.bias is not None:
            mark_as_sequence_parallel_parameter(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_mp:
            return F.linear(x, self.weight, self.bias)
        out = ReduceScatterOp.apply(F.linear(x, self.weight))
        return out if self.bias is None else out + self.bias


_complete(__name__)
