"""Operators of ai.onnx.ml, which scikit-learn's models become: linear, scaling, encoding, support vectors.

Labels of text are made on the host: such a graph runs through Config, not in a compiled program.

Source: https://github.com/onnx/onnx/blob/main/docs/Operators-ml.md
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from framework.core.errors import ShapeError, TraceError
from framework.interop.graph.onnx.elementwise import element_type
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value, device_type, to_jax, to_value
from framework.nn import functional as F

OPERATORS: Table = {}
operator = registrar(OPERATORS)
Array = jax.Array
DOMAIN = "ai.onnx.ml."


def numbers(call: Call, name: str) -> np.ndarray:
    """A list of numbers, or the tensor of the same name; empty where the node has neither."""
    value = call.attr(name + "_as_tensor", call.attr(name, ()))
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.kind == "f" or not array.size else array


def on_host(call: Call, x: Item) -> np.ndarray:
    """The values of an item. Raises: TraceError, in a program that is being compiled."""
    if isinstance(x, Value) and isinstance(x.data, Tracer):
        raise call.error(
            "text is not part of a compiled program", TraceError, fix="run the graph with Config(file)"
        )
    return np.asarray(x.logical() if isinstance(x, Value) else x)


def labels(call: Call, index: Array) -> Item:
    """The class labels of indices: text, or integers."""
    texts = call.attr("classlabels_strings")
    if texts:
        return np.asarray(texts, np.str_)[on_host(call, Value.of(index))]
    values = call.attr("classlabels_ints", call.attr("classlabels_int64s"))
    return Value.of(index if not values else jnp.asarray(np.asarray(values), device_type(np.int64))[index])


def class_count(call: Call) -> int:
    """How many class labels the node has."""
    named = ("classlabels_strings", "classlabels_ints", "classlabels_int64s")
    return max(len(call.attr(name, ())) for name in named)


def _softmax_zero(x: Array) -> Array:
    """A softmax in which scores of 0 stay 0."""
    counts = jnp.abs(x) > 1e-7
    exponents = jnp.where(counts, jnp.exp(x - x.max(-1, keepdims=True)), 0)
    return exponents / jnp.maximum(exponents.sum(-1, keepdims=True), 1e-38)


_TRANSFORMS: dict[str, Callable[[Array], Array]] = {  # in the order of their numbers in opset 5
    "NONE": lambda x: x,
    "SOFTMAX": lambda x: F.softmax(x, -1),
    "LOGISTIC": F.sigmoid,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": lambda x: np.sqrt(2).astype(np.float32) * jax.scipy.special.erfinv(2 * x - 1),
}


def transform(call: Call, scores: Array) -> Array:
    """The scores behind the node's `post_transform`."""
    name = call.attr("post_transform", "NONE")
    name = [*_TRANSFORMS, name][name] if isinstance(name, int) else name
    if name not in _TRANSFORMS:
        raise call.error("a post_transform that is not known", received=name, allowed=list(_TRANSFORMS))
    return _TRANSFORMS[name](scores)


def _matrix(x: Array) -> Array:
    return x.astype(jnp.float32).reshape(-1, x.shape[-1]) if x.ndim != 2 else x.astype(jnp.float32)


# -- linear models ----------------------------------------------------------------------------------------------------


def _linear(call: Call, x: Array) -> Array:
    x, weights = _matrix(x), numbers(call, "coefficients").reshape(-1, x.shape[-1])
    bias = numbers(call, "intercepts")
    y = jnp.matmul(x, weights.T, precision=jax.lax.Precision.HIGHEST)
    return y + bias if bias.size else y


@operator(DOMAIN + "LinearClassifier", style="values")
def _linear_classifier(call: Call, x: Item) -> tuple[Item, Item]:
    scores = _linear(call, to_jax(x))
    if scores.shape[1] > 1:
        return labels(call, jnp.argmax(scores, -1).astype(jnp.int32)), Value.of(transform(call, scores))
    index = (scores[:, 0] > 0).astype(jnp.int32)
    if class_count(call) < 2:
        return labels(call, jnp.zeros_like(index)), Value.of(transform(call, scores))
    one = transform(call, scores) if call.attr("post_transform", "NONE") != "SOFTMAX" else scores
    return labels(call, index), Value.of(jnp.concatenate([1 - one, one], -1))


