"""The documents of `tools.bench written`: sources for LaTeX, LibreOffice and Chromium, beside their truth by hand.

A truth is blocks in reading order; a table is its rows.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.bench.documents import rows_html

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


def prose(*numbers: int) -> str:
    return " ".join(LINES[number] for number in numbers)


@dataclass(frozen=True)
class SourceDocument:
    """A document: its name, the program and ending of its source, how that is written, what it says, and what is made
    of the PDF, such as a scan.
    """

    name: str
    program: str
    ending: str
    write: Callable[[Path], object]
    truth: Truth
    finish: Callable[[bytes], bytes] | None = None


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
    prose(0, 1, 2, 3, 4, 5), prose(5, 3, 1, 0, 2, 4), prose(1, 0, 3, 2, 5, 4), prose(2, 3, 4, 5, 0, 1),
    prose(4, 2, 0, 5, 3, 1), prose(3, 5, 1, 4, 2, 0), prose(0, 2, 4, 1, 3, 5), prose(5, 4, 3, 2, 1, 0),
)  # fmt: skip


def two_columns() -> SourceDocument:
    rows = [" & ".join(row) + r" \\" for row in CATCH]
    table = "\n".join([r"\hline", rows[0], r"\hline", *rows[1:], r"\hline"])
    source = rf"""\documentclass[twocolumn,10pt]{{article}}\usepackage[T1]{{fontenc}}\usepackage{{lmodern}}
\usepackage[a4paper,margin=2cm]{{geometry}}\title{{Boats of the northern ports}}\author{{Anna Vik}}\date{{May 2021}}
\begin{{document}}\maketitle\section{{Introduction}}
{prose(0, 1, 2, 3)}

{prose(4, 5, 0, 2)}
\section{{Data}}
{prose(1, 3, 5)}
\begin{{table}}[h]\centering\caption{{Boats and catch.}}\begin{{tabular}}{{lrr}}
{table}
\end{{tabular}}\end{{table}}

{prose(2, 4, 0, 1)}
\section{{Results}}
"""
    source += "\n\n".join(RESULTS) + rf"\section{{Conclusion}} {prose(3, 4)}" + r"\end{document}"
    truth = (
        "Boats of the northern ports", "Anna Vik May 2021", "1 Introduction", prose(0, 1, 2, 3), prose(4, 5, 0, 2),
        "2 Data", prose(1, 3, 5), "Table 1: Boats and catch.", CATCH, prose(2, 4, 0, 1), "3 Results", *RESULTS,
        "4 Conclusion", prose(3, 4),
    )  # fmt: skip
    return SourceDocument("two columns", "pdflatex", "tex", text_source(source), truth)


def letter() -> SourceDocument:
    source = rf"""\documentclass[11pt,a4paper]{{letter}}\usepackage[T1]{{fontenc}}\usepackage{{lmodern}}
\address{{Anna Vik\\Storgata 9\\0150 Oslo}}\date{{2 June 2022}}\signature{{Anna Vik}}
\begin{{document}}\begin{{letter}}{{Nordic Supply AS\\Havnegata 3\\5003 Bergen}}\opening{{Dear Sir or Madam,}}
{prose(0, 1, 2)}

{prose(3, 4, 5)}
\closing{{Yours faithfully,}}\end{{letter}}\end{{document}}"""
    truth = (
        "Anna Vik Storgata 9 0150 Oslo", "2 June 2022", "Nordic Supply AS Havnegata 3 5003 Bergen",
        "Dear Sir or Madam,", prose(0, 1, 2), prose(3, 4, 5), "Yours faithfully,", "Anna Vik",
    )  # fmt: skip
    return SourceDocument("letter", "pdflatex", "tex", text_source(source), truth)


def legal_text() -> SourceDocument:
    source = rf"""\documentclass[11pt]{{article}}\usepackage[T1]{{fontenc}}\usepackage{{lmodern}}
\usepackage[a4paper,margin=3cm]{{geometry}}\setlength{{\parindent}}{{0pt}}\setlength{{\parskip}}{{6pt}}
\begin{{document}}\begin{{center}}\Large\textbf{{Harbour Act}}\end{{center}}
\section*{{\S\,1 Scope}}
(1) {LINES[0]}\footnote{{See the Ports Act of 1984, as it was amended in 2009.}} {LINES[1]}

(2) {LINES[3]}
\section*{{\S\,2 Duties of the harbour master}}
(1) {LINES[2]}\footnote{{Court of Appeal, 12 May 2011, no. 14.}}

(2) The harbour master shall

