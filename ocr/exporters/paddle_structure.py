"""Pages of blocks under the keys of PP-StructureV3's results.

Source: PaddleX 3.x `LayoutParsingResultV2`, whose keys are public interface.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ocr.exporters.paddle import integer_boxes, page_to_predict_dict
from ocr.results.blocks import BLOCK_LABELS, Block, Formula, Table
from ocr.results.lines import Line
from ocr.text.reading_order import quad_of

if TYPE_CHECKING:
    from ocr.results.pages import Page


def page_to_paddle(page: Page, page_count: int | None = None) -> dict[str, object]:
    """A page as PP-StructureV3's `predict` gives it.

    `input_path, page_index` (from 0)`, page_count, width, height, model_settings, parsing_res_list` (a dict of
    `block_label, block_content, block_bbox, block_id, block_order` (from 1; None of what is not read along)`),
    layout_det_res {boxes}, overall_ocr_res, table_res_list` (`cell_box_list, pred_html, table_ocr_pred`),
    `formula_res_list, seal_res_list`. A table's content is its HTML, as upstream's.
    Differs: captions follow their table or figure, and "list_item", which upstream has not, is "text".
    """
    blocks = [part for block in page.blocks for part in block.walk()]
    order = 0
    parsed, found = [], []
    for number, block in enumerate(blocks):
        box = [round(value) for value in block.bbox]
        label = "text" if block.label == "list_item" else block.label
        if block.label not in ("header", "footer", "number", "aside_text"):
            order += 1
        is_read = block.label not in ("header", "footer", "number", "aside_text")
        parsed.append(
            {
                "block_label": label,
                "block_content": _content(block),
                "block_bbox": box,
                "block_id": number,
                "block_order": order if is_read else None,
            }
        )
        found.append(
            {
                "cls_id": BLOCK_LABELS.index(block.label),
                "label": label,
                "score": block.score,
                "coordinate": list(block.bbox),
            }
        )
    return {
        "input_path": page.source,
        "page_index": page.page - 1,
        "page_count": page_count,
        "width": page.width,
        "height": page.height,
        "model_settings": {
            "use_doc_preprocessor": False,
            "use_seal_recognition": any(b.label == "seal" and b.lines for b in blocks),
            "use_table_recognition": True,
            "use_formula_recognition": False,
            "use_chart_recognition": False,
            "use_region_detection": False,
            "format_block_content": False,
        },
        "parsing_res_list": parsed,
        "layout_det_res": {"boxes": found},
        "overall_ocr_res": page_to_predict_dict(page),
        "table_res_list": [_table(b, b.content) for b in blocks if isinstance(b.content, Table)],
        "seal_res_list": [
            _seal(number, b) for number, b in enumerate(blocks) if b.label == "seal" and b.lines
        ],
        "formula_res_list": [
            {"rec_formula": b.content.latex, "formula_region_id": number, "dt_polys": list(b.bbox)}
            for number, b in enumerate(blocks)
            if isinstance(b.content, Formula)
        ],
    }


def _seal(number: int, block: Block) -> dict[str, object]:
    return {
        "seal_region_id": number,
        "dt_polys": [np.array(line.polygon).round().astype(np.int32) for line in block.lines],
        "rec_texts": [line.text for line in block.lines],
        "rec_scores": [line.score for line in block.lines],
    }


def _content(block: Block) -> str:
    if isinstance(block.content, Table):
        return _html(block.content)
    return block.content.latex if isinstance(block.content, Formula) else block.text


def _html(table: Table) -> str:
    return f"<html><body>{table.to_html()}</body></html>"


def _table(block: Block, table: Table) -> dict[str, object]:
    boxes = [cell.bbox for cell in table.cells if cell.bbox is not None]
    lines: list[Line] = [line for cell in table.cells for line in cell.lines]
    bounds = integer_boxes([line.polygon for line in lines])
    return {
        "cell_box_list": [list(box) for box in boxes],
        "pred_html": _html(table),
        "table_ocr_pred": {
            "rec_polys": [quad_of(line.polygon).round().astype(np.int32) for line in lines],
            "rec_texts": [line.text for line in lines],
            "rec_scores": [line.score for line in lines],
            "rec_boxes": bounds,
        },
        "neighbor_texts": " ".join(child.text for child in block.children),
    }


def plain(value: object) -> object:
    """The same with arrays as lists, for JSON."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value
