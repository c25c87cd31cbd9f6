"""Training in low precision: `auto_cast` and, for float16, `GradScaler`.

    with amp.auto_cast(level="O2", dtype="bfloat16"):
        loss, grads = nn.value_and_grad(layer, loss_fn)(x, label)    # loss and grads are float32

Parameters, buffers and optimizer states are float32 at both levels: what Paddle calls master weights is all there is,
so there is no `amp.decorate`, and checkpoints do not change. bfloat16 is real on the CPU too, where Paddle's is not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from framework.core.dtypes import Autocast, autocast, autocast_scope
from framework.core.errors import ConfigError
from framework.core.foreign_names import foreign_name, module_error
from framework.nn.functional.autocast import check_names

Level = Literal["O1", "O2"]
LowDtype = Literal["bfloat16", "float16"]


def _policy(
    white_list: Collection[str] | None, black_list: Collection[str] | None, level: Level, dtype: LowDtype
) -> Autocast:
    if level not in ("O1", "O2"):
        raise ConfigError("unknown level", where="auto_cast", received=repr(level), allowed="'O1' or 'O2'")
    if dtype not in ("bfloat16", "float16"):
        raise ConfigError(
            "unknown low precision",
            where="auto_cast",
            received=repr(dtype),
            allowed="'bfloat16', or 'float16' with a GradScaler",
        )
    white, black = _names(white_list, "custom_white_list"), _names(black_list, "custom_black_list")
    if white & black:
        raise ConfigError(
            "an operation stands in both lists",
            where="auto_cast",
            received=", ".join(sorted(white & black)),
            allowed="one list for each operation",
        )
    return Autocast(level, dtype, white, black)


def _names(given: Collection[str] | None, where: str) -> frozenset[str]:
    if isinstance(given, str):  # a string is a collection of letters
        raise ConfigError(
            "a list of operations is not one string", where=where, received=repr(given), allowed="a set"
        )
    names = frozenset(given or ())
    check_names(names, f"auto_cast: {where}")
    return names


@contextlib.contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Collection[str] | None = None,
    custom_black_list: Collection[str] | None = None,
    level: Level = "O1",
    dtype: LowDtype = "bfloat16",
    use_promote: bool = True,
) -> Iterator[None]:
    """Within the block (or the decorated function) operations of `framework.nn.functional` run in low precision.

    O1: convolutions, matrix products, attention and recurrent steps take and return `dtype`; losses and softmax
    float32; all others follow their inputs, normalisation with float32 statistics. O2: parameters are read in `dtype`
    too, except those of normalisation, so that sums with parameters and embeddings stay low. The lists name functionals
    to move to `dtype` or to float32. Gradients of float32 parameters are float32. `enable=False` switches an outer
    scope off; `use_promote` is accepted for Paddle's sake. Source: paddle.amp.auto_cast; Micikevicius et al. 2018.

    The policy is read while operations are traced. Open the scope inside the function that is compiled, or make
    `lowering.current_scopes()` a static argument, as nn.value_and_grad and jit.to_static do.

    Raises:
        ConfigError: unknown level, dtype or operation, or an operation in both lists.
    """
    chosen = _policy(custom_white_list, custom_black_list, level, dtype)
    # Low meets float32 by design: where the user's process forbids implicit promotion, it is allowed here.
    promotion = jax.numpy_dtype_promotion("standard") if enable else contextlib.nullcontext()
    with autocast_scope(chosen if enable else None), promotion:
        yield


def is_bfloat16_supported(device: object = None) -> bool:
    """True: bfloat16 is computed on every device, on a CPU too. `device` is accepted for Paddle's sake."""
    return True


def is_float16_supported(device: object = None) -> bool:
    """True: float16 is computed on every device. `device` is accepted for Paddle's sake."""
    return True


def is_autocast_enabled() -> bool:
    """Whether this runs within `auto_cast`."""
    return autocast() is not None


def get_autocast_dtype(device_type: str | None = None) -> LowDtype | Literal["float32"]:
    """What `auto_cast` computes in here; float32 outside of it. `device_type` is accepted for Paddle's sake."""
    policy = autocast()
    return "float32" if policy is None else policy.dtype


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype


# -- loss scaling: float16 gradients below 6e-8 would vanish, so the loss is multiplied before differentiation ---------

T = TypeVar("T")  # a pytree of arrays


class ScalerState(NamedTuple):
    """What changes from step to step; a pytree, so it is part of the training state and of checkpoints."""

    scale: jax.Array  # [] float32
    good_steps: jax.Array  # [] int32: finite steps since the scale last changed
    bad_steps: jax.Array  # [] int32: non-finite steps in a row


