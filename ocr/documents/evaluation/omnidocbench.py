"""Truth of pages in OmniDocBench's format: blocks with category, text, HTML or LaTeX, and their order.

Source: https://github.com/opendatalab/OmniDocBench, README, "Dataset Format"; versions 1.0 to 1.6
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from framework.core.bounded import read_text
from framework.core.errors import FormatError
from ocr.documents.evaluation.markdown_blocks import Kind

_FORM = (
    '[{"layout_dets": [{"category_type", "order", "text" | "html" | "latex"}], "page_info": {"image_path"}}]'
)
# Categories that are scored, and as what. Text of captions, headers and such may be found or not: neither counts.
SCORED: dict[str, Kind] = {
    "title": "text",
    "text_block": "text",
    "reference": "text",
    "code_txt": "text",
    "table": "table",
    "equation_isolated": "formula",
}
OPTIONAL = {
    *("figure_caption", "figure_footnote", "table_caption", "table_footnote", "equation_caption"),
    *("header", "footer", "page_number", "page_footnote", "abandon"),
    *("code_txt_caption", "code_algorithm", "code_algorithm_caption"),
}


@dataclass(frozen=True)
class TrueBlock:
    """A block of the truth.

    Attributes:
        text: Plain; HTML of a table, LaTeX of a formula.
        order: Its place in the reading order of the page; None of what is not read along.
        scored: False: it may be found or not.
    """

    kind: Kind
    text: str
    order: int | None
    scored: bool


@dataclass(frozen=True)
class TruePage:
    """`name` is that of the image, without folder and ending."""

    name: str
    blocks: tuple[TrueBlock, ...]


def read_pages(path: str | Path) -> list[TruePage]:
    """The pages of a file, blocks in reading order and those without a place after them.

    Raises:
        InputError, FormatError: it cannot be read, or is no such file.
    """
    path = Path(path)
    try:
        data: Any = json.loads(read_text(path, 1 << 30, "truth of documents"))
        pages = [_page(page, number) for number, page in enumerate(data)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(
            "this is no truth of OmniDocBench's form",
            where=path,
            received=f"{type(error).__name__}: {error}"[:200],
            allowed=_FORM,
        ) from None
    if not pages:
        raise FormatError("there are no pages", where=path, received="an empty list", allowed=_FORM)
    names = [page.name for page in pages]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise FormatError("two pages have one name", where=path, received=twice, allowed="a name for each")
    return pages


def _page(page: Mapping[str, Any], number: int) -> TruePage:
    try:
        name = PurePosixPath(str(page["page_info"]["image_path"]).replace("\\", "/")).stem
        blocks = [block for entry in page["layout_dets"] if (block := _block(entry)) is not None]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"page {number}: {type(error).__name__}: {error}") from None
    blocks.sort(key=lambda block: (block.order is None, block.order or 0))
    return TruePage(name, tuple(blocks))


def _block(entry: Mapping[str, Any]) -> TrueBlock | None:
    """None of figures, masks, what is to be ignored, and what says nothing."""
    category, order = str(entry["category_type"]), entry.get("order")
    kind = SCORED.get(category, "text")
    text = entry.get({"table": "html", "formula": "latex"}.get(kind, "text"))
    if entry.get("ignore") or (category not in SCORED and category not in OPTIONAL) or not text:
        return None
    text = str(text).strip()
    if kind == "formula":
        text = text.removeprefix("$$").removesuffix("$$").removeprefix("\\[").removesuffix("\\]").strip()
    return TrueBlock(kind, text, None if order is None else int(order), category in SCORED)
