from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import InputError, ShapeError
from ocr.preprocess import (
    DET_NORMALIZE,
    HALF_NORMALIZE,
    PADDLEOCR_2,
    PADDLEOCR_3,
    RAPIDOCR,
    DetSize,
    Normalize,
    cls_batch,
    crop_lines,
    group_by_width,
    line_width,
    pack_lines,
    rapidocr_frame,
    rec_batch,
    turned_lines,
)


def line_image(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)


# ------------------------------------------------------------------------------------------------- detector's size


@pytest.mark.parametrize(
    ("rule", "size_hw", "expected"),
    [
        (PADDLEOCR_2, (1527, 1080), (960, 672)),  # 960 / 1527 * 1080 = 678.9, 21.2 times 32
        (PADDLEOCR_2, (720, 1280), (544, 960)),  # 540 is 16.875 times 32
        (PADDLEOCR_2, (500, 500), (512, 512)),  # within the limit: 15.6 times 32
        (PADDLEOCR_2, (48, 80), (64, 64)),  # 1.5 and 2.5 times: halves go to the even number
        (PADDLEOCR_2, (10, 2000), (32, 960)),  # never below one multiple
        (PADDLEOCR_2, (1, 1), (32, 32)),
        (PADDLEOCR_3, (3508, 2480), (3520, 2496)),  # A4 at 300 dpi goes in whole: user pain 5
        (PADDLEOCR_3, (2000, 8000), (992, 4000)),  # 1000 is 31.25 times 32
        (PADDLEOCR_3, (32, 100), (64, 192)),  # up to 64 x 200, and 6.25 times 32
        (RAPIDOCR, (170, 296), (736, 1280)),
        (RAPIDOCR, (1527, 1080), (1536, 1088)),
        (DetSize(1000, "max", multiple=128), (2000, 1000), (1024, 512)),
    ],
)
def test_det_size_by_hand(rule, size_hw, expected):
    assert rule(size_hw) == expected


@pytest.mark.parametrize("size_hw", [(0, 5), (5, 0)])
def test_det_size_of_nothing(size_hw):
    with pytest.raises(InputError, match="the image has no pixels"):
        PADDLEOCR_2(size_hw)
    with pytest.raises(InputError, match="the image has no pixels"):
        rapidocr_frame(size_hw)


@pytest.mark.parametrize(("limit_type", "limit"), [("min", 736), ("max", 960)])
def test_det_size_equals_rapidocr(limit_type, limit):
    reference = pytest.importorskip("rapidocr.ch_ppocr_det.utils", reason="the reference")
    theirs, ours = reference.DetPreProcess(limit, limit_type), DetSize(limit, limit_type)
    for height, width in np.random.default_rng(0).integers(40, 1500, (30, 2)).tolist():
        assert theirs.resize(np.zeros((height, width), np.uint8)).shape == ours((height, width))


