"""paddle.optimizer: optimizers that hold parameters; learning rate schedules are in `lr`."""

from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.optimizer import lr as lr
from framework.paddle.optimizer.base import Optimizer
from framework.paddle.optimizer.lbfgs import LBFGS
from framework.paddle.optimizer.optimizers import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Lamb,
    Momentum,
    RMSProp,
)

__all__ = [
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Momentum",
    "Optimizer",
    "RMSProp",
]

if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
