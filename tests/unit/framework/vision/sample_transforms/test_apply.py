"""framework.vision.sample_transforms.apply: one warp on every field, and which objects stay."""

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.vision.sample import Sample
from framework.vision.sample_transforms import apply_warp, keep_objects
from framework.vision.warp import Warp


def image(height: int = 4, width: int = 6) -> np.ndarray:
    return np.arange(height * width * 3, dtype=np.uint8).reshape(height, width, 3)


def boxes(*rows: tuple[float, ...]) -> np.ndarray:
    return np.array(rows, np.float32).reshape(-1, 4)


CUT = Warp.crop((4, 6), (2, 1, 6, 4))  # columns 2 to 5, rows 1 to 3


def test_every_field_is_cut():
    masks = np.zeros((3, 4, 6), bool)
    masks[0, 0, 0] = masks[1, 2, 3] = masks[2, 3, 5] = True
    sample = Sample(
        image(),
        mask=masks,
        boxes=boxes((0, 0, 2, 1), (1, 0, 4, 3), (5, 3, 6, 4)),
        polygons=tuple(np.array(p, np.float32) for p in ([[0, 0]], [[1, 0], [4, 3]], [[5, 3]])),
        keypoints=np.array([[[0, 0, 2]], [[3, 2, 1]], [[1, 3, 2]]], np.float32),
        labels=np.array([7, 8, 9]),
        text=("a", "b", "c"),
        valid=np.array([True, False, True]),
        id="x",
    )
    out = apply_warp(sample, CUT)
    np.testing.assert_array_equal(out.image, image()[1:, 2:])
    # The first box only touches the cut; the second is clipped on two sides.
    assert out.boxes.tolist() == [[0, 0, 2, 2], [3, 2, 4, 3]] and out.boxes.dtype == np.float32
    assert np.argwhere(out.mask).tolist() == [[0, 1, 1], [1, 2, 3]] and out.mask.dtype == bool
    assert [p.tolist() for p in out.polygons] == [[[-1, -1], [2, 2]], [[3, 2]]]  # not clipped
    assert out.keypoints.tolist() == [[[1, 1, 1]], [[0, 0, 0]]]  # the last one is left of the cut
    assert out.labels.tolist() == [8, 9] and out.text == ("b", "c") and out.valid.tolist() == [False, True]
    assert (out.id, out.source_size) == ("x", (4, 6))
    assert out.warp.points(np.array([2.0, 1.0])).tolist() == [0, 0]


def test_what_says_something_of_the_whole_image_stays():
    classes = np.arange(24, dtype=np.uint8).reshape(4, 6)
    sample = Sample(image(), mask=classes, labels=np.array(5), text="a line", boxes=boxes((0, 0, 1, 1)))
    out = apply_warp(sample, CUT)
    assert out.boxes.shape == (0, 4) and out.labels.tolist() == 5 and out.text == "a line"
    np.testing.assert_array_equal(out.mask, classes[1:, 2:])


@pytest.mark.parametrize(("min_visible", "left"), [(0.0, 2), (0.25, 2), (0.3, 1), (1.0, 1)])
def test_share_that_must_be_left(min_visible, left):
    # A quarter of the first box is left, and all of the second.
    sample = Sample(image(), boxes=boxes((1, 0, 3, 2), (2, 1, 6, 4)))
    assert len(apply_warp(sample, CUT, min_visible=min_visible).boxes) == left


def test_extents_of_objects_without_boxes():
    masks = np.zeros((2, 4, 6), bool)
    masks[0, 0, 0] = masks[1, 3, 3] = True
    squares = tuple(np.array(p, np.float32) for p in ([[0, 0], [1, 0], [1, 1]], [[3, 3], [4, 3], [4, 4]]))
    for field in ({"mask": masks}, {"polygons": squares}):
        out = apply_warp(Sample(image(), labels=np.array([1, 2]), **field), CUT)
        assert out.labels.tolist() == [2]
    alone = Sample(image(), keypoints=np.zeros((1, 2, 3), np.float32), labels=np.array([3]))
    assert apply_warp(alone, CUT).labels.tolist() == [3]  # nothing tells where the object is


