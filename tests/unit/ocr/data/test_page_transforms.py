"""What the augmentations of pages do to pixels, polygons and texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.vision import polygons
from framework.vision.sample import Sample
from framework.vision.sample_transforms import RandomAffine, RandomHorizontalFlip, RandomRotation, RandomScale
from ocr.data.transforms.pages import CopyPasteText, RandomTextCrop

COLOURS = ((255, 0, 0), (0, 255, 0), (0, 0, 255))


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def quad(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    return np.array([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], np.float32)


BOXES = ((10, 10, 60, 20), (80, 30, 150, 44), (20, 70, 90, 90))


def page(
    boxes: Any = BOXES, valid: Any = None, size: tuple[int, int] = (120, 160), grey: int = 100
) -> Sample:
    """Grey, with a box in its own colour for each text."""
    made = np.full((*size, 3), grey, np.uint8)
    for number, (x0, y0, x1, y1) in enumerate(boxes):
        made[y0:y1, x0:x1] = COLOURS[number % 3]
    readable = np.ones(len(boxes), bool) if valid is None else np.array(valid)
    texts = tuple("abcdefghijklmnopqrstuvwxyz"[number] for number in range(len(boxes)))
    return Sample(made, polygons=tuple(quad(*box) for box in boxes), text=texts, valid=readable)


def ink_is_inside(sample: Sample) -> None:
    """Each text's colour fills its polygon and is nowhere else; edges may be mixed by interpolation."""
    assert sample.polygons is not None and sample.text is not None
    for polygon, text in zip(sample.polygons, sample.text, strict=True):
        colour = np.array(COLOURS["abc".index(text)])
        seen = (np.abs(sample.image.astype(int) - colour) < 40).all(axis=2)
        inside = polygons.fill([polygon], sample.size_hw)
        middle = polygons.fill([polygon * 0.8 + polygon.mean(axis=0) * 0.2], sample.size_hw)
        assert seen[middle].all() and not (seen & ~inside).sum() > 0.02 * max(1, inside.sum()) + 3


def test_crops_hold_whole_texts() -> None:
    counts = set()
    for seed in range(60):
        out = RandomTextCrop((96, 128), max_tries=50)(page(), rng(seed))
        assert out.image.shape == (96, 128, 3) and out.polygons
        for polygon in out.polygons:
            assert (polygon >= -1e-3).all() and (polygon <= np.array([128, 96]) + 1e-3).all()
        ink_is_inside(out)
        counts.add(len(out.polygons))
    assert counts == {1, 2, 3}


def test_the_aspect_is_kept_and_the_rest_filled() -> None:
    for seed in range(10):
        out = RandomTextCrop((100, 100), fill=7)(page(), rng(seed))
        matrix = out.warp.matrix
        assert matrix[0, 0] == pytest.approx(matrix[1, 1], rel=0.06) and matrix[0, 1] == 0
        filled = (out.image == 7).all(axis=2)
        assert filled[:, -1].all() or filled[-1].all() or not filled.any()
        assert not filled[0, 0]
    stretched = RandomTextCrop((100, 50), keep_ratio=False, fill=7)(page(), rng(1))
    assert stretched.image.shape == (100, 50, 3) and not (stretched.image == 7).all(axis=2).any()


def test_parts_are_not_smaller_than_asked_for() -> None:
    for seed in range(40):
        out = RandomTextCrop((120, 160), min_crop_side_ratio=0.5, max_tries=50, keep_ratio=False)(
            page(), rng(seed)
        )
        assert out.warp is None or (np.diag(out.warp.matrix)[:2] <= 2 + 1e-9).all()


def test_unreadable_texts_may_be_cut_and_do_not_count() -> None:
    cut = 0
    for seed in range(60):
        out = RandomTextCrop((120, 160), max_tries=50)(page(valid=[True, False, False]), rng(seed))
        assert out.valid.any()
        corners = [polygon for polygon, valid in zip(out.polygons, out.valid) if not valid]
        cut += any((xy < -1).any() or (xy > [161, 121]).any() for xy in corners)
    assert cut > 5
    whole = RandomTextCrop((60, 80))(page(valid=[False] * 3), rng())
    assert len(whole.polygons) == 3 and np.allclose(np.diag(whole.warp.matrix)[:2], 0.5)


def test_a_text_over_everything_leaves_the_page_whole() -> None:
    out = RandomTextCrop((120, 160))(page(((0, 0, 160, 120),)), rng())
    assert np.array_equal(out.image, page(((0, 0, 160, 120),)).image)


