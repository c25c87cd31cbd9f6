from __future__ import annotations

import math
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from framework.core.errors import MissingExtraError, ShapeError
from ocr.text.characters import CharacterSet
from ocr.text.postprocess import DBPostprocess, Text, apply_orientation, ctc_decode

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared"))

# ------------------------------------------------------------------------------------------------------------- DB


def one_line_map(size_hw=(32, 40)):
    """Pixels 4..23 x 10..13 at 0.9: an outline of 19 x 3 between centres."""
    probability = np.full(size_hw, 0.1, np.float32)
    probability[10:14, 4:24] = 0.9
    return probability


def test_one_line_by_hand():
    # Area 57, perimeter 44: it grows by 57 * 1.5 / 44 = 1.94 and is rounded to whole pixels: 2..25 x 8..15.
    quads, scores = DBPostprocess()(one_line_map(), (32, 40))
    assert isinstance(quads, np.ndarray) and quads.dtype == np.float32
    assert quads.tolist() == [[[2, 8], [25, 8], [25, 15], [2, 15]]]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, [0.9], rtol=1e-6)


def test_quads_are_scaled_to_the_source_with_its_own_ratio_each_way():
    quads, _ = DBPostprocess()(one_line_map(), (64, 120))
    assert np.array(quads).tolist() == [[[6, 16], [75, 16], [75, 30], [6, 30]]]


def test_padding_below_and_right_changes_nothing():
    padded = np.ones((48, 64), np.float32)
    padded[:32, :40] = one_line_map()
    quads, scores = DBPostprocess()(padded, (64, 120), valid_hw=(32, 40))
    expected, expected_scores = DBPostprocess()(one_line_map(), (64, 120))
    np.testing.assert_array_equal(quads, expected)
    np.testing.assert_array_equal(scores, expected_scores)


def test_dilation_widens_a_line_that_is_too_thin():
    thin = np.zeros((32, 40), np.float32)
    thin[10:13, 4:24] = 0.9  # 2 between centres, too thin
    assert len(DBPostprocess()(thin, (32, 40))[0]) == 0
    quads, scores = DBPostprocess(use_dilation=True, box_thresh=0.5)(thin, (32, 40))
    assert len(quads) == 1
    np.testing.assert_allclose(
        scores, 0.9 * 60 / (4 * 21), rtol=1e-6
    )  # the spread pixels are in the box, unlit


def test_box_thresh_and_score_modes():
    probability = np.zeros((32, 40), np.float32)
    probability[10:20, 4:24] = 0.8
    probability[10:15, 14:24] = 0.0  # an L: the rectangle has a quarter that is not lit
    fast, fast_scores = DBPostprocess(box_thresh=0.5)(probability, (32, 40))
    slow, slow_scores = DBPostprocess(box_thresh=0.5, score_mode="slow")(probability, (32, 40))
    np.testing.assert_array_equal(fast, slow)
    np.testing.assert_allclose(fast_scores, [0.8 * 0.75], rtol=1e-6)
    assert 0.78 < slow_scores[0] <= 0.8
    assert len(DBPostprocess(box_thresh=0.61)(probability, (32, 40))[0]) == 0


@pytest.mark.parametrize("box_type", ["quad", "poly"])
@pytest.mark.parametrize(
    "probability",
    [
        np.zeros((32, 32), np.float32),
        np.zeros((1, 1), np.float32),
        np.ones((1, 1), np.float32),
        np.full((9, 9), np.nan),
    ],
    ids=["empty", "dark pixel", "lit pixel", "nan"],
)
def test_maps_without_text(probability, box_type):
    quads, scores = DBPostprocess(box_type=box_type)(probability, (100, 100))
    assert len(quads) == len(scores) == 0
    assert scores.dtype == np.float32
    if box_type == "quad":
        assert np.asarray(quads).shape == (0, 4, 2)


def test_one_lit_pixel_is_no_text():
    probability = np.zeros((32, 32), np.float32)
    probability[5, 7] = 1
    assert len(DBPostprocess()(probability, (32, 32))[0]) == 0


def test_a_map_of_ones_is_one_region_inside_the_image():
    quads, scores = DBPostprocess()(np.ones((20, 30), np.float32), (40, 60))
    assert np.asarray(quads).tolist() == [[[0, 0], [59, 0], [59, 39], [0, 39]]]
    assert scores.tolist() == [1]


