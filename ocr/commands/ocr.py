"""Recognise text of images, PDFs and folders of them, with PP-OCRv6 where no model is named.

oar ocr receipt.png                           the text, on standard output
oar ocr scans/*.tif --format txt,hocr,pdf     files in the folder output
cat receipt.png | oar ocr - --format json
oar ocr receipt.png --output_dir out          JSON and a drawing of each page, as `oar infer` writes them
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from framework.commands.infer import infer, named_files, open_model, parser
from framework.commands.main import run
from framework.config.arguments import read_overrides
from framework.core.errors import ConfigError, OarError
from framework.core.interrupts import catch_interrupt
from framework.vision.image_formats import SUFFIXES as IMAGE_SUFFIXES
from framework.vision.video import SUFFIXES as VIDEO_SUFFIXES
from framework.workflow import ImageItem
from framework.workflow.domain.outputs import Report, spare_sources
from framework.workflow.files.sources import SourceFile, Sources, open_sources, output_stems
from ocr.exporters.files import FORMATS, TEXTS, output_files, parse_formats, write_formats
from ocr.pipeline.options import DEFAULT_MODEL
from ocr.pipeline.predictor import OCRPredictor
from ocr.results.pages import Document, Page

_SUFFIXES = (".pdf", *IMAGE_SUFFIXES)
_OUTPUT = "output"
_NAMES = {"text": "txt", "markdown": "md"}


def _parser() -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    made, names = parser(DEFAULT_MODEL, "oar ocr")
    made.description = (
        "Recognise text. Without --format and --output_dir it is printed; with --output_dir alone each page gives JSON "
        "and a drawing."
    )
    made.set_defaults(output_dir=None)
    made.add_argument(
        *("--format", "--formats"),
        dest="formats",
        action="append",
        default=[],
        metavar=",".join(FORMATS),
        help="what to write, several apart by commas. One format of text without --output_dir is printed; else the "
        f"files are in --output_dir ({_OUTPUT})",
    )
    return made, names


def _ocr(args: argparse.Namespace, names: Sequence[str]) -> int:
    read_overrides(args)  # which may name the source
    formats = parse_formats(args.formats, FORMATS, _NAMES)
    for name in ("image_file", "pdf_file"):
        if getattr(args, name) is not None and not args.files:
            args.files, unset = [getattr(args, name)], name
            setattr(args, unset, None)
    named = named_files(args)
    streams = not named or any(Path(name).suffix.lower() in VIDEO_SUFFIXES for name in named)
    if streams and formats:
        raise ConfigError(
            "videos and cameras give JSON lines",
            where="--format",
            received=", ".join(formats),
            fix="leave it out",
        )
    if streams or args.save_results or (args.output_dir is not None and not formats):
        args.output_dir = args.output_dir or _OUTPUT
        return infer(args, names, _SUFFIXES)
    printed = args.output_dir is None and (not formats or (len(formats) == 1 and formats[0] in TEXTS))
    output_dir = None if printed else Path(args.output_dir or _OUTPUT)
    report = Report()
    with open_sources(named, _SUFFIXES, output_dir=output_dir, allow_url=args.allow_url) as sources:
        stems = {} if output_dir is None else output_stems(sources.files, output_dir)
        files = [file.path for file in sources.files]
        spare_sources(files, (path for stem in stems.values() for path in output_files(stem, formats)))
        model = open_model(args, names)
        if not isinstance(model, OCRPredictor):
            raise ConfigError("this model reads no text", received=args.config or args.model_dir)
        images = bool({"pdf", "png"} & set(formats))
        with contextlib.closing(_read_files(model, sources, report, images)) as documents:
            for file, pages in documents:
                if output_dir is None:
                    _print(file, pages, formats, first=file is sources.files[0], alone=len(files) == 1)
                    continue
                document = Document(tuple(pages), file.label)
                report.written += write_formats(document, stems[file.path], formats)
    report.notes = [*sources.notes, *report.notes]
    if report.written or report.notes or report.failed:
        print(report.summary(), file=sys.stderr if printed or report.failed else sys.stdout)
    return report.exit_code


def _read_files(
    model: OCRPredictor, sources: Sources, report: Report, images: bool
) -> Generator[tuple[SourceFile, Iterator[Page]], None, None]:
    """Each file with its pages, which are read as they are asked for. What cannot be read is reported."""
    stopped = threading.Event()
    waiting: deque[SourceFile] = deque()

    def items() -> Iterator[ImageItem]:
        for file in sources.files:
            try:
                for item in model.read_items(file.path, file.label):
                    if stopped.is_set():
                        return
                    waiting.append(file)
                    yield item
            except OarError as error:
                report.failed.append((file.label, str(error)))

    def pages() -> Iterator[tuple[SourceFile, Page]]:
        for page in model.predict_stream(items()):
            file = waiting.popleft()
            report.notes += [f"{file.label}, page {page.page}: {warning}" for warning in page.warnings]
            if not page.lines:
                report.notes.append(f"{file.label}, page {page.page}: no text")
            yield file, page if images else replace(page, image=None)

    with catch_interrupt(stopped):
        for file, group in groupby(pages(), key=lambda pair: pair[0]):
            yield file, (page for _, page in group)
    report.note_stop(stopped.is_set())


def _print(file: SourceFile, pages: Iterator[Page], formats: Sequence[str], first: bool, alone: bool) -> None:
    """The text of a file on standard output, page by page, a form feed between them; other formats as a whole."""
    out = sys.stdout
    if isinstance(out, io.TextIOWrapper):  # a console without the letters shows their codes
        out.reconfigure(errors="backslashreplace")
    if formats and formats[0] != "txt":
        out.write(TEXTS[formats[0]][1](Document(tuple(pages), file.label)))
        return
    if not alone:
        out.write(f"{'' if first else chr(10)}==> {file.label} <==\n")
    for number, page in enumerate(pages):
        out.write(("\f" if number else "") + page.text + "\n" * bool(page.text))
        out.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar ocr`; returns the exit status."""
    made, names = _parser()
    return run(made, lambda args: _ocr(args, names), argv, "stopped; what is written stays")
