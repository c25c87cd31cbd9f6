"""The classification task: what it packs, its losses against numbers worked out by hand, its errors."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import Kind, bind
from framework.core.errors import ConfigError, InputError
from framework.core.rng import rng_scope
from framework.engine.task import Task
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from zoo.classification.results import best_classes
from zoo.classification.tasks import ImageClassification, TopAccuracy


class Means(nn.Layer):
    """The three mean colours as logits."""

    def forward(self, x):
        return x.mean(axis=(1, 2))


TASK = Annotated[Task, Kind("task")]
PLAIN = Normalize((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))


def batch() -> dict[str, np.ndarray]:
    image = np.zeros((2, 4, 4, 3), np.uint8)
    image[0, ..., 0], image[1, ..., 1] = 255, 255
    return {"image": image, "label": np.array([0, 2], np.int32)}


def test_normalize() -> None:
    out = Normalize((0.5, 0.25, 0.0), (0.5, 0.25, 1.0))(np.full((1, 1, 1, 3), 255, np.uint8))
    np.testing.assert_allclose(out[0, 0, 0], [1.0, 3.0, 1.0], atol=1e-6)
    red = np.array([[[[255, 0, 0]]]], np.uint8)
    np.testing.assert_allclose(Normalize(PLAIN.mean, PLAIN.std, bgr=True)(red)[0, 0, 0], [0, 0, 1], atol=1e-6)


def test_the_loss_is_the_cross_entropy_and_accuracy_is_counted() -> None:
    losses = ImageClassification(PLAIN, topk=(1,)).loss(Means(), batch())
    # logits (1, 0, 0) for class 0 and (0, 1, 0) for class 2
    total = np.log(np.e + 2)
    assert float(losses.total) == pytest.approx((total - 1 + total) / 2, rel=1e-6)
    assert float(losses.parts["accuracy"]) == 0.5


def test_inner_classifiers_add_to_the_loss() -> None:
    class Three(Means):
        def forward(self, x):
            return super().forward(x), x.mean(axis=(1, 2)) * 0, x.mean(axis=(1, 2)) * 0

    losses = ImageClassification(PLAIN, topk=(1,), auxiliary_weight=0.25).loss(Three(), batch())
    alone = ImageClassification(PLAIN, topk=(1,)).loss(Means(), batch())
    # logits 0 of three classes: log 3, twice
    assert float(losses.total) == pytest.approx(float(alone.total) + 0.5 * np.log(3), rel=1e-6)
    assert float(losses.parts["accuracy"]) == 0.5


def test_label_smoothing() -> None:
    loss = ImageClassification(PLAIN, topk=(1,), label_smoothing=0.3).loss(Means(), batch()).total
    total = np.log(np.e + 2)
    first = total - (0.7 + 0.1) * 1  # 0.7 + 0.3 / 3 on class 0, 0.1 on the others, whose logits are 0
    second = total - 0.1
    assert float(loss) == pytest.approx((first + second) / 2, rel=1e-5)


@pytest.mark.parametrize("how", [{"mixup": 1.0}, {"cutmix": 1.0}])
def test_the_last_steps_see_images_as_they_are(how: Any) -> None:
    images = jnp.asarray(np.random.default_rng(0).integers(0, 255, (4, 8, 8, 3)), jnp.uint8)
    batch = {"image": images, "label": jnp.array([0, 1, 2, 1])}
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))

    def loss(task: ImageClassification, step: int) -> float:
        with rng_scope(jax.random.key(3)):
            return float(task.loss(model, {**batch, "step": jnp.int32(step)}).total)

    plain, mixed = loss(ImageClassification(), 0), loss(ImageClassification(**how), 0)
    until = ImageClassification(**how, mix_steps=5)
    assert loss(until, 4) == mixed != plain and loss(until, 5) == pytest.approx(plain, rel=1e-6)
    with pytest.raises(ConfigError, match="mix_steps -1"):
        ImageClassification(**how, mix_steps=-1)


@pytest.mark.parametrize("how", [{"mixup": 1.0}, {"cutmix": 1.0}, {"mixup": 1.0, "cutmix": 1.0}])
def test_mixing_mixes_images_and_targets_alike(how) -> None:
    """The logits are mean colours, which mix as the images do; so the share can be read from them."""
    task = ImageClassification(PLAIN, topk=(1,), **how)
    seen = []

    class Watch(Means):
        def forward(self, x):
            seen.append(np.asarray(x))
            return super().forward(x)

    for seed in range(8):
        with rng_scope(jax.random.key(seed)):
            loss = float(task.loss(Watch(), batch()).total)
        mixed = seen[-1]
        share = mixed[0].mean(axis=(0, 1))[0] if mixed[0, ..., 1].any() else 1.0
        logits = jnp.asarray(mixed.mean(axis=(1, 2)))
        own = nn.functional.cross_entropy(logits, batch()["label"], reduction="none").reshape(-1)
        other = nn.functional.cross_entropy(logits, batch()["label"][::-1].copy(), reduction="none").reshape(
            -1
        )
        if mixed[0, ..., 1].any():
            assert loss == pytest.approx(float((share * own + (1 - share) * other).mean()), abs=1e-5)
    assert any(image[0, ..., 1].any() for image in seen), "no pair was ever mixed"


def test_top_accuracy_and_the_best_classes() -> None:
    metric = TopAccuracy((1, 2))
    metric.update({"scores": np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2]])}, {"label": np.array([1, 0])})
    assert metric.result() == {"top1": 0.5, "top2": 1.0}
    assert TopAccuracy((1,)).result() == {"top1": 0.0}
    best = best_classes(np.array([0.2, 0.4, 0.4]), ("a", "b"), 2)
    assert [(c.label, c.category_id, c.score) for c in best] == [("b", 1, 0.4), ("2", 2, 0.4)]


def test_errors() -> None:
    with pytest.raises(ConfigError, match="a setting of the classification is out of range"):
        ImageClassification(topk=(0,))
    image = np.zeros((2, 2, 3), np.uint8)
    with pytest.raises(InputError, match="a sample has no class") as caught:
        ImageClassification().pack(Sample(image, id="a.jpg"))
    assert "a.jpg" in str(caught.value)
    with pytest.raises(InputError, match="2 labels"):
        ImageClassification().pack(Sample(image, labels=np.array([1, 2])))

    class Model(nn.Layer):
        def __init__(self):
            super().__init__()
            self.config = type("C", (), {"num_classes": 3})()

    with pytest.raises(ConfigError, match="different numbers of classes") as caught:
        ImageClassification().check(Model(), ("cat", "dog"))
    assert "-o model.num_classes=2" in str(caught.value)


def test_weights_of_classes() -> None:
    """By hand: the losses of the two samples, of class 0 and 2, weighted 3 to 1 and divided by the weights' sum."""
    total = np.log(np.e + 2)
    for weight in ((3.0, 9.0, 1.0), (3, 9, 1)):
        loss = ImageClassification(PLAIN, topk=(1,), weight=weight).loss(Means(), batch()).total
        assert float(loss) == pytest.approx((3 * (total - 1) + total) / 4, rel=1e-6)


