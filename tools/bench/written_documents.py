"""Documents that LaTeX, LibreOffice and Chromium write, read again: text, tables and reading order.

Each document stands here as its source, beside its truth by hand: blocks in reading order, tables as rows. What
programs this machine lacks (pdflatex, soffice, chromium) is said, and their documents are left out. Needs rapidfuzz;
sources for LibreOffice need python-docx and openpyxl. TEDS is that of `documents`, without heads; a table that was not
found or is too many counts 0. The text's distance and the order's are those of `round_trip`. `--keep FOLDER` keeps the
PDFs and the Markdown.
"""

from __future__ import annotations

import logging
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.bench.documents import Reader, pdfplumber_reader, rows_html, teds, words
from tools.bench.peers import arguments

LINES = (
    "The harbour was quiet when the first boats came back from the night.",
    "Two of them carried herring, and the third had lost its nets near the lighthouse.",
    "Nobody on the quay asked the sailors about it, since the weather had been rough since Monday.",
    "The auction opened at seven and closed an hour later than usual.",
    "Prices rose a little, and most of the catch went to the factory beyond the railway.",
    "In the afternoon the rain stopped and the market filled with people from the villages.",
)
Rows = Sequence[Sequence[str]]
Truth = Sequence[str | Rows]


def said(*numbers: int) -> str:
    return " ".join(LINES[number] for number in numbers)


@dataclass(frozen=True)
class SourceDocument:
    """A document: its name, the program and ending of its source, how that is written, and what it says."""

    name: str
    program: str
    ending: str
    write: Callable[[Path], object]
    truth: Truth


def text_source(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, encoding="utf-8")


# -- LaTeX -----------------------------------------------------------------------------------------------------------

CATCH = (
    ("Port", "Boats", "Catch"),
    ("Bergen", "14", "120.5"),
    ("Moss", "9", "88.0"),
    ("Bodo", "22", "310.2"),
)
RESULTS = (
    said(0, 1, 2, 3, 4, 5), said(5, 3, 1, 0, 2, 4), said(1, 0, 3, 2, 5, 4), said(2, 3, 4, 5, 0, 1),
    said(4, 2, 0, 5, 3, 1), said(3, 5, 1, 4, 2, 0), said(0, 2, 4, 1, 3, 5), said(5, 4, 3, 2, 1, 0),
)  # fmt: skip


def two_columns() -> SourceDocument:
    rows = [" & ".join(row) + r" \\" for row in CATCH]
    table = "\n".join([r"\hline", rows[0], r"\hline", *rows[1:], r"\hline"])
    source = rf"""\documentclass[twocolumn,10pt]{{article}}\usepackage[T1]{{fontenc}}\usepackage{{lmodern}}
\usepackage[a4paper,margin=2cm]{{geometry}}\title{{Boats of the northern ports}}\author{{Anna Vik}}\date{{May 2021}}
\begin{{document}}\maketitle\section{{Introduction}}
{said(0, 1, 2, 3)}

{said(4, 5, 0, 2)}
\section{{Data}}
{said(1, 3, 5)}
\begin{{table}}[h]\centering\caption{{Boats and catch.}}\begin{{tabular}}{{lrr}}
{table}
\end{{tabular}}\end{{table}}

{said(2, 4, 0, 1)}
\section{{Results}}
"""
    source += "\n\n".join(RESULTS) + rf"\section{{Conclusion}} {said(3, 4)}" + r"\end{document}"
    truth = (
        "Boats of the northern ports", "Anna Vik May 2021", "1 Introduction", said(0, 1, 2, 3), said(4, 5, 0, 2),
        "2 Data", said(1, 3, 5), "Table 1: Boats and catch.", CATCH, said(2, 4, 0, 1), "3 Results", *RESULTS,
        "4 Conclusion", said(3, 4),
    )  # fmt: skip
    return SourceDocument("two columns", "pdflatex", "tex", text_source(source), truth)


def letter() -> SourceDocument:
    source = rf"""\documentclass[11pt,a4paper]{{letter}}\usepackage[T1]{{fontenc}}\usepackage{{lmodern}}
\address{{Anna Vik\\Storgata 9\\0150 Oslo}}\date{{2 June 2022}}\signature{{Anna Vik}}
\begin{{document}}\begin{{letter}}{{Nordic Supply AS\\Havnegata 3\\5003 Bergen}}\opening{{Dear Sir or Madam,}}
{said(0, 1, 2)}

{said(3, 4, 5)}
\closing{{Yours faithfully,}}\end{{letter}}\end{{document}}"""
    truth = (
        "Anna Vik Storgata 9 0150 Oslo", "2 June 2022", "Nordic Supply AS Havnegata 3 5003 Bergen",
        "Dear Sir or Madam,", said(0, 1, 2), said(3, 4, 5), "Yours faithfully,", "Anna Vik",
    )  # fmt: skip
    return SourceDocument("letter", "pdflatex", "tex", text_source(source), truth)


# -- LibreOffice -----------------------------------------------------------------------------------------------------

ITEMS = (
    ("Description", "Qty", "Unit price", "Amount"),
    ("Anchor, 12 kg", "2", "80.00", "160.00"),
    ("Rope, hemp, 50 m", "3", "24.50", "73.50"),
    ("Paint, white", "10", "9.90", "99.00"),
    ("", "", "Subtotal", "332.50"),
    ("", "", "VAT 25 %", "83.13"),
    ("", "", "Total NOK", "415.63"),
)
TOWNS = ("Oslo", "Bergen", "Bodo", "Alta", "Moss", "Voss", "Narvik", "Hamar")
SHEET = (
    ("Station", "Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *(
        (town, *(str(100 + 37 * number + 11 * month) for month in range(6)))
        for number, town in enumerate(TOWNS)
    ),
)


