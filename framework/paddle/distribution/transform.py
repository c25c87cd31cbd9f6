"""Transforms: functions that carry distributions, with their inverses and the volume that they stretch."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Distribution
from framework.paddle.distribution.independent import sum_last
from framework.paddle.ops.creation import integers_of
from framework.paddle.ops.joining import stack, unstack

Shape = tuple[int, ...]


class Type(enum.Enum):
    """Whether a transform can be taken back: uniquely (BIJECTION, INJECTION) or not."""

    BIJECTION = "bijection"
    INJECTION = "injection"
    SURJECTION = "surjection"
    OTHER = "other"


class Transform:
    """A function of Tensors. `in_rank` axes go into one application of it, `out_rank` come out.

    A class of one's own defines `_forward`, `_inverse`, and `_forward_log_det_jacobian` or
    `_inverse_log_det_jacobian`: the logarithm of the factor by which volume grows, without the axes that go in.
    """

    _type = Type.INJECTION
    _transformed: Any  # TransformedDistribution, whose module sets it
    in_rank = 0
    out_rank = 0

    def __call__(self, input: TensorLike) -> Any:
        """Of a Tensor its value, of a Distribution the transformed one, of a Transform both one after another."""
        if isinstance(input, Distribution):
            return self._transformed(input, [self])
        if isinstance(input, Transform):
            return ChainTransform([self, input])
        return self.forward(input)

    @property
    def type(self) -> Type:
        return self._type

    def forward(self, x: TensorLike) -> Tensor:
        """The value at x."""
        return self._forward(_tensor(x, self.in_rank))

    def inverse(self, y: TensorLike) -> Any:
        """What the transform makes y of."""
        return self._inverse(_tensor(y, self.out_rank))

    def forward_log_det_jacobian(self, x: TensorLike) -> Tensor:
        """log |dy/dx| at x.

        Raises:
            NotImplementedError: different x give the same y, or none was defined.
        """
        x = _tensor(x, self.in_rank)
        if self._type not in (Type.BIJECTION, Type.INJECTION):
            return Transform._forward_log_det_jacobian(self, x)
        if _defines(self, "_inverse_log_det_jacobian") and not _defines(self, "_forward_log_det_jacobian"):
            return -self._inverse_log_det_jacobian(self._forward(x))
        return self._forward_log_det_jacobian(x)

    def inverse_log_det_jacobian(self, y: TensorLike) -> Any:
        """log |dx/dy| at y.

        Raises:
            NotImplementedError: none was defined.
        """
        y = _tensor(y, self.out_rank)
        if _defines(self, "_forward_log_det_jacobian") and not _defines(self, "_inverse_log_det_jacobian"):
            return -self._forward_log_det_jacobian(self._inverse(y))
        return self._inverse_log_det_jacobian(y)

    def forward_shape(self, shape: Any) -> Shape:
        """The shape that comes of this one."""
        return self._forward_shape(integers_of(shape))

    def inverse_shape(self, shape: Any) -> Shape:
        """The shape that this one comes of."""
        return self._inverse_shape(integers_of(shape))

    def _forward(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def _inverse(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no inverse")

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no log_det_jacobian, or cannot be taken back")

    def _inverse_log_det_jacobian(self, y: Tensor) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no log_det_jacobian")

    def _forward_shape(self, shape: Shape) -> Shape:
        return shape

    def _inverse_shape(self, shape: Shape) -> Shape:
        return shape


def _defines(transform: Transform, method: str) -> bool:
    return getattr(type(transform), method) is not getattr(Transform, method)


def _tensor(x: TensorLike, rank: int) -> Tensor:
    x = x if isinstance(x, Tensor) else Tensor(x)
    if x.ndim < rank:
        raise ShapeError(
            "the transform takes more axes", where="paddle.distribution", received=f"{x.shape}, {rank} wanted"
        )
    return x


class AbsTransform(Transform):
    """y = |x|; the inverse gives both (-y, y)."""

    _type = Type.SURJECTION

    def _forward(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> tuple[Tensor, Tensor]:
        return -y, y

    def _inverse_log_det_jacobian(self, y: Tensor) -> tuple[Tensor, Tensor]:
        zero = Tensor(np.zeros((), y._value.dtype))
        return zero, zero


@operation(name="affine_log_det")
def _affine_log_det(scale: Array) -> Array:
    return jnp.log(jnp.abs(scale))


class AffineTransform(Transform):
    """y = loc + scale x."""

    _type = Type.BIJECTION

    def __init__(self, loc: Tensor, scale: Tensor) -> None:
        if not (isinstance(loc, Tensor) and isinstance(scale, Tensor)):
            raise TypeError("AffineTransform takes Tensors: paddle.to_tensor(2.0)")
        self._loc, self._scale = loc, scale

    @property
    def loc(self) -> Tensor:
        return self._loc

    @property
    def scale(self) -> Tensor:
        return self._scale

    def _forward(self, x: Tensor) -> Tensor:
        return self._loc + self._scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return _affine_log_det(self._scale)

    def _forward_shape(self, shape: Shape) -> Shape:
        return np.broadcast_shapes(shape, self._loc.shape, self._scale.shape)

    _inverse_shape = _forward_shape


class ChainTransform(Transform):
    """Transforms one after another, the first one first."""

    def __init__(self, transforms: Sequence[Transform]) -> None:
        self.transforms = tuple(transforms)
        kinds = {t.type for t in self.transforms}
        self._type = (
            Type.BIJECTION
            if kinds <= {Type.BIJECTION}
            else Type.INJECTION
            if kinds <= {Type.BIJECTION, Type.INJECTION}
            else Type.OTHER
        )
        # Each takes axes of what came before; the chain takes as many as the greediest needs.
        rank = lowest = 0
        for t in self.transforms:
            lowest = min(lowest, rank - t.in_rank)
            rank += t.out_rank - t.in_rank
        self.in_rank, self.out_rank = -lowest, rank - lowest

    def _forward(self, x: Tensor) -> Tensor:
        for t in self.transforms:
            x = t.forward(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
        for t in reversed(self.transforms):
            y = t.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        rank, total = self.in_rank, None
        for t in self.transforms:
            part = sum_last(t.forward_log_det_jacobian(x), rank - t.in_rank)
            total = part if total is None else total + part
            x = t.forward(x)
            rank += t.out_rank - t.in_rank
        return Tensor(0.0) if total is None else total

    def _forward_shape(self, shape: Shape) -> Shape:
        for t in self.transforms:
            shape = t.forward_shape(shape)
        return shape

    def _inverse_shape(self, shape: Shape) -> Shape:
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return shape


class ExpTransform(Transform):
    """y = exp(x)."""

    _type = Type.BIJECTION

    def _forward(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return x


class IndependentTransform(Transform):
    """`base`, with the last `reinterpreted_batch_rank` axes of applications taken as part of each."""

    def __init__(self, base: Transform, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Transform):
            raise TypeError(f"Expected 'base' is Transform type, but got {type(base)}")
        if reinterpreted_batch_rank < 1:
            raise ShapeError(
                "at least one axis",
                where="paddle.distribution.IndependentTransform",
                received=f"reinterpreted_batch_rank {reinterpreted_batch_rank}",
            )
        self._base, self._rank = base, reinterpreted_batch_rank
        self._type = base.type
        self.in_rank, self.out_rank = base.in_rank + self._rank, base.out_rank + self._rank

    def _forward(self, x: Tensor) -> Tensor:
        return self._base.forward(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return sum_last(self._base.forward_log_det_jacobian(x), self._rank)

    def _forward_shape(self, shape: Shape) -> Shape:
        return self._base.forward_shape(shape)

    def _inverse_shape(self, shape: Shape) -> Shape:
        return self._base.inverse_shape(shape)


@operation(name="power_log_det")
def _power_log_det(x: Array, power: Array) -> Array:
    return jnp.log(jnp.abs(power * jnp.power(x, power - 1)))


class PowerTransform(Transform):
    """y = x^power, for positive x."""

    _type = Type.BIJECTION

    def __init__(self, power: Tensor) -> None:
        if not isinstance(power, Tensor):
            raise TypeError("PowerTransform takes a Tensor: paddle.to_tensor(2.0)")
        self._power = power

    @property
    def power(self) -> Tensor:
        return self._power

    def _forward(self, x: Tensor) -> Tensor:
        return x**self._power

    def _inverse(self, y: Tensor) -> Tensor:
        return y ** (1 / self._power)  # type: ignore[operator]

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return _power_log_det(x, self._power)

    def _forward_shape(self, shape: Shape) -> Shape:
        return np.broadcast_shapes(shape, self._power.shape)

    _inverse_shape = _forward_shape


class ReshapeTransform(Transform):
    """The last axes reshaped from `in_event_shape` to `out_event_shape`.

    Raises:
        ShapeError: the shapes have different numbers of elements.
    """

    _type = Type.BIJECTION

    def __init__(self, in_event_shape: Sequence[int], out_event_shape: Sequence[int]) -> None:
        self._in, self._out = tuple(in_event_shape), tuple(out_event_shape)
        if math.prod(self._in) != math.prod(self._out):
            raise ShapeError(
                "the shapes have different numbers of elements",
                where="paddle.distribution.ReshapeTransform",
                received=f"{self._in} to {self._out}",
            )
        self.in_rank, self.out_rank = len(self._in), len(self._out)

    @property
    def in_event_shape(self) -> Shape:
        return self._in

    @property
    def out_event_shape(self) -> Shape:
        return self._out

    def _forward(self, x: Tensor) -> Tensor:
        return x.reshape([*x.shape[: x.ndim - self.in_rank], *self._out])

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape([*y.shape[: y.ndim - self.out_rank], *self._in])

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return Tensor(np.zeros(x.shape[: x.ndim - self.in_rank], x._value.dtype))

    def _forward_shape(self, shape: Shape) -> Shape:
        return (*self._batch(shape, self._in), *self._out)

    def _inverse_shape(self, shape: Shape) -> Shape:
        return (*self._batch(shape, self._out), *self._in)

    def _batch(self, shape: Shape, event: Shape) -> Shape:
        kept = len(shape) - len(event)
        if kept < 0 or shape[kept:] != event:
            raise ShapeError(
                "the shape does not end as it should",
                where="paddle.distribution.ReshapeTransform",
                received=str(shape),
                allowed=f"(..., {', '.join(map(str, event))})",
            )
        return shape[:kept]


@operation(name="sigmoid_log_det")
def _sigmoid_log_det(x: Array) -> Array:
    return -jax.nn.softplus(-x) - jax.nn.softplus(x)


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x))."""

    _type = Type.BIJECTION

    def _forward(self, x: Tensor) -> Tensor:
        return x.sigmoid()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.logit()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return _sigmoid_log_det(x)


