"""Scores of text detection, recognition and whole pages.

Source: ICDAR 2015 Robust Reading, https://rrc.cvc.uab.es/?ch=4, task 1; PaddleOCR ppocr/metrics/{det_metric,
eval_det_iou,rec_metric}.py
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from framework.core.types import JSON
from ocr.text.characters import CharacterSet
from ocr.text.polygons import intersection_area, polygon_area
from ocr.text.postprocess import DBPostprocess, ctc_decode

Arrays = Mapping[str, np.ndarray]
_OVERLAP = 0.5


def edit_distance(one: Sequence[Hashable], other: Sequence[Hashable]) -> int:
    """The least number of characters, or of items of other sequences, to insert, delete or replace.

    Bit-parallel, so that a page takes microseconds. Source: Myers 1999, https://doi.org/10.1145/316542.316550, in the
    form of Hyyrö 2003.
    """
    if not one or not other:
        return len(one) + len(other)
    places: dict[Hashable, int] = {}
    for number, character in enumerate(one):
        places[character] = places.get(character, 0) | 1 << number
    last, whole = 1 << (len(one) - 1), (1 << len(one)) - 1
    up, down, distance = whole, 0, len(one)
    for character in other:
        match = places.get(character, 0)
        diagonal = ((((match & up) + up) ^ up) | match | down) & whole
        rises, falls = (down | ~(diagonal | up)) & whole, up & diagonal
        distance += bool(rises & last) - bool(falls & last)
        rises = (rises << 1 | 1) & whole
        falls = (falls << 1) & whole
        up, down = (falls | ~(diagonal | rises)) & whole, rises & diagonal
    return distance


def similarity(one: str, other: str) -> float:
    """1 less the edit distance over the longer length; 1 for two empty texts."""
    longest = max(len(one), len(other))
    return 1.0 - edit_distance(one, other) / longest if longest else 1.0


def order_edit_distance(found: Sequence[Hashable], wanted: Sequence[Hashable]) -> float:
    """How far the order in which blocks are read is from the right one: 0 is equal, 1 the farthest.

    The edit distance of the two sequences over the longer length, as OmniDocBench scores reading order.

    Args:
        found, wanted: The same names or numbers of blocks, each once, in the order that they are read in. A block that
            was not found is left out of `found`.
    """
    longest = max(len(found), len(wanted))
    return edit_distance(found, wanted) / longest if longest else 0.0


class RecognitionScores:
    """Of lines: `acc`, the share that is right but for spaces; `norm_edit_dis`, the mean similarity without spaces, as
    PaddleOCR has both; `acc_with_spaces` and `norm_edit_dis_with_spaces`, which see lost spaces; `acc_alphanumeric`, of
    letters a to z and digits alone, whatever their case, as benchmarks of words count.
    """

    higher_is_better = True

    def __init__(self, characters: CharacterSet) -> None:
        self.characters = characters
        self._sums = np.zeros(5)
        self._count = 0

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        texts = ctc_decode(outputs["indices"], outputs["probabilities"], self.characters)
        for found, wanted in zip(texts, batch["text"].tolist(), strict=True):
            self.add(found.text, wanted)

    def add(self, found: str, wanted: str) -> None:
        """Take in one line."""
        blind = found.replace(" ", ""), wanted.replace(" ", "")
        plain = tuple(
            "".join(c for c in text.lower() if c.isascii() and c.isalnum()) for text in (found, wanted)
        )
        self._sums += (
            blind[0] == blind[1],
            similarity(*blind),
            found == wanted,
            similarity(found, wanted),
            plain[0] == plain[1],
        )
        self._count += 1

    def result(self) -> dict[str, float]:
        names = ["acc", "norm_edit_dis", "acc_with_spaces", "norm_edit_dis_with_spaces", "acc_alphanumeric"]
        return dict(zip(names, (self._sums / max(self._count, 1)).tolist()))


@dataclass(frozen=True)
class PageMatches:
    """Of one page: how many regions are right, found and wanted, without those that do not count."""

    right: int
    found: int
    wanted: int


def match_regions(
    found: Sequence[np.ndarray], wanted: Sequence[np.ndarray], readable: Sequence[bool]
) -> PageMatches:
    """Pair polygons [P, 2] of a page: each with one of the other side at most, where their intersection is more than
    half of their union. A found region more than half of whose area lies in an unreadable one does not count.
    """
    ignored = [polygon for polygon, clear in zip(wanted, readable, strict=True) if not clear]
    wanted = [polygon for polygon, clear in zip(wanted, readable, strict=True) if clear]
    areas = [polygon_area(polygon) for polygon in found]
    counted = [
        polygon
        for polygon, area in zip(found, areas)
        if not any(area > 0 and intersection_area(polygon, one) / area > _OVERLAP for one in ignored)
    ]
    right, taken = 0, set[int]()
    for one in wanted:
        for place, other in enumerate(counted):
            if place in taken or not _near(one, other):
                continue
            shared = intersection_area(one, other)
            union = polygon_area(one) + polygon_area(other) - shared
            if union > 0 and shared / union > _OVERLAP:
                taken.add(place)
                right += 1
                break
    return PageMatches(right, len(counted), len(wanted))


def _near(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether their bounding boxes overlap."""
    return bool((one.min(0) < other.max(0)).all() and (other.min(0) < one.max(0)).all())


class DetectionScores:
    """`hmean`, `precision` and `recall` of all regions of an evaluation, by the rules of ICDAR 2015.

    A batch has "probability" [N, H, W] of the model, "size" [N, 2], the rows and columns that are no padding, and
    "truth" [N], a page's regions as JSON; see TextDetection.pack.
    """

    higher_is_better = True

    def __init__(self, postprocess: DBPostprocess) -> None:
        self.postprocess = postprocess
        self._sums = np.zeros(3, np.int64)

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        for probability, size, truth in zip(outputs["probability"], batch["size"], batch["truth"].tolist()):
            page = json.loads(truth)
            rows, columns = (int(side) for side in size)
            height, width = page["size_hw"]
            found, _ = self.postprocess(np.asarray(probability, np.float32), (height, width), (rows, columns))
            wanted = [np.asarray(points, np.float32) for points in page["polygons"]]
            matches = match_regions(list(found), wanted, page["readable"])
            self._sums += (matches.right, matches.found, matches.wanted)

    def result(self) -> dict[str, float]:
        right, found, wanted = self._sums.tolist()
        precision, recall = right / max(found, 1), right / max(wanted, 1)
        hmean = 2 * precision * recall / max(precision + recall, 1e-12)
        return {"hmean": hmean, "precision": precision, "recall": recall}


class OrientationScores:
    """`accuracy`: the share of lines whose direction, upright or upside down, is right."""

    higher_is_better = True

    def __init__(self) -> None:
        self._right = self._count = 0

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        self._right += int((outputs["probability"].argmax(axis=1) == batch["label"]).sum())
        self._count += len(batch["label"])

    def result(self) -> dict[str, float]:
        return {"accuracy": self._right / max(self._count, 1)}


def describe_page(
    polygons: Sequence[np.ndarray], readable: Sequence[bool], size_hw: tuple[int, int]
) -> dict[str, JSON]:
    """What `DetectionScores` reads of a page, as plain data."""
    return {
        "size_hw": [int(side) for side in size_hw],
        "polygons": [np.round(polygon.astype(np.float64), 2).tolist() for polygon in polygons],
        "readable": [bool(one) for one in readable],
    }
