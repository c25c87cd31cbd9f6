"""ONNX Resize and Upsample in all modes, GridSample and AffineGrid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.interop.graph.onnx.shapes import axes_of
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import (
    MOST_TIMES,
    Array,
    Dim,
    Item,
    Value,
    channels_last,
    count,
    is_symbolic,
    shape_of,
    to_jax,
    to_value,
)
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
_HALF_TOLERANCE = 1e-6  # onnxruntime takes 3.499999 for 3.5, which a scale of 32 bits misses
_CORE_LINEAR = {
    "half_pixel": (False, 0),
    "pytorch_half_pixel": (False, 0),
    "align_corners": (True, 0),
    "asymmetric": (False, 1),
}


@operator("Upsample", style="values", static=(1,))
def _upsample(call: Call, x: Item, scales: Item = None) -> Item:
    factors = list(call.required("scales")) if scales is None else call.static(scales, "the scales").tolist()
    old = shape_of(x)
    sizes = [_scaled(call, n, s) for n, s in zip(old, factors)]
    _check_sizes(call, old, sizes)
    mode = "nearest" if call.attr("mode", "nearest") == "nearest" else "linear"
    return _Resize(call, to_value(x), sizes, factors, mode, "asymmetric", "floor").run()


def _check_sizes(call: Call, old: Sequence[Dim], new: Sequence[Dim]) -> None:
    """Raises: ShapeError, where a result is larger than any model asks for: damage, which takes minutes to compute."""
    count(new, call.where)
    for size, out in zip(old, new):
        if isinstance(size, int) and isinstance(out, int) and out > MOST_TIMES * max(size, 1):
            raise call.error(
                "an axis is made longer than any image needs",
                ShapeError,
                received=f"from {list(old)} to {list(new)}",
                allowed=f"{MOST_TIMES:,} times its size at most",
            )


def _scaled(call: Call, size: Dim, scale: float) -> Dim:
    if not 0 < scale < 2**31:
        raise call.error("a scale is positive", ShapeError, received=scale)
    if isinstance(size, int):
        return math.floor(
            np.float32(size) * np.float32(scale)
        )  # 20 times 0.65 is 13, as in onnx's shape inference
    if float(scale).is_integer():
        return size * int(scale)
    if (1 / scale).is_integer():
        return size // int(1 / scale)
    fraction = float(scale).as_integer_ratio()
    return size * fraction[0] // fraction[1]


@operator("Resize", style="values", static=(1, 2, 3))
def _resize(call: Call, x: Item, roi: Item = None, scales: Item = None, sizes: Item = None) -> Item:
    v = to_value(x)
    if call.version < 11:  # (x, scales)
        roi, scales = None, roi
    coordinates = call.attr(
        "coordinate_transformation_mode", "half_pixel" if call.version >= 11 else "asymmetric"
    )
    rounding = call.attr("nearest_mode", "round_prefer_floor" if call.version >= 11 else "simple")
    axes = [call.axis(a, v.ndim) for a in axes_of(call, None) or range(v.ndim)]
    outs, factors = list(v.shape), [1.0] * v.ndim
    if scales is not None and np.size(call.static(scales, "the scales")):
        for axis, scale in zip(axes, call.static(scales, "the scales").tolist(), strict=True):
            outs[axis], factors[axis] = _scaled(call, v.shape[axis], scale), scale
    elif sizes is not None:
        target_sizes = call.dims(sizes, "the sizes")
        for axis, size in zip(axes, target_sizes, strict=True):
            outs[axis] = size
        policy = call.attr("keep_aspect_ratio_policy", "stretch")
        if policy != "stretch":
            pick = min if policy == "not_larger" else max
            scale = pick(outs[axis] / v.shape[axis] for axis in axes)
            for axis in axes:
                outs[axis], factors[axis] = math.floor(v.shape[axis] * scale + 0.5), scale
        else:
            factors = [_factor(out, n) for out, n in zip(outs, v.shape)]
    else:
        raise call.error("neither scales nor sizes are given")
    _check_sizes(call, v.shape, outs)
    resize = _Resize(call, v, outs, factors, call.attr("mode", "nearest"), coordinates, rounding)
    resize.host_array = x if isinstance(x, np.ndarray) and x.size else None
    if roi is not None and coordinates == "tf_crop_and_resize":
        corners = call.static(roi, "the region").tolist()
        resize.regions = {axis: (corners[i], corners[i + len(axes)]) for i, axis in enumerate(axes)}
    return resize.run()


def _factor(out: Dim, size: Dim) -> float | None:
    if isinstance(out, int) and isinstance(size, int):
        return out / size if size else 1.0
    for factor in (1, 2, 3, 4, 8, 16, 32):
        if out == size * factor:
            return float(factor)
    return None


def _is_exact(factor: float | None, size: Dim, out: Dim) -> bool:
    """Whether the size times the factor is the result's size."""
    if factor is None:
        return False
    if is_symbolic(size) or is_symbolic(out):
        return float(factor).is_integer() and size * int(factor) == out
    return factor * size == out


