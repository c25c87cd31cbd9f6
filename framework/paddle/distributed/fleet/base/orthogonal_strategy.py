"""Kinds of parallelism that are the axes of one grid of processes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.env import get_rank, get_world_size
from framework.paddle.distributed.fleet.base.strategy_group import StrategyGroupBase
from framework.paddle.distributed.fleet.topology import CommunicateTopology


class OrthogonalStrategy:
    """The groups of each kind: `OrthogonalStrategy([("dp", 2, DPGroup), ("mp", 2, MPGroup)])`.

    Args:
        list_of_strategy: (name, how many processes, class of its groups) of each axis, the last one of which changes
            fastest.
        fused_strategy_dict: Name -> axes that are one group together.
        strategy_rank_list: The ranks in the order of the grid; all of them by default.

    Raises:
        AssertionError: two axes have one name, the sizes do not make up the ranks, or an axis that is fused is none.
    """

    def __init__(
        self,
        list_of_strategy: Sequence[tuple[str, int, type[StrategyGroupBase]]],
        fused_strategy_dict: Mapping[str, Sequence[str]] | None = None,
        strategy_rank_list: Sequence[int] | None = None,
    ) -> None:
        names = [name for name, _, _ in list_of_strategy]
        sizes = [size for _, size, _ in list_of_strategy]
        ranks = list(range(get_world_size()) if strategy_rank_list is None else strategy_rank_list)
        fused = fused_strategy_dict or {}
        assert len(names) == len(set(names)), f"two strategies have one name: {names}"
        assert math.prod(sizes) == len(ranks), (
            f"strategies of {math.prod(sizes)} ranks, and {len(ranks)} ranks"
        )
        for axes in fused.values():
            assert set(axes) <= set(names), f"only strategies can be fused: {sorted(set(axes) - set(names))}"
        grid = CommunicateTopology(names, sizes)

        def numbered(places: Sequence[Sequence[int]]) -> list[list[int]]:
            return [[ranks[place] for place in group] for group in places]

        self._groups = {name: kind(numbered(grid.get_comm_list(name))) for name, _, kind in list_of_strategy}
        self._fused = {
            name: StrategyGroupBase(numbered(grid.get_fused_ranks(axes))) for name, axes in fused.items()
        }

    def strategy_group(self, name: str) -> StrategyGroupBase:
        """The groups of an axis. Raises: AssertionError: there is no such axis."""
        assert name in self._groups, f"there is no strategy {name}: {', '.join(self._groups)}"
        return self._groups[name]

    def fused_strategy_group(self, name: str) -> StrategyGroupBase:
        """The groups of axes that are fused. Raises: AssertionError: there are none of this name."""
        assert name in self._fused, f"there is no fused strategy {name}: {', '.join(self._fused)}"
        return self._fused[name]

    def rank_in_strategy(self, name: str) -> int:
        """The place of this process in its group of an axis."""
        ranks = next(one for one in self.strategy_group(name)._list_of_ranks if get_rank() in one)
        return ranks.index(get_rank())


_complete(__name__)
