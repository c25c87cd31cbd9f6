"""The task around a network of one convolution, by hand."""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn, optimizer
from framework.core.errors import ConfigError, InputError
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from segmentation.losses import CrossEntropy, Dice, Focal, LovaszSoftmax, Mixed, OhemCrossEntropy
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


@pytest.mark.parametrize(
    "loss",
    [
        CrossEntropy(),
        CrossEntropy(weight=(9.0, 1.0)),
        Focal(),
        OhemCrossEntropy(thresh=0.999, min_kept=1),
        Mixed((LovaszSoftmax(), CrossEntropy(weight=(9.0, 1.0))), (0.0, 1.0)),
    ],
)
def test_two_batches_with_ignored_pixels_count_as_one(loss):
    """The step of two accumulated batches of 2 images is that of one of 4; the first has 3 pixels with a class."""
    rng = np.random.default_rng(0)
    image = rng.integers(0, 255, (4, 2, 4, 3)).astype(np.uint8)
    mask = rng.integers(0, 2, (4, 2, 4)).astype(np.int32)
    mask[:2], mask[0, 0, :3] = 255, (0, 0, 1)
    task = SemanticSegmentation(PLAIN, (WeightedLoss(loss),))

    class OneConvolution(nn.Layer):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2D(3, 2, 1)

        def forward(self, images):
            return (self.conv(images),)

    def train(size):
        framework.seed(0)
        model, take = OneConvolution(), optimizer.SGD(0.5, accumulate=4 // size)
        graphdef, params, _ = nn.split(model)
        groups = take.param_groups(model)
        state, total, info = take.init(params, groups), [], {"applied": False}
        for start in range(0, 4, size):
            part = {name: jnp.asarray(x[start : start + size]) for name, x in arrays.items()}
            losses = task.loss(graphdef.bind(params, {}), part)
            slopes = nn.value_and_grad(model, lambda net, b=part: task.loss(net, b).total)()[1]
            params, state, info = take.update(slopes, state, params, 0.5, groups, losses.weight)
            total.append(losses.weight)
        assert info["applied"]
        return params, sum(map(float, total))

    arrays = {"image": image, "mask": mask}
    (small, weight), (large, whole) = train(2), train(4)
    assert weight == whole
    for name, value in large.items():
        np.testing.assert_allclose(small[name], value, rtol=2e-5, atol=1e-6)


def test_a_mean_over_images_has_no_count_of_pixels():
    task = SemanticSegmentation(PLAIN, (WeightedLoss(Dice()), WeightedLoss(Mixed((Dice(),), (1.0,)))))
    assert task.loss(Net().train(), batch()).weight is None
