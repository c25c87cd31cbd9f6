"""Values of what XLA compiles, with every set of compile options that is shipped, against numpy and scipy in float64.

    python -m tests.values [--sample] [--only NAME] [--add OPTION=VALUE]

The whole takes six sizes and four types; --sample one size and two types. --add puts one option more into every set,
which is how an option is tried before it is shipped. What is wrong is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import scipy.special as sp
from jax import lax

from framework.core.compilation import (
    CPU_RECOMPUTE_OPTIONS,
    compile_options,
    operation_compile_options,
    quick_compile_options,
)
from framework.nn import functional as F
from framework.nn.functional.slopes import arctan

Options = dict[str, Any]
Function = Callable[..., Any]
SIZES = (1, 7, 64, 65, 1000, 4096)
TYPES = (np.float32, np.float64, ml_dtypes.bfloat16, np.float16)
# name: jax's function, numpy's, and how many units in the last place of float32 and float64 XLA itself is away.
PRIMITIVES: dict[str, tuple[Function, Function, float, float]] = {
    "exp": (jnp.exp, np.exp, 8, 4),
    "exp2": (jnp.exp2, np.exp2, 64, 1024),
    "expm1": (jnp.expm1, np.expm1, 8, 4),
    "log": (jnp.log, np.log, 4, 4),
    "log2": (jnp.log2, np.log2, 4, 4),
    "log10": (jnp.log10, np.log10, 4, 4),
    "log1p": (jnp.log1p, np.log1p, 4, 160),  # jax#39707
    "sin": (jnp.sin, np.sin, 4, 4),
    "cos": (jnp.cos, np.cos, 4, 4),
    "tan": (jnp.tan, np.tan, 4, 4),
    "arcsin": (jnp.arcsin, np.arcsin, 4, 4),
    "arccos": (jnp.arccos, np.arccos, 4, 4),
    "arctan": (jnp.arctan, np.arctan, 4, 4),
    "sinh": (jnp.sinh, np.sinh, 32, 512),
    "cosh": (jnp.cosh, np.cosh, 32, 512),
    "tanh": (jnp.tanh, np.tanh, 4, 8),
    "arcsinh": (jnp.arcsinh, np.arcsinh, 4, 4),
    "arccosh": (jnp.arccosh, np.arccosh, 4, 4),
    "arctanh": (jnp.arctanh, np.arctanh, 4, 160),
    "sqrt": (jnp.sqrt, np.sqrt, 1, 1),
    "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x), 4, 4),
    "cbrt": (jnp.cbrt, np.cbrt, 16, 128),
    "erf": (lax.erf, sp.erf, 4, 4),
    "erfc": (lax.erfc, sp.erfc, 64, 16),
    "erfinv": (lax.erf_inv, sp.erfinv, 80, 1024),
    "lgamma": (lambda x: lax.lgamma(3 + jnp.abs(x)), lambda x: sp.gammaln(3 + np.abs(x)), 64, 64),
    "logistic": (lax.logistic, sp.expit, 4, 4),
    "i0e": (jax.scipy.special.i0e, sp.i0e, 8, 8),
    "i1e": (jax.scipy.special.i1e, sp.i1e, 16, 16),
    "floor": (jnp.floor, np.floor, 0, 0),
    "ceil": (jnp.ceil, np.ceil, 0, 0),
    "rint": (jnp.rint, np.rint, 0, 0),
    "sign": (jnp.sign, np.sign, 0, 0),
    "square": (jnp.square, np.square, 1, 1),
    "reciprocal": (lambda x: 1 / x, lambda x: 1 / x, 1, 1),
    "isfinite": (jnp.isfinite, np.isfinite, 0, 0),
}
PAIRS: dict[str, tuple[Function, Function, float, float]] = {
    "divide": (lax.div, np.divide, 1, 1),
    "arctan2": (jnp.arctan2, np.arctan2, 4, 4),
    "maximum": (jnp.maximum, np.maximum, 0, 0),
    "minimum": (jnp.minimum, np.minimum, 0, 0),
    "fmod": (
        lambda x, y: lax.rem(x, jnp.round(jnp.clip(y, -999, 999)) + 0.5),  # a divisor that both types have
        lambda x, y: np.fmod(x, np.round(np.clip(y, -999, 999)) + 0.5),
        0,
        0,
    ),
    "power": (
        lambda x, y: jnp.abs(x) ** jnp.clip(y, -2, 2),
        lambda x, y: np.abs(x) ** np.clip(y, -2, 2),
        8,
        16,
    ),
    "less": (jnp.less, np.less, 0, 0),
}


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


# name: ours, and the formula in numpy; of the latter the gradient is taken by differences.
FUNCTIONALS: dict[str, tuple[Function, Function]] = {
    "relu6": (F.relu6, lambda x: np.clip(x, 0, 6)),
    "sigmoid": (F.sigmoid, sp.expit),
    "log_sigmoid": (F.log_sigmoid, lambda x: -_softplus(-x)),
    "silu": (F.silu, lambda x: x * sp.expit(x)),
    "mish": (F.mish, lambda x: x * np.tanh(_softplus(x))),
    "hardswish": (F.hardswish, lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "softsign": (F.softsign, lambda x: x / (1 + np.abs(x))),
    "tanhshrink": (F.tanhshrink, lambda x: x - np.tanh(x)),
    "gelu": (F.gelu, lambda x: x * sp.ndtr(x)),
    "gelu_tanh": (
        lambda x: F.gelu(x, approximate=True),
        lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    ),
    "leaky_relu": (F.leaky_relu, lambda x: np.where(x < 0, 0.01 * x, x)),
    "elu": (F.elu, lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0)))),
    "celu": (lambda x: F.celu(x, 0.5), lambda x: np.where(x > 0, x, 0.5 * np.expm1(np.minimum(x, 0) / 0.5))),
    "selu": (
        F.selu,
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(np.minimum(x, 0))),
    ),
    "softplus": (lambda x: F.softplus(x, threshold=50), _softplus),
    "softshrink": (F.softshrink, lambda x: x - np.clip(x, -0.5, 0.5)),
    "hardshrink": (F.hardshrink, lambda x: np.where(np.abs(x) <= 0.5, 0, x)),
    "entropy": (
        lambda x: F.binary_cross_entropy_with_logits(x, jnp.full_like(x, 0.25), reduction="none"),
        lambda x: 0.75 * _softplus(x) + 0.25 * _softplus(-x),
    ),
    "focal": (
        lambda x: F.sigmoid_focal_loss(x, jnp.ones_like(x), reduction="none"),
        lambda x: 0.25 * sp.expit(-x) ** 2 * _softplus(-x),
    ),
    "smooth_l1": (
        lambda x: F.smooth_l1_loss(x, jnp.ones_like(x), reduction="none"),
        lambda x: np.where(np.abs(x - 1) < 1, 0.5 * np.minimum(np.abs(x - 1), 2) ** 2, np.abs(x - 1) - 0.5),
    ),
    "arctan_of_product": (lambda x: arctan(x * 0.5 + 0.25) * x, lambda x: np.arctan(x * 0.5 + 0.25) * x),
}


def _standardised(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


_SMALL = np.arange(9, dtype=np.float32).reshape(3, 3)


def _sums_of_squares(x: Any) -> Any:
    """Of a product with a small matrix, row by row: wrong in jaxlib 0.10.2 from 32,769 rows (jax#39103)."""
    return jax.vmap(lambda row: jnp.sum((jnp.asarray(_SMALL, x.dtype) @ row[:3]) ** 2))(x)


# name: ours of rows [N, 16], and the formula in numpy.
ROWS: dict[str, tuple[Function, Function]] = {
    "softmax": (F.softmax, lambda x: sp.softmax(x, -1)),
    "log_softmax": (F.log_softmax, lambda x: sp.log_softmax(x, -1)),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, -1), lambda x: sp.logsumexp(x, -1)),
    "cross_entropy": (
        lambda x: F.cross_entropy(x, jnp.zeros(len(x), jnp.int32), reduction="none"),
        lambda x: -sp.log_softmax(x, -1)[:, 0],
    ),
    "layer_norm": (lambda x: F.layer_norm(x, 16), _standardised),
    "group_norm": (lambda x: F.group_norm(x, 1), _standardised),
    "batch_norm": (
        lambda x: F.batch_norm(x, jnp.zeros(16), jnp.ones(16), training=True)[0],
        lambda x: _standardised(x.T).T,
    ),
    "rms_norm": (
        lambda x: F.rms_norm(x, 16, eps=1e-5),
        lambda x: x / np.sqrt(np.square(x).mean(-1, keepdims=True) + 1e-5),
    ),
    "normalize": (F.normalize, lambda x: x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12)),
    "variance": (lambda x: x.var(-1), lambda x: x.var(-1)),
    "cumsum": (lambda x: jnp.cumsum(x, -1), lambda x: np.cumsum(x, -1)),
    "sum_of_products": (lambda x: jnp.sum(x * x * 0.5, 0), lambda x: np.sum(x * x * 0.5, 0)),
    "sums_of_squares": (_sums_of_squares, lambda x: np.square(x[:, :3] @ _SMALL.T).sum(-1)),
    "seven_axes": (
        lambda x: jnp.sum(x[:8].reshape(2, 1, 2, 2, 2, 4, 2) * x[8:16].reshape(2, 1, 2, 2, 2, 4, 2), 3),
        lambda x: np.sum(x[:8].reshape(2, 1, 2, 2, 2, 4, 2) * x[8:16].reshape(2, 1, 2, 2, 2, 4, 2), 3),
    ),
}
# name: ours of integers or of rows with NaN, and numpy's; equal to the bit.
EXACT: dict[str, tuple[Function, Function, np.ndarray]] = {}
_WHOLE = np.array([0, 1, -1, 2, -7, 7, 46341, 2**31 - 1, -(2**31) + 1] * 8, np.int32)
_DIVISOR = np.roll(np.where(_WHOLE == 0, 3, _WHOLE), 1)
_GAPS = np.random.default_rng(4).normal(size=(70, 9)).round(1).astype(np.float32)
_GAPS[::3, 4] = np.nan
EXACT["floor_divide"] = (lambda x: x // _DIVISOR, lambda x: x // _DIVISOR, _WHOLE)
EXACT["remainder"] = (lambda x: x % _DIVISOR, lambda x: x % _DIVISOR, _WHOLE)
EXACT["overflow"] = (lambda x: x * x + x, lambda x: x * x + x, _WHOLE)
EXACT["argmax"] = (lambda x: jnp.argmax(x, -1), lambda x: np.argmax(x, -1), _GAPS)
EXACT["argmin"] = (lambda x: jnp.argmin(x, -1), lambda x: np.argmin(x, -1), _GAPS)
EXACT["max"] = (lambda x: x.max(-1), lambda x: x.max(-1), _GAPS)
EXACT["sort"] = (lambda x: jnp.sort(x, -1), lambda x: np.sort(x, -1), _GAPS)
EXACT["argsort"] = (lambda x: jnp.argsort(x, -1), lambda x: np.argsort(x, -1, kind="stable"), _GAPS)


def option_sets() -> dict[str, Options]:
    """Every set that the package compiles with: of the CPU (training, evaluation, inference, imported graphs, Paddle's
    operations), with recomputation, for comparisons; and none, of what is called eagerly."""
    cpu = compile_options(jax.devices("cpu")[0])
    return {
        "none": {},
        "cpu": cpu,
        "recompute": {**cpu, **CPU_RECOMPUTE_OPTIONS},
        "quick": quick_compile_options(),
        "operation": operation_compile_options(jax.devices("cpu")[0]),
    }


def numbers(dtype: Any, size: int, seed: int = 0) -> np.ndarray:
    """Numbers of every kind: 0 and -0, infinite, NaN, huge, tiny, near 1 and multiples of pi, halves. The first of
    `size` are drawn from all."""
    rng, info = np.random.default_rng(seed), ml_dtypes.finfo(dtype)
    tiny, big, eps = float(info.tiny), float(info.max), float(info.eps)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3,
        4 * tiny,
        -4 * tiny,
        big,
        -big,
    ]
    special += [1 - eps, 1 + eps, 88.7, -87.3, -103.9, 89, 709.7, -745, 1e-7, -1e-7, 0.2928, -0.4142]
    exponent = np.clip(rng.uniform(np.log10(tiny) + 1, np.log10(big) - 1, 400), -30, 30)
    drawn = np.concatenate(
        [
            np.linspace(-1, 1, 301),
            np.linspace(-30, 30, 401),
            np.linspace(-120, 120, 301),
            np.arange(-200, 200) * np.pi / 2,
            1 + np.linspace(-1e-3, 1e-3, 101),
            rng.choice([-1, 1], 400) * 10**exponent,
            rng.normal(size=2200),
        ]
    )
    rng.shuffle(drawn)
    return np.concatenate([special, drawn])[:size].astype(dtype) if size > 40 else drawn[:size].astype(dtype)


