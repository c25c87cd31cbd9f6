"""What Paddle 2.6.2 refuses before it computes, by its kinds of error: each row was run on it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from framework import paddle
from framework.paddle.nn import functional as F


def t(*shape: int, d: str = "float32") -> paddle.Tensor:
    return paddle.ones(list(shape), d)


ROWS: tuple[tuple[type[Exception], tuple[Callable[[], object], ...]], ...] = (
    (
        ValueError,
        (
            lambda: F.adaptive_avg_pool2d(t(1, 2, 4, 4), 2, "NCL"),
            lambda: F.adaptive_avg_pool3d(t(1, 2, 4, 4, 4), 2, "NCL"),
            lambda: t(1, 3).add_(t(2, 3)),
            lambda: F.softmax_with_cross_entropy(t(), t(1, d="int64")),
            lambda: t(1, 2, d="int32").bitwise_and_(t(2, 2, d="int32")),
            lambda: paddle.broadcast_tensors([]),
            lambda: paddle.broadcast_tensors([t(2), t(2, d="int32")]),
            lambda: F.channel_shuffle(t(1, 4, 2, 2), 0),
            lambda: F.channel_shuffle(t(4, 2, 2), 2),
            lambda: F.conv1d_transpose(t(1, 2, 4), t(2, 2, 3), groups=0),
            lambda: F.conv1d_transpose(t(1, 2, 4), t(2, 2, 3), output_padding=2, stride=1),
            lambda: F.conv2d_transpose(t(1, 2, 4, 4), t(2, 2, 3, 3), groups=0),
            lambda: F.cosine_embedding_loss(t(2, 3, d="int32"), t(2, 3, d="int32"), t(2)),
            lambda: F.cosine_embedding_loss(t(2, 3), t(2, 3), t(2, d="float16")),
            lambda: paddle.linalg.cov(t(2, 3), fweights=t(2, d="int32")),
            lambda: paddle.linalg.cov(t(2, 3), aweights=t(3, 3)),
            lambda: paddle.crop(t(3, 3), [0, 1]),
            lambda: paddle.crop(t(3, 3), [-2, 1]),
            lambda: F.cross_entropy(t(2, 3), t(2, 3), soft_label=True, ignore_index=1),
            lambda: F.cross_entropy(t(), t(1, d="int64")),
            lambda: F.ctc_loss(t(3, 1, 4), t(1, 2, d="int32"), None, None),
            lambda: paddle.diag_embed(t(2, 2), dim1=0, dim2=0),
            lambda: paddle.diff(t(3), n=0),
            lambda: t(1, 2).divide_(t(2, 2)),
            lambda: F.dropout(t(2), axis=5),
            lambda: F.dropout(t(2), axis=[0, 1]),
            lambda: t(1, 2).equal_(t(2, 2)),
            lambda: t(1, 2).floor_divide_(t(2, 2)),
            lambda: F.gaussian_nll_loss(t(2, 3, d="int32"), t(2, 3), t(2, 3)),
            lambda: F.gaussian_nll_loss(t(2, 3), t(2, 3, d="int32"), t(2, 3)),
            lambda: F.gaussian_nll_loss(t(2, 3), t(2, 3), t(2, 3, d="int32")),
            lambda: F.glu(t(2, 4), 5),
            lambda: F.grid_sample(t(1, 1, 2, 2), t(1, 2, 2, 2), align_corners=1),
            lambda: F.interpolate(t(1, 1, 2, 2), size=[4]),
            lambda: F.label_smooth(t(2, 2), epsilon=2),
            lambda: t(1, 2).lerp_(t(2, 2), 0.5),
            lambda: t(1, 2, d="bool").logical_and_(t(2, 2, d="bool")),
            lambda: paddle.linalg.lstsq(t(2, 2), t(2, 2, d="float64")),
            lambda: F.max_pool2d(t(1, 2, 4, 4), 2, padding="VALID", ceil_mode=True),
            lambda: F.max_pool1d(t(1, 2, 4), 2, padding="VALID", ceil_mode=True),
            lambda: F.avg_pool3d(t(1, 2, 4, 4, 4), 2, padding="valid", ceil_mode=True),
            lambda: paddle.nanmedian(t(2), axis=[]),
            lambda: paddle.moveaxis(t(2, 3), [0, 1], [0, 0]),
            lambda: paddle.linalg.multi_dot([t(2, 2), t(2, 2, d="float64")]),
            lambda: F.multi_margin_loss(t(2, 2), t(2, d="int64"), weight=t(3)),
            lambda: paddle.multiplex([t(2, 2)], t(2, 1, d="int32")),
            lambda: paddle.norm(t(2, 2), p=0, axis=[0, 1]),
            lambda: F.npair_loss(t(0, 2), t(0, 2), t(0)),
            lambda: paddle.linalg.pca_lowrank([1, 2]),
            lambda: paddle.scatter_nd_add(t(2), t(2, 1, d="int64"), t(2, d="float64")),
            lambda: paddle.slice(t(2), 0, [0], [1]),
            lambda: paddle.slice(t(2), [], [], []),
            lambda: paddle.tile(t(2), [-1]),
            lambda: paddle.tile(t(2), 0),
            lambda: F.triplet_margin_loss(t(2, 2), t(2, 2), t(2, 2), margin=-1),
            lambda: F.triplet_margin_with_distance_loss(t(2, 2), t(2, 2), t(2, 2), reduction="x"),
            lambda: paddle.vander(t(2), -1),
            lambda: paddle.vander(t(2, 2)),
            lambda: paddle.cummax(t(2), dtype="float32"),
            lambda: paddle.masked_select(t(2), t(2)),
            lambda: paddle.masked_select(t(2), [True, False]),
            lambda: paddle.histogram(t(2), 0),
            lambda: paddle.add_n(3),
            lambda: paddle.increment(t(2)),
            lambda: paddle.nn.CosineEmbeddingLoss(margin=2),
            lambda: paddle.nn.PoissonNLLLoss(epsilon=0),
            lambda: paddle.nn.PixelShuffle(2, "x"),
            lambda: paddle.nn.PixelUnshuffle(-1),
            lambda: paddle.nn.ChannelShuffle(-1),
            lambda: paddle.optimizer.SGD(learning_rate=None, parameters=[]),
            lambda: paddle.optimizer.Adadelta(epsilon=None),
            lambda: paddle.optimizer.Adadelta(rho=None),
            lambda: paddle.optimizer.RMSProp(0.1, rho=None),
        ),
    ),
    (
        TypeError,
        (
            lambda: paddle.bincount(t(2)),
            lambda: paddle.combinations(t(2, 2)),
            lambda: F.dropout(t(2), p="a"),  # type: ignore[arg-type]
            lambda: paddle.equal(t(2), "a"),
            lambda: t(2).fill_("a"),
            lambda: paddle.frexp(t(2, d="int32")),
            lambda: paddle.hypot([1], t(2)),
            lambda: paddle.hypot(t(2), [1]),
            lambda: F.interpolate(t(1, 1, 2, 2), size=[4, 4], align_corners=3, mode="bilinear"),  # type: ignore[arg-type]
            lambda: F.interpolate(t(1, 1, 2, 2), size=4),
            lambda: F.interpolate(t(1, 1, 2, 2), size="aa"),  # type: ignore[arg-type]
            lambda: paddle.ldexp([1], t(2)),
            lambda: paddle.ldexp(t(2), [1]),
            lambda: paddle.median([1, 2]),
            lambda: paddle.nanmedian([1, 2]),
            lambda: paddle.quantile([1], 0.5),
            lambda: F.rrelu(t(2), 1, 2),
            lambda: paddle.sgn(t(2, d="int32")),
            lambda: paddle.take(t(2), t(2)),
            lambda: paddle.take(t(2), 1),
            lambda: paddle.to_tensor("a"),
            lambda: paddle.to_tensor(object()),
            lambda: paddle.nn.PixelShuffle("a"),
            lambda: paddle.nn.PixelUnshuffle("a"),
            lambda: paddle.nn.ChannelShuffle("a"),
            lambda: paddle.nn.RReLU(1, 2)(t(2)),
            lambda: paddle.optimizer.lr.MultiStepDecay(0.1, 3),
            lambda: paddle.optimizer.lr.CosineAnnealingDecay(0.1, 10, "a"),
            lambda: paddle.set_default_dtype("int32"),
            lambda: paddle.distribution.Normal("a", 1),
            lambda: paddle.distribution.Uniform(0, "a"),
            lambda: paddle.distribution.TransformedDistribution(3, []),
            lambda: paddle.distribution.Independent(3, 1),
        ),
    ),
    (
        AssertionError,
        (
            lambda: paddle.cdist(t(2), t(2, 2)),
            lambda: paddle.cdist(t(2, 2), t(2, 3)),
            lambda: paddle.cdist(t(2, 2), t(2, 2), p=-1),
            lambda: F.ctc_loss(
                t(3, 1, 4), t(1, 2, d="int32"), t(1, d="int64"), t(1, d="int64"), reduction="x"
            ),
            lambda: F.dice_loss(t(2, 3), t(2, 2, d="int64")),
            lambda: F.dice_loss(t(2, 3), t(2, 1)),
            lambda: F.dice_loss(t(2, 3), t(3, 1, d="int64")),
            lambda: F.dice_loss(t(2), t(2, d="int64")),
            lambda: F.dice_loss(t(0, 3), t(0, 1, d="int64")),
            lambda: F.fold(t(1, 4, 4), [2, 2, 2], 2),
            lambda: F.fold(t(2, 1, 4, 4), [3, 3], 2),
            lambda: paddle.linalg.householder_product(t(2), t(2)),
            lambda: paddle.linalg.householder_product(t(2, 3), t(2)),
            lambda: paddle.linalg.householder_product(t(3, 2), t(3)),
            lambda: paddle.moveaxis(t(2, 3), [0], [0, 1]),
            lambda: paddle.moveaxis(t(2, 3), [5], [0]),
            lambda: paddle.multigammaln(t(2), 0),
            lambda: F.pad(t(2, 2), [1, 1], mode="x"),
            lambda: F.pad(t(1, 1, 2, 2), [1, 1, 1, 1], mode="x"),
            lambda: F.prelu(t(2, 3), t(2)),
            lambda: F.prelu(t(2, 3), t(1, 1)),
            lambda: paddle.tensordot(t(2, 2), t(2, 2), -1),
            lambda: F.unfold(t(1, 1, 4, 4), [2, 2, 2]),
            lambda: F.unfold(t(1, 4, 4), 2),
            lambda: paddle.nn.MultiHeadAttention(5, 2),
            lambda: paddle.nn.MultiHeadAttention(0, 2),
            lambda: paddle.nn.Softmax2D()(t(2, 2)),
            lambda: paddle.optimizer.Adam(epsilon=None, parameters=[]),
            lambda: paddle.optimizer.Adamax(beta1=None, parameters=[]),
            lambda: paddle.optimizer.Lamb(beta1=None, parameters=[]),
            lambda: paddle.optimizer.lr.CosineAnnealingDecay(0.1, 0),
            lambda: paddle.optimizer.lr.PolynomialDecay(0.1, 0),
            lambda: paddle.optimizer.lr.PolynomialDecay(0.1, 3, power=-1.0),
            lambda: float(t(2)),
            lambda: int(t(2)),
            lambda: bool(t(2)),
            lambda: t(2).set_value(t(3)),
        ),
    ),
    (
        ZeroDivisionError,
        (lambda: F.celu(t(2), 0),),
    ),
    (
        IndexError,
        (
            lambda: paddle.diag_embed(t(2, 2), dim1=9),
            lambda: paddle.diagonal(t(2)),
            lambda: paddle.diagonal(t(2, 2), axis1=4),
            lambda: paddle.trace(t(2)),
            lambda: paddle.trace(t(2, 2), axis1=5),
            lambda: paddle.cumsum(t(2), axis=5),
            lambda: paddle.logcumsumexp(t(2), axis=5),
            lambda: paddle.cummax(t(2), axis=5),
            lambda: paddle.cross(t(3, 3), t(3, 3), axis=5),
        ),
    ),
)


@pytest.mark.parametrize(("kind", "calls"), ROWS, ids=[kind.__name__ for kind, _ in ROWS])
def test_refused_by_paddles_kind_of_error(
    kind: type[Exception], calls: tuple[Callable[[], object], ...]
) -> None:
    wrong = []
    for number, call in enumerate(calls):
        try:
            call()
        except kind:
            continue
        except Exception as error:
            wrong.append(f"row {number}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"row {number}: nothing raised")
    assert not wrong, wrong