\quad a) {LINES[4]}

\quad b) {LINES[5]}

(3) {prose(0, 3)}
\end{{document}}"""
    truth = (
        "Harbour Act", "\u00a7 1 Scope", f"(1) {LINES[0]}1 {LINES[1]}", f"(2) {LINES[3]}",
        "\u00a7 2 Duties of the harbour master", f"(1) {LINES[2]}2", "(2) The harbour master shall", f"a) {LINES[4]}",
        f"b) {LINES[5]}", f"(3) {prose(0, 3)}", "1 See the Ports Act of 1984, as it was amended in 2009.",
        "2 Court of Appeal, 12 May 2011, no. 14.",
    )  # fmt: skip
    return SourceDocument("legal text", "pdflatex", "tex", text_source(source), truth)


def form() -> SourceDocument:
    source = r"""\documentclass[11pt]{article}\usepackage[T1]{fontenc}\usepackage{lmodern}\usepackage{hyperref}
\usepackage[a4paper,margin=2.5cm]{geometry}\pagestyle{empty}\setlength{\parindent}{0pt}
\setlength{\parskip}{8pt}\begin{document}\begin{Form}{\Large\textbf{Application for a berth}}

\TextField[name=name,value={Anna Vik},width=6cm,bordercolor={0 0 0}]{Full name:}

\TextField[name=street,value={Storgata 9},width=6cm]{Street:}

\TextField[name=boat,value={Havfruen},width=6cm]{Name of the boat:}

\TextField[name=length,value={11.4 m},width=3cm]{Length:}

\CheckBox[name=power,checked]{Shore power}

\CheckBox[name=water]{Fresh water}

\TextField[name=remarks,value={},width=6cm]{Remarks:}

I declare that the boat is insured.\end{Form}\end{document}"""
    truth = (
        "Application for a berth", "Full name: Anna Vik", "Street: Storgata 9", "Name of the boat: Havfruen",
        "Length: 11.4 m", "Shore power \u2612", "Fresh water \u2610", "Remarks:",
        "I declare that the boat is insured.",
    )  # fmt: skip
    return SourceDocument("form", "pdflatex", "tex", text_source(source), truth)


STAMP = ("RECEIVED", "7 JUN 2022")


def stamped_scan(pdf: bytes) -> bytes:
    """A PDF's first page as a scan at 150 dpi: a little askew, grey, noisy, with a red stamp at its lower end."""
    from PIL import Image, ImageDraw, ImageFont, ImageOps

    from framework.workflow.files.pdf import PdfReader

    with PdfReader(pdf, dpi=150) as pages:
        page = Image.fromarray(pages.render(0))
    font = ImageFont.load_default(30)
    stamp = Image.new("RGBA", (330, 130))
    draw = ImageDraw.Draw(stamp)
    draw.rectangle((3, 3, 326, 126), outline=(190, 30, 40, 255), width=5)
    for number, text in enumerate(STAMP):
        draw.text((165, 38 + 54 * number), text, (190, 30, 40, 255), font, "mm")
    tilted = stamp.rotate(9, Image.Resampling.BICUBIC, expand=True)
    page.paste(tilted, (700, 1250), tilted)
    page = page.rotate(0.7, Image.Resampling.BICUBIC, fillcolor="white")
    pixels = np.asarray(page, np.float32) * 0.92 + 12
    pixels += np.random.default_rng(0).normal(0, 6, pixels.shape)
    scan = Image.fromarray(pixels.clip(0, 255).astype(np.uint8))
    written = io.BytesIO()
    ImageOps.exif_transpose(scan).save(written, "PDF", resolution=150, quality=75)
    return written.getvalue()


def scanned_letter() -> SourceDocument:
    typed = letter()
    return SourceDocument(
        "stamped scan", "pdflatex", "tex", typed.write, (*typed.truth, " ".join(STAMP)), stamped_scan
    )


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


REPORT = (
    ("Quarter", "Boats", "Tonnes"),
    ("First", "41", "1,204"),
    ("Second", "38", "1,118"),
    ("Third", "44", "1,390"),
)


def write_report(path: Path) -> None:
    from docx import Document

    word = Document()
    word.add_heading("Report of the harbour office", 0)
    word.add_heading("Summary", 1)
    word.add_paragraph(prose(0, 1, 3))
    word.add_heading("Findings", 1)
    for number in (2, 4, 5):
        word.add_paragraph(LINES[number], style="List Bullet")
    word.add_heading("Figures", 2)
    word.add_paragraph("Table 1: Catch in 2021", style="Caption")
    table = word.add_table(rows=0, cols=3, style="Table Grid")
    for row in REPORT:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    word.add_heading("Measures", 1)
    for number in (1, 3):
        word.add_paragraph(LINES[number], style="List Number")
    section = word.sections[0]
    section.header.paragraphs[0].text = "Harbour office of Bergen"
    word.save(str(path))