def compiled(function: Function, options: Options, *arrays: Any) -> Any:
    """What a program with these options computes of these arrays."""
    return jax.tree.map(np.asarray, jax.jit(function, compiler_options=options or None)(*arrays))


def ulps(got: np.ndarray, true: np.ndarray, dtype: Any) -> float:
    """The largest distance in units in the last place; infinite where NaN or infinity disagree. Numbers below the
    least normal one are 0 to XLA's CPU programs."""
    info, got = ml_dtypes.finfo(dtype), got.astype(np.float64)
    tiny, rounded = 2 * float(info.tiny), true.astype(dtype).astype(np.float64)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    same |= (np.abs(true) <= tiny) & (np.abs(got) <= tiny)
    unit = 2.0 ** np.floor(np.log2(np.maximum(np.abs(rounded), tiny))) * float(info.eps)
    distance = np.where(same, 0, np.abs(got - true) / unit)
    return float(np.nan_to_num(distance, nan=np.inf).max())


def _close(got: np.ndarray, want: np.ndarray, scale: np.ndarray | float, tolerance: float) -> float:
    """The largest difference as a multiple of `tolerance`, relative to the value and `scale`."""
    tiny, got = 4 * float(ml_dtypes.finfo(got.dtype).tiny), got.astype(np.float64)
    same = (got == want) | (np.isnan(got) & np.isnan(want)) | (np.abs(got - want) < tiny)
    ratio = np.where(same, 0, np.abs(got - want) / (np.abs(want) + scale))
    return float(np.nan_to_num(ratio, nan=np.inf).max()) / tolerance


