"""Regions of a page from a layout detector: which of its boxes are kept, and what PP-Structure's classes mean here.

Source: PaddleX paddlex/inference/models/layout_analysis/processors.py, in its order
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, get_args

import numpy as np

from framework.core.errors import ConfigError
from framework.vision import boxes as vision_boxes
from ocr.results.blocks import BLOCK_LABELS, Box

Merge = Literal["large", "small", "union"]

# Classes of PubLayNet, CDLA, PP-DocLayout and DocBank that have another name among BLOCK_LABELS; None: such boxes are
# left out
BLOCK_OF_CLASS: dict[str, str | None] = {
    **{label: label for label in BLOCK_LABELS},
    "title": "paragraph_title",
    "list": "list_item",
    "figure": "image",
    "figure_caption": "figure_title",
    "table_caption": "table_title",
    "equation": "formula",
    "display_formula": "formula",
    "inline_formula": None,
    "reference_content": "reference",
    "vertical_text": "text",
    "vision_footnote": "footnote",
    "paragraph": "text",
    "section": "paragraph_title",
    "caption": "figure_title",
    "author": "text",
    "date": "text",
}


class Region(NamedTuple):
    """A box in pixels of the page with one of BLOCK_LABELS."""

    label: str
    box: Box
    score: float


@dataclass(frozen=True)
class LayoutRules:
    """What becomes of a detector's boxes. Labels are those of blocks.

    Attributes:
        threshold: Least score of a box; `thresholds` are those of single labels.
        same_iou: Of two boxes of a label that overlap so much or more the better one stays.
        other_iou: Of two boxes of different labels.
        page_share: An image that covers more than this of the page is dropped where something else is on it; the
            second number is that of pages wider than high.
        inside: A box lies within another one where this share of its area does.
        merge: Of a label: "large" drops the boxes that lie within one of it, "small" those that hold one of it and lie
            in none themselves, "union" leaves all.
        unclip: Factors (x, y) by which boxes grow about their middle.

    Raises:
        ConfigError: a number is out of range, or a label is unknown.
    """

    threshold: float = 0.5
    thresholds: Mapping[str, float] = field(
        default_factory=lambda: {"paragraph_title": 0.3, "formula": 0.3, "text": 0.4, "seal": 0.45}
    )
    same_iou: float = 0.6
    other_iou: float = 0.98
    page_share: tuple[float, float] = (0.93, 0.82)
    inside: float = 0.9
    merge: Mapping[str, Merge] = field(
        default_factory=lambda: dict.fromkeys(("paragraph_title", "image", "formula", "chart"), "large")
    )
    unclip: tuple[float, float] = (1.0, 1.0)

    def __post_init__(self) -> None:
        shares = (self.threshold, *self.thresholds.values(), self.same_iou, self.other_iou, self.inside)
        if not all(0 <= share <= 1 for share in (*shares, *self.page_share)):
            raise ConfigError(
                "a share or score of the layout is out of range",
                where="LayoutRules",
                received=", ".join(f"{share:g}" for share in (*shares, *self.page_share)),
                allowed="0 to 1",
            )
        if not all(math.isfinite(factor) and factor > 0 for factor in self.unclip):
            raise ConfigError(
                "boxes cannot grow by this",
                where="LayoutRules.unclip",
                received=self.unclip,
                allowed="two numbers above 0",
            )
        wrong = [name for name in (*self.thresholds, *self.merge) if name not in BLOCK_LABELS]
        wrong += [mode for mode in self.merge.values() if mode not in get_args(Merge)]
        if wrong:
            raise ConfigError(
                "the layout has no such label or mode",
                where="LayoutRules",
                received=", ".join(wrong),
                allowed=f"{', '.join(BLOCK_LABELS)}; large, small, union",
            )


def clean_regions(
    found: Sequence[Region], size_hw: tuple[int, int], rules: LayoutRules | None = None
) -> tuple[Region, ...]:
    """The regions that stay of a detector's boxes on a page of `size_hw`, best first.

    In this order: scores, overlaps, images of the whole page, boxes within boxes, growth, the page's edges.
    """
    rules = rules or LayoutRules()
    kept = [one for one in found if one.score > rules.thresholds.get(one.label, rules.threshold)]
    kept = _suppress(sorted(kept, key=lambda one: -one.score), rules)
    kept = _drop_page_images(kept, size_hw, rules)
    kept = _merge(kept, rules)
    grown = np.array([one.box for one in kept], np.float64).reshape(-1, 4)
    middle, half = (grown[:, :2] + grown[:, 2:]) / 2, (grown[:, 2:] - grown[:, :2]) / 2 * rules.unclip
    clipped = vision_boxes.clip(np.concatenate([middle - half, middle + half], axis=1), size_hw)
    full = vision_boxes.area(clipped) > 0
    return tuple(
        one._replace(box=tuple(box)) for one, box, has_area in zip(kept, clipped.tolist(), full) if has_area
    )


def _suppress(regions: list[Region], rules: LayoutRules) -> list[Region]:
    boxes = np.array([one.box for one in regions], np.float64).reshape(-1, 4)
    same, other = np.nextafter(
        (rules.same_iou, rules.other_iou), -1
    )  # boxes that overlap just so much go too
    labels = np.array([one.label for one in regions])
    return [regions[k] for k in vision_boxes.suppress(boxes, same, labels=labels, other_threshold=other)]


def _drop_page_images(regions: list[Region], size_hw: tuple[int, int], rules: LayoutRules) -> list[Region]:
    height, width = size_hw
    limit = rules.page_share[int(width > height)] * height * width

    def covers(one: Region) -> bool:
        x0, y0, x1, y1 = one.box
        return one.label == "image" and (x1 - x0) * (y1 - y0) > limit

    others = [one for one in regions if not covers(one)]
    return others or regions


def _merge(regions: list[Region], rules: LayoutRules) -> list[Region]:
    if len(regions) < 2:
        return regions
    boxes = np.array([one.box for one in regions], np.float64)
    areas = np.maximum(vision_boxes.area(boxes), 1e-9)
    within = vision_boxes.intersection(boxes, boxes) >= rules.inside * areas[:, None]  # [inner, outer]
    np.fill_diagonal(within, False)
    formula = np.array([one.label == "formula" for one in regions])
    within &= ~(formula[:, None] & ~formula[None, :])  # a formula in a text stays
    keep = np.ones(len(regions), bool)
    for label, mode in rules.merge.items():
        of_label = np.array([one.label == label for one in regions])
        if mode == "large":
            keep &= ~(within & of_label[None, :]).any(axis=1)
        elif mode == "small":
            pairs = within & of_label[:, None]
            keep &= ~pairs.any(axis=0) | pairs.any(axis=1)
    return [one for one, stays in zip(regions, keep) if stays]


def with_labels(
    boxes: np.ndarray, scores: np.ndarray, classes: np.ndarray, names: Sequence[str]
) -> list[Region]:
    """A detector's boxes [K, 4] as regions; classes that mean no block of a page are left out."""
    regions = []
    for box, score, number in zip(boxes.tolist(), scores.tolist(), classes.tolist(), strict=True):
        label = BLOCK_OF_CLASS.get(names[int(number)]) if number < len(names) else None
        if label is not None:
            regions.append(Region(label, tuple(box), float(score)))
    return regions
