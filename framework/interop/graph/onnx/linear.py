"""ONNX operators that are products: MatMul, Gemm, Einsum, and determinants."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from framework.core.errors import ShapeError
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Dim, count
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array
# Values of a matrix: smaller ones are held transposed, for products of several rows read them faster so.
_LARGE = 1 << 22


def matmul(call: Call, x: Array, y: Array) -> Array:
    """The product with numpy's rules for one and many axes; one of a matrix with weights goes to `linear`."""
    rows, columns = x.shape[:-1], y.shape[-1:] if y.ndim > 1 else ()
    if all(isinstance(dim, int) for dim in (*rows, *columns, *y.shape)):
        count([*rows, *(y.shape[:-2] if x.ndim < y.ndim else ()), *columns], call.where)
    if x.ndim > 1 and y.ndim == 2 and x.dtype == y.dtype and jnp.issubdtype(x.dtype, jnp.floating):
        return F.linear(x, y)
    return F.matmul(x, y)


@operator("MatMul", weights=(0, 1))
def _matmul(call: Call, x: Array, y: Array) -> Array:
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return jnp.matmul(x, y)
    return matmul(call, x, y)


@operator("Gemm", weights=(1, 2))
def _gemm(call: Call, a: Array, b: Array, c: Array | None = None) -> Array:
    a = a.T if call.attr("transA") else a
    transposed = bool(call.attr("transB"))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[transposed]:
        raise call.error(
            "the matrices do not agree",
            ShapeError,
            received=f"{a.shape} and {b.shape}{', transposed' if transposed else ''}",
        )
    count([n for n in (a.shape[0], b.shape[1 - transposed]) if isinstance(n, int)], call.where)
    if not jnp.issubdtype(a.dtype, jnp.floating):
        y = a @ (b.T if transposed else b)
    elif transposed and b.size > _LARGE:
        y = F.matmul(a, b, transpose_y=True)
    else:
        y = F.linear(a, b.T if transposed else b)
    y = _times(y, call.attr("alpha", 1.0))
    return y if c is None else (y + _times(c, call.attr("beta", 1.0))).astype(y.dtype)


def _times(x: Array, factor: float) -> Array:
    return x if factor == 1 else (x * factor).astype(x.dtype)


@operator("Einsum", weights=(0, 1))
def _einsum(call: Call, *arrays: Array) -> Array:
    equation = str(call.required("equation"))
    sizes: dict[str, Dim] = {}
    for term, array in zip(equation.replace(" ", "").partition("->")[0].split(","), arrays):
        if "..." not in term:
            sizes |= dict(zip(term, array.shape))
    result = equation.replace(" ", "").partition("->")[2]
    fixed = [sizes[letter] for letter in result if isinstance(sizes.get(letter), int)]
    count([math.prod(fixed)], call.where)
    return jnp.einsum(equation, *arrays)


@operator("Det")
def _det(call: Call, x: Array) -> Array:
    return jnp.linalg.det(x)
