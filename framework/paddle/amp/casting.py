"""auto_cast and decorate: operations in 16 bits where that is safe.

As in Paddle, AMP does nothing on a CPU, where 16 bits are slower than 32.
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dispatch import Compiled, execute
from framework.paddle._kernel.mode import amp_scope, mode
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.amp import lists
from framework.paddle.amp.debugging import watched
from framework.paddle.nn.layer import Layer
from framework.paddle.optimizer.base import Optimizer

log = logging.getLogger("oar")
_HALF = (types.float16.numpy, types.bfloat16.numpy)
_FLOAT32 = types.float32.numpy
Excluded = Layer | type[Layer] | list[Layer | type[Layer]] | tuple[Layer | type[Layer], ...] | None


class State:
    """What the last `auto_cast` said; a GradScaler reads it."""

    dtype = "float16"


def available() -> bool:
    """Whether AMP does anything here."""
    return jax.default_backend() != "cpu"


def amp_state() -> object | None:
    """What casts the inputs of operations here; None outside of `auto_cast`, and where AMP does nothing."""
    return mode.amp


@functools.cache
def _say_unavailable() -> None:
    log.warning("paddle.amp does nothing on a CPU: operations stay in float32")


@functools.cache
def _cast(kind: np.dtype) -> Compiled:
    return Compiled("cast", lambda x: x.astype(kind))


def _with_type(arg: object, kind: np.dtype) -> object:
    """A Tensor of 16 or 32 bits cast to `kind`, with its history; anything else as it is."""
    if not isinstance(arg, Tensor) or arg._value.dtype == kind:
        return arg
    if arg._value.dtype != _FLOAT32 and arg._value.dtype not in _HALF:
        return arg
    compiled = _cast(kind)
    return execute(compiled, (arg,)) if mode.recorder is None else mode.recorder(compiled, (arg,))


class Policy:
    """Casts the inputs of operations: those in `white` to 16 bits, those in `black` to 32; of others the 16-bit ones to
    32 where one has 32 (with `promote`), or all to 16."""

    def __init__(self, kind: np.dtype, white: frozenset[str], black: frozenset[str], promote: bool) -> None:
        self.kind, self.white, self.black, self.promote = kind, white, black, promote

    def _key(self) -> tuple[object, ...]:
        return self.kind, self.white, self.black, self.promote

    def __eq__(self, other: object) -> bool:
        """Equal policies share the programs of to_static functions."""
        return isinstance(other, Policy) and other._key() == self._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __call__(self, compiled: Compiled, args: Sequence[object]) -> Sequence[object]:
        name = compiled.name
        if name in lists.UNTOUCHED or name.endswith("_grad"):
            return args
        if name in self.white:
            kind = self.kind
        elif name in self.black:
            kind = _FLOAT32
        elif self.promote:
            kinds = {arg._value.dtype for arg in args if isinstance(arg, Tensor)}
            if _FLOAT32 not in kinds or not kinds.intersection(_HALF):
                return args
            kind = _FLOAT32
        else:
            kind = self.kind
        return [_with_type(arg, kind) for arg in args]


@contextlib.contextmanager
def auto_cast(
    enable: bool = True,
    custom_white_list: Any = None,
    custom_black_list: Any = None,
    level: str = "O1",
    dtype: str = "float16",
    use_promote: bool = True,
) -> Iterator[None]:
    """Compute in 16 bits within the block what is safe in them.

    Args:
        custom_white_list, custom_black_list: names of operations to add, here's or Paddle's (`elementwise_add`).
        level: O1 casts what is known to be fast and safe in 16 bits; O2, for models that `decorate` cast, all but
            what has no 16-bit form; OD the white list alone; O0 nothing.
        use_promote: with O2 an operation with a float32 input is computed in float32.
    """
    level = level.upper()
    if level not in ("O0", "OD", "O1", "O2"):
        raise ValueError(f"paddle.amp.auto_cast: level is O0, OD, O1 or O2, received {level!r}")
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(f"paddle.amp.auto_cast: dtype is float16 or bfloat16, received {dtype!r}")
    white, black = lists.our_names(custom_white_list), lists.our_names(custom_black_list)
    if white & black:
        raise ValueError(f"paddle.amp.auto_cast: {sorted(white & black)} are in both lists")
    if enable and level != "O0" and not available():
        _say_unavailable()
        enable = False
    if not enable or level == "O0":
        with amp_scope(watched(None)):
            yield
        return
    State.dtype = dtype
    if level == "OD":  # what is on no list stays in 32 bits
        policy = Policy(types.to_numpy(dtype), (lists.WHITE | white) - black, frozenset(), True)
    else:
        own = lists.BLACK if level == "O1" else lists.BLACK_O2
        policy = Policy(
            types.to_numpy(dtype),
            (lists.WHITE | white) - black,
            (own | black) - white,
            level == "O1" or use_promote,
        )
    with amp_scope(watched(policy), level, dtype):
        yield


amp_guard = auto_cast


def decorate(
    models: Layer | Sequence[Layer],
    optimizers: Optimizer | Sequence[Optimizer] | None = None,
    level: str = "O1",
    dtype: str = "float16",
    master_weight: bool | None = None,
    save_dtype: str | None = None,
    master_grad: bool = False,
    excluded_layers: Excluded = None,
) -> Layer | Sequence[Layer] | tuple[Layer | Sequence[Layer], Optimizer | Sequence[Optimizer]]:
    """Cast models to 16 bits for level O2, all but their normalization layers; optimizers keep float32 copies.

    Returns what it got: models, or (models, optimizers). `save_dtype` is the type of floating-point entries of
    `state_dict()`. `master_grad` changes nothing: optimizers widen gradients before they use them.
    """
    level = level.upper()
    if level not in ("O1", "O2"):
        raise ValueError(f"paddle.amp.decorate: level is O1 or O2, received {level!r}")
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(f"paddle.amp.decorate: dtype is float16 or bfloat16, received {dtype!r}")
    for model in models if isinstance(models, list | tuple) else [models]:
        if not isinstance(model, Layer):
            raise TypeError(f"paddle.amp.decorate takes Layers, received {type(model).__name__}")
        if level == "O2" and available():
            _cast_layers(model, dtype, excluded_layers)
            if save_dtype is not None:
                model.register_state_dict_hook(_saved_as(save_dtype))
    given = optimizers if isinstance(optimizers, list | tuple) else [optimizers]
    for optimizer in given if optimizers is not None else ():
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"paddle.amp.decorate takes optimizers, received {type(optimizer).__name__}")
        if level == "O2" and available() and master_weight is not False:
            optimizer._multi_precision = True
    if level == "O2" and not available():
        _say_unavailable()
    return models if optimizers is None else (models, optimizers)


amp_decorate = decorate


def _cast_layers(model: Layer, dtype: str, excluded: Excluded) -> None:
    from framework.paddle import nn

    kinds: list[type] = [nn.LayerNorm, nn.InstanceNorm1D, nn.InstanceNorm2D, nn.InstanceNorm3D]
    kinds += [nn.BatchNorm, nn.BatchNorm1D, nn.BatchNorm2D, nn.BatchNorm3D]
    kept: set[int] = set()
    for part in excluded if isinstance(excluded, list | tuple) else [excluded] if excluded else []:
        if isinstance(part, Layer):
            kept |= {id(layer) for layer in part.sublayers(include_self=True)}
        else:
            kinds.append(part)
    kind = types.to_numpy(dtype)
    for layer in model.sublayers(include_self=True):
        if isinstance(layer, tuple(kinds)) or id(layer) in kept:
            continue
        for tensor in (*layer._parameters.values(), *layer._buffers.values()):
            if tensor is not None and tensor._value.dtype == _FLOAT32:
                with x64():
                    tensor._value = tensor._value.astype(kind)
                tensor._grad = None


def _saved_as(dtype: str) -> Callable[[Any], Any]:
    kind = types.to_numpy(dtype)

    def cast(state: Any) -> Any:
        for name, tensor in state.items():
            if tensor._value.dtype in types.FLOATING and tensor._value.dtype != kind:
                with x64():
                    saved = wrap(tensor._value.astype(kind))
                saved.name = tensor.name
                state[name] = saved
        return state

    return cast


def is_float16_supported(device: str | None = None) -> bool:
    """Whether AMP in float16 does anything on the device that is used."""
    return available()


def is_bfloat16_supported(device: str | None = None) -> bool:
    """Whether AMP in bfloat16 does anything on the device that is used."""
    return available()
