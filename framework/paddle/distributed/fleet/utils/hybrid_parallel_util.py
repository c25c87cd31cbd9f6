"""Exchanges of gradients between processes, where programs call them themselves."""

from __future__ import annotations

from collections.abc import Iterable

from framework.paddle._kernel.tensor import Parameter
from framework.paddle.distributed.env import alone


def fused_allreduce_gradients(parameter_list: Iterable[Parameter], hcg: object) -> None:
    """The sum of the gradients over all processes: with one process, as they are.

    Raises:
        DeviceError: there are more processes.
    """
    alone("fused_allreduce_gradients")
