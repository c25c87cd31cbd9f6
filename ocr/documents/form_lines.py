"""What was filled into the form of a PDF page, as lines where it stands and as fields."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from framework.workflow.files.pdf_content import PageContent
from ocr.fields.rules import name_of_key
from ocr.results.blocks import Box, Field
from ocr.results.geometry import bounding_box, box_polygon, centre, line_box
from ocr.results.lines import Line, LineStyle, Word

TYPE_SIZE = 0.7  # of a field's height, where the form leaves the size to the viewer
LARGEST, MARGIN = 12.0, 2.0  # points: of such type, left of a value
LEADING = 1.2
MARKS = {True: "☒", False: "☐"}
CHECKED, UNCHECKED = "checked", "unchecked"
REACH, FORM_REACH = (
    3.0,
    40.0,
)  # heights of a box, within which its label stands: of one that is drawn, of a form's


def form_lines(page: PageContent) -> list[Line]:
    """The values of fields for text and of lists, and text that was typed on the page: a line for each of theirs."""
    lines: list[Line] = []
    for item in page.annotations.fields:
        if item.kind in ("check_box", "radio_button"):
            continue
        said = [line for line in item.value.split("\n") if line.strip()]
        if not said:
            continue
        left, top, right, bottom = item.box
        height = (bottom - top) / len(said)
        size = item.size or min(TYPE_SIZE * height, LARGEST * page.scale)
        step = min(LEADING * size, height)
        # One line stands in the middle of its field, several begin at the top.
        first = (top + bottom) / 2 - step / 2 if len(said) == 1 else top + MARGIN * page.scale
        for number, text in enumerate(said):
            box = (left + MARGIN * page.scale, first + number * step, right, first + (number + 1) * step)
            lines.append(_line(text, box, size))
    return lines


def _line(text: str, box: Box, size: float) -> Line:
    """A line of text of this size in a box, each word with its share of the width that such letters have."""
    left, top, right, bottom = box
    advance = min(0.5 * size, (right - left) / max(len(text), 1))
    words: list[Word] = []
    at = 0
    for word in text.split():
        at = text.index(word, at)
        place = (left + at * advance, top, left + (at + len(word)) * advance, bottom)
        words.append(Word(word, 1.0, box_polygon(place)))
        at += len(word)
    outer = box_polygon(bounding_box(map(line_box, words)))
    style = LineStyle(size, False, False, "")
    return Line(" ".join(word.text for word in words), 1.0, outer, tuple(words), 0, False, style)


def form_fields(page: PageContent, number: int) -> tuple[Field, ...]:
    """The fields of the page's form that hold something; of radio buttons the one that is on."""
    fields: list[Field] = []
    for item in page.annotations.fields:
        key = item.label or item.name.rsplit(".", 1)[-1]
        value = item.value.strip()
        if item.kind == "free_text" or (item.kind == "radio_button" and not item.checked):
            continue
        if item.kind == "check_box":
            value = CHECKED if item.checked else UNCHECKED
        if value:
            fields.append(Field(name_of_key(key), value, 1.0, key, number, (item.box,), value))
    return tuple(fields)


def form_boxes(page: PageContent) -> list[tuple[Box, bool]]:
    """The check boxes and radio buttons of the page's form, and whether each is on."""
    kinds = ("check_box", "radio_button")
    return [(item.box, item.checked) for item in page.annotations.fields if item.kind in kinds]


def add_boxes(lines: Sequence[Line], boxes: Iterable[tuple[Box, bool]], reach: float = REACH) -> list[Line]:
    """Lines with "☒" and "☐" where check boxes stand: in the line of their label, in place of a mark that is a
    character, or alone.

    Args:
        reach: Of a box's height, how far away its label may stand.
    """
    lines = list(lines)
    for box, checked in boxes:
        mark = MARKS[checked]
        at = _line_of(lines, box, reach)
        if at is None:
            size = box[3] - box[1]
            word = Word(mark, 1.0, box_polygon(box))
            lines.append(Line(mark, 1.0, word.polygon, (word,), 0, False, LineStyle(size, False, False, "")))
            continue
        line = lines[at]
        words = [word for word in line.words if not _is_inside(line_box(word), box)]
        # The box is as high as its line, so that rows and their distances stay those of the text.
        _, top, _, bottom = line_box(line)
        place = (box[0], max(box[1], top), box[2], max(min(box[3], bottom), max(box[1], top)))
        new = Word(mark, 1.0, box_polygon(place))
        before = sum(line_box(word)[0] < box[0] for word in words)
        words.insert(before, new)
        outer = bounding_box(map(line_box, words))
        text = " ".join(word.text for word in words)
        lines[at] = replace(line, text=text, words=tuple(words), polygon=box_polygon(outer))
    return lines


def _is_inside(inner: Box, outer: Box) -> bool:
    x, y = centre(inner)
    return outer[0] <= x <= outer[2] and outer[1] <= y <= outer[3]


def _line_of(lines: Sequence[Line], box: Box, reach: float) -> int | None:
    """The line that a check box belongs to: it stands in it or before it, else behind it, level with it."""
    height = box[3] - box[1]
    best, nearest = None, reach * height
    for number, line in enumerate(lines):
        if line.orientation or line.vertical or not line.words:
            continue
        left, top, right, bottom = line_box(line)
        middle = (box[1] + box[3]) / 2
        if not top - 0.3 * height < middle < bottom + 0.3 * height:
            continue
        if left - 0.5 * height <= box[0] <= right:
            distance = 0.0 if box[2] < right else 0.1 * height
        elif box[0] < left:
            distance = max(left - box[2], 0.0)
        else:
            distance = 2 * (box[0] - right) + height  # a label is rather to the right of its box
        if distance < nearest:
            best, nearest = number, distance
    return best
