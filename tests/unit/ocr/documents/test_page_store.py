"""Pages that were read, kept as files: what is left out, and what is found again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.vision import image as vision_image
from ocr.documents.page_store import PageStore
from ocr.results.blocks import Block, Cell, Figure, Table
from ocr.results.lines import Char, Line, Polygon, Word
from ocr.results.pages import Page


def quad(left: float, top: float) -> Polygon:
    return ((left, top), (left + 30.0, top), (left + 30.0, top + 10.0), (left, top + 10.0))


def line(text: str, left: float, top: float) -> Line:
    chars = tuple(Char(char, 1.0, quad(left, top)) for char in text)
    return Line(text, 0.9, quad(left, top), (Word(text, 0.9, quad(left, top), chars),))


def page(number: int = 3) -> Page:
    """One with a paragraph, a table with a caption, and two figures, one within the other at its corner."""
    said, cell, caption = line("words", 5, 5), line("cell", 5, 30), line("caption", 5, 45)
    grey = np.full((40, 40, 3), 128, np.uint8)
    blocks = (
        Block("text", (5, 5, 35, 15), "words", (said,)),
        Block(
            "table", (5, 30, 35, 40), "cell", (cell,), content=Table((Cell(0, 0, "cell", lines=(cell,)),)),
            children=(Block("table_title", (5, 45, 35, 55), "caption", (caption,)),),
        ),
        Block("image", (50, 10, 90, 50), content=Figure(grey)),
        Block("image", (50, 10, 60, 20), content=Figure(grey[:10, :10] // 2)),
    )  # fmt: skip
    lines = (said, cell, caption)
    return Page(lines, number, blocks=blocks, width=100, height=60, image=np.zeros((60, 100, 3), np.uint8))


def test_a_page_is_kept_without_characters_and_images(tmp_path: Path) -> None:
    store = PageStore(tmp_path / "work", tmp_path / "a_files", image=True)
    kept = store.save(page())
    assert '"chars": [{' not in store.file(3).read_text(encoding="utf-8")
    assert kept.image is None and kept.text == page().text
    table = kept.blocks[1]
    assert isinstance(table.content, Table) and table.content.cells[0].text == "cell"
    # One object in all places, as it was read.
    assert kept.lines[1] is table.lines[0] is table.content.cells[0].lines[0]
    assert store.load(3) == kept
    shown = store.with_image(kept)
    assert shown.image is not None and shown.image.shape == (60, 100, 3)


def test_each_figure_has_its_own_file(tmp_path: Path) -> None:
    store = PageStore(tmp_path / "work", tmp_path / "a_files", image=False)
    figures = [block.content for block in store.save(page()).blocks[2:]]
    sizes = [vision_image.read(tmp_path / f.path).shape for f in figures if isinstance(f, Figure)]
    assert sizes == [(40, 40, 3), (10, 10, 3)]
    assert all(not b.content.path for b in PageStore(tmp_path, None, False).save(page()).blocks[2:])  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"lines": 3}', "null", "[" * 99999], ids=str.__len__)
def test_a_page_whose_file_is_damaged_was_not_read(tmp_path: Path, text: str) -> None:
    store = PageStore(tmp_path, None, image=False)
    assert store.load(3) is None
    store.save(page())
    assert store.load(3) is not None
    store.file(3).write_text(text, encoding="utf-8")
    assert store.load(3) is None


def test_a_page_whose_image_is_gone_was_not_read(tmp_path: Path) -> None:
    store = PageStore(tmp_path, None, image=True)
    store.save(page())
    store.file(3, ".jpg").unlink()
    assert store.load(3) is None
    unread = Page((), 4, warnings=("damaged",), width=0, height=0)
    store.save(unread)
    assert store.load(4) == unread and store.jpeg(unread) is None and store.with_image(unread) == unread
    assert json.loads(store.file(4).read_text(encoding="utf-8"))["warnings"] == ["damaged"]
