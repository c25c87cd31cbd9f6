"""Independent: batch axes of a distribution as axes of its events."""

from __future__ import annotations

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distribution.distribution import Distribution, Sizes, refused


class Independent(Distribution):
    """`base` with its last `reinterpreted_batch_rank` batch axes taken as axes of one event.

    Raises:
        ShapeError: there are fewer batch axes.
    """

    def __init__(self, base: Distribution, reinterpreted_batch_rank: int) -> None:
        if not isinstance(base, Distribution):
            raise refused("the base of Independent", "distributions", base)
        rank, batch = reinterpreted_batch_rank, base.batch_shape
        if not 0 < rank <= len(batch):
            raise ShapeError(
                "the distribution has fewer batch axes",
                where="paddle.distribution.Independent",
                received=f"reinterpreted_batch_rank {rank}, batch_shape {batch}",
                allowed=f"1 to {len(batch)}",
            )
        self._base, self._rank = base, rank
        kept = len(batch) - rank
        super().__init__(batch[:kept], (*batch[kept:], *base.event_shape))

    @property
    def mean(self) -> Tensor:
        return self._base.mean

    @property
    def variance(self) -> Tensor:
        return self._base.variance

    def sample(self, shape: Sizes = ()) -> Tensor:
        return self._base.sample(shape)

    def rsample(self, shape: Sizes = ()) -> Tensor:
        return self._base.rsample(shape)

    def log_prob(self, value: TensorLike) -> Tensor:
        return sum_last(self._base.log_prob(value), self._rank)

    def entropy(self) -> Tensor:
        return sum_last(self._base.entropy(), self._rank)


def sum_last(x: Tensor, count: int) -> Tensor:
    """The sum over the last `count` axes."""
    return x.sum(list(range(-count, 0))) if count else x
