"""Sharding over the devices of this process: ProcessMesh, placements, shard_tensor, reshard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from framework.core.errors import DeviceError
from framework.paddle._kernel.arguments import DTypeLike, Function, TensorLike
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor, as_array, wrap
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle.optimizer.base import Optimizer


class Placement:
    """Where a Tensor lies along one axis of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        return False

    def is_replicated(self) -> bool:
        return False

    def is_partial(self) -> bool:
        return False


class Replicate(Placement):
    """Whole, on each device."""

    def is_replicated(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Replicate()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Replicate)

    def __hash__(self) -> int:
        return hash("Replicate")


class Shard(Placement):
    """Cut along axis `dim`."""

    def __init__(self, dim: int) -> None:
        self._dim = dim

    def get_dim(self) -> int:
        return self._dim

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or dim == self._dim

    def __repr__(self) -> str:
        return f"Shard(dim={self._dim})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Shard) and other._dim == self._dim

    def __hash__(self) -> int:
        return hash(("Shard", self._dim))


class ReduceType:
    """How parts become the whole."""

    kRedSum = 0
    kRedMax = 1
    kRedMin = 2
    kRedProd = 3
    kRedAvg = 4
    kRedAny = 5
    kRedAll = 6


class Partial(Placement):
    """Each device has a summand. XLA keeps such values inside compiled programs only."""

    def __init__(self, reduce_type: int = ReduceType.kRedSum) -> None:
        self.reduce_type = reduce_type

    def is_partial(self) -> bool:
        return True

    def __repr__(self) -> str:
        return "Partial(reduce_type=SUM)"


class ProcessMesh:
    """Devices in a grid: `ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])`. The numbers are those of devices."""

    def __init__(
        self,
        mesh: np.ndarray | Sequence[int] | Sequence[Sequence[int]] | None = None,
        dim_names: Sequence[str] | None = None,
        shape: Sequence[int] | None = None,
        process_ids: Sequence[int] | None = None,
    ) -> None:
        if mesh is None:
            if shape is None or process_ids is None:
                raise ShapeError(
                    "a mesh is given, or its shape and its devices", where="ProcessMesh", received="neither"
                )
            mesh = np.asarray(process_ids).reshape(shape)
        self._mesh = np.asarray(mesh)
        names = [f"d{axis}" for axis in range(self._mesh.ndim)] if dim_names is None else list(dim_names)
        if len(names) != self._mesh.ndim or len(set(names)) != len(names):
            raise ShapeError(
                "each axis has a name of its own",
                where="ProcessMesh",
                received=names,
                allowed=f"{self._mesh.ndim} names",
            )
        self._dim_names = names

    @property
    def mesh(self) -> np.ndarray:
        return self._mesh

    @property
    def dim_names(self) -> list[str]:
        return self._dim_names

    @property
    def shape(self) -> list[int]:
        return list(self._mesh.shape)

    @property
    def ndim(self) -> int:
        return self._mesh.ndim

    @property
    def size(self) -> int:
        return self._mesh.size

    @property
    def process_ids(self) -> list[int]:
        return self._mesh.reshape(-1).tolist()

    @property
    def unique_id(self) -> int:
        return hash(self) & 0x7FFFFFFF

    def get_dim_size(self, dim_name: str) -> int:
        return self._mesh.shape[self._dim_names.index(dim_name)]

    dim_size = get_dim_size

    def get_mesh_with_dim(self, dim_name: str) -> ProcessMesh:
        """The same devices with this axis first."""
        axis = self._dim_names.index(dim_name)
        names = [dim_name, *(name for name in self._dim_names if name != dim_name)]
        return ProcessMesh(np.moveaxis(self._mesh, axis, 0), names)

    def contains(self, id: int) -> bool:
        return id in self.process_ids

    def empty(self) -> bool:
        return not self._mesh.size

    def jax_mesh(self) -> Mesh:
        """The mesh of jax.

        Raises:
            DeviceError: a device is not there.
        """
        devices = jax.devices()
        if self._mesh.size and self._mesh.max() >= len(devices):
            raise DeviceError(
                "the mesh has more devices than there are",
                where="ProcessMesh",
                received=self._mesh.tolist(),
                allowed=f"0 to {len(devices) - 1}",
            )
        return Mesh(np.asarray(devices)[self._mesh], tuple(self._dim_names))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ProcessMesh)
            and self._dim_names == other._dim_names
            and np.array_equal(self._mesh, other._mesh)
        )

    def __hash__(self) -> int:
        return hash((tuple(self._dim_names), self._mesh.shape, self._mesh.tobytes()))

    def __repr__(self) -> str:
        return f"{{shape: {self.shape}, process_ids: {self.process_ids}, dim_names: {self.dim_names}}}"


