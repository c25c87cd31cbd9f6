"""Optimizers, learning-rate schedules, clipping, weight decay and the moving average of parameters.

    opt = optimizer.AdamW(learning_rate=optimizer.lr.CosineAnnealingDecay(1e-3, T_max=1000))
    loss, grads = nn.value_and_grad(layer, loss_fn)(x, y)
    opt.step(layer, grads)

What an update computes is in rules.py, what a schedule computes in lr/formulas.py: there for `framework.paddle` too.
"""

from typing import TYPE_CHECKING

from framework.core.foreign_names import module_error
from framework.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue, GradClip
from framework.optimizer import lr
from framework.optimizer.base import Optimizer, ParamGroup
from framework.optimizer.ema import EMA
from framework.optimizer.optimizers import (
    ASGD,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lamb,
    Lion,
    Momentum,
    NAdam,
    RAdam,
    RMSProp,
    Rprop,
)
from framework.optimizer.regularizer import L1Decay, L2Decay, WeightDecay

__all__ = [
    "ASGD",
    "EMA",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ClipGradByGlobalNorm",
    "ClipGradByNorm",
    "ClipGradByValue",
    "GradClip",
    "L1Decay",
    "L2Decay",
    "Lamb",
    "Lion",
    "Momentum",
    "NAdam",
    "Optimizer",
    "ParamGroup",
    "RAdam",
    "RMSProp",
    "Rprop",
    "WeightDecay",
    "lr",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise module_error("framework.optimizer", name, globals())
