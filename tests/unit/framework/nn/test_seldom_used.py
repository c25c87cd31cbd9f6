"""Layers and functionals that few models use: by hand what the parity with Paddle cannot show, and every error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ShapeError, TraceError, WeightError
from framework.core.rng import rng_scope
from framework.nn import functional as F

RNG = np.random.default_rng(0)
LINE, PLANE, VOLUME = (
    jnp.asarray(RNG.standard_normal(shape), jnp.float32)
    for shape in ((2, 6, 3), (2, 6, 4, 3), (2, 4, 4, 6, 3))
)
ROWS = PLANE[0, 0]  # [4, 3]
LABEL = jnp.asarray([0, 2, 1, 1])
SIGN = jnp.sign(ROWS)

# -- a layer is its functional ----------------------------------------------------------------------------------------

Pair = tuple[Callable[[], nn.Layer], Callable[..., Any], tuple[Any, ...]]
_LAYERS: dict[str, Pair] = {
    "MaxPool3D": (lambda: nn.MaxPool3D(2), lambda x: F.max_pool3d(x, 2), (VOLUME,)),
    "AvgPool3D": (lambda: nn.AvgPool3D(2, 1, 1), lambda x: F.avg_pool3d(x, 2, 1, 1), (VOLUME,)),
    "AdaptiveAvgPool3D": (lambda: nn.AdaptiveAvgPool3D(2), lambda x: F.adaptive_avg_pool3d(x, 2), (VOLUME,)),
    "AdaptiveMaxPool3D": (lambda: nn.AdaptiveMaxPool3D(3), lambda x: F.adaptive_max_pool3d(x, 3), (VOLUME,)),
    "LPPool1D": (lambda: nn.LPPool1D(2.0, 3), lambda x: F.lp_pool1d(x, 2.0, 3), (LINE,)),
    "LPPool2D": (lambda: nn.LPPool2D(2.0, 2), lambda x: F.lp_pool2d(x, 2.0, 2), (PLANE,)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), lambda x: F.local_response_norm(x, 3), (PLANE,)),
    "RReLU": (lambda: nn.RReLU(0.1, 0.3).eval(), lambda x: F.leaky_relu(x, 0.2), (PLANE,)),
    "Softmax2D": (nn.Softmax2D, F.softmax, (PLANE,)),
    "AlphaDropout": (lambda: nn.AlphaDropout(0.9).eval(), lambda x: x, (PLANE,)),
    "FeatureAlphaDropout": (lambda: nn.FeatureAlphaDropout(0.9).eval(), lambda x: x, (PLANE,)),
    "PairwiseDistance": (
        lambda: nn.PairwiseDistance(1.0),
        lambda x, y: F.pairwise_distance(x, y, 1.0),
        (ROWS, SIGN),
    ),
    "Unflatten": (lambda: nn.Unflatten(-2, [2, -1]), lambda x: x.reshape(2, 6, 2, 2, 3), (PLANE,)),
    "HingeEmbeddingLoss": (nn.HingeEmbeddingLoss, F.hinge_embedding_loss, (ROWS, SIGN)),
    "SoftMarginLoss": (nn.SoftMarginLoss, F.soft_margin_loss, (ROWS, SIGN)),
    "MultiLabelSoftMarginLoss": (
        lambda: nn.MultiLabelSoftMarginLoss(jnp.ones(3)),
        F.multi_label_soft_margin_loss,
        (ROWS, SIGN > 0),
    ),
    "MultiLabelMarginLoss": (nn.MultiLabelMarginLoss, F.multi_label_margin_loss, (ROWS, jnp.full((4, 3), 1))),
    "MultiMarginLoss": (
        lambda: nn.MultiMarginLoss(2, 0.5),
        lambda x, y: F.multi_margin_loss(x, y, 2, 0.5),
        (ROWS, LABEL),
    ),
    "GaussianNLLLoss": (
        lambda: nn.GaussianNLLLoss(full=True),
        lambda *a: F.gaussian_nll_loss(*a, full=True),
        (ROWS, SIGN, ROWS**2),
    ),
    "PoissonNLLLoss": (nn.PoissonNLLLoss, F.poisson_nll_loss, (ROWS, ROWS**2)),
    "TripletMarginWithDistanceLoss": (
        lambda: nn.TripletMarginWithDistanceLoss(lambda a, b: jnp.abs(a - b).sum(-1)),
        lambda a, p, n: F.triplet_margin_loss(a, p, n, p=1.0, epsilon=0.0),
        (ROWS, SIGN, 2 * ROWS),
    ),
    "RNNTLoss": (
        lambda: nn.RNNTLoss(blank=2),
        lambda *a: F.rnnt_loss(*a, blank=2),
        (PLANE[:, :, :3], jnp.asarray([[0, 1], [1, 1]]), jnp.asarray([6, 5]), jnp.asarray([2, 1])),
    ),
}


@pytest.mark.parametrize("name", _LAYERS)
def test_a_layer_is_its_functional(name: str) -> None:
    make, function, inputs = _LAYERS[name]
    layer = make()
    assert type(layer).__name__ == name and repr(layer).startswith(name)
    np.testing.assert_allclose(layer(*inputs), function(*inputs), rtol=1e-6)


@pytest.mark.parametrize(
    ("axes", "kind", "mode"),
    [
        (1, "Reflection", "reflect"),
        (2, "Replication", "replicate"),
        (3, "Circular", "circular"),
        (3, "Zero", "constant"),
    ],
)
def test_pads(axes: int, kind: str, mode: str) -> None:
    x = (LINE, PLANE, VOLUME)[axes - 1]
    assert jnp.array_equal(getattr(nn, f"{kind}Pad{axes}D")(1)(x), F.pad(x, 1, mode))
    filled = getattr(nn, f"ConstantPad{axes}D")([2, 0] * axes, 7.0)(x)
    assert filled.shape == (2, *(n + 2 for n in x.shape[1:-1]), 3) and (filled[0, 0] == 7).all()


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_places(axes: int) -> None:
    x = (LINE, PLANE, VOLUME)[axes - 1]
    pooled, places = getattr(nn, f"MaxPool{axes}D")(2, return_mask=True)(x)
    assert jnp.array_equal(pooled, getattr(nn, f"MaxPool{axes}D")(2)(x)) and places.dtype == jnp.int32
    spread = np.asarray(getattr(nn, f"MaxUnPool{axes}D")(2)(pooled, places))
    assert spread.shape == x.shape and (spread == np.where(spread != 0, x, 0)).all()
    assert spread.sum() == pytest.approx(float(pooled.sum()), rel=1e-5)
    pooled, places = getattr(nn, f"AdaptiveMaxPool{axes}D")(2, return_mask=True)(x)
    flat = np.take_along_axis(np.asarray(x).reshape(2, -1, 3), np.asarray(places).reshape(2, -1, 3), 1)
    assert (flat == np.asarray(pooled).reshape(2, -1, 3)).all()


def test_equal_values_give_the_first_place() -> None:
    for pool in (F.max_pool2d, F.adaptive_max_pool2d):
        assert pool(jnp.zeros((1, 4, 4, 1)), 2, return_mask=True)[1][0, :, :, 0].tolist() == [[0, 2], [8, 10]]


def test_conv3d_transpose_is_the_gradient_of_conv3d() -> None:
    layer = nn.Conv3DTranspose(3, 4, [1, 2, 3], stride=[1, 2, 1], padding=[0, 1, 1], bias_attr=False)
    assert layer.weight.shape == (3, 4, 1, 2, 3) and layer.bias is None
    y = layer(VOLUME)
    _, pull = jax.vjp(
        lambda x: F.conv3d(x, layer.weight, stride=[1, 2, 1], padding=[0, 1, 1]), jnp.zeros(y.shape)
    )
    np.testing.assert_allclose(y, pull(VOLUME)[0], atol=1e-5)


# -- randomness -------------------------------------------------------------------------------------------------------


def test_alpha_dropout_keeps_mean_and_variance() -> None:
    x = jax.random.normal(jax.random.key(0), (300, 100))
    y = F.alpha_dropout(x, 0.3, key=jax.random.key(1))
    assert float(y.mean()) == pytest.approx(0, abs=0.02) and float(y.std()) == pytest.approx(1, abs=0.02)
    whole = F.feature_alpha_dropout(jnp.ones((8, 5, 5, 4)), 0.5, key=jax.random.key(2))
    assert (whole == whole[:, :1, :1]).all() and len(np.unique(whole)) == 2
    assert (F.alpha_dropout(x, 1.0) == 0).all() and F.alpha_dropout(x, 0.0) is x
    with rng_scope(jax.random.key(0)):
        assert not jnp.array_equal(nn.AlphaDropout(0.3)(x), x)


def test_rrelu_draws_slopes() -> None:
    y = F.rrelu(-jnp.ones(1000), 0.25, 0.5, key=jax.random.key(0))
    assert float(y.max()) <= -0.25 and float(y.min()) >= -0.5 and float(y.std()) > 0.05
    assert F.rrelu(jnp.ones(3), key=jax.random.key(0)).tolist() == [1, 1, 1]


def test_fractional_regions_are_drawn() -> None:
    layer = nn.FractionalMaxPool2D([4, 3])
    with rng_scope(jax.random.key(0)):
        drawn = {np.asarray(layer(PLANE)).tobytes() for _ in range(8)}
    assert len(drawn) > 1 and layer.extra_repr() == "output_size=[4, 3]"
    fixed = nn.FractionalMaxPool3D(2, random_u=0.5, return_mask=True)(VOLUME)
    assert fixed[0].shape == fixed[1].shape == (2, 2, 2, 2, 3)
    assert jnp.array_equal(F.fractional_max_pool2d(PLANE, [6, 4], random_u=0.4), PLANE)


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_margin_cross_entropy_by_hand() -> None:
    cos = np.array([[0.5, 0.1], [-0.3, 0.9]], np.float32)
    moved = cos.astype(float).copy()
    for row, label in enumerate((0, 1)):
        moved[row, label] = math.cos(1.1 * math.acos(cos[row, label]) + 0.2) - 0.05
    logs = 4 * moved - np.log(np.exp(4 * moved).sum(1, keepdims=True))
    options: dict[str, Any] = dict(margin1=1.1, margin2=0.2, margin3=0.05, scale=4.0)
    loss, soft = F.margin_cross_entropy(
        jnp.asarray(cos), jnp.asarray([[0], [1]]), return_softmax=True, reduction="none", **options
    )
    np.testing.assert_allclose(loss, -np.array([[logs[0, 0]], [logs[1, 1]]]), rtol=1e-5)
    np.testing.assert_allclose(soft, np.exp(logs), rtol=1e-5)
    slope = jax.grad(lambda x: F.margin_cross_entropy(x, jnp.asarray([0])))(jnp.asarray([[1.0, 0.0]]))
    assert np.isfinite(slope).all()


def test_rms_norm_by_hand() -> None:
    x, weight = jnp.asarray([[3.0, 4.0]]), jnp.asarray([2.0, 1.0])
    root = math.sqrt(12.5)
    np.testing.assert_allclose(F.rms_norm(x, 2, weight), [[6 / root, 4 / root]], rtol=1e-6)
    np.testing.assert_allclose(F.rms_norm(x, [1, 2], eps=12.5), x / 5, rtol=1e-6)


def test_adaptive_softmax_is_a_distribution() -> None:
    layer = nn.AdaptiveLogSoftmaxWithLoss(3, 9, [2, 5], div_value=2.0, head_bias=True)
    assert list(layer.state_shapes().values()) == [(3, 4), (4,), (3, 1), (1, 3), (3, 0), (0, 4)]
    layer = nn.AdaptiveLogSoftmaxWithLoss(3, 6, [2, 4], div_value=1.0)
    logs = layer.log_prob(ROWS)
    np.testing.assert_allclose(jnp.exp(logs).sum(1), 1, rtol=1e-5)
    chosen, loss = layer(ROWS, jnp.asarray([0, 3, 5, 2]))
    np.testing.assert_allclose(chosen, logs[jnp.arange(4), jnp.asarray([0, 3, 5, 2])])
    assert float(loss) == pytest.approx(-float(chosen.mean()))
    assert layer.predict(ROWS).tolist() == logs.argmax(1).tolist()


def test_the_variance_is_trained() -> None:
    slope = jax.grad(lambda v: F.gaussian_nll_loss(jnp.ones(1), jnp.zeros(1), v))(jnp.asarray([0.25]))
    assert float(slope[0]) == pytest.approx(0.5 * (1 / 0.25 - 1 / 0.25**2))


def test_bilinear_and_hsigmoid_layers() -> None:
    layer = nn.Bilinear(3, 2, 5)
    assert layer.state_shapes() == {"weight": (5, 3, 2), "bias": (1, 5)} and layer(
        ROWS, ROWS[:, :2]
    ).shape == (4, 5)
    tree = nn.HSigmoidLoss(3, 4)
    assert tree.state_shapes() == {"weight": (3, 3), "bias": (3, 1)}
    tree.weight = jnp.zeros((3, 3))
    np.testing.assert_allclose(tree(ROWS, LABEL), np.full((4, 1), 2 * math.log(2)), rtol=1e-6)
    assert nn.HSigmoidLoss(3, 4, bias_attr=False, is_custom=True).state_shapes() == {"weight": (4, 3)}


def test_parameter_dict() -> None:
    layer = nn.Layer()
    layer.table = nn.ParameterDict(
        {"a": layer.create_parameter((2,)), "training": layer.create_parameter((3,))}
    )
    table = layer.table
    assert list(layer.state_shapes()) == ["table.a", "table.training"]
    assert len(table) == 2 and list(table) == ["a", "training"]
    assert table["training"].shape == (3,) and "a" in list(table)
    table.update([("b", layer.create_parameter((1,)))])
    table["a"] = layer.create_parameter((4,))
    assert layer.state_shapes() == {"table.a": (4,), "table.training": (3,), "table.b": (1,)}
    with pytest.raises(KeyError):
        table["c"]
    with pytest.raises(ShapeError, match=r"(?s)ParameterDict holds parameters.*ArrayImpl"):
        table["c"] = jnp.ones(2)  # type: ignore[assignment]


def test_parameters_as_a_vector() -> None:
    layer = nn.Linear(2, 3)
    nn.utils.vector_to_parameters(jnp.arange(9.0), layer.parameters())
    assert layer.weight.tolist() == [[0, 1, 2], [3, 4, 5]] and layer.bias.tolist() == [6, 7, 8]
    assert nn.utils.parameters_to_vector(layer.parameters()).tolist() == list(range(9))
    with pytest.raises(WeightError, match=r"(?s)received: \(8,\).*allowed: \(9,\)"):
        nn.utils.vector_to_parameters(jnp.arange(8.0), layer.parameters())


def test_empty_batches() -> None:
    assert F.max_pool3d(VOLUME[:0], 2).shape == (0, 2, 2, 3, 3)
    assert F.max_pool2d(PLANE[:0], 2, return_mask=True)[1].shape == (0, 3, 2, 3)
    assert F.max_unpool2d(PLANE[:0], jnp.zeros((0, 6, 4, 3), jnp.int32), 2).shape == (0, 12, 8, 3)
    assert F.pairwise_distance(ROWS[:0], ROWS[:0]).shape == (0,)
    assert F.sequence_mask(jnp.zeros((0,), jnp.int32)).shape == (0, 0)
    assert float(F.multi_margin_loss(ROWS[:0], LABEL[:0], reduction="sum")) == 0
    assert F.local_response_norm(PLANE[:0], 3).shape == (0, 6, 4, 3)
    assert F.temporal_shift(PLANE[:0], 2).shape == (0, 6, 4, 3)


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: F.max_pool3d(PLANE, 2), r"max_pool3d takes \[N, D, H, W, C\]"),
        (lambda: F.max_pool2d(LINE, 2, return_mask=True), r"max_pool2d takes \[N, H, W, C\]"),
        (lambda: F.max_pool3d(VOLUME, [2, 2]), "kernel_size takes one number, or one for each axis"),
        (lambda: F.max_pool3d(VOLUME, 2, padding="full"), "unknown padding"),
        (lambda: F.max_pool3d(VOLUME, 2, padding=[1, 2]), "padding does not fit the spatial axes"),
        (lambda: F.avg_pool3d(VOLUME, 9), "the pooling window is larger"),
        (lambda: F.avg_pool2d(PLANE, 2, divisor_override=0), "divisor_override is positive"),
        (lambda: F.adaptive_max_pool3d(VOLUME, [2, 0, 2]), "adaptive_max_pool3d: output_size"),
        (lambda: F.adaptive_avg_pool3d(VOLUME, [2, 2]), "adaptive_avg_pool3d: output_size"),
        (lambda: F.lp_pool2d(PLANE, 0.0, 2), "lp_pool2d: norm_type is positive"),
        (lambda: F.fractional_max_pool2d(PLANE, 5, random_u=0.5), "there are more regions than pixels"),
        (lambda: F.fractional_max_pool2d(PLANE, 2, random_u=1.0), "random_u is a share"),
        (lambda: F.max_unpool2d(PLANE, jnp.zeros(3, int), 2), "max_unpool2d: one place for each value"),
        (
            lambda: F.max_unpool2d(PLANE, PLANE.astype(int), 2, output_size=[2, 2]),
            "output_size is not one that pools",
        ),
        (
            lambda: F.conv3d_transpose(PLANE, jnp.ones((3, 2, 1, 1, 1))),
            "conv3d_transpose: input, weight and groups",
        ),
        (
            lambda: F.conv3d_transpose(VOLUME, jnp.ones((3, 2, 1, 1, 1)), padding="SAME"),
            "conv3d_transpose: unknown padding",
        ),
        (lambda: F.hinge_embedding_loss(ROWS, LABEL), "hinge_embedding_loss: the arrays have one shape"),
        (lambda: F.multi_margin_loss(ROWS, LABEL, reduction="max"), "unknown reduction"),
        (lambda: F.multi_margin_loss(ROWS, LABEL[:2]), "multi_margin_loss: labels do not fit the scores"),
        (lambda: F.multi_label_margin_loss(ROWS, LABEL), "multi_label_margin_loss: labels do not fit"),
        (lambda: F.margin_cross_entropy(ROWS, ROWS), "margin_cross_entropy: labels do not fit"),
        (lambda: F.npair_loss(ROWS, ROWS, LABEL[:2]), "npair_loss: one label for each pair"),
        (lambda: F.triplet_margin_with_distance_loss(ROWS, ROWS, ROWS, margin=-1), "the margin is negative"),
        (
            lambda: F.gaussian_nll_loss(ROWS, ROWS, jnp.ones((3, 2))),
            "gaussian_nll_loss: the variance does not fit",
        ),
        (lambda: F.poisson_nll_loss(ROWS, ROWS, epsilon=0), "poisson_nll_loss: epsilon is positive"),
        (lambda: F.hsigmoid_loss(ROWS, LABEL, 4, jnp.ones((3, 2))), "hsigmoid_loss: input, label and weight"),
        (lambda: F.hsigmoid_loss(ROWS, LABEL, 4, jnp.ones((3, 3)), path_code=ROWS), "has paths and turns"),
        (lambda: nn.HSigmoidLoss(3, 1), "two classes or more"),
        (lambda: nn.HSigmoidLoss(3, 4, is_custom=True)(ROWS, LABEL), "needs the paths of the labels"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(3, 6, [4, 2]), "cutoffs are classes in rising order"),
        (
            lambda: F.adaptive_log_softmax_with_loss(ROWS, LABEL, ROWS, [], [1, 3]),
            "input, label and clusters",
        ),
        (
            lambda: F.adaptive_log_softmax_with_loss(ROWS, LABEL, jnp.ones((3, 2)), [], [3]),
            "the head does not fit",
        ),
        (
            lambda: F.rnnt_loss(PLANE, LABEL, LABEL, LABEL),
            "rnnt_loss: logits, labels and lengths do not agree",
        ),
        (lambda: F.bilinear(ROWS, ROWS, jnp.ones((2, 3, 2))), "bilinear: inputs and weight do not agree"),
        (lambda: F.alpha_dropout(ROWS, 1.5), "alpha_dropout: p is a probability"),
        (lambda: F.rrelu(ROWS, 0.5, 0.25), "rrelu: the slopes are out of order"),
        (lambda: F.swiglu(ROWS), "swiglu: the last axis has two halves"),
        (lambda: F.rms_norm(ROWS, 4), "rms_norm: the trailing axes and the weight"),
        (lambda: F.local_response_norm(ROWS, 3), "local_response_norm takes images"),
        (lambda: F.temporal_shift(PLANE, 3), "temporal_shift: the frames divide into videos"),
        (lambda: F.gather_tree(LABEL, LABEL), "gather_tree: ids and parents have one shape"),
        (lambda: nn.Softmax2D()(ROWS), "Softmax2D takes images"),
        (lambda: nn.MaxPool3D(2, data_format="NCDHW"), "channels-last"),
        (lambda: F.zeropad2d(PLANE, 1, data_format="NCHW"), "channels-last"),
    ],
)
def test_errors(run: Callable[[], object], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        run()


def test_the_longest_sequence_under_a_trace() -> None:
    with pytest.raises(TraceError, match=r"sequence_mask\(lengths, maxlen=…\)"):
        jax.jit(F.sequence_mask)(LABEL)
    assert jax.jit(lambda x: F.sequence_mask(x, 3, "bool"))(LABEL).dtype == bool
