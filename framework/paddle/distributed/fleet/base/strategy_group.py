"""Groups of processes by kind of parallelism, made from lists of their ranks: `DPGroup([[0, 1], [2, 3]])`."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.collective import Group, new_group
from framework.paddle.distributed.env import get_rank, is_initialized
from framework.paddle.distributed.fleet.layers.mpu.random import RNGStatesTracker


class StrategyGroupBase:
    """All groups of one kind, which every process makes in one order.

    Args:
        list_of_ranks: The ranks of each group.

    Raises:
        AssertionError: the processes have not met (`init_parallel_env`), or there is no group.
    """

    def __init__(self, list_of_ranks: Sequence[Sequence[int]]) -> None:
        assert is_initialized(), "call paddle.distributed.init_parallel_env() before groups are made"
        assert len(list_of_ranks), "list_of_ranks has at least one list"
        self._rank = get_rank()
        self._list_of_ranks = [list(ranks) for ranks in list_of_ranks]
        groups = [(ranks, new_group(ranks)) for ranks in self._list_of_ranks]
        self.list_of_group: list[Group] = [group for ranks, group in groups if self._rank in ranks]
        self.random_states_tracker = RNGStatesTracker()

    def add_random_seed(self, name: str, seed: int) -> None:
        """A stream of random numbers of this name."""
        self.random_states_tracker.add(name, seed)

    def get_random_states_tracker(self) -> RNGStatesTracker:
        """The streams of random numbers."""
        return self.random_states_tracker

    @property
    def world_size(self) -> int | list[int]:
        """How many processes a group has; a list where that differs."""
        sizes = [len(ranks) for ranks in self._list_of_ranks]
        return sizes[0] if len(set(sizes)) == 1 else sizes

    @property
    def group(self) -> Group | list[Group] | None:
        """The group of this process; a list where it is in several, None where it is in none."""
        groups = self.list_of_group
        return groups if len(groups) > 1 else groups[0] if groups else None


class _OneGroup(StrategyGroupBase):
    """Groups of which a process is in one at most. Raises: AssertionError: it is in several."""

    def __init__(self, list_of_ranks: Sequence[Sequence[int]]) -> None:
        super().__init__(list_of_ranks)
        assert len(self.list_of_group) < 2, f"rank {self._rank} is in several groups of {type(self).__name__}"


class DPGroup(_OneGroup):
    """Processes with equal models and different data."""


class MPGroup(_OneGroup):
    """Processes that divide Tensors of a model."""


class ShardingGroup(_OneGroup):
    """Processes that divide the state of the optimizer."""


class PPGroup(_OneGroup):
    """Processes that are the stages of a pipeline, in a ring."""

    def __init__(self, list_of_ranks: Sequence[Sequence[int]]) -> None:
        super().__init__(list_of_ranks)
        self._pairs: dict[tuple[int, int], Group] = {}
        self._ring = next((ranks for ranks in self._list_of_ranks if self._rank in ranks), [])
        if self.world_size == 1:
            return
        for ranks in self._list_of_ranks:  # all processes make all groups
            for index, rank in enumerate(ranks):
                following = ranks[(index + 1) % len(ranks)]
                self._pairs[rank, following] = new_group([rank, following])

    def _neighbor(self, step: int) -> int | None:
        ring = self._ring
        return ring[(ring.index(self._rank) + step) % len(ring)] if len(ring) > 1 else None

    @property
    def rank_of_prev_stage(self) -> int | None:
        """The rank of the stage before; None where there is one stage."""
        return self._neighbor(-1)

    @property
    def rank_of_next_stage(self) -> int | None:
        """The rank of the stage behind; None where there is one stage."""
        return self._neighbor(1)

    @property
    def p2p_groups(self) -> tuple[Group | None, Group | None, Group | None, Group | None]:
        """The groups to send to the next stage, to send to the previous one, to receive from the next one, and to
        receive from the previous one."""
        before, behind = self.rank_of_prev_stage, self.rank_of_next_stage
        if before is None or behind is None:
            return None, None, None, None
        onward, back = self._pairs.get((self._rank, behind)), self._pairs.get((before, self._rank))
        return onward, back, onward, back


_complete(__name__)
