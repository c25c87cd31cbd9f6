"""Pages that were read, each a JSON file in a folder of work, with what becomes of their images."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from framework.core.disk import write_file
from framework.core.errors import OarError
from framework.vision import image as vision_image
from framework.workflow.domain.outputs import text_file
from ocr.exporters.searchable_pdf import to_jpeg
from ocr.results.blocks import Block, Figure, Table
from ocr.results.lines import Line
from ocr.results.pages import Page


@dataclass(frozen=True)
class PageStore:
    """The pages of one document. It holds none, so that several processes can write to the same folder.

    Attributes:
        work: Where the pages lie.
        figures: Where the images of figures go; None: nowhere.
        image: Whether pages' images are kept.
    """

    work: Path
    figures: Path | None
    image: bool

    def file(self, number: int, suffix: str = ".json") -> Path:
        """Where page `number` is, or would be."""
        return self.work / f"{number:07d}{suffix}"

    def load(self, number: int) -> Page | None:
        """A page that was read before; None where it was not, or its file is damaged."""
        try:
            data = json.loads(self.file(number).read_text(encoding="utf-8"))
            page = Page.from_dict(data)
        except (OSError, ValueError, RecursionError, OarError):
            return None
        return page if not self.image or not page.width or self.file(number, ".jpg").is_file() else None

    def save(self, page: Page) -> Page:
        """Keep a page; returns it as it is kept: without characters and images. Raises: DiskError."""
        bare = _BareLines()
        blocks = tuple(self._keep(block, f"page{page.page}", bare) for block in page.blocks)
        if self.image and page.image is not None:
            write_file(self.file(page.page, ".jpg"), to_jpeg(page))
        page = replace(page, lines=bare(page.lines), blocks=blocks, image=None)
        with text_file(self.file(page.page)) as out:
            out.write(json.dumps(page.to_dict(), ensure_ascii=False))  # indented it takes six times as long
        return page

    def _keep(self, block: Block, name: str, bare: _BareLines) -> Block:
        """The block without characters; the image of a figure becomes a file, named in `Figure.path`."""
        content = block.content
        if isinstance(content, Figure) and content.image is not None:
            path = ""
            if self.figures is not None and content.image.size:
                # All four: a figure within another one may begin at the same corner.
                file = self.figures / f"{name}_{'_'.join(str(round(value)) for value in block.bbox)}.png"
                vision_image.write(file, content.image)
                path = f"{self.figures.name}/{file.name}"
            content = Figure(path=path)
        elif isinstance(content, Table):
            content = replace(
                content, cells=tuple(replace(cell, lines=bare(cell.lines)) for cell in content.cells)
            )
        children = tuple(self._keep(child, name, bare) for child in block.children)
        return replace(block, lines=bare(block.lines), content=content, children=children)

    def jpeg(self, page: Page) -> bytes | None:
        """The page's image as JPEG; None of a page that could not be read."""
        file = self.file(page.page, ".jpg")
        return file.read_bytes() if page.width and file.is_file() else None

    def with_image(self, page: Page) -> Page:
        """The page with its image; without, where it could not be read."""
        jpeg = self.jpeg(page)
        return page if jpeg is None else replace(page, image=vision_image.read(jpeg))


class _BareLines:
    """Lines without characters. Each is made once: the page, its blocks and their cells hold the same lines."""

    def __init__(self) -> None:
        self._made: dict[
            int, tuple[Line, Line]
        ] = {}  # by id, with the line itself, so that its id stays its own

    def __call__(self, lines: Sequence[Line]) -> tuple[Line, ...]:
        return tuple(map(self._strip, lines))

    def _strip(self, line: Line) -> Line:
        if id(line) not in self._made:
            words = tuple(replace(word, chars=()) for word in line.words)
            self._made[id(line)] = line, replace(line, words=words)
        return self._made[id(line)][1]
