"""Operators of Paddle's older programs that no function of today's Paddle makes: losses, fusions, partial sums."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, registrar
from framework.interop.graph.values import Item, Value, to_jax
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def _label_columns(x: jax.Array, label: jax.Array, ignore: int) -> tuple[jax.Array, jax.Array]:
    """(x[..., label] with a last axis of 1, whether a label counts)."""
    index = label if label.ndim == x.ndim else label[..., None]
    counts = index != ignore
    return jnp.take_along_axis(x, jnp.where(counts, index, 0), -1), counts


@operator("cross_entropy", main="Y")
def _cross_entropy(a: Arguments) -> Item:
    """-log of the probability of the label; X are probabilities, the label has the last axis or not."""
    x, label = a.array("X"), a.array("Label")
    if a.attr("soft_label", False):
        return Value.of(-(label * jnp.log(x)).sum(-1, keepdims=True))
    share, counts = _label_columns(x, label, int(a.attr("ignore_index", -100)))
    return Value.of(jnp.where(counts, -jnp.log(share), 0).reshape(label.shape))


@operator("cross_entropy2")
def _cross_entropy2(a: Arguments) -> dict[str, Item]:
    x, label = a.array("X"), a.array("Label")
    share, counts = _label_columns(x, label, int(a.attr("ignore_index", -100)))
    match = jnp.where(counts, share, 0)
    loss = jnp.where(counts, -jnp.log(share), 0)
    return {"Y": Value.of(loss.reshape(label.shape)), "MatchX": Value.of(match)}


@operator("bpr_loss", main="Y")
def _bpr_loss(a: Arguments) -> Item:
    """The mean of -log sigmoid of the label's score above each other one. Source: Rendle et al. 2009."""
    x, label = a.array("X"), a.array("Label")
    score, _ = _label_columns(x, label, -1)
    losses = jax.nn.softplus(x - score)
    total = losses.sum(-1, keepdims=True) - jax.nn.softplus(jnp.zeros_like(score))
    return Value.of(total / (x.shape[-1] - 1))


@operator("modified_huber_loss")
def _modified_huber_loss(a: Arguments) -> dict[str, Item]:
    product = a.array("X") * (2 * a.array("Y") - 1)
    loss = jnp.where(product < -1, -4 * product, jnp.square(jnp.maximum(1 - product, 0)))
    return {"Out": Value.of(loss), "IntermediateVal": Value.of(product)}


@operator("hinge_loss", main="Loss")
def _hinge_loss(a: Arguments) -> Item:
    return Value.of(jnp.maximum(1 - (2 * a.array("Labels") - 1) * a.array("Logits"), 0))


@operator("rank_loss")
def _rank_loss(a: Arguments) -> Item:
    label = a.array("Label")
    difference = a.array("Left").reshape(label.shape) - a.array("Right").reshape(label.shape)
    return Value.of(jax.nn.softplus(difference) - label * difference)


@operator("teacher_student_sigmoid_loss", main="Y")
def _teacher_student_sigmoid_loss(a: Arguments) -> Item:
    """A label below 0 is -2 or -1 for no click or a click, above it has a teacher's score added."""
    x, label = a.array("X"), a.array("Label")
    base = jax.nn.softplus(x)
    clicked = base - x
    teacher = jnp.where(label < 1, base + base - x * label, clicked + base - x * (label - 1))
    return Value.of(jnp.where(label < -1, base, jnp.where(label < 0, clicked, teacher)))


@operator("minus")
def _minus(a: Arguments) -> Item:
    return a.onnx("Sub", a["X"], a["Y"])


@operator("l1_norm")
def _l1_norm(a: Arguments) -> Item:
    return Value.of(jnp.abs(a.array("X")).sum())


def _columns(a: Arguments) -> list[jax.Array]:
    """`length` columns from `start_index` on, of every input."""
    arrays = [to_jax(item) for item in a.all("X")]
    width = arrays[0].shape[1]
    start, length = int(a.attr("start_index", 0)) % width, int(a.attr("length", -1))
    return [array[:, start : width if length < 0 else start + length] for array in arrays]


@operator("partial_sum")
def _partial_sum(a: Arguments) -> Item:
    columns = _columns(a)
    return Value.of(sum(columns[1:], columns[0]))


@operator("partial_concat")
def _partial_concat(a: Arguments) -> Item:
    return Value.of(jnp.concatenate(_columns(a), 1))


@operator("batch_fc")
def _batch_fc(a: Arguments) -> Item:
    y = jnp.einsum("sbi,sio->sbo", a.array("Input"), a.array("W"))
    return Value.of(jax.nn.relu(y + a.array("Bias")[:, None]))


@operator("fsp")
def _fsp(a: Arguments) -> Item:
    """The mean over pixels of the products of channels. Source: Yim et al. 2017."""
    x, y = a.array("X"), a.array("Y")
    return Value.of(jnp.einsum("nchw,ndhw->ncd", x, y) / (x.shape[2] * x.shape[3]))


