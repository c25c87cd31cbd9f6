"""Specifications of how a Tensor is cut over a mesh, by names of its axes and by their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.mesh import ProcessMesh


def convert_to_dims_mapping(shard_spec: Sequence[str | None], process_mesh: ProcessMesh) -> list[int]:
    """The number of the axis of the mesh that cuts each axis of a Tensor; -1: none does, or it has one process."""
    names, sizes = process_mesh.dim_names, process_mesh.shape
    numbers = [-1 if name is None else names.index(name) for name in shard_spec]
    return [-1 if number == -1 or sizes[number] == 1 else number for number in numbers]


def convert_to_shard_spec(dims_mapping: Sequence[int], process_mesh: ProcessMesh) -> list[str | None]:
    """The name of the axis of the mesh for each number; None for -1."""
    return [None if number == -1 else process_mesh.dim_names[number] for number in dims_mapping]


_complete(__name__)
