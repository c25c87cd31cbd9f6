"""Operators of Paddle's older programs on plain arrays: normalization by counts, sampling, copies, numbers in 8 bits.

Source: paddle/fluid/operators, paddle/phi/kernels/cpu
"""

from __future__ import annotations

from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from framework.interop.graph.paddle.older import quantize
from framework.interop.weights.pdparams import DTYPES
from framework.paddle._kernel.random import default_generator
from framework.paddle.legacy_operators.operands import Operands, Outputs, Ragged, Table, registrar

OPERATORS: Table = {}
operator = registrar(OPERATORS)
_SMALL = 1e-7  # a show count below it stands for an absent slot


def _dtype(a: Operands, name: str, default: np.dtype) -> np.dtype:
    code = a.attr(name, -1)
    return DTYPES.get(code, default) if isinstance(code, int) else np.dtype(str(code).rpartition(".")[2])


def _key(a: Operands) -> jax.Array:
    seed = a.attr("seed", 0)
    return jax.random.key(seed) if seed else jnp.asarray(default_generator.next_key())


@operator("data_norm")
def _data_norm(a: Operands) -> Outputs:
    """X minus a mean over a deviation, which stand in counts, sums and squares of all batches."""
    x, size = a.array("X"), a.array("BatchSize")
    means, scales = a.array("BatchSum") / size, jnp.sqrt(size / a.array("BatchSquareSum"))
    y = (x - means) * scales
    if a.attr("enable_scale_and_shift", False):
        y = y * a.array("scale_w") + a.array("bias")
    width = a.attr("slot_dim", -1)
    if width > 0 and not a.attr("enable_scale_and_shift", False):
        there = jnp.abs(x[:, ::width]) >= _SMALL
        y = jnp.where(jnp.repeat(there, width, 1), y, 0)
    return {"Y": y, "Means": means, "Scales": scales}


@operator("cvm")
def _cvm(a: Operands) -> Outputs:
    """Rows [N, 2 + D] that begin with counts of shows and clicks: log(shows + 1) and log(clicks + 1) - log(shows + 1)
    in their place, or rows without them. The gradient of the counts is what CVM [N, 2] has."""
    x, counts = a.array("X"), a.array("CVM")
    use = a.attr("use_cvm", True)

    @jax.custom_vjp
    def compute(x: jax.Array) -> jax.Array:
        shows = jnp.log(x[:, :1] + 1)
        return jnp.concatenate([shows, jnp.log(x[:, 1:2] + 1) - shows, x[:, 2:]], 1) if use else x[:, 2:]

    def go_back(_: None, gradient: jax.Array) -> tuple[jax.Array]:
        rest = gradient[:, 2:] if use else gradient
        return (jnp.concatenate([counts.astype(gradient.dtype), rest], 1),)

    compute.defvjp(lambda x: (compute(x), None), go_back)
    return {"Y": compute(x)}


@operator("nce")
def _nce(a: Operands) -> Outputs:
    """The loss of telling true classes from sampled ones. Source: Gutmann and Hyvärinen 2010."""
    x, label, classes = a.array("Input"), a.array("Label"), a.attr("num_total_classes", 1)
    label = label.reshape(len(x), -1)
    count = a.attr("num_neg_samples", 10)
    custom = a.attr("custom_neg_classes", cast("list[int]", []))
    sampler = a.attr("sampler", 0)
    ranks = np.arange(classes)
    share = jnp.full(classes, 1 / classes)
    if sampler == 1:  # Paddle draws all classes but the last one
        share = jnp.asarray(np.log((ranks + 2) / (ranks + 1)) / np.log(classes))
    share = a.array("CustomDistProbs") if sampler == 2 else share
    chances = share * (ranks < classes - 1) if sampler == 1 else share
    drawn = jax.random.choice(_key(a), classes, (len(x), count), p=chances / chances.sum())
    negatives = jnp.tile(jnp.asarray(custom), (len(x), 1)) if custom else drawn
    samples = jnp.concatenate([label, negatives.astype(label.dtype)], 1)
    logits = jnp.einsum("nd,nsd->ns", x, a.array("Weight")[samples])
    bias, weight = a.get("Bias"), a.get("SampleWeight")
    logits = logits if bias is None else logits + bias.ravel()[samples]
    output = jax.nn.sigmoid(logits)
    noise = share.astype(x.dtype)[samples] * count
    true = np.arange(samples.shape[1]) < label.shape[1]
    cost = -jnp.log(jnp.where(true, output, noise) / (output + noise)).sum(1)
    cost = cost if weight is None else cost * weight.ravel()
    return {"Cost": cost[:, None], "SampleLogits": output, "SampleLabels": samples}


