"""Searchable PDF: each page's image with its text, invisible, where the image shows it.

The text is set in render mode 3 in a font that shows nothing, so any script works and nothing has to be embedded but a
few hundred bytes. Every distinct character of the document gets a code of its own, which ToUnicode maps back to it
(characters outside the BMP to a surrogate pair). A word is one run of text, from the lower left corner of its quad
along its lower edge, as high as the quad and stretched to its length; where the characters' places are known, each
is stretched from its own to the next one's. So what a viewer selects is what one sees, for turned and skewed text too.
A page on its side or its head is shown upright: viewers take letters that run against the page for lines of their own.

Source: ISO 32000-1, 9.3 (text state), 9.7 (composite fonts), 9.10.3 (ToUnicode).
"""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
from PIL import Image

from framework.core.disk import whole_file
from framework.core.errors import InputError
from framework.workflow.files.pdf import PdfReader
from ocr.exporters._pdf import ADVANCE, PdfFile, add_font, number
from ocr.exporters._xml import xml_text
from ocr.pages.sideways import find_rotation
from ocr.text.reading_order import quad_of, spaced_words

if TYPE_CHECKING:
    from ocr.results.lines import Polygon
    from ocr.results.pages import Document, Page

POINTS_PER_INCH = 72.0


def write_searchable_pdf(
    document: Document, path: str | Path, *, dpi: float = 200.0, quality: int = 85
) -> None:
    """Writes the document; the file appears whole or not at all.

    Args:
        document: Every page needs its image.
        path: The file to write; its folder is made.
        dpi: Resolution of the images. It sets the size of the paper, unless the page comes from a PDF that is still
            there and has the image's proportions: then the paper is that page's.
        quality: Of the JPEG images, 1 to 100.

    Raises: InputError when there is no page, when a page has no image or one too large for JPEG, or when `dpi` is not
    positive.
    """
    if not document.pages:
        raise InputError(
            "the document has no pages", where=document.source or path, fix="a PDF needs at least one"
        )
    papers = _papers(document.pages, dpi)
    with whole_file(path) as temporary, temporary.open("wb") as out:
        writer = SearchablePdf(out, document.source)
        for page, paper in zip(document.pages, papers, strict=True):
            if page.image is None:
                raise InputError(
                    "the page has no image to put the text on",
                    where=f"page {page.page} of {page.source or 'the document'}",
                    allowed="pages as the pipeline gives them; JSON holds no images",
                    fix="dataclasses.replace(page, image=framework.vision.image.read(page.source))",
                )
            writer.add(page, to_jpeg(page, quality), paper)
        writer.finish()


class SearchablePdf:
    """A searchable PDF that is written page by page; what is held does not grow with the pages' images.

    Args:
        out: The file to write to.
        title: Of the document.
    """

    def __init__(self, out: BinaryIO, title: str) -> None:
        self._pdf = PdfFile(out)
        self._title = title
        self._codes: dict[str, int] = {}
        self._font, self._tree = self._pdf.reserve(), self._pdf.reserve()
        self._pages: list[int] = []

    def add(self, page: Page, jpeg: bytes, paper: tuple[float, float]) -> None:
        """A page: its image as `to_jpeg` gives it, and the (width, height) of its paper in points."""
        self._pages.append(_add_page(self._pdf, page, jpeg, paper, self._codes, self._font, self._tree))

    def finish(self) -> None:
        """Ends the file."""
        pdf = self._pdf
        kids = " ".join(f"{page} 0 R" for page in self._pages)
        pdf.add(f"<< /Type /Pages /Kids [{kids}] /Count {len(self._pages)} >>", to=self._tree)
        add_font(pdf, self._codes, to=self._font)
        root = pdf.add(f"<< /Type /Catalog /Pages {self._tree} 0 R >>")
        title = self._title.encode("utf-16-be", "replace").hex()
        pdf.finish(root, pdf.add(f"<< /Producer (Oar) /Title <feff{title}> >>"))


