"""TransformedDistribution: what becomes of a distribution's draws under transforms."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Distribution, Sizes, refused
from framework.paddle.distribution.independent import Independent, sum_last
from framework.paddle.distribution.transform import ChainTransform, Transform


class TransformedDistribution(Distribution):
    """Draws from `base`, put through `transforms` one after another.

    Raises:
        ShapeError: the draws have fewer axes than a transform takes.
    """

    def __init__(self, base: Distribution, transforms: Sequence[Transform]) -> None:
        if not isinstance(base, Distribution):
            raise refused("the base of TransformedDistribution", "distributions", base)
        if not isinstance(transforms, list | tuple) or not all(isinstance(t, Transform) for t in transforms):
            raise refused("transforms of TransformedDistribution", "lists of transforms", transforms)
        self._transforms = list(transforms)
        self._chain = chain = ChainTransform(self._transforms)
        drawn = (*base.batch_shape, *base.event_shape)
        if len(drawn) < chain.in_rank:
            raise ShapeError(
                "the draws have fewer axes than the transforms take",
                where="paddle.distribution.TransformedDistribution",
                received=f"batch_shape {base.batch_shape}, event_shape {base.event_shape}",
                allowed=f"at least {chain.in_rank} axes",
            )
        missing = chain.in_rank - len(base.event_shape)
        self._base = Independent(base, missing) if missing > 0 else base
        shape = chain.forward_shape(drawn)
        rank = chain.out_rank + max(len(base.event_shape) - chain.in_rank, 0)
        super().__init__(shape[: len(shape) - rank], shape[len(shape) - rank :])

    def sample(self, shape: Sizes = ()) -> Tensor:
        return self._chain.forward(self._base.sample(shape)).detach()

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return self._chain.forward(self._base.rsample(shape))

    def log_prob(self, value: TensorLike) -> Tensor:
        """By the change of variables, back through the transforms."""
        y = value if isinstance(value, Tensor) else Tensor(value)
        rank, total = len(self.event_shape), None
        for transform in reversed(self._transforms):
            x = transform.inverse(y)
            rank += transform.in_rank - transform.out_rank
            part = sum_last(transform.forward_log_det_jacobian(x), rank - transform.in_rank)
            total = part if total is None else total + part
            y = x
        found = sum_last(self._base.log_prob(y), rank - len(self._base.event_shape))
        return found if total is None else found - total


Transform._transformed = TransformedDistribution
