from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import Kind, bind
from framework.core.errors import ConfigError, ShapeError
from segmentation import losses
from segmentation.contracts import Loss
from segmentation.losses import CrossEntropy, Dice, Focal, LovaszSoftmax, Mixed, OhemCrossEntropy
from segmentation.metrics import MeanIoU

LOSS = Annotated[Loss, Kind("loss")]
EVERY = [
    CrossEntropy(),
    CrossEntropy(weight=(1.0, 2.0), hardest=0.5),
    OhemCrossEntropy(min_kept=2),
    Focal(gamma=0.5),
    Dice(),
    LovaszSoftmax(),
    Mixed((CrossEntropy(), Dice()), (1.0, 0.5)),
]


def pixels(*scores: float, labels: list[int]) -> tuple[jax.Array, jax.Array]:
    """One row of pixels of two classes; a score is the probability of class 1."""
    logits = np.log(np.array([[1 - p, p] for p in scores], np.float32))
    return jnp.asarray(logits)[None, None], jnp.asarray(labels, jnp.int32)[None, None]


def test_cross_entropy_is_the_mean_of_the_valid_pixels() -> None:
    given = pixels(0.5, 0.25, 0.9, labels=[0, 1, 255])
    assert float(CrossEntropy()(*given)) == pytest.approx((math.log(2) + math.log(4)) / 2)


def test_weights_of_classes_also_divide() -> None:
    given = pixels(0.5, 0.25, 0.9, labels=[0, 1, 255])
    want = (1 * math.log(2) + 3 * math.log(4)) / 4
    assert float(CrossEntropy(weight=(1.0, 3.0))(*given)) == pytest.approx(want)


def test_the_hardest_share_is_of_all_pixels() -> None:
    given = pixels(0.5, 0.25, 0.9, 0.1, labels=[1, 1, 1, 1])
    want = (math.log(4) + math.log(10)) / 2
    assert float(CrossEntropy(hardest=0.5)(*given)) == pytest.approx(want)


def test_equal_costs_share_the_places_among_the_hardest() -> None:
    given = pixels(0.5, 0.5, 0.5, 0.9, labels=[1, 1, 1, 1])
    gradient = jax.grad(CrossEntropy(hardest=0.5))(*given)
    np.testing.assert_allclose(gradient[0, 0, :, 1], [-0.5 / 3] * 3 + [0], atol=1e-6)


def test_ohem_takes_the_pixels_below_the_threshold() -> None:
    given = pixels(0.6, 0.8, 0.2, 0.1, 0.9, labels=[1, 1, 1, 255, 1])
    want = (-math.log(0.6) - math.log(0.2)) / (2 + 1e-5 * 5)
    assert float(OhemCrossEntropy(thresh=0.7, min_kept=2)(*given)) == pytest.approx(want)


def test_ohem_raises_the_threshold_to_keep_enough() -> None:
    given = pixels(0.95, 0.8, 0.85, 0.9, 0.99, labels=[1, 1, 1, 1, 1])
    # The third hardest has 0.9, and what is strictly harder counts.
    want = (-math.log(0.8) - math.log(0.85)) / (2 + 1e-5 * 5)
    assert float(OhemCrossEntropy(thresh=0.7, min_kept=3)(*given)) == pytest.approx(want)


def test_ohem_takes_a_batch_with_few_valid_pixels_whole() -> None:
    given = pixels(0.95, 0.2, 0.85, 0.9, labels=[1, 1, 255, 255])
    want = (-math.log(0.95) - math.log(0.2)) / (2 + 1e-5 * 4)
    assert float(OhemCrossEntropy(thresh=0.7, min_kept=2)(*given)) == pytest.approx(want)


def test_focal_forgives_what_is_nearly_right() -> None:
    given = pixels(0.5, 0.9, labels=[1, 1])
    want = 0.25 * (0.5**2 * math.log(2) - 0.1**2 * math.log(0.9)) / 2
    assert float(Focal(alpha=0.25, gamma=2.0)(*given)) == pytest.approx(want)


def test_dice_of_two_pixels() -> None:
    given = pixels(0.5, 0.25, 0.9, labels=[0, 1, 255])
    first = 1 - (2 * 0.5 + 1) / (0.5 + 0.75 + 1 + 1)
    second = 1 - (2 * 0.25 + 1) / (0.5 + 0.25 + 1 + 1)
    assert float(Dice()(*given)) == pytest.approx((first + second) / 2)
    assert float(Dice(weight=(1.0, 0.0))(*given)) == pytest.approx(first / 2)


def test_lovasz_of_a_sure_answer_is_one_minus_iou() -> None:
    logits = 60 * jax.nn.one_hot(jnp.array([[[0, 0, 1, 1]]]), 3)
    labels = jnp.array([[[0, 1, 1, 255]]], jnp.int32)
    # Class 0: 1 of 2, class 1: 1 of 2; class 2 has no label.
    assert float(LovaszSoftmax()(logits, labels)) == pytest.approx(0.5)