def test_pasted_texts_are_those_of_the_other_page() -> None:
    here, other = page(BOXES[:1]), page(((5, 5, 45, 25),), grey=30)
    out = CopyPasteText(ratio=1, degrees=(0, 0))(here, rng(3), [other])
    assert out.text == ("a", "a") and out.valid.tolist() == [True, True] and len(out.polygons) == 2
    x0, y0 = out.polygons[1][0].astype(int)
    np.testing.assert_allclose(out.polygons[1], quad(x0, y0, x0 + 40, y0 + 20), atol=1e-4)
    assert np.array_equal(out.image[y0 : y0 + 20, x0 : x0 + 40], other.image[5:25, 5:45])
    rest = out.image.copy()
    rest[y0 : y0 + 20, x0 : x0 + 40] = here.image[y0 : y0 + 20, x0 : x0 + 40]
    assert np.array_equal(rest, here.image)


def test_pasted_texts_overlap_nothing_and_hold_their_ink() -> None:
    for seed in range(20):
        here, other = page(), page(((5, 5, 25, 13), (40, 40, 60, 48)), grey=30)
        out = CopyPasteText(ratio=1)(here, rng(seed), [other])
        assert len(out.polygons) == len(out.text) == len(out.valid)
        total = sum(polygons.fill([polygon], out.size_hw).sum() for polygon in out.polygons)
        together = np.zeros(out.size_hw, int)
        for polygon in out.polygons:
            together += polygons.fill([polygon], out.size_hw)
        assert together.max() == 1 and total == together.sum()
        for polygon, text in zip(out.polygons[3:], out.text[3:]):
            middle = polygon.mean(axis=0).astype(int)
            assert np.abs(out.image[middle[1], middle[0]].astype(int) - COLOURS["ab".index(text)]).max() < 30


def test_a_share_of_the_readable_texts_is_pasted() -> None:
    here = page((), size=(600, 600))
    many = [(x, y, x + 6, y + 4) for x in range(0, 150, 15) for y in range(0, 110, 10)]
    other = Sample(
        np.zeros((120, 160, 3), np.uint8),
        polygons=tuple(quad(*box) for box in many),
        text=tuple(str(number) for number in range(len(many))),
        valid=np.arange(len(many)) % 2 == 0,
    )
    out = CopyPasteText(ratio=0.1)(here, rng(), [other])
    assert len(out.text) == 11 and all(int(text) % 2 == 0 for text in out.text) and out.valid.all()
    assert len(CopyPasteText(ratio=1.0)(here, rng(), [other]).text) == 30


def test_what_does_not_fit_is_left_out() -> None:
    here, full = page((), size=(20, 20)), page(((0, 0, 160, 120),))
    assert CopyPasteText()(here, rng(), [page()]) is here  # larger than the page
    assert CopyPasteText(degrees=0.0)(full, rng(), [page(BOXES[:1])]) is full  # no place
    assert CopyPasteText(p=0)(page(), rng(), [page()]).text == ("a", "b", "c")
    curved = page(BOXES[:1]).replace(polygons=(np.zeros((6, 2), np.float32),))
    assert CopyPasteText()(full, rng(), [curved]) is full


def test_pages_of_other_fields_are_refused() -> None:
    for changes in ({"valid": None}, {"polygons": None}, {"text": "a whole line"}):
        with pytest.raises(ShapeError, match="cannot be mixed"):
            CopyPasteText()(page(), rng(), [page().replace(**changes)])
    with pytest.raises(ShapeError, match="other types"):
        CopyPasteText()(page(), rng(), [page().replace(image=np.zeros((9, 9, 1), np.uint8))])


def test_settings_out_of_range_are_refused() -> None:
    for make in (
        lambda: RandomTextCrop((0, 5)),
        lambda: RandomTextCrop(max_tries=0),
        lambda: RandomTextCrop(min_crop_side_ratio=2),
        lambda: CopyPasteText(ratio=-1),
        lambda: CopyPasteText(scale=(0, 1)),
    ):
        with pytest.raises(ConfigError):
            make()


@pytest.mark.parametrize(
    "transform",
    [
        RandomRotation(20),
        RandomAffine(10, (0.05, 0.05), (0.9, 1.1)),
        RandomScale((0.6, 2.0)),
        RandomHorizontalFlip(p=1),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_transforms_of_any_image_carry_polygons_and_texts(transform: Any) -> None:
    for seed in range(5):
        out = transform(page(), rng(seed))
        assert out.text and len(out.text) == len(out.polygons) == len(out.valid)
        ink_is_inside(out)
