"""Learning rates by functions, from before the schedulers. In dynamic mode each gives its scheduler; in static mode a
variable that counts the runs of the program."""

from __future__ import annotations

import math
from collections.abc import Sequence

from framework import paddle
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.optimizer.lr import cycle, decay
from framework.paddle.optimizer.lr.base import LRScheduler
from framework.paddle.static.program import create_global_var, default_main_program, in_dynamic_mode

Rate = LRScheduler | Tensor
_COUNTER = "@LR_DECAY_COUNTER@"


def _decay_step_counter(begin: int = 0) -> Tensor:
    """The number of this run, float32 [1], from `begin` on."""
    counter = default_main_program().global_block().vars.get(_COUNTER)
    if counter is None:
        counter = create_global_var([1], begin - 1, "int64", True, name=_COUNTER)
        paddle.increment(counter)
    return paddle.cast(counter, "float32")


def _periods(decay_steps: int, staircase: bool) -> Tensor:
    periods = _decay_step_counter() / decay_steps
    return paddle.floor(periods) if staircase else periods


def noam_decay(d_model: int, warmup_steps: int, learning_rate: float = 1.0) -> Rate:
    """learning_rate * d_model^-0.5 * min(step^-0.5, warmup_steps^-1.5 * step)."""
    if in_dynamic_mode():
        return decay.NoamDecay(d_model, warmup_steps, learning_rate)
    step = _decay_step_counter(1)
    return learning_rate * d_model**-0.5 * paddle.minimum(step**-0.5, warmup_steps**-1.5 * step)


def exponential_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Rate:
    """learning_rate * decay_rate^(step / decay_steps); `staircase`: of whole periods."""
    if in_dynamic_mode():
        return decay.ExponentialDecay(learning_rate, decay_rate)
    return learning_rate * paddle.exp(_periods(decay_steps, staircase) * math.log(decay_rate))


def natural_exp_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Rate:
    """learning_rate * exp(-decay_rate * step / decay_steps); `staircase`: of whole periods."""
    if in_dynamic_mode():
        return decay.NaturalExpDecay(learning_rate, decay_rate)
    return learning_rate * paddle.exp(-decay_rate * _periods(decay_steps, staircase))


def inverse_time_decay(
    learning_rate: float, decay_steps: int, decay_rate: float, staircase: bool = False
) -> Rate:
    """learning_rate / (1 + decay_rate * step / decay_steps); `staircase`: of whole periods."""
    if in_dynamic_mode():
        return decay.InverseTimeDecay(learning_rate, decay_rate)
    return learning_rate / (1 + decay_rate * _periods(decay_steps, staircase))


def polynomial_decay(
    learning_rate: float,
    decay_steps: int,
    end_learning_rate: float = 0.0001,
    power: float = 1.0,
    cycle: bool = False,
) -> Rate:
    """From learning_rate to end_learning_rate by (1 - step / decay_steps)^power; `cycle`: again and again, slower."""
    if in_dynamic_mode():
        return decay.PolynomialDecay(learning_rate, decay_steps, end_learning_rate, power, cycle)
    step = _decay_step_counter()
    if cycle:
        share = step / (decay_steps * paddle.clip(paddle.ceil(step / decay_steps), min=1.0))
    else:
        share = paddle.clip(step, max=float(decay_steps)) / decay_steps
    return (learning_rate - end_learning_rate) * (1 - share) ** power + end_learning_rate


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> Rate:
    """The first of `values` before the first of `boundaries`, and so on: one value more than boundaries.

    Raises:
        ValueError: there are more or fewer.
    """
    if len(values) != len(boundaries) + 1:
        raise ValueError(
            f"values must be one more than boundaries, received {len(values)} and {len(boundaries)}"
        )
    if in_dynamic_mode():
        return decay.PiecewiseDecay(list(boundaries), list(values))
    step = _decay_step_counter()
    rate = paddle.full_like(step, values[-1])
    for boundary, value in zip(reversed(boundaries), reversed(values[:-1]), strict=True):
        rate = paddle.where(step < boundary, paddle.full_like(step, value), rate)
    return rate


def cosine_decay(learning_rate: float, step_each_epoch: int, epochs: int) -> Rate:
    """learning_rate * (cos(pi * epoch / epochs) + 1) / 2."""
    if in_dynamic_mode():
        return cycle.CosineAnnealingDecay(learning_rate, epochs)
    epoch = paddle.floor(_decay_step_counter() / step_each_epoch)
    return learning_rate * 0.5 * (paddle.cos(epoch * math.pi / epochs) + 1)


def linear_lr_warmup(learning_rate: float | Rate, warmup_steps: int, start_lr: float, end_lr: float) -> Rate:
    """From start_lr to end_lr in `warmup_steps` steps, then learning_rate."""
    if not isinstance(learning_rate, Tensor) and in_dynamic_mode():
        return cycle.LinearWarmup(learning_rate, warmup_steps, start_lr, end_lr)
    step = _decay_step_counter()
    rate = paddle.full_like(step, learning_rate) if isinstance(learning_rate, float | int) else learning_rate
    return paddle.where(step < warmup_steps, start_lr + (end_lr - start_lr) * (step / warmup_steps), rate)
