"""The scope in which operations run in low precision."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator
from typing import Literal

import jax

from framework.core.dtypes import Autocast, autocast_scope
from framework.core.errors import ConfigError
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
) -> Iterator[None]:
    """Within the block (or the decorated function) operations of `framework.nn.functional` run in low precision.

    O1: convolutions, matrix products, attention and recurrent steps take and return `dtype`; losses and softmax
    float32; all others follow their inputs, normalisation with float32 statistics. O2: parameters are read in `dtype`
    too, except those of normalisation, so that sums with parameters and embeddings stay low. The lists name functionals
    to move to `dtype` or to float32. Gradients of float32 parameters are float32. `enable=False` switches an outer
    scope off. Source: paddle.amp.auto_cast; Micikevicius et al. 2018.

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
