from __future__ import annotations

import numpy as np
import pytest

from framework.vision.normalize import Normalize
from ocr.text.characters import CharacterSet
from ocr.text.postprocess import DBPostprocess
from ocr.text.stages import (
    DetectOptions,
    Detector,
    OrientationClassifier,
    OrientationOptions,
    RecognizeOptions,
    Recognizer,
    RecognizerGroup,
    _fill,
    fit_bucket,
)

HALF = Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5), bgr=True)


class FakeEngine:
    """Answers with `answer(inputs)` and remembers what it was asked."""

    def __init__(self, answer, takes_any_shape: bool = False) -> None:  # type: ignore[no-untyped-def]
        self.answer, self.asked, self.takes_any_shape = answer, [], takes_any_shape

    def __call__(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.asked.append(inputs)
        return self.answer(inputs)

    start = __call__

    def prepare(self, shapes) -> None:  # type: ignore[no-untyped-def]
        self.prepared = list(shapes)


@pytest.mark.parametrize(
    ("wanted", "resized", "bucket"),
    [
        ((320, 320), (320, 320), (320, 320)),
        ((32, 320), (32, 320), (320, 320)),  # padded, never made larger
        ((321, 320), (320, 319), (320, 320)),  # 0.997 of the size wanted is enough
        ((330, 320), (330, 320), (640, 320)),  # 0.9697 is not
        ((640, 600), (640, 600), (640, 640)),
        ((1000, 500), (640, 320), (640, 320)),  # too large: 0.64 is the most that any allows
        ((2000, 100), (640, 32), (640, 320)),
        ((1, 2000), (1, 640), (320, 640)),
    ],
)
def test_fit_bucket(wanted, resized, bucket):
    for sides in ((320, 640), (640, 320)):
        assert fit_bucket(wanted, sides, 0.97) == (resized, bucket)


# -- detector ----------------------------------------------------------------------------------------------------------


def box_map(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    probability = np.zeros(inputs["image"].shape[:3], np.float32)
    probability[:, 24:72, 48:144] = 0.9
    probability[:, 200:280, 200:280] = 1  # in the padding
    return {"probability": probability}


def test_the_detector_pads_and_scales_back():
    engine = FakeEngine(box_map)
    detector = Detector(engine, DetectOptions(HALF, sides=(320, 640)))  # type: ignore[arg-type]
    image = np.full((100, 200, 3), 77, np.uint8)
    quads, scores = detector(image)
    (asked,) = engine.asked
    assert asked["image"].shape == (1, 320, 320, 3) and asked["image"].dtype == np.uint8
    assert asked["size"].tolist() == [[96, 192]] and asked["size"].dtype == np.int32
    assert (asked["image"][0, :96, :192] == 77).all() and asked["image"].sum() == 77 * 96 * 192 * 3
    # 95 x 47 pixels grow by area * 1.5 / perimeter = 23.6 on every side; the map is 0.96 of the image.
    expected = np.array([[25, 0], [174, 0], [174, 99], [25, 99]])
    assert quads.shape == (1, 4, 2) and quads.dtype == np.float32
    assert np.abs(quads[0] - expected).max() <= 2 and abs(scores[0] - 0.9) < 0.03  # the mask has a row more
    assert detector.buckets == 4


def test_a_detector_without_sides_sees_every_size():
    engine = FakeEngine(lambda i: {"probability": np.zeros(i["image"].shape[:3], np.float32)})
    detector = Detector(engine, DetectOptions(HALF, sides=()))  # type: ignore[arg-type]
    quads, scores = detector(np.zeros((1, 1, 3), np.uint8))
    assert engine.asked[0]["image"].shape == (1, 32, 32, 3) and detector.buckets is None
    assert quads.shape == (0, 4, 2) and scores.shape == (0,)


def test_an_engine_of_any_shape_gets_no_larger_image_than_wanted():
    engine = FakeEngine(box_map, takes_any_shape=True)
    detector = Detector(engine, DetectOptions(HALF, sides=(320, 640)))  # type: ignore[arg-type]
    quads, _ = detector(np.full((290, 330, 3), 77, np.uint8))
    assert engine.asked[0]["image"].shape == (1, 288, 320, 3) and (engine.asked[0]["image"] == 77).all()
    assert engine.asked[0]["size"].tolist() == [[288, 320]] and len(quads) == 2


def test_quads_of_a_detector_of_outlines_are_the_smallest_rectangles():
    engine = FakeEngine(box_map)
    quads = Detector(engine, DetectOptions(HALF, sides=(320,)))(np.zeros((320, 320, 3), np.uint8))[0]  # type: ignore[arg-type]
    poly = DetectOptions(HALF, sides=(320,), postprocess=DBPostprocess(box_type="poly"))
    detector = Detector(engine, poly)  # type: ignore[arg-type]
    found, curved, faint, _ = detector.find_lines(np.zeros((320, 320, 3), np.uint8))
    assert detector.finds_outlines and not curved and not faint
    np.testing.assert_allclose(found, quads, atol=3)
    np.testing.assert_array_equal(detector(np.zeros((320, 320, 3), np.uint8))[0], found)


# -- orientation classifier --------------------------------------------------------------------------------------------


def brightness(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    share = inputs["image"][:, 0, 0, 0] / np.float32(255)
    return {"probability": np.stack([1 - share, share], axis=1)}


def test_the_orientation_classifier_works_in_full_batches():
    engine = FakeEngine(brightness)
    classify = OrientationClassifier(engine, OrientationOptions(HALF, size_hw=(8, 16), batch=2))  # type: ignore[arg-type]
    crops = [np.full((4, 6, 3), value, np.uint8) for value in (0, 255, 51)]
    np.testing.assert_allclose(classify(crops), [[1, 0], [0, 1], [0.8, 0.2]], atol=1e-6)
    assert [asked["image"].shape for asked in engine.asked] == [(2, 8, 16, 3)] * 2
    assert [asked["width"].tolist() for asked in engine.asked] == [[12, 12], [12, 0]]
    assert classify([]).shape == (0, 2) and classify.buckets == 1


def test_fill():
    batch, widths = np.ones((2, 4, 6, 3), np.uint8), np.array([5, 6], np.int32)
    filled, wide = _fill(batch, widths, 3)
    assert filled.shape == (3, 4, 6, 3) and filled.dtype == np.uint8 and filled[2].max() == 0
    assert wide.tolist() == [5, 6, 0] and wide.dtype == np.int32
    assert _fill(batch, widths, 2)[0] is batch and _fill(batch, widths, 1)[1] is widths


# -- recogniser --------------------------------------------------------------------------------------------------------


def spell(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A step for each 8 columns; the first one says the class that the line's first pixel names."""
    rows, _, width, _ = inputs["image"].shape
    indices, probabilities = np.zeros((rows, width // 8), np.int32), np.ones((rows, width // 8), np.float32)
    indices[:, 0] = inputs["image"][:, 0, 0, 0]
    probabilities[:, 0] = 0.5
    return {"indices": indices, "probabilities": probabilities}


def recognizer(**options) -> Recognizer:  # type: ignore[no-untyped-def]
    how = RecognizeOptions(HALF, **{"widths": (160, 320, 640), "columns": 640, "batch": 3, **options})
    return Recognizer(FakeEngine(spell), how, CharacterSet.from_symbols("abcdefgh"))  # type: ignore[arg-type]


def plan(read: Recognizer, *wanted: float) -> list[tuple[int, int, list[int]]]:
    return [(batch.width, batch.rows, list(batch.lines)) for batch in read._plan(wanted)]


def test_plan():
    read = recognizer()
    assert plan(read) == []
    assert plan(read, 100) == [(160, 1, [0])]
    assert plan(read, 160.5) == [(320, 1, [0])]
    # 700 is squeezed into 640 columns; 300 goes with that size, alone, so that the rest is a batch of 160 columns.
    assert plan(read, 100, 300, 150, 700, 90) == [(640, 1, [3]), (640, 1, [1]), (160, 3, [2, 0, 4])]
    assert read.buckets == 6 and recognizer(widths=()).buckets is None
    sizes = {(w, rows) for lines in ([1], [200] * 5, [900, 5, 5]) for w, rows, _ in plan(read, *lines)}
    assert len(sizes) <= read.buckets


def test_an_engine_of_any_shape_gets_no_empty_lines():
    read = recognizer()
    read.engine = FakeEngine(spell, takes_any_shape=True)  # type: ignore[assignment]
    assert plan(read, 100, 300, 150, 700, 90) == [(640, 1, [3]), (304, 2, [1, 2]), (160, 2, [0, 4])]
    assert plan(read, *[10] * 4) == [(160, 3, [0, 1, 2]), (160, 1, [3])]
    crops = [np.full((48, 80, 3), number, np.uint8) for number in (1, 2)]
    assert [text.text for text, _, _ in read(crops)] == ["a", "b"]
    assert [asked["image"].shape for asked in read.engine.asked] == [(2, 48, 160, 3)]  # type: ignore[attr-defined]
    engine = FakeEngine(brightness, takes_any_shape=True)
    classify = OrientationClassifier(engine, OrientationOptions(HALF, size_hw=(8, 16), batch=2))  # type: ignore[arg-type]
    np.testing.assert_allclose(
        classify([crop[:4, :6] for crop in crops[:1]]), [[254 / 255, 1 / 255]], atol=1e-6
    )
    assert engine.asked[0]["width"].tolist() == [12]


def test_plan_of_upstream():
    assert plan(recognizer(widths=(), batch=2), 400.9, 10, 330) == [(330, 2, [1, 2]), (400, 1, [0])]
    assert plan(recognizer(widths=(), batch=2, height=24), 10) == [(160, 1, [0])]


def test_lines_come_back_in_their_order():
    read = recognizer()
    widths = (50, 300, 20, 1000, 160)
    crops = [np.full((48, w, 3), n + 1, np.uint8) for n, w in enumerate(widths)]
    results = read(crops)
    assert [(text.text, text.score, steps) for text, steps, _ in results] == [
        ("a", 0.5, 20), ("b", 0.5, 80), ("c", 0.5, 20), ("d", 0.5, 80), ("e", 0.5, 20),
    ]  # fmt: skip
    assert [share for _, _, share in results] == [50 / 160, 300 / 640, 20 / 160, 1.0, 1.0]
    assert [asked["image"].shape[:3] for asked in read.engine.asked] == [
        (1, 48, 640),
        (1, 48, 640),
        (3, 48, 160),
    ]
    assert read([]) == []


def test_lines_are_made_wider_than_in_proportion():
    read = recognizer(width_scale=1.5)
    crops = [np.full((48, w, 3), n + 1, np.uint8) for n, w in enumerate((50, 120))]
    assert [(text.text, steps, share) for text, steps, share in read(crops)] == [
        ("a", 40, 75 / 320),
        ("b", 40, 180 / 320),
    ]


def test_of_several_recognisers_the_surer_reading_of_each_line_is_kept():
    def sure(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Of lines whose letter is above 3 alone, and then surer than `spell`."""
        out = spell(inputs)
        out["probabilities"][:, 0] = np.where(out["indices"][:, 0] > 3, 0.9, 0.1)
        return out

    latin, arabic = recognizer(), recognizer(widths=(640,))
    arabic.engine = FakeEngine(sure)  # type: ignore[assignment]
    arabic.characters = CharacterSet.from_symbols("ابتثجحخد", right_to_left=True)
    group = RecognizerGroup([latin, arabic])
    crops = [np.full((48, 50, 3), number, np.uint8) for number in (2, 5, 3)]
    found = group(crops)
    assert [(text.text, text.score, text.right_to_left) for text, _, _ in found] == [
        ("b", 0.5, False),
        ("ج", pytest.approx(0.9), True),
        ("c", 0.5, False),
    ]
    assert [(steps, share) for _, steps, share in found] == [(20, 50 / 160), (80, 50 / 640), (20, 50 / 160)]
    assert group([]) == [] and group.options is latin.options
    assert group.buckets == 6 + 2 and RecognizerGroup([latin, recognizer(widths=())]).buckets is None
    equal = RecognizerGroup([latin, recognizer(widths=(640,))])
    assert [steps for _, steps, _ in equal(crops)] == [20] * 3  # the first of equals


def test_a_line_of_one_pixel():
    ((text, steps, share),) = recognizer()([np.full((1, 1, 3), 8, np.uint8)])
    assert (text.text, steps, share) == ("h", 20, 48 / 160)
