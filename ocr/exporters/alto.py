"""ALTO 4 XML: Page > PrintSpace > TextBlock > TextLine > String and SP (> Glyph), in pixels.

Every line and string has its box and, as a Shape, its polygon, both within the page. A block is a column or what spans
the columns. A line whose text runs from right to left, or from top to bottom, says so as BASEDIRECTION.

The standard wants at least one Page, so a document without pages gives XML that is well-formed and not valid.

Source: https://www.loc.gov/standards/alto/v4/alto-4-4.xsd
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement

from ocr.exporters._xml import blocks_of, serialise, xml_text
from ocr.results.bidi import starts_right
from ocr.results.geometry import bounds_of
from ocr.text.reading_order import quad_of, spaced_words

if TYPE_CHECKING:
    from ocr.results.lines import Char, Line, Polygon, Word
    from ocr.results.pages import Document, Page

_NAMESPACE = "http://www.loc.gov/standards/alto/ns-v4#"


def to_alto(document: Document, *, chars: bool = False) -> str:
    """The document as ALTO. With `chars`, words that know their characters' places hold them as Glyph elements."""
    root = Element(
        "alto",
        {
            "xmlns": _NAMESPACE,
            "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
            "xsi:schemaLocation": f"{_NAMESPACE} http://www.loc.gov/standards/alto/v4/alto-4-4.xsd",
            "SCHEMAVERSION": "4.4",
        },
    )
    description = SubElement(root, "Description")
    SubElement(description, "MeasurementUnit").text = "pixel"
    source = SubElement(description, "sourceImageInformation")
    SubElement(source, "fileName").text = xml_text(document.source)
    processing = SubElement(description, "Processing", {"ID": "processing_1"})
    SubElement(SubElement(processing, "processingSoftware"), "softwareName").text = "Oar"
    layout = SubElement(root, "Layout")
    for number, page in enumerate(document.pages, 1):
        _add_page(layout, page, number, chars)
    return serialise(root)


def _add_page(layout: Element, page: Page, number: int, chars: bool) -> None:
    width, height = str(page.width), str(page.height)
    attributes = {"ID": f"page_{number}", "PHYSICAL_IMG_NR": str(page.page), "WIDTH": width, "HEIGHT": height}
    space = SubElement(SubElement(layout, "Page", attributes), "PrintSpace")
    space.attrib.update({"HPOS": "0", "VPOS": "0", "WIDTH": width, "HEIGHT": height})
    line_number = word_number = 0
    for block_number, lines in enumerate(blocks_of(page), 1):
        block = [_clip_line(line, page) for line in lines]
        around = [point for line in block for point in line.polygon]
        area = SubElement(
            space, "TextBlock", {"ID": f"block_{number}_{block_number}"} | _box(bounds_of(around))
        )
        for line in block:
            line_number += 1
            element = SubElement(area, "TextLine", {"ID": f"line_{number}_{line_number}"})
            element.attrib.update(_box(bounds_of(line.polygon)))
            if line.vertical:
                element.set("BASEDIRECTION", "ttb")
            else:
                element.set("BASELINE", _points(quad_of(line.polygon)[[3, 2]].tolist()))
                if starts_right(line.text):
                    element.set("BASEDIRECTION", "rtl")
            _add_shape(element, line)
            words = list(spaced_words(line))
            for index, (word, spaced) in enumerate(words):
                word_number += 1
                _add_word(element, word, f"word_{number}_{word_number}", chars)
                if spaced and index + 1 < len(words):
                    SubElement(element, "SP", _box(_between(word, words[index + 1][0], line.vertical)))


def _add_word(line: Element, word: Word, name: str, chars: bool) -> None:
    element = SubElement(line, "String", {"ID": name, "CONTENT": xml_text(word.text)})
    element.attrib.update(_box(bounds_of(word.polygon)))
    element.set("WC", _confidence(word.score))
    _add_shape(element, word)
    # A Glyph holds exactly one character and all of a word's glyphs make up the word.
    if chars and all(len(char.text) == 1 for char in word.chars):
        for index, char in enumerate(word.chars, 1):
            glyph = SubElement(element, "Glyph", {"ID": f"{name}_{index}", "CONTENT": xml_text(char.text)})
            glyph.attrib.update(_box(bounds_of(char.polygon)))
            glyph.set("GC", _confidence(char.score))
            _add_shape(glyph, char)


def _add_shape(element: Element, piece: Line | Word | Char) -> None:
    SubElement(SubElement(element, "Shape"), "Polygon", {"POINTS": _points(piece.polygon)})


def _points(points: Iterable[Sequence[float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def _number(value: float) -> str:
    return f"{round(value, 1):g}" if abs(value) < 1e5 else str(round(value))


def _confidence(score: float) -> str:
    return f"{min(max(score, 0.0), 1.0):.4g}"


def _box(bounds: tuple[float, float, float, float]) -> dict[str, str]:
    left, top, right, bottom = bounds
    sides = {"HPOS": left, "VPOS": top, "WIDTH": right - left, "HEIGHT": bottom - top}
    return {name: _number(value) for name, value in sides.items()}


def _between(word: Word, following: Word, vertical: bool) -> tuple[float, float, float, float]:
    """The box of the space between two words: from the edge of the one that faces the other, in whichever direction."""
    one, other = quad_of(word.polygon), quad_of(following.polygon)
    if vertical:
        end, start = one[[2, 3]], other[[0, 1]]
    elif (other.mean(0) - one.mean(0)) @ (one[1] - one[0]) < 0:  # text that runs from right to left
        end, start = one[[0, 3]], other[[1, 2]]
    else:
        end, start = one[[1, 2]], other[[0, 3]]
    return bounds_of([*end.tolist(), *start.tolist()])


def _clip_line(line: Line, page: Page) -> Line:
    """The line with polygons within the page: text of a PDF may stand partly outside of it, and readers of ALTO want no
    coordinates below 0.
    """

    def clip(polygon: Polygon) -> Polygon:
        return tuple((min(max(x, 0.0), page.width), min(max(y, 0.0), page.height)) for x, y in polygon)

    if clip(line.polygon) == line.polygon:  # its words stand in it
        return line
    words = (
        replace(
            word,
            polygon=clip(word.polygon),
            chars=tuple(replace(char, polygon=clip(char.polygon)) for char in word.chars),
        )
        for word in line.words
    )
    return replace(line, polygon=clip(line.polygon), words=tuple(words))
