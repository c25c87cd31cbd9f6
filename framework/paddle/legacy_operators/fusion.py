"""Fused operators of Paddle's older programs, and matching of sequences of two inputs.

Source: paddle/fluid/operators/fused, paddle/fluid/operators/{var_conv_2d_op,match_matrix_tensor_op}.cc
"""

from __future__ import annotations

import itertools
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle.legacy_operators.operands import (
    Operands,
    Outputs,
    Ragged,
    Table,
    offsets_of,
    registrar,
    segments_of,
)
from framework.paddle.legacy_operators.sequence import context_rows, pool_sequences

OPERATORS: Table = {}
operator = registrar(OPERATORS)


@operator("fusion_seqconv_eltadd_relu")
def _fusion_seqconv_eltadd_relu(a: Operands) -> Outputs:
    columns = context_rows(
        a.array("X"), a.lengths("X"), a.attr("contextStart", 0), a.attr("contextLength", 1)
    )
    out = jax.nn.relu(columns @ a.array("Filter") + a.array("Bias").reshape(-1))
    return {"Out": Ragged(out, a.lod("X") or [])}


@operator("fusion_seqexpand_concat_fc")
def _fusion_seqexpand_concat_fc(a: Operands) -> Outputs:
    """The rows of the first input beside the one row that the others have for its sequence."""
    first, *others = a.all("X")
    segments = segments_of(a.lengths("X"))
    joined = jnp.concatenate([first, *(other[segments] for other in others)], 1) @ a.array("FCWeight")
    bias = a.get("FCBias")
    out = joined if bias is None else joined + bias.reshape(-1)
    activation = {"relu": jax.nn.relu, "tanh": jnp.tanh, "sigmoid": jax.nn.sigmoid}
    kind = a.attr("fc_activation", "identity")
    return {"Out": Ragged(activation[kind](out) if kind in activation else out, a.lod("X") or [])}


def _pooled(a: Operands) -> list[jax.Array]:
    kind = a.attr("pooltype", "SUM").upper()
    return [pool_sequences(x, a.lengths("X", index), kind) for index, x in enumerate(a.all("X"))]


@operator("fusion_seqpool_concat")
def _fusion_seqpool_concat(a: Operands) -> Outputs:
    return {"Out": jnp.concatenate(_pooled(a), a.attr("axis", 1))}


@operator("fusion_seqpool_cvm_concat")
def _fusion_seqpool_cvm_concat(a: Operands) -> Outputs:
    """The first two columns are counts of shows and clicks: they become log(shows + 1) and the log of the rate."""
    rows = []
    for pooled in _pooled(a):
        shows = jnp.log(pooled[:, :1] + 1)
        counted = jnp.concatenate([shows, jnp.log(pooled[:, 1:2] + 1) - shows, pooled[:, 2:]], 1)
        rows.append(counted if a.attr("use_cvm", True) else pooled[:, 2:])
    return {"Out": jnp.concatenate(rows, a.attr("axis", 1))}


@operator("fused_embedding_seq_pool")
def _fused_embedding_seq_pool(a: Operands) -> Outputs:
    """The sum of the embeddings of each sequence, for every column of Ids."""
    table, padding = a.array("W"), a.attr("padding_idx", -1)
    ids = a.array("Ids").reshape(len(a.array("Ids")), -1)
    rows = jnp.where((ids == padding)[..., None], jnp.zeros((), table.dtype), table[ids])
    pooled = pool_sequences(rows, a.lengths("Ids"), a.attr("combiner", "sum").upper())
    return {"Out": pooled.reshape(len(pooled), -1)}


@operator("fusion_transpose_flatten_concat")
def _fusion_transpose_flatten_concat(a: Operands) -> Outputs:
    axis = a.attr("flatten_axis", 1)
    moved = [x.transpose(a.attr("trans_axis", list(range(x.ndim)))) for x in a.all("X")]
    flat = [x.reshape(int(np.prod(x.shape[:axis])), -1) for x in moved]
    return {"Out": jnp.concatenate(flat, a.attr("concat_axis", 1))}


def _aligned(array: jax.Array, other: jax.Array, axis: int) -> jax.Array:
    """An array of fewer axes with its first one at `axis` of the other's; -1: with its last one at the last."""
    behind = other.ndim - array.ndim - axis
    return array if axis < 0 or behind <= 0 else array.reshape(*array.shape, *[1] * behind)


