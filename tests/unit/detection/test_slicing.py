from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pytest

from detection.results import Box, DetectionResult
from detection.slicing import Method, Slicing, detect_on_tiles, merge, tiles
from framework.core.errors import ConfigError
from framework.workflow import ImageItem


def test_tiles_without_overlap():
    assert tiles((4, 6), (2, 3)).tolist() == [[0, 0, 3, 2], [3, 0, 6, 2], [0, 2, 3, 4], [3, 2, 6, 4]]


def test_the_last_tile_is_moved_back():
    assert tiles((2, 7), (2, 3)).tolist() == [[0, 0, 3, 2], [3, 0, 6, 2], [4, 0, 7, 2]]


def test_tiles_overlap_at_least_by_the_share():
    # 10 wide tiles that share 4: they begin at 0, 6, 12 and, as 18 would leave the image, 15.
    assert tiles((5, 25), (10, 10), (0.4, 0.4))[:, 0].tolist() == [0, 6, 12, 15]
    assert tiles((1, 3), (1, 2), (0.9, 0.9)).tolist() == [
        [0, 0, 2, 1],
        [1, 0, 3, 1],
    ]  # a step is a pixel at least


@pytest.mark.parametrize("size", [(1, 1), (5, 7), (8, 8), (8, 7)])
def test_an_image_not_larger_than_a_tile_is_one(size: tuple[int, int]):
    assert tiles(size, (8, 8), (0.5, 0.5)).tolist() == [[0, 0, size[1], size[0]]]


def test_tiles_cover_every_pixel():
    for size in ((31, 57), (20, 20), (21, 19), (64, 3)):
        seen = np.zeros(size, int)
        for x0, y0, x1, y1 in tiles(size, (20, 20), (0.3, 0.1)):
            assert 0 <= x0 < x1 <= size[1] and 0 <= y0 < y1 <= size[0]
            seen[y0:y1, x0:x1] += 1
        assert seen.min() == 1 if size == (20, 20) else seen.min() >= 1


BOXES = np.array([[0, 0, 10, 10], [0, 0, 10, 8], [6, 0, 16, 10], [0, 0, 5, 5]], float)
SCORES = np.array([0.8, 0.9, 0.7, 0.6])
SAME = np.zeros(4, int)


def test_nms_by_iou():
    # IoU with the best, box 1: box 0 80/100, box 2 32/148, box 3 25/80
    kept, boxes = merge(BOXES, SCORES, SAME, method="nms", metric="iou", threshold=0.5)
    assert kept.tolist() == [1, 2, 3] and (boxes == BOXES[[1, 2, 3]]).all()
    kept, _ = merge(BOXES, SCORES, SAME, method="nms", metric="iou", threshold=0.3)
    assert kept.tolist() == [1, 2]


def test_nms_by_ios():
    # IoS with box 1: box 0 80/80, box 2 32/80, box 3 25/25
    kept, _ = merge(BOXES, SCORES, SAME, method="nms", metric="ios", threshold=0.5)
    assert kept.tolist() == [1, 2]
    kept, _ = merge(BOXES, SCORES, SAME, method="nms", metric="ios", threshold=0.39)
    assert kept.tolist() == [1]


def test_nmm_grows_the_best_box():
    kept, boxes = merge(BOXES, SCORES, SAME, method="nmm", metric="ios", threshold=0.5)
    assert kept.tolist() == [1, 2] and boxes.tolist() == [[0, 0, 10, 10], [6, 0, 16, 10]]
    kept, boxes = merge(BOXES, SCORES, SAME, method="nmm", metric="ios", threshold=0.39)
    assert kept.tolist() == [1] and boxes.tolist() == [[0, 0, 16, 10]]


def test_classes_leave_one_another_alone():
    kept, boxes = merge(BOXES, SCORES, np.array([0, 1, 0, 1]), method="nmm", metric="ios", threshold=0.5)
    assert kept.tolist() == [1, 0, 2] and boxes.tolist() == [[0, 0, 10, 8], [0, 0, 10, 10], [6, 0, 16, 10]]


def test_concat_sorts_alone():
    kept, boxes = merge(BOXES, SCORES, SAME, method="concat")
    assert kept.tolist() == [1, 0, 2, 3] and (boxes == BOXES[kept]).all()


def test_nothing_to_merge():
    for method in ("nmm", "nms", "concat"):
        kept, boxes = merge(np.zeros((0, 4)), np.zeros(0), np.zeros(0, int), method=method)
        assert kept.shape == (0,) and boxes.shape == (0, 4)


