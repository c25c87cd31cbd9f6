"""Random Tensors. `paddle.seed` makes them repeat; the numbers are not Paddle's own, their distributions are."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.arguments import DTypeLike
from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.dispatch import Array, Key, freeze, operation
from framework.paddle._kernel.dtypes import default_numpy, to_numpy_or
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.settings import takes_variables
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import Sizes, sizes_of

__all__ = [
    "bernoulli",
    "cauchy_",
    "exponential_",
    "geometric_",
    "multinomial",
    "normal",
    "normal_",
    "poisson",
    "rand",
    "randint",
    "randint_like",
    "randn",
    "randperm",
    "standard_normal",
    "uniform",
    "uniform_",
]


@operation(differentiable=False, name="uniform_random")
def _uniform(key: Key, low: Array, high: Array, shape: tuple[int, ...], dtype: np.dtype, seed: int) -> Array:
    kind = jnp.float32 if dtype.itemsize < 4 else dtype
    draw = jax.random.uniform(jax.random.key(seed) if seed else key, shape, kind)
    return (low + (high - low) * draw).astype(dtype)


@operation(differentiable=False, name="gaussian_random")
def _normal(key: Key, mean: Array, std: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    kind = jnp.float32 if dtype.itemsize < 4 else dtype
    return (mean + std * jax.random.normal(key, shape, kind)).astype(dtype)


@takes_variables
@checked
def uniform(
    shape: Sizes,
    dtype: object = None,
    min: float = -1.0,
    max: float = 1.0,
    seed: int = 0,
    name: str | None = None,
) -> Tensor:
    """Evenly distributed numbers in [min, max). A `seed` other than 0 gives the same numbers in every call."""
    return _uniform(min, max, sizes_of(shape), to_numpy_or(dtype, default_numpy()), seed)


@takes_variables
@checked
def rand(shape: Sizes, dtype: object = None, name: str | None = None) -> Tensor:
    """Evenly distributed numbers in [0, 1)."""
    return uniform(shape, dtype, 0.0, 1.0)


@takes_variables
@checked
def randn(shape: Sizes, dtype: object = None, name: str | None = None) -> Tensor:
    """Normally distributed numbers of mean 0 and standard deviation 1; complex ones of variance 1 in all."""
    return _normal(0.0, 1.0, sizes_of(shape), to_numpy_or(dtype, default_numpy()))


standard_normal = randn


@operation(differentiable=False, name="normal")
def _normal_around(key: Key, mean: Array, std: Array) -> Array:
    mean, std = jnp.asarray(mean), jnp.asarray(std)
    given = mean if mean.ndim >= std.ndim else std
    kind = given.dtype if jnp.issubdtype(given.dtype, jnp.floating) else default_numpy()
    return (
        mean + std * jax.random.normal(key, jnp.broadcast_shapes(mean.shape, std.shape), jnp.float32)
    ).astype(kind)


@takes_variables
@checked
def normal(
    mean: float | Tensor = 0.0, std: float | Tensor = 1.0, shape: Sizes | None = None, name: str | None = None
) -> Tensor:
    """Normally distributed numbers: of this `shape`, or one for each element of `mean` and `std`."""
    if isinstance(mean, Tensor) or isinstance(std, Tensor):
        return _normal_around(mean, std)
    return _normal(mean, std, sizes_of([1] if shape is None else shape), default_numpy())


def gaussian(
    shape: Sizes,
    mean: float = 0.0,
    std: float = 1.0,
    seed: int = 0,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Normally distributed numbers of this type; they come from the common stream of keys whatever `seed` is."""
    return _normal(float(mean), float(std), sizes_of(shape), to_numpy_or(dtype, default_numpy()))


@operation(differentiable=False, name="randint")
def _randint(key: Key, low: Array, high: Array, shape: tuple[int, ...], dtype: np.dtype) -> Array:
    return jax.random.randint(key, shape, low, high, jnp.int64).astype(dtype)


@takes_variables
@checked
def randint(
    low: int = 0,
    high: int | None = None,
    shape: Sizes = (1,),
    dtype: object = None,
    name: str | None = None,
) -> Tensor:
    """Whole numbers in [low, high), int64; with `low` alone in [0, low).

    Raises:
        ShapeError: the range is empty.
    """
    return _integers(low, high, sizes_of(shape), to_numpy_or(dtype, np.dtype(np.int64)))


@checked
def randint_like(
    x: Tensor, low: int = 0, high: int | None = None, dtype: object = None, name: str | None = None
) -> Tensor:
    """Whole numbers in [low, high) in the shape and type of `x`."""
    return _integers(low, high, tuple(x.shape), to_numpy_or(dtype, x._value.dtype))