_IN_STEPS = ("exp2", "lgamma", "fmod", "power")  # of 16 bits, each of which jax rounds
Row = tuple[str, float, float]  # what, the difference, what is allowed


def check_primitives(options: Options, dtype: Any, size: int, only: str) -> Iterator[Row]:
    x, y = numbers(dtype, size), np.roll(numbers(dtype, size, 1), 5)
    tables: list[tuple[Mapping[str, Any], tuple[np.ndarray, ...]]] = [(PRIMITIVES, (x,)), (PAIRS, (x, y))]
    for table, arrays in tables:
        for name, (ours, truth, single, double) in table.items():
            if only not in name or (dtype not in (np.float32, np.float64) and name in _IN_STEPS):
                continue
            got = compiled(ours, options, *arrays)
            want = truth(*(a.astype(np.float64) for a in arrays))
            yield (
                name,
                ulps(got, np.asarray(want, np.float64), dtype),
                double if dtype == np.float64 else single,
            )


def check_functionals(options: Options, dtype: Any, size: int, only: str) -> Iterator[Row]:
    """Values of all numbers, and gradients where differences of the formula say what they are."""
    tolerance = 4e-6 if dtype == np.float32 else 1e-11
    x = numbers(dtype, size)
    x = x[~(np.isfinite(x) & (np.abs(x) > 1e30))]
    wide, step = x.astype(np.float64), 1e-6
    for name, (ours, truth) in FUNCTIONALS.items():
        if only not in name:
            continue
        got, slope = compiled(lambda x, f=ours: (f(x), jax.grad(lambda x: f(x).sum())(x)), options, x)
        want = truth(wide)
        sure = np.isfinite(wide) | (
            ~np.isnan(want) & (name != "focal")
        )  # of infinity the formula may be 0 inf
        scale = np.minimum(1, np.abs(np.nan_to_num(wide)))
        yield name, _close(got[sure], want[sure], scale[sure], tolerance), 1
        yield f"NaN of {name}", float(not np.isnan(got[np.isnan(wide)]).all()), 0
        before, here, after = (truth(wide + d) for d in (-step, 0, step))
        want = (after - before) / (2 * step)
        smooth = (np.abs(wide) < 100) & (np.abs(after - 2 * here + before) < 1e-9)
        yield f"gradient of {name}", _close(slope[smooth], want[smooth], 1.0, 1e-5), 1


