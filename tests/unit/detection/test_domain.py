"""The way from images to objects, with a program that finds the bounds of what is bright."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import detection
from detection.detector import ObjectDetector
from detection.domain import DOMAIN, interpret
from detection.results import DetectionResult
from detection.slicing import Slicing
from detection.tracking import ByteTrackOptions
from framework import nn
from framework.config import load
from framework.core.errors import ConfigError, FormatError, InputError
from framework.engine.experiment import bind_experiment
from framework.export import Artifact, TensorSpec
from framework.export.program import lower_layer
from framework.vision import image as vision_image
from framework.vision.sample import Sample
from framework.vision.warp import Warp
from framework.workflow import ImageItem, open_predictor


class Bright(nn.Layer):
    """One box around the pixels of red > 100, its score is their largest red / 255, its class that of blue > 0."""

    def forward(self, images):
        bright = images[..., 0] > 100
        bounds = []
        for axis in (2, 1):  # where columns, and rows, hold something
            line = bright.any(axis=3 - axis)
            bounds += [line.argmax(axis=1), line.shape[1] - line[:, ::-1].argmax(axis=1)]
        box = jnp.stack([bounds[0], bounds[2], bounds[1], bounds[3]], axis=1)
        score = jnp.where(bright.any(axis=(1, 2)), images[..., 0].max(axis=(1, 2)) / 255, 0)
        label = (images[..., 2].max(axis=(1, 2)) > 0).astype(jnp.int32)
        padded = [
            jnp.pad(x, ((0, 0), (0, 1), *((0, 0),) * (x.ndim - 2))) for x in (box[:, None], score[:, None])
        ]
        boxes, scores = (x.astype(jnp.float32) for x in padded)
        return {"boxes": boxes, "scores": scores, "labels": jnp.pad(label[:, None], ((0, 0), (0, 1)))}


def artifact(**changes) -> Artifact:
    program, weights = lower_layer(
        Bright().eval(),
        {"image": TensorSpec(("n", 20, 20, 3), "uint8")},
        after=lambda out: out,
        precision="float32",
    )
    config = {
        "domain": "detection",
        "name": "bright",
        "transforms": [{"type": "Resize", "size_hw": [20, 20], "interpolation": "nearest"}],
        "batch_size": 2,
        "labels": ["lamp"],
        "bf16_verified": False,
    }
    return Artifact({**config, **changes}, {"float32": program}, weights)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return artifact().save(tmp_path_factory.mktemp("artifacts") / "bright")


def drawn_image(
    size: tuple[int, int], box: tuple[int, int, int, int] | None, red: int = 255, blue: int = 0
) -> np.ndarray:
    image = np.zeros((*size, 3), np.uint8)
    if box is not None:
        image[box[1] : box[3], box[0] : box[2]] = (red, 0, blue)
    return image


def bboxes(result: DetectionResult) -> list[tuple[float, ...]]:
    return [box.bbox for box in result.boxes]


def test_boxes_are_in_pixels_of_the_source(folder: Path, tmp_path: Path):
    detect = detection.predictor(folder)
    large = detect(drawn_image((40, 80), (8, 10, 40, 20)))
    assert isinstance(large, DetectionResult) and large.size_hw == (40, 80) and large.source == ""
    assert bboxes(large) == [(8, 10, 40, 20)]
    assert (large.boxes[0].label, large.boxes[0].category_id, large.boxes[0].score) == ("lamp", 0, 1.0)
    vision_image.write(tmp_path / "a.png", drawn_image((10, 10), (2, 3, 5, 8), blue=9))
    first, second, third = detect(
        [tmp_path / "a.png", drawn_image((20, 20), None), drawn_image((1, 1), (0, 0, 1, 1))]
    )
    assert bboxes(first) == [(2, 3, 5, 8)] and first.source == str(tmp_path / "a.png")
    assert (first.boxes[0].label, first.boxes[0].category_id) == ("1", 1)  # a class without a name
    assert second.boxes == () and bboxes(third) == [(0, 0, 1, 1)]
    assert detect([]) == []


def test_threshold(folder: Path):
    image = drawn_image((20, 20), (0, 0, 5, 5), red=102)  # a score of 0.4
    assert detection.predictor(folder)(image).boxes == ()
    assert len(detection.predictor(folder, threshold=0.39)(image).boxes) == 1
    assert detection.predictor(folder, threshold=0.41)(image).boxes == ()
    assert (
        detection.predictor(folder, threshold=0.0)(drawn_image((20, 20), None)).boxes == ()
    )  # padding is none
    with pytest.raises(InputError, match=r"threshold is out of range(.*\n)+.*0 to 1"):
        detection.predictor(folder, threshold=1.5)


def test_sliced(folder: Path):
    image = drawn_image((40, 60), (31, 11, 33, 12))  # shrunk to 20 x 20 at once, half a row may be left
    image[30, 50] = 255
    detect = detection.predictor(folder, slicing=Slicing((20, 20), (0, 0), whole=False), batch_size=4)
    assert sorted(bboxes(detect(image))) == [(31, 11, 33, 12), (50, 30, 51, 31)]
    both = detect([image, drawn_image((5, 5), (1, 1, 2, 2))])
    assert [len(result.boxes) for result in both] == [2, 1] and bboxes(both[1]) == [(1, 1, 2, 2)]


def frames(*boxes: tuple[int, int, int, int] | None) -> list[ImageItem]:
    return [
        ImageItem(drawn_image((20, 40), box), "clip.mp4", number) for number, box in enumerate(boxes, start=1)
    ]


def test_tracked(folder: Path):
    detect = detection.predictor(folder, tracking=ByteTrackOptions())
    moves = frames((0, 0, 10, 10), (2, 0, 12, 10), None, (6, 0, 16, 10), (26, 10, 40, 20), (26, 10, 40, 20))
    ids = [[box.track_id for box in result.boxes] for result in detect.predict_video(iter(moves), 25.0)]
    assert ids == [[1], [1], [], [1], [None], [2]]  # a first box has no track yet, and is seen all the same
    again = [[box.track_id for box in result.boxes] for result in detect.predict_stream(iter(moves[:1]))]
    assert again == [[1]]
    plain = list(detection.predictor(folder).predict_video(iter(moves), 25.0))
    assert [[box.track_id for box in result.boxes] for result in plain[:3]] == [[None], [None], []]


def test_the_frame_rate_reaches_the_tracker(folder: Path):
    detect = detection.predictor(folder, tracking=ByteTrackOptions(buffer=2))
    moves = frames((0, 0, 10, 10), None, None, None, (0, 0, 10, 10), (0, 0, 10, 10))
    for rate, expected in ((30.0, 2), (60.0, 1)):
        assert [box.track_id for box in list(detect.predict_video(iter(moves), rate))[-1].boxes] == [expected]


def test_tracking_sees_boxes_of_low_scores(folder: Path):
    moves = [ImageItem(drawn_image((20, 40), (0, 0, 10, 10), red)) for red in (255, 102, 255)]
    detect = detection.predictor(folder, tracking=ByteTrackOptions())
    found = [
        [(box.track_id, round(box.score, 2)) for box in result.boxes]
        for result in detect.predict_stream(iter(moves))
    ]
    assert found == [[(1, 1.0)], [(1, 0.4)], [(1, 1.0)]]


def test_files_of_all_results(tmp_path: Path):
    detect = detection.predictor(artifact(category_ids=[47]).save(tmp_path / "net"))
    result = detect(drawn_image((20, 20), (0, 0, 5, 5)))
    coco = detect.result_writer("", [""])
    assert coco.name == "bbox.json" and '"category_id": 47' in coco.text(result, 0)
    mot = detect.result_writer("clip")
    assert mot.name == "clip.txt" and mot.text(result, 1).startswith("2,-1,0.00,0.00,5.00,5.00,1.0000,-1,")


@pytest.mark.parametrize(
    ("file", "labels", "ids"),
    [
        ("a.json", ["sun", "lamp"], [7, 90]),
        ("a.json", ["lamp", "sun"], None),  # weights of other classes
        ("none.json", ["sun", "lamp"], None),  # the data set is not here
    ],
)
def test_the_numbers_of_the_classes_are_exported(
    tmp_path: Path, file: str, labels: list[str], ids: list[int] | None
):
    coco = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "annotations": [],
        "categories": [{"id": 90, "name": "lamp"}, {"id": 7, "name": "sun"}],
    }
    (tmp_path / "a.json").write_text(json.dumps(coco), encoding="utf-8")
    vision_image.write(tmp_path / "a.png", drawn_image((4, 4), None))
    config = tmp_path / "bright.yml"
    dataset = f"{{type: CocoDetection, root: {tmp_path.as_posix()!r}, annotations: {file}}}"
    config.write_text(f"domain: detection\ndata: {{eval: {{dataset: {dataset}}}}}\n", encoding="utf-8")
    facts = DOMAIN.describe(bind_experiment(load(config)), Bright(), tuple(labels))
    assert facts.get("category_ids") == ids and "draw_threshold" in facts


def test_interpret():
    sample = Sample(
        np.zeros((40, 40, 3), np.uint8), warp=Warp.letterbox((10, 20), (40, 40)), source_size=(10, 20)
    )
    outputs = {
        # Scaled by 2 and moved down by 10: outside on the left, wholly outside above, inside, low, padding, not finite
        "boxes": np.array(
            [[-4, 14, 8, 20], [0, 0, 10, 9], [2, 12, 6, 30], [0, 10, 9, 19], [0] * 4, [np.nan] * 4],
            np.float32,
        ),
        "scores": np.array([0.9, 0.8, 0.7, 0.2, 0, 0.9], np.float32),
        "labels": np.array([1, 0, 2, 0, 0, 0], np.int32),
    }
    found = interpret(outputs, sample, ("a", "b"), 0.5)
    assert [(box.label, box.category_id, box.bbox) for box in found] == [
        ("b", 1, (0, 2, 4, 5)),
        ("2", 2, (1, 1, 3, 10)),
    ]
    assert [round(box.score, 6) for box in found] == [0.9, 0.7]
    with pytest.raises(
        FormatError, match=r"does not detect objects\n  received: outputs heatmap\n  allowed: boxes"
    ):
        interpret({"heatmap": np.zeros(1)}, sample, (), 0.5)


def test_artifacts_of_other_domains(tmp_path: Path):
    other = artifact(domain="classification").save(tmp_path / "classification")
    with pytest.raises(
        FormatError, match=r"another domain than detection\n  received: domain: classification"
    ):
        detection.predictor(other)
    with pytest.raises(InputError, match=r"unknown model"):
        detection.predictor("yolo_from_nowhere")
    with pytest.raises(AttributeError, match=r"'detection' has no attribute 'nothing'"):
        detection.nothing  # noqa: B018


def test_options_of_the_tool(folder: Path):
    def opened(**options: object) -> ObjectDetector:
        found = open_predictor(folder, options=options)
        assert isinstance(found, ObjectDetector)
        return found

    assert opened().slicing is None and opened().tracking is None
    assert opened(slice_infer=True).slicing == Slicing()
    every = opened(
        slice_infer=True,
        slice_size=[320, 480],
        overlap_ratio=[0.1, 0.2],
        combine_method="nms",
        match_metric="iou",
        match_threshold=0.6,
        batch_size=5,
    )
    assert every.slicing == Slicing((320, 480), (0.1, 0.2), True, "nms", "iou", 0.6)
    assert every.runner.batch_size == 5
    assert opened(tracker="bytetrack").tracking == ByteTrackOptions(new=0.5)
    assert opened(tracker="bytetrack", threshold=0.95).tracking == ByteTrackOptions(0.95, 0.1, 0.95)
    assert opened(tracker="bytetrack", threshold=0.05).tracking == ByteTrackOptions(0.05, 0.05, 0.05)
    every_one = {"track_high_threshold": 0.6, "track_low_threshold": 0.2, "track_new_threshold": 0.7}
    more = {"track_match_threshold": 0.9, "track_buffer": 5, "track_per_class": False}
    tracking = opened(tracker="bytetrack", **every_one, **more).tracking
    assert tracking == ByteTrackOptions(0.6, 0.2, 0.7, 5, per_class=False, match=0.9)
    with pytest.raises(ConfigError, match=r"nothing is tracked\n.*\n.*--tracker bytetrack"):
        opened(track_buffer=3)
    assert opened(slice_infer=True, slice_whole=False, match_per_class=False).slicing == Slicing(
        whole=False, per_class=False
    )
    with pytest.raises(ConfigError, match=r"nothing is sliced\n.*\n.*--slice_infer"):
        opened(slice_size=[320, 320])
    with pytest.raises(ConfigError, match=r"unknown tracker\n  received: sort\n  allowed: bytetrack"):
        opened(tracker="sort")
