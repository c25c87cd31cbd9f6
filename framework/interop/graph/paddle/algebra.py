"""Operators of Paddle's linear algebra, special functions, diagonals and comparisons of whole arrays."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import jax.scipy.special as special
import numpy as np

from framework.interop.graph.operator import Table
from framework.interop.graph.paddle.arguments import Arguments, registrar
from framework.interop.graph.values import Item, Value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)

_UNARY: dict[str, Callable[[jax.Array], jax.Array]] = {
    "acosh": jnp.arccosh,
    "asinh": jnp.arcsinh,
    "atanh": jnp.arctanh,
    "digamma": special.digamma,
    "erfinv": special.erfinv,
    "lgamma": special.gammaln,
    "trunc": jnp.trunc,
}
_BINARY: dict[str, Callable[..., jax.Array]] = {
    "elementwise_fmax": jnp.fmax,
    "elementwise_fmin": jnp.fmin,
    "elementwise_heaviside": jnp.heaviside,
}
for _name, _function in _UNARY.items():
    operator(_name)(lambda a, function=_function: a.elementwise(function, a["X"]))
for _name, _function in _BINARY.items():
    operator(_name)(lambda a, function=_function: a.elementwise(function, a["X"], a["Y"]))
operator("atan2")(lambda a: a.elementwise(jnp.arctan2, a["X1"], a["X2"]))
operator("lerp")(lambda a: a.elementwise(lambda x, y, w: x + w * (y - x), a["X"], a["Y"], a["Weight"]))
operator("i0", main="out")(lambda a: a.elementwise(special.i0, a["x"]))


@operator("logit")
def _logit(a: Arguments) -> Item:
    eps = a.attr("eps", 0.0)

    def logit(x: jax.Array) -> jax.Array:
        return special.logit(jnp.clip(x, eps, 1 - eps) if eps else x)

    return a.elementwise(logit, a["X"])


@operator("stanh")
def _stanh(a: Arguments) -> Item:
    inner, outer = a.attr("scale_a", 0.67), a.attr("scale_b", 1.7159)
    return a.elementwise(lambda x: outer * jnp.tanh(inner * x), a["X"])


# -- linear algebra --------------------------------------------------------------------------------------------------


def _linear(function: Callable[..., jax.Array], *slots: str) -> Callable[[Arguments], Item]:
    def rule(a: Arguments) -> Item:
        return Value.of(function(*(a.array(slot) for slot in slots)))

    return rule


operator("determinant")(_linear(jnp.linalg.det, "Input"))
operator("slogdeterminant")(_linear(lambda x: jnp.stack(jnp.linalg.slogdet(x)), "Input"))
operator("inverse", main="Output")(_linear(jnp.linalg.inv, "Input"))
operator("kron")(_linear(jnp.kron, "X", "Y"))
operator("mv")(_linear(jnp.matmul, "X", "Vec"))
operator("dot")(_linear(lambda x, y: (x * y).sum(-1), "X", "Y"))


@operator("solve")
def _solve(a: Arguments) -> Item:
    x, y = a.array("X"), a.array("Y")
    return Value.of(jnp.linalg.solve(x, y[..., None])[..., 0] if y.ndim == 1 else jnp.linalg.solve(x, y))


@operator("triangular_solve")
def _triangular_solve(a: Arguments) -> Item:
    x, y = a.array("X"), a.array("Y")
    lead = jnp.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    solved = jax.lax.linalg.triangular_solve(
        jnp.broadcast_to(x, (*lead, *x.shape[-2:])),
        jnp.broadcast_to(y, (*lead, *y.shape[-2:])),
        left_side=True,
        lower=not a.attr("upper", True),
        transpose_a=bool(a.attr("transpose", False)),
        unit_diagonal=bool(a.attr("unitriangular", False)),
    )
    return Value.of(solved)


@operator("cholesky")
def _cholesky(a: Arguments) -> Item:
    return Value.of(jnp.linalg.cholesky(a.array("X"), upper=bool(a.attr("upper", False))))


@operator("matrix_power")
def _matrix_power(a: Arguments) -> Item:
    return Value.of(jnp.linalg.matrix_power(a.array("X"), int(a.attr("n", 1))))


@operator("svd")
def _svd(a: Arguments) -> dict[str, Item]:
    matrices = jnp.linalg.svd(a.array("X"), full_matrices=bool(a.attr("full_matrices", False)))
    return {slot: Value.of(array) for slot, array in zip(("U", "S", "VH"), matrices, strict=True)}


@operator("eigh")
def _eigh(a: Arguments) -> dict[str, Item]:
    values, vectors = jnp.linalg.eigh(a.array("X"), UPLO=a.attr("UPLO", "L"), symmetrize_input=False)
    return {"Eigenvalues": Value.of(values), "Eigenvectors": Value.of(vectors)}


@operator("dist")
def _dist(a: Arguments) -> Item:
    return Value.of(jnp.linalg.norm((a.array("X") - a.array("Y")).ravel(), a.attr("p", 2.0)))


@operator("cross")
def _cross(a: Arguments) -> Item:
    x, y, axis = a.array("X"), a.array("Y"), int(a.attr("dim", 9))
    if not -x.ndim <= axis < x.ndim:  # 9 is Paddle's word for the first axis of three
        axis = x.shape.index(3)
    return Value.of(jnp.cross(x, y, axis=axis))


@operator("clip_by_norm")
def _clip_by_norm(a: Arguments) -> Item:
    x, most = a.array("X"), a.attr("max_norm")
    norm = jnp.sqrt(jnp.square(x).sum())
    return Value.of(jnp.where(norm > most, x * (most / jnp.maximum(norm, most)), x))


# -- diagonals -------------------------------------------------------------------------------------------------------


@operator("trace")
def _trace(a: Arguments) -> Item:
    return Value.of(jnp.trace(a.array("Input"), a.attr("offset", 0), a.attr("axis1", 0), a.attr("axis2", 1)))


@operator("diagonal")
def _diagonal(a: Arguments) -> Item:
    where = a.attr("offset", 0), a.attr("axis1", 0), a.attr("axis2", 1)
    return Value.of(jnp.diagonal(a.array("Input"), *where))


@operator("diag_v2")
def _diag(a: Arguments) -> Item:
    x, offset, filler = a.array("X"), int(a.attr("offset", 0)), a.attr("padding_value", 0.0)
    y = jnp.diag(x, offset)
    if x.ndim == 1 and filler:
        y = jnp.where(jnp.eye(len(y), k=offset, dtype=bool), y, jnp.asarray(filler, y.dtype))
    return Value.of(y)


@operator("diag_embed")
def _diag_embed(a: Arguments) -> Item:
    x, offset = a.array("Input"), int(a.attr("offset", 0))
    size = x.shape[-1] + abs(offset)
    rows = jnp.arange(x.shape[-1]) + max(-offset, 0)
    y = jnp.zeros((*x.shape[:-1], size, size), x.dtype).at[..., rows, rows + offset].set(x)
    return Value.of(jnp.moveaxis(y, (-2, -1), (a.attr("dim1", -2), a.attr("dim2", -1))))


# -- comparing and rearranging whole arrays --------------------------------------------------------------------------


def _tolerance(a: Arguments) -> tuple[float, float, bool]:
    """rtol, atol, and whether NaN equals NaN: Paddle keeps the numbers as text, or as inputs."""
    rtol, atol = (
        float(np.asarray(limit) if (limit := a.get(slot)) is not None else a.attr(name, default))
        for name, slot, default in (("rtol", "Rtol", 1e-5), ("atol", "Atol", 1e-8))
    )
    return rtol, atol, bool(a.attr("equal_nan", False))


@operator("allclose")
def _allclose(a: Arguments) -> Item:
    return Value.of(jnp.allclose(a.array("Input"), a.array("Other"), *_tolerance(a)))


@operator("isclose")
def _isclose(a: Arguments) -> Item:
    limits = _tolerance(a)
    return a.elementwise(lambda x, y: jnp.isclose(x, y, *limits), a["Input"], a["Other"])


@operator("equal_all")
def _equal_all(a: Arguments) -> Item:
    return Value.of(jnp.array_equal(a.array("X"), a.array("Y")))


@operator("index_sample")
def _index_sample(a: Arguments) -> Item:
    return Value.of(jnp.take_along_axis(a.array("X"), a.array("Index"), 1))


@operator("broadcast_tensors")
def _broadcast_tensors(a: Arguments) -> Item:
    arrays = jnp.broadcast_arrays(*map(_logical, a.all("X")))
    return [Value.of(array) for array in arrays]


def _logical(item: Item) -> jax.Array:
    return item.logical() if isinstance(item, Value) else jnp.asarray(item)  # type: ignore[arg-type]


@operator("crop_tensor")
def _crop(a: Arguments) -> Item:
    x = a.array("X")
    starts = a.dims("offsets", "Offsets", "OffsetsTensor")
    sizes = a.dims("shape", "Shape", "ShapeTensor")
    slices = tuple(
        slice(start, None if size == -1 else start + size) for start, size in zip(starts, sizes, strict=True)
    )
    return Value.of(x[slices])


@operator("sequence_mask", main="Y")
def _sequence_mask(a: Arguments) -> Item:
    (longest,) = a.dims("maxlen", "MaxLenTensor")
    x = a.array("X")
    if longest < 0:
        raise a.call.error(
            "a mask as long as the longest sequence has a size that depends on values",
            fix="export the model with maxlen",
        )
    return Value.of(F.sequence_mask(x, longest, a.dtype("out_dtype", np.dtype(np.int32))))


@operator("label_smooth")
def _label_smooth(a: Arguments) -> Item:
    x, epsilon = a.array("X"), a.attr("epsilon", 0.1)
    prior = 1 / x.shape[-1] if a.get("PriorDist") is None else a.array("PriorDist")
    return Value.of((1 - epsilon) * x + epsilon * prior)


# -- layers ----------------------------------------------------------------------------------------------------------


@operator("maxout")
def _maxout(a: Arguments) -> Item:
    return Value.of(F.maxout(a.array("X"), int(a.attr("groups")), int(a.attr("axis", 1))))


def _of_images(function: Callable[..., jax.Array], *names: str) -> Callable[[Arguments], Item]:
    """A function of [N, H, W, C] and these attributes."""

    def rule(a: Arguments) -> Item:
        x = a.images(a.value("X"))
        y = function(x.channels_last(), *(a.attr(name) for name in names))
        return a.as_given(Value(y, (0, 3, 1, 2)))

    return rule


operator("pixel_unshuffle")(_of_images(F.pixel_unshuffle, "downscale_factor"))
operator("channel_shuffle")(_of_images(F.channel_shuffle, "groups"))
operator("temporal_shift")(_of_images(F.temporal_shift, "seg_num", "shift_ratio"))


@operator("affine_grid", main="Output")
def _affine_grid(a: Arguments) -> Item:
    n, c, h, w = a.dims("output_shape", "OutputShape")
    grid = F.affine_grid(a.array("Theta"), (n, h, w, c), bool(a.attr("align_corners", True)))
    return Value.of(grid)