class Bright:
    """Finds the white pixels: their bounds, at a score of their share of the image. Looks two images ahead."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, int]] = []

    def __call__(self, images: Iterable[ImageItem]) -> Iterator[DetectionResult]:
        waiting = []
        for image in images:
            waiting.append(image)
            if len(waiting) > 2:
                yield self.one(waiting.pop(0))
        for image in waiting:
            yield self.one(image)

    def one(self, item: ImageItem) -> DetectionResult:
        image = item.image
        self.shapes.append(image.shape[:2])
        ys, xs = np.nonzero(image[..., 0] == 255)
        boxes: tuple[Box, ...] = ()
        if len(ys):
            corners = (float(xs.min()), float(ys.min()), float(xs.max() + 1), float(ys.max() + 1))
            boxes = (Box("white", 0, len(ys) / image[..., 0].size, corners),)
        height, width = image.shape[:2]
        return DetectionResult(boxes, source=item.source, width=width, height=height, image=image)


def white(size: tuple[int, int], *areas: tuple[int, int, int, int]) -> np.ndarray:
    image = np.zeros((*size, 3), np.uint8)
    for x0, y0, x1, y1 in areas:
        image[y0:y1, x0:x1] = 255
    return image


def test_an_object_that_tiles_cut_comes_out_whole():
    image = white((10, 20), (8, 2, 13, 6))
    detect = Bright()
    (result,) = detect_on_tiles(detect, [ImageItem(image, "a")], Slicing((10, 10), (0, 0), whole=False))
    assert detect.shapes == [(10, 10), (10, 10)]
    assert [box.bbox for box in result.boxes] == [(10, 2, 13, 6), (8, 2, 10, 6)]  # parts that do not overlap
    (result,) = detect_on_tiles(Bright(), [ImageItem(image, "a")], Slicing((10, 10), (0, 0)))
    assert [box.bbox for box in result.boxes] == [(8, 2, 13, 6)]  # the whole image joins them
    assert result.boxes[0].score == 20 / 200 and result.boxes[0].label == "white"
    (joined,) = detect_on_tiles(Bright(), [ImageItem(image, "a")], Slicing((10, 10), (0, 0), method="nmm"))
    assert [(box.bbox, box.score) for box in joined.boxes] == [((8, 2, 13, 6), 12 / 100)]
    assert result.source == "a" and result.size_hw == (10, 20) and result.image is image


def test_several_images_of_several_sizes_stay_apart():
    detect = Bright()
    images = [
        ImageItem(white((4, 4), (1, 1, 3, 2)), "small"),
        ImageItem(white((10, 20), (12, 3, 14, 5), (1, 1, 2, 2)), "large"),
        ImageItem(white((10, 10)), "empty"),
        ImageItem(white((1, 1), (0, 0, 1, 1)), "pixel"),
    ]
    results = list(detect_on_tiles(detect, iter(images), Slicing((10, 10), (0, 0), whole=False)))
    assert [result.source for result in results] == ["small", "large", "empty", "pixel"]
    assert [[box.bbox for box in result.boxes] for result in results] == [
        [(1, 1, 3, 2)],
        [(12, 3, 14, 5), (1, 1, 2, 2)],
        [],
        [(0, 0, 1, 1)],
    ]
    assert detect.shapes == [(4, 4), (10, 10), (10, 10), (10, 10), (1, 1)]
    assert list(detect_on_tiles(detect, [], Slicing())) == []


def test_an_image_of_one_tile_is_looked_at_once():
    detect = Bright()
    list(detect_on_tiles(detect, [ImageItem(white((5, 5)))], Slicing((10, 10), whole=True)))
    assert detect.shapes == [(5, 5)]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size_hw": (0, 5)}, r"cannot be cut(.*\n)+.*tiles of \[0, 5\]"),
        ({"overlap_hw": (0.5, 1.0)}, r"cannot be cut(.*\n)+.*below 1"),
        ({"method": "nmx"}, r"not put together(.*\n)+.*nmx by ios"),
        ({"metric": "giou"}, r"not put together"),
        ({"threshold": 0.0}, r"never match(.*\n)+.*between 0 and 1"),
    ],
)
def test_settings_that_make_no_sense(settings: dict, message: str):
    with pytest.raises(ConfigError, match=message):
        Slicing(**settings)


@pytest.mark.parametrize("method", ["nms", "nmm"])
def test_neighbours_that_touch_stay_apart(method: Method) -> None:
    """A row of cells whose boxes overlap one another a little, each found on two tiles: no chain joins them."""
    cells = np.array([[40 * i, 10, 40 * i + 50, 60] for i in range(8)], float)
    boxes = np.concatenate([cells, cells + np.array([4, 0, 4, 0])])
    scores = np.concatenate([np.linspace(0.9, 0.6, 8), np.linspace(0.59, 0.4, 8)])
    retained, merged = merge(boxes, scores, np.zeros(16, int), method=method)
    assert retained.tolist() == list(range(8))
    assert (merged[:, 2] - merged[:, 0]).max() <= 54


def test_a_doubtful_box_that_holds_many_takes_none() -> None:
    cells = np.array([[40 * i, 40 * j, 40 * i + 36, 40 * j + 36] for i in range(4) for j in range(4)], float)
    boxes = np.concatenate([cells, [[0, 0, 160, 160]]])
    scores = np.array([0.9] * 16 + [0.45])
    for method in ("nms", "nmm"):
        retained, _ = merge(boxes, scores, np.zeros(17, int), method=method)
        assert retained.tolist() == list(range(16))


def test_boxes_of_two_classes_match_where_classes_do_not_count() -> None:
    boxes, labels = np.array([[0, 0, 10, 10], [0, 0, 10, 9]], float), np.array([0, 1])
    assert merge(boxes, np.array([0.9, 0.8]), labels)[0].tolist() == [0, 1]
    assert merge(boxes, np.array([0.9, 0.8]), labels, per_class=False)[0].tolist() == [0]