# What a flat OpenDocument presentation begins with: its name spaces and the styles of a title and of a text.
SLIDES = """<?xml version="1.0" encoding="UTF-8"?><office:document office:version="1.3"
 office:mimetype="application/vnd.oasis.opendocument.presentation"
 xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"
 xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
 xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
 xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:fo="urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"><office:automatic-styles>
<style:style style:name="b" style:family="text"><style:text-properties fo:font-size="36pt"/></style:style>
<style:style style:name="h" style:family="text"><style:text-properties fo:font-size="22pt" fo:font-weight="bold"/>
</style:style><style:style style:name="t" style:family="text"><style:text-properties fo:font-size="20pt"/>
</style:style></office:automatic-styles><office:body><office:presentation>%s</office:presentation></office:body>
</office:document>"""


def slides() -> SourceDocument:
    def box(left: float, top: float, width: float, *paragraphs: tuple[str, str]) -> str:
        inside = "".join(
            f'<text:p><text:span text:style-name="{style}">{text}</text:span></text:p>'
            for style, text in paragraphs
        )
        return (
            f'<draw:frame svg:x="{left}cm" svg:y="{top}cm" svg:width="{width}cm" svg:height="3cm"><draw:text-box>'
            f"{inside}</draw:text-box></draw:frame>"
        )

    points = ("Prices rose a little", "Most boats stay at home", "The railway takes the rest")
    after = "The rain stopped and the market filled with people."
    first = box(2, 1, 23, ("b", "Why the harbour is quiet")) + box(
        2, 5, 23, *(("t", f"\u2022 {point}") for point in points)
    )
    second = (
        box(2, 1, 23, ("b", "Two sides"))
        + box(2, 5, 11, ("h", "Before"), ("t", LINES[3]))
        + box(14.5, 5, 11, ("h", "After"), ("t", after))
    )
    source = SLIDES % (
        f'<draw:page draw:name="1">{first}</draw:page><draw:page draw:name="2">{second}</draw:page>'
    )
    truth = ("Why the harbour is quiet", *points, "Two sides", "Before", LINES[3], "After", after)
    return SourceDocument("slides", "soffice", "fodp", text_source(source), truth)


def office() -> list[SourceDocument]:
    invoice = (
        "Nordic Supply AS", "Havnegata 3 5003 Bergen", "Bill to: Anna Vik Storgata 9", "Ship to: Vik Workshop Dock 4",
        "Invoice no. 5512 of 2 June 2022", ITEMS, "Please pay within 30 days to account 1234 56 78901.",
    )  # fmt: skip
    report = (
        "Harbour office of Bergen", "Report of the harbour office", "Summary", prose(0, 1, 3), "Findings", LINES[2],
        LINES[4], LINES[5], "Figures", "Table 1: Catch in 2021", REPORT, "Measures", f"1. {LINES[1]}",
        f"2. {LINES[3]}",
    )  # fmt: skip
    return [
        SourceDocument("invoice", "soffice", "docx", write_invoice, invoice),
        SourceDocument("spreadsheet", "soffice", "xlsx", write_sheet, (SHEET,)),
        SourceDocument("report", "soffice", "docx", write_report, report),
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
        f"<main><h1>Anna Vik</h1><h2>Profile</h2><p>{prose(0, 3)}</p><h2>Experience</h2><p>{prose(1, 2)}</p></main>"
    )
    cards = "".join(
        f"<div><h3>{name}</h3><p>{text}</p><b>NOK {price}</b></div>" for name, text, price in CARDS
    )
    catalogue = (
        "<style>body{font:13px sans-serif}main{display:grid;grid-template-columns:1fr 1fr;gap:30px}</style>"
        f"<h1>Spring catalogue</h1><main>{cards}</main>"
    )
    profile = (
        "Contact", "anna@example.org +47 555 01 01 Bergen", "Skills", "Welding Sailing Chess", "Anna Vik", "Profile",
        prose(0, 3), "Experience", prose(1, 2),
    )  # fmt: skip
    listed = [text for name, about, price in CARDS for text in (name, about, f"NOK {price}")]
    return [
        SourceDocument(
            "statement", "chromium", "html", text_source(statement), ("Account statement May 2023", STATEMENT)
        ),
        SourceDocument("resume", "chromium", "html", text_source(resume), profile),
        SourceDocument(
            "catalogue", "chromium", "html", text_source(catalogue), ("Spring catalogue", *listed)
        ),
    ]


