"""Where the part of a Tensor lies that a process of a mesh has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.env import get_rank
from framework.paddle.distributed.mesh import ProcessMesh


def get_coordinator(mesh: np.ndarray | Sequence[Sequence[int]], rank: int) -> list[int] | None:
    """The place of a process in a mesh; None where it is not in it."""
    places = np.argwhere(np.asarray(mesh) == rank)
    return places[0].tolist() if len(places) else None


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], process_mesh: ProcessMesh, dims_mapping: Sequence[int]
) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """(the shape of this process's part, where it begins); (None, None) where it is not in the mesh.

    Args:
        dims_mapping: The axis of the mesh that cuts each axis of the Tensor; -1: none does.

    Raises:
        AssertionError: an axis does not divide.
    """
    sizes = process_mesh.shape
    place = get_coordinator(np.asarray(process_mesh.process_ids).reshape(sizes), get_rank())
    if place is None:
        return None, None
    shape, offset = list(global_shape), [0] * len(global_shape)
    for axis, cut in enumerate(dims_mapping):
        if cut == -1:
            continue
        assert shape[axis] % sizes[cut] == 0, f"axis {axis} of {shape[axis]} does not divide by {sizes[cut]}"
        shape[axis] //= sizes[cut]
        offset[axis] = place[cut] * shape[axis]
    return tuple(shape), tuple(offset)


def flatten_state_dict(state_dict: dict[str, object]) -> dict[str, object]:
    """The state as it is, as in Paddle 2.6."""
    return state_dict


_complete(__name__)
