"""Initializers with Paddle's names and defaults.

An initializer is a frozen dataclass that is called with a numpy generator and a shape and returns float32. numpy and
not jax.random: a fresh model then needs no compilation, and its values are the same on every backend and jax release.

Fans follow Paddle: a Linear weight is [in, out]; a convolution weight is [out, in/groups, kh, kw].
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jax.typing import ArrayLike

from framework.core.errors import ShapeError
from framework.core.foreign_names import module_error

Shape = tuple[int, ...]


class Initializer:
    """Base: `__call__(rng, shape) -> float32 array`."""

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        raise NotImplementedError

    def blocks(self, rng: np.random.Generator, shape: Shape, numbers: int) -> Iterator[np.ndarray]:
        """The bits of `self(rng, shape)` as blocks of rows one after the other, each of about so many numbers, so that
        what keeps a share of a large parameter never has all of it. One block, where rows need one another."""
        yield self(rng, shape)


class Elementwise(Initializer):
    """Base of those whose numbers are drawn one after the other, each by itself: `draw(rng, shape, whole)` gives those
    of `shape`, rows of a parameter of the shape `whole`."""

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        raise NotImplementedError

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return self.draw(rng, shape, shape)

    def blocks(self, rng: np.random.Generator, shape: Shape, numbers: int) -> Iterator[np.ndarray]:
        if not shape:
            yield self(rng, shape)
            return
        rows = max(1, numbers // max(1, math.prod(shape[1:])))
        for start in range(0, max(1, shape[0]), rows):
            yield self.draw(rng, (min(rows, shape[0] - start), *shape[1:]), shape)


def fans(shape: Shape) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight: [in, out] for two axes, [out, in, *kernel] for more."""
    if len(shape) < 2:
        size = int(np.prod(shape))
        return size, size
    if len(shape) == 2:
        return shape[0], shape[1]
    receptive = math.prod(shape[2:])
    return shape[1] * receptive, shape[0] * receptive