@operator("lrn")
def _lrn(a: Arguments) -> dict[str, Item]:
    """Local response normalization over `n` channels."""
    x = a.images(a.value("X")).logical()
    n = int(a.attr("n", 5))
    before = (n - 1) // 2
    squares = jnp.pad(jnp.square(x), ((0, 0), (before, n - 1 - before), (0, 0), (0, 0)))
    window = sum((squares[:, i : i + x.shape[1]] for i in range(1, n)), squares[:, : x.shape[1]])
    middle = a.attr("k", 2.0) + a.attr("alpha", 1e-4) * window
    outputs = {"Out": x * middle ** -a.attr("beta", 0.75), "MidOut": middle}
    return {slot: a.as_given(Value.of(array)) for slot, array in outputs.items()}


@operator("add_position_encoding")
def _add_position_encoding(a: Arguments) -> Item:
    """alpha x + beta of sines and cosines; x is [N, T, C]."""
    x = a.array("X")
    length, half = x.shape[-2], x.shape[-1] // 2
    scale = 10000.0 ** (np.arange(half) / (half - 1)) if half > 1 else np.full(1, 10000.0)
    angles = np.arange(length)[:, None] / scale
    table = np.concatenate([np.sin(angles), np.cos(angles)], 1)
    return Value.of(x * a.attr("alpha", 1.0) + jnp.asarray(table, x.dtype) * a.attr("beta", 1.0))


def _show_features(x: jax.Array, use_cvm: bool) -> jax.Array:
    if not use_cvm:
        return x[:, 2:]
    shows = jnp.log(x[:, :1] + 1)
    return jnp.concatenate([shows, jnp.log(x[:, 1:2] + 1) - shows, x[:, 2:]], 1)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _trained_features(x: jax.Array, counts: jax.Array, use_cvm: bool) -> jax.Array:
    """Paddle's rule: the gradient of the two columns is `counts`, for the table of a parameter server to add up."""
    del counts
    return _show_features(x, use_cvm)


def _features_forward(x: jax.Array, counts: jax.Array, use_cvm: bool) -> tuple[jax.Array, jax.Array]:
    return _show_features(x, use_cvm), counts


def _features_backward(use_cvm: bool, counts: jax.Array, gradient: jax.Array) -> tuple[jax.Array, jax.Array]:
    rest = gradient[:, 2:] if use_cvm else gradient
    return jnp.concatenate([counts.reshape(-1, 2).astype(rest.dtype), rest], 1), jnp.zeros_like(counts)


_trained_features.defvjp(_features_forward, _features_backward)


@operator("cvm", main="Y")
def _cvm(a: Arguments) -> Item:
    """Features behind shows and clicks, which become logarithms or go."""
    use_cvm = bool(a.attr("use_cvm", True))
    if a.get("CVM") is None:
        return Value.of(_show_features(a.array("X"), use_cvm))
    return Value.of(_trained_features(a.array("X"), a.array("CVM"), use_cvm))


@operator("iou_similarity")
def _iou_similarity(a: Arguments) -> Item:
    """[rows of X, rows of Y]; boxes that are not normalized have their last pixel too."""
    x, y = a.array("X")[:, None], a.array("Y")[None]
    extra = 0 if a.attr("box_normalized", True) else 1
    size = jnp.maximum(jnp.minimum(x[..., 2:], y[..., 2:]) - jnp.maximum(x[..., :2], y[..., :2]) + extra, 0)
    common = size[..., 0] * size[..., 1]
    areas = [jnp.prod(boxes[..., 2:] - boxes[..., :2] + extra, -1) for boxes in (x, y)]
    return Value.of(common / (areas[0] + areas[1] - common))


