"""What every registered optimizer, schedule and task keeps to. A new one needs a row here."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Detections, Poses, PoseTargets, Targets
from detection.metrics import CocoKeypoints, CocoMap, VocMap
from detection.pose_tasks import PoseEstimation
from detection.tasks import ObjectDetection
from framework import nn
from framework.config import Kind, available, bind
from framework.engine.label_alignment import AlignedPack, align_labels
from framework.engine.task import Losses, Task
from framework.io.checkpoint import flatten, unflatten
from framework.vision.sample import Sample
from segmentation.losses import CrossEntropy, OhemCrossEntropy
from segmentation.metrics import MeanIoU
from segmentation.tasks import SemanticSegmentation, WeightedLoss
from segmentation.test_time_augmentation import Slide, TestTimeAugmentation
from zoo.classification.multi_label import MultiLabelClassification
from zoo.classification.tasks import ImageClassification

PACKAGES = (
    "ocr",
    "detection",
    "segmentation",
    "nlp",
    "zoo.classification",
    "zoo.recommendation",
    "zoo",
    "framework",
)
OPTIMIZERS = sorted(available("optimizer", ("framework",)))

# What each schedule takes besides its first argument; those in _PYTHON_ONLY take a function or other schedules.
SCHEDULES: dict[str, dict[str, Any]] = {
    "Constant": {},
    "CosineAnnealingDecay": {"T_max": 10},
    "CosineAnnealingWarmRestarts": {"T_0": 4},
    "CyclicLR": {"base_learning_rate": 0.1, "max_learning_rate": 0.4, "step_size_up": 3},
    "ExponentialDecay": {"gamma": 0.9},
    "InverseTimeDecay": {"gamma": 0.1},
    "LinearLR": {"total_steps": 10},
    "LinearWarmup": {"warmup_steps": 3, "start_lr": 0.0, "end_lr": 0.2},
    "MultiStepDecay": {"milestones": [3, 6]},
    "NaturalExpDecay": {"gamma": 0.1},
    "NoamDecay": {"d_model": 16, "warmup_steps": 4},
    "OneCycleLR": {"max_learning_rate": 0.4, "total_steps": 10},
    "PiecewiseDecay": {"boundaries": [3, 6], "values": [0.2, 0.1, 0.05]},
    "PolynomialDecay": {"decay_steps": 10},
    "ReduceOnPlateau": {},
    "StepDecay": {"step_size": 3},
}
_NO_RATE = {"CyclicLR", "NoamDecay", "OneCycleLR", "PiecewiseDecay"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_from_a_config_moves_what_it_trains_and_its_state_survives(name: str) -> None:
    optimizer = bind({"type": name, "learning_rate": 0.01}, Annotated[Any, Kind("optimizer")], ("framework",))
    layer = nn.Linear(3, 2)
    layer._parameters["bias"].attr = nn.ParamAttr(trainable=False)
    how = optimizer.param_groups(layer)
    assert set(how) == {"weight"}
    params = {"weight": jnp.asarray(layer.weight)}
    grads = {"weight": jnp.full((3, 2), 0.5)}
    step = jax.jit(lambda g, s, p: optimizer.update(g, s, p, 0.01, how))
    state = optimizer.init(params, how)
    first, state, info = step(grads, state, params)
    np.testing.assert_allclose(info["grad_norm"], 0.5 * 6**0.5, rtol=1e-6)
    assert not np.allclose(first["weight"], params["weight"]) and np.isfinite(first["weight"]).all()
    kept = {k: np.asarray(v) for k, v in flatten(state).items()}
    again = unflatten(optimizer.init(params, how), kept)
    for a, b in zip(jax.tree.leaves(step(grads, state, first)), jax.tree.leaves(step(grads, again, first))):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", sorted(available("schedule", ("framework",))))
def test_a_schedule_is_the_same_traced_and_not(name: str) -> None:
    assert name in SCHEDULES, f"the schedule {name} has no row"
    own = {} if name in _NO_RATE else {"learning_rate": 0.2}
    schedule = bind(
        {"type": name, **own, **SCHEDULES[name]}, Annotated[Any, Kind("schedule")], ("framework",)
    )
    schedule = schedule.resolve(10, 5)
    plain = [schedule.at(step) for step in range(10)]
    traced = jax.jit(jax.vmap(schedule.at))(jnp.arange(10))
    np.testing.assert_allclose(traced, plain, rtol=1e-6, atol=1e-7)
    assert all(isinstance(rate, float) and rate >= 0 for rate in plain)


class Tiny(nn.Layer):
    """Two classes from the mean colour."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc(x.mean(axis=(1, 2)))


