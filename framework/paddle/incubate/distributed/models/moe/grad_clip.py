"""Clipping by the norm of all gradients, those of the experts of all processes among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed.collective import Group, all_reduce
from framework.paddle.nn.clip import ClipGradByGlobalNorm, Pair, _squared_l2_norm


class ClipGradForMOEByGlobalNorm(ClipGradByGlobalNorm):
    """Scales all gradients by one factor when their joint L2 norm is above `clip_norm`.

    Args:
        is_expert_param_func: Whether a parameter is one of an expert, of which each process of `moe_group` has its own.

    Raises:
        AssertionError: a group of several processes without `is_expert_param_func`.
    """

    def __init__(
        self,
        clip_norm: float,
        is_expert_param_func: Callable[[Tensor], bool] | None = None,
        moe_group: Group | None = None,
        group_name: str = "default_moe_group",
    ) -> None:
        super().__init__(clip_norm, group_name)
        self.moe_group, self.is_expert_param_func = moe_group, is_expert_param_func
        assert not self._divided() or is_expert_param_func is not None, (
            "is_expert_param_func says which parameters are those of experts, where a group has several processes"
        )

    def _divided(self) -> bool:
        return self.moe_group is not None and self.moe_group.nranks > 1

    def __call__(self, params_grads: Iterable[Pair]) -> list[Pair]:
        if not self._divided():
            return super().__call__(params_grads)
        pairs = [(parameter, one) for parameter, one in params_grads if one is not None]
        counted = [pair for pair in pairs if getattr(pair[0], "need_clip", True)]
        is_expert = self.is_expert_param_func or bool
        experts = _total([one for parameter, one in counted if is_expert(parameter)])
        all_reduce(experts, group=self.moe_group)
        norm = (experts + _total([one for parameter, one in counted if not is_expert(parameter)])).sqrt()
        factor = self.clip_norm / norm.clip(min=self.clip_norm)
        return [
            (parameter, one * factor.astype(one.dtype) if getattr(parameter, "need_clip", True) else one)
            for parameter, one in pairs
        ]


def _total(gradients: list[Tensor]) -> Tensor:
    from framework.paddle import zeros

    squares = [_squared_l2_norm(one.astype("float32")) for one in gradients]
    return sum(squares, zeros([1]))


_complete(__name__)
