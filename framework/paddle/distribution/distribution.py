"""Distribution, the base of all, and what their parameters have in common."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.dtypes import default_numpy
from framework.paddle._kernel.errors import ArgumentTypeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.creation import integers_of
from framework.paddle.ops.shaping import broadcast_tensors
from framework.paddle.ops.unary import exp

Sizes = Any  # a shape: integers, a list of them, a Tensor


class Distribution:
    """A distribution over Tensors.

    Attributes:
        batch_shape: of independent distributions side by side.
        event_shape: of one draw from one of them.
    """

    def __init__(self, batch_shape: Sizes = (), event_shape: Sizes = ()) -> None:
        self._batch_shape, self._event_shape = integers_of(batch_shape), integers_of(event_shape)

    @property
    def batch_shape(self) -> tuple[int, ...]:
        return self._batch_shape

    @property
    def event_shape(self) -> tuple[int, ...]:
        return self._event_shape

    @property
    def mean(self) -> Tensor:
        """The mean, of batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no mean here")

    @property
    def variance(self) -> Tensor:
        """The variance, of batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no variance here")

    def sample(self, shape: Sizes = ()) -> Tensor:
        """Draws of shape + batch_shape + event_shape, without gradient."""
        return self.rsample(shape).detach()

    def rsample(self, shape: Sizes = ()) -> Tensor:
        """Draws that pass gradients to the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no draws that can be differentiated")

    def entropy(self) -> Tensor:
        """The entropy in nats, of batch_shape."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy here")

    def log_prob(self, value: TensorLike) -> Tensor:
        """The logarithm of the density or probability of `value`."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def prob(self, value: TensorLike) -> Tensor:
        """The density or probability of `value`."""
        return exp(self.log_prob(value))

    def probs(self, value: TensorLike) -> Tensor:
        """`prob` by its old name."""
        return self.prob(value)

    def kl_divergence(self, other: Distribution) -> Tensor:
        """The Kullback-Leibler divergence from this distribution to `other`, in nats."""
        return kl_divergence(self, other)

    def _extend_shape(self, sample_shape: Sizes) -> tuple[int, ...]:
        if not isinstance(sample_shape, list | tuple | np.ndarray | Tensor):
            raise refused(f"{type(self).__name__}.sample: `shape`", "lists, tuples, arrays", sample_shape)
        sizes = sample_shape.tolist() if isinstance(sample_shape, np.ndarray) else sample_shape
        return (*integers_of(sizes), *self._batch_shape, *self._event_shape)


def drawn_shape(shape: tuple[int, ...], *parameters: jax.Array) -> tuple[int, ...]:
    """The shape of draws, in which sizes that a static program does not know (-1) are those of the parameters."""
    batch = jnp.broadcast_shapes(*[parameter.shape for parameter in parameters])
    return (*shape[: len(shape) - len(batch)], *batch) if -1 in shape else shape


def parameters(*values: Any) -> list[Tensor]:
    """Parameters as floating-point Tensors: numbers and lists take the default type, Tensors and arrays keep theirs."""
    return [_parameter(value) for value in values]


def scalar_parameters(name: str, *values: object) -> list[Tensor]:
    """`parameters` of a distribution that takes no lists and arrays, as some of Paddle's.

    Raises:
        ArgumentTypeError: a value is no real number and no Tensor.
    """
    for value in values:
        if not isinstance(value, numbers.Real | Tensor):
            raise refused(f"a parameter of {name}", "real numbers and Tensors", value)
    return parameters(*values)


def cast_value(value: TensorLike, parameter: Tensor) -> TensorLike:
    """A value whose probability is asked, in the type of the distribution's parameter; a warning says if it had not
    got it, as in Paddle."""
    if not isinstance(value, Tensor) or value.dtype == parameter.dtype:
        return value
    if value.dtype.name not in ("float32", "float64"):
        return value
    warnings.warn(
        "dtype of input 'value' needs to be the same as parameters of distribution class. dtype of 'value' will be "
        "converted.",
        stacklevel=3,
    )
    return value.astype(parameter.dtype)


def check_value(name: str, value: object, number: type = Tensor) -> None:
    """That a value whose probability is asked is a Tensor, or a number of the class `number`.

    Raises:
        ArgumentTypeError: it is not.
    """
    if not isinstance(value, Tensor | number):
        raise refused(f"the value given to {name}", "Tensors", value)


def check_same(p: Distribution, q: object) -> None:
    """That the divergence from `p` is asked to a distribution of its class.

    Raises:
        ArgumentTypeError: it is not.
    """
    if not isinstance(q, type(p)):
        name = type(p).__name__
        raise refused(f"{name}.kl_divergence: `other`", name, q)


def refused(what: str, allowed: str, received: object) -> ArgumentTypeError:
    """The error of an argument of a class that it is not taken of."""
    return ArgumentTypeError(
        f"{what} is of a class that it is not taken of",
        received=f"{type(received).__name__} {received!r:.60}",
        allowed=allowed,
    )


def _parameter(value: TensorLike) -> Tensor:
    tensor = value if isinstance(value, Tensor) else Tensor(value)
    return tensor if tensor._value.dtype.kind not in "iub" else tensor.astype(default_numpy())


def aligned(*tensors: Tensor) -> Sequence[Tensor]:
    """The Tensors in the shape that they have together."""
    first = tensors[0].shape
    return tensors if all(t.shape == first for t in tensors) else broadcast_tensors(list(tensors))


Rule = TypeVar("Rule", bound=Callable[..., Any])
# (class of p, class of q) -> the divergence from p to q; kl.py fills it.
KL_RULES: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {}


def register_kl(cls_p: type[Distribution], cls_q: type[Distribution]) -> Callable[[Rule], Rule]:
    """A decorator: `f(p, q)` is the divergence from distributions of `cls_p` to those of `cls_q`."""
    for kind in (cls_p, cls_q):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"register_kl takes subclasses of Distribution, not {kind!r}")

    def register(rule: Rule) -> Rule:
        KL_RULES[cls_p, cls_q] = rule
        return rule

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence from p to q, in nats, of batch_shape.

    Raises:
        NotImplementedError: no rule is registered for these classes or their bases.
    """
    for left in type(p).__mro__:
        for right in type(q).__mro__:
            if (left, right) in KL_RULES:
                return KL_RULES[left, right](p, q)
    raise no_kl_rule(p, q)


def no_kl_rule(p: Distribution, q: Distribution) -> NotImplementedError:
    """The error for two distributions without a rule."""
    return NotImplementedError(
        f"no Kullback-Leibler divergence from {type(p).__name__} to {type(q).__name__}: register one with "
        "paddle.distribution.register_kl"
    )