def _sharding(mesh: ProcessMesh, placements: Sequence[Placement], ndim: int) -> NamedSharding:
    axes: list[list[str]] = [[] for _ in range(ndim)]
    for name, placement in zip(mesh.dim_names, placements, strict=False):
        if isinstance(placement, Shard):
            axes[placement.get_dim()].append(name)
        elif placement.is_partial():
            raise DeviceError(
                "summands are kept inside compiled programs only",
                where="paddle.distributed.shard_tensor",
                received=repr(placement),
                allowed="Shard(dim), Replicate()",
            )
    spec = PartitionSpec(*(tuple(names) if len(names) > 1 else names[0] if names else None for names in axes))
    return NamedSharding(mesh.jax_mesh(), spec)


def shard_tensor(
    data: TensorLike,
    mesh: ProcessMesh,
    placements: Sequence[Placement],
    dtype: DTypeLike | None = None,
    place: object = None,
    stop_gradient: bool | None = None,
) -> Tensor:
    """The data cut over the devices of a mesh, one placement for each of its axes; a parameter stays one."""
    if isinstance(data, Tensor) and dtype is None:
        tensor = data if not data.stop_gradient or data.persistable else wrap(data._value)
    else:
        tensor = wrap(as_array(data, dtype))
    tensor._value = _put(tensor, mesh, placements)
    if stop_gradient is not None:
        tensor.stop_gradient = stop_gradient
    return tensor


def reshard(dist_tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> Tensor:
    """The same values, cut otherwise."""
    return wrap(_put(dist_tensor, mesh, placements))


def _put(tensor: Tensor, mesh: ProcessMesh, placements: Sequence[Placement]) -> jax.Array:
    """The array on the mesh, in memory of its own: an optimizer may write into that of a Tensor that it moves."""
    return jax.device_put(tensor._value, _sharding(mesh, placements, tensor.ndim), may_alias=False)


def dtensor_from_fn(
    fn: Callable[..., Tensor],
    mesh: ProcessMesh,
    placements: Sequence[Placement],
    *args: object,
    **kwargs: object,
) -> Tensor:
    """What `fn` makes, cut over a mesh."""
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def shard_layer(
    layer: Layer,
    process_mesh: ProcessMesh,
    shard_fn: Callable[[str, Layer, ProcessMesh], None] | None = None,
    input_fn: Callable[..., object] | None = None,
    output_fn: Callable[..., object] | None = None,
) -> Layer:
    """Shard the parameters of a layer by `shard_fn(name, sublayer, mesh)`, by default whole on each device; `input_fn`
    and `output_fn` change what goes in and out."""
    for name, sublayer in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sublayer, process_mesh)
    whole = [Replicate()] * process_mesh.ndim
    for tensor in (*layer.parameters(), *layer.buffers()):
        if not isinstance(tensor._value.sharding, NamedSharding):
            shard_tensor(tensor, process_mesh, whole, stop_gradient=tensor.stop_gradient)
    if input_fn is not None:
        layer.register_forward_pre_hook(lambda _, inputs: input_fn(inputs, process_mesh))
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def shard_optimizer(optimizer: Optimizer, shard_fn: Function | None = None) -> Optimizer:
    """The optimizer: its state is made from parameters and lies where they lie."""
    return optimizer
