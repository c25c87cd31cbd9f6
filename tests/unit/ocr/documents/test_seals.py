"""Seals that a layout found: what they say, where, and in which form it leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from framework.workflow import ImageItem
from ocr.documents.seals import read_seals
from ocr.results.blocks import Block, Figure
from ocr.results.lines import Line
from ocr.results.pages import Document, Page

IMAGE = np.arange(100 * 120 * 3, dtype=np.uint32).reshape(100, 120, 3).astype(np.uint8)


class Seals:
    """Stands in for a predictor: one curved and one straight line in every crop."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def predict_prepared(self, item: ImageItem) -> tuple[Page, None]:
        self.seen.append(item.image)
        curved = Line("PORT ELLERY", 0.9, ((1, 9), (5, 1), (9, 1), (13, 9), (11, 10), (3, 10)))
        straight = Line("No. 5", 0.8, ((2, 12), (8, 12), (8, 15), (2, 15)))
        height, width = item.image.shape[:2]
        return Page((curved, straight), width=width, height=height), None


def test_seals_are_read_where_they_stand() -> None:
    seals: Any = Seals()
    figure = Figure(path="seal.png")
    others = Block("text", (0, 0, 50, 9), "text"), Block("image", (0, 0, 9, 9))
    text, seal, image = read_seals(
        [others[0], Block("seal", (40.4, 30.6, 60.2, 51.7), content=figure), others[1]], IMAGE, lambda: seals
    )
    assert (text, image) == others and len(seals.seen) == 1
    assert np.array_equal(seals.seen[0], IMAGE[30:52, 40:60])
    assert seal.text == "PORT ELLERY\nNo. 5" and seal.content is figure
    assert seal.lines[0].polygon[:2] == ((41, 39), (45, 31))
    assert seal.lines[1].polygon[2] == (48, 45)


def test_a_page_without_seals_opens_no_predictor() -> None:
    def never() -> Any:
        raise AssertionError("opened")

    block = Block("text", (0, 0, 50, 9), "text")
    assert read_seals([block], IMAGE, never) == [block]


def test_a_box_beyond_the_page_is_cut() -> None:
    seals: Any = Seals()
    (found,) = read_seals([Block("seal", (100, 90, 500, 500))], IMAGE, lambda: seals)
    assert seals.seen[0].shape == (10, 20, 3) and found.text


def test_what_seals_say_leaves_in_every_form() -> None:
    seals: Any = Seals()
    (block,) = read_seals(
        [Block("seal", (40, 30, 60, 52), content=Figure(path="s.png"))], IMAGE, lambda: seals
    )
    page = Page((), blocks=(replace(block, order=0),), width=120, height=100)
    assert Document((page,)).to_markdown() == "![](<s.png>)\n\nPORT ELLERY  \nNo. 5\n"
    (result,) = page.to_paddle()["seal_res_list"]
    assert result["rec_texts"] == ["PORT ELLERY", "No. 5"] and result["dt_polys"][0].shape == (6, 2)
    assert page.to_paddle()["model_settings"]["use_seal_recognition"] is True
    assert Page.from_dict(page.to_dict()).blocks[0].text == block.text