def check_fill(name: str, shape: Shape, fits: bool, allowed: str) -> None:
    """Raises: ShapeError, unless the initializer fills parameters of this shape."""
    if not fits:
        raise ShapeError(
            "the parameter has a shape that this initializer does not fill",
            where=f"nn.initializer.{name}",
            received=list(shape),
            allowed=allowed,
        )


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The gain that keeps the variance through a nonlinearity, as `paddle.nn.initializer.calculate_gain`."""
    slope = 0.01 if param is None else param
    gains = {
        **dict.fromkeys(("linear", "conv1d", "conv2d", "conv3d", "sigmoid"), 1.0),
        "tanh": 5.0 / 3,
        "relu": math.sqrt(2.0),
        "leaky_relu": math.sqrt(2.0 / (1 + slope**2)),
        "selu": 3.0 / 4,
    }
    if nonlinearity not in gains:
        raise ShapeError("unknown nonlinearity", received=repr(nonlinearity), allowed=", ".join(gains))
    return gains[nonlinearity]


@dataclass(frozen=True)
class Constant(Elementwise):
    """One value everywhere."""

    value: float = 0.0

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        return np.full(shape, self.value, np.float32)


@dataclass(frozen=True)
class Normal(Elementwise):
    """Normal values."""

    mean: float = 0.0
    std: float = 1.0

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        return (self.mean + self.std * rng.standard_normal(shape)).astype(np.float32)


@dataclass(frozen=True)
class TruncatedNormal(Initializer):
    """Normal values redrawn until they lie within `a` and `b` (absolute bounds)."""

    mean: float = 0.0
    std: float = 1.0
    a: float = -2.0
    b: float = 2.0

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        values = np.asarray(self.mean + self.std * rng.standard_normal(shape))
        while (outside := (values < self.a) | (values > self.b)).any():
            values[outside] = self.mean + self.std * rng.standard_normal(int(outside.sum()))
        return values.astype(np.float32)


@dataclass(frozen=True)
class Uniform(Elementwise):
    """Values evenly from `low` up to `high`."""

    low: float = -1.0
    high: float = 1.0

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        return rng.uniform(self.low, self.high, shape).astype(np.float32)


@dataclass(frozen=True)
class _Xavier(Elementwise):
    """Source: Glorot and Bengio 2010. `fan_in` and `fan_out` replace those of the shape."""

    fan_in: float | None = None
    fan_out: float | None = None
    gain: float = 1.0

    def total(self, shape: Shape) -> float:
        fan_in, fan_out = fans(shape)
        return (self.fan_in or fan_in) + (self.fan_out or fan_out)


@dataclass(frozen=True)
class XavierUniform(_Xavier):
    """Uniform within `gain * sqrt(6 / (fan_in + fan_out))`. Source: Glorot and Bengio 2010."""

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        bound = self.gain * math.sqrt(6.0 / self.total(whole))
        return rng.uniform(-bound, bound, shape).astype(np.float32)


@dataclass(frozen=True)
class XavierNormal(_Xavier):
    """Normal with the deviation `gain * sqrt(2 / (fan_in + fan_out))`. Source: Glorot and Bengio 2010."""

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        deviation = self.gain * math.sqrt(2.0 / self.total(whole))
        return (deviation * rng.standard_normal(shape)).astype(np.float32)


@dataclass(frozen=True)
class KaimingNormal(Elementwise):
    """Source: He et al. 2015."""

    fan_in: float | None = None
    negative_slope: float = 0.0
    nonlinearity: str = "relu"

    def std(self, shape: Shape) -> float:
        gain = calculate_gain(self.nonlinearity, self.negative_slope)
        return gain / math.sqrt(fans(shape)[0] if self.fan_in is None else self.fan_in)

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        return (self.std(whole) * rng.standard_normal(shape)).astype(np.float32)


@dataclass(frozen=True)
class KaimingUniform(KaimingNormal):
    """Source: He et al. 2015."""

    def draw(self, rng: np.random.Generator, shape: Shape, whole: Shape) -> np.ndarray:
        bound = math.sqrt(3.0) * self.std(whole)
        return rng.uniform(-bound, bound, shape).astype(np.float32)


@dataclass(frozen=True)
class Orthogonal(Initializer):
    """Rows (or columns, whichever are fewer) are orthonormal times `gain`. Source: Saxe et al. 2014."""

    gain: float = 1.0

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        return self.in_float64(rng, shape).astype(np.float32)

    def in_float64(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """The values before they are rounded to float32, which are orthonormal to the digits of float64."""
        check_fill("Orthogonal", shape, len(shape) >= 2, "two dimensions or more")
        rows, cols = shape[0], math.prod(shape[1:])
        q, r = np.linalg.qr(rng.standard_normal((max(rows, cols), min(rows, cols))))
        q = q * np.sign(np.diag(r))
        return (self.gain * (q if rows >= cols else q.T)).reshape(shape)


@dataclass(frozen=True)
class Dirac(Initializer):
    """A convolution that passes its input through: 1 at the kernel's centre of channel i to i, per group."""

    groups: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.groups, int) or self.groups < 1:
            raise ShapeError(
                "groups is a positive number", where="nn.initializer.Dirac", received=self.groups
            )

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        check_fill("Dirac", shape, 3 <= len(shape) <= 5, "the weight of a convolution")
        if shape[0] % self.groups:
            raise ShapeError(
                "the output channels do not divide into the groups",
                where="nn.initializer.Dirac",
                received=f"{shape[0]} channels, {self.groups} groups",
            )
        out = np.zeros(shape, np.float32)
        per_group = shape[0] // self.groups
        centre = tuple(n // 2 for n in shape[2:])
        for channel in range(min(per_group, shape[1]) * self.groups):
            group, within = divmod(channel, min(per_group, shape[1]))
            out[(group * per_group + within, within, *centre)] = 1.0
        return out


@dataclass(frozen=True)
class Bilinear(Initializer):
    """A transposed convolution that interpolates bilinearly, for every pair of channels."""

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        kernel = np.ones(shape[2:], np.float32)
        for axis, size in enumerate(shape[2:]):
            factor = (size + 1) // 2
            centre = (2 * factor - 1 - factor % 2) / (2.0 * factor)
            line = 1 - np.abs(np.arange(size) / factor - centre)
            kernel = kernel * line.reshape([-1 if a == axis else 1 for a in range(len(shape) - 2)])
        return np.broadcast_to(kernel, shape).astype(np.float32)


@dataclass(frozen=True, eq=False)
class Assign(Initializer):
    """The given values."""

    value: ArrayLike

    def __call__(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        value = np.asarray(self.value, np.float32)
        if value.shape != tuple(shape):
            raise ShapeError("Assign has values of another shape", received=value.shape, allowed=tuple(shape))
        return value


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise module_error("framework.nn.initializer", name, globals())
