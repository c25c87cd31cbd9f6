"""detection.metrics: hand-computed scores, and the published numbers of the cases in OAR_SHARED/data."""

from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest

from detection.metrics import ClassScore, CocoKeypoints, CocoMap, VocMap, class_table, voc_ap
from framework.config import Kind, bind
from framework.core.errors import ConfigError, InputError, MissingExtraError
from framework.engine.details import DetailedMetric

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[4] / "shared"))
CASES = SHARED / "data" / "det_metric_cases"
needs_cases = pytest.mark.skipif(not CASES.is_dir(), reason="OAR_SHARED has no data/det_metric_cases")
Box = tuple[float, float, float, float]
Truth = tuple[Box, int] | tuple[Box, int, int]  # box, label and kind (1 unless given)
Guess = tuple[Box, int, float]  # box, label, score


def batch(
    images: list[tuple[list[Truth], list[Guess]]],
    size: tuple[int, int] = (10_000, 10_000),
    matrix: Any = None,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """(outputs, batch) in float64, padded with something that would count if it were looked at."""
    rows, columns = (1 + max(len(one[which]) for one in images) for which in (0, 1))
    count = len(images)
    truth = {
        "boxes": np.full((count, rows, 4), [0.0, 0, 50, 50]),
        "labels": np.zeros((count, rows), np.int32),
        "kinds": np.zeros((count, rows), np.int8),
        "matrix": np.array([np.eye(3) if matrix is None else matrix] * count),
        "size": np.array([size] * count),
    }
    outputs = {
        "boxes": np.full((count, columns, 4), [0.0, 0, 50, 50]),
        "scores": np.zeros((count, columns)),
        "labels": np.zeros((count, columns), np.int32),
    }
    for row, (truths, guesses) in enumerate(images):
        for place, (box, label, *kind) in enumerate(truths):
            truth["boxes"][row, place], truth["labels"][row, place] = box, label
            truth["kinds"][row, place] = kind[0] if kind else 1
        for place, (box, label, score) in enumerate(guesses):
            outputs["boxes"][row, place], outputs["labels"][row, place] = box, label
            outputs["scores"][row, place] = score
    return outputs, truth


def scores(
    metric: Any, images: list[Any], names: tuple[str, ...] = ("a", "b"), **more: Any
) -> dict[str, float]:
    collector = metric.start(names)
    for start in range(0, len(images), 2):  # several batches
        collector.update(*batch(images[start : start + 2], **more))
    return collector.result()


A: Box = (0, 0, 10, 10)
B: Box = (20, 20, 60, 60)
FAR: Box = (500, 500, 520, 520)


# ---- VOC ----


@pytest.mark.parametrize(
    ("recall", "precision", "area", "eleven"),
    [
        ([], [], 0, 0),
        ([1.0], [1.0], 1, 1),
        ([0.5], [1.0], 0.5, 6 / 11),
        ([0.5, 0.5, 1.0], [1.0, 0.5, 2 / 3], 0.5 + 0.5 * 2 / 3, (6 + 5 * 2 / 3) / 11),
        ([0.0, 0.5], [0.0, 0.5], 0.25, 6 * 0.5 / 11),
        ([0.1, 0.3], [1.0, 1.0], 0.3, 4 / 11),  # levels that are met exactly
    ],
)
def test_average_precision_of_a_curve(recall: Any, precision: Any, area: float, eleven: float) -> None:
    curve = np.array(recall, np.float64), np.array(precision, np.float64)
    assert voc_ap(*curve) == pytest.approx(area) and voc_ap(*curve, "11point") == pytest.approx(eleven)


def test_voc_right_wrong_and_twice() -> None:
    """By score: right, the same object again, right on the other image, beside everything. Three objects."""
    images = [
        ([(A, 0), (B, 0)], [(A, 0, 0.9), (A, 0, 0.8), (FAR, 0, 0.1)]),
        ([(A, 0)], [((0, 0, 10, 9), 0, 0.7)]),
    ]
    # precision 1, 1/2, 2/3, 1/2 at recall 1/3, 1/3, 2/3, 2/3
    assert scores(VocMap(), images) == {"mAP": pytest.approx(1 / 3 + 1 / 3 * 2 / 3)}


def test_voc_threshold_is_included_and_classes_are_apart() -> None:
    half: Box = (0, 0, 10, 5)  # IoU 0.5 with A
    assert scores(VocMap(), [([(A, 0)], [(half, 0, 0.9)])])["mAP"] == 1
    assert scores(VocMap(0.51), [([(A, 0)], [(half, 0, 0.9)])])["mAP"] == 0
    assert scores(VocMap(), [([(A, 0)], [(A, 1, 0.9)])])["mAP"] == 0
    # the mean of a class that is found and one that is not; what was guessed of the third is nobody's
    assert scores(VocMap(), [([(A, 0), (B, 1)], [(A, 0, 0.9), (A, 2, 0.9)])], ("a", "b", "c"))["mAP"] == 0.5


def test_voc_objects_to_ignore_are_neither_right_nor_wrong() -> None:
    images: list[Any] = [([(A, 0, 2), (B, 0)], [(A, 0, 0.9), (A, 0, 0.8), (B, 0, 0.7)])]
    assert scores(VocMap(), images)["mAP"] == 1
    collector = VocMap().start(("a", "b"))
    collector.update(*batch(images))
    assert collector.by_class() == [ClassScore("a", 1, 1.0, 1.0), ClassScore("b", 0, None, None)]
    at_thirty = VocMap(0.3).start(("a",))
    at_thirty.update(*batch(images))
    assert at_thirty.by_class() == [ClassScore("a", 1, 1.0, None)]


def test_boxes_go_back_to_the_source_and_are_cut_there() -> None:
    """The input is the source halved and moved by (5, 0); a box that hangs over the edge is cut like the object."""
    matrix = [[2, 0, -10], [0, 2, 0], [0, 0, 1]]
    images: list[Any] = [([((5, 0, 15, 10), 0)], [((-100, 0, 15, 10), 0, 0.5)])]
    for metric, first in ((VocMap(0.99), "mAP"), (CocoMap(), "AP")):
        assert scores(metric, images, size=(20, 20), matrix=matrix)[first] == pytest.approx(1)
        assert scores(metric, images, size=(20, 20))[first] < 0.5


def test_a_batch_of_float32_and_of_nothing() -> None:
    outputs, truth = batch([([(A, 0)], [])])
    for metric, first in ((VocMap(), "mAP"), (CocoMap(), "AP")):
        collector = metric.start(("a",))
        collector.update(
            {name: value[:0] for name, value in outputs.items()},
            {name: value[:0] for name, value in truth.items()},
        )
        collector.update(
            outputs,
            {name: value.astype(np.float32) for name, value in truth.items()} | {"labels": truth["labels"]},
        )
        assert collector.result()[first] == 0 and collector.higher_is_better


# ---- COCO ----


def test_coco_perfect_and_by_size() -> None:
    """A is small (area 100), B medium (1600); nothing is large."""
    found = scores(CocoMap(), [([(A, 0), (B, 1)], [(A, 0, 0.9), (B, 1, 0.8)])])
    assert found == {
        **dict.fromkeys(("AP", "AP50", "AP75", "AP_small", "AP_medium"), pytest.approx(1)),
        **dict.fromkeys(("AR_1", "AR_10", "AR_100", "AR_small", "AR_medium"), pytest.approx(1)),
    }
    assert next(iter(found)) == "AP"


def test_coco_iou_decides_at_how_many_thresholds() -> None:
    """IoU 0.72: right at 0.5, 0.55, 0.6, 0.65 and 0.7."""
    found = scores(CocoMap(), [([((0, 0, 100, 100), 0)], [((0, 0, 100, 72), 0, 0.5)])])
    assert (found["AP50"], found["AP75"]) == (pytest.approx(1), 0) and found["AP"] == pytest.approx(0.5)


def test_coco_annotated_areas_choose_the_size() -> None:
    outputs, truth = batch([([((0, 0, 100, 100), 0)], [((0, 0, 100, 100), 0, 0.5)])])
    collector = CocoMap().start(("a",))
    collector.update(outputs, truth | {"areas": np.array([[500.0, 0]])})
    assert "AP_small" in collector.result() and "AP_large" not in collector.result()


def test_coco_crowds_may_be_found_often() -> None:
    crowd: Box = (100, 100, 300, 300)
    inside = [((110 + 20 * n, 110, 125 + 20 * n, 150), 0, 0.9) for n in range(4)]
    assert scores(CocoMap(), [([(crowd, 0, 2), (A, 0)], [*inside, (A, 0, 0.5)])])["AP"] == pytest.approx(1)
    assert scores(CocoMap(), [([(A, 0)], [*inside, (A, 0, 0.5)])])["AP"] == pytest.approx(0.2, abs=0.01)


def test_coco_by_class_and_its_table() -> None:
    collector = CocoMap().start(("a", "bee", "c"))
    collector.update(*batch([([(A, 0), (B, 1), (B, 1, 2)], [(A, 0, 0.9), ((20, 20, 60, 49), 1, 0.9)])]))
    rows = collector.by_class()
    assert [(row.name, row.objects) for row in rows] == [("a", 1), ("bee", 1), ("c", 0)]
    assert rows[0].ap == pytest.approx(1) and rows[2].ap is rows[2].ap50 is None
    assert rows[1].ap50 == pytest.approx(1) and rows[1].ap == pytest.approx(0.5)  # IoU 29/40: five thresholds
    assert class_table(rows).splitlines() == [
        "class  objects     AP   AP50",
        "a            1  100.0  100.0",
        "bee          1   50.0  100.0",
        "c            0      -      -",
    ]
    first = collector.result()
    collector.update(*batch([([(A, 0)], [])]))
    assert collector.result()["AP"] < first["AP"]  # another batch after a result counts


# ---- keypoints ----


def points(*xyv: tuple[float, float, float]) -> np.ndarray:
    return np.array([[xyv]], np.float64)


def keypoint_batch(truth: np.ndarray, guess: np.ndarray, area: float, image_id: int = 7) -> tuple[Any, Any]:
    low, high = truth[0, 0, :, :2].min(axis=0), truth[0, 0, :, :2].max(axis=0)
    return (
        {"keypoints": guess, "scores": np.array([[0.9]])},
        {
            "boxes": np.concatenate([low, high])[None, None],
            "labels": np.zeros((1, 1), np.int32),
            "kinds": np.ones((1, 1), np.int8),
            "keypoints": truth,
            "areas": np.array([[area]]),
            "image_id": np.array([[0, image_id]]),
            "matrix": np.eye(3)[None],
            "size": np.array([[500, 500]]),
        },
    )


def test_keypoint_similarity_by_hand() -> None:
    """Off by d at one of two points: exp(-d^2 / (2 area (2 sigma)^2)) there, 1 at the other; unlabelled ones are left
    out. With sigma 0.1, area 5000 and d = 20: exp(-400 / (2 * 5000 * 0.04)) = exp(-1), so (1 + 0.3679) / 2 = 0.684."""
    truth = points((100, 100, 2), (150, 150, 1), (0, 0, 0))
    guess = points((100, 100, 0.3), (150, 170, 0.3), (400, 0, 0.3))
    metric = CocoKeypoints((0.1, 0.1, 0.1))
    collector = metric.start(("person",))
    collector.update(*keypoint_batch(truth, guess, 5000))
    found = collector.result()
    assert found["AP50"] == pytest.approx(1) and found["AP75"] == 0
    assert found["AP"] == pytest.approx(0.4)  # right at 0.5, 0.55, 0.6 and 0.65
    assert list(found) == ["AP", "AP50", "AP75", "AP_medium", "AR", "AR50", "AR75", "AR_medium"]


def test_the_table_of_keypoints_by_hand() -> None:
    """As above: exp(-1) at the second point, which is therefore not found; the third is unlabelled."""
    truth = points((100, 100, 2), (150, 150, 1), (0, 0, 0))
    collector = CocoKeypoints((0.1, 0.1, 0.1)).start(("nose", "hand", "foot"))
    assert isinstance(collector, DetailedMetric)
    collector.update(*keypoint_batch(truth, points((100, 100, 1), (150, 170, 1), (400, 0, 1)), 5000))
    table = collector.details().classes
    assert table.columns == ("keypoint", "similarity", "recall", "labelled")
    assert table.rows == (
        ("nose", 1.0, 1.0, 1),
        ("hand", pytest.approx(math.exp(-1)), 0.0, 1),
        ("foot", None, None, 0),
    )
    far = points((300, 300, 1), (300, 300, 1), (300, 300, 1))  # a pose of nobody: the second person has none
    collector.update(*keypoint_batch(truth, far, 5000, image_id=8))
    assert [row[1:] for row in collector.details().classes.rows] == [
        (1.0, 0.5, 2),
        (pytest.approx(math.exp(-1)), 0.0, 2),
        (None, None, 0),
    ]
    crowd, batch = keypoint_batch(truth, truth, 5000, image_id=9)
    collector.update(crowd, batch | {"kinds": np.full((1, 1), 2, np.int8)})
    assert [row[3] for row in collector.details().classes.rows] == [2, 2, 0]
    unnamed = CocoKeypoints((0.1, 0.1)).start(()).details().classes.rows
    assert [row[0] for row in unnamed] == ["0", "1"]


def test_each_person_takes_one_pose() -> None:
    """The surest pose takes the person that it is nearest to; a second one of the same person takes nobody."""
    one, other = points((10, 10, 2), (90, 90, 2)), points((210, 210, 2), (290, 290, 2))
    collector = CocoKeypoints((0.05, 0.05)).start(("a", "b"))
    for guess in (one, one, other):
        collector.update(*keypoint_batch(one if guess is one else other, guess, 6400, image_id=7))
    rows = collector.details().classes.rows  # the person at 10 is annotated twice, and found twice
    assert rows == (("a", 1.0, 1.0, 3), ("b", 1.0, 1.0, 3))
    collector.update(*keypoint_batch(points((400, 10, 2), (480, 90, 2)), one, 6400, image_id=7))
    assert [row[1:] for row in collector.details().classes.rows] == [(1.0, 0.75, 4)] * 2


def test_parts_of_one_image_are_judged_together() -> None:
    """Two persons of image 7 in two rows, each guessed as the other one: both are right."""
    one, other = points((10, 10, 2), (90, 90, 2)), points((210, 210, 2), (290, 290, 2))
    for second, want in ((7, 1), (8, 0)):
        collector = CocoKeypoints((0.05, 0.05)).start(("person",))
        collector.update(*keypoint_batch(one, other, 6400))
        collector.update(*keypoint_batch(other, one[..., :2], 6400, second))
        assert collector.result()["AP"] == pytest.approx(want)


# ---- errors ----


def test_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    for metric in (CocoMap(), VocMap()):
        with pytest.raises(InputError, match="no object to find"):
            scores(metric, [([(A, 0, 2)], [(A, 0, 0.5)])])
    with pytest.raises(InputError, match="no object to find"):
        CocoKeypoints().start(()).result()
    with pytest.raises(ConfigError, match=r"CocoKeypoints\.sigmas(?s:.)*17 sigmas(?s:.)*2 keypoints"):
        two = points((1, 1, 2), (9, 9, 2))
        CocoKeypoints().start(()).update(*keypoint_batch(two, two, 9))
    with pytest.raises(ConfigError, match="sigmas must be a number above 0"):
        CocoKeypoints((0.1, 0.0))
    with pytest.raises(ConfigError, match=r"VocMap\.iou_threshold"):
        VocMap(0)
    monkeypatch.setitem(sys.modules, "faster_coco_eval", None)
    for metric in (CocoMap(), CocoKeypoints()):
        with pytest.raises(MissingExtraError, match=r"oar-toolkit\[detection\]"):
            metric.start(())


# ---- published numbers ----


@needs_cases
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_coco_numbers_of_pycocotools(dtype: Any) -> None:
    folder = CASES / "test_coco_eval"
    truth = json.loads((folder / "gts" / "sampled_gts_bbox_area.json").read_text(encoding="utf-8"))
    guesses = json.loads((folder / "cocoapi_results.json").read_text(encoding="utf-8"))
    categories = sorted(one["id"] for one in truth["categories"])
    number = {key: index for index, key in enumerate(categories)}
    collector = CocoMap().start(tuple(map(str, categories)))

    def corners(one: dict[str, Any]) -> Box:
        x, y, width, height = one["bbox"]
        return x, y, x + width, y + height

    # Many scores are equal: the official order is that of the image ids.
    for image in sorted(truth["images"], key=lambda one: one["id"]):
        mine = [one for one in truth["annotations"] if one["image_id"] == image["id"]]
        objects: list[Truth] = [
            (corners(one), number[one["category_id"]], 1 + one["iscrowd"]) for one in mine
        ]
        found: list[Guess] = [
            (corners(one), number[one["category_id"]], one["score"])
            for one in guesses
            if one["image_id"] == image["id"]
        ]
        outputs, packed = batch([(objects, found)], (image["height"], image["width"]))
        packed["areas"] = np.array([[*(one["area"] for one in mine), 0.0]])
        narrow = {name: packed[name].astype(dtype) for name in ("boxes", "matrix", "areas")}
        collector.update({**outputs, "boxes": outputs["boxes"].astype(dtype)}, packed | narrow)
    want = (0.503647, 0.696973, 0.571667, 0.593252, 0.557991, 0.489363)
    want += (0.386813, 0.593680, 0.595353, 0.654764, 0.603130, 0.553744)
    np.testing.assert_allclose(list(collector.result().values()), want, atol=1e-6)


def read_text_case(folder: Path, parse: Any) -> dict[str, list[Any]]:
    return {
        path.name: [
            parse(line.split()) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        for path in sorted(folder.glob("*.txt"))
    }


@needs_cases
@pytest.mark.parametrize(
    ("threshold", "eleven", "area"),
    [
        # There 0.3333333333 for eleven points: its level 0.6, off by a rounding, is missed by the recall 9 / 15, where
        # the precision is 9 / 23.
        (0.1, 0.3333333333 + 9 / 23 / 11, 0.3371980676),
        (0.3, 0.2683982683, 0.2456866804),
        (0.5, 0.0303030303, 0.0222222222),
        (0.75, 0.0, 0.0),
    ],
)
def test_voc_numbers_of_a_toy_case(threshold: float, eleven: float, area: float) -> None:
    """From tests/test_eval_pascal.py of rafaelpadilla/review_object_detection_metrics: x, y, width, height."""
    folder = CASES / "test_case_1"

    def box(four: list[str]) -> Box:
        x, y, width, height = map(float, four)
        return x, y, x + width + 1, y + height + 1  # that code takes both ends for part of the box

    truths = read_text_case(folder / "gts", lambda row: (box(row[1:]), 0))
    guesses = read_text_case(folder / "dets", lambda row: (box(row[2:]), 0, float(row[1])))
    images = [(truths[name], guesses.get(name, [])) for name in truths]
    for method, want in (("11point", eleven), ("area", area)):
        found = scores(VocMap(threshold, method), images, ("object",))  # pyright: ignore[reportArgumentType]
        assert found["mAP"] == pytest.approx(want, abs=1e-9)


@needs_cases
def test_voc_numbers_of_85_images() -> None:
    """What main.py of Cartucho/mAP @ 3605865a prints, with its two digits extended to eight."""
    folder = CASES / "voc_style_85img"

    def box(four: list[str]) -> Box:
        x0, y0, x1, y1 = map(float, four)
        return x0, y0, x1 + 1, y1 + 1

    truths = read_text_case(folder / "ground-truth", lambda row: (box(row[1:5]), row[0]))
    guesses = read_text_case(folder / "detection-results", lambda row: (box(row[2:]), row[0], float(row[1])))
    names = sorted({name for rows in (*truths.values(), *guesses.values()) for _, name, *_ in rows})
    images = [
        (
            [(one, names.index(name)) for one, name in truths[file]],
            [(one, names.index(name), score) for one, name, score in guesses[file]],
        )
        for file in truths
    ]
    collector = VocMap().start(names)
    collector.update(*batch(images))
    assert collector.result()["mAP"] == pytest.approx(MAP_OF_85, abs=1e-9)
    by_name = {row.name: row.ap for row in collector.by_class()}
    assert by_name["backpack"] == pytest.approx(0.2273, abs=5e-5)
    assert by_name["sofa"] == pytest.approx(0.9048, abs=5e-5)


MAP_OF_85 = 0.3104771850


def test_from_a_configuration() -> None:
    kind = Annotated[Any, Kind("metric")]
    source = {"type": "VocMap", "iou_threshold": 0.3, "method": "11point"}
    assert bind(source, kind, ("detection",)) == VocMap(0.3, "11point")
    assert bind({"type": "CocoMap"}, kind, ("detection",)) == CocoMap()
    assert bind({"type": "CocoKeypoints", "sigmas": [0.1]}, kind, ("detection",)) == CocoKeypoints((0.1,))


@pytest.mark.parametrize("metric", [CocoMap(), VocMap()])
def test_the_table_of_an_evaluation(metric) -> None:
    """What `by_class` says, with the number of the objects; a class without an object has no scores."""
    collector = metric.start(("a", "b", "c"))
    collector.update(*batch([([(A, 1)], [(A, 1, 0.9)])]))
    details = collector.details()
    assert isinstance(collector, DetailedMetric) and details.more == ("(nothing)",)
    assert details.confusion is not None and details.confusion.tolist() == np.diag([0, 1, 0, 0]).tolist()
    assert [(name, one.recall.tolist()) for name, one in details.curves.items()] == [("b", [1.0])]
    assert details.classes.columns == ("class", "ap", "ap50", "objects")
    assert details.classes.rows == (
        ("a", None, None, 0),
        ("b", pytest.approx(1.0), pytest.approx(1.0), 1),
        ("c", None, None, 0),
    )
