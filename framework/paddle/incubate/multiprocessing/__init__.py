"""paddle.incubate.multiprocessing: Python's, whose queues and pipes take Tensors: they travel as their values.

A process that computes must be started with `get_context("spawn")`: what jax has started does not survive a fork.
"""

from __future__ import annotations

import multiprocessing
from typing import TYPE_CHECKING

from framework.paddle._kernel.modules import resolver as _resolver

globals().update({name: getattr(multiprocessing, name) for name in multiprocessing.__all__})


def init_reductions() -> None:
    """Nothing to set up: Tensors are pickled as their values."""


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
