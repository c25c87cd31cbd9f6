"""Label files of pages with the polygons of their text, and files mixed by ratios. Pure reading, no images.

Formats: PaddleOCR (`image<tab>text`, `image<tab>json`), and a file for each page as of ICDAR 2015 and SROIE
(`x1,y1,…,x4,y4,text`). What cannot be read is an error with file and line, or is counted and left out.
Source: PaddleOCR doc/doc_en/dataset; https://rrc.cvc.uab.es
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import ConfigError
from framework.vision.annotations.objects import signed_area
from ocr.text.label_files import BadLines, bad_line, read_labels

_BOX = re.compile(r"\s*" + r"(-?[\d.]+)(?:\s*,\s*|\s+)" * 4 + r'"(.*)"\s*')
_log = logging.getLogger("oar")
T = TypeVar("T")
IGNORED = ("###", "*")  # texts of regions that nobody can read


@dataclass(frozen=True)
class Region:
    """A polygon [P, 2] float32, P >= 4, in pixels of the page, and its text; `readable` is False for a don't-care.

    Labels of a detector alone have empty texts, which it learns and is measured by like any other.
    """

    polygon: np.ndarray
    text: str
    readable: bool
    crossed: bool = False
    """Whether the corners of the label came in an order whose sides cross, such as row by row."""

    @property
    def has_text(self) -> bool:
        """Whether a recogniser can learn from it."""
        return self.readable and bool(self.text.strip())


@dataclass(frozen=True)
class PageLabel:
    """An image and its regions; `place` is where they stand."""

    image: str
    regions: tuple[Region, ...]
    place: str


def read_page_labels(path: Path, bad_lines: BadLines = "error") -> list[PageLabel]:
    """`image<tab>[{"transcription": …, "points": [[x, y], …]}, …]` a line. A transcription of null is one that is not
    said, as is an empty one.

    Raises:
        FormatError: as of `read_line_labels`.
    """

    def parse(line: str, place: str) -> list[PageLabel]:
        image, tab, text = line.partition("\t")
        try:
            listed = json.loads(text) if tab and image else None
            regions = tuple(
                make_region(one["points"], _read_transcription(one["transcription"])) for one in listed or ()
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise bad_line(place, line, f'image<tab>[{{"transcription": …, "points": …}}]; {error}') from None
        if not isinstance(listed, list):
            raise bad_line(place, line, 'image<tab>[{"transcription": "…", "points": [[x, y], …]}, …]')
        return [PageLabel(image, regions, place)]

    pages = read_labels(path, parse, bad_lines)
    if crossed := sum(region.crossed for page in pages for region in page.regions):
        _log.warning(
            "%s: the corners of %d quads come in an order whose sides cross; they are taken clockwise",
            path,
            crossed,
        )
    return pages


def _read_transcription(transcription: object) -> str:
    return "" if transcription is None else str(transcription)


def read_regions(path: Path, bad_lines: BadLines = "error") -> tuple[Region, ...]:
    """The regions of one page: `x1,y1,x2,y2,x3,y3,x4,y4,text` a line; the text may hold commas. Boxes are read as ICDAR
    2013 has them too, `left, top, right, bottom, "text"`, with blanks in place of the commas in its training part.

    Raises:
        FormatError: as of `read_line_labels`; an empty file is a page without text.
    """

    def parse(line: str, place: str) -> list[Region]:
        if not line.strip():
            return []
        cells = line.split(",", 8)
        box = _BOX.fullmatch(line)
        try:
            if box is not None:
                left, top, right, bottom = (float(side) for side in box.groups()[:4])
                return [make_region([[left, top], [right, top], [right, bottom], [left, bottom]], box[5])]
            numbers = [float(cell) for cell in cells[:8]]
            if len(cells) < 8:
                raise ValueError("fewer than 8 numbers")
            return [make_region(np.reshape(numbers, (4, 2)), cells[8] if len(cells) > 8 else "###")]
        except ValueError as error:
            raise bad_line(
                place, line, f'x1,y1,…,x4,y4,text or left,top,right,bottom,"text"; {error}'
            ) from None

    return tuple(read_labels(path, parse, bad_lines)) if path.stat().st_size else ()


def make_region(points: ArrayLike, text: str) -> Region:
    """Raises: ValueError, where the points are no polygon."""
    polygon = np.asarray(points, np.float32)
    if polygon.ndim != 2 or polygon.shape[1] != 2 or len(polygon) < 4 or not np.isfinite(polygon).all():
        raise ValueError(f"points of shape {list(polygon.shape)} are no polygon [P >= 4, 2]")
    around = _uncross(polygon) if len(polygon) == 4 else polygon
    return Region(around, text, text not in IGNORED, crossed=around is not polygon)


def _uncross(quad: np.ndarray) -> np.ndarray:
    """The corners [4, 2] clockwise from the first one where two sides cross, else as they are.

    A quad whose sides cross has an area of about 0: a detector would neither learn it nor be measured by it.
    """
    if _cross(quad[0], quad[1], quad[2], quad[3]):
        around = quad[[0, 2, 1, 3]]
    elif _cross(quad[1], quad[2], quad[3], quad[0]):
        around = quad[[0, 1, 3, 2]]
    else:
        return quad
    clockwise = signed_area(around) > 0  # y points down
    return around if clockwise else around[[0, 3, 2, 1]]


def _cross(one: np.ndarray, other: np.ndarray, third: np.ndarray, fourth: np.ndarray) -> bool:
    """Whether the lines from `one` to `other` and from `third` to `fourth` cross between their ends."""

    def side(start: np.ndarray, end: np.ndarray, point: np.ndarray) -> float:
        along, offset = end - start, point - start
        return float(along[0] * offset[1] - along[1] * offset[0])

    return (
        side(one, other, third) * side(one, other, fourth) < 0
        and side(third, fourth, one) * side(third, fourth, other) < 0
    )


def check_label_files(labels: Sequence[object], ratios: Sequence[float] | None, where: str) -> None:
    """Raises: ConfigError, where there is none, or the ratios are not theirs."""
    if not labels:
        raise ConfigError(
            "there is nothing to read", where=where, received="an empty list", allowed="one or more"
        )
    if ratios is not None and (len(ratios) != len(labels) or min(ratios) <= 0):
        raise ConfigError(
            "each file or data set has a ratio above 0",
            where=f"{where}.ratios",
            received=f"{list(ratios)} for {len(labels)}",
        )


def mix_files(files: Sequence[Sequence[T]], ratios: Sequence[float] | None) -> list[T]:
    """All entries of some files, each file as often as its ratio says; what a part of a file is, is drawn once."""
    mixed: list[T] = []
    for number, (entries, ratio) in enumerate(zip(files, ratios or (1.0,) * len(files), strict=True)):
        whole, part = divmod(ratio, 1.0)
        mixed += [*entries] * int(whole)
        if count := round(part * len(entries)):
            drawn = np.random.default_rng((17, number)).choice(len(entries), count, replace=False)
            mixed += [entries[place] for place in sorted(drawn.tolist())]
    return mixed