def check_rows(options: Options, dtype: Any, count: int, only: str) -> Iterator[Row]:
    tolerance = 1e-5 if dtype == np.float32 else 1e-11
    rng = np.random.default_rng(2)
    base, direction = rng.normal(size=(2, count, 16))
    kinds = {"normal": base * 3, "offset": base * 4 + 1000, "large": base * 1e4, "few": base * 1e-4}
    for name, (ours, truth) in ROWS.items():  # of many rows the values alone, as XLA fuses them differently
        if only not in name:
            continue
        shape = truth(base).shape
        weight = np.cos(np.arange(np.prod(shape))).reshape(shape)

        def both(x: Any, weight: Any, ours: Function = ours) -> Any:
            return ours(x), jax.grad(lambda x: (ours(x) * weight).sum())(x) if count < 1000 else x

        program = jax.jit(both, compiler_options=options or None)
        for kind, values in kinds.items():
            x = values.astype(dtype)
            wide = x.astype(np.float64)
            got, slope = (np.asarray(array) for array in program(x, weight.astype(dtype)))
            scale = np.abs(truth(wide)).max() * 1e-2
            scale += 1e2 if kind == "offset" and name.endswith("norm") else 0  # x itself has no more digits
            yield f"{name} of {kind} rows", _close(got, truth(wide), scale, tolerance), 1
            if kind == "normal" and count < 1000:
                low, high = ((truth(wide + step * direction) * weight).sum() for step in (-1e-5, 1e-5))
                along = slope.astype(np.float64) * direction
                yield (
                    f"gradient of {name}",
                    abs(along.sum() - (high - low) / 2e-5) / np.abs(along).sum() / 1e-5,
                    1,
                )


