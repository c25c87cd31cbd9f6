"""GradScaler: scales the loss so that gradients of float16 do not vanish, and leaves out steps where they overflow.

What it decides on is data, never read on the host: it works in a compiled step too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.amp import ScalerState, next_scale
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.amp import casting
from framework.paddle.optimizer.state import concrete, with_gradients

if TYPE_CHECKING:
    from framework.paddle.optimizer.base import Optimizer


@jax.jit
def _unscale(grads: Sequence[jax.Array], scale: jax.Array) -> tuple[list[jax.Array], jax.Array]:
    """The gradients divided by the scale, and whether one of their numbers is not finite."""
    finite = [jnp.isfinite(grad).all() for grad in grads]
    factor = 1 / scale[0]
    divided = [(grad.astype(jnp.promote_types(grad.dtype, jnp.float32)) * factor) for grad in grads]
    bad = ~jnp.stack(finite).all() if finite else jnp.zeros((), bool)
    return [new.astype(old.dtype) for new, old in zip(divided, grads, strict=True)], bad


@jax.jit
def _next_scale(state: ScalerState, bad: jax.Array, ratios: Any, needed: Any) -> ScalerState:
    return next_scale(state, ~bad, ratios, needed, bounded=False)  # as Paddle's eager scaler


class GradScaler:
    """`scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()`.

    Args:
        init_loss_scaling: the first factor of the loss.
        incr_ratio, incr_every_n_steps: it grows by this after so many steps without an overflow.
        decr_ratio, decr_every_n_nan_or_inf: it shrinks by this after so many with one.
        use_dynamic_loss_scaling: False keeps it as it is.

    As in Paddle it does nothing on a CPU.
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 2.0**16,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ) -> None:
        self._enable = enable and casting.available()
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        if enable and not self._enable:
            casting._say_unavailable()
        self.set_incr_ratio(incr_ratio)
        self.set_decr_ratio(decr_ratio)
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self.set_init_loss_scaling(init_loss_scaling)
        self._good, self._bad = _number(0, np.int32), _number(0, np.int32)
        self._found_inf = _number(False, np.bool_)
        self._done: dict[int, str] = {}  # what was done to each optimizer since the last update

    def scale(self, var: Tensor) -> Tensor:
        """The loss times the scale."""
        if not isinstance(var, Tensor):
            raise TypeError(f"GradScaler.scale takes a Tensor, received {type(var).__name__}")
        if self._enable and casting.State.dtype != "float16" and self._use_dynamic_loss_scaling:
            self._enable = False  # bfloat16 has the range of float32
        return var * self._scale if self._enable else var

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divide the gradients of an optimizer's parameters by the scale, to clip or read them before `step`."""
        if not self._enable:
            return
        done = self._done.get(id(optimizer))
        if done is not None:
            raise RuntimeError(f"GradScaler.unscale_: this optimizer was {done} since the last update()")
        grads = self._gradients_of(optimizer)
        with x64():
            divided, bad = _unscale([grad._value for grad in grads], self._scale._value)
        for grad, value in zip(grads, divided, strict=True):
            grad._value = value
        self._found_inf._value = bad
        self._done[id(optimizer)] = "unscaled"

    @staticmethod
    def _gradients_of(optimizer: Optimizer) -> list[Tensor]:
        """What is divided: the gradients of an optimizer's parameters."""
        return [grad for _, grad in with_gradients(optimizer._all_parameters())]

    def step(self, optimizer: Optimizer) -> None:
        """`optimizer.step()`, which changes nothing where a gradient is not finite."""
        if not self._enable:
            optimizer.step()
            return
        if self._done.get(id(optimizer)) == "stepped":
            raise RuntimeError("GradScaler.step: this optimizer was stepped since the last update()")
        self._guarded(optimizer, optimizer.step)
        self._done[id(optimizer)] = "stepped"
        if not self._use_dynamic_loss_scaling:
            self._done.clear()

    def _guarded(self, optimizer: Optimizer, move: Any) -> Any:
        if self._done.get(id(optimizer)) is None:
            self.unscale_(optimizer)
        optimizer._found_inf = self._found_inf
        try:
            return move()
        finally:
            optimizer._found_inf = None

    def update(self) -> None:
        """Choose the scale of the next step."""
        if not self._enable or not self._use_dynamic_loss_scaling:
            return
        ratios = np.float32(self._incr_ratio), np.float32(self._decr_ratio)
        needed = np.int32(self._incr_every_n_steps), np.int32(self._decr_every_n_nan_or_inf)
        state = ScalerState(self._scale._value, self._good._value, self._bad._value)
        with x64():
            scale, good, bad = _next_scale(state, self._found_inf._value, ratios, needed)
        self._scale._value, self._good._value, self._bad._value = scale, good, bad
        self._done.clear()

    def minimize(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """`step` and `update`; returns what `optimizer.minimize` does."""
        if not self._enable:
            return optimizer.minimize(*args, **kwargs)
        found = self._guarded(optimizer, lambda: optimizer.minimize(*args, **kwargs))
        self.update()
        self._done.clear()
        return found

    def is_enable(self) -> bool:
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        return self._use_dynamic_loss_scaling

    def get_init_loss_scaling(self) -> float:
        return self._init_loss_scaling

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Go on with this scale."""
        self._init_loss_scaling = new_init_loss_scaling
        self._scale = _number([new_init_loss_scaling], np.float32)

    def get_incr_ratio(self) -> float:
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        assert new_incr_ratio > 1.0, f"GradScaler: incr_ratio must be above 1, received {new_incr_ratio}"
        self._incr_ratio = new_incr_ratio

    def get_decr_ratio(self) -> float:
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        assert new_decr_ratio < 1.0, f"GradScaler: decr_ratio must be below 1, received {new_decr_ratio}"
        self._decr_ratio = new_decr_ratio

    def get_incr_every_n_steps(self) -> int:
        return self._incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        self._incr_every_n_steps = new_incr_every_n_steps

    def get_decr_every_n_nan_or_inf(self) -> int:
        return self._decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        self._decr_every_n_nan_or_inf = new_decr_every_n_nan_or_inf

    def state_dict(self) -> dict[str, float | int | bool | np.ndarray]:
        """The scale (array [1]), its settings and its counts; empty where the scaler does nothing."""
        if not self._enable:
            return {}
        return {
            "scale": self._scale.numpy(),
            "incr_ratio": self._incr_ratio,
            "decr_ratio": self._decr_ratio,
            "incr_every_n_steps": self._incr_every_n_steps,
            "decr_every_n_nan_or_inf": self._decr_every_n_nan_or_inf,
            "incr_count": int(self._good),
            "decr_count": int(self._bad),
            "use_dynamic_loss_scaling": self._use_dynamic_loss_scaling,
        }

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Continue from what `state_dict` gave."""
        if not self._enable:
            return
        if not state_dict:
            raise RuntimeError(
                "GradScaler.load_state_dict: the state is empty, as that of a scaler that did nothing"
            )
        self.set_init_loss_scaling(float(np.asarray(state_dict["scale"]).reshape(-1)[0]))
        self._incr_ratio, self._decr_ratio = state_dict["incr_ratio"], state_dict["decr_ratio"]
        self._incr_every_n_steps = state_dict["incr_every_n_steps"]
        self._decr_every_n_nan_or_inf = state_dict["decr_every_n_nan_or_inf"]
        self._good = _number(state_dict["incr_count"], np.int32)
        self._bad = _number(state_dict["decr_count"], np.int32)
        self._use_dynamic_loss_scaling = state_dict["use_dynamic_loss_scaling"]


AmpScaler = GradScaler


def _number(value: object, kind: type[np.generic]) -> Tensor:
    return wrap(concrete(np.asarray(value, kind)))