@operator("dropout_nd")
def _dropout_nd(a: Operands) -> Outputs:
    """Dropout with one number drawn for all of the axes that `axis` does not name."""
    x, rate, axes = a.array("X"), a.attr("dropout_prob", 0.5), a.attr("axis", cast("list[int]", []))
    upscale = a.attr("dropout_implementation", "downgrade_in_infer") == "upscale_in_train"
    if a.attr("is_test", False):
        return {"Out": x if upscale else x * (1 - rate)}
    shape = tuple(size if index in axes else 1 for index, size in enumerate(x.shape))
    mask = jax.random.bernoulli(_key(a), 1 - rate, shape)
    scale = 1 / (1 - rate) if upscale and rate < 1 else 1.0
    return {"Out": jnp.where(mask, x * scale, 0), "Mask": mask.astype(jnp.uint8)}


@operator("uniform_random", "uniform_random_batch_size_like")
def _uniform_random(a: Operands) -> Outputs:
    """Numbers between `min` and `max`; `diag_num` numbers of the diagonal, `diag_step` apart, are `diag_val`.
    The size `output_dim_idx` is that of the axis `input_dim_idx` of Input, where there is one."""
    like, sizes = a.get("Input"), a.all("ShapeTensorList")
    shape = [int(np.asarray(size).ravel()[0]) for size in sizes] if sizes else list(a.attr("shape", [1]))
    if not sizes and a.get("ShapeTensor") is not None:
        shape = [int(size) for size in a.host("ShapeTensor").ravel()]
    if like is not None:
        shape[a.attr("output_dim_idx", 0)] = like.shape[a.attr("input_dim_idx", 0)]
    low, high = a.attr("min", -1.0), a.attr("max", 1.0)
    drawn = jax.random.uniform(_key(a), tuple(shape), jnp.float32, low, high)
    diagonal = np.arange(a.attr("diag_num", 0)) * (a.attr("diag_step", 0) + 1)
    diagonal = diagonal[diagonal < drawn.size]
    if diagonal.size:
        drawn = drawn.reshape(-1).at[diagonal].set(a.attr("diag_val", 1.0)).reshape(shape)
    return {"Out": drawn.astype(_dtype(a, "dtype", np.dtype(np.float32)))}


@operator("seed")
def _seed(a: Operands) -> Outputs:
    seed = a.attr("seed", 0)
    drawn = jax.random.randint(default_generator.next_key(), (1,), 1, np.iinfo(np.int32).max)
    return {"Out": jnp.asarray([seed], jnp.int32) if seed else drawn.astype(jnp.int32)}


@operator("shuffle_batch")
def _shuffle_batch(a: Operands) -> Outputs:
    """The rows (all axes but the last) in a random order."""
    x = a.array("X")
    seed = int(a.host("Seed").ravel()[0]) if a.get("Seed") is not None else a.attr("startup_seed", 0)
    rows = x.reshape(-1, x.shape[-1])
    order = np.random.RandomState(seed % (1 << 32)).permutation(len(rows))
    return {
        "Out": rows[order].reshape(x.shape),
        "ShuffleIdx": order.astype(np.int64),
        "SeedOut": np.array([seed + 1], np.int64),
    }


@operator("unique_with_counts")
def _unique_with_counts(a: Operands) -> Outputs:
    """Values in the order of their first place, the index of each element, and how often they occur."""
    values, first, inverse, counts = np.unique(a.host("X"), True, True, True)
    order = np.argsort(first, kind="stable")
    rank = np.argsort(order, kind="stable")
    dtype = _dtype(a, "dtype", np.dtype(np.int32))
    index = rank[inverse.reshape(-1)]
    return {"Out": values[order], "Index": index.astype(dtype), "Count": counts[order].astype(dtype)}


