"""paddle.base.core.CostModel: how long the operations of a program take, one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence

import jax

from framework.paddle._kernel.mode import recorder_scope
from framework.paddle.static.executor import Executor
from framework.paddle.static.program import Program, Values


class CostData:
    """What was measured of a program."""

    def __init__(self, times: Sequence[float]) -> None:
        self._times = list(times)

    def get_op_time_ms(self, op_id: int) -> float:
        """Milliseconds of an operation. Raises: IndexError: there are not so many."""
        return self._times[op_id]

    def get_whole_time_ms(self) -> float:
        """Milliseconds of all operations."""
        return sum(self._times)


class CostModel:
    """Measures programs."""

    def profile_measure(
        self,
        main_program: Program,
        startup_program: Program,
        device: str,
        fetch_cost_list: Sequence[str] = ("time",),
    ) -> CostData:
        """Run a program that is not fed, one operation after the other, twice: the first time compiles.

        Raises:
            ValueError: something else than the time is asked for.
        """
        if set(fetch_cost_list) - {"time"}:
            raise ValueError(f"CostModel measures the time alone, received {list(fetch_cost_list)}")
        Executor().run(startup_program)
        times: list[float] = []
        with recorder_scope(None):
            for _ in range(2):
                values, times = Values(), []
                for op in main_program.ops:
                    start = time.perf_counter()
                    op.replay(values, False)
                    jax.block_until_ready([values[id(o)]._value for o in op.outputs if id(o) in values])
                    times.append(1e3 * (time.perf_counter() - start))
        return CostData(times)

    ProfileMeasure = profile_measure