@operator(DOMAIN + "LinearRegressor")
def _linear_regressor(call: Call, x: Array) -> Array:
    return transform(call, _linear(call, x))


# -- support vectors --------------------------------------------------------------------------------------------------


def _kernel(call: Call, x: Array, vectors: np.ndarray) -> Array:
    gamma, shift, degree = (*(call.attr("kernel_params") or ()), 0.0, 0.0, 0.0)[:3]
    products = jnp.matmul(x, vectors.T, precision=jax.lax.Precision.HIGHEST)
    match call.attr("kernel_type", "LINEAR"):
        case "RBF":
            return jnp.exp(-gamma * jnp.square(x[:, None] - vectors).sum(-1))
        case "POLY":
            return (gamma * products + shift) ** degree
        case "SIGMOID":
            return jnp.tanh(gamma * products + shift)
    return products


@operator(DOMAIN + "SVMRegressor")
def _svm_regressor(call: Call, x: Array) -> Array:
    x, rho, count = _matrix(x), numbers(call, "rho"), call.attr("n_supports", 0)
    weights = numbers(call, "coefficients")
    kernel = _kernel(call, x, numbers(call, "support_vectors").reshape(count, -1) if count else weights[None])
    y = (kernel @ weights[:, None] if count else kernel) + rho[0]
    return jnp.where(y > 0, 1.0, -1.0) if call.attr("one_class") else transform(call, y)


@operator(DOMAIN + "SVMClassifier", style="values")
def _svm_classifier(call: Call, x: Item) -> tuple[Item, Item]:
    """One against one with votes, as libsvm has it; or one row of coefficients a class."""
    data, rho, sizes = _matrix(to_jax(x)), numbers(call, "rho"), call.ints("vectors_per_class", ()) or ()
    weights = numbers(call, "coefficients")
    if not sizes:
        scores = _kernel(call, data, weights.reshape(class_count(call), -1)) + rho[0]
        return labels(call, jnp.argmax(scores, -1).astype(jnp.int32)), Value.of(transform(call, scores))
    kernel = _kernel(call, data, numbers(call, "support_vectors").reshape(sum(sizes), -1))
    weights, ends = weights.reshape(len(sizes) - 1, -1), np.cumsum((0, *sizes))
    pairs = [(i, j) for i in range(len(sizes)) for j in range(i + 1, len(sizes))]
    columns = []
    for number, (i, j) in enumerate(pairs):
        a, b = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        columns.append(kernel[:, a] @ weights[j - 1, a] + kernel[:, b] @ weights[i, b] + rho[number])
    scores = jnp.stack(columns, -1)
    one = np.eye(len(sizes), dtype=np.int32)
    votes = jnp.stack(
        [jnp.where(scores[:, n, None] > 0, one[i], one[j]) for n, (i, j) in enumerate(pairs)]
    ).sum(0)
    best = labels(call, jnp.argmax(votes, -1).astype(jnp.int32))
    slopes, offsets = numbers(call, "prob_a"), numbers(call, "prob_b")
    if slopes.size:
        return best, Value.of(_couple(F.sigmoid(-(scores * slopes + offsets)), pairs, len(sizes)))
    decision = scores if len(pairs) > 1 else jnp.concatenate([-scores, scores], -1)
    return best, Value.of(transform(call, decision))


