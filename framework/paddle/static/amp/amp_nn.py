"""paddle.static.amp.amp_nn: the two steps of a scaled loss, on Tensors in dynamic mode.

In static mode `paddle.static.amp.decorate` scales the loss of a program.
"""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle import _C_ops
from framework.paddle._kernel.errors import ModeError, OperandError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.program import in_dynamic_mode


def check_finite_and_unscale(
    x: Sequence[Tensor], scale: Tensor, name: str | None = None, float_status: Tensor | None = None
) -> tuple[Sequence[Tensor], Tensor]:
    """(`x` divided by `scale` in place, whether a number of it is not finite: bool of shape [1]).

    Raises:
        OperandError: `x` is no list of Tensors.
        ModeError: in static mode.
    """
    _check(x, "check_finite_and_unscale")
    return _C_ops.check_finite_and_unscale_(x, scale)


def update_loss_scaling(
    x: Sequence[Tensor],
    found_inf: Tensor,
    prev_loss_scaling: Tensor,
    num_good_steps: Tensor,
    num_bad_steps: Tensor,
    incr_every_n_steps: int,
    decr_every_n_nan_or_inf: int,
    incr_ratio: float,
    decr_ratio: float,
    stop_update: bool | Tensor = False,
    name: str | None = None,
) -> Sequence[Tensor]:
    """`x`, zeros where `found_inf`; the scale and the counts of steps change in place.

    Raises:
        OperandError: `x` is no list of Tensors.
        ModeError: in static mode.
    """
    _check(x, "update_loss_scaling")
    _C_ops.update_loss_scaling_(
        x,
        found_inf,
        prev_loss_scaling,
        num_good_steps,
        num_bad_steps,
        incr_every_n_steps,
        decr_every_n_nan_or_inf,
        incr_ratio,
        decr_ratio,
        stop_update,
    )
    return x


def _check(x: object, function: str) -> None:
    if not in_dynamic_mode():
        raise ModeError(
            "works on Tensors, in dynamic mode",
            where=f"paddle.static.amp.amp_nn.{function}",
            fix="paddle.static.amp.decorate(optimizer) scales the loss of a program",
        )
    if not isinstance(x, list | tuple) or not all(isinstance(one, Tensor) for one in x):
        raise OperandError(
            "x is a list of Tensors",
            where=f"paddle.static.amp.amp_nn.{function}",
            received=type(x).__name__,
        )
