"""interpolate, grid_sample and affine_grid with Paddle's coordinate rules, on channels-last arrays.

Paddle's rules differ silently from others': `align_mode=1` starts at the pixel's edge, a scale_factor sets the ratio
of the coordinates itself (not through the rounded size), an axis resized to one pixel reads pixel 0, and nothing is
smoothed before shrinking (no antialias).

Resizing is separable: each output row is a weighted sum of 1, 2 or 4 input rows whose numbers stand in a table that
numpy makes while tracing. The gradient is the same operation with the transposed table. Autodiff would scatter rows
one by one instead: 128x256x64 to twice that takes 1.2 ms back here, 41 by autodiff (2 cores, jax 0.10.2).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from framework.core.axes import per_axis
from framework.core.dtypes import wide_type
from framework.core.errors import ShapeError
from framework.nn.functional.common import check_data_format
from framework.nn.functional.lowering import Platform, describe, jitted, platform
from framework.nn.functional.pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

Table = np.ndarray | jax.Array  # an array of numpy where all sizes are known while tracing, else of jax.numpy
N = TypeVar("N", bound=float)  # numbers of Python or numpy, sizes that may be symbolic

# Taps up to which a transposed table is a sum of gathers; beyond, it is one dot with the dense [in, out] matrix.
_MAX_GATHERS = 24
_WHOLE_FACTORS = (1, 2, 3, 4, 5, 6, 8, 16, 32)


@dataclass(frozen=True)
class _Axis:
    """How one axis is resized: `size` to `out` pixels; `ratio` is input pixels per output pixel."""

    axis: int
    size: int  # may be symbolic, as `out`
    out: int
    ratio: float | None  # None: symbolic, size / out at run time
    kind: str  # nearest, linear or cubic
    align_corners: bool
    align_mode: int

    @property
    def static(self) -> bool:
        return isinstance(self.size, int) and isinstance(self.out, int)

    @property
    def factor(self) -> int | None:
        """The whole number by which nearest repeats pixels, where it is one."""
        if self.kind != "nearest":
            return None
        if self.static:
            whole = self.out // self.size
            exact = whole > 0 and whole * self.size == self.out and self.ratio == float(np.float32(1 / whole))
            return whole if exact else None
        return next((k for k in _WHOLE_FACTORS if self.out == self.size * k), None)

    def table(self, np_: ModuleType) -> tuple[Table, Table]:
        """(rows [taps, out], weights [taps, out]) in float32, by numpy when static and by jax.numpy otherwise."""
        target = np_.arange(self.out).astype(np_.float32)
        if self.ratio is None:
            sizes = [jnp.asarray(n).astype(jnp.float32) for n in (self.size, self.out)]
            edge = 1.0 if self.align_corners else 0.0
            ratio = jnp.where(sizes[1] > 1, (sizes[0] - edge) / jnp.maximum(sizes[1] - edge, 1.0), 0.0)
        else:
            ratio = np.float32(self.ratio)
        last = self.size - 1
        half_pixel = not self.align_corners and (self.kind == "cubic" or self.align_mode == 0)
        if self.kind == "nearest":
            rows = np_.minimum(np_.floor(target * ratio).astype(np_.int32), last)
            return rows[None], np_.ones((1, self.out), np_.float32)
        source = (target + np_.float32(0.5)) * ratio - np_.float32(0.5) if half_pixel else target * ratio
        if self.kind == "linear":
            source = np_.maximum(source, np_.float32(0))
            low = np_.minimum(np_.floor(source).astype(np_.int32), last)
            part = source - low.astype(np_.float32)
            return np_.stack([low, np_.minimum(low + 1, last)]), np_.stack([1 - part, part])
        low = np_.floor(source)
        rows = low.astype(np_.int32)[None] + np_.arange(-1, 3)[:, None].astype(np_.int32)
        return np_.clip(rows, 0, last), _cubic_weights(source - low, np_)


def _cubic_weights(t: Table, np_: ModuleType, a: float = -0.75) -> Table:
    """[4, out] weights of the rows -1, 0, 1, 2 around t in [0, 1). Source: Keys 1981."""

    def near(d: Table) -> Table:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Table) -> Table:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return np_.stack([far(t + 1), near(t), near(1 - t), far(2 - t)]).astype(np_.float32)


def _combine(x: jax.Array, axis: int, rows: Table, weights: Table) -> jax.Array:
    """The sum over taps of x[rows[t]] * weights[t] along `axis`, in the type of x."""
    shape = (-1,) + (1,) * (x.ndim - axis - 1)
    parts = [
        jnp.take(x, row, axis, mode="clip") * weight.reshape(shape).astype(x.dtype)
        for row, weight in zip(rows, weights)
    ]
    return functools.reduce(jnp.add, parts)


def _resize_axis(x: jax.Array, plan: _Axis) -> jax.Array:
    factor = plan.factor
    if factor is not None:
        if factor == 1:
            return x
        spread = (*x.shape[: plan.axis + 1], factor, *x.shape[plan.axis + 1 :])
        return jnp.broadcast_to(jnp.expand_dims(x, plan.axis + 1), spread).reshape(
            *x.shape[: plan.axis], plan.out, *x.shape[plan.axis + 1 :]
        )
    rows, weights = plan.table(np if plan.static else jnp)
    if plan.kind == "nearest":
        return jnp.take(x, rows[0], plan.axis, mode="clip")
    return _combine(x, plan.axis, rows, weights)


def _resize_axis_gradient(dy: jax.Array, plan: _Axis) -> jax.Array:
    """The gradient of `_resize_axis` with respect to x, for a static plan."""
    rows, weights = plan.table(np)
    matrix = np.zeros((plan.size, plan.out), np.float32)
    for row, weight in zip(rows, weights):
        np.add.at(matrix, (row, np.arange(plan.out)), weight)
    used = matrix != 0
    first = np.where(used.any(1), used.argmax(1), 0)
    reach = np.where(used.any(1), plan.out - used[:, ::-1].argmax(1) - first, 0)
    taps = max(int(reach.max()), 1)
    if taps > _MAX_GATHERS:
        return jnp.moveaxis(
            jnp.tensordot(jnp.asarray(matrix, dy.dtype), dy, ((1,), (plan.axis,))), 0, plan.axis
        )
    columns = np.minimum(first, plan.out - taps) + np.arange(taps)[:, None]
    return _combine(dy, plan.axis, columns, matrix[np.arange(plan.size), columns])


def _resize(x: jax.Array, plans: tuple[_Axis, ...], on: Platform) -> jax.Array:
    """Axis by axis. Sums of taps are kept in memory in between: XLA on a CPU would read the taps of all axes for each
    value, and lay them out for whatever reads them (19 classes to 512x1024 and the best of them: 6.3 ms, 3.5 so)."""
    for plan in plans:
        x = _resize_axis(x, plan)
        if on != "other" and plan.kind != "nearest" and plan is not plans[-1]:
            x = lax.optimization_barrier(x)
    return x


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _resize_static(x: jax.Array, plans: tuple[_Axis, ...], on: Platform) -> jax.Array:
    return _resize(x, plans, on)


def _resize_static_bwd(plans: tuple[_Axis, ...], on: Platform, _: None, dy: jax.Array) -> tuple[jax.Array]:
    # Of "nearest" the gradient comes in 16 bits where its input had them; its sums are taken in float32.
    wide = dy.astype(jnp.float32) if jnp.finfo(dy.dtype).bits < 32 else dy
    return (functools.reduce(_resize_axis_gradient, reversed(plans), wide).astype(dy.dtype),)


_resize_static.defvjp(lambda x, plans, on: (_resize_static(x, plans, on), None), _resize_static_bwd)


@jitted("plans", "on")
def _interpolate(x: jax.Array, plans: tuple[_Axis, ...], on: Platform) -> jax.Array:
    described = [
        {"axis": p.axis, "kind": p.kind, "ratio": p.ratio, "corners": p.align_corners, "mode": p.align_mode}
        for p in plans
    ]
    with describe("interpolate", axes=described):
        return _interpolate_axes(x, plans, on)


def _interpolate_axes(x: jax.Array, plans: tuple[_Axis, ...], on: Platform) -> jax.Array:
    nearest = all(plan.kind == "nearest" for plan in plans)
    wide = x if nearest else x.astype(wide_type(x.dtype))
    if all(plan.static for plan in plans) and jnp.issubdtype(wide.dtype, jnp.floating):
        resized: jax.Array = _resize_static(wide, plans, on)  # custom_vjp loses the type
        return resized.astype(x.dtype)
    return _resize(wide, plans, on).astype(x.dtype)


_KINDS = {
    "nearest": ("nearest", (3, 4, 5)),
    "linear": ("linear", (3,)),
    "bilinear": ("linear", (4,)),
    "trilinear": ("linear", (5,)),
    "bicubic": ("cubic", (4,)),
    "area": ("area", (3, 4, 5)),
}


def interpolate(
    x: jax.Array,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    align_mode: int = 0,
    data_format: str = "NHWC",
) -> jax.Array:
    """Resize the spatial axes of x [N, T, C], [N, H, W, C] or [N, D, H, W, C] to `size` or by `scale_factor`.

    mode: nearest, area, linear (3 axes), bilinear, bicubic (4 axes), trilinear (5 axes). `align_corners` maps corner
    pixels onto one another; without it `align_mode=0` takes pixel centres (half-pixel) and 1 takes
    source = ratio * target; bicubic always takes centres then. Sizes may be symbolic dimensions of an export.
    Source: paddle.nn.functional.interpolate; there is no antialiasing.

    Raises:
        ShapeError: unknown mode, or arguments that do not fit together.
    """
    if mode not in _KINDS or x.ndim not in _KINDS[mode][1]:
        raise ShapeError(
            "interpolate: the mode does not exist for this number of axes",
            received=f"mode {mode!r}, x {x.shape}",
            allowed="; ".join(f"{name}: {axes} axes" for name, (_, axes) in _KINDS.items()),
        )
    check_data_format(data_format, "interpolate")
    if (size is None) == (scale_factor is None):
        raise ShapeError(
            "interpolate: one of size and scale_factor",
            received=f"size={size}, scale_factor={scale_factor}",
            allowed="either of them",
        )
    if mode == "nearest" and align_corners:
        raise ShapeError(
            "interpolate: nearest has no align_corners", received="align_corners=True", allowed="False"
        )
    if align_mode not in (0, 1):
        raise ShapeError("interpolate: unknown align_mode", received=align_mode, allowed="0 or 1")
    sizes = x.shape[1:-1]
    scales: tuple[float, ...] | tuple[None, ...] = (None,) * len(sizes)
    if size is not None:
        outs = per_axis(size, len(sizes), "interpolate: size", _number)
    else:
        assert scale_factor is not None
        scales = per_axis(scale_factor, len(sizes), "interpolate: scale_factor", _number)
        if min(scales) <= 0:
            raise ShapeError("interpolate: scales are positive", received=scale_factor, allowed="more than 0")
        outs = [_scale(n, s) for n, s in zip(sizes, scales)]
    for out in outs:
        if isinstance(out, int) and out < 1:
            raise ShapeError(
                "interpolate: sizes start at 1", received=tuple(outs), allowed="1 or more pixels"
            )
    if mode == "area":
        if x.ndim == 3:
            return adaptive_avg_pool1d(x, outs[0])
        return (adaptive_avg_pool2d if x.ndim == 4 else adaptive_avg_pool3d)(x, outs)
    plans = [
        _Axis(i + 1, n, out, _ratio(n, out, scale, align_corners), _KINDS[mode][0], align_corners, align_mode)
        for i, (n, out, scale) in enumerate(zip(sizes, outs, scales))
    ]
    plans = [p for p in plans if p.size != p.out or p.ratio not in (0.0, 1.0, None)]
    # Columns first: rows are then combined as whole rows of memory.
    return _interpolate(x, tuple(reversed(plans)), platform()) if plans else x


def _number(value: N) -> N:
    return cast(N, value.item()) if isinstance(value, np.generic) else value


def _scale(size: int, scale: float) -> int:
    if isinstance(size, int):
        return int(size * scale)
    if scale >= 1 and float(scale).is_integer():
        return size * int(scale)
    if (1 / scale).is_integer():
        return size // int(1 / scale)
    raise ShapeError(
        "interpolate: a symbolic size takes whole scales or whole parts",
        received=f"{size} * {scale}",
        allowed="scale 2, 3, ... or 1/2, 1/3, ...; or pass size",
    )


def _ratio(size: int, out: int, scale: float | None, align_corners: bool) -> float | None:
    if isinstance(out, int) and out == 1:
        return 0.0
    if align_corners:
        static = isinstance(size, int) and isinstance(out, int)
        return float(np.float32(size - 1) / np.float32(out - 1)) if static else None
    if scale is not None:
        return float(np.float32(1 / scale))
    static = isinstance(size, int) and isinstance(out, int)
    return float(np.float32(size) / np.float32(out)) if static else None


upsample = interpolate


# -- sampling at points -------------------------------------------------------------------------------------------


def _reflect(position: jax.Array, size: int, align_corners: bool) -> jax.Array:
    last = size - 1
    offset = 0.0 if align_corners else 0.5
    span = 2.0 * (last if align_corners else size)
    if span == 0:
        return jnp.zeros_like(position)
    distance = jnp.abs(position + offset)
    rest = distance - jnp.floor(distance / span) * span
    return jnp.minimum(rest, span - rest) - offset


def _clamp(position: jax.Array, last: int) -> jax.Array:
    return lax.clamp(jnp.zeros((), position.dtype), position, jnp.asarray(last, position.dtype))


@jitted("mode", "padding_mode", "align_corners")
def grid_sample(
    x: jax.Array,
    grid: jax.Array,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool = True,
) -> jax.Array:
    """Read x [N, H, W, C] at the points grid [N, oh, ow, 2] -> [N, oh, ow, C]; or volumes [N, D, H, W, C] at
    [N, od, oh, ow, 3].

    A point is (x, y) or (x, y, z) with -1 at the left, top or front edge and 1 at the other: the centres of the corner
    pixels with `align_corners`, their outer edges without. padding_mode: zeros, border or reflection.
    """
    axes = x.ndim - 2
    if axes not in (2, 3) or grid.ndim != x.ndim or grid.shape[-1] != axes or x.shape[0] != grid.shape[0]:
        raise ShapeError(
            "grid_sample: input and grid do not agree",
            received=f"x {x.shape}, grid {grid.shape}",
            allowed="x [N, H, W, C] and grid [N, oh, ow, 2] with points (x, y), or one more axis and coordinate",
        )
    if mode not in ("bilinear", "nearest") or padding_mode not in ("zeros", "border", "reflection"):
        raise ShapeError(
            "grid_sample: unknown mode",
            received=f"mode {mode!r}, padding_mode {padding_mode!r}",
            allowed="bilinear or nearest; zeros, border or reflection",
        )
    n, *sizes, c = x.shape
    wide = wide_type(x.dtype)
    table = x.astype(wide).reshape(n, math.prod(sizes), c)
    places = []
    for coordinate, size in zip(reversed(range(axes)), sizes):
        value = grid[..., coordinate].astype(wide)
        at = (value + 1) * ((size - 1) / 2) if align_corners else ((value + 1) * size - 1) / 2
        if padding_mode == "reflection":
            at = _reflect(at, size, align_corners)
        places.append(at if padding_mode == "zeros" else _clamp(at, size - 1))

    def pick(at: Sequence[jax.Array]) -> jax.Array:
        inside = functools.reduce(jnp.logical_and, [(p >= 0) & (p < size) for p, size in zip(at, sizes)])
        index = jnp.zeros(at[0].shape, jnp.int32)
        for p, size in zip(at, sizes):
            index = index * size + jnp.clip(p, 0, size - 1).astype(jnp.int32)
        values = jax.vmap(lambda t, i: jnp.take(t, i, axis=0, mode="clip"))(table, index)
        return jnp.where(inside[..., None], values, 0)

    if mode == "nearest":
        return pick([lax.round(p) for p in places]).astype(x.dtype)
    lows = [jnp.floor(lax.stop_gradient(p)) for p in places]
    parts = [p - low for p, low in zip(places, lows)]
    corners = []
    for corner in itertools.product((0, 1), repeat=axes):
        shares = [part if far else 1 - part for far, part in zip(corner, parts)]
        share = functools.reduce(jnp.multiply, shares)
        corners.append(pick([low + far for low, far in zip(lows, corner)]) * share[..., None])
    return functools.reduce(jnp.add, corners).astype(x.dtype)


@jitted("size", "align_corners")
def _affine_grid(theta: jax.Array, size: tuple[int, ...], align_corners: bool) -> jax.Array:
    lines = []
    for n in size:
        step = 2 / (n - 1 if align_corners else n) if n > 1 or not align_corners else 0.0
        start = -1.0 if align_corners else -1 + step / 2
        lines.append(start + step * jnp.arange(n, dtype=theta.dtype))
    rows = jnp.meshgrid(*lines, indexing="ij")
    points = jnp.stack([*reversed(rows), jnp.ones_like(rows[0])], -1)
    return jnp.einsum("...k,nik->n...i", points, theta, precision=lax.Precision.HIGHEST)


def affine_grid(theta: jax.Array, out_shape: Sequence[int], align_corners: bool = True) -> jax.Array:
    """The points that `grid_sample` reads for the affine maps theta [N, 2, 3] -> [N, H, W, 2], or for [N, 3, 4] ->
    [N, D, H, W, 3].

    `out_shape` is [N, H, W, C] or [N, D, H, W, C]; only the sizes in between count.
    """
    axes = len(out_shape) - 2
    if axes not in (2, 3) or theta.ndim != 3 or theta.shape[1:] != (axes, axes + 1):
        raise ShapeError(
            "affine_grid: maps and shape do not agree",
            received=f"theta {theta.shape}, out_shape {tuple(out_shape)}",
            allowed="theta [N, 2, 3] and out_shape [N, H, W, C], or [N, 3, 4] and [N, D, H, W, C]",
        )
    return _affine_grid(theta, tuple(int(n) for n in out_shape[1:-1]), bool(align_corners))