@dataclass(frozen=True)
class GradScaler:
    """Multiplies the loss by a scale that doubles after 2000 finite steps and halves on a non-finite one.

    All methods are pure and run under jit:

        state = scaler.init()
        scaled_loss = scaler.scale(loss, state)                          # differentiate this
        grads, finite, state = scaler.unscale_and_update(grads, state)
        params = jax.tree.map(lambda new, old: jnp.where(finite, new, old), new_params, params)

    A step with a non-finite gradient is skipped by the caller, as in the last line, for parameters, optimizer state
    and buffers alike. Paddle's `scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()` are these
    lines: without a tape there is no object that could hold the gradients. bfloat16 has the range of float32 and needs
    no scaler; `enable=False` makes every method the identity. Source: paddle.amp.GradScaler.
    """

    enable: bool = True
    init_loss_scaling: float = 65536.0
    incr_ratio: float = 2.0
    decr_ratio: float = 0.5
    incr_every_n_steps: int = 2000
    decr_every_n_nan_or_inf: int = 1
    use_dynamic_loss_scaling: bool = True

    def __post_init__(self) -> None:
        for name, fits, allowed in (
            ("init_loss_scaling", self.init_loss_scaling > 0, "more than 0"),
            ("incr_ratio", self.incr_ratio > 1, "more than 1"),
            ("decr_ratio", 0 < self.decr_ratio < 1, "between 0 and 1"),
            ("incr_every_n_steps", self.incr_every_n_steps >= 1, "1 or more"),
            ("decr_every_n_nan_or_inf", self.decr_every_n_nan_or_inf >= 1, "1 or more"),
        ):
            if not fits:
                raise ConfigError(
                    "a number of the loss scaling is out of range",
                    where=f"GradScaler.{name}",
                    received=getattr(self, name),
                    allowed=allowed,
                )

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            error = foreign_name("GradScaler", name, "scaler")
            raise error or AttributeError(f"'GradScaler' object has no attribute {name!r}")

    def init(self) -> ScalerState:
        """The state before the first step."""
        scale = self.init_loss_scaling if self.enable else 1.0
        zero = jnp.zeros((), jnp.int32)
        return ScalerState(jnp.asarray(scale, jnp.float32), zero, zero)

    def scale(self, loss: jax.Array, state: ScalerState) -> jax.Array:
        """The loss to differentiate, float32."""
        return loss.astype(jnp.float32) * state.scale if self.enable else loss

    def unscale_and_update(self, grads: T, state: ScalerState) -> tuple[T, jax.Array, ScalerState]:
        """(gradients of the loss itself, whether all of them are finite, next state). `grads` is any pytree.

        Non-finite gradients are returned as they are.
        """
        if not self.enable:
            return grads, jnp.asarray(True), state
        inverse = 1.0 / state.scale
        grads = jax.tree.map(lambda g: (g.astype(jnp.float32) * inverse).astype(g.dtype), grads)
        finite = jnp.asarray(True)
        for leaf in jax.tree.leaves(grads):
            finite &= jnp.isfinite(leaf).all()
        if self.use_dynamic_loss_scaling:
            needed = (self.incr_every_n_steps, self.decr_every_n_nan_or_inf)
            state = next_scale(state, finite, (self.incr_ratio, self.decr_ratio), needed)
        return grads, finite, state


def next_scale(
    state: ScalerState,
    finite: jax.Array,
    ratios: tuple[float, float],
    needed: tuple[int, int],
    bounded: bool = True,
) -> ScalerState:
    """The state after a step whose gradients are finite or not: the scale grows by the first ratio after as many finite
    steps as `needed` says, and shrinks by the second; `bounded`: it stays a finite number from 1."""
    good = jnp.where(finite, state.good_steps + 1, 0)
    bad = jnp.where(finite, 0, state.bad_steps + 1)
    grow, shrink = good == needed[0], bad == needed[1]
    larger, smaller = (state.scale * ratio for ratio in ratios)
    if bounded:
        larger = jnp.where(jnp.isfinite(larger), larger, state.scale)
        smaller = jnp.maximum(smaller, 1.0)
    scale = jnp.where(grow, larger, jnp.where(shrink, smaller, state.scale))
    return ScalerState(scale, jnp.where(grow, 0, good), jnp.where(shrink, 0, bad))


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise module_error("framework.amp", name, globals())
