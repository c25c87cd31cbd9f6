"""paddle.distributed.fleet.auto: annotations of how a program is divided over the devices of a mesh.

XLA divides what is compiled by where its arrays lie; the functions place arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import cast

import numpy as np
from jax.core import Tracer

from framework.core.process_state import state
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.autograd.recompute import recompute as _recompute
from framework.paddle.distributed import mesh as _mesh
from framework.paddle.distributed.auto_parallel.random import parallel_manual_seed as parallel_manual_seed
from framework.paddle.distributed.auto_parallel.strategy import Strategy as Strategy
from framework.paddle.distributed.mesh import ProcessMesh, Replicate, Shard

__all__ = ["ProcessMesh", "Strategy", "create_mesh", "get_mesh", "recompute", "shard_op", "shard_tensor"]

Spec = Sequence[str | None]


def create_mesh(mesh_dims: Sequence[tuple[str, int]]) -> ProcessMesh:
    """The mesh of the process: (name, size) of each axis over the devices 0, 1, …; `get_mesh` gives it."""
    sizes = [size for _, size in mesh_dims]
    grid = np.arange(math.prod(sizes)).reshape(sizes)
    state.auto_mesh = mesh = ProcessMesh(grid, [name for name, _ in mesh_dims])
    return mesh


def get_mesh() -> ProcessMesh | None:
    """What `create_mesh` has made; None before it."""
    return cast("ProcessMesh | None", state.auto_mesh)


def _check_mesh(mesh: ProcessMesh | None) -> ProcessMesh:
    """The mesh, else that of the process. Raises: AssertionError: there is neither."""
    mesh = get_mesh() if mesh is None else mesh
    assert mesh is not None, "Specify the process mesh argument or call create_mesh first."
    assert isinstance(mesh, ProcessMesh), f"Argument process_mesh {mesh} is not an instance of ProcessMesh"
    return mesh


def shard_tensor(
    x: Tensor, process_mesh: ProcessMesh | None = None, shard_spec: Spec | None = None
) -> Tensor:
    """Cut `x` over a mesh, in place: `shard_spec` names for each of its axes the axis of the mesh, or None.

    Raises:
        AssertionError: there is no mesh, or the specification is no list.
        ShapeError: it names no axis of the mesh, or is not as long as the shape.
    """
    mesh = _check_mesh(process_mesh)
    assert isinstance(shard_spec, list), f"Argument shard_spec {shard_spec} is not an instance of list"
    unknown = [name for name in shard_spec if name is not None and name not in mesh.dim_names]
    if unknown or len(shard_spec) != len(x.shape):
        raise ShapeError(
            "a specification names an axis of the mesh, or None, for each axis of the Tensor",
            where="fleet.auto.shard_tensor",
            received=f"{shard_spec} for a Tensor of {len(x.shape)} axes",
            allowed=f"{len(x.shape)} of {', '.join(mesh.dim_names)}, None",
        )
    axes = {name: Shard(axis) for axis, name in enumerate(shard_spec) if name is not None}
    placements = [axes.get(name, Replicate()) for name in mesh.dim_names]
    if not isinstance(x._value, Tracer):
        x._value = _mesh._put(x, mesh, placements)
    return x


def shard_op(
    op: Callable[..., object],
    process_mesh: ProcessMesh | None = None,
    in_shard_specs: Sequence[Spec | None] | None = None,
    out_shard_specs: Sequence[Spec | None] | None = None,
    **kwargs: object,
) -> Callable[..., object]:
    """The operation with its inputs and outputs cut over a mesh as the specifications say; None: as they are.

    Raises:
        AssertionError: there is no mesh.
    """
    mesh = _check_mesh(process_mesh)

    def place(values: Sequence[object], specs: Sequence[Spec | None] | None) -> None:
        for value, spec in zip(values, specs or (), strict=False):
            if isinstance(value, Tensor) and spec is not None:
                shard_tensor(value, mesh, spec)

    def call(*args: object, **named: object) -> object:
        place(args, in_shard_specs)
        result = op(*args, **named)
        place(result if isinstance(result, list | tuple) else [result], out_shard_specs)
        return result

    return call


def recompute(op: Callable[..., object]) -> Callable[..., object]:
    """The operation, which computes its activations again for the gradients in place of keeping them."""

    def call(*args: object, **kwargs: object) -> object:
        return _recompute(op, *args, **kwargs)  # type: ignore[arg-type]

    return call


__getattr__ = _resolver(__name__)
