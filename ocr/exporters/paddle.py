"""Results in the structures that PaddleOCR's users know.

Source: PaddleOCR 2.x `PaddleOCR.ocr()` and PaddleX 3.x `OCRResult`, whose keys are public interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ocr.results.geometry import bounds_of
from ocr.results.lines import Polygon
from ocr.text.reading_order import quad_of

if TYPE_CHECKING:
    from ocr.results.pages import Page


def page_to_v2(page: Page) -> list[list[object]]:
    """A list of `[[[x, y], ...], (text, score)]`. Differs: a page without text is [], never None."""
    return [[[list(point) for point in line.polygon], (line.text, line.score)] for line in page.lines]


def page_to_predict_dict(page: Page) -> dict[str, object]:
    """The page under the keys of 3.x.

    `input_path`, `page_index` (from 0), `dt_polys` and `rec_polys` (a list of [4, 2] int32; here the same, as a Page
    holds no line that was detected and not recognised), `rec_texts`, `rec_scores`, `rec_boxes` [N, 4] int32 xyxy,
    `textline_orientation_angles` (0 for upright, 1 for text on its head), `text_type` "general" or, with polygons of
    more than four points, "seal"; and per line `text_word` and `text_word_boxes` [words, 4] int32.
    Of a page that a pipeline read also its settings: `model_settings`, `text_det_params` and `text_rec_score_thresh`.
    Of a page that was turned or made flat `doc_preprocessor_res` has the `angle` (-1 where nobody looked) and which of
    both was done; polygons are in pixels of the image as it was given, where upstream's are in the prepared one's.
    """
    curved = not page.unwarped and any(len(line.polygon) != 4 for line in page.lines)
    polygons = [np.array(line.polygon if curved else quad_of(line.polygon)).round() for line in page.lines]
    prepared: dict[str, object] = {}
    if page.angle is not None or page.unwarped:
        done = {"use_doc_orientation_classify": page.angle is not None, "use_doc_unwarping": page.unwarped}
        angle = -1 if page.angle is None else page.angle
        prepared = {"doc_preprocessor_res": {"angle": angle, "model_settings": done}}
    return {
        **_settings(page),
        **prepared,
        "input_path": page.source,
        "page_index": page.page - 1,
        "dt_polys": [polygon.astype(np.int32) for polygon in polygons],
        "text_type": "seal" if curved else "general",
        "textline_orientation_angles": [int(line.orientation == 180) for line in page.lines],
        "rec_texts": [line.text for line in page.lines],
        "rec_scores": [line.score for line in page.lines],
        "rec_polys": [polygon.astype(np.int32) for polygon in polygons],
        "rec_boxes": integer_boxes([line.polygon for line in page.lines]),
        "text_word": [[word.text for word in line.words] for line in page.lines],
        "text_word_boxes": [integer_boxes([word.polygon for word in line.words]) for line in page.lines],
    }


def _settings(page: Page) -> dict[str, object]:
    if (used := page.settings) is None:
        return {}
    return {
        "model_settings": {
            "use_doc_preprocessor": used.prepares_pages,
            "use_textline_orientation": used.turns_lines,
        },
        "text_det_params": {
            "limit_side_len": used.limit_side,
            "limit_type": used.limit_type,
            "thresh": used.thresh,
            "max_side_limit": used.max_side,
            "box_thresh": used.box_thresh,
            "unclip_ratio": used.unclip_ratio,
        },
        "text_rec_score_thresh": used.drop_score,
    }


def integer_boxes(polygons: list[Polygon]) -> np.ndarray:
    """[N, 4] int32: the upright boxes around polygons."""
    return np.array([bounds_of(polygon) for polygon in polygons]).round().astype(np.int32).reshape(-1, 4)
