"""Learning-rate schedules: frozen dataclasses with the names and arguments of `paddle.optimizer.lr`.

A schedule is a pure function of the number of optimizer steps done: `schedule.at(step)` is a float for an int and a
float32 scalar for an array, under a trace too. There is no position to keep, so `last_epoch` and `verbose` are not
arguments, and a resumed run continues by its step alone.

Counts are in steps; `by_epoch=True` says that they are in epochs. None as a length is the whole training. Both are
filled in by `schedule.resolve(total_steps, steps_per_epoch)`.
"""

from framework.optimizer.lr.base import Constant, LRScheduler, PlateauState, ReduceOnPlateau
from framework.optimizer.lr.cycle import (
    CosineAnnealingDecay,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    LinearLR,
    LinearWarmup,
    OneCycleLR,
)
from framework.optimizer.lr.decay import (
    ExponentialDecay,
    InverseTimeDecay,
    LambdaDecay,
    MultiplicativeDecay,
    MultiStepDecay,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    StepDecay,
)

__all__ = [
    "Constant",
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearLR",
    "LinearWarmup",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "OneCycleLR",
    "PiecewiseDecay",
    "PlateauState",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]
