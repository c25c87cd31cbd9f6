"""The task around a network of one convolution, by hand."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, InputError
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from segmentation.losses import CrossEntropy, Dice, Mixed
from segmentation.tasks import SemanticSegmentation, WeightedLoss
from segmentation.test_time_augmentation import TestTimeAugmentation

PLAIN = Normalize((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


class Net(nn.Layer):
    """Logits: the red and the green channel; in training also their double."""

    def forward(self, images):
        logits = images[..., :2]
        return (logits, 2 * logits) if self.training else (logits,)


@dataclass(frozen=True)
class Mean:
    factor: float = 1.0

    def __call__(self, output, labels):
        return self.factor * output.mean() + 0 * labels.sum().astype(float)


def batch(value=255):
    image = np.zeros((1, 2, 2, 3), np.uint8)
    image[..., 1] = value
    return {"image": jnp.asarray(image), "mask": jnp.zeros((1, 2, 2), jnp.int32)}


def test_losses_meet_their_outputs():
    task = SemanticSegmentation(PLAIN, (WeightedLoss(Mean()), WeightedLoss(Mean(10.0), 0.5)))
    losses = task.loss(Net().train(), batch())
    assert losses.parts.keys() == {"Mean_1", "Mean_2"}
    np.testing.assert_allclose(losses.parts["Mean_1"], 0.5)  # (0 + 1) / 2
    np.testing.assert_allclose(losses.parts["Mean_2"], 10.0)
    np.testing.assert_allclose(losses.total, 0.5 + 0.5 * 10)


def test_a_missing_loss_is_named():
    task = SemanticSegmentation(PLAIN, (WeightedLoss(Mean()),))
    with pytest.raises(ConfigError, match=r"1 losses[\s\S]*2, as many as Net has outputs in training"):
        task.loss(Net().train(), batch())


def test_labels_of_pixels():
    task = SemanticSegmentation(PLAIN)
    np.testing.assert_array_equal(task.infer(Net().eval(), batch())["labels"], np.ones((1, 2, 2)))
    assert task.infer(Net().eval(), batch(0))["labels"].max() == 0
    scores = SemanticSegmentation(PLAIN, inference=TestTimeAugmentation(output="scores")).infer(
        Net().eval(), batch()
    )
    np.testing.assert_allclose(scores["scores"][0, 0, 0], [0, 1])


class Counted:
    """3 classes with 30, 10 and 0 pixels."""

    def __init__(self):
        self.asked = 0

    def count_pixels(self):
        self.asked += 1
        return np.array([30, 10, 0])


def test_balanced_weights_come_from_the_training_masks():
    """40 pixels of 2 classes that are there: 40 / (2 * 30) and 40 / (2 * 10)."""
    both = Mixed((CrossEntropy(weight="balanced"), Dice(weight=(1.0, 2.0, 3.0)), Mean()), (1.0, 1.0, 1.0))
    task = SemanticSegmentation(PLAIN, (WeightedLoss(both), WeightedLoss(Dice(weight="balanced"), 0.5)))
    data = Counted()
    first, second = task.adapt(data).losses
    assert data.asked == 1 and second.weight == 0.5
    assert first.loss.losses[0].weight == second.loss.weight == pytest.approx((2 / 3, 2.0, 1.0))
    assert first.loss.losses[1:] == both.losses[1:]
    plain = SemanticSegmentation(PLAIN, (WeightedLoss(CrossEntropy(weight=(1.0, 2.0))),))
    assert plain.adapt(data) == plain and data.asked == 1  # masks are read only where a loss needs them


def test_balanced_weights_need_masks_and_adapt():
    task = SemanticSegmentation(PLAIN, (WeightedLoss(CrossEntropy(weight="balanced")),) * 2)
    with pytest.raises(ConfigError, match=r"does not know how many pixels[\s\S]*balanced, for list"):
        task.adapt([])
    with pytest.raises(ConfigError, match=r"CrossEntropy\.weight[\s\S]*task\.adapt\(dataset\)"):
        task.loss(Net().train(), batch())


def test_samples_are_packed():
    sample = Sample(np.zeros((2, 3, 4), np.uint16), mask=np.array([[True, False, True]] * 2), id="a.tif")
    packed = SemanticSegmentation().pack(sample)
    assert packed["image"].dtype == np.uint16 and packed["mask"].dtype == np.int32
    np.testing.assert_array_equal(packed["mask"], [[1, 0, 1]] * 2)


@pytest.mark.parametrize(
    ("mask", "said"), [(None, "no mask"), (np.zeros((3, 2, 2), bool), "3 masks of objects")]
)
def test_samples_without_classes_are_named(mask, said):
    with pytest.raises(InputError, match=rf"a.png[\s\S]*{said}"):
        SemanticSegmentation().pack(Sample(np.zeros((2, 2, 3), np.uint8), mask=mask, id="a.png"))


def test_images_of_sixteen_bits_and_four_channels():
    normalize = Normalize((0.5,) * 4, (0.5,) * 4, scale=65535.0)
    x = normalize(jnp.asarray(np.array([0, 65535], np.uint16).reshape(1, 1, 2, 1).repeat(4, -1)))
    np.testing.assert_allclose(x[0, 0, :, 3], [-1, 1], atol=1e-6)


def test_the_first_image_is_drawn():
    image = SemanticSegmentation().visualize(
        {"labels": np.ones((1, 2, 2), np.uint8)}, {"image": np.zeros((1, 2, 2, 3), np.uint8)}, ("a", "b")
    )
    assert image.shape == (2, 2, 3) and image.any()
