"""Blocks of a page from the regions of a layout detector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from detection.models.picodet import PicoDetConfig
from framework.config import build
from framework.core.errors import FormatError, InputError
from framework.interop.weights.safetensors_io import write_safetensors
from ocr.documents.layout_blocks import (
    add_regions,
    assign_lines,
    regions_of_scan,
    without_covered,
)
from ocr.documents.layout_model import open_layout
from ocr.documents.layout_regions import LayoutRules, Region
from ocr.documents.lazy import Lazy
from ocr.documents.page_content import PageContent
from ocr.documents.reader import DocumentReader
from ocr.results.blocks import BLOCK_LABELS, Block, Figure, Table
from ocr.results.lines import Line, Word
from tests.unit.ocr.documents.pdf_pages import PdfPage, make_pdf


def blocks_from_regions(
    regions: Sequence[Region],
    lines: Sequence[Line],
    *,
    known: Sequence[Block] = (),
    figures: bool = True,
    **page: Any,
) -> tuple[tuple[Block, ...], tuple[Line, ...]]:
    """The blocks of regions, and the lines that stand in none, of a page where other blocks are known."""
    content = PageContent(tuple(lines), 400, figures=tuple(known), **page)
    found = add_regions(content, regions, figures=figures)
    return found.regions, found.lines


def line(x: float, y: float, text: str, step: float = 6.0) -> Line:
    words, left = [], x
    for word in text.split():
        right = left + step * len(word)
        words.append(Word(word, 1.0, ((left, y), (right, y), (right, y + 10), (left, y + 10)), ()))
        left = right + step
    end = left - step
    return Line(text, 1.0, ((x, y), (end, y), (end, y + 10), (x, y + 10)), tuple(words))


def test_a_line_goes_to_the_box_that_holds_most_of_it() -> None:
    lines = [line(0, 0, "aaaa"), line(0, 20, "bbbb"), line(50, 0, "cccc"), line(0, 90, "dddd")]
    boxes = [(0.0, 0.0, 40.0, 40.0), (0.0, 15.0, 40.0, 40.0), (44.0, 0.0, 64.0, 40.0)]
    parts, rest = assign_lines(lines, boxes)
    assert [[one.text for one in part] for part in parts] == [["aaaa"], ["bbbb"], ["cccc"]]
    assert [one.text for one in rest] == ["dddd"]
    assert assign_lines(lines, []) == ([], lines)


def test_text_title_figure_and_what_is_in_no_region() -> None:
    lines = [
        line(10, 10, "A heading"),
        line(10, 40, "some words that go on in the"),
        line(10, 52, "second row of a para-"),
        line(10, 64, "graph"),
        line(20, 120, "label"),
        line(10, 300, "left alone"),
    ]
    regions = [
        Region("paragraph_title", (8, 8, 80, 22), 0.9),
        Region("text", (8, 38, 190, 76), 0.8),
        Region("image", (8, 100, 108, 200), 0.7),
        Region("text", (300, 300, 400, 320), 0.6),
    ]
    image = np.zeros((400, 400, 3), np.uint8)
    blocks, rest = blocks_from_regions(regions, lines, image=image, height=400)
    assert [(block.label, block.text) for block in blocks] == [
        ("paragraph_title", "A heading"),
        ("text", "some words that go on in the second row of a paragraph"),
        ("image", "label"),
    ]
    assert [block.level for block in blocks] == [1, 0, 0] and blocks[1].score == 0.8
    content = blocks[2].content
    assert isinstance(content, Figure) and content.image is not None and content.image.shape == (100, 100, 3)
    assert [one.text for one in rest] == ["left alone"]
    assert [block.label for block in blocks_from_regions(regions, lines, figures=False, height=400)[0]] == [
        "paragraph_title",
        "text",
    ]


def test_a_table_takes_the_words_inside_it() -> None:
    lines = [
        line(10, 10, "Name"),
        line(100, 10, "Value"),
        line(10, 30, "mass"),
        line(100, 30, "1.5"),
        line(10, 50, "size"),
        line(100, 50, "20 beside"),
    ]
    region = Region("table", (5, 5, 135, 65), 0.9)
    (block,), rest = blocks_from_regions([region], lines, height=100)
    assert isinstance(block.content, Table) and (block.content.rows, block.content.columns) == (3, 2)
    assert [cell.text for cell in block.content.cells] == ["Name", "Value", "mass", "1.5", "size", "20"]
    assert block.bbox == (5, 5, 135, 65) and [one.text for one in rest] == ["beside"]
    (known,), _ = blocks_from_regions([region], [line(10, 10, "one"), line(10, 30, "two")], height=100)
    assert isinstance(known.content, Table) and (known.content.rows, known.content.columns) == (2, 1)
    same = Block("table", (4, 4, 130, 60), content=Table(()))
    assert blocks_from_regions([region], lines, known=[same], height=100)[0] == ()


def test_parts_of_a_figure_are_not_figures() -> None:
    whole = Block("image", (0, 0, 100, 100), content=Figure(None))
    parts = [Block("image", (5, 5, 50, 50), content=Figure(None)), Block("image", (200, 0, 300, 90))]
    assert without_covered(parts, [whole]) == parts[1:]
    region = Region("image", (0, 0, 100, 100), 0.9)
    assert len(blocks_from_regions([region], [], known=parts, height=300)[0]) == 1
    assert blocks_from_regions([region], [], known=[whole], height=300)[0] == ()


def test_of_a_scan_figures_with_little_text_and_sure_headings_are_taken() -> None:
    lines = [
        line(0, 0, "a heading"),
        line(0, 60, "x"),
        *(line(200, 12 * row, "a receipt that is full of text") for row in range(10)),
    ]
    regions = [
        Region("paragraph_title", (0, 0, 90, 14), 0.8),
        Region("image", (0, 8, 100, 108), 0.9),
        Region("image", (200, 0, 390, 120), 0.9),  # full of text
        Region("image", (0, 200, 100, 300), 0.9),  # a table stands there
        Region("paragraph_title", (200, 0, 390, 10), 0.3),  # not sure enough
        Region("paragraph_title", (200, 0, 390, 60), 0.9),  # too many lines
        Region("paragraph_title", (0, 400, 90, 410), 0.9),  # none
        Region("text", (0, 0, 390, 120), 0.9),
    ]
    taken = regions_of_scan(regions, lines, [Block("table", (0.0, 205.0, 90.0, 300.0))])
    # the heading's box is that of its line, and the figure's is without the line that it touches
    assert [(one.label, one.box) for one in taken] == [
        ("paragraph_title", (0, 0, 54, 10)),
        ("image", (0, 10, 100, 108)),
    ]


def test_a_part_of_a_large_title_is_no_figure() -> None:
    title = Line("What children need", 1.0, ((0, 0), (400, 0), (400, 40), (0, 40)), ())
    assert regions_of_scan([Region("image", (200, 2, 398, 38), 0.7)], [title], []) == []
    assert len(regions_of_scan([Region("image", (200, 35, 398, 300), 0.7)], [title], [])) == 1


def test_a_long_line_on_the_edge_of_a_figure_is_text() -> None:
    """Text inside of figures is not written, and the network's edges are not exact."""
    lines = [line(10, 97, "Thank you for your visit"), line(10, 200, "Cash"), line(40, 150, "label")]
    (figure,) = regions_of_scan([Region("image", (5, 100, 160, 205), 0.9)], lines, [])
    assert figure.box == (5, 107, 160, 205)
    _, rest = assign_lines(lines, [figure.box])
    assert lines[0] in rest and lines[2] not in rest