def test_candidates_are_limited():
    probability = np.zeros((640, 640), np.float32)
    for y in range(5):
        for x in range(5):
            probability[y::10, x::10] = 0.9  # 64 x 64 squares of 5 x 5
    assert len(DBPostprocess()(probability, (640, 640))[0]) == 1000
    quads, _ = DBPostprocess(max_candidates=10_000)(probability, (640, 640))
    assert len(quads) == 4096
    assert np.asarray(quads)[0, 0, 1] > 600  # the lowest come first


def test_boxes_small_in_the_source_are_dropped():
    # 7 x 23 in the map; 3.5 high after scaling, rounded to 4 and 8: dropped at 3, kept at 4.
    assert len(DBPostprocess()(one_line_map(), (32, 40))[0]) == 1
    assert len(DBPostprocess()(one_line_map(), (16, 40))[0]) == 1
    assert len(DBPostprocess()(one_line_map(), (12, 40))[0]) == 0


def test_polygons_follow_curved_text():
    image = Image.new("L", (128, 128))
    ImageDraw.Draw(image).arc((20, 20, 108, 108), 180, 360, fill=230, width=12)
    probability = np.asarray(image, np.float32) / 255
    polygons, scores = DBPostprocess(box_type="poly")(probability, (256, 256))
    (quad,), _ = DBPostprocess(box_thresh=0.2)(probability, (256, 256))
    assert isinstance(polygons, list) and len(polygons) == len(scores) == 1
    (polygon,) = polygons
    assert polygon.shape[0] > 8 and polygon.shape[1] == 2 and polygon.dtype == np.float32
    assert polygon.min() >= 0 and polygon.max() <= 255
    assert scores[0] > 0.8  # nearly all of the ring, where the quad has its empty middle as well

    def area(points):
        x, y = points.T
        return abs(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2

    lit = 4 * (probability > 0.3).sum()
    assert lit < area(polygon) < 2.5 * lit < area(quad)


def test_a_straight_polygon_is_the_rounded_rectangle():
    (polygon,), scores = DBPostprocess(box_type="poly")(one_line_map(), (32, 40))
    assert polygon.min(axis=0).tolist() == [2, 8]
    assert polygon.max(axis=0).tolist() == [25, 15]
    np.testing.assert_allclose(scores, [0.9], rtol=1e-6)


@pytest.mark.parametrize(
    ("probability", "received"),
    [
        (np.zeros((1, 8, 8), np.float32), r"float32 \[1, 8, 8\]"),
        (np.zeros((8, 8), np.uint8), r"uint8 \[8, 8\]"),
    ],
)
def test_maps_of_another_kind_are_refused(probability, received):
    with pytest.raises(ShapeError, match=rf"this is no probability map\n  received: {received}"):
        DBPostprocess()(probability, (8, 8))


@pytest.mark.parametrize("valid_hw", [(9, 8), (8, 9), (0, 8)])
def test_valid_part_outside_the_map_is_refused(valid_hw):
    with pytest.raises(ShapeError, match="the valid part is not inside the map"):
        DBPostprocess()(np.zeros((8, 8), np.float32), (8, 8), valid_hw)


def test_missing_pyclipper_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyclipper", None)
    with pytest.raises(MissingExtraError, match=r"'pyclipper'[\s\S]*oar-toolkit\[ocr\]"):
        DBPostprocess(box_type="poly")(one_line_map(), (32, 40))
    assert len(DBPostprocess()(np.zeros((8, 8), np.float32), (8, 8))[0]) == 0


def test_quads_grow_without_pyclipper(monkeypatch):
    with_clipper, _ = DBPostprocess()(one_line_map(), (32, 40))
    monkeypatch.setitem(sys.modules, "pyclipper", None)
    without, _ = DBPostprocess()(one_line_map(), (32, 40))
    assert len(without) == 1
    np.testing.assert_allclose(without, with_clipper, atol=1)


def text_like_map(seed, size_hw=(720, 960)):
    """Shrunk lines at all angles, noisy, some touching, some over the edge."""
    generator = np.random.default_rng(seed)
    image = Image.new("L", size_hw[::-1])
    draw = ImageDraw.Draw(image)
    for _ in range(50):
        x, y = generator.uniform(0, size_hw[1]), generator.uniform(0, size_hw[0])
        length, height = generator.uniform(4, 120), generator.uniform(2, 20)
        angle = generator.choice(
            [0, 0, np.pi / 2, generator.uniform(-np.pi, np.pi), generator.normal(0, 0.05)]
        )
        along = np.array([math.cos(angle), math.sin(angle)]) * length / 2
        across = np.array([-math.sin(angle), math.cos(angle)]) * height / 2
        corners = [(x, y) + s * along + t * across for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        draw.polygon([tuple(c) for c in corners], fill=int(generator.integers(110, 256)))
    noise = generator.normal(0, 0.04, size_hw)
    return np.clip(np.asarray(image, np.float32) / 255 + noise, 0, 1).astype(np.float32)


SETTINGS = [
    {"thresh": 0.3, "box_thresh": 0.5, "unclip_ratio": 1.6, "use_dilation": True},  # RapidOCR
    {"thresh": 0.3, "box_thresh": 0.6, "unclip_ratio": 1.5},  # PaddleOCR 2.x
    {"thresh": 0.2, "box_thresh": 0.45, "max_candidates": 3000, "unclip_ratio": 1.4},  # PP-OCRv6
    {"thresh": 0.3, "box_thresh": 0.6, "unclip_ratio": 2.0, "score_mode": "slow", "max_candidates": 25},
]


def assert_equals_rapidocr(probability, size_hw, settings):
    theirs = pytest.importorskip("rapidocr.ch_ppocr_det.utils", reason="the reference").DBPostProcess(
        **settings
    )
    expected, expected_scores = theirs(probability[None, None], size_hw)
    quads, scores = DBPostprocess(**settings)(probability, size_hw)
    np.testing.assert_array_equal(quads, np.reshape(expected, (-1, 4, 2)))
    np.testing.assert_allclose(scores, expected_scores, atol=1e-6)
    return len(scores)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_equals_rapidocr_on_drawn_lines(seed, settings):
    assert assert_equals_rapidocr(text_like_map(seed), (1111, 1777), settings) > 5


@pytest.mark.parametrize("settings", SETTINGS)
def test_equals_rapidocr_on_a_receipt(settings, receipt):
    probability, size_hw = receipt
    assert assert_equals_rapidocr(probability, size_hw, settings) >= 15


@pytest.fixture(scope="module")
def receipt():
    """The small detector's map of a receipt."""
    ort = pytest.importorskip("onnxruntime", reason="runs the reference detector")
    rapidocr = pytest.importorskip("rapidocr", reason="its wheel carries the detector")
    images = sorted((SHARED / "data" / "sroie" / "test" / "img").glob("*"))
    if not images:
        pytest.skip("no receipts: set OAR_SHARED to the folder of the shared data")
    image = Image.open(images[0]).convert("RGB")
    size_hw = (image.height, image.width)
    scaled = np.asarray(image.resize((640, 896), Image.Resampling.BILINEAR), np.float32)
    model = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_det_small.onnx"
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    batch = (scaled[..., ::-1] / 127.5 - 1).transpose(2, 0, 1)[None].astype(np.float32)
    return session.run(None, {"x": batch})[0][0, 0], size_hw


# ---------------------------------------------------------------------------------------------------- orientation


def test_orientation_turns_what_is_surely_upside_down():
    crops = [np.arange(12, dtype=np.uint8).reshape(2, 2, 3) for _ in range(4)]
    probabilities = np.array([[0.05, 0.95], [0.1, 0.9], [0.95, 0.05], [0.4, 0.6]], np.float64)
    turned_crops, turned = apply_orientation(crops, probabilities)
    assert turned.tolist() == [True, False, False, False]  # 0.9 is not above 0.9
    np.testing.assert_array_equal(turned_crops[0], crops[0][::-1, ::-1])
    assert turned_crops[1] is crops[1]
    assert apply_orientation(crops, probabilities, thresh=0.5)[1].tolist() == [True, True, False, True]
    none, turned = apply_orientation([], np.zeros((0, 2)))
    assert none == [] and turned.shape == (0,)


def test_orientation_wants_a_pair_for_each_crop():
    with pytest.raises(ShapeError, match=r"\[1, 2\]\n  allowed: \[2, 2\]"):
        apply_orientation([np.zeros((1, 1, 3), np.uint8)] * 2, np.zeros((1, 2)))


# ------------------------------------------------------------------------------------------------------------ CTC

ABC = CharacterSet.from_text("a\nb\nc\n")  # classes: blank, a, b, c, space


def test_ctc_by_hand():
    indices = np.array([[0, 1, 1, 0, 1, 2, 2, 0], [3, 3, 3, 3, 4, 4, 1, 1]])
    probabilities = np.array(
        [[0.9, 0.8, 0.1, 0.9, 0.6, 0.4, 0.9, 0.9], [1, 0, 0, 0, 0.5, 0, 0.75, 0]], np.float32
    )
    first, second = ctc_decode(indices, probabilities, ABC)
    assert first.text == "aab"
    assert first.score == pytest.approx((0.8 + 0.6 + 0.4) / 3)
    assert [(c.char, c.start_step, c.end_step) for c in first.chars] == [
        ("a", 1, 3),
        ("a", 4, 5),
        ("b", 5, 7),
    ]
    assert [c.score for c in first.chars] == pytest.approx([0.8, 0.6, 0.4])
    assert second.text == "c a"
    assert second.score == pytest.approx(0.75)
    assert [(c.char, c.start_step, c.end_step) for c in second.chars] == [
        ("c", 0, 4),
        (" ", 4, 6),
        ("a", 6, 8),
    ]


def test_ctc_of_blanks_of_one_step_and_of_nothing():
    assert ctc_decode(np.zeros((2, 3), int), np.ones((2, 3)), ABC) == [Text("", 0.0, ())] * 2
    assert ctc_decode(np.array([[2]]), np.array([[0.5]]), ABC) == [Text("b", 0.5, (("b", 0.5, 0, 1),))]
    assert ctc_decode(np.zeros((0, 5), int), np.zeros((0, 5)), ABC) == []
    assert ctc_decode(np.zeros((1, 0), int), np.zeros((1, 0)), ABC) == [Text("", 0.0, ())]


def test_runs_do_not_go_on_in_the_next_line():
    lines = ctc_decode(np.array([[0, 1], [1, 0]]), np.ones((2, 2)), ABC)
    assert [line.text for line in lines] == ["a", "a"]
    assert lines[0].chars[0].end_step == 2


def test_steps_of_padding_are_left_out():
    indices = np.array([[1, 0, 2, 2], [1, 0, 2, 2]])
    lines = ctc_decode(indices, np.ones((2, 4)), ABC, valid_steps=[3, 1])
    assert [line.text for line in lines] == ["ab", "a"]
    assert lines[0].chars[-1][2:] == (2, 3)
    assert indices.tolist()[1] == [1, 0, 2, 2]


def test_right_to_left_lines_keep_their_chars_in_crop_order():
    arabic = CharacterSet.from_text("ا\nب\n1\n2\n", right_to_left=True)
    (line,) = ctc_decode(np.array([[2, 3, 4, 1]]), np.ones((1, 4)), arabic)
    assert line.text == "ا12ب"
    assert [char.char for char in line.chars] == ["ب", "1", "2", "ا"]
    assert line.right_to_left


def test_ctc_errors():
    with pytest.raises(ShapeError, match=r"classes and probabilities do not fit[\s\S]*\[1, 2\] and \[1, 3\]"):
        ctc_decode(np.zeros((1, 2), int), np.zeros((1, 3)), ABC)
    with pytest.raises(ShapeError, match=r"classes from 0 to 5\n  allowed: 0 to 4 of dictionary"):
        ctc_decode(np.array([[0, 5]]), np.zeros((1, 2)), ABC)


def test_ctc_equals_rapidocr():
    reference = pytest.importorskip("rapidocr.ch_ppocr_rec.utils", reason="the reference")
    theirs = reference.CTCLabelDecode(character=list("abcdefgh"))
    ours = CharacterSet.from_symbols("abcdefgh")
    generator = np.random.default_rng(0)
    scores = generator.random((32, 40, 10)).astype(np.float32) ** 8
    scores[:, :, 0] += generator.random((32, 40)) < 0.5
    scores[3, :, 0] += 2  # a line without text
    scores /= scores.sum(axis=2, keepdims=True)
    expected, _ = theirs(scores)
    lines = ctc_decode(scores.argmax(axis=2), scores.max(axis=2), ours)
    assert [line.text for line in lines] == [text for text, _ in expected]
    np.testing.assert_allclose([line.score for line in lines], [score for _, score in expected], atol=2e-5)
    assert lines[3].text == ""
    assert max(len(line.text) for line in lines) > 5
