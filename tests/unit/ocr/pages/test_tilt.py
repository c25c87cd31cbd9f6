from __future__ import annotations

import numpy as np
import pytest
from PIL import Image, ImageDraw

from framework.vision.warp import Warp
from ocr.documents.page_content import PageContent
from ocr.documents.processors import AddParagraphs
from ocr.pages.preparation import map_lines
from ocr.pages.tilt import Straightened, find_tilt
from ocr.results.lines import Line
from ocr.tables.ruled_tables import find_ruled_tables
from ocr.tables.scanned_ruling_lines import ruling_lines_of_image

CELLS = [["Region", "Q1", "Q2"], ["North", "12.5", "13.1"], ["South", "9.75", "8.80"]]


def table(degrees: float) -> tuple[np.ndarray, tuple[Line, ...]]:
    drawn = Image.new("RGB", (900, 520), "white")
    pen, lines = ImageDraw.Draw(drawn), []
    for row in range(4):
        pen.line([(60, 60 + 70 * row), (660, 60 + 70 * row)], fill="black", width=2)
    for column in range(4):
        pen.line([(60 + 200 * column, 60), (60 + 200 * column, 270)], fill="black", width=2)
    for row, cells in enumerate(CELLS):
        for column, text in enumerate(cells):
            left, top = 75 + 200 * column, 78 + 70 * row
            pen.text((left, top), text, font_size=26, fill="black")
            right, bottom = left + 15 * len(text), top + 32
            lines.append(
                Line(
                    text,
                    1.0,
                    tuple(
                        map(
                            tuple,
                            np.array(
                                [[left, top], [right, top], [right, bottom], [left, bottom]], float
                            ).tolist(),
                        )
                    ),
                )
            )
    warp = Warp.rotate((520, 900), degrees, expand=True)
    return warp.image(np.asarray(drawn), border=255), map_lines(lines, warp.points, bent=False)


@pytest.mark.parametrize("degrees", [-4.0, -1.5, 2.0, 3.5])
def test_a_skewed_ruled_table_is_one(degrees):
    image, lines = table(degrees)
    assert find_tilt(image, lines) == pytest.approx(degrees, abs=0.2)
    straight = Straightened.make(image, lines)
    assert straight is not None
    found, rest = find_ruled_tables(ruling_lines_of_image(straight.image), straight.lines)
    (block,) = straight.restore(found)
    assert (
        not rest
        and [[cell.text for cell in block.content.cells if cell.row == row] for row in range(3)] == CELLS
    )
    assert {line for cell in block.content.cells for line in cell.lines} == set(
        lines
    )  # those of the page as it lies
    assert not find_ruled_tables(ruling_lines_of_image(image), lines)[0] or abs(degrees) < 2


def test_straight_pages_and_lines_that_disagree_are_left():
    image, lines = table(0)
    assert find_tilt(image, lines) == 0 and Straightened.make(image, lines) is None
    assert find_tilt(np.full((90, 90, 3), 255, np.uint8), lines) == 0 and find_tilt(image, ()) == 0
    skewed, _ = table(3)
    long = Line("a long line", 1.0, ((0.0, 0.0), (300.0, 0.0), (300.0, 20.0), (0.0, 20.0)))
    assert find_tilt(skewed, (long,)) == 0


def test_text_at_the_side_of_a_scan_stands_in_blocks_of_its_own():
    def level(text: str, top: float) -> Line:
        return Line(text, 1.0, ((200.0, top), (560.0, top), (560.0, top + 30), (200.0, top + 30)))

    up = Line("Thousands of euros", 1.0, ((30.0, 400.0), (30.0, 100.0), (60.0, 100.0), (60.0, 400.0)))
    down = Line("Right side notice", 1.0, ((640.0, 100.0), (640.0, 400.0), (610.0, 400.0), (610.0, 100.0)))
    page = PageContent(
        (level("Annual report", 60), level("Revenue grew", 130), up, down), 700, 500, scan=True
    )
    texts = [block.text for block in AddParagraphs()(page).paragraphs]
    assert "Thousands of euros" in texts and "Right side notice" in texts
    assert sorted(" ".join(texts).split()) == sorted(
        ["Annual", "report", "Revenue", "grew", "Thousands", "of", "euros", "Right", "side", "notice"]
    )