class Counted:
    class_names = ("a", "b", "never")

    def read_labels(self) -> np.ndarray:
        return np.array([[0], [0], [0], [1]])


def test_balanced_weights_come_from_the_training_data() -> None:
    """4 samples of 2 classes that are there: 4 / (2 * 3) and 4 / (2 * 1)."""
    task = ImageClassification(weight="balanced").adapt(Counted())
    assert task.weight == pytest.approx((2 / 3, 2.0, 1.0))
    assert ImageClassification(weight=(1.0, 2.0)).adapt(Counted()).weight == (1.0, 2.0)
    with pytest.raises(
        ConfigError, match=r"task\.weight: this data set does not know(.|\n)*balanced, for list"
    ):
        ImageClassification(weight="balanced").adapt([])
    with pytest.raises(
        ConfigError, match=r"task\.weight: the weights do not fit(.|\n)*2 weights(.|\n)*3 classes"
    ):
        ImageClassification(PLAIN, weight=(1.0, 2.0)).loss(Means(), batch())
    with pytest.raises(ConfigError, match=r"task\.adapt\(dataset\)"):
        ImageClassification(PLAIN, weight="balanced").loss(Means(), batch())
    for wrong in ((), (0.0, 0.0), (-1.0, 2.0), (float("inf"), 1.0)):
        with pytest.raises(ConfigError, match="class weights must be"):
            ImageClassification(weight=wrong)
    bound = bind(
        {"type": "ImageClassification", "weight": "balanced"}, TASK, ("zoo.classification", "framework")
    )
    assert bound.weight == "balanced"
    listed = bind(
        {"type": "ImageClassification", "weight": [1, 2.5]}, TASK, ("zoo.classification", "framework")
    )
    assert listed.weight == (1.0, 2.5)