@operator("similarity_focus")
def _similarity_focus(a: Operands) -> Outputs:
    """1 at the greatest values of some slices whose row and column none before has, for all slices of `axis`."""
    x = np.moveaxis(a.host("X"), a.attr("axis", 1), 1)
    out = np.zeros(x.shape, x.dtype)
    for image, index in ((i, j) for i in range(len(x)) for j in a.attr("indexes", cast("list[int]", []))):
        scores = x[image, index]
        rows, columns = (np.zeros(size, bool) for size in scores.shape)
        for flat in np.argsort(-scores, axis=None, kind="stable"):
            row, column = divmod(int(flat), scores.shape[1])
            if not rows[row] and not columns[column]:
                rows[row] = columns[column] = True
                out[image, :, row, column] = 1
    return {"Out": np.moveaxis(out, 1, a.attr("axis", 1))}


@operator("spp")
def _spp(a: Operands) -> Outputs:
    """Pooling into 1, 4, 16 … bins, joined. Source: He et al. 2014."""
    x, levels = a.array("X"), []
    maximum = a.attr("pooling_type", "max") == "max"
    for level in range(a.attr("pyramid_height", 1)):
        bins = 2**level
        kernel = [-(-size // bins) for size in x.shape[2:]]
        before = [(size * bins - full + 1) // 2 for size, full in zip(kernel, x.shape[2:])]
        padding = [
            (0, 0),
            (0, 0),
            *((low, size * bins - full - low) for low, size, full in zip(before, kernel, x.shape[2:])),
        ]
        window = (1, 1, *kernel)
        if maximum:
            pooled = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, padding)
        else:
            sums, counts = (
                jax.lax.reduce_window(one, 0.0, jax.lax.add, window, window, padding)
                for one in (x, jnp.ones_like(x))
            )
            pooled = sums / counts
        levels.append(pooled.reshape(len(x), -1))
    return {"Out": jnp.concatenate(levels, 1)}


@operator("fill_any")
def _fill_any(a: Operands) -> Outputs:
    x = a.array("X")
    value = a.attr("value", a.attr("value_float", 0.0) or a.attr("value_int", 0))
    return {"Out": jnp.where(True, jnp.full_like(x, value), x)}  # the gradient of x is zeros


@operator("fill_zeros_like2")
def _fill_zeros_like2(a: Operands) -> Outputs:
    x = a.array("X")
    return {"Out": jnp.zeros(x.shape, _dtype(a, "dtype", np.dtype(x.dtype)))}


@operator("transfer_dtype")
def _transfer_dtype(a: Operands) -> Outputs:
    return {"Out": a.array("X").astype(_dtype(a, "out_dtype", np.dtype(np.float32)))}


@operator("transfer_layout")
def _transfer_layout(a: Operands) -> Outputs:
    """Channels to the back (destination 1, NHWC) or to the front (2, NCHW)."""
    x, target = a.array("X"), a.attr("dst_layout", 0)
    moved = {1: jnp.moveaxis(x, 1, -1), 2: jnp.moveaxis(x, -1, 1)}
    return {"Out": moved.get(target, x)}


@operator("dequantize_abs_max")
def _dequantize_abs_max(a: Operands) -> Outputs:
    return {"Out": a.array("X").astype(jnp.float32) * (a.array("Scale") / a.attr("max_range", 127.0))}


@operator("dequantize_log")
def _dequantize_log(a: Operands) -> Outputs:
    x, table = a.array("X").astype(jnp.int32), a.array("Dict")  # int8 cannot hold 128
    return {"Out": jnp.where(x < 0, -table[jnp.where(x < 0, x + 128, 0)], table[jnp.maximum(x, 0)])}


@operator("lookup_table_dequant")
def _lookup_table_dequant(a: Operands) -> Outputs:
    """Rows hold the least value, the greatest one, and four numbers of 8 bits in each float."""
    table, ids = a.host("W").astype(np.float32), a.host("Ids").ravel()
    low, high = table[:, :1], table[:, 1:2]
    codes = np.ascontiguousarray(table[:, 2:]).view(np.uint8).astype(np.float32)
    return {"Out": (codes * (high - low) / 256 + low)[ids].astype(np.float32)}


@operator("rank_attention")
def _rank_attention(a: Operands) -> Outputs:
    """A product with a matrix for each pair of the rank of a row and that of a row beside it."""
    x, offset, parameters = a.array("X"), a.host("RankOffset"), a.array("RankParam")
    ranks, width = a.attr("MaxRank", 3), x.shape[1]
    matrices = parameters.reshape(ranks * ranks, width, -1)
    lower, faster, rows = offset[:, :1] - 1, offset[:, 1::2] - 1, offset[:, 2::2]
    valid = (lower >= 0) & (faster >= 0)
    inputs = jnp.where(valid[..., None], x[np.where(valid, rows, 0)], 0)
    index = np.where(valid, lower * ranks + faster, 0)
    return {
        "Out": jnp.einsum("nkd,nkdo->no", inputs, matrices[index]),
        "InputHelp": inputs.reshape(len(x), -1),
        "InsRank": jnp.asarray(offset[:, :1], x.dtype),
    }


@operator("fake_quantize_range_abs_max")
def _fake_quantize_range_abs_max(a: Operands) -> Outputs:
    """Numbers by the greatest absolute value of the last `window_size` batches."""
    x = a.array("X")
    if a.attr("is_test", False):
        scale = a.array("InScale").reshape(())
        return {"Out": _quantize(jnp.clip(x, -scale, scale), scale, a)}
    scale, before = jnp.abs(x).max(), a.array("InScale").reshape(())
    scale = jnp.maximum(scale, before)
    window = a.attr("window_size", 10000)
    scales = jnp.zeros(window, x.dtype).at[int(a.host("Iter").ravel()[0]) % window].set(scale)
    return {"Out": _quantize(x, scale, a), "OutScale": scale.reshape(1), "OutScales": scales}


def _quantize(x: jax.Array, scale: jax.Array, a: Operands) -> jax.Array:
    return quantize(x, scale, a.attr("bit_length", 8), a.attr("round_type", 1) == 0)


def _moving_scale(a: Operands, x: jax.Array) -> dict[str, jax.Array]:
    rate = a.attr("moving_rate", 0.9)
    state = rate * a.array("InState") + 1
    accumulated = rate * a.array("InAccum") + jnp.abs(x).max()
    return {"OutScale": accumulated / state, "OutState": state, "OutAccum": accumulated}


@operator(
    "moving_average_abs_max_scale",
    "fake_quantize_moving_average_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
)
def _moving_average_abs_max(a: Operands) -> Outputs:
    """Numbers by a running mean of the greatest absolute values; the gradient is that of X."""
    x = a.array("X")
    outputs: dict[str, jax.Array | Ragged] = {}
    if not a.attr("is_test", False):
        outputs.update(_moving_scale(a, jax.lax.stop_gradient(x)))
    if a.name == "moving_average_abs_max_scale":
        return {"Out": x, **outputs}
    scale = cast("jax.Array", outputs.get("OutScale", a.array("InScale"))).reshape(())
    integers = _quantize(x, scale, a)
    if "dequantize" in a.name:
        bound = (1 << (a.attr("bit_length", 8) - 1)) - 1
        integers = x + jax.lax.stop_gradient(integers * scale / bound - x)
    return {"Out": integers, **outputs}


@operator("stft")
def _stft(a: Operands) -> Outputs:
    """The spectra of windows `hop_length` apart, [..., frequencies, windows]."""
    x, size, hop = a.array("X"), a.attr("n_fft", 1), a.attr("hop_length", 1)
    starts = np.arange(1 + (x.shape[-1] - size) // hop) * hop
    frames = x[..., starts[:, None] + np.arange(size)] * a.array("Window")
    transform = jnp.fft.rfft if a.attr("onesided", True) else jnp.fft.fft
    spectra = transform(frames, norm="ortho" if a.attr("normalized", False) else "backward")
    return {"Out": jnp.swapaxes(spectra, -1, -2)}