def test_lovasz_of_one_pixel_is_its_error() -> None:
    assert float(LovaszSoftmax()(*pixels(0.25, labels=[1]))) == pytest.approx(0.75)


def test_mixed_adds_by_weight() -> None:
    given = pixels(0.5, 0.25, labels=[0, 1])
    want = 2 * CrossEntropy()(*given) + 0.5 * Dice()(*given)
    assert float(Mixed((CrossEntropy(), Dice()), (2.0, 0.5))(*given)) == pytest.approx(float(want))


@pytest.mark.parametrize("loss", EVERY, ids=lambda loss: type(loss).__name__)
def test_values_and_gradients_are_finite(loss: Any) -> None:
    run = jax.jit(jax.value_and_grad(loss))
    for labels in ([255, 255, 255], [1, 255, 1], [0, 1, 0]):
        for scale in (0.0, 1.0, 1e4):
            logits = scale * jnp.array([[[[1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]]]])
            value, gradient = run(logits, jnp.array([[labels]], jnp.int32))
            assert np.isfinite(value) and np.isfinite(gradient).all()
            if labels == [255] * 3:
                assert not gradient.any() and float(value) == pytest.approx(0, abs=1e-6)


def test_an_ignored_pixel_has_no_gradient() -> None:
    given = pixels(0.5, 0.25, 0.9, labels=[0, 1, 7])
    for loss in (
        CrossEntropy(7),
        OhemCrossEntropy(ignore_index=7),
        Focal(ignore_index=7),
        Dice(7),
        LovaszSoftmax(7),
    ):
        gradient = jax.jit(jax.grad(loss))(*given)
        assert not gradient[0, 0, 2].any() and gradient[0, 0, :2].any()


def test_low_precision_logits_are_widened() -> None:
    logits, labels = pixels(0.5, 0.25, labels=[0, 1])
    assert CrossEntropy()(logits.astype(jnp.bfloat16), labels).dtype == jnp.float32


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_the_kth_largest(k: int) -> None:
    values = jnp.array([[0.0, -0.0, 3.5, 1e-30], [2.0, 2.0, 1e30, 0.5]])
    assert float(losses._kth_largest(values, k)) == np.sort(np.abs(values).ravel())[-k]


def test_arrays_that_do_not_fit() -> None:
    logits, labels = pixels(0.5, 0.25, labels=[0, 1])
    for wrong in (labels[..., :1], labels.astype(jnp.float32)):
        with pytest.raises(ShapeError) as caught:
            CrossEntropy()(logits, wrong)
        assert "the loss does not take these" in str(caught.value) and "[1, 1, 2, 2]" in str(caught.value)
    with pytest.raises(ShapeError):
        Dice()((logits, logits), labels)


@pytest.mark.parametrize("loss", [CrossEntropy(weight=(1.0,) * 3), Dice(weight=(1.0,) * 3)])
def test_weights_that_do_not_fit_the_classes(loss: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        loss(*pixels(0.5, labels=[0]))
    assert "3 weights" in str(caught.value) and "each of the 2 classes" in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CrossEntropy(hardest=0.0),
        lambda: CrossEntropy(hardest=1.1),
        lambda: OhemCrossEntropy(thresh=1.0),
        lambda: OhemCrossEntropy(min_kept=0),
    ],
)
def test_settings_out_of_range(make: Any) -> None:
    with pytest.raises(ConfigError, match="this is out of range"):
        make()


@pytest.mark.parametrize("loss", [CrossEntropy, Dice])
def test_weights_are_checked(loss: Any) -> None:
    for wrong in ((), (0.0, 0.0), (-1.0, 2.0)):
        with pytest.raises(
            ConfigError, match=rf"{loss.__name__}\.weight: class weights must be a number for each class"
        ):
            loss(weight=wrong)
    bound = bind({"type": loss.__name__, "weight": "balanced"}, LOSS, ("segmentation", "framework"))
    assert bound.weight == "balanced"


def test_mixed_wants_a_weight_for_each_loss() -> None:
    with pytest.raises(ConfigError, match="losses and weights do not fit"):
        Mixed((Dice(),), (1.0, 2.0))


def test_no_class_is_ignored_because_there_are_many():
    logits, labels = jnp.zeros((1, 2, 2, 300)), jnp.full((1, 2, 2), 255, jnp.int32)
    with pytest.raises(ConfigError, match=r"255, and logits of 300 classes\n  allowed: 300 to 65535"):
        CrossEntropy()(logits, labels)
    np.testing.assert_allclose(CrossEntropy(ignore_index=65535)(logits, labels), np.log(300), rtol=1e-5)
    with pytest.raises(ConfigError, match="the metric would ignore a class"):
        MeanIoU().start([str(number) for number in range(300)])
    assert MeanIoU(ignore_index=65535).start([str(number) for number in range(300)])
