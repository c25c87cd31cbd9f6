"""The task of pose models, and the way from annotations through crops to COCO's scores, with stand-ins for models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from detection.contracts import Poses, PoseTargets
from detection.data.coco_pose import CocoPose
from detection.data.keypoints import COCO_KEYPOINTS
from detection.metrics import CocoKeypoints
from detection.pose_tasks import PoseEstimation
from framework import nn
from framework.core.errors import ConfigError, InputError
from framework.engine.evaluator import Evaluator
from framework.engine.experiment import LoaderConfig, TrainOptions
from framework.engine.task import Losses
from framework.engine.trainer import Trainer
from framework.nn import functional_core
from framework.optimizer import Adam
from framework.vision import image
from framework.vision.sample import Sample
from framework.vision.sample_transforms import (
    CropToObject,
    PadToMultiple,
    RandomCropToObject,
    RandomFrame,
    RandomHorizontalFlip,
    ResizeShort,
)
from framework.workflow.train.run import make_loader

COLOURS = np.eye(3, dtype=np.uint8) * 255
NAMES = ("nose", "left_eye", "right_eye")


@dataclass(frozen=True)
class DotsConfig:
    num_keypoints: int = 3


class Dots(nn.Layer):
    """Keypoint j is the middle of what is bright in channel j, in numbers of pixels; `score` is learned."""

    def __init__(self, num_keypoints: int = 3) -> None:
        super().__init__()
        self.config = DotsConfig(num_keypoints)
        self.heat = nn.Conv2D(3, 3, 1)

    def forward(self, images: Any) -> Any:
        return self.heat(images)

    def loss(self, images: Any, targets: PoseTargets) -> Losses:
        """Of the heatmaps with squares of 3 x 3 pixels at the keypoints."""
        height, width = images.shape[1:3]
        x, y = jnp.arange(width, dtype=jnp.float32)[None, :], jnp.arange(height, dtype=jnp.float32)[:, None]
        shown = (targets.keypoints[..., 2] > 0) & targets.valid[..., None]
        xy = targets.keypoints[..., None, None, :2]
        near = (jnp.abs(x - xy[..., 0]) <= 1.5) & (jnp.abs(y - xy[..., 1]) <= 1.5)
        wanted = (near & shown[..., None, None]).any(axis=1).transpose(0, 2, 3, 1).astype(jnp.float32)
        total = ((self(images) - wanted) ** 2).mean()
        return Losses(total, {"heat": total})

    def detect(self, images: Any) -> Poses:
        bright = (images > 0).astype(jnp.float32)  # normalised: more than the mean
        count = bright.sum(axis=(1, 2))
        x, y = (
            jnp.arange(images.shape[2], dtype=jnp.float32)[None, None, :, None],
            jnp.arange(images.shape[1], dtype=jnp.float32)[None, :, None, None],
        )
        xy = jnp.stack([(bright * axis).sum(axis=(1, 2)) / jnp.maximum(count, 1) for axis in (x, y)], axis=-1)
        keypoints = jnp.concatenate([xy, (count > 0)[..., None].astype(jnp.float32)], axis=-1)
        return Poses(keypoints[:, None], keypoints[..., 2].mean(axis=1, keepdims=True))


def people(folder: Path, *each: tuple[int, int], size: int = 64) -> CocoPose:
    """An image for each: keypoints are dots of 3 x 3 pixels, red at (x, y), green and blue 16 pixels below it."""
    data: dict[str, Any] = {"images": [], "annotations": []}
    data["categories"] = [{"id": 1, "name": "person", "keypoints": list(NAMES)}]
    for number, (x, y) in enumerate(each, start=1):
        source_image = np.zeros((size, size, 3), np.uint8)
        places = [(x, y), (x - 8, y + 16), (x + 8, y + 16)]
        for colour, (i, j) in zip(COLOURS, places):
            source_image[j - 1 : j + 2, i - 1 : i + 2] = colour
        image.write(folder / f"{number}.png", source_image)
        data["images"].append({"id": number << 33, "file_name": f"{number}.png"})  # longer than 32 bits
        flat = [value for place in places for value in (*place, 2)]
        box = [x - 10, y - 4, 20, 24]
        data["annotations"].append(
            {
                "id": number,
                "image_id": number << 33,
                "category_id": 1,
                "bbox": box,
                "area": 480,
                "keypoints": flat,
            }
        )
    (folder / "people.json").write_text(json.dumps(data), encoding="utf-8")
    return CocoPose(folder, Path("people.json"))


# ---- pack, loss, infer ----


def sample(**changes: Any) -> Sample:
    fields = {
        "keypoints": np.array([[[1, 2, 0]], [[3, 4, 2]], [[5, 6, 1]]], np.float32),
        "boxes": np.array([[0, 0, 1, 1], [1, 1, 2, 2], [2, 2, 3, 3]], np.float32),
        "valid": np.array([True, True, False]),
        "areas": np.array([1, 2, 3], np.float32),
        "mask": np.array([[True, False], [True, True]]),
        "id": 5,
    }
    return Sample(np.zeros((2, 2, 3), np.uint8), **{**fields, **changes})


def test_pack():
    packed = PoseEstimation(max_people=4).pack(sample())
    assert packed["keypoints"][:, 0].tolist() == [
        [3, 4, 2],
        [1, 2, 0],
        [5, 6, 1],
        [0, 0, 0],
    ]  # labelled ones first
    assert packed["boxes"][:, 0].tolist() == [1, 0, 2, 0] and packed["areas"].tolist() == [2, 1, 3, 0]
    assert packed["kinds"].tolist() == [1, 1, 2, 0] and packed["left_out"] == 0
    assert packed["ignore"].tolist() == [[False, True], [False, False]]
    assert packed["image_id"].tolist() == [0, 5] and packed["size"].tolist() == [2, 2]
    assert packed["matrix"].tolist() == np.eye(3).tolist()
    one = PoseEstimation(max_people=1).pack(sample(mask=None, areas=None, id=(3 << 31) + 7))
    assert (
        one["keypoints"].shape == (1, 1, 3) and one["left_out"] == 2 and not {"ignore", "areas"} & one.keys()
    )
    assert one["image_id"].tolist() == [3, 7]
    none = PoseEstimation(max_people=2).pack(
        sample(
            keypoints=np.zeros((0, 4, 3), np.float32),
            boxes=np.zeros((0, 4), np.float32),
            valid=None,
            areas=None,
        )
    )
    assert none["keypoints"].shape == (2, 4, 3) and not none["kinds"].any()


def test_pack_needs_people_with_keypoints():
    for change in ({"keypoints": None}, {"id": "a.jpg"}):
        with pytest.raises(ConfigError, match=r"no people with keypoints(?s:.)*CocoPose"):
            PoseEstimation().pack(sample(**change))
    with pytest.raises(ConfigError, match="max_people is too small"):
        PoseEstimation(max_people=0)


class Seen(nn.Layer):
    """Keeps what it is asked for."""

    def loss(self, images: Any, targets: PoseTargets) -> Losses:
        self.images, self.targets = images, targets
        return Losses(images.sum())

    def detect(self, images: Any) -> Poses:
        return Poses(jnp.ones((1, 2, 1, 3)), jnp.array([[0.5, 0.0]]))


def test_models_number_pixels():
    task, model = PoseEstimation(max_people=4), Seen()
    batch = {name: value[None] for name, value in task.pack(sample()).items()}
    task.loss(model, batch)
    assert model.targets.keypoints[0, :3, 0].tolist() == [[2.5, 3.5, 2], [0.5, 1.5, 0], [4.5, 5.5, 1]]
    assert model.targets.valid.tolist() == [[True, False, False, False]]
    assert model.targets.ignore.tolist() == [[[False, True], [False, False]]]
    np.testing.assert_allclose(
        model.images[0, 0, 0], -np.array([0.485, 0.456, 0.406]) / [0.229, 0.224, 0.225], rtol=1e-5
    )
    outputs = task.infer(model, batch)
    assert outputs["keypoints"].tolist() == [[[[1.5, 1.5, 1]], [[1.5, 1.5, 1]]]]
    assert outputs["scores"].tolist() == [[0.5, 0]]


def test_check():
    task = PoseEstimation()
    task.check(Dots(), NAMES)
    task.check(Dots(), ())
    with pytest.raises(
        ConfigError, match=r"model\.num_keypoints(?s:.)*17 for the 3 keypoints nose(?s:.)*num_keypoints=3"
    ):
        task.check(Dots(17), NAMES)
    with pytest.raises(ConfigError, match=r"finds no keypoints(?s:.)*Conv2D"):
        task.check(nn.Conv2D(1, 1, 1), NAMES)


# ---- the metric's spreads ----


def test_sigmas_come_with_the_names():
    started = CocoKeypoints().start
    assert started(())._sigmas == started(COCO_KEYPOINTS)._sigmas and len(started(())._sigmas) == 17
    assert started(NAMES)._sigmas == (0.026, 0.025, 0.025)
    assert CocoKeypoints((0.1, 0.2)).start(("thumb", "palm"))._sigmas == (0.1, 0.2)
    with pytest.raises(
        ConfigError, match=r"CocoKeypoints\.sigmas(?s:.)*thumb, palm(?s:.)*task\.metric\.sigmas"
    ):
        started(("thumb", "palm"))


# ---- data, transforms, model and metric together ----


def evaluated(
    dataset: CocoPose, task: PoseEstimation, *transforms: Any, batch_size: int = 2
) -> dict[str, float]:
    loader = make_loader(LoaderConfig(dataset, transforms, batch_size, num_workers=0), task, 0, train=False)
    graphdef, params, buffers = functional_core.split(Dots().eval())
    return Evaluator(graphdef, task, loader, dataset.class_names).run(params, buffers)


def test_evaluation_of_crops(tmp_path: Path):
    dataset = people(tmp_path, (20, 20), (40, 12), (30, 36))
    crops = CocoPose(tmp_path, Path("people.json"), per_person=True)
    task = PoseEstimation(max_people=1, metric=CocoKeypoints((0.05, 0.05, 0.05)))
    for transform in (CropToObject((64, 48)), RandomCropToObject((64, 48), scale=0.1, degrees=10, p_flip=0)):
        scores = evaluated(crops, task, transform)
        assert scores["AP"] > 0.99, transform
    whole = evaluated(
        dataset, PoseEstimation(max_people=2, metric=task.metric), PadToMultiple(32), batch_size=1
    )
    assert whole["AP"] > 0.99
    larger = evaluated(
        dataset,
        PoseEstimation(max_people=2, metric=task.metric),
        ResizeShort(100, 2000),
        PadToMultiple(64, align="center"),
        batch_size=1,
    )
    assert larger["AP"] > 0.99
    strict = PoseEstimation(max_people=1, metric=CocoKeypoints((0.002, 0.002, 0.002)))
    mirrored = RandomCropToObject((64, 48), scale=0, degrees=0, p_flip=1)
    assert evaluated(crops, strict, mirrored)["AP"] < 0.5  # left is not changed with right, as in the image


def test_evaluation_takes_all_people(tmp_path: Path):
    people(tmp_path, (20, 20))
    data = json.loads((tmp_path / "people.json").read_text(encoding="utf-8"))
    data["annotations"].append({**data["annotations"][0], "id": 2})
    (tmp_path / "people.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match=r"task\.max_people(?s:.)*2 objects(?s:.)*max_people=2"):
        evaluated(
            CocoPose(tmp_path, Path("people.json")), PoseEstimation(max_people=1, metric=CocoKeypoints())
        )


@pytest.mark.parametrize("per_person", [False, True])
def test_training_lowers_the_loss(tmp_path: Path, per_person: bool):
    people(tmp_path, (20, 20), (40, 12), (30, 36), (44, 40))
    dataset = CocoPose(tmp_path, Path("people.json"), per_person=per_person)
    transforms = (
        (RandomCropToObject((32, 24), scale=0.2, degrees=20, keypoint_flip_pairs=((1, 2),)),)
        if per_person
        else (
            RandomFrame((32, 32), degrees=5, translate=0.1),
            RandomHorizontalFlip(keypoint_flip_pairs=((1, 2),)),
        )
    )
    task = PoseEstimation(max_people=1 if per_person else 4)
    model = Dots()
    loader = make_loader(LoaderConfig(dataset, transforms, 4, num_workers=0), task, 0, train=True)
    batch = {name: jnp.asarray(value) for name, value in next(iter(loader.batches(0))).data.items()}

    def loss() -> float:
        return float(jax.jit(lambda: task.loss(model, batch).total)())

    before = loss()
    Trainer(model, task, Adam(0.05), loader, TrainOptions(epochs=40)).fit()
    assert loss() < 0.5 * before