def test_figures_of_scans_come_from_the_network_and_other_blocks_from_rules() -> None:
    lines = [line(10, 10 + 12 * row, "words of a paragraph that goes on") for row in range(3)]
    image = np.zeros((300, 300, 3), np.uint8)
    asked: list[int] = []

    def detect(page: np.ndarray) -> tuple[Region, ...]:
        asked.append(len(page))
        return (Region("image", (10, 100, 200, 250), 0.9), Region("text", (0, 0, 300, 30), 0.9))

    def labels(reader: DocumentReader, *, scan: bool) -> list[str]:
        blocks = reader._make_blocks(PageContent(tuple(lines), 300, 300, image=image, scan=scan))
        return [block.label for block in blocks]

    reader = DocumentReader(Lazy(lambda: None), figure_layout=Lazy(lambda: detect))  # type: ignore[arg-type, return-value]
    assert labels(reader, scan=True) == ["text", "image"] and asked == [300]
    # a page with a text layer and one without figures leave the network alone
    assert labels(reader, scan=False) == ["text"]
    assert labels(replace(reader, figures=False), scan=True) == ["text"] and asked == [300]


def test_list_items_are_parted() -> None:
    lines = [line(10, 10, "1. first"), line(10, 22, "2. second"), line(10, 34, "3. third")]
    blocks, rest = blocks_from_regions([Region("list_item", (5, 5, 90, 50), 0.7)], lines, height=100)
    assert [(block.label, block.text) for block in blocks] == [
        ("list_item", "1. first"),
        ("list_item", "2. second"),
        ("list_item", "3. third"),
    ]
    assert rest == ()


