"""hOCR 1.2 as XHTML: ocr_page > ocr_carea > ocr_par > ocr_line > ocrx_word (> ocrx_cinfo).

Boxes are whole pixels of the source image. An area is a column or what spans the columns. A line within 45 degrees of
upright has a `baseline`, for which the lower edge of its polygon stands; one turned further has a `textangle` instead.
Text that runs from right to left has dir="rtl", and its words stand in the order in which they are read.

Source: https://kba.github.io/hocr-spec/1.2/
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from ocr.exporters._xml import blocks_of, pixel_box, serialise, xml_text
from ocr.results.bidi import starts_right
from ocr.text.reading_order import quad_of, spaced_words

if TYPE_CHECKING:
    from ocr.results.lines import Line
    from ocr.results.pages import Document, Page

_DOCTYPE = (
    '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN" '
    '"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">\n'
)


def to_hocr(document: Document, *, chars: bool = False) -> str:
    """The document as hOCR. With `chars`, words that know their characters' places hold them as ocrx_cinfo."""
    root = Element("html", {"xmlns": "http://www.w3.org/1999/xhtml"})
    head = SubElement(root, "head")
    SubElement(head, "title").text = xml_text(document.source) or "OCR result"
    SubElement(head, "meta", {"http-equiv": "Content-Type", "content": "text/html; charset=utf-8"})
    capabilities = "ocr_page ocr_carea ocr_par ocr_line ocrx_word ocrp_wconf ocrp_dir" + " ocrx_cinfo" * chars
    for name, content in (
        ("ocr-system", "Oar"),
        ("ocr-capabilities", capabilities),
        ("ocr-number-of-pages", str(len(document.pages))),
    ):
        SubElement(head, "meta", {"name": name, "content": content})
    body = SubElement(root, "body")
    for number, page in enumerate(document.pages, 1):
        _add_page(body, page, number, chars)
    return serialise(root, _DOCTYPE)


def _add_page(body: Element, page: Page, number: int, chars: bool) -> None:
    # In a quoted string of a property, quotes and backslashes would end it; hOCR names no escape for them.
    name = xml_text(page.source).replace("\\", "/").replace('"', "'")
    size = page.width, page.height
    title = f'image "{name}"; bbox 0 0 {page.width} {page.height}; ppageno {page.page - 1}'
    holder = SubElement(body, "div", {"class": "ocr_page", "id": f"page_{number}", "title": title})
    holder.text = "\n"  # browsers that read this as HTML do not know <div/>
    line_number = word_number = 0
    for block_number, block in enumerate(blocks_of(page), 1):
        box = {"title": _bbox(pixel_box([line.polygon for line in block], size))}
        area = SubElement(holder, "div", {"class": "ocr_carea", "id": f"block_{number}_{block_number}"} | box)
        paragraph = SubElement(area, "p", {"class": "ocr_par", "id": f"par_{number}_{block_number}"} | box)
        rightward = starts_right("".join(line.text for line in block))
        if rightward:
            paragraph.set("dir", "rtl")
        for line in block:
            line_number += 1
            element = SubElement(
                paragraph, "span", {"class": "ocr_line", "id": f"line_{number}_{line_number}"}
            )
            element.set("title", _line_title(line, size))
            if starts_right(line.text) != rightward:
                element.set("dir", "ltr" if rightward else "rtl")
            element.tail = "\n"
            for word, spaced in spaced_words(line):
                word_number += 1
                properties = f"{_bbox(pixel_box([word.polygon], size))}; x_wconf {_percent(word.score)}"
                holds = SubElement(
                    element,
                    "span",
                    {"class": "ocrx_word", "id": f"word_{number}_{word_number}", "title": properties},
                )
                holds.tail = " " if spaced else None
                if not (chars and word.chars):
                    holds.text = xml_text(word.text)
                    continue
                for char in word.chars:
                    places = " ".join(map(str, pixel_box([char.polygon], size)))
                    properties = f"x_bboxes {places}; x_confs {_percent(char.score)}"
                    inner = SubElement(holds, "span", {"class": "ocrx_cinfo", "title": properties})
                    inner.text = xml_text(char.text)


def _bbox(box: tuple[int, int, int, int]) -> str:
    return "bbox " + " ".join(map(str, box))


def _percent(score: float) -> int:
    return round(100 * min(max(score, 0.0), 1.0))


def _line_title(line: Line, size: tuple[int, int]) -> str:
    box = pixel_box([line.polygon], size)
    _, _, right, left = quad_of(line.polygon).tolist()
    dx, dy = right[0] - left[0], right[1] - left[1]
    angle = math.degrees(math.atan2(-dy, dx))  # counter-clockwise as one sees it; y runs down
    if line.vertical:
        return _bbox(box)
    if abs(angle) > 45:
        return f"{_bbox(box)}; textangle {round(angle % 360, 1):g}"
    slope = dy / dx if dx else 0.0
    # The polynomial's origin is the lower left corner of the box.
    offset = left[1] + slope * (box[0] - left[0]) - box[3]
    # No more decimals than 4: exponents, which `g` writes below 1e-4, are none to readers of hOCR.
    return f"{_bbox(box)}; baseline {round(slope, 4):g} {offset:.1f}"
