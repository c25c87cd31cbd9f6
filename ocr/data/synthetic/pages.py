"""Pages and receipts with many lines for detectors, drawn while they are read."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import check_number, check_range
from framework.vision.warp import Size, Warp
from ocr.data.synthetic.backgrounds import draw_background
from ocr.data.synthetic.base import Material, SyntheticText
from ocr.data.synthetic.layouts import Layout, Paper, print_receipt, scatter, set_paragraphs
from ocr.data.synthetic.report_pages import set_document
from ocr.data.synthetic.style import TextStyle, degrade_image, draw_integer


@register("dataset")
@dataclass(frozen=True)
class SyntheticPages(SyntheticText):
    """Images with K lines of text: `polygons`, K quads [4, 2] float32; `text`, K texts; `valid [K]`; the index as `id`.

    Quads run clockwise from the text's own top-left corner and hold all its ink with a small margin. What the camera's
    perspective leaves lower than `least_height` pixels, or partly outside of the image, is not `valid`.

    Attributes:
        height: Least and most of the image's, in pixels; `width` likewise.
        lines: Least and most lines of an image; there are fewer where no more fit. "document" fills the page instead.
        text_height: Least and most of a line's ink, in pixels, before perspective.
        layouts: Kinds of pages, each as probable. "document" has columns with headings, paragraphs, lists, tables and
            figures; it is not among the default ones.
        vertical: Share of scattered lines that are columns of upright characters.
        page_rotation: Degrees that pages are turned by at most, to both sides.

    The other settings are those of `SyntheticText` and of its `style`, whose rotation counts for single lines alone.

    Raises:
        ConfigError: a number is out of range.
        InputError: at the first use, a file is not there, no font or no text is found, or a character is in no font.
    """

    length: tuple[int, int] = (1, 40)
    height: tuple[int, int] = (480, 960)
    width: tuple[int, int] = (480, 960)
    lines: tuple[int, int] = (5, 40)
    text_height: tuple[int, int] = (9, 48)
    layouts: tuple[Layout, ...] = ("scattered", "page", "receipt")
    vertical: float = 0.0
    page_rotation: float = 8.0
    least_height: float = 6.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "height", 32, 8192)
        check_range(self, "width", 32, 8192)
        check_range(self, "lines", 1, 1000)
        check_range(self, "text_height", 4, 512)
        check_number(self, "vertical", 0, 1)
        check_number(self, "page_rotation", 0, 45)
        check_number(self, "least_height", 0)
        if not self.layouts:
            raise ConfigError(
                "there is no layout",
                where="SyntheticPages.layouts",
                received=self.layouts,
                allowed="scattered, page, receipt, document",
            )

    def __getitem__(self, index: int) -> Sample:
        return self._draw(index, self._draw_page)

    def _draw_page(self, material: Material, rng: np.random.Generator) -> Sample:
        size_hw = draw_integer(self.height, rng), draw_integer(self.width, rng)
        layout, count = self.layouts[int(rng.integers(len(self.layouts)))], draw_integer(self.lines, rng)
        background = draw_background(size_hw, self.style, material.images, rng)
        paper = Paper(background, self.style, material, rng)
        if layout == "scattered":
            scatter(paper, count, self.text_height, self.vertical)
        elif layout == "page":
            set_paragraphs(paper, count, self.text_height)
        elif layout == "document":
            set_document(paper, self.text_height)
        else:
            print_receipt(paper, count, self.text_height, material.images)
        warp = _draw_view(size_hw, self.style, self.page_rotation, rng)
        canvas = paper.canvas
        if not np.array_equal(warp.matrix, np.eye(3)):
            desk = draw_background(size_hw, self.style, material.images, rng)
            shown = warp.image(np.full(size_hw, 255, np.uint8))
            canvas = np.where(shown[..., None] == 255, warp.image(canvas), desk)
        quads = [warp.points(line.quad) for line in paper.lines]
        seen = [_is_seen(quad, size_hw) for quad in quads]
        kept = [(quad, line.text) for quad, line, visible in zip(quads, paper.lines, seen) if visible]
        return Sample(
            degrade_image(canvas, self.style, rng),
            polygons=tuple(quad.astype(np.float32) for quad, _ in kept),
            text=tuple(text for _, text in kept),
            valid=np.array([self._can_be_read(quad, size_hw) for quad, _ in kept], bool),
        )

    def _can_be_read(self, quad: np.ndarray, size_hw: Size) -> bool:
        inside = (quad >= -2).all() and (quad <= np.array(size_hw[::-1]) + 2).all()
        sides = np.linalg.norm(quad[[3, 2]] - quad[[0, 1]], axis=1)
        return bool(inside and sides.min() >= self.least_height)


def _is_seen(quad: np.ndarray, size_hw: Size) -> bool:
    return bool((quad.max(axis=0) > 0).all() and (quad.min(axis=0) < size_hw[::-1]).all())


def _draw_view(size_hw: Size, style: TextStyle, rotation: float, rng: np.random.Generator) -> Warp:
    """The page turned and seen in perspective, or as it is."""
    height, width = size_hw
    corners = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float64)
    quad = corners.copy()
    if rng.random() < style.p_perspective:
        quad += rng.uniform(-style.perspective, style.perspective, (4, 2)) * min(size_hw)
    if rng.random() < style.p_rotation:
        turn = math.radians(rng.uniform(-rotation, rotation))
        about = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        centre = np.array([width / 2, height / 2])
        quad = (quad - centre) @ about + centre
    if np.array_equal(quad, corners):
        return Warp.identity(size_hw)
    return Warp.perspective(size_hw, quad, size_hw).inverse()