def _add_page(
    pdf: PdfFile,
    page: Page,
    jpeg: bytes,
    paper: tuple[float, float],
    codes: dict[str, int],
    font: int,
    tree: int,
) -> int:
    image = _add_image(pdf, jpeg)
    rotation = find_rotation(page.lines, page.width, page.height)
    matrix = _image_matrix(rotation.angle, *paper)
    if rotation.angle:
        size = tuple(map(int, rotation.size))
        page = replace(
            page, lines=tuple(map(rotation.line, page.lines)), image=None, width=size[0], height=size[1]
        )
    if rotation.angle in (90, 270):
        paper = paper[1], paper[0]
    width, height = paper
    commands = [f"q {' '.join(map(number, matrix))} cm /Scan Do Q", "BT 3 Tr"]
    commands += _text_layer(page, np.array(paper), codes)
    content = pdf.add_stream("", "\n".join([*commands, "ET"]).encode("ascii"), compress=True)
    return pdf.add(
        f"<< /Type /Page /Parent {tree} 0 R /MediaBox [0 0 {number(width)} {number(height)}] /Contents {content} 0 R "
        f"/Resources << /XObject << /Scan {image} 0 R >> /Font << /Text {font} 0 R >> >> >>"
    )


def _image_matrix(angle: int, width: float, height: float) -> tuple[float, ...]:
    """What brings the unit square of an image, whose page of `width` x `height` points is found turned clockwise by
    `angle` degrees, to where it stands upright."""
    return {
        0: (width, 0, 0, height, 0, 0),
        90: (0, width, -height, 0, height, 0),
        180: (-width, 0, 0, -height, width, height),
        270: (0, -width, height, 0, 0, width),
    }[angle]


def to_jpeg(page: Page, quality: int = 85) -> bytes:
    """The page's image as JPEG; a page without colours in grey. Raises: InputError: it is too large for one."""
    image = page.pixels
    gray = bool((image[..., 0] == image[..., 1]).all() and (image[..., 0] == image[..., 2]).all())
    buffer = io.BytesIO()
    try:
        Image.fromarray(image[..., 0] if gray else image).save(buffer, "JPEG", quality=quality)
    except (OSError, ValueError) as error:
        raise InputError(
            "the page's image cannot be stored as JPEG",
            where=f"page {page.page} of {page.source or 'the document'}",
            received=f"{image.shape[1]}x{image.shape[0]}: {error}",
            allowed="at least 1 and at most 65,500 pixels a side",
        ) from error
    return buffer.getvalue()


def _add_image(pdf: PdfFile, jpeg: bytes) -> int:
    with Image.open(io.BytesIO(jpeg)) as image:  # its head alone is read
        (width, height), gray = image.size, image.mode == "L"
    return pdf.add_stream(
        f"/Type /XObject /Subtype /Image /Width {width} /Height {height} /BitsPerComponent 8 "
        f"/ColorSpace /Device{'Gray' if gray else 'RGB'} /Filter /DCTDecode",
        jpeg,
    )


def _papers(pages: Sequence[Page], dpi: float) -> list[tuple[float, float]]:
    """Width and height of each page in points."""
    if not dpi > 0:
        raise InputError(
            "the resolution is not positive", where="dpi", received=dpi, allowed="dots per inch, > 0"
        )
    sources: dict[str, list[tuple[float, float]]] = {}
    for name in {page.source for page in pages}:
        if name.lower().endswith(".pdf") and Path(name).is_file():
            with PdfReader(name) as reader:
                sources[name] = [reader.page_size_hw(index) for index in range(len(reader))]
    papers = []
    for page in pages:
        paper = paper_of(page, dpi)
        source = sources.get(page.source, ())
        if 1 <= page.page <= len(source):
            tall, wide = source[page.page - 1]
            if abs(wide / tall * page.height / page.width - 1) < 0.02:  # else the image was cropped or turned
                paper = (wide, tall)
        papers.append(paper)
    return papers


