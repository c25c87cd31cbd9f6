"""The grid of processes by kind of parallelism."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from framework.core.errors import DeviceError
from framework.core.process_state import state
from framework.paddle.distributed.collective import Group, new_group
from framework.paddle.distributed.env import get_rank, get_world_size

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
        """The grid of `hybrid_configs`; `dp_degree` takes the processes that the others leave.

        Raises:
            DeviceError: the degrees do not make up the world.
        """
        world, degree = get_world_size(), {name: int(degrees.get(name, 1)) for name in _DEGREES}
        others = math.prod(max(degree[name], 1) for name in _DEGREES[1:])
        if degree["dp_degree"] < 1:
            degree["dp_degree"] = max(1, world // others)
        dims = [max(degree[name], 1) for name in _DEGREES]
        if math.prod(dims) != world:
            raise DeviceError(
                "the degrees do not make up the processes that there are",
                where="paddle.distributed.fleet.init",
                received=f"{dict(zip(_DEGREES, dims, strict=True))}, {world} processes",
                allowed=f"degrees whose product is {world}",
                fix=f"oar launch --nproc_per_node {math.prod(dims)} SCRIPT.py",
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
        return [rank for rank, coordinate in enumerate(self._coordinates) if coordinate[axis] == index]

    def get_comm_list(self, axis_name: str) -> list[list[int]]:
        """The groups of ranks that differ along an axis only."""
        return self.get_fused_ranks([axis_name])

    def get_fused_ranks(self, fused_axis: Sequence[str]) -> list[list[int]]:
        """The groups of ranks that differ along these axes only, each in the order of the ranks."""
        fixed = [axis for axis, name in enumerate(self._names) if name not in fused_axis]
        groups: dict[tuple[int, ...], list[int]] = {}
        for rank, coordinate in enumerate(self._coordinates):
            groups.setdefault(tuple(coordinate[axis] for axis in fixed), []).append(rank)
        return list(groups.values())

    def get_rank_from_stage(self, global_rank: int, **kwargs: int) -> int:
        coordinate = dict(zip(self._names, self._coordinates[global_rank], strict=True))
        return self.get_rank(**{**coordinate, **kwargs})


class HybridCommunicateGroup:
    """The groups of this process by kind of parallelism."""

    def __init__(self, topology: CommunicateTopology) -> None:
        self._topology = topology
        self.global_rank = get_rank()
        self._coordinate = dict(
            zip(topology.get_hybrid_group_names(), topology.get_coord(self.global_rank), strict=True)
        )
        self._groups: dict[str, Group] = {}
        for axis in topology.get_hybrid_group_names():
            for ranks in topology.get_comm_list(axis):  # all processes make all groups, in one order
                group = new_group(ranks)
                if self.global_rank in ranks:
                    self._groups[axis] = group
        self._check_group = new_group(list(range(topology.world_size())))

    def topology(self) -> CommunicateTopology:
        return self._topology

    def get_parallel_mode(self) -> int:
        """One of ParallelMode: the kind that decides how a model is wrapped."""
        sizes = {axis: group.nranks for axis, group in self._groups.items()}
        if sizes["pipe"] > 1:
            return 2
        if sizes["model"] > 1:
            return 1
        if sizes["sep"] > 1:
            return 4
        return 3 if sizes["sharding"] > 1 else 0

    def get_global_rank(self) -> int:
        return self.global_rank

    def get_check_parallel_group(self, sharding: bool = False) -> Group:
        return self._check_group

    def get_rank_from_stage(self, stage_id: int, **kwargs: int) -> int:
        return self._topology.get_rank_from_stage(self.global_rank, pipe=stage_id, **kwargs)

    def get_stage_id(self) -> int:
        return self._coordinate["pipe"]

    @property
    def is_first_stage(self) -> bool:
        return self._coordinate["pipe"] == 0

    @property
    def is_last_stage(self) -> bool:
        return self._coordinate["pipe"] == self._groups["pipe"].nranks - 1

    # One method of each kind for each axis, as Paddle names them.

    def get_data_parallel_rank(self) -> int:
        return self._coordinate["data"]

    def get_data_parallel_world_size(self) -> int:
        return self._groups["data"].nranks

    def get_data_parallel_group(self) -> Group:
        return self._groups["data"]

    def get_data_parallel_group_src_rank(self) -> int:
        return self._groups["data"].ranks[0]

    def get_model_parallel_rank(self) -> int:
        return self._coordinate["model"]

    def get_model_parallel_world_size(self) -> int:
        return self._groups["model"].nranks

    def get_model_parallel_group(self) -> Group:
        return self._groups["model"]

    def get_model_parallel_group_src_rank(self) -> int:
        return self._groups["model"].ranks[0]

    def get_pipe_parallel_rank(self) -> int:
        return self._coordinate["pipe"]

    def get_pipe_parallel_world_size(self) -> int:
        return self._groups["pipe"].nranks

    def get_pipe_parallel_group(self) -> Group:
        return self._groups["pipe"]

    def get_sharding_parallel_rank(self) -> int:
        return self._coordinate["sharding"]

    def get_sharding_parallel_world_size(self) -> int:
        return self._groups["sharding"].nranks

    def get_sharding_parallel_group(self) -> Group:
        return self._groups["sharding"]

    def get_sharding_parallel_group_src_rank(self) -> int:
        return self._groups["sharding"].ranks[0]

    def get_sep_parallel_rank(self) -> int:
        return self._coordinate["sep"]

    def get_sep_parallel_world_size(self) -> int:
        return self._groups["sep"].nranks

    def get_sep_parallel_group(self) -> Group:
        return self._groups["sep"]

    def get_sep_parallel_group_src_rank(self) -> int:
        return self._groups["sep"].ranks[0]


def current_groups() -> HybridCommunicateGroup | None:
    """What `fleet.init` has made; None before it."""
    return cast(HybridCommunicateGroup | None, state.hybrid_groups)