def test_no_objects():
    sample = Sample(
        image(),
        mask=np.zeros((0, 4, 6), bool),
        boxes=boxes(),
        polygons=(),
        keypoints=np.zeros((0, 17, 3), np.float32),
        labels=np.zeros(0, int),
        text=(),
        valid=np.zeros(0, bool),
    )
    out = apply_warp(sample, CUT, min_visible=0.5)
    assert out.mask.shape == (0, 3, 4) and out.boxes.shape == (0, 4) and out.keypoints.shape == (0, 17, 3)
    assert out.polygons == () == out.text and out.labels.shape == (0,) == out.valid.shape


def test_border_values():
    sample = Sample(image(1, 1), mask=np.array([[3]], np.uint8))
    wider = Warp.pad((1, 1), 1, 0, 0, 0)
    out = apply_warp(sample, wider, fill=(9, 8, 7), ignore_index=250)
    assert out.image.tolist() == [[[9, 8, 7], [0, 1, 2]]] and out.mask.tolist() == [[250, 3]]
    assert apply_warp(sample, wider, fill=None).image.tolist() == [[[0, 1, 2], [0, 1, 2]]]
    inside = apply_warp(Sample(image(1, 1), mask=np.array([[True]])), wider)
    assert inside.mask.tolist() == [[False, True]]


def test_ignore_index_must_fit_the_mask_where_it_is_needed():
    sample = Sample(image(), mask=np.zeros((4, 6), np.int8))
    assert apply_warp(sample, CUT, ignore_index=255).mask.dtype == np.int8
    with pytest.raises(ShapeError, match=r"ignore_index does not fit[\s\S]*mask of int8[\s\S]*-128 to 127"):
        apply_warp(sample, Warp.pad((4, 6), 0, 0, 1, 0), ignore_index=255)
    assert apply_warp(sample, Warp.pad((4, 6), 0, 0, 1, 0), ignore_index=-1).mask[0, -1] == -1


def test_keypoints_change_places_only_where_the_warp_mirrors():
    points = np.array([[[1, 1, 2], [5, 2, 1], [3, 0, 2]]], np.float32)
    sample = Sample(image(), keypoints=points)
    for horizontal, vertical, swapped in ((True, False, True), (False, True, True), (True, True, False)):
        flip = Warp.flip((4, 6), horizontal=horizontal, vertical=vertical)
        out = apply_warp(sample, flip, keypoint_flip_pairs=((0, 1),)).keypoints
        order = [1, 0, 2] if swapped else [0, 1, 2]
        np.testing.assert_array_equal(out[0, :, :2], flip.points(points[0, order, :2]))
        assert out[0, :, 2].tolist() == points[0, order, 2].tolist()
    with pytest.raises(ShapeError, match=r"a keypoint that is not there[\s\S]*below 3"):
        apply_warp(sample, Warp.flip((4, 6), horizontal=True), keypoint_flip_pairs=((0, 3),))


def test_keypoints_on_the_edge_are_inside_and_unlabelled_ones_stay_so():
    points = np.array([[[0, 0, 2], [6, 4, 1], [0, 0, 0], [6.5, 4, 2]]], np.float32)
    out = apply_warp(Sample(image(), keypoints=points), Warp.flip((4, 6), horizontal=True)).keypoints
    assert out.tolist() == [[[6, 0, 2], [0, 4, 1], [0, 0, 0], [0, 0, 0]]]


def test_warps_are_composed():
    once = apply_warp(Sample(image()), CUT)
    twice = apply_warp(once, Warp.resize((3, 4), (6, 12)))
    assert twice.warp.points(np.array([3.0, 2.0])).tolist() == [3, 2]  # (3 - 2) * 3, (2 - 1) * 2
    assert twice.warp.source_hw == twice.source_size == (4, 6) and once.warp is not twice.warp


def test_identity_gives_the_same_sample():
    sample = Sample(image())
    assert apply_warp(sample, Warp.identity((4, 6))) is sample


def test_the_warp_must_be_for_this_size():
    with pytest.raises(ShapeError, match=r"of another size[\s\S]*\(4, 6\)[\s\S]*\(2, 2\)"):
        apply_warp(Sample(image(2, 2)), CUT)


def test_keep_objects():
    sample = Sample(image(), boxes=boxes((0, 0, 1, 1), (1, 1, 2, 2)), labels=np.array(4))
    out = keep_objects(sample, np.array([False, True]))
    assert out.boxes.tolist() == [[1, 1, 2, 2]] and out.labels.tolist() == 4 and len(sample.boxes) == 2
    assert keep_objects(sample, np.array([True, True])) is sample