def _couple(shares: Array, pairs: Sequence[tuple[int, int]], classes: int) -> Array:
    """Probabilities of the classes from those of the pairs [N, pairs]: Wu et al. 2004, algorithm 2, as in libsvm."""
    shares = jnp.clip(shares, 1e-7, 1 - 1e-7)
    table = jnp.zeros((shares.shape[0], classes, classes))
    for n, (i, j) in enumerate(pairs):
        table = table.at[:, i, j].set(shares[:, n]).at[:, j, i].set(1 - shares[:, n])
    away = table.swapaxes(1, 2)
    q = -away * table
    q = q + jnp.eye(classes) * jnp.square(away).sum(-1)[:, :, None]

    def sweep(_: int, p: Array) -> Array:
        start, qp = p, jnp.einsum("nij,nj->ni", q, p)
        error = jnp.abs(qp - (p * qp).sum(-1, keepdims=True)).max(-1, keepdims=True)
        for t in range(classes):
            qp = jnp.einsum("nij,nj->ni", q, p)
            step = ((p * qp).sum(-1) - qp[:, t]) / q[:, t, t]
            p = (p.at[:, t].add(step)) / (1 + step)[:, None]
        return jnp.where(error < 0.005 / classes, start, p)  # where libsvm stops, and all that follow it

    return jax.lax.fori_loop(0, 100, sweep, jnp.full((shares.shape[0], classes), 1 / classes))


# -- features ---------------------------------------------------------------------------------------------------------


@operator(DOMAIN + "Scaler")
def _scaler(call: Call, x: Array) -> Array:
    return (x.astype(jnp.float32) - numbers(call, "offset")) * numbers(call, "scale")


@operator(DOMAIN + "Normalizer")
def _normalizer(call: Call, x: Array) -> Array:
    x, norm = x.astype(jnp.float32), call.attr("norm", "MAX")
    norms: dict[str, Array] = {"MAX": x.max(-1, keepdims=True), "L1": jnp.abs(x).sum(-1, keepdims=True)}
    size = norms.get(norm, jnp.sqrt(jnp.square(x).sum(-1, keepdims=True)))
    return jnp.where(size == 0, x, x / jnp.where(size == 0, 1, size))


@operator(DOMAIN + "Imputer")
def _imputer(call: Call, x: Array) -> Array:
    whole = jnp.issubdtype(x.dtype, jnp.integer)
    kind = "int64" if whole else "float"
    new = np.asarray(call.required(f"imputed_value_{kind}s"))
    old = call.attr(f"replaced_value_{kind}", 0)
    missing = jnp.isnan(x) if old != old else x == old
    return jnp.where(missing, new.astype(x.dtype), x)


@operator(DOMAIN + "Binarizer")
def _binarizer(call: Call, x: Array) -> Array:
    return (x > call.attr("threshold", 0.0)).astype(x.dtype)


@operator(DOMAIN + "FeatureVectorizer")
def _vectorizer(call: Call, *arrays: Array) -> Array:
    return jnp.concatenate([a.astype(jnp.float32).reshape(a.shape[0], -1) for a in arrays], -1)


@operator(DOMAIN + "ArrayFeatureExtractor", style="values")
def _extractor(call: Call, x: Item, index: Item) -> Item:
    if isinstance(x, np.ndarray) and x.dtype.kind == "U":
        return np.take(np.atleast_2d(x), on_host(call, index).reshape(-1), -1)
    data, columns = to_jax(x), to_jax(index).reshape(-1)
    return Value.of(jnp.take(data.reshape(1, -1) if data.ndim == 1 else data, columns, -1))


@operator(DOMAIN + "OneHotEncoder", style="values")
def _one_hot(call: Call, x: Item) -> Item:
    texts = call.attr("cats_strings")
    if texts:
        same = on_host(call, x)[..., None] == np.asarray(texts, np.str_)
    else:
        values, whole = to_jax(x)[..., None], device_type(np.int64)
        same = values.astype(whole) == jnp.asarray(np.asarray(call.required("cats_int64s")), whole)
        same = same & (values == values)  # NaN is no category
    if not call.attr("zeros", 1) and not isinstance(same, Tracer) and not np.asarray(same).any(-1).all():
        raise call.error(
            "a category that the encoder does not have", ShapeError, fix="set zeros to 1 in the graph"
        )
    return Value.of(jnp.asarray(same).astype(jnp.float32))


def _table(call: Call, side: str) -> np.ndarray:
    for kind, dtype in (("strings", np.str_), ("int64s", np.int64), ("floats", np.float32)):
        if call.attr(f"{side}_{kind}"):
            return np.asarray(call.attr(f"{side}_{kind}"), dtype)
    tensor = call.attr(f"{side}_tensor")
    if tensor is None:
        raise call.error(f"the {side} are missing")
    return np.asarray(tensor)