def image(label: int) -> Sample:
    return Sample(np.full((8, 6, 3), 40 * label + 20, np.uint8), labels=np.array(label), id=f"{label}.png")


class Dot(nn.Layer):
    """Two boxes that a linear layer makes of the mean colour."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 8)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc(x.mean(axis=(1, 2))).reshape(-1, 2, 4)

    def loss(self, images: jax.Array, targets: Targets) -> Losses:
        off = jnp.abs(self(images) - targets.boxes[:, :2]).mean(axis=-1)
        return Losses(jnp.where(targets.valid[:, :2], off, 0).sum(), {"loss_bbox": off.mean()})

    def detect(self, images: jax.Array) -> Detections:
        n = images.shape[0]
        return Detections(self(images), jnp.full((n, 2), 0.5), jnp.zeros((n, 2), jnp.int32))


def boxed(count: int) -> Sample:
    boxes = np.array([[1, 1, 4, 5], [2, 2, 6, 8], [0, 0, 3, 3]], np.float32)[:count]
    valid = np.array([True, True, False])[:count]
    return image(1).replace(boxes=boxes, labels=np.zeros(count, np.int32), valid=valid, source_size=(8, 6))


class Posed(nn.Layer):
    """One person of two keypoints on an image."""

    def __init__(self) -> None:
        super().__init__()
        self.fc, self.config = nn.Linear(3, 4), SimpleNamespace(num_keypoints=2)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.fc(x.mean(axis=(1, 2))).reshape(-1, 1, 2, 2)

    def loss(self, images: jax.Array, targets: PoseTargets) -> Losses:
        off = jnp.abs(self(images) - targets.keypoints[:, :1, :, :2]).mean(axis=(-2, -1))
        return Losses(jnp.where(targets.valid[:, :1], off, 0).sum())

    def detect(self, images: jax.Array) -> Poses:
        scores = jnp.full((images.shape[0], 1), 0.5)
        shown = jnp.broadcast_to(scores[:, :, None, None], (images.shape[0], 1, 2, 1))
        return Poses(jnp.concatenate([self(images), shown], axis=-1), scores)


def posed(number: int, count: int) -> Sample:
    keypoints = np.array([[[1, 1, 2], [4, 5, 1]], [[2, 2, 2], [0, 0, 0]]], np.float32)[:count]
    areas = np.full(count, 12, np.float32)
    return boxed(count).replace(keypoints=keypoints, valid=np.ones(count, bool), areas=areas, id=number)


class PerPixel(nn.Layer):
    """A class for every pixel from its colour, twice in training."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, images: jax.Array) -> tuple[jax.Array, ...]:
        return (self.fc(images),) * (2 if self.training else 1)


def coloured(number: int) -> Sample:
    mask = np.arange(48, dtype=np.uint8).reshape(8, 6) % 2
    mask[0, number] = 255
    return image(0).replace(labels=None, mask=mask)


