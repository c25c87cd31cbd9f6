"""Documents that LaTeX, LibreOffice and Chromium write, read again: text, tables and reading order.

Each document stands in `written_sources` as its source, beside its truth by hand. What programs this
machine lacks (pdflatex, soffice, chromium) is said, and their documents are left out. Needs rapidfuzz; sources for
LibreOffice need python-docx and openpyxl. TEDS is that of `documents`, without heads; a table that was not
found or is too many counts 0. The text's distance and the order's are those of `round_trip`. `--keep FOLDER` keeps the
PDFs and the Markdown; `--only NAME...` reads these documents.
"""

from __future__ import annotations

import logging
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tools.bench.documents import Reader, pdfplumber_reader, rows_html, teds, words
from tools.bench.peers import arguments
from tools.bench.written_sources import Rows, SourceDocument, every_document

COMMANDS = {
    "pdflatex": ("pdflatex", "-interaction=nonstopmode", "source.tex"),
    "soffice": ("soffice", "--headless", "--convert-to", "pdf", "source.{ending}"),
    "chromium": ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer",
                 "--print-to-pdf=source.pdf", "source.html"),
}  # fmt: skip


def printed(document: SourceDocument) -> bytes:
    """The document's PDF, by its program."""
    with tempfile.TemporaryDirectory() as folder:
        document.write(Path(folder, f"source.{document.ending}"))
        command = [part.format(ending=document.ending) for part in COMMANDS[document.program]]
        for _ in range(2 if document.program == "pdflatex" else 1):
            subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
        pdf = Path(folder, "source.pdf").read_bytes()
    return pdf if document.finish is None else document.finish(pdf)


def reader_of_documents() -> Reader:
    """`ocr.document` as it reads text layers."""
    from framework.inference import Runtime
    from ocr.documents.document import make_reader
    from ocr.documents.loaders import lazy_ocr
    from ocr.documents.options import DocumentOptions
    from ocr.pipeline.options import DEFAULT_MODEL
    from ocr.results.blocks import Table

    runtime = Runtime()
    read = make_reader(DocumentOptions(figures=False), lazy_ocr(DEFAULT_MODEL, runtime), runtime)

    def read_document(pdf: bytes) -> tuple[str | None, Sequence[str]]:
        found = read(pdf)
        blocks = [block for page in found.pages for block in page.blocks]
        tables = [block.content.to_html() for block in blocks if isinstance(block.content, Table)]
        return found.to_markdown(), tables

    return read_document


def table_score(found: Sequence[str], truth: Sequence[Rows]) -> list[float]:
    left, scores = list(found), []
    for rows in truth:
        ranked = sorted(
            ((teds(table, rows_html(rows)), number) for number, table in enumerate(left)), reverse=True
        )
        scores.append(ranked[0][0] if ranked else 0.0)
        if ranked:
            left.pop(ranked[0][1])
    return scores + [0.0] * len(left)


def order_distance(text: str, blocks: Sequence[str]) -> float:
    """Edit distance of the order of the blocks' beginnings, over their number. Of a beginning that stands in several
    places the next one is taken that no block before has.
    """
    from rapidfuzz.distance import Levenshtein

    said_words = f" {words(text)} "
    places: dict[int, int] = {}
    last = -1
    for number, block in enumerate(blocks):
        start = f" {' '.join(words(block).split()[:6])} "
        at = said_words.find(start, last + 1)
        at = at if at >= 0 else said_words.find(start)
        if at >= 0 and at not in places:
            places[at], last = number, at
    return Levenshtein.distance([places[at] for at in sorted(places)], list(range(len(blocks)))) / len(blocks)


def written(argv: list[str]) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--peers", nargs="*", default=[], choices=("pdfplumber",))
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME")
    args = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    from rapidfuzz.distance import Levenshtein

    documents = [one for one in every_document() if not args.only or one.name in args.only]
    for program in sorted({one.program for one in documents}):
        if shutil.which(program) is None:
            print(f"{program} is not installed: its documents are left out")
    printable = [(one, printed(one)) for one in documents if shutil.which(one.program)]
    readers = {"oar": reader_of_documents()} | {peer: pdfplumber_reader() for peer in args.peers}
    for name, read in readers.items():
        texts, orders, tables = [], [], []
        for document, pdf in printable:
            text, found = read(pdf)
            blocks = [
                part if isinstance(part, str) else " ".join(map(" ".join, part)) for part in document.truth
            ]
            texts.append(Levenshtein.normalized_distance(words(text or ""), words(" ".join(blocks))))
            orders.append(order_distance(text or "", blocks))
            scores = table_score(found, [part for part in document.truth if not isinstance(part, str)])
            tables += scores
            shown = ", ".join(f"{score:.2f}" for score in scores) or "none"
            print(f"{name}: {document.name}: text {texts[-1]:.3f}, order {orders[-1]:.2f}, TEDS {shown}")
            if args.keep:
                args.keep.mkdir(parents=True, exist_ok=True)
                (args.keep / f"{document.name}.pdf").write_bytes(pdf)
                (args.keep / f"{document.name}_{name}.txt").write_text(text or "", encoding="utf-8")
        if texts:
            means = [statistics.mean(values or [0.0]) for values in (texts, orders, tables)]
            print(f"{name}: mean text {means[0]:.4f}, order {means[1]:.4f}, TEDS {means[2]:.4f}")
