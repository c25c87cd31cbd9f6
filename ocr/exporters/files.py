"""Documents as files of several formats, by the names that commands take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from framework.core.errors import InputError, did_you_mean
from framework.vision import image as vision_image
from framework.workflow.domain.capabilities import ResultFormat, ResultFormats
from framework.workflow.domain.outputs import make_folder, text_file
from framework.workflow.domain.result import Result
from ocr.results.pages import Document, Page

TEXTS: dict[str, tuple[str, Callable[[Document], str]]] = {
    "txt": (".txt", lambda document: document.text + "\n" * bool(document.text)),
    "json": (".json", lambda document: document.to_json(indent=1) + "\n"),
    "hocr": (".hocr", Document.to_hocr),
    "alto": (".alto.xml", Document.to_alto),
    "md": (".md", Document.to_markdown),
    "tsv": (".tsv", Document.to_tsv),
}
"""Formats of text: the ending of the file, and what makes it."""
FORMATS = (*TEXTS, "pdf", "png")


def parse_formats(given: Iterable[str], known: Sequence[str], names: dict[str, str]) -> tuple[str, ...]:
    """Names of formats, several apart by commas, each once. `names` are other spellings.

    Raises: InputError, where there is no such format.
    """
    formats = [part.strip().lower().lstrip(".") for text in given for part in text.split(",")]
    formats = [names.get(name, name) for name in formats if name]
    for name in formats:
        if name not in known:
            raise InputError(
                "there is no such format",
                where="--format",
                received=name,
                allowed=", ".join(known),
                fix=did_you_mean(name, known),
            )
    return tuple(dict.fromkeys(formats))


def output_files(stem: Path, formats: Sequence[str], pages: Sequence[int] = (1,)) -> list[Path]:
    """The files that `write_formats` writes; drawings are one a page."""
    files = []
    for name in formats:
        if name == "png":
            several = len(pages) > 1
            files += [
                stem.with_name(f"{stem.name}_page{n}.png" if several else f"{stem.name}.png") for n in pages
            ]
        else:
            files.append(stem.with_name(stem.name + (TEXTS[name][0] if name in TEXTS else f".{name}")))
    return files


def write_formats(document: Document, stem: Path, formats: Sequence[str]) -> list[Path]:
    """Write `<stem>.<ending>` for each of the formats, each file whole or not at all; returns the files.

    Raises: InputError, where a PDF or a drawing needs an image that a page does not have. DiskError.
    """
    make_folder(stem.parent)
    written = []
    for name in formats:
        files = output_files(stem, [name], [page.page for page in document.pages])
        if name == "pdf":
            document.to_searchable_pdf(files[0])
        elif name == "png":
            for file, page in zip(files, document.pages):
                vision_image.write(file, page.draw())
        else:
            with text_file(files[0]) as out:
                out.write(TEXTS[name][1](document))
        written += files
    return written


def _write_one(name: str) -> Callable[[Sequence[Result], str, Path], object]:
    def write(pages: Sequence[Result], source: str, path: Path) -> None:
        document = Document(tuple(page for page in pages if isinstance(page, Page)), source)
        if name == "pdf":
            document.to_searchable_pdf(path)
            return
        with text_file(path) as out:
            out.write(TEXTS[name][1](document))

    return write


_MEDIA_TYPES: dict[str, tuple[str, ...]] = {
    "txt": ("text/plain",),
    "hocr": ("text/vnd.hocr+html", "text/html", "application/xhtml+xml"),
    "alto": ("application/alto+xml", "application/xml", "text/xml"),
    "md": ("text/markdown",),
    "tsv": ("text/tab-separated-values",),
    "pdf": ("application/pdf",),
}
_OTHER_NAMES = {"txt": ("text",), "md": ("markdown",)}
SERVED_FORMATS = ResultFormats(
    {
        name: ResultFormat(
            types[0],
            TEXTS[name][0] if name in TEXTS else f".{name}",
            _write_one(name),
            _OTHER_NAMES.get(name, ()),
            types[1:],
        )
        for name, types in _MEDIA_TYPES.items()
    }
)
"""What a server writes pages as besides JSON and drawings."""
