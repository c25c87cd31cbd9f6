"""All that a training step changes, as one pytree."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import jax

from framework.nn.functional_core import State


@dataclass(frozen=True)
class TrainState:
    """Attributes:
    step: Steps done, int32 [].
    params, buffers: The model's, by name; parameters that are not trained are among them.
    optimizer: The optimizer's own state.
    ema: The state of the moving average of the trained parameters; empty where none is kept.
    scaler: The loss scaler's state; empty unless activations are float16.
    lr_factor: Multiplies the scheduled learning rate, float32 []; a plateau lowers it.
    """

    step: jax.Array
    params: State
    buffers: State
    optimizer: Any
    ema: Any
    scaler: Any
    lr_factor: jax.Array


jax.tree_util.register_dataclass(TrainState, [f.name for f in fields(TrainState)], [])
