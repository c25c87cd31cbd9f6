"""Linear layers, embeddings and a loss of which each process of a tensor-parallel group holds a part."""

from __future__ import annotations

from typing import Any, cast

from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Parameter, Tensor
from framework.paddle.autograd import PyLayer
from framework.paddle.distributed.collective import Group, get_group
from framework.paddle.distributed.env import get_rank
from framework.paddle.distributed.fleet.layers.mpu.mp_ops import (
    _c_concat,
    _c_identity,
    _c_lookup_table,
    _c_split,
    _mp_allreduce,
)
from framework.paddle.distributed.fleet.topology import current_groups
from framework.paddle.nn import functional as F
from framework.paddle.nn.layer import Layer


def _model_group(group: Group | None) -> Group:
    """The group that is given, else that of `fleet.init`, else the world."""
    if group is not None:
        return group
    if (groups := current_groups()) is not None:
        return groups.get_model_parallel_group()
    return get_group(0)  # type: ignore[return-value]


def _share(size: int, group: Group, where: str) -> int:
    """Raises: ShapeError, where a size cannot be divided among the group."""
    if size % group.nranks:
        raise ShapeError(
            "the size cannot be divided among the processes",
            where=f"fleet.meta_parallel.{where}",
            received=f"{size} for {group.nranks} processes",
            allowed=f"a multiple of {group.nranks}",
        )
    return size // group.nranks


def _mark(parameter: Parameter | None, divided: bool) -> Parameter:
    """Say of a parameter whether others hold the rest of it, for clipping and for the values at the start."""
    assert parameter is not None  # no attribute was False
    parameter.is_distributed = divided
    return parameter


class MPScale(PyLayer):
    """The Tensor over `mp_degree`; the gradient passes as it is."""

    @staticmethod
    def forward(ctx: object, *args: object, **kwargs: object) -> Tensor:
        tensor, degree = cast("tuple[Tensor, int]", args)
        return tensor / degree

    @staticmethod
    def backward(ctx: object, *args: object) -> Tensor:
        return cast("Tensor", args[0])


class InnerOverlapLinear:
    """A linear layer whose input's gradient is summed over the group. What it overlaps in Paddle, XLA plans here."""

    @staticmethod
    def apply(
        x: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        fuse_matmul_bias: bool,
        mp_async_allreduce: bool,
        mp_skip_c_identity: bool,
        mp_fused_linear_param_grad_add: bool,
        model_parallel_group: Group,
    ) -> Tensor:
        """x @ weight + bias; the settings but the group change nothing."""
        return F.linear(_c_identity(x, model_parallel_group), weight, bias)


class _Parallel(Layer):
    """What the layers below share: the group of processes that hold the parts."""

    def __init__(self, group: Group | None, name: str | None) -> None:
        super().__init__(name)
        self.model_parallel_group = _model_group(group)
        self.world_size = self.model_parallel_group.nranks
        self.is_mp = self.world_size > 1


class ColumnParallelLinear(_Parallel):
    """Linear [in_features, out_features] of which each process has out_features / processes columns.

    The output is joined with `gather_output`, else it is this process's part. `has_bias` is False by default, as in
    Paddle.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        has_bias: bool | None = None,
        gather_output: bool = True,
        fuse_matmul_bias: bool = False,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(mp_group, name)
        columns = _share(out_features, self.model_parallel_group, "ColumnParallelLinear")
        self.gather_output, self._name = gather_output, name
        self.output_size_per_partition = columns
        self.weight = _mark(self.create_parameter([in_features, columns], weight_attr), self.is_mp)
        self.bias = _mark(self.create_parameter([columns], is_bias=True), self.is_mp) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        if self.is_mp:
            x = _c_identity(x, self.model_parallel_group)
        out = F.linear(x, self.weight, self.bias)
        return _c_concat(out, self.model_parallel_group) if self.gather_output and self.is_mp else out


class RowParallelLinear(_Parallel):
    """Linear [in_features, out_features] of which each process has in_features / processes rows; the products are
    summed. With `input_is_parallel` the input is this process's part already."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        weight_attr: Any = None,
        has_bias: bool = True,
        input_is_parallel: bool = False,
        fuse_matmul_bias: bool = False,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(mp_group, name)
        rows = _share(in_features, self.model_parallel_group, "RowParallelLinear")
        self.input_is_parallel, self._name = input_is_parallel, name
        self.input_size_per_partition = rows
        self.weight = _mark(self.create_parameter([rows, out_features], weight_attr), self.is_mp)
        self.bias = self.create_parameter([out_features], is_bias=True) if has_bias else None

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_mp:
            return F.linear(x, self.weight, self.bias)
        if not self.input_is_parallel:
            x = _c_split(x, self.model_parallel_group)
        out = _mp_allreduce(F.linear(x, self.weight), group=self.model_parallel_group)
        return out if self.bias is None else out + self.bias


class VocabParallelEmbedding(_Parallel):
    """Embedding of which each process has num_embeddings / processes rows."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        weight_attr: Any = None,
        mp_group: Group | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(mp_group, name)
        rows = _share(num_embeddings, self.model_parallel_group, "VocabParallelEmbedding")
        self.vocab_start_index = self.model_parallel_group.get_group_rank(get_rank()) * rows
        self.num_embeddings, self.rows = num_embeddings, rows
        self.weight = _mark(self.create_parameter([rows, embedding_dim], weight_attr), self.is_mp)

    def forward(self, x: Tensor) -> Tensor:
        if not self.is_mp:
            return F.embedding(x, self.weight)
        vectors = _c_lookup_table(self.weight, x, self.vocab_start_index)
        return _mp_allreduce(vectors, group=self.model_parallel_group)


class ParallelCrossEntropy(_Parallel):
    """Softmax cross entropy [..., 1] of logits [..., classes / processes], whose parts the processes hold, and labels
    [...] or [..., 1]."""

    def __init__(
        self, mp_group: Group | None = None, name: str | None = None, ignore_index: int = -100
    ) -> None:
        super().__init__(mp_group, name)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, label: Tensor) -> Tensor:
        logits = _c_concat(input, self.model_parallel_group) if self.is_mp else input
        if len(label.shape) < len(logits.shape):
            label = label.unsqueeze(-1)
        return F.cross_entropy(logits, label, reduction="none", ignore_index=self.ignore_index)
