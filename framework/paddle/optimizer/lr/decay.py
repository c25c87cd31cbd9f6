"""Schedules that fall: by a formula, by steps, by a function. The core's, as a program of Paddle moves them on."""

from framework.optimizer.lr import decay as core
from framework.paddle.optimizer.lr.faces import (
    ASSERTED_POSITIVE,
    BELOW_ONE,
    COUNT,
    FUNCTION,
    POSITIVE,
    RISING,
    SHARE,
    SOME,
    make_schedule,
)

NoamDecay = make_schedule(core.NoamDecay, d_model=POSITIVE)
PiecewiseDecay = make_schedule(core.PiecewiseDecay, boundaries=SOME)
NaturalExpDecay = make_schedule(core.NaturalExpDecay, gamma=POSITIVE)
InverseTimeDecay = make_schedule(core.InverseTimeDecay)
ExponentialDecay = make_schedule(core.ExponentialDecay, gamma=SHARE)
PolynomialDecay = make_schedule(core.PolynomialDecay, decay_steps=COUNT, power=ASSERTED_POSITIVE)
MultiStepDecay = make_schedule(core.MultiStepDecay, milestones=RISING, gamma=BELOW_ONE)
StepDecay = make_schedule(core.StepDecay, step_size=COUNT, gamma=BELOW_ONE)
LambdaDecay = make_schedule(core.LambdaDecay, lr_lambda=FUNCTION)
MultiplicativeDecay = make_schedule(core.MultiplicativeDecay, lr_lambda=FUNCTION)