def _integers(low: int, high: int | None, shape: tuple[int, ...], kind: np.dtype) -> Tensor:
    if high is None:
        low, high = 0, low
    if high <= low:
        raise ShapeError(
            "there is no whole number in an empty range",
            where="paddle.randint",
            received=f"low {low}, high {high}",
            allowed="low < high, or 0 < low alone",
        )
    return _randint(int(low), int(high), shape, kind)


@operation(differentiable=False, name="randperm")
def _randperm(key: Key, n: int, dtype: np.dtype) -> Array:
    return jax.random.permutation(key, n).astype(dtype)


@takes_variables
@checked
def randperm(n: int, dtype: object = "int64", name: str | None = None) -> Tensor:
    """0 to n - 1 in a random order."""
    return _randperm(int(freeze(n)), to_numpy_or(dtype, np.dtype(np.int64)))


@operation(differentiable=False)
def bernoulli(key: Key, x: Array, name: str | None = None) -> Array:
    """1 with the probability that `x` gives for each element, else 0."""
    return (jax.random.uniform(key, x.shape, jnp.float32) < x).astype(x.dtype)


@operation(differentiable=False)
def poisson(key: Key, x: Array, name: str | None = None) -> Array:
    """Counts of a Poisson distribution of mean `x`, element by element."""
    return jax.random.poisson(key, x, dtype=jnp.int64).astype(x.dtype)


@operation(differentiable=False, name="multinomial")
def _multinomial(key: Key, x: Array, num_samples: int, replacement: bool) -> Array:
    logits = jnp.log(x / x.sum(-1, keepdims=True))
    if replacement:
        draws = jax.random.categorical(key, logits[..., None, :], shape=(*x.shape[:-1], num_samples))
    else:  # the largest of perturbed logarithms are a sample without replacement
        draws = jax.lax.top_k(logits + jax.random.gumbel(key, x.shape, logits.dtype), num_samples)[1]
    return draws.astype(jnp.int64)


@checked
def multinomial(
    x: Tensor, num_samples: int = 1, replacement: bool = False, name: str | None = None
) -> Tensor:
    """int64 [..., num_samples]: indices drawn with the weights `x` [..., N].

    Raises:
        ShapeError: more samples without replacement than there are weights.
    """
    num_samples = int(freeze(num_samples))
    if not replacement and num_samples > x.shape[-1]:
        raise ShapeError(
            "more samples without replacement than categories",
            where="paddle.multinomial",
            received=f"num_samples {num_samples}, x {x.shape}",
            fix="replacement=True, or fewer samples",
        )
    return _multinomial(x, num_samples, replacement)


@checked
def uniform_(
    x: Tensor, min: float = -1.0, max: float = 1.0, seed: int = 0, name: str | None = None
) -> Tensor:
    """Fill `x` with evenly distributed numbers in [min, max)."""
    return replace_value(x, _uniform(min, max, tuple(x.shape), x._value.dtype, seed))


@checked
def normal_(x: Tensor, mean: float = 0.0, std: float = 1.0, name: str | None = None) -> Tensor:
    """Fill `x` with normally distributed numbers."""
    return replace_value(x, _normal(mean, std, tuple(x.shape), x._value.dtype))


@operation(differentiable=False, name="exponential")
def _exponential(key: Key, like: Array, rate: Array) -> Array:
    return (jax.random.exponential(key, like.shape, jnp.float32) / rate).astype(like.dtype)


@checked
def exponential_(x: Tensor, lam: float = 1.0, name: str | None = None) -> Tensor:
    """Fill `x` with numbers of an exponential distribution of mean 1 / lam; a leaf may want a gradient."""
    if x._node is None:
        x._value = _exponential(x, lam)._value
        x._version += 1
        return x
    return replace_value(x, _exponential(x, lam))


@operation(differentiable=False, name="cauchy")
def _cauchy(key: Key, like: Array, loc: Array, scale: Array) -> Array:
    return (loc + scale * jax.random.cauchy(key, like.shape, jnp.float32)).astype(like.dtype)


def cauchy_(x: Tensor, loc: float = 0, scale: float = 1, name: str | None = None) -> Tensor:
    """Fill `x` with numbers of a Cauchy distribution around `loc`."""
    return replace_value(x, _cauchy(x, loc, scale))


@operation(differentiable=False, name="geometric")
def _geometric(key: Key, like: Array, probs: Array) -> Array:
    # As in Paddle: the real number of which the count of trials is the ceiling.
    draw = jax.random.uniform(key, like.shape, jnp.float32, minval=jnp.finfo(jnp.float32).tiny)
    return (jnp.log(draw) / jnp.log1p(-jnp.asarray(probs, jnp.float32))).astype(like.dtype)


def geometric_(x: Tensor, probs: float | Tensor, name: str | None = None) -> Tensor:
    """Fill `x` with numbers of a geometric distribution with this chance of success."""
    return replace_value(x, _geometric(x, probs))
