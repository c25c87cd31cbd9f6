from __future__ import annotations

import numpy as np
import pytest

from framework.core.errors import InputError
from ocr.text.preprocess import DetSize, crop_lines, line_width, pack_lines, turned_lines

PADDLEOCR_2 = DetSize(960, "max")  # `predict_det` and the `paddleocr` command of 2.x
PADDLEOCR_3 = DetSize(64, "min", max_side=4000)  # the pipelines of 3.x
RAPIDOCR = DetSize(736, "min")


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


@pytest.mark.parametrize(("limit_type", "limit"), [("min", 736), ("max", 960)])
def test_det_size_equals_rapidocr(limit_type, limit):
    reference = pytest.importorskip("rapidocr.ch_ppocr_det.utils", reason="the reference")
    theirs, ours = reference.DetPreProcess(limit, limit_type), DetSize(limit, limit_type)
    for height, width in np.random.default_rng(0).integers(40, 1500, (30, 2)).tolist():
        assert theirs.resize(np.zeros((height, width), np.uint8)).shape == ours((height, width))


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


def test_without_horizontal_lines_squares_tell_how_high_a_letter_is():
    letter, tall_letter, column = box(0, 0, 10, 14), box(0, 20, 10, 35), box(20, 0, 30, 40)
    assert turned_lines(quads(tall_letter, letter, column)).tolist() == [False, False, True]
    assert turned_lines(quads(tall_letter, column)).tolist() == [True, True]
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
    assert line_width((48, 101), width_scale=1.25) == 127  # 126.25


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