TASKS: dict[str, list[tuple[Any, Any, list[Sample]]]] = {
    "ImageClassification": [
        (ImageClassification(topk=(1,)), Tiny(), [image(0), image(1)]),
        (ImageClassification(mixup=0.2, cutmix=1.0, label_smoothing=0.1), Tiny(), [image(0), image(1)]),
    ],
    "MultiLabelClassification": [
        (
            MultiLabelClassification(max_labels=2),
            Tiny(),
            [
                image(0).replace(labels=np.array([0], np.int32)),
                image(1).replace(labels=np.array([0, 1], np.int32)),
            ],
        ),
    ],
    "ObjectDetection": [
        (ObjectDetection(max_objects=4, metric=metric), Dot(), [boxed(3), boxed(0)])
        for metric in (CocoMap(), VocMap())
    ],
    "PoseEstimation": [
        (
            PoseEstimation(max_people=2, metric=CocoKeypoints(sigmas=(0.1, 0.1))),
            Posed(),
            [posed(0, 2), posed(1, 0)],
        )
    ],
    "SemanticSegmentation": [
        (
            SemanticSegmentation(
                losses=(WeightedLoss(CrossEntropy()), WeightedLoss(OhemCrossEntropy(min_kept=3), 0.4)),
                inference=inference,
                metric=MeanIoU(),
            ),
            PerPixel(),
            [coloured(0), coloured(1)],
        )
        for inference in (
            TestTimeAugmentation(),
            TestTimeAugmentation(scales=(1.0, 2.0), flip=True),
            TestTimeAugmentation(slide=Slide((4, 4), (2, 3))),
        )
    ],
}


def test_every_task_has_a_row() -> None:
    # Those of texts are in test_texts.py, of rows in test_rows.py, and those of OCR have no loss.
    known = available("task", PACKAGES)
    others = ("nlp.", "ocr.", "zoo.recommendation.")
    assert set(TASKS) == {name for name, module in known.items() if not module.startswith(others)}


@pytest.mark.parametrize("name", TASKS)
def test_a_task_packs_learns_and_judges(name: str) -> None:
    for task, model, samples in TASKS[name]:
        packed = [task.pack(sample) for sample in samples]
        assert len({tuple((k, v.shape, v.dtype) for k, v in p.items()) for p in packed}) == 1
        batch = {key: np.stack([p[key] for p in packed]) for key in packed[0]}
        graphdef, params, buffers = nn.split(model.train())

        def loss(
            params: Any, batch: Any, task: Any = task, graphdef: Any = graphdef, buffers: Any = buffers
        ) -> Any:
            from framework.core.rng import rng_scope

            with rng_scope(jax.random.key(0)):
                found = task.loss(graphdef.bind(params, buffers), {**batch, "step": jnp.int32(0)})
            return found.total, found.parts

        (total, parts), grads = jax.jit(jax.value_and_grad(loss, has_aux=True))(params, batch)
        assert total.shape == () and np.isfinite(total) and all(np.isfinite(p) for p in parts.values())
        assert all(np.isfinite(g).all() for g in grads.values()) and any(np.any(g) for g in grads.values())
        outputs = jax.tree.map(np.asarray, task.infer(model.eval(), batch))
        assert all(len(value) == len(samples) for value in outputs.values())
        check_scores(task, outputs, batch, ("a", "b"))
        if task.label_arrays:
            # Data with a class that the model does not know, and without one that it knows.
            alignment = align_labels(("a", "b"), ("x", "a"))
            aligned = [AlignedPack(task, task.label_arrays, alignment)(sample) for sample in samples]
            assert {
                key for key in batch if any((p[key] != q[key]).any() for p, q in zip(packed, aligned))
            } == {*task.label_arrays}
            batch = {key: np.stack([p[key] for p in aligned]) for key in batch}
            check_scores(task, outputs, batch, alignment.labels)


def check_scores(task: Task, outputs: Any, batch: dict[str, np.ndarray], labels: tuple[str, ...]) -> None:
    scores: dict[str, float] = {}
    for metric in task.metrics(labels).values():
        metric.update(outputs, batch)
        scores |= metric.result()
    assert scores and all(np.isfinite(score) for score in scores.values())
