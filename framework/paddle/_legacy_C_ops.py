"""paddle._legacy_C_ops: operations whose settings are given as pairs of name and value, `argsort(x, "axis", 0)`."""

from __future__ import annotations

from typing import Any

from framework.paddle import _C_ops
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed.collective import all_reduce, get_group


def _settings(pairs: tuple[object, ...]) -> dict[str, Any]:
    return {str(name): value for name, value in zip(pairs[::2], pairs[1::2], strict=True)}


def argsort(x: Tensor, *settings: object) -> tuple[Tensor, Tensor]:
    """(the values in order, their indices); settings `axis` and `descending`."""
    given = _settings(settings)
    return _C_ops.argsort(x, given.get("axis", -1), given.get("descending", False))


def c_allreduce_sum(x: Tensor, *settings: object) -> Tensor:
    """The sum over the group of number `ring_id`."""
    total = x.clone()
    all_reduce(total, group=get_group(_settings(settings).get("ring_id", 0)))
    return total


_complete(__name__)
