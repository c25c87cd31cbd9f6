"""Small functions, one or more a primitive, that are exported to ONNX with known and with symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import framework.nn.functional as F

_draw = np.random.RandomState(7)


def floats(*shape: int, low: float = 0.1, high: float = 1.0) -> np.ndarray:
    return _draw.uniform(low, high, shape).astype(np.float32)


def integers(high: int, *shape: int) -> np.ndarray:
    return _draw.randint(0, high, shape).astype(np.int32)


@dataclass(frozen=True)
class Case:
    """A function of arrays. `symbolic` are shapes with sizes by name, one for each array, or None: static alone."""

    name: str
    fn: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    symbolic: tuple[str, ...] | None
    constraints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name


CASES: list[Case] = []
IMAGE = floats(2, 8, 12, 6, low=-1)
ROWS = floats(2, 10, 6, low=-1)
_IMAGE, _ROWS = "n,h,w,6", "n,t,6"


def case(
    *arrays: np.ndarray, symbolic: str | tuple[str, ...] | None = None
) -> Callable[[Callable[..., Any]], None]:
    """Register a function with its arguments."""

    def add(fn: Callable[..., Any]) -> None:
        shapes = (symbolic,) if isinstance(symbolic, str) else symbolic
        names = {size for shape in shapes or () for size in shape.split(",")}
        constraints = tuple(
            f"{name} >= 8" for name in ("h", "w", "t") if name in names and arrays[0].shape[1] >= 8
        )
        CASES.append(Case(fn.__name__.strip("_"), fn, arrays, shapes, constraints))

    return add


def image(fn: Callable[..., Any]) -> None:
    case(IMAGE, symbolic=_IMAGE)(fn)


def rows(fn: Callable[..., Any]) -> None:
    case(ROWS, symbolic=_ROWS)(fn)


def weight(*shape: int) -> jax.Array:
    return jnp.asarray(np.random.RandomState(sum(shape)).standard_normal(shape).astype(np.float32) * 0.3)


# -- element by element -----------------------------------------------------------------------------------------------


@image
def arithmetic(x):
    return {"a": x + 1, "b": x * x - x / 3, "c": -x, "d": jnp.maximum(x, 0.2), "e": jnp.minimum(x, x[:1])}


@case(floats(3, 5), symbolic="n,5")
def functions(x):
    names = [
        *("exp", "log", "log1p", "expm1", "tanh", "sqrt", "sin", "cos", "tan", "arctan", "arcsin"),
        *("arccos", "sinh", "cosh", "arcsinh", "arctanh", "cbrt", "exp2"),
    ]
    return {name: getattr(jnp, name)(x * 0.9) for name in names} | {
        "rsqrt": lax.rsqrt(x),
        "erf": lax.erf(x),
        "erfc": lax.erfc(x),
        "cube": x**3,
        "inverse": x**-1,
        "power": x**2.5,
        "power_of": 2.0**x,
        "acosh": jnp.arccosh(x + 1),
    }


@case(floats(3, 5, low=-9, high=9), symbolic="n,5")
def roundings(x):
    sign = jnp.sign(x)
    return {
        "floor": jnp.floor(x),
        "ceil": jnp.ceil(x),
        "sign": sign,
        "round": jnp.round(x),
        "away": lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
        "abs": jnp.abs(x),
        "remainder": jnp.remainder(x, 4.0),
        "fmod": jnp.fmod(x, 4.0),
        "floor_divide": x // 4.0,
        "atan2": jnp.arctan2(x, sign * 2 + 1),
        "finite": jnp.isfinite(1 / (x - x)),
        "nan": jnp.isnan((x - x) / (x - x)),
    }


@case(integers(90, 3, 5) - 40, symbolic="n,5")
def whole_numbers(x):
    return {
        "floor_divide": x // 7,
        "remainder": x % 7,
        "negative": x % -7,
        "and": x & 12,
        "or": x | 3,
        "xor": x ^ 5,
        "not": ~x,
        "left": x << 2,
        "right": x >> 2,
        "square": x * x,
        "float": x.astype(jnp.float32) / 7,
        "clip": jnp.clip(x, -3, 20),
        "most": x.max(1),
    }


@case(floats(3, 5, low=-1), floats(3, 5, low=-1), symbolic=("n,5", "n,5"))
def comparisons(x, y):
    a, b = x > 0, y > 0
    return {
        "lt": x < y,
        "ge": x >= y,
        "eq": x == x,
        "ne": x != y,
        "and": a & b,
        "or": a | b,
        "xor": a ^ b,
        "not": ~a,
        "le_bool": a <= b,
        "ne_bool": a != b,
        "where": jnp.where(a, x, -jnp.inf),
        "all": a.all(1),
        "any": a.any(0),
        "count": a.sum(1),
        "select": lax.select_n(a.astype(jnp.int32) + b.astype(jnp.int32), x, y, x + y),
        "clamp": lax.clamp(y, x, y + 0.5),
    }


@image
def activations(x):
    x = x * 8
    names = "relu relu6 sigmoid log_sigmoid tanh silu mish hardswish softsign hardsigmoid gelu leaky_relu elu celu selu"
    found = {
        name: getattr(F, name)(x) for name in f"{names} softplus softshrink hardtanh thresholded_relu".split()
    }
    return found | {
        "hardsigmoid2": F.hardsigmoid(x, 0.2, 0.5),
        "prelu": F.prelu(x, weight(6)),
        "gelu_tanh": F.gelu(x, True),
        "leaky": F.leaky_relu(x, 0.3),
        "jax_relu": jax.nn.relu(x),
        "jax_leaky": jax.nn.leaky_relu(x),
        "glu": F.glu(x),
        "swiglu": F.swiglu(x),
        "maxout": F.maxout(x, 2),
    }


@image
def softmaxes(x):
    return {
        "last": F.softmax(x),
        "first": F.softmax(x, 1),
        "log": F.log_softmax(x, -1),
        "jax": jax.nn.softmax(x, 2),
    }


# -- convolutions, products, pooling ----------------------------------------------------------------------------------


@image
def convolutions(x):
    return {
        "plain": F.conv2d(x, weight(5, 6, 3, 3), weight(5), padding=1),
        "strided": F.conv2d(x, weight(5, 6, 3, 3), stride=2, padding=[0, 1, 1, 0]),
        "dilated": F.conv2d(x, weight(5, 6, 3, 3), dilation=2, padding=2),
        "grouped": F.conv2d(x, weight(4, 3, 3, 3), groups=2, padding=1),
        "depthwise": F.conv2d(x, weight(6, 1, 3, 3), weight(6), groups=6, padding=1),
        "pointwise": F.conv2d(x, weight(5, 6, 1, 1), weight(5)),
        "strided_pointwise": F.conv2d(x, weight(5, 6, 1, 1), stride=2),
        "same": F.conv2d(x, weight(5, 6, 3, 3), padding="SAME"),
    }


@image
def transposed_convolutions(x):
    return {
        "blocks": F.conv2d_transpose(x, weight(6, 5, 2, 2), weight(5), stride=2),
        "overlapping": F.conv2d_transpose(x, weight(6, 5, 3, 3), stride=2, padding=1, output_padding=1),
        "grouped": F.conv2d_transpose(x, weight(6, 2, 3, 3), stride=2, padding=1, groups=2),
        "dilated": F.conv2d_transpose(x, weight(6, 5, 3, 3), dilation=2),
    }


@rows
def convolutions_of_lines(x):
    return {
        "plain": F.conv1d(x, weight(5, 6, 3), weight(5), padding=1),
        "out": F.conv1d_transpose(x, weight(6, 5, 3), stride=2),
    }


@case(floats(2, 5, 6, 7, 4), symbolic="n,d,h,w,4")
def convolutions_of_volumes(x):
    return {
        "plain": F.conv3d(x, weight(5, 4, 3, 3, 3), padding=1),
        "out": F.conv3d_transpose(x, weight(4, 5, 2, 2, 2), stride=2),
    }


@image
def normed_convolution(x):
    y = F.conv2d(x, weight(5, 6, 3, 3), weight(5), padding=1)
    return F.relu(F.batch_norm(y, weight(5), weight(5) ** 2 + 1, weight(5) + 1, weight(5))[0])


@image
def norms(x):
    return {
        "layer": F.layer_norm(x, 6, weight(6), weight(6)),
        "layer_plain": F.layer_norm(x, 6),
        "layer_bias": F.layer_norm(x, 6, None, weight(6)),
        "group": F.group_norm(x, 3, weight=weight(6), bias=weight(6)),
        "instance": F.instance_norm(x),
        "rms": F.rms_norm(x, 6, weight(6)),
        "unit": F.normalize(x, axis=-1),
        "batch": F.batch_norm(x, weight(6), weight(6) ** 2 + 1)[0],
        "local": F.local_response_norm(x, 3),
    }


@image
def pools(x):
    return {
        "max": F.max_pool2d(x, 2),
        "max_padded": F.max_pool2d(x, 3, 2, 1),
        "max_zero": F.max_pool2d(x, 3, 2, 1, pad_value=0.0),
        "max_uneven": F.max_pool2d(x, 2, 2, [0, 1, 1, 0]),
        "mean": F.avg_pool2d(x, 2),
        "mean_inclusive": F.avg_pool2d(x, 3, 2, 1, exclusive=False),
        "mean_exclusive": F.avg_pool2d(x, 3, 2, 1),
        "global": F.global_avg_pool2d(x),
        "adaptive": F.adaptive_avg_pool2d(x, (3, 5)),
        "adaptive_max": F.adaptive_max_pool2d(x, 2),
    }


@case(floats(2, 7, 9, 4, low=-1))
def pools_of_uneven_sizes(x):
    return {"max": F.max_pool2d(x, 3, 2, 0, ceil_mode=True), "mean": F.avg_pool2d(x, 2, 2, 0, ceil_mode=True)}


@case(floats(3, 4, 5), floats(3, 5, 6), floats(5, 6), symbolic=("n,t,5", "n,5,k", "5,k"))
def products(x, y, z):
    return {
        "batched": x @ y,
        "linear": F.linear(x, weight(5, 7), weight(7)),
        "flat": F.linear(x[0], weight(5, 7), weight(7)),
        "with_matrix": x @ z,
        "transposed": F.matmul(y, y, transpose_x=True),
        "einsum": jnp.einsum("nte,nek->ktn", x, y),
        "outer": jnp.einsum("nt,nk->tnk", x[..., 0], y[:, 0]),
        "inner": jnp.einsum("nte,nte->n", x, x),
        "weighted": jnp.einsum("ie,nte,jt->nij", weight(2, 5), x, x[0] @ z @ z.T @ x[0].T),
    }


@case(floats(2, 5, 2, 4), floats(2, 7, 2, 4), symbolic=("n,q,2,4", "n,k,2,4"))
def attention(q, k):
    mask = jnp.arange(k.shape[1])[None, None, None] < 4
    return {
        "plain": F.scaled_dot_product_attention(q, k, k),
        "masked": F.scaled_dot_product_attention(q, k, k, mask),
        "causal": F.scaled_dot_product_attention(k, k, k, is_causal=True),
    }


@image
def resizes(x):
    return {
        "nearest": F.interpolate(x, scale_factor=2),
        "bilinear": F.interpolate(x, scale_factor=2, mode="bilinear"),
        "corners": F.interpolate(x, size=(15, 19), mode="bilinear", align_corners=True),
        "edges": F.interpolate(x, size=(16, 24), mode="bilinear", align_mode=1),
        "cubic": F.interpolate(x, scale_factor=2, mode="bicubic"),
        "to_size": F.interpolate(x, size=(13, 7), mode="bilinear"),
        "half": F.interpolate(x, scale_factor=0.5, mode="bilinear"),
        "to_one": F.interpolate(x, size=(1, 4), mode="bilinear"),
        "like": F.interpolate(x[:, :3, :2], size=x.shape[1:3], mode="bilinear"),
        "nearest_like": F.interpolate(F.max_pool2d(x, 2), size=(x.shape[1], x.shape[2])),
    }


@rows
def resize_of_lines(x):
    return F.interpolate(x, scale_factor=2, mode="linear")


@case(floats(2, 6, 5, 3), floats(2, 4, 4, 2, low=-1.2, high=1.2), symbolic=("n,h,w,3", "n,4,4,2"))
def grid_sampling(x, grid):
    return {mode: F.grid_sample(x, grid, padding_mode=mode) for mode in ("zeros", "border")} | {
        "nearest": F.grid_sample(x, grid, "nearest", align_corners=False)
    }


# -- shapes -----------------------------------------------------------------------------------------------------------


@image
def reshapes(x):
    n, h, w, c = x.shape
    return {
        "flat": x.reshape(n, -1, c),
        "all": x.reshape(-1),
        "split": x.reshape(n, h, w, 2, 3).sum(3),
        "moved": x.transpose(0, 3, 1, 2).reshape(n, c, h * w),
        "squeezed": x.mean((1, 2), keepdims=True)[:, 0, 0],
        "expanded": x[:, None, :, :, None].sum(1),
        "shuffled": F.channel_shuffle(x, 3),
        "pixels": F.pixel_shuffle(jnp.concatenate([x, x[..., :2]], -1), 2),
        "repeated": jnp.repeat(x, 2, 1),
        "tiled": jnp.tile(x, (1, 2, 1, 1)),
    }


@case(floats(2, 8, 12, 4), symbolic="n,4*h,4*w,4")
def windows(x):
    n, h, w, c = x.shape
    parts = x.reshape(n, h // 4, 4, w // 4, 4, c).transpose(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
    back = parts.reshape(n, h // 4, w // 4, 4, 4, c).transpose(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)
    return {"parts": parts, "back": back + 1, "down": F.pixel_unshuffle(x, 2), "patches": F.unfold(x, 2, 2)}


@image
def pieces(x):
    a, b = jnp.split(x, 2, -1)
    return {
        "joined": jnp.concatenate([b, a, a * b], -1),
        "stacked": jnp.stack([a, b], 1),
        "behind": x[:, 1:],
        "before": x[:, :-1],
        "strided": x[:, ::2, 1::2],
        "turned": x[:, ::-1],
        "rolled": jnp.roll(x, 3, 1),
        "one": x[:, 2],
        "last": x[:, -1],
        "middle": x[:, 1:-1, 2:-2],
        "channels": x[..., 1:4],
    }


@image
def pads(x):
    return {
        "constant": jnp.pad(x, ((0, 0), (2, 1), (1, 0), (0, 0)), constant_values=1.5),
        "edge": jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge"),
        "cut": lax.pad(x, 0.0, ((0, 0, 0), (-1, 0, 0), (0, -2, 0), (0, 0, 0))),
        "between": lax.pad(x, 0.5, ((0, 0, 0), (1, 0, 1), (0, 0, 2), (0, 0, 0))),
        "bools": jnp.pad(x > 0, ((0, 0), (1, 0), (0, 0), (0, 0)), constant_values=True),
    }


@image
def sizes(x):
    n, h, w, _ = x.shape
    grid = jnp.stack(jnp.meshgrid(jnp.arange(h), jnp.arange(w), indexing="ij"), -1)
    return {
        "grid": grid,
        "half": jnp.arange(h // 2) + w,
        "up": jnp.zeros((-(-h // 5), w % 5 + 1)) + n,
        "mean": x.sum() / (h * w),
        "scaled": grid.astype(jnp.float32) / jnp.array([h, w], jnp.float32),
        "longest": jnp.arange(jax.core.max_dim(h, w)),
        "padded": jnp.pad(x, ((0, 0), (0, (-h) % 7), (0, (-w) % 7), (0, 0))),
    }


# -- reductions, order, places ----------------------------------------------------------------------------------------


@image
def reductions(x):
    return {
        "sum": x.sum((1, 2)),
        "mean": x.mean(-1),
        "max": x.max(1, keepdims=True),
        "min": x.min((1, 3)),
        "product": x.prod(-1),
        "variance": x.var((1, 2)),
        "norm": jnp.linalg.norm(x, axis=-1),
        "argmax": x.argmax(-1),
        "argmin": x.argmin(1),
        "best": F.argmax_last(x),
        "all": x.sum(),
        "logsumexp": jax.nn.logsumexp(x, -1),
        "broadcast": jnp.broadcast_to(x[:, :1], x.shape).sum(1),
    }


@rows
def cumulative(x):
    return {
        "sum": jnp.cumsum(x, 1),
        "product": jnp.cumprod(x, 2),
        "max": lax.cummax(x, 2),
        "min_back": lax.cummin(x, 2, reverse=True),
        "back": lax.cumsum(x, 1, reverse=True),
    }


@rows
def sorting(x):
    values, places = lax.top_k(x, 3)
    first, second = lax.sort((x.round(1), -x), dimension=1, num_keys=2)
    return {
        "values": values,
        "places": places,
        "sorted": jnp.sort(x, 1),
        "argsort": jnp.argsort(x[..., 0], 1),
        "descending": jnp.argsort(-x, -1),
        "first": first,
        "second": second,
    }


@case(ROWS, integers(10, 2, 4), symbolic=("n,t,6", "n,k"))
def gathers(x, i):
    batch = jnp.arange(x.shape[0])[:, None]
    return {
        "along": jnp.take_along_axis(x, i[..., None], 1),
        "rows": x[batch, i],
        "cells": x[batch, i, 2],
        "taken": jnp.take(x, i[0], axis=1),
        "clipped": jnp.take(x, i + 5, axis=1, mode="clip"),
        "filled": jnp.take(x, i + 5, axis=1, mode="fill", fill_value=-1),
        "axis": jnp.take(x, jnp.array([4, 0, 2]), axis=2),
        "vmapped": jax.vmap(lambda row, at: row[at])(x, i),
        "points": x[jnp.array([0, 1]), jnp.array([3, 4]), jnp.array([1, 1])],
        "windows": jax.vmap(lambda row, at: lax.dynamic_slice(row, (at, 1), (3, 2)))(x, i[:, 0]),
    }


@case(integers(50, 2, 7), symbolic="n,t")
def embeddings(i):
    table = weight(50, 8)
    return {"rows": F.embedding(i, table), "one_hot": F.one_hot(i, 50), "padding": F.embedding(i, table, 3)}


@case(ROWS, integers(10, 2, 4), symbolic=("n,t,6", "n,k"))
def scatters(x, i):
    batch = jnp.arange(x.shape[0])[:, None]
    return {
        "set": x.at[:, 3:5].set(0.0),
        "add": x.at[:, 7].add(1.0),
        "channel": x.at[..., 2].set(x[..., 0]),
        "rows": x.at[batch, i].set(2.0),
        "rows_add": x.at[batch, i].add(x[:, :1]),
        "dropped": x.at[batch, i + 6].set(3.0, mode="drop"),
        "dropped_add": x.at[batch, i + 6].add(3.0, mode="drop"),
        "most": x.at[batch, i].max(0.5),
        "count": jnp.zeros(12).at[i].add(1.0),
        "cells": x.at[batch, i, 1].multiply(2.0),
        "vmapped": jax.vmap(lambda row, at: row.at[at].set(1.0))(x, i),
        "nonzero": jnp.nonzero(x[0, :, 0] > 0, size=6, fill_value=-1)[0],
    }


@case(ROWS, np.array(3, np.int32), symbolic=("n,t,6", ""))
def dynamic_slices(x, at):
    return {
        "slice": lax.dynamic_slice(x, (0, at, 1), (1, 4, 2)),
        "late": lax.dynamic_slice(x, (0, at + 20, 1), (1, 4, 2)),
        "index": lax.dynamic_index_in_dim(x, at, 1, keepdims=False),
        "update": lax.dynamic_update_slice(x, jnp.ones((1, 2, 3)), (0, at, 1)),
        "indexed": x[:, at],
    }


# -- control flow and recurrence --------------------------------------------------------------------------------------


@case(ROWS, np.array(1, np.int32), symbolic=("n,t,6", ""))
def branches(x, which):
    return {
        "two": lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, x),
        "three": lax.switch(which, [lambda v: v, lambda v: v + which.astype(v.dtype), lambda v: v * 3], x),
        "known": lax.cond(True, lambda v: v + 1, lambda v: v, x),
        "platform": lax.platform_dependent(x, cpu=lambda v: v + 1 - 1, default=lambda v: v),
        "nested": lax.cond(which > 0, lambda v: lax.cond(which > 1, jnp.sin, jnp.cos, v), jnp.tan, x),
    }


@rows
def loops(x):
    scale = x.max()
    doubled, turns = lax.while_loop(lambda s: s[1] < 5, lambda s: (s[0] * 1.1 + scale, s[1] + 1), (x, 0))
    until, count = lax.while_loop(lambda s: s[0].max() < 40, lambda s: (s[0] * 1.5 + 1, s[1] + 1), (x, 0))
    return {
        "while": doubled,
        "turns": turns,
        "until": until,
        "count": count,
        "for": lax.fori_loop(0, 4, lambda i, v: v.at[:, i].add(i * 1.0), x),
    }


@rows
def scans(x):
    def step(carry, row):
        carry = carry * 0.9 + row
        return carry, carry.sum(-1)

    by_step = jnp.swapaxes(x, 0, 1)
    zeros = jnp.zeros((x.shape[0], 6))
    last, sums = lax.scan(step, zeros, by_step)
    back = lax.scan(step, zeros, by_step, reverse=True)[1]
    counted = lax.scan(lambda carry, _: (carry * 1.1, carry.mean()), x, None, length=4)
    reverse = lax.scan(lambda carry, _: (carry * 1.1, carry.mean()), x, None, length=4, reverse=True)
    mapped = lax.map(lambda row: row * row.sum(), by_step)
    return {
        "last": last,
        "sums": sums,
        "back": back,
        "turns": counted[1],
        "reverse": reverse[1],
        "mapped": mapped,
    }


def _recurrent(mode: str, x: jax.Array, lengths: jax.Array | None, **settings: Any) -> Any:
    from framework.nn.functional.rnn import GATES, CellWeights, rnn_scan

    rows = GATES[mode] * 5
    cell = CellWeights(weight(rows, 6), weight(rows, 5), weight(rows), weight(rows) * 2)
    batch = x.shape[1 if settings.get("time_major") else 0]
    state = (jnp.zeros((batch, 5)) + 0.1,) * (2 if mode == "LSTM" else 1)
    return rnn_scan(x, state, cell, mode, lengths, **settings)


@case(ROWS, np.array([10, 4], np.int32), symbolic=("n,t,6", "n"))
def recurrent_layers(x, lengths):
    found = {}
    for mode in ("LSTM", "GRU", "RNN_TANH", "RNN_RELU"):
        found[mode], found[f"{mode}_state"] = _recurrent(mode, x, None)
        found[f"{mode}_back"] = _recurrent(mode, x, lengths, is_reverse=True)[0]
    found["time_major"] = _recurrent("LSTM", jnp.swapaxes(x, 0, 1), lengths, time_major=True)[0]
    return found


@case(floats(2, 12, 4, high=9), floats(2, 12), symbolic=("n,12,4", "n,12"))
def suppression(boxes, scores):
    from framework.nn.functional.boxes import nms

    corners = jnp.concatenate([boxes[..., :2], boxes[..., :2] + boxes[..., 2:]], -1)
    return jax.vmap(lambda b, s: nms(b, 0.3, s, padded=True))(corners, scores)


@case(floats(2, 12, 4, high=9), integers(3, 2, 12), floats(2, 12), symbolic=("n,12,4", "n,12", "n,12"))
def suppression_by_labels(boxes, labels, scores):
    """One box of the first image is turned inside out: it is empty and suppresses nothing."""
    from framework.nn.functional.boxes import suppress_boxes

    corners = jnp.concatenate([boxes[..., :2], boxes[..., :2] + boxes[..., 2:] * 9], -1)
    corners = corners.at[:, 2, 0].set(corners[:, 2, 2] + 5)
    valid = scores > 0.2
    apart = jax.vmap(lambda b, v, k: suppress_boxes(b, v, 0.3, k, 3))
    together = jax.vmap(lambda b, v: suppress_boxes(b, v, 0.5))
    return {
        "apart": apart(corners, valid, labels),
        "together": together(corners, valid),
        "one": suppress_boxes(corners[0], valid[0], 0.3, labels[0], 3),
    }


@case(floats(2, 4, 6, 3), symbolic="n,h,w,3")
def shuffled_channels(x):
    """As of ShuffleNet: channels of a convolution in halves, which change places."""
    x = F.conv2d(x, weight(8, 3, 1, 1))
    x = x.reshape(*x.shape[:3], 2, 4).swapaxes(3, 4).reshape(x.shape)
    return F.conv2d(x, weight(2, 8, 1, 1))


@case(floats(1, 9, 11, 3), floats(2, 4, low=0, high=8))
def regions(x, boxes):
    from framework.nn.functional.deform import deform_conv2d
    from framework.nn.functional.roi import roi_align

    offset = jnp.asarray(np.random.RandomState(1).uniform(-2, 2, (1, 9, 11, 18)).astype(np.float32))
    corners = jnp.concatenate([boxes[:, :2], boxes[:, :2] + boxes[:, 2:]], -1)
    return {
        "align": roi_align(x, corners, jnp.array([2]), 3),
        "deformed": deform_conv2d(x, offset, weight(4, 3, 3, 3), padding=1),
    }