class _Resize:
    """One resize: sizes, scales (None where both sizes are symbolic), and how coordinates are found."""

    def __init__(
        self,
        call: Call,
        x: Value,
        outs: list[Dim],
        factors: list[float | None] | list[float],
        mode: str,
        coordinates: str,
        rounding: str,
    ) -> None:
        self.call, self.x, self.outs, self.factors = call, x, outs, factors
        self.mode, self.coordinates, self.rounding = mode, coordinates, rounding
        self.regions: dict[int, tuple[float, float]] = {}
        # The array, where it is known or on the host: sizes that come once are not worth a program each.
        self.host_array: np.ndarray | None = None

    def run(self) -> Value | np.ndarray:
        x, outs = self.x, self.outs
        if (
            self.host_array is None
            and self.coordinates != "tf_crop_and_resize"
            and not self.call.attr("antialias")
            and x.ndim in (3, 4, 5)
        ):
            same = outs[0] == x.shape[0] and outs[1] == x.shape[1]
            if same and (y := self._by_core()) is not None:
                return y
        data, order = (x.data, x.order) if self.host_array is None else (self.host_array, range(x.ndim))
        xp = jnp if self.host_array is None else np
        outside = None
        for axis in range(x.ndim):
            if self._unchanged(axis):
                continue
            data, out_of_image = self._along(data, order[axis], axis)
            if out_of_image is not None:
                shape = [1] * x.ndim
                shape[order[axis]] = -1
                here = xp.asarray(out_of_image).reshape(shape)
                outside = here if outside is None else outside | here
        if outside is not None:
            data = xp.where(outside, self.call.attr("extrapolation_value", 0.0), data)
        return data.astype(x.dtype) if isinstance(data, np.ndarray) else Value(data.astype(x.dtype), x.order)

    def _unchanged(self, axis: int) -> bool:
        same = self.outs[axis] == self.x.shape[axis] and self.factors[axis] in (1.0, None)
        return bool(same and self.regions.get(axis, (0, 1)) == (0, 1))

    def _by_core(self) -> Value | None:
        """By `functional.interpolate`, where that has the same coordinates."""
        x, size = self.x, self.outs[2:]
        axes = x.ndim - 2
        exact = all(_is_exact(f, n, out) for f, n, out in zip(self.factors[2:], x.shape[2:], size))
        options: dict[str, Any] = {"size": size}
        if self.mode == "nearest":
            # A whole factor repeats pixels.
            whole = all(f is not None and float(f).is_integer() for f in self.factors[2:])
            pixels = self.coordinates in ("half_pixel", "pytorch_half_pixel", "half_pixel_symmetric")
            pixels = pixels and self.rounding.startswith("round")
            if not (
                whole
                and exact
                and (pixels or (self.coordinates == "asymmetric" and self.rounding in ("floor", "simple")))
            ):
                return None
        elif self.mode == "linear" and self.coordinates in _CORE_LINEAR and axes <= 3:
            options["align_corners"], options["align_mode"] = _CORE_LINEAR[self.coordinates]
            if not exact and self._scales_differ():
                return None
        elif self.mode == "cubic" and axes == 2 and self.coordinates in ("half_pixel", "align_corners"):
            usual = self.call.attr("cubic_coeff_a", -0.75) == -0.75 and not self.call.attr("exclude_outside")
            if not usual or (not exact and self._scales_differ()):
                return None
            options["align_corners"] = self.coordinates == "align_corners"
        else:
            return None
        if any(isinstance(n, int) and n == 1 for n in size) and self.mode != "nearest":
            return None  # the core reads pixel 0 there
        names = {
            "nearest": "nearest",
            "linear": ("linear", "bilinear", "trilinear")[axes - 1],
            "cubic": "bicubic",
        }
        return Value(
            F.interpolate(x.channels_last(), mode=names[self.mode], **options), channels_last(x.ndim)
        )

    def _scales_differ(self) -> bool:
        """Whether the scales are others than the ratios of the sizes, which the core would take."""
        if self.coordinates == "align_corners":
            return False  # which asks for sizes alone
        pairs = zip(self.factors[2:], self.outs[2:], self.x.shape[2:])
        return any(
            f is not None and not (is_symbolic(out) or is_symbolic(n)) and abs(f * n - out) > 1e-6 * out
            for f, out, n in pairs
        )

    def _positions(self, axis: int) -> np.ndarray:
        """For each pixel of the result the place in the input, rounded to 32 bits where onnxruntime rounds."""
        size, out = self.x.shape[axis], self.outs[axis]
        factor = self.factors[axis]
        if is_symbolic(size) or is_symbolic(out) or factor is None:
            raise self.call.error(
                "this way of resizing needs sizes that are known",
                ShapeError,
                received=f"{size} to {out}, mode {self.mode}, {self.coordinates}, {self.rounding}",
                allowed="symbolic sizes in linear and cubic modes, and in nearest by a whole factor",
                fix="export with fixed sizes, or make the model anew with a factor of 2, 3, 4 …",
            )
        scale, pixel, half = np.float32(factor), np.arange(out, dtype=np.float32), np.float32(0.5)
        last, steps = np.float32(size - 1), np.float32(out - 1)
        match self.coordinates:
            case "align_corners":
                return pixel * last / steps if out > 1 else pixel * 0
            case "asymmetric":
                return pixel / scale
            case "pytorch_half_pixel":
                return (pixel + half) / scale - half if out > 1 else pixel * 0
            case "tf_half_pixel_for_nn":
                return (pixel + half) / scale
            case "tf_crop_and_resize":
                start, end = map(np.float32, self.regions.get(axis, (0.0, 1.0)))
                if out > 1:
                    return start * last + pixel * (end - start) * last / steps
                return pixel * 0 + half * (start + end) * last
            case "half_pixel_symmetric":
                offset = size / 2 * (1 - np.float32(out) / (scale * np.float32(size)))
                return (offset + np.float64(pixel + half) / scale - 0.5).astype(np.float32)
            case "half_pixel":
                return (pixel + half) / scale - half
        raise self.call.error("an unknown coordinate_transformation_mode", received=self.coordinates)

    def _along(self, data: Array, position: int, axis: int) -> tuple[Array, np.ndarray | None]:
        """One axis resized; where positions outside of the image are to be filled, which they are."""
        size = self.x.shape[axis]
        at = self._positions(axis)
        outside = None
        if self.coordinates == "tf_crop_and_resize":
            outside = (at < 0) | (at > size - 1)
        if self.mode == "nearest":
            is_smaller = float(self.factors[axis] or 1.0) < 1
            rounded = {
                "floor": np.floor,
                "ceil": np.ceil,
                # before opset 11, whose text leaves it open; onnxruntime and onnx's own example do so
                "simple": np.ceil if is_smaller else np.floor,
                "round_prefer_floor": lambda p: np.ceil(np.float64(p) - 0.5 - _HALF_TOLERANCE),
                "round_prefer_ceil": lambda p: np.floor(np.float64(p) + 0.5 + _HALF_TOLERANCE),
            }[self.rounding](at)
            pixels = np.clip(rounded, 0, size - 1).astype(np.int32)
            if isinstance(data, np.ndarray):
                return data.take(pixels, position), outside
            return jnp.take(data, pixels, position), outside
        rows, weights = self._weights(at.astype(np.float64), size, float(self.factors[axis] or 1.0))
        if isinstance(data, np.ndarray):
            return self._add_rows(data, position, rows, weights), outside
        matrix = np.zeros((len(at), size))
        np.add.at(matrix, (np.arange(len(at))[:, None], rows), weights)
        matrix = matrix.astype(np.float32)
        moved = jnp.tensordot(data.astype(jnp.float32), matrix, ((position,), (1,)), precision="highest")
        return jnp.moveaxis(moved, -1, position), outside

    @staticmethod
    def _add_rows(data: np.ndarray, position: int, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        pixels = np.moveaxis(data.astype(np.float32), position, -1)
        used = np.flatnonzero(weights.any(0))
        total = np.zeros((*pixels.shape[:-1], len(rows)), np.float32)
        for at in used:
            total += pixels[..., rows[:, at]] * weights[:, at].astype(np.float32)
        return np.moveaxis(total, -1, position)

    def _weights(self, at: np.ndarray, size: int, scale: float) -> tuple[np.ndarray, np.ndarray]:
        """For each pixel of the result some of the input, and how much of each: both [out, pixels]."""
        shrink = min(scale, 1.0) if self.call.attr("antialias") else 1.0
        a = self.call.attr("cubic_coeff_a", -0.75)

        def filter_of(distance: np.ndarray) -> np.ndarray:
            d = np.abs(distance) * shrink
            if self.mode == "linear":
                return np.maximum(1 - d, 0)
            near = ((a + 2) * d - (a + 3)) * d * d + 1
            far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
            return np.where(d <= 1, near, np.where(d < 2, far, 0))

        reach = math.ceil((1 if self.mode == "linear" else 2) / shrink) + 1
        rows = np.floor(at)[:, None] + np.arange(-reach, reach + 1)
        weights = filter_of(at[:, None] - rows)
        if self.call.attr("exclude_outside"):
            weights = np.where((rows >= 0) & (rows < size), weights, 0)
        weights = weights / weights.sum(1, keepdims=True)
        return np.clip(rows, 0, size - 1).astype(int), weights


# -- reading at points --------------------------------------------------------------------------------------------


@operator("GridSample", style="values")
def _grid_sample(call: Call, x: Item, grid: Item) -> Item:
    v, points = to_value(x), to_jax(grid)
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(
        call.attr("mode", "linear"), call.attr("mode", "linear")
    )
    padding, corners = call.attr("padding_mode", "zeros"), bool(call.attr("align_corners"))
    data = v.channels_last()
    if mode == "linear":
        return Value(F.grid_sample(data, points, "bilinear", padding, corners), channels_last(v.ndim))
    sizes = data.shape[1:-1]
    at = []
    for coordinate, size in zip(reversed(range(len(sizes))), sizes):
        p = points[..., coordinate]
        at.append((p + 1) * ((size - 1) / 2) if corners else ((p + 1) * size - 1) / 2)
    if mode == "nearest":
        y = _pick(data, [jnp.round(p) for p in at], padding, corners)
    else:
        y = jnp.zeros((), data.dtype)
        lows = [jnp.floor(p) for p in at]
        weights = [_cubic(p - low) for p, low in zip(at, lows)]
        for i in range(4):
            for j in range(4):
                share = (weights[0][i] * weights[1][j])[..., None]
                y = y + _pick(data, [lows[0] + (i - 1), lows[1] + (j - 1)], padding, corners) * share
    return Value(y.astype(data.dtype), channels_last(v.ndim))


def _cubic(t: jax.Array, a: float = -0.75) -> list[jax.Array]:
    """Weights of the pixels -1, 0, 1, 2 around t in [0, 1)."""

    def near(d: jax.Array) -> jax.Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: jax.Array) -> jax.Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _pick(data: jax.Array, at: list[jax.Array], padding: str, corners: bool) -> jax.Array:
    """The pixels at whole positions [N, ...]; those outside are 0, the border or a reflection."""
    index, inside = [], jnp.asarray(True)
    for p, size in zip(at, data.shape[1:-1]):
        if padding == "reflection":
            low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
            span = max(high - low, 1e-9)
            away = jnp.abs(p - low)
            turns = jnp.floor(away / span)
            rest = away - turns * span
            p = jnp.where(turns % 2 == 0, low + rest, high - rest)
        inside = inside & (p >= 0) & (p <= size - 1)
        index.append(jnp.clip(jnp.round(p), 0, size - 1).astype(jnp.int32))
    batch = jnp.arange(data.shape[0]).reshape(-1, *(1,) * (index[0].ndim - 1))
    values = data[(batch, *index)]
    return jnp.where(inside[..., None], values, 0) if padding == "zeros" else values


@operator("AffineGrid", static=(1,))
def _affine_grid(call: Call, theta: jax.Array, size: Item) -> jax.Array:
    dims = call.dims(size, "the size")
    spatial = [dims[0], *dims[2:], dims[1]]
    return F.affine_grid(theta, spatial, bool(call.attr("align_corners")))