@operation(name="softmax")
def _softmax(x: Array) -> Array:
    return jax.nn.softmax(x, -1)


class SoftmaxTransform(Transform):
    """Softmax over the last axis; the inverse is the logarithm."""

    _type = Type.OTHER
    in_rank = 1
    out_rank = 1

    def _forward(self, x: Tensor) -> Tensor:
        return _softmax(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StackTransform(Transform):
    """The i-th transform for the i-th slice along `axis`."""

    def __init__(self, transforms: Sequence[Transform], axis: int = 0) -> None:
        self._transforms, self._axis = tuple(transforms), axis
        self._type = Type.BIJECTION if all(t.type is Type.BIJECTION for t in transforms) else Type.OTHER

    @property
    def transforms(self) -> tuple[Transform, ...]:
        return self._transforms

    @property
    def axis(self) -> int:
        return self._axis

    def _each(self, x: Tensor, method: str) -> Tensor:
        if x.shape[self._axis] != len(self._transforms):
            raise ShapeError(
                "there is one transform for each slice",
                where="paddle.distribution.StackTransform",
                received=f"shape {x.shape}, axis {self._axis}",
                allowed=f"{len(self._transforms)} slices",
            )
        parts = unstack(x, self._axis)
        return stack(
            [getattr(t, method)(part) for t, part in zip(self._transforms, parts, strict=True)], self._axis
        )

    def _forward(self, x: Tensor) -> Tensor:
        return self._each(x, "forward")

    def _inverse(self, y: Tensor) -> Tensor:
        return self._each(y, "inverse")

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return self._each(x, "forward_log_det_jacobian")


def _shares(x: Array) -> Array:
    """Logits of the share that each break takes of what is left: zeros give equal parts."""
    return x - jnp.log(jnp.arange(x.shape[-1], 0, -1, dtype=x.dtype))


@operation(name="stick_breaking")
def _break(x: Array) -> Array:
    take = jax.nn.sigmoid(_shares(x))
    rest = jnp.cumprod(1 - take, -1)
    ones = jnp.ones_like(rest[..., :1])
    return jnp.concatenate([take, ones], -1) * jnp.concatenate([ones, rest], -1)


@operation(name="stick_breaking_inverse")
def _mend(y: Array) -> Array:
    first = y[..., :-1]
    left = jnp.arange(first.shape[-1], 0, -1, dtype=y.dtype)
    return jnp.log(first) - jnp.log(1 - jnp.cumsum(first, -1)) + jnp.log(left)


@operation(name="stick_breaking_log_det")
def _break_log_det(x: Array) -> Array:
    logits = _shares(x)
    rest = jnp.cumsum(jax.nn.log_sigmoid(-logits), -1)
    before = jnp.concatenate([jnp.zeros_like(rest[..., :1]), rest[..., :-1]], -1)
    return (jax.nn.log_sigmoid(logits) + jax.nn.log_sigmoid(-logits) + before).sum(-1)


class StickBreakingTransform(Transform):
    """From [..., N] numbers to [..., N + 1] positive ones that sum to 1: each takes a share of what is left."""

    _type = Type.BIJECTION
    in_rank = 1
    out_rank = 1

    def _forward(self, x: Tensor) -> Tensor:
        return _break(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return _mend(y)

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return _break_log_det(x)

    def _forward_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] + 1)

    def _inverse_shape(self, shape: Shape) -> Shape:
        return (*shape[:-1], shape[-1] - 1)


@operation(name="tanh_log_det")
def _tanh_log_det(x: Array) -> Array:
    return 2 * (math.log(2) - x - jax.nn.softplus(-2 * x))


class TanhTransform(Transform):
    """y = tanh(x)."""

    _type = Type.BIJECTION

    def _forward(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.atanh()

    def _forward_log_det_jacobian(self, x: Tensor) -> Tensor:
        return _tanh_log_det(x)