@operator(DOMAIN + "LabelEncoder", style="values")
def _label_encoder(call: Call, x: Item) -> Item:
    if call.version < 2:
        return _category_mapper(call, x, "classes_strings", np.arange(len(call.required("classes_strings"))))
    keys, values = _table(call, "keys"), _table(call, "values")
    usual = {"U": "_Unused", "i": -1, "f": -0.0}[values.dtype.kind]
    name = {"U": "default_string", "i": "default_int64", "f": "default_float"}[values.dtype.kind]
    standard = np.asarray(call.attr("default_tensor", call.attr(name, usual))).reshape(-1)[0]
    if "U" in (keys.dtype.kind, values.dtype.kind):
        return _look_up(on_host(call, x), keys, values, standard)
    data = to_value(x)
    order = np.argsort(keys, kind="stable")
    keys, values = (jnp.asarray(a[order], device_type(a.dtype)) for a in (keys, values))
    at = jnp.clip(jnp.searchsorted(keys, data.data.astype(keys.dtype)), 0, keys.size - 1)
    equal = (keys[at] == data.data) | ((keys[at] != keys[at]) & (data.data != data.data))
    return data.keep(jnp.where(equal, values[at], jnp.asarray(standard, values.dtype)))


def _look_up(x: np.ndarray, keys: np.ndarray, values: np.ndarray, standard: object) -> np.ndarray:
    """The value of each key; of equal keys the first counts, and NaN equals NaN."""
    pairs = list(zip(keys.tolist(), values.tolist(), strict=True))
    table = {None if key != key else key: value for key, value in reversed(pairs)}
    result = [table.get(None if item != item else item, standard) for item in x.reshape(-1).tolist()]
    return np.asarray(result, values.dtype if values.dtype.kind != "U" else np.str_).reshape(x.shape)


@operator(DOMAIN + "CategoryMapper", style="values")
def _mapper(call: Call, x: Item) -> Item:
    return _category_mapper(call, x, "cats_strings", np.asarray(call.required("cats_int64s")))


def _category_mapper(call: Call, x: Item, name: str, codes: np.ndarray) -> Item:
    """Text to its number, or numbers to text."""
    texts, data = np.asarray(call.required(name), np.str_), on_host(call, x)
    if data.dtype.kind == "U":
        return _look_up(data, texts, codes.astype(np.int64), call.attr("default_int64", -1))
    return _look_up(data, codes, texts, call.attr("default_string", "_Unused"))


@operator(DOMAIN + "ZipMap", style="values", grows=True)
def _zip_map(call: Call, x: Item) -> Item:
    """A dictionary of label and score for each row; in a compiled program the scores as they are."""
    if isinstance(x, Value) and isinstance(x.data, Tracer):
        return x
    scores = np.atleast_2d(on_host(call, x))
    names = call.attr("classlabels_strings") or call.attr("classlabels_int64s") or range(scores.shape[1])
    return [dict(zip(names, row, strict=True)) for row in scores.tolist()]


@operator(DOMAIN + "CastMap", DOMAIN + "DictVectorizer", style="values")
def _of_dictionary(call: Call, x: Item) -> Item:
    """Dictionaries, one a row, as arrays of the values in the order of the vocabulary."""
    rows = x if isinstance(x, list) else [x]
    vocabulary = call.attr("string_vocabulary") or call.attr("int64_vocabulary")
    cast_to = {"TO_FLOAT": 1, "TO_INT64": 7}.get(str(call.attr("cast_to", "TO_FLOAT")))
    if any(not isinstance(row, dict) for row in rows) or cast_to is None:
        raise call.error("the input is not a dictionary for each row", ShapeError)
    table: list[list[object]] = [
        [row.get(key, 0) for key in vocabulary] if vocabulary else [row[key] for key in sorted(row)]  # type: ignore[union-attr]
        for row in rows
    ]
    return Value.of(jnp.asarray(np.asarray(table).astype(device_type(element_type(call, cast_to)))))