def test_rapidocr_frame_by_hand():
    assert rapidocr_frame((1000, 1500)) == ((1000, 1500), 0)
    assert rapidocr_frame((3000, 4000)) == (
        (1504, 2000 // 32 * 32),
        0,
    )  # 1500 is 46.9 times, 2000 is 62.5 times 32
    assert rapidocr_frame((20, 30)) == ((32, 32), 0)  # to 30 x 45, then 0.9 and 1.4 times 32
    assert rapidocr_frame((50, 1000)) == ((50, 1000), 100)  # 125 * 2 rows in all
    assert rapidocr_frame((30, 60)) == ((30, 60), 15)  # at least 60


def test_rapidocr_frame_equals_rapidocr():
    reference = pytest.importorskip("rapidocr.utils.process_img", reason="the reference")
    for height, width in [
        (1000, 1500),
        (3001, 4003),
        (20, 30),
        (50, 1000),
        (30, 60),
        (31, 240),
        (2500, 40),
        (17, 900),
    ]:
        image, *_ = reference.resize_image_within_bounds(np.zeros((height, width, 3), np.uint8), 30, 2000)
        padded, record = reference.apply_vertical_padding(image, {}, 8, 30)
        size_hw, rows = rapidocr_frame((height, width))
        assert size_hw == image.shape[:2]
        assert rows == record["padding_1"]["top"]
        assert padded.shape[0] == size_hw[0] + 2 * rows


# ---------------------------------------------------------------------------------------------------- normalising


def test_normalize_by_hand():
    image = np.array([[[255, 0, 51]]], np.uint8)  # R, G, B
    out = DET_NORMALIZE(image)
    assert out.dtype == np.float32
    # Channel 0 is blue and gets the mean and deviation of red: so the weights were trained.
    expected = [(0.2 - 0.485) / 0.229, (0 - 0.456) / 0.224, (1 - 0.406) / 0.225]
    np.testing.assert_allclose(out[0, 0], expected, rtol=1e-6)
    np.testing.assert_allclose(HALF_NORMALIZE(image)[0, 0], [-0.6, -1, 1], rtol=1e-6)
    rgb = Normalize((0, 0, 0), (1, 1, 1), bgr=False)
    np.testing.assert_allclose(rgb(image)[0, 0], [1, 0, 0.2], rtol=1e-6)


@pytest.mark.parametrize("image", [np.zeros((2, 2, 3), np.float32), np.zeros((2, 2), np.uint8)])
def test_normalize_takes_rgb_alone(image):
    with pytest.raises(ShapeError, match=r"this is no RGB image[\s\S]*uint8 \[\.\.\., 3\]"):
        DET_NORMALIZE(image)


def test_normalize_equals_rapidocr():
    reference = pytest.importorskip("rapidocr.ch_ppocr_det.utils", reason="the reference")
    image = line_image(40, 50)
    for ours in (DET_NORMALIZE, HALF_NORMALIZE):
        theirs = reference.DetPreProcess(mean=ours.mean, std=ours.std)
        np.testing.assert_allclose(ours(image), theirs.normalize(image[..., ::-1]), atol=2e-6)


# ----------------------------------------------------------------------------------------------------------- crops


def box(left, top, right, bottom):
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def quads(*boxes):
    return np.array(boxes, np.float32)


def test_tall_crops_are_turned_counter_clockwise():
    image = line_image(100, 100)
    crops = crop_lines(image, quads(box(10, 20, 60, 40), box(70, 5, 80, 95)))
    np.testing.assert_array_equal(crops[0], image[20:40, 10:60])
    np.testing.assert_array_equal(crops[1], np.rot90(image[5:95, 70:80]))
    (upright,) = crop_lines(image, quads(box(70, 5, 80, 95)), np.array([False]))
    np.testing.assert_array_equal(upright, image[5:95, 70:80])
    assert crop_lines(image, np.zeros((0, 4, 2), np.float32)) == []


def test_a_single_tall_glyph_among_lines_stays_upright():
    lines = [box(0, 0, 200, 20), box(0, 30, 150, 50), box(0, 60, 180, 80)]
    one = box(210, 0, 218, 22)  # a "1" in the column of quantities, as high as the lines
    column = box(230, 0, 250, 90)  # a vertical line
    pair = box(260, 0, 275, 42)  # two characters above one another
    page = quads(*lines, one, column, pair)
    assert turned_lines(page).tolist() == [False, False, False, False, True, True]
    assert turned_lines(page, glyph_ratio=0).tolist() == [False, False, False, True, True, True]
    assert turned_lines(page, rotate_ratio=4).tolist() == [False, False, False, False, True, False]


def test_without_horizontal_lines_the_ratio_alone_decides():
    assert turned_lines(quads(box(0, 0, 10, 15), box(0, 0, 10, 14), box(20, 0, 30, 40))).tolist() == [
        True,
        False,
        True,
    ]
    assert turned_lines(np.zeros((0, 4, 2), np.float32)).tolist() == []


def test_crops_equal_rapidocr():
    reference = pytest.importorskip("rapidocr.utils.process_img", reason="the reference")
    image = line_image(300, 400)
    generator = np.random.default_rng(1)
    turned = []
    for _ in range(20):
        x, y, w, h = generator.uniform((60, 60, 20, 10), (300, 200, 80, 60))
        turned.append(np.array(box(x, y, x + w, y + h)) + generator.uniform(-6, 6, (4, 2)))
    page = np.round(quads(*turned, box(0, 0, 399, 299), box(50, 60, 90, 75), box(10, 10, 20, 90)))
    ours = crop_lines(image, page, turned_lines(page, glyph_ratio=0))
    for crop, quad in zip(ours, page, strict=True):
        np.testing.assert_array_equal(crop, reference.get_rotate_crop_image(image, quad.copy()))


# --------------------------------------------------------------------------------------------- recogniser's batches


def test_line_width_keeps_the_aspect_and_rounds_up():
    assert line_width((48, 100)) == 100
    assert line_width((32, 100, 3)) == 150
    assert line_width((31, 100, 3)) == 155  # 154.8
    assert line_width((96, 1)) == 1
    assert line_width((24, 40), height=12) == 20


def test_group_by_width():
    widths = [300, 100, 320, 321, 5000, 90, 640, 200]
    batches = group_by_width(widths, [320, 640, 960], 3)
    assert [(bucket, indices.tolist()) for bucket, indices in batches] == [
        (320, [5, 1, 7]),
        (320, [0, 2]),
        (640, [3, 6]),
        (960, [4]),  # squeezed
    ]
    assert group_by_width([], [320], 8) == []


@pytest.mark.parametrize(
    ("buckets", "max_batch"), [([], 8), ([320, 320], 8), ([640, 320], 8), ([0, 320], 8), ([320], 0)]
)
def test_group_by_width_errors(buckets, max_batch):
    with pytest.raises(InputError, match="lines cannot be batched like this"):
        group_by_width([1], buckets, max_batch)


def test_pack_lines():
    same, wide = line_image(48, 100), line_image(24, 200)
    batch, widths = pack_lines([same, wide], 160)
    assert batch.shape == (2, 48, 160, 3) and batch.dtype == np.uint8
    assert widths.dtype == np.int32 and widths.tolist() == [100, 160]
    np.testing.assert_array_equal(batch[0, :, :100], same)
    assert not batch[0, :, 100:].any()
    assert batch[1, :, -1].any()  # squeezed to the whole width
    batch, widths = pack_lines([], 160)
    assert batch.shape == (0, 48, 160, 3) and widths.shape == (0,)


def test_one_pixel_line():
    batch, widths = pack_lines([np.full((1, 1, 3), 9, np.uint8)], 64)
    assert widths.tolist() == [48]
    assert (batch[0, :, :48] == 9).all()


def test_rec_batch_by_hand():
    line = np.empty((48, 60, 3), np.uint8)
    line[:] = (255, 0, 51)  # R, G, B
    batch = rec_batch([line], 80)
    assert batch.shape == (1, 48, 80, 3) and batch.dtype == np.float32
    np.testing.assert_allclose(batch[0, :, :60], np.broadcast_to([-0.6, -1, 1], (48, 60, 3)), atol=1e-6)
    assert not batch[0, :, 60:].any()  # grey, not black
    assert rec_batch([], 80).shape == (0, 48, 80, 3)


def test_rec_batch_is_what_a_program_makes_of_packed_lines():
    lines = [line_image(30, 70), line_image(50, 333)]
    packed, widths = pack_lines(lines, 320)
    inside = np.arange(320)[None, None, :, None] < widths[:, None, None, None]
    made = np.where(inside, packed[..., ::-1].astype(np.float32) / 127.5 - 1, 0)
    np.testing.assert_allclose(rec_batch(lines, 320), made, atol=1e-6)


@pytest.mark.parametrize("height_width", [(31, 200), (48, 320), (20, 900), (77, 60), (48, 2000)])
def test_rec_batch_equals_rapidocr(height_width):
    reference = pytest.importorskip("rapidocr.ch_ppocr_rec.main", reason="the reference")
    recognizer = object.__new__(reference.TextRecognizer)
    recognizer.rec_image_shape = [3, 48, 320]
    line = line_image(*height_width)
    ratio = max(320 / 48, height_width[1] / height_width[0])
    expected = recognizer.resize_norm_img(line[..., ::-1], ratio)
    np.testing.assert_allclose(rec_batch([line], int(48 * ratio))[0], expected.transpose(1, 2, 0), atol=1e-6)


@pytest.mark.parametrize("height_width", [(31, 200), (48, 40)])
def test_cls_batch_equals_rapidocr(height_width):
    reference = pytest.importorskip("rapidocr.ch_ppocr_cls.main", reason="the reference")
    classifier = object.__new__(reference.TextClassifier)
    classifier.cls_image_shape = [3, 48, 192]
    line = line_image(*height_width)
    expected = classifier.resize_norm_img(line[..., ::-1])
    np.testing.assert_allclose(cls_batch([line])[0], expected.transpose(1, 2, 0), atol=1e-6)
