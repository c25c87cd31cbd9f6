"""Which parameters exchange their gradients together."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.core import eager_assign_group_by_size


class HOOK_ACTION:
    """What is done with gradients that are there."""

    ALL_REDUCE = 0
    REDUCE = 1
    REDUCE_SCATTER = 2


def assign_group_by_size(
    parameters: Sequence[Tensor], group_size: int = 128 * 1024 * 1024
) -> dict[int, list[Tensor]]:
    """Number -> parameters of one type that have up to `group_size` bytes together."""
    limits = [group_size, group_size]
    groups = eager_assign_group_by_size(parameters, [False] * len(parameters), limits)
    return {number: [parameters[index] for index in group] for number, group in enumerate(groups)}


_complete(__name__)