def check_exact(options: Options, only: str) -> Iterator[Row]:
    for name, (ours, truth, array) in EXACT.items():
        if only not in name:
            continue
        with np.errstate(all="ignore"):
            yield (
                name,
                float(not np.array_equal(compiled(ours, options, array), truth(array), equal_nan=True)),
                0,
            )
    if only:
        return
    masked = np.where(np.arange(16) % 3 == 0, np.float32(-np.inf), _GAPS[:64, :1])
    masked[np.isnan(masked)] = 0
    got = compiled(lambda x: (F.softmax(x), jax.grad(lambda x: F.softmax(x)[:, 1].sum())(x)), options, masked)
    yield "softmax of masked rows", float(not all(np.isfinite(a).all() for a in got)), 0


def scan(sample: bool, only: str = "", extra: Options | None = None) -> list[str]:
    """A line for each set of options, type, size and function that is wrong."""
    wrong: list[str] = []
    sets, sizes = option_sets(), (257,) if sample else SIZES
    if sample:
        del sets["none"]
    for label, options in sets.items():
        options = {**options, **(extra or {})}
        for dtype in TYPES[:2] if sample else TYPES:
            rows = [row for size in sizes for row in check_primitives(options, dtype, size, only)]
            if dtype in (np.float32, np.float64) and not (sample and label == "recompute"):
                rows += check_functionals(options, dtype, sizes[-1], only)
                rows += check_rows(options, dtype, 64, only)
                if not sample or only in "sums_of_squares":
                    rows += check_rows(options, dtype, 32769, "sums_of_squares" if sample else only)
                rows += check_exact(options, only)
            wrong += [
                f"{label} {np.dtype(dtype).name} {what}: {value:.3g}, allowed {limit:g}"
                for what, value, limit in rows
                if not value <= limit
            ]
    return wrong


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", action="store_true")
    parser.add_argument("--only", default="", metavar="NAME")
    parser.add_argument("--add", default="", metavar="OPTION=VALUE")
    args = parser.parse_args(argv)
    name, _, value = args.add.partition("=")
    extra: Options = {name: int(value) if value.isdigit() else value} if name else {}
    jax.config.update("jax_enable_x64", True)
    with np.errstate(all="ignore"):
        wrong = scan(args.sample, args.only, extra)
    print("\n".join(wrong) or "all values agree")
    return bool(wrong)


if __name__ == "__main__":
    assert "optimization_level" not in os.environ.get("XLA_FLAGS", ""), "compile as users do: XLA_FLAGS="
    sys.exit(main())