@operator("polygon_box_transform", main="Output")
def _polygon_box_transform(a: Arguments) -> Item:
    """Offsets to corners in pixels: 4 columns or rows minus the input, by turns."""
    x = a.array("Input")
    rows, columns = jnp.meshgrid(jnp.arange(x.shape[2]), jnp.arange(x.shape[3]), indexing="ij")
    grid = jnp.stack([columns, rows] * (x.shape[1] // 2)).astype(x.dtype)
    return Value.of(4 * grid - x)


@operator("crop")
def _crop(a: Arguments) -> Item:
    x = a.array("X")
    shape = a.array("Y").shape if a.get("Y") is not None else tuple(a.ints("shape"))
    offsets = a.dims("offsets", "Offsets") or [0] * x.ndim
    return Value.of(x[tuple(slice(at, at + size) for at, size in zip(offsets, shape, strict=True))])


@operator("fused_fc_elementwise_layernorm")
def _fused_fc_layer_norm(a: Arguments) -> dict[str, Item]:
    w, axis = a.array("W"), int(a.attr("begin_norm_axis", 1))
    y = a.array("X").reshape(-1, w.shape[0]) @ w
    if a.get("Bias0") is not None:
        y = y + a.array("Bias0").reshape(-1)
    y = jax.nn.relu(y) if a.attr("activation_type", "") == "relu" else y
    y = y.reshape(a.array("Y").shape) + a.array("Y")
    flat = y.reshape(int(np.prod(y.shape[:axis])), -1)
    scale, bias = (None if a.get(s) is None else a.array(s).reshape(-1) for s in ("Scale", "Bias1"))
    out = F.layer_norm(flat, flat.shape[1:], scale, bias, a.attr("epsilon", 1e-5)).reshape(y.shape)
    return {"Out": Value.of(out), "Mean": Value.of(flat.mean(1)), "Variance": Value.of(flat.var(1))}


@operator("fusion_squared_mat_sub")
def _squared_mat_sub(a: Arguments) -> Item:
    x, y = a.array("X"), a.array("Y")
    return Value.of((jnp.square(x @ y) - jnp.square(x) @ jnp.square(y)) * a.attr("scalar", 1.0))


@operator("fusion_repeated_fc_relu")
def _repeated_fc_relu(a: Arguments) -> dict[str, Item]:
    x, outs = a.array("X"), []
    for weight, bias in zip(a.all("W"), a.all("Bias"), strict=True):
        x = jax.nn.relu(x @ to_jax(weight) + to_jax(bias).reshape(-1))
        outs.append(Value.of(x))
    return {"Out": outs[-1], "ReluOut": outs[:-1]}


def quantize(x: jax.Array, scale: jax.Array, bits: int, to_even: bool) -> jax.Array:
    """x / scale as integers of so many bits, halves to even or away from zero."""
    bound = (1 << (bits - 1)) - 1
    inverse = jnp.where(scale < 1e-30, 1 / (scale + 1e-6), 1 / jnp.where(scale == 0, 1, scale))
    scaled = x * inverse * bound
    return jnp.clip(jnp.round(scaled), -bound - 1, bound) if to_even else jax.lax.round(scaled)


def _rounded(x: jax.Array, scale: jax.Array, a: Arguments) -> jax.Array:
    """`quantize` to `bit_length` bits; `round_type` 0 is to even."""
    return quantize(x, scale, int(a.attr("bit_length", 8)), int(a.attr("round_type", 1)) == 0)


def _dequantized(x: jax.Array, scale: jax.Array, a: Arguments) -> jax.Array:
    """Integers times their scale, with the gradient of x."""
    bound = (1 << (int(a.attr("bit_length", 8)) - 1)) - 1
    return x + jax.lax.stop_gradient(_rounded(x, scale, a) * scale / bound - x)


def _channel_scale(x: jax.Array, axis: int) -> jax.Array:
    return jnp.abs(x).max(tuple(i for i in range(x.ndim) if i != axis), keepdims=True)


@operator("fake_quantize_abs_max", "fake_quantize_dequantize_abs_max")
def _fake_quantize_abs_max(a: Arguments) -> dict[str, Item]:
    x = a.array("X")
    scale = jnp.abs(x).max()
    out = (_dequantized if "dequantize" in a.call.node.op else _rounded)(x, scale, a)
    return {"Out": Value.of(out), "OutScale": Value.of(scale.reshape(1))}


@operator("fake_channel_wise_quantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max")
def _fake_channel_wise_quantize_abs_max(a: Arguments) -> dict[str, Item]:
    x = a.array("X")
    scale = _channel_scale(x, int(a.attr("quant_axis", 0)))
    out = (_dequantized if "dequantize" in a.call.node.op else _rounded)(x, scale, a)
    return {"Out": Value.of(out), "OutScale": Value.of(scale.reshape(-1))}


@operator("fake_dequantize_max_abs")
def _fake_dequantize_max_abs(a: Arguments) -> Item:
    return Value.of(a.array("X") * a.array("Scale") / a.attr("max_range", 127.0))


@operator("fake_channel_wise_dequantize_max_abs")
def _fake_channel_wise_dequantize_max_abs(a: Arguments) -> Item:
    """Scales of weights by channel, and with two of them that of the activations."""
    x, scales = a.array("X"), [to_jax(item) for item in a.all("Scales")]
    bounds = [(1 << (bits - 1)) - 1 for bits in a.ints("quant_bits", [8])]
    axis = 1 if len(scales) > 1 else int(a.attr("quant_axis", 0))
    y = x * _along(scales[0], axis, x.ndim) / bounds[0]
    return Value.of(y * scales[1].reshape(()) / bounds[1] if len(scales) > 1 else y)


def _along(values: jax.Array, axis: int, rank: int) -> jax.Array:
    shape: Sequence[int] = [-1 if i == axis else 1 for i in range(rank)]
    return values.reshape(tuple(shape))
