"""ONNX pooling. The common forms are the core's; windows of any rank, dilation or type run on `lax.reduce_window`."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import max_dim
from jax.typing import ArrayLike

from framework.core.errors import ShapeError
from framework.interop.graph.onnx.conv import Edges, Numbers, spatial_numbers, window_edges
from framework.interop.graph.onnx.regions import roi_align
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, channels_last, count, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)


class Windows:
    """The windows of one node over the spatial axes of x."""

    def __init__(self, call: Call, x: Value) -> None:
        self.kernel: Numbers = tuple(call.required("kernel_shape"))
        axes = len(self.kernel)
        if x.ndim != axes + 2 or min(self.kernel) < 1:
            raise call.error(
                "the window does not fit the input",
                ShapeError,
                received=f"input {x.shape}, kernel_shape {self.kernel}",
                allowed=f"{axes + 2} axes",
            )
        self.strides = spatial_numbers(call, "strides", axes)
        self.dilations = spatial_numbers(call, "dilations", axes)
        self.pads: Edges = window_edges(call, x.shape[2:], self.kernel, self.strides, self.dilations)
        reach = [(k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations)]
        wide = [isinstance(e, int) and e >= r for edge, r in zip(self.pads, reach) for e in edge]
        if any(wide):
            raise call.error(
                "the padding is as wide as the window",
                ShapeError,
                received=self.pads,
                allowed=f"less than {reach}",
            )
        self.ceil = bool(call.attr("ceil_mode")) and call.attr("auto_pad", "NOTSET") in ("NOTSET", "")
        self.data = x.channels_last()
        # With the rows that ceil mode adds behind; a window that would begin there is dropped.
        self.edges: Edges = []
        for n, k, s, d, (low, high) in zip(x.shape[2:], self.kernel, self.strides, self.dilations, self.pads):
            span = n + low + high - ((k - 1) * d + 1)
            extra = 0
            if self.ceil:
                out = -(-span // s) + 1
                if isinstance(out, int) and (out - 1) * s >= n + low:
                    out -= 1
                extra = (out - 1) * s - span
                extra = max(extra, 0) if isinstance(extra, int) else max_dim(extra, 0)
            self.edges.append((low, high + extra))

    @property
    def plain(self) -> bool:
        """Whether the pooling of the core has this form: one or two axes, floats, no dilation."""
        floating = jnp.issubdtype(self.data.dtype, jnp.floating)
        whole = all(isinstance(edge, int) for pair in self.edges for edge in pair)
        return len(self.kernel) <= 2 and floating and whole and set(self.dilations) == {1}

    def reduce(
        self, x: jax.Array, start: ArrayLike, function: Callable, edges: Edges | None = None
    ) -> jax.Array:
        """`function` over the windows of [N, *spatial, C]; padding holds `start`."""
        return lax.reduce_window(
            x,
            np.asarray(start, x.dtype),
            function,
            (1, *self.kernel, 1),
            (1, *self.strides, 1),
            ((0, 0), *(self.edges if edges is None else edges), (0, 0)),
            window_dilation=(1, *self.dilations, 1),
        )

    def as_image(self) -> tuple[jax.Array, Numbers, Numbers, Edges]:
        """(data, kernel, strides, edges) of two axes, also where there is one."""
        if len(self.kernel) == 2:
            return self.data, self.kernel, self.strides, self.edges
        return self.data[:, None], (1, *self.kernel), (1, *self.strides), [(0, 0), *self.edges]


def _finish(y: jax.Array, rank: int) -> Value:
    return Value(y.reshape(y.shape[0], *y.shape[2:]) if y.ndim > rank else y, channels_last(rank))


@operator("MaxPool", style="values")
def _max_pool(call: Call, x: Item) -> Item | tuple[Item, Item]:
    v = to_value(x)
    windows = Windows(call, v)
    if call.wants(1):
        return _max_with_places(call, v, windows)
    if windows.plain:
        data, kernel, strides, edges = windows.as_image()
        return _finish(F.max_pool2d(data, kernel, strides, edges), v.ndim)
    data = windows.data
    low = -math.inf if jnp.issubdtype(data.dtype, jnp.floating) else np.iinfo(data.dtype).min
    return Value(windows.reduce(data, low, lax.max), channels_last(v.ndim))


def _max_with_places(call: Call, v: Value, windows: Windows) -> tuple[Item, Item]:
    """The maxima and where they are in the flattened [N, C, *spatial]; of equal values the first."""
    data, axes = windows.data, len(windows.kernel)
    size = v.shape[2:]
    # Column-major order of an image numbers its places as if height and width were swapped.
    numbered = tuple(reversed(range(axes))) if call.attr("storage_order") else tuple(range(axes))
    strides = [0] * axes
    step = 1
    for axis in reversed(numbered):
        strides[axis], step = step, step * size[axis]
    positions = sum(lax.broadcasted_iota(jnp.int32, data.shape, a + 1) * strides[a] for a in range(axes))
    plane = lax.broadcasted_iota(jnp.int32, data.shape, 0) * v.shape[1]
    plane = plane + lax.broadcasted_iota(jnp.int32, data.shape, axes + 1)
    low = -math.inf if jnp.issubdtype(data.dtype, jnp.floating) else np.iinfo(data.dtype).min

    def better(a: tuple, b: tuple) -> tuple:
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <= b[1]))
        return tuple(jnp.where(first, p, q) for p, q in zip(a, b))

    best, at = lax.reduce_window(
        (data, positions + plane * step),
        (np.asarray(low, data.dtype), np.asarray(np.iinfo(np.int32).max)),
        better,
        (1, *windows.kernel, 1),
        (1, *windows.strides, 1),
        ((0, 0), *windows.edges, (0, 0)),
        window_dilation=(1, *windows.dilations, 1),
    )
    order = channels_last(v.ndim)
    return Value(best, order), Value(at, order)


@operator("AveragePool", style="values")
def _average_pool(call: Call, x: Item) -> Item:
    v = to_value(x)
    windows, inclusive = Windows(call, v), bool(call.attr("count_include_pad"))
    uneven = any(low != high for low, high in windows.pads)  # all of it counts here, and not in Paddle's mean
    if windows.plain and not (inclusive and (windows.ceil or uneven)):
        data, kernel, strides, edges = windows.as_image()
        return _finish(F.avg_pool2d(data, kernel, strides, edges, exclusive=not inclusive), v.ndim)
    data = windows.data
    sums = windows.reduce(data, 0, lax.add)
    # What counts: the elements, and the padding of the node where it is to; the rows of ceil mode never.
    ones = jnp.ones((1, *data.shape[1:-1], 1), data.dtype)
    edges = windows.edges
    if inclusive:
        ones = jnp.pad(ones, [(0, 0), *windows.pads, (0, 0)], constant_values=1)
        edges = [(0, full - own) for (_, full), (_, own) in zip(windows.edges, windows.pads)]
    counts = windows.reduce(ones, 0, lax.add, edges)
    return Value((sums / counts).astype(data.dtype), channels_last(v.ndim))


@operator("LpPool", style="values")
def _lp_pool(call: Call, x: Item) -> Item:
    v = to_value(x)
    windows, p = Windows(call, v), call.attr("p", 2)
    sums = windows.reduce(jnp.abs(windows.data) ** p, 0, lax.add)
    return Value(sums ** (1 / p), channels_last(v.ndim))


@operator("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool", style="values")
def _global_pool(call: Call, x: Item) -> Item:
    v = to_value(x)
    data, axes = v.channels_last(), tuple(range(1, v.ndim - 1))
    if call.node.op == "GlobalMaxPool":
        y = data.max(axes, keepdims=True)
    elif call.node.op == "GlobalLpPool":
        p = call.attr("p", 2)
        y = (jnp.abs(data) ** p).sum(axes, keepdims=True) ** (1 / p)
    else:
        y = F.global_avg_pool2d(data) if v.ndim == 4 else data.mean(axes, keepdims=True)
    return Value(y.astype(data.dtype), channels_last(v.ndim))


@operator("MaxUnpool", static=(2,))
def _max_unpool(call: Call, x: jax.Array, positions: jax.Array, shape: Item = None) -> jax.Array:
    axes = x.ndim - 2
    kernel = tuple(call.required("kernel_shape"))
    strides, pads = spatial_numbers(call, "strides", axes), call.ints("pads") or (0,) * (2 * axes)
    natural = [
        (n - 1) * s + k - pads[i] - pads[i + axes]
        for i, (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel))
    ]
    size = (*x.shape[:2], *natural)
    flat = jnp.zeros(math.prod(size), x.dtype).at[positions.ravel()].set(x.ravel())
    y = flat.reshape(size)
    if shape is None:
        return y
    # Places are those of the natural size; a larger output has zeros behind.
    target_shape = call.dims(shape, "the output shape")
    return jnp.pad(y, [(0, want - n) for want, n in zip(target_shape, size)])


@operator("RoiAlign", style="values")
def _roi_align(call: Call, x: Item, rois: Item, batch: Item) -> Item:
    images, boxes, index = to_value(x).channels_last(), to_jax(rois), to_jax(batch)
    size = (call.attr("output_height", 1), call.attr("output_width", 1))
    default = "half_pixel" if call.version >= 16 else "output_half_pixel"
    half_pixel = call.attr("coordinate_transformation_mode", default) == "half_pixel"
    scale, mode = call.attr("spatial_scale", 1.0), call.attr("mode", "avg")
    ratio = call.attr("sampling_ratio", 0)
    count(
        [n for n in (boxes.shape[0], *size, max(ratio, 1) ** 2, images.shape[-1]) if isinstance(n, int)],
        call.where,
    )
    return Value(roi_align(images, boxes, index, size, scale, ratio, mode, half_pixel), channels_last(4))
