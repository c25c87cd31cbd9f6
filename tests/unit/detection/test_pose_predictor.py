"""The ways from images to keypoints: all at once, and person by person. Keypoints are red, green and blue dots."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import detection
from detection import pose_predictor as pose_api
from detection.data.keypoints import COCO_KEYPOINTS
from detection.domain import DOMAIN
from detection.pose_predictor import KeypointMeta, Pose
from detection.results import DetectionResult
from detection.slicing import Slicing
from detection.tracking import ByteTrackOptions
from framework import nn
from framework.config import load
from framework.core.errors import ConfigError, FormatError, InputError
from framework.engine.experiment import bind_experiment
from framework.export import Artifact, TensorSpec
from framework.export.program import lower_layer
from framework.inference import Runtime
from framework.vision import image as vision_image
from framework.vision.sample import Sample
from framework.vision.video import VideoReader, VideoWriter
from framework.vision.warp import Warp
from framework.workflow import ImageItem, open_predictor
from framework.workflow.files.predict_files import predict_files

SIDE = 64


class Dots(nn.Layer):
    """One person: keypoint j is the middle of what is bright in channel j. The score is the share of keypoints that
    are seen;
    a second person is padding."""

    def forward(self, images):
        bright = (images > 100).astype(jnp.float32)
        count = bright.sum(axis=(1, 2))
        x = jnp.arange(images.shape[2], dtype=jnp.float32)[None, None, :, None] + 0.5
        y = jnp.arange(images.shape[1], dtype=jnp.float32)[None, :, None, None] + 0.5
        xy = [(bright * axis).sum(axis=(1, 2)) / jnp.maximum(count, 1) for axis in (x, y)]
        keypoints = jnp.stack([*xy, (count > 0).astype(jnp.float32) * 1.25], axis=-1)
        score = jnp.minimum((count > 0).astype(jnp.float32).mean(axis=1), 0.9)
        return {
            "keypoints": jnp.stack([keypoints, jnp.zeros_like(keypoints)], axis=1),
            "scores": jnp.stack([score, jnp.zeros_like(score)], axis=1),
        }


class Halves(nn.Layer):
    """A person in the left half and one in the right half, of scores 0.8 and 0.6, where there is something red; and
    always a car."""

    def forward(self, images):
        half = images.shape[2] // 2
        red = jnp.stack(
            [(part[..., 0] > 100).any(axis=(1, 2)) for part in (images[:, :, :half], images[:, :, half:])]
        )
        scores = jnp.where(red.T, jnp.array([[0.8, 0.6]]), 0.0)
        car = jnp.full((scores.shape[0], 1), 0.9)
        size = float(images.shape[1])
        boxes = jnp.array([[[0, 0, 1, 1], [0, 0, size / 2, size], [size / 2, 0, size, size]]], jnp.float32)
        return {
            "boxes": jnp.broadcast_to(boxes, (scores.shape[0], 3, 4)),
            "scores": jnp.concatenate([car, scores], axis=1).astype(jnp.float32),
            "labels": jnp.broadcast_to(jnp.array([[1, 0, 0]], jnp.int32), (scores.shape[0], 3)),
        }


def saved(
    folder: Path, layer: nn.Layer, size_hw: tuple[int, int], transforms: list[Any], **config: Any
) -> Path:
    program, weights = lower_layer(
        layer.eval(),
        {"image": TensorSpec(("n", *size_hw, 3), "uint8")},
        after=lambda out: out,
        precision="float32",
    )
    about = {
        "domain": "detection",
        "batch_size": 2,
        "bf16_verified": False,
        "transforms": transforms,
        **config,
    }
    return Artifact(about, {"float32": program}, weights).save(folder)


NAMES = ["nose", "left_eye", "right_eye"]
POSE = {"category": "person", "skeleton": [[0, 1], [0, 2]], "flip_pairs": [[1, 2]]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    resize = [{"type": "Resize", "size_hw": [SIDE, SIDE]}]
    folder = tmp_path_factory.mktemp("artifacts") / "whole"
    return saved(folder, Dots(), (SIDE, SIDE), resize, name="whole", labels=NAMES, pose=POSE)


@pytest.fixture(scope="module")
def crops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    crop = [{"type": "CropToObject", "size_hw": [SIDE, 48], "padding": 1.0}]
    folder = tmp_path_factory.mktemp("artifacts") / "crops"
    return saved(folder, Dots(), (SIDE, 48), crop, name="crops", labels=NAMES, pose=POSE, category_ids=[7])


@pytest.fixture(scope="module")
def finder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    resize = [{"type": "Resize", "size_hw": [SIDE, SIDE], "interpolation": "nearest"}]
    folder = tmp_path_factory.mktemp("artifacts") / "finder"
    return saved(folder, Halves(), (SIDE, SIDE), resize, name="finder", labels=["person", "car"])


def drawn_image(*people: tuple[int, int], size: tuple[int, int] = (128, 128)) -> np.ndarray:
    """Dots of 4 x 4 pixels: red with its middle at (x, y), green and blue 20 below it, 10 to the left and right."""
    image = np.zeros((*size, 3), np.uint8)
    for x, y in people:
        for channel, (i, j) in enumerate(places(x, y)):
            image[j - 2 : j + 2, i - 2 : i + 2, channel] = 255
    return image


def places(x: int, y: int) -> list[tuple[int, int]]:
    return [(x, y), (x - 10, y + 20), (x + 10, y + 20)]


def xy(box: Any) -> np.ndarray:
    return np.array(box.keypoints)[:, :2]


# ---- all at once ----


def test_bottom_up(whole: Path):
    detect = detection.predictor(whole)
    result = detect(drawn_image((60, 40)))
    assert isinstance(result, DetectionResult) and result.skeleton == ((0, 1), (0, 2))
    (person,) = result.boxes
    assert (person.label, person.category_id, person.score) == ("person", 0, pytest.approx(0.9))
    np.testing.assert_allclose(xy(person), places(60, 40), atol=0.2)
    np.testing.assert_allclose(person.bbox, (50, 40, 70, 60), atol=0.2)
    assert [score for _, _, score in person.keypoints] == [1, 1, 1]  # what is beyond 1 is cut
    assert set(result.to_dict()["boxes"][0]) == {"label", "category_id", "score", "bbox", "keypoints"}
    assert (result.draw() != drawn_image((60, 40))).any()
    nobody, small = detect([drawn_image(), np.zeros((1, 1, 3), np.uint8)])
    assert nobody.boxes == small.boxes == ()


def test_bottom_up_threshold_and_missing_keypoints(whole: Path):
    image = drawn_image((60, 40))
    image[..., 2] = 0  # two of three keypoints
    (person,) = detection.predictor(whole)(image).boxes
    assert person.score == pytest.approx(2 / 3) and person.keypoints[2][2] == 0
    np.testing.assert_allclose(person.bbox, (50, 40, 60, 60), atol=0.2)  # around those that are seen
    assert detection.predictor(whole, threshold=0.7)(image).boxes == ()
    image[..., 1] = 0
    assert detection.predictor(whole)(image).boxes == ()  # one keypoint bounds nothing


def test_bottom_up_tracked(whole: Path):
    frames = [ImageItem(drawn_image((40 + 2 * number, 40)), "clip.mp4", number) for number in range(4)]
    detect = detection.predictor(whole, tracking=ByteTrackOptions())
    found = list(detect.predict_video(iter(frames), 25.0))
    assert [[box.track_id for box in one.boxes] for one in found] == [[1]] * 4
    assert all(box.keypoints for one in found for box in one.boxes)


def test_person():
    seen = Pose(np.array([[5.0, 5, 0.9], [15, 25, 0.3], [90, 90, 0.1]]), 0.5)
    box = pose_api.person(seen, "hand", (40, 40))
    assert box is not None and (box.label, box.bbox, box.score) == ("hand", (5, 5, 15, 25), 0.5)
    faint = Pose(seen.keypoints * [1, 1, 0.1], 0.5)
    assert pose_api.person(faint, "hand", (40, 20)).bbox == (
        5,
        5,
        20,
        40,
    )  # all of them, inside of the image
    assert pose_api.person(Pose(np.array([[90.0, 90, 1], [95, 99, 1]]), 0.5), "hand", (40, 40)) is None


def test_interpret():
    outputs = {"keypoints": np.ones((2, 1, 3), np.float32), "scores": np.array([0.5, 0.0], np.float32)}
    sample = Sample(np.zeros((4, 4, 3), np.uint8), warp=Warp.resize((8, 16), (4, 4)), source_size=(8, 16))
    (pose,) = pose_api.interpret(outputs, sample)
    assert pose.score == 0.5 and pose.keypoints.tolist() == [[4, 2, 1]]
    assert outputs["keypoints"].tolist() == [[[1, 1, 1]], [[1, 1, 1]]]  # not changed in place
    with pytest.raises(FormatError, match=r"outputs boxes(?s:.)*keypoints, scores"):
        pose_api.interpret({"boxes": np.zeros(1)}, sample)


# ---- person by person ----


def test_top_down(crops: Path, finder: Path):
    detect = detection.predictor(crops, detector=finder)
    both, none, right = detect([drawn_image((30, 40), (100, 70)), drawn_image(), drawn_image((100, 50))])
    assert [box.score for box in both.boxes] == [pytest.approx(0.72), pytest.approx(0.54)]  # of box and pose
    for box, (x, y) in zip(both.boxes, ((30, 40), (100, 70))):
        np.testing.assert_allclose(xy(box), places(x, y), atol=0.5)
        assert (box.label, box.category_id) == ("person", 0)
    assert [box.bbox for box in both.boxes] == [(0, 0, 64, 128), (64, 0, 128, 128)]  # the detector's
    assert both.skeleton == ((0, 1), (0, 2)) and none.boxes == ()
    np.testing.assert_allclose(xy(right.boxes[0]), places(100, 50), atol=0.5)
    assert both.to_coco(1, detect.category_ids)[0]["category_id"] == 7


def test_top_down_thresholds(crops: Path, finder: Path):
    image = drawn_image((30, 40), (100, 70))
    assert len(detection.predictor(crops, detector=finder, det_threshold=0.7)(image).boxes) == 1
    assert len(detection.predictor(crops, detector=finder, threshold=0.6)(image).boxes) == 1
    assert detection.predictor(crops, detector=finder, threshold=0.8)(image).boxes == ()
    with pytest.raises(InputError, match=r"det_threshold is out of range(?s:.)*1\.5"):
        detection.predictor(crops, detector=finder, det_threshold=1.5)


def test_top_down_takes_a_predictor_and_many_images(crops: Path, finder: Path):
    detector = detection.predictor(finder, slicing=Slicing((128, 128), (0, 0), whole=False))
    detect = detection.predictor(crops, detector=detector, batch_size=3)
    images = [drawn_image(*[(30, 30 + n)] * (n % 3 > 0), *[(100, 40)] * (n % 3 > 1)) for n in range(7)]
    results = detect(images)
    assert [len(one.boxes) for one in results] == [n % 3 for n in range(7)]
    np.testing.assert_allclose(xy(results[4].boxes[0]), places(30, 34), atol=0.5)
    assert detect([]) == []


def test_top_down_tracks_and_videos(crops: Path, finder: Path, tmp_path: Path):
    clip = tmp_path / "clip.mp4"
    with VideoWriter(clip, 25, (128, 128)) as out:
        for number in range(5):
            out.write(drawn_image((30 + number, 40), (100, 70)))
    detect = open_predictor(
        crops,
        runtime=Runtime(precision="float32"),
        options={"det_model_dir": str(finder), "tracker": "bytetrack"},
    )
    report = predict_files(detect, tmp_path / "out", video_file=str(clip), save=True)
    assert report.exit_code == 0
    lines = (tmp_path / "out" / "clip.jsonl").read_text(encoding="utf-8").splitlines()
    last = json.loads(lines[-1])
    assert len(lines) == 5 and sorted(box["track_id"] for box in last["boxes"]) == [1, 2]
    assert all(len(box["keypoints"]) == 3 for box in last["boxes"])
    with VideoReader(tmp_path / "out" / "clip.mp4") as drawn:
        assert sum(1 for _ in drawn) == 5
    assert (tmp_path / "out" / "clip.txt").read_text(encoding="utf-8").count("\n") == 10


def test_results_of_the_tools(crops: Path, finder: Path, tmp_path: Path):
    (tmp_path / "in").mkdir()
    for name in ("1", "2"):
        vision_image.write(tmp_path / "in" / f"{name}.png", drawn_image((30, 40)))
    detect = open_predictor(crops, options={"det_model_dir": str(finder)})
    report = predict_files(detect, tmp_path / "out", image_dir=str(tmp_path / "in"), save=True)
    assert report.exit_code == 0
    found = json.loads((tmp_path / "out" / "keypoint.json").read_text(encoding="utf-8"))
    assert [one["image_id"] for one in found] == [1, 2] and found[0]["category_id"] == 7
    np.testing.assert_allclose(
        np.reshape(found[0]["keypoints"], (3, 3))[:, :2], np.array(places(30, 40)) - 0.5, atol=0.5
    )
    shown = json.loads((tmp_path / "out" / "1.json").read_text(encoding="utf-8"))
    assert (shown["width"], shown["height"]) == (128, 128) and (tmp_path / "out" / "1.png").is_file()


# ---- errors ----


def test_what_does_not_go_together(whole: Path, crops: Path, finder: Path, tmp_path: Path):
    with pytest.raises(
        ConfigError, match=r"crops: (?s:.)*nothing finds them(?s:.)*class person(?s:.)*--det_model_dir"
    ):
        detection.predictor(crops)
    with pytest.raises(
        ConfigError, match=r"whole: (?s:.)*all people of an image at once(?s:.)*--det_model_dir"
    ):
        detection.predictor(whole, detector=finder)
    with pytest.raises(ConfigError, match=r"tiles of an image(?s:.)*--slice_infer"):
        detection.predictor(whole, slicing=Slicing())
    with pytest.raises(ConfigError, match=r"no keypoints(?s:.)*leave out --det_model_dir"):
        detection.predictor(finder, detector=finder)
    with pytest.raises(ConfigError, match=r"--det_threshold(?s:.)*add --det_model_dir"):
        open_predictor(whole, options={"det_threshold": 0.5})
    resize = [{"type": "Resize", "size_hw": [SIDE, SIDE]}]
    cars = saved(tmp_path / "cars", Halves(), (SIDE, SIDE), resize, name="cars", labels=["car", "dog"])
    with pytest.raises(ConfigError, match=r"does not find(?s:.)*classes car, dog(?s:.)*the class person"):
        detection.predictor(crops, detector=cars)
    one = saved(tmp_path / "one", Halves(), (SIDE, SIDE), resize, name="one", labels=["pedestrian"])
    assert len(detection.predictor(crops, detector=one)(drawn_image((30, 40))).boxes) == 1  # its only class


# ---- what an artifact tells ----


def test_keypoints():
    keypoints = KeypointMeta.from_names(NAMES)
    assert keypoints == KeypointMeta("person", ((0, 1), (0, 2), (1, 2)), ((1, 2),))
    artifact = Artifact({"pose": json.loads(json.dumps(keypoints.plain()))}, {}, {})
    assert KeypointMeta.from_artifact(artifact) == keypoints
    assert (
        len(KeypointMeta.from_names(COCO_KEYPOINTS).skeleton) == 19
        and KeypointMeta.from_names(()).skeleton == ()
    )


@pytest.mark.parametrize("here", [False, True])
def test_what_is_exported(tmp_path: Path, here: bool):
    labels = ["wrist", "left_tip"]
    data = {
        "images": [{"id": 1, "file_name": "1.png"}],
        "categories": [{"id": 4, "name": "hand", "keypoints": labels, "skeleton": [[2, 1]]}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 4, "bbox": [0, 0, 4, 4], "keypoints": [1, 1, 2, 3, 3, 2]}
        ],
    }
    if here:
        vision_image.write(tmp_path / "1.png", np.zeros((8, 8, 3), np.uint8))
        (tmp_path / "hands.json").write_text(json.dumps(data), encoding="utf-8")
    config = tmp_path / "hands.yml"
    dataset = f"{{type: CocoPose, root: '{tmp_path.as_posix()}', annotations: hands.json, keypoints: [wrist, left_tip]}}"  # noqa: E501
    config.write_text(
        "domain: detection\nmodel: {type: TopDownHRNet, num_keypoints: 2}\ntask: {type: PoseEstimation}\n"
        f"data: {{eval: {{dataset: {dataset}}}}}\n",
        encoding="utf-8",
    )
    exported = DOMAIN.describe(bind_experiment(load(config)), Dots(), tuple(labels))
    if here:
        assert exported["pose"] == {"category": "hand", "skeleton": [[1, 0]], "flip_pairs": []}
        assert exported["category_ids"] == [4]
    else:
        assert exported["pose"] == {"category": "person", "skeleton": [], "flip_pairs": []}
        assert "category_ids" not in exported