def write_invoice(path: Path) -> None:
    from docx import Document

    word = Document()
    word.add_paragraph().add_run("Nordic Supply AS").bold = True
    word.add_paragraph("Havnegata 3\n5003 Bergen")
    cells = word.add_table(rows=1, cols=2).rows[0].cells
    cells[0].text, cells[1].text = "Bill to:\nAnna Vik\nStorgata 9", "Ship to:\nVik Workshop\nDock 4"
    word.add_paragraph("Invoice no. 5512 of 2 June 2022")
    table = word.add_table(rows=0, cols=4)
    for row in ITEMS:
        for number, (cell, text) in enumerate(zip(table.add_row().cells, row, strict=True)):
            cell.text = text
            cell.paragraphs[0].alignment = 2 if number else 0
    word.add_paragraph("Please pay within 30 days to account 1234 56 78901.")
    word.save(str(path))


def write_sheet(path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in SHEET:
        book.active.append([int(text) if text.isdigit() else text for text in row])
    book.save(path)


def office() -> list[SourceDocument]:
    invoice = (
        "Nordic Supply AS", "Havnegata 3 5003 Bergen", "Bill to: Anna Vik Storgata 9", "Ship to: Vik Workshop Dock 4",
        "Invoice no. 5512 of 2 June 2022", ITEMS, "Please pay within 30 days to account 1234 56 78901.",
    )  # fmt: skip
    return [
        SourceDocument("invoice", "soffice", "docx", write_invoice, invoice),
        SourceDocument("spreadsheet", "soffice", "xlsx", write_sheet, (SHEET,)),
    ]


# -- Chromium --------------------------------------------------------------------------------------------------------

STATEMENT = (
    ("Date", "Text", "Out", "In", "Balance"),
    ("02/05", "Salary HARBOUR TOOLS", "", "2,100.00", "2,890.10"),
    ("04/05", "Transfer to K. Olsen Rent for May Flat 14", "900.00", "", "1,990.10"),
    ("06/05", "Card GROCER", "31.20", "", "1,958.90"),
    ("09/05", "Direct debit Water works Contract 9-771", "40.00", "", "1,918.90"),
    ("11/05", "Cash machine", "50.00", "", "1,868.90"),
)
CARDS = (
    ("Anchor", "Cast iron, twelve kilograms, with a ring of brass and a chain of two metres.", "80.00"),
    ("Rope", "Hemp, fifty metres long, laid in three strands by hand in the old rope walk.", "24.50"),
    ("Lamp", "Brass, for oil or candles, with a glass that keeps the wind away from it.", "49.00"),
    ("Paint", "White, for wood and iron, dries in one night when the weather is fair.", "9.90"),
)


def web_pages() -> list[SourceDocument]:
    lines = rows_html(STATEMENT)
    for start in (" Rent", " Flat", " Water", " Contract"):
        lines = lines.replace(start, f"<br>{start.strip()}")
    statement = (
        "<style>body{font:13px serif}td{padding:3px 12px;vertical-align:top}"
        "td:nth-child(n+3){text-align:right}</style><h2>Account statement May 2023</h2>" + lines
    )
    resume = (
        "<style>body{font:14px sans-serif;display:grid;grid-template-columns:180px 1fr;gap:30px}aside{padding:12px;"
        "background:#e4e4f0;font-size:12px;line-height:1.75}h3{margin:8px 0 2px;font-size:14px}</style><aside>"
        "<h3>Contact</h3>anna@example.org<br>+47 555 01 01<br>Bergen<h3>Skills</h3>Welding<br>Sailing<br>Chess</aside>"
        f"<main><h1>Anna Vik</h1><h2>Profile</h2><p>{said(0, 3)}</p><h2>Experience</h2><p>{said(1, 2)}</p></main>"
    )
    cards = "".join(
        f"<div><h3>{name}</h3><p>{text}</p><b>NOK {price}</b></div>" for name, text, price in CARDS
    )
    catalogue = (
        "<style>body{font:13px sans-serif}main{display:grid;grid-template-columns:1fr 1fr;gap:30px}</style>"
        f"<h1>Spring catalogue</h1><main>{cards}</main>"
    )
    told = (
        "Contact", "anna@example.org +47 555 01 01 Bergen", "Skills", "Welding Sailing Chess", "Anna Vik", "Profile",
        said(0, 3), "Experience", said(1, 2),
    )  # fmt: skip
    listed = [text for name, about, price in CARDS for text in (name, about, f"NOK {price}")]
    return [
        SourceDocument(
            "statement", "chromium", "html", text_source(statement), ("Account statement May 2023", STATEMENT)
        ),
        SourceDocument("resume", "chromium", "html", text_source(resume), told),
        SourceDocument(
            "catalogue", "chromium", "html", text_source(catalogue), ("Spring catalogue", *listed)
        ),
    ]


# -- printing and scores ---------------------------------------------------------------------------------------------

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
        return Path(folder, "source.pdf").read_bytes()


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
    args = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    from rapidfuzz.distance import Levenshtein

    documents = [two_columns(), letter(), *office(), *web_pages()]
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