RECEIPT = (("2 x Coffee", "7.00"), ("Bun with cinnamon", "3.40"), ("Soup of the day", "11.90"))
ARABIC = (
    "الميناء القديم في الشمال",
    "كان الميناء هادئا عندما عادت القوارب الأولى من رحلة الليل الطويلة في البحر.",
    "حمل قاربان منها سمك الرنجة، وفقد الثالث شباكه بالقرب من المنارة القديمة.",
    "الأسعار",
    "افتتح المزاد في الساعة السابعة وأغلق بعد ساعة من موعده المعتاد في عام 2021.",
    "ارتفعت الأسعار قليلا، وذهب معظم الصيد إلى المصنع خلف السكة الحديدية.",
)
ARABIC_ROWS = (
    ("الميناء", "القوارب", "الصيد"),
    ("بيرغن", "14", "120"),
    ("موس", "9", "88"),
    ("بودو", "22", "310"),
)


def more_web_pages() -> list[SourceDocument]:
    rows = "".join(f"<div><span>{name}</span><span>{price}</span></div>" for name, price in RECEIPT)
    receipt = (
        "<style>@page{size:80mm 150mm;margin:4mm}body{font:12px monospace;margin:0}p{text-align:center}"
        "div{display:flex;justify-content:space-between}b{display:block}</style><p><b>HARBOUR CAFE</b>Quay 3, Bergen"
        f"<br>Org. 914 778 271</p><hr>{rows}<hr><div><b>TOTAL NOK</b><b>22.30</b></div><div><span>VAT 15 %</span>"
        "<span>2.91</span></div><div><span>Card</span><span>22.30</span></div><p>02.06.2022 13:05<br>Thank you!</p>"
    )
    page = (
        "<style>body{font:14px sans-serif;margin:0}nav{background:#235;color:white;padding:8px}nav span{margin-right:"
        "24px}main{display:grid;grid-template-columns:1fr 170px;gap:24px;padding:16px}aside{background:#eee;padding:"
        "10px;font-size:12px}footer{border-top:1px solid;padding:8px;font-size:11px}</style><nav><span>News</span>"
        f"<span>Boats</span><span>Weather</span></nav><main><article><h1>The quiet harbour</h1><p>{prose(0, 1, 2)}</p>"
        f"<h2>At the auction</h2><p>{prose(3, 4)}</p><p>{prose(5, 0)}</p></article><aside><h3>Tide</h3>High at 04:10"
        "<br>Low at 10:25</aside></main><footer>Printed by the Bergen Post, 2022</footer>"
    )
    table = rows_html(ARABIC_ROWS)
    paragraphs = "".join(f"<h2>{text}</h2>" if len(text) < 10 else f"<p>{text}</p>" for text in ARABIC[1:])
    article = (
        "<html dir=rtl lang=ar><style>body{font:16px 'Noto Naskh Arabic',sans-serif}td{border:1px solid;padding:4px "
        f"14px}}table{{border-collapse:collapse}}</style><h1>{ARABIC[0]}</h1>{paragraphs}{table}"
    )
    receipt_says = (
        "HARBOUR CAFE", "Quay 3, Bergen", "Org. 914 778 271", RECEIPT, "TOTAL NOK 22.30",
        "VAT 15 % 2.91", "Card 22.30", "02.06.2022 13:05", "Thank you!",
    )  # fmt: skip
    page_says = (
        "News Boats Weather", "The quiet harbour", prose(0, 1, 2), "At the auction", prose(3, 4), prose(5, 0), "Tide",
        "High at 04:10 Low at 10:25", "Printed by the Bergen Post, 2022",
    )  # fmt: skip
    return [
        SourceDocument("receipt", "chromium", "html", text_source(receipt), receipt_says),
        SourceDocument("web page", "chromium", "html", text_source(page), page_says),
        SourceDocument(
            "Arabic article", "chromium", "html", text_source("<meta charset=utf-8>" + article),
            (*ARABIC, ARABIC_ROWS),
        ),
    ]  # fmt: skip


def every_document() -> list[SourceDocument]:
    return [
        two_columns(), letter(), legal_text(), slides(), form(), scanned_letter(), *office(), *web_pages(),
        *more_web_pages(),
    ]  # fmt: skip
