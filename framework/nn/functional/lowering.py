"""How an operation is written on each platform: one table for the whole project.

XLA compiles one operation very differently on a CPU depending on how it is written; on a GPU or TPU the plain form is
right. Model files never know: they call `functional.conv2d`, which asks `conv_plan` and its kin here.

The platform is the default backend, or "any" while an artifact for several platforms is lowered; then both forms go
into the program under `lax.platform_dependent` and each platform compiles its own. "graph" is for programs that leave
in another format (framework/export/formats): every operation in the one form that its operator has there.

Milliseconds below: 2 cores (Zen 4/5, AVX-512), jax 0.10.2, float32; measured by tools/bench/lowering.py.
"""

from __future__ import annotations

import contextlib
import contextvars
import json
from collections.abc import Callable, Iterator
from typing import Any, Literal, ParamSpec, TypeVar, TypeVarTuple, cast

import jax
from jax import lax

from framework.core.compilation import set_process_flags
from framework.core.dtypes import Autocast, Precision, autocast, precision
from framework.nn.mesh_scope import MeshScope, current_mesh

P = ParamSpec("P")
T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Platform = Literal["cpu", "other", "any", "graph"]
Scopes = tuple[Precision, Autocast | None, Platform, MeshScope | None, bool]
ConvPlan = Literal["plain", "depthwise", "groups", "space_to_depth", "pointwise", "winograd"]

# jax lets GPUs and TPUs compute dots and convolutions of float32 with the digits of TF32 or bfloat16. Results are then
# no longer those of a CPU: on an H100 193 of 1,633 comparisons with Paddle and torch failed, 14 without it. Low
# precision is asked for by `amp` or `precision`, or for all of a process by JAX_DEFAULT_MATMUL_PRECISION.
if jax.config.jax_default_matmul_precision is None:  # type: ignore[attr-defined]
    jax.config.update("jax_default_matmul_precision", "float32")
set_process_flags()

_platform: contextvars.ContextVar[Platform | None] = contextvars.ContextVar("oar_platform", default=None)
_folds_weights: contextvars.ContextVar[bool] = contextvars.ContextVar("oar_folds_weights", default=False)

# Input channels up to which a strided convolution is laid out over blocks of pixels: 3x3x3 stride 2 on 640x640 takes
# 4.4 ms (5.0 with Eigen, 22 with YNN; broadcast multiply-adds take 17 and are computed again for every consumer).
FEW_CHANNELS = 4


def jitted(*static: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Compile a function with these arguments static; for a type checker it keeps its signature."""
    return lambda function: cast(Callable[P, T], jax.jit(function, static_argnames=static))


def platform() -> Platform:
    """The platform that operations are written for here."""
    chosen = _platform.get()
    if chosen is not None:
        return chosen
    return "cpu" if jax.default_backend() == "cpu" else "other"


@contextlib.contextmanager
def platform_scope(value: Platform) -> Iterator[None]:
    """Write operations for this platform inside the block; "any" keeps the choice open until compilation."""
    token = _platform.set(value)
    try:
        yield
    finally:
        _platform.reset(token)


def folds_weights() -> bool:
    """Whether what operations compute of weights alone is computed once for all calls, see `folding_scope`."""
    return _folds_weights.get()


@contextlib.contextmanager
def folding_scope() -> Iterator[None]:
    """Write operations inside the block for weights that stay: forms that first combine a kernel pay at smaller
    sizes."""
    token = _folds_weights.set(True)
    try:
        yield
    finally:
        _folds_weights.reset(token)


def describe(operation: str, **settings: object) -> contextlib.AbstractContextManager[object]:
    """A scope of a trace that says which operation stands in it and how it is set: what a jaxpr does not keep of
    static arguments, and what an exporter needs that knows the operation as one. See `settings_of`."""
    return jax.named_scope(operation + json.dumps(settings))


def settings_of(name_stack: str, operation: str) -> dict[str, Any] | None:
    """The settings of the innermost `describe` of this operation in the names of an equation's scopes."""
    _, found, text = name_stack.rpartition(operation + "{")
    return json.JSONDecoder().raw_decode("{" + text)[0] if found else None


def current_scopes() -> Scopes:
    """What operations read from their scopes while they are traced: a static argument of whatever caches a trace."""
    return precision(), autocast(), platform(), current_mesh(), folds_weights()


def choose(on: Platform, cpu: Callable[[*Ts], T], plain: Callable[[*Ts], T], *args: *Ts) -> T:
    """Run the form for the platform; both go into the program when it is "any"."""
    if on == "any":
        return lax.platform_dependent(*args, cpu=cpu, default=plain)
    return cpu(*args) if on == "cpu" else plain(*args)


def conv_plan(
    in_channels: int,
    kernel_hw: tuple[int, ...],
    groups: int,
    out_channels: int,
    stride: tuple[int, int],
    dilation: tuple[int, int],
) -> ConvPlan:
    """The CPU form of a 2-D convolution.

    depthwise: shifted multiply-adds after a barrier; 3x3, 160x160x48: 0.4 to 0.85 ms against 40 to 53 grouped.
    groups: in blocks, or as sums of products over all groups, see conv_groups.py.
    space_to_depth: see FEW_CHANNELS.
    pointwise: a dot on [N*H*W, C]; ResNet50's training step 3.1 to 2.4 s.
    winograd: half of the multiplications where there is enough to do, see winograd.py; else plain.
    plain: the convolution of XLA (Eigen).
    """
    if groups > 1 and groups == in_channels and out_channels == in_channels:
        return "depthwise"
    if groups > 1:
        return "groups"
    if kernel_hw == (1, 1):
        return "pointwise"
    if stride == (1, 1):
        return "winograd" if kernel_hw == (3, 3) else "plain"
    return "space_to_depth" if in_channels <= FEW_CHANNELS and dilation == (1, 1) else "plain"