def paper_of(page: Page, dpi: float) -> tuple[float, float]:
    """(width, height) of a page's paper in points: of a PDF's page its own, else at `dpi` dots an inch."""
    if page.to_points is None:
        return page.width * POINTS_PER_INCH / dpi, page.height * POINTS_PER_INCH / dpi
    a, b, c, d, _, _ = page.to_points
    return page.width * float(np.hypot(a, b)), page.height * float(np.hypot(c, d))


def _text_layer(page: Page, paper: np.ndarray, codes: dict[str, int]) -> list[str]:
    """The commands that set all words of a page; new characters get their codes."""
    commands = []
    for line in page.lines:
        words = list(spaced_words(line))
        for index, (word, spaced) in enumerate(words):
            rtl = any(unicodedata.bidirectional(char) in ("R", "AL") for char in word.text)
            # Viewers take uneven characters of text that runs to the left for words of their own.
            chars = () if rtl or "".join(char.text for char in word.chars) != word.text else word.chars
            quads = np.stack([_run_quad(piece.polygon, line.vertical, rtl) for piece in (word, *chars)])
            points = (quads * paper / (page.width, page.height) - [0, paper[1]]) * [1, -1]
            # A space ends each line too: viewers do not break between lines beside one another.
            spaced = spaced or index + 1 == len(words)
            commands += _show([char.text for char in chars] or list(word.text), points, spaced, codes)
    return commands


def _run_quad(polygon: Polygon, vertical: bool, rtl: bool) -> np.ndarray:
    """The quad [4, 2] turned so that the text runs from its first to its second corner."""
    quad = quad_of(polygon)
    if vertical:
        # Upright characters below one another: the run starts at the top, and their right is its upper edge.
        quad = np.roll(quad, -1, axis=0)
    # Hebrew and Arabic run to the left. Viewers know such text by its mirrored matrix.
    return quad[[1, 0, 3, 2]] if rtl else quad


def _show(pieces: list[str], quads: np.ndarray, spaced: bool, codes: dict[str, int]) -> list[str]:
    """The commands that set one word of `pieces`, and a space after it.

    `quads` [1 + P, 4, 2] are the word's and the pieces' in points, y upwards; [1, 4, 2] where the pieces' are unknown.
    """
    pieces = [xml_text(piece) for piece in pieces]
    along = (quads[0, 1] - quads[0, 0] + quads[0, 2] - quads[0, 3]) / 2
    up = (quads[0, 0] - quads[0, 3] + quads[0, 1] - quads[0, 2]) / 2
    length, height = float(np.hypot(*along)), float(np.hypot(*up))
    if min(length, height) < 1e-3:
        return []
    along = along / length
    across = np.array([-along[1], along[0]])
    matrix = [*along, *(across if across @ up > 0 else -across), *quads[0, 3]]
    ends = np.arange(1, len(pieces) + 1) * (length / len(pieces))
    if len(quads) > 1:  # each character reaches to the next one: viewers take a gap for a space
        starts = (quads[2:, 0] + quads[2:, 3] - quads[0, 0] - quads[0, 3]) / 2 @ along
        if (np.diff([0.0, *starts, length]) > 0).all():
            ends = np.array([*starts, length])
    if spaced:
        pieces.append(" ")
        ends = np.append(ends, ends[-1] + length / len(ends))
    commands = [f"/Text {number(height)} Tf {' '.join(map(number, matrix))} Tm"]
    widths = np.diff(ends, prepend=0.0)
    for width, group in groupby(zip(widths.round(3).tolist(), pieces), key=lambda pair: pair[0]):
        shown = "".join(f"{codes.setdefault(piece, len(codes) + 1):04x}" for _, piece in group)
        commands.append(f"{number(100 * width / (height * ADVANCE / 1000))} Tz <{shown}> Tj")
    return commands
