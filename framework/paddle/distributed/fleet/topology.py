"""The grid of processes by kind of parallelism, for a world of one."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from framework.core.errors import DeviceError
from framework.paddle.distributed.collective import Group

_NAMES = ("data", "pipe", "sharding", "sep", "model")
_DEGREES = ("dp_degree", "pp_degree", "sharding_degree", "sep_degree", "mp_degree")


class CommunicateTopology:
    """Ranks in a grid with named axes."""

    def __init__(
        self,
        hybrid_group_names: Sequence[str] = ("data", "pipe", "sharding", "sep", "model"),
        dims: Sequence[int] = (1, 1, 1, 1, 1),
    ) -> None:
        self._names, self._dims = list(hybrid_group_names), list(dims)
        self._coordinates = list(itertools.product(*(range(d) for d in dims)))

    @classmethod
    def of(cls, degrees: Mapping[str, Any]) -> CommunicateTopology:
        """The grid of `hybrid_configs`.

        Raises:
            DeviceError: it needs more than one process.
        """
        dims = [max(int(degrees.get(name, 1)), 1) for name in _DEGREES]
        if any(d > 1 for d in dims):
            raise DeviceError(
                "Paddle's parallelism over processes is not there yet",
                where="paddle.distributed.fleet.init",
                received=str(dict(zip(_DEGREES, dims, strict=True))),
                allowed="degrees of 1",
                fix="shard over the devices of this process: paddle.distributed.shard_layer, shard_tensor",
            )
        return cls(_NAMES, dims)

    def get_hybrid_group_names(self) -> list[str]:
        return self._names

    def get_dim(self, axis_name: str) -> int:
        return self._dims[self._names.index(axis_name)]

    get_dim_size = get_dim

    def world_size(self) -> int:
        return len(self._coordinates)

    def get_coord(self, rank: int) -> tuple[int, ...]:
        return self._coordinates[rank]

    def get_rank(self, **args: int) -> int:
        return self._coordinates.index(tuple(args[name] for name in self._names))

    def get_axis_list(self, axis_name: str, index: int) -> list[int]:
        """The ranks at this place of an axis."""
        axis = self._names.index(axis_name)
        return [rank for rank, place in enumerate(self._coordinates) if place[axis] == index]

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The groups of ranks that differ along an axis only."""
        axis = self._names.index(axis_name)
        groups: dict[tuple[int, ...], list[int]] = {}
        for rank, place in enumerate(self._coordinates):
            groups.setdefault((*place[:axis], *place[axis + 1 :]), []).append(rank)
        return list(groups.values())

    def get_rank_from_stage(self, global_rank: int, **kwargs: int) -> int:
        place = dict(zip(self._names, self._coordinates[global_rank], strict=True))
        return self.get_rank(**{**place, **kwargs})


class HybridCommunicateGroup:
    """The groups of this process by kind of parallelism; in a world of one each has one member."""

    def __init__(self, topology: CommunicateTopology) -> None:
        self._topology = topology
        self._group = Group(0, 0, [0])

    def topology(self) -> CommunicateTopology:
        return self._topology

    def get_parallel_mode(self) -> int:
        return 0

    def get_global_rank(self) -> int:
        return 0

    def _zero(self) -> int:
        return 0

    def _one(self) -> int:
        return 1

    def _alone(self) -> Group:
        return self._group

    get_stage_id = _zero
    get_data_parallel_rank = get_model_parallel_rank = _zero
    get_sharding_parallel_rank = get_sep_parallel_rank = _zero
    get_data_parallel_group_src_rank = get_model_parallel_group_src_rank = _zero
    get_sharding_parallel_group_src_rank = get_sep_parallel_group_src_rank = _zero
    get_data_parallel_world_size = get_model_parallel_world_size = get_pipe_parallel_world_size = _one
    get_sharding_parallel_world_size = get_sep_parallel_world_size = _one
    get_data_parallel_group = get_model_parallel_group = get_pipe_parallel_group = _alone
    get_sharding_parallel_group = get_sep_parallel_group = get_dp_sep_parallel_group = _alone
    get_pp_mp_parallel_group = _alone

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        return self._group

    def get_rank_from_stage(self, stage_id: int, **kwargs: int) -> int:
        return self._topology.get_rank_from_stage(0, pipe=stage_id, **kwargs)