@operator("fused_elemwise_activation")
def _fused_elemwise_activation(a: Operands) -> Outputs:
    """f(X, g(Y)) or f(g(X, Y)) of the two functions in `functor_list`."""
    x, y, axis = a.array("X"), a.array("Y"), a.attr("axis", -1)
    outer, inner = (name.removesuffix("_grad") for name in a.attr("functor_list", cast("list[str]", [])))
    binary = {"elementwise_add": jnp.add, "elementwise_mul": jnp.multiply}
    unary = {
        "relu": jax.nn.relu,
        "tanh": jnp.tanh,
        "sigmoid": jax.nn.sigmoid,
        "scale": lambda value: value * a.attr("scale", 0.0),
        "gelu": jax.nn.gelu,
    }
    if outer in binary:
        middle = unary[inner](y)
        out = binary[outer](_aligned(x, middle, axis), _aligned(middle, x, axis))
    else:
        middle = binary[inner](_aligned(x, y, axis), _aligned(y, x, axis))
        out = unary[outer](middle)
    return {"Out": out, "IntermediateOut": middle}


@operator("match_matrix_tensor")
def _match_matrix_tensor(a: Operands) -> Outputs:
    """x W_t y of all rows of the two sequences of an example, for each of `dim_t` matrices."""
    x, y, weight = a.array("X"), a.array("Y"), a.array("W")
    left, right = offsets_of(a.lengths("X")), offsets_of(a.lengths("Y"))
    outputs, products = [], jnp.einsum("id,dte->tie", x, weight)
    for start, end, first, last in zip(left, left[1:], right, right[1:]):
        outputs.append((products[:, start:end] @ y[first:last].T).reshape(-1, 1))
    between = [
        products[:, start:end].swapaxes(0, 1).reshape(-1, 1) for start, end in itertools.pairwise(left)
    ]
    sizes = [len(one) for one in outputs]
    return {"Out": Ragged(jnp.concatenate(outputs), [sizes]), "Tmp": jnp.concatenate(between)}


@operator("var_conv_2d")
def _var_conv_2d(a: Operands) -> Outputs:
    """A convolution over images of different sizes: ROW and COLUMN have a sequence of an image's height or width."""
    x, weight = a.array("X").ravel(), a.array("W")
    channels, kernel = a.attr("InputChannel", 1), (a.attr("KernelH", 1), a.attr("KernelW", 1))
    stride = (a.attr("StrideH", 1), a.attr("StrideW", 1))
    padding = tuple((size // 2, (size - 1) // 2) for size in kernel)
    outputs, columns, start = [], [], 0
    for height, width in zip(a.lengths("ROW").tolist(), a.lengths("COLUMN").tolist()):
        size = channels * height * width
        image = x[start : start + size].reshape(1, channels, height, width)
        start += size
        if not size:
            outputs.append(jnp.zeros((0, 1), x.dtype))
            columns.append(jnp.zeros((0, 1), x.dtype))
            continue
        patches = jax.lax.conv_general_dilated_patches(image, kernel, stride, padding)
        patches = patches.reshape(patches.shape[1], -1)
        outputs.append((weight @ patches).reshape(-1, 1))
        columns.append(patches.reshape(-1, 1))
    return {
        "Out": Ragged(jnp.concatenate(outputs), [[len(one) for one in outputs]]),
        "Col": Ragged(jnp.concatenate(columns), [[len(one) for one in columns]]),
    }


@operator("multihead_matmul")
def _multihead_matmul(a: Operands) -> Outputs:
    """Attention of `head_number` heads over the rows of Input; W is [width, 3, heads, size]."""
    x, heads = a.array("Input"), a.attr("head_number", 1)
    width = x.shape[-1]
    weight, bias = a.array("W").reshape(width, 3, -1), a.array("Bias").reshape(3, -1)
    query, key, value = (
        (x @ weight[:, index] + bias[index]).reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
        for index in range(3)
    )
    scores = query @ key.swapaxes(-1, -2) * a.attr("alpha", 1.0)
    mask = a.get("BiasQK")
    weights = jax.nn.softmax(scores if mask is None else scores + mask, -1)
    return {"Out": (weights @ value).swapaxes(1, 2).reshape(*x.shape[:2], -1)}
