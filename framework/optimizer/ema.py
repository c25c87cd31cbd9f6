"""The exponential moving average of parameters, as pure functions of flat dicts. What trains gives it the running
statistics of normalisations beside them.

ema = EMA(decay=0.9998)
state = ema.init(params)
state = ema.update(state, params)          # after each optimizer step, inside the compiled step
params = ema.values(state, params)         # what is evaluated and exported
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp

from framework.core.errors import ConfigError, WeightError
from framework.core.types import PyTree
from framework.optimizer.base import wide

Arrays = dict[str, jax.Array]


@dataclass(frozen=True)
class EMA:
    """`average = d * average + (1 - d) * params`, kept in float32.

    | rule | d at update t = 0, 1, ... | begins with | as in |
    |---|---|---|---|
    | threshold | min(decay, (1 + t) / (10 + t)) | nothing | PaddleDetection's ModelEMA |
    | normal | decay | nothing | " |
    | exponential | decay * (1 - exp(-(t + 1) / 2000)) | nothing | " |
    | running | min(decay, 1 - 1 / (t + 1)) | the first update | PaddleSeg |
    | plain | decay | the parameters given to `init` | timm, PaddleClas |

    What begins with nothing is divided by the sum of the weights so far, so it is a mean of the parameters seen.
    PaddleDetection divides by `1 - d**t` with the latest d, which is that sum only while d is constant, and not at all
    with exponential; its averages differ from these by that factor.

    Attributes:
        exclude: Regular expressions; parameters with such a name are not averaged, `values` takes them as they are.
    """

    decay: float = 0.9998
    rule: Literal["threshold", "normal", "exponential", "running", "plain"] = "threshold"
    exclude: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.decay < 1:
            raise ConfigError(
                "decay is out of range", where="EMA", received=self.decay, allowed="from 0, below 1"
            )

    def init(self, params: Mapping[str, jax.Array]) -> dict[str, PyTree]:
        """The state before the first update: `average` (float32 by name), `weight` (float32 []), `step` (int32 [])."""
        kept = {n: p for n, p in params.items() if not any(re.search(e, n) for e in self.exclude)}
        plain = self.rule == "plain"
        # A copy: the average and the parameters are donated to the same step.
        first = {n: jnp.array(wide(p)) if plain else jnp.zeros_like(wide(p)) for n, p in kept.items()}
        return {
            "average": first,
            "weight": jnp.full((), float(plain), jnp.float32),
            "step": jnp.zeros((), jnp.int32),
        }

    def decay_at(self, step: jax.Array) -> jax.Array | float:
        """The decay of the update number `step`, counted from 0."""
        if self.rule == "threshold":
            return jnp.minimum(self.decay, (1 + step) / (10 + step))
        if self.rule == "exponential":
            return self.decay * -jnp.expm1(-(step + 1) / 2000)
        return jnp.minimum(self.decay, 1 - 1 / (step + 1)) if self.rule == "running" else self.decay

    def update(self, state: dict[str, PyTree], params: Mapping[str, jax.Array]) -> dict[str, PyTree]:
        """The state after one more set of parameters.

        Raises:
            WeightError: an averaged parameter is missing.
        """
        if missing := [name for name in state["average"] if name not in params]:
            raise WeightError(
                "averaged parameters are missing",
                where="EMA.update",
                received=f"no {missing[:10]}",
                allowed=f"the {len(state['average'])} names given to init",
            )
        decay = self.decay_at(state["step"].astype(jnp.float32))
        average = {
            n: old + (1 - decay) * (params[n].astype(old.dtype) - old) for n, old in state["average"].items()
        }
        weight = state["weight"] + (1 - decay) * (1 - state["weight"])
        return {
            "average": {n: a.astype(state["average"][n].dtype) for n, a in average.items()},
            "weight": weight.astype(jnp.float32),
            "step": state["step"] + 1,
        }

    def values(self, state: dict[str, PyTree], params: Mapping[str, jax.Array]) -> Arrays:
        """`params` with the averages in the place of the averaged ones; `params` itself before the first update."""
        begun = state["weight"] > 0
        weight = jnp.where(begun, state["weight"], 1)
        means = {n: (a / weight).astype(params[n].dtype) for n, a in state["average"].items()}
        return {n: jnp.where(begun, means[n], p) if n in means else p for n, p in params.items()}