def test_the_reader_takes_regions_where_it_has_a_detector() -> None:
    seen: list[tuple[int, ...]] = []

    def detect(image: np.ndarray) -> tuple[Region, ...]:
        seen.append(image.shape)
        return (Region("abstract", (20, 30, 200, 60), 0.9), Region("image", (20, 100, 180, 180), 0.9))

    detector: Any = detect
    page = PdfPage().text(30, 40, "Words of an abstract").text(30, 90, "and of a paragraph")

    def no_ocr() -> Any:
        raise AssertionError("a text layer was read by OCR")

    document = DocumentReader(Lazy(no_ocr), "always", dpi=72.0, layout=detector)(make_pdf(page))
    assert [(block.label, block.text) for block in document.pages[0].blocks] == [
        ("abstract", "Words of an abstract"),
        ("text", "and of a paragraph"),
        ("image", ""),
    ]
    assert len(seen) == 1 and seen[0][2] == 3


@pytest.mark.slow
def test_an_artifact_gives_regions(tmp_path: Path) -> None:
    """A network with random weights: the classes come from the config alone, and boxes stay on the page."""
    model: Any = build(PicoDetConfig("picodet_xs", num_classes=23))
    state = {name: np.asarray(value) for name, value in model.state_dict().items()}
    write_safetensors(tmp_path / "random.safetensors", state)
    overrides = ["model.variant=picodet_xs", "model.backbone.variant=pplcnet_x0_35"]
    overrides += [
        f"weights={(tmp_path / 'random.safetensors').as_posix()}",
        "data.eval.transforms.0.size_hw=[96, 64]",
    ]
    overrides += ["export.inputs.image.shape=[n, 96, 64, 3]", "model.nms.score_threshold=0.0"]
    rules = LayoutRules(threshold=0.0, thresholds={})
    regions = open_layout("PP-DocLayout-S", rules=rules, overrides=overrides)(
        np.zeros((300, 200, 3), np.uint8)
    )
    assert regions and {one.label for one in regions} <= set(BLOCK_LABELS)
    boxes = np.array([one.box for one in regions])
    assert (boxes >= 0).all() and (boxes <= [200, 300, 200, 300]).all() and boxes[:, 3].max() > 96


def test_models_that_find_no_blocks() -> None:
    with pytest.raises(FormatError, match="does not find the blocks of pages"):
        open_layout("picodet_xs_320_raccoon")
    with pytest.raises(InputError, match="no-such-layout"):
        open_layout("no-such-layout")


@pytest.mark.parametrize("second, score, heading", [(42, 0.55, False), (42, 0.8, True), (55, 0.55, True)])
def test_the_first_of_equal_lines_is_no_heading(second: float, score: float, heading: bool) -> None:
    """A heading that the network is sure of stays one, and so does one with more white below it."""
    words = ("Millions of dollars except per share data", "Product sales", "Total revenue", "Operating costs")
    heights = (20.0, second, second + 22, second + 44)
    lines = [line(20, y, text) for y, text in zip(heights, words, strict=True)]
    region = Region("paragraph_title", (18, 18, 280, 36), score)
    assert bool(regions_of_scan([region], lines, [])) is heading


@pytest.mark.parametrize(
    ("beside", "heading"),
    [
        (("Daily", "No", "12 km"), False),
        (("Daily", "", ""), True),
        (("and so on with the day that", "", ""), True),
    ],
)
def test_a_question_with_its_answer_far_right_is_no_heading(beside: tuple[str, ...], heading: bool) -> None:
    questions = ("1. How often do you ride?", "2. Do you own a bicycle?", "3. How far is it?")
    lines = []
    for number, (question, answer) in enumerate(zip(questions, beside, strict=True)):
        lines += [line(20, 20 + 40 * number, question)]
        lines += [line(330, 20 + 40 * number, answer)] if answer else []
    assert bool(regions_of_scan([Region("paragraph_title", (18, 18, 180, 36), 0.9)], lines, [])) is heading


@pytest.mark.parametrize(
    ("first", "below", "heading"),
    [
        ("This paper shows that the goods were", "made in the north of the country", False),
        ("This paper shows that the goods were", "Made in the north of the country", True),
        ("Goods made in the north:", "made in the north of the country", True),
    ],
)
def test_the_first_line_of_a_paragraph_is_no_heading(first: str, below: str, heading: bool) -> None:
    lines = [line(20, 20, first), line(20, 34, below)]
    assert bool(regions_of_scan([Region("paragraph_title", (18, 18, 280, 36), 0.9)], lines, [])) is heading
