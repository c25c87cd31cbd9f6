"""Documents that are made from a seed, printed and read again: tables, text, reading order, pages a second.

Both need weasyprint and rapidfuzz, and the peers. `--failures FOLDER` keeps the PDFs that were read wrongly.

documents   prose around one table a page, half of them ruled (a third of these with spans), half with horizontal
            rules only or none, and pages of prose without a table, against pdfplumber and img2table. TEDS divides by
            the larger number of elements, tables that were not found or are too many count 0, and thead and tbody are
            taken out of both sides, since the peers do not tell them; `TEDS with head` leaves them in. The text's
            distance is Levenshtein's over the longer length, white space collapsed. img2table gives no text of pages
round_trip  a title and headings, one to three columns of paragraphs, and among them a list, a ruled table, a figure
            and a title that spans the columns, in an order that is known, read as `ocr.document` reads it. The text's
            distance is of words alone, without Markdown's markup. The order's is that of the sequence of blocks as
            Markdown has them: a block is where its first words are found. Of pdfplumber the time of tables is
            counted, too
"""

from __future__ import annotations

import html
import io
import logging
import random
import re
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocr.tables import teds as table_metrics
from tools.bench.peers import arguments

WORDS = """
time year people way day man thing woman life child world school state family student group country problem
hand part place case week company system program question work government number night point home water room
mother area money story fact month lot right study book eye job word business issue side kind head
service friend
""".split()  # noqa: SIM905

CSS = """@page{size:A4;margin:2cm}body{font:10pt %(font)s;text-align:%(align)s}
table{border-collapse:collapse;margin:1em 0;%(table)s}
td,th{padding:%(pad)s;text-align:left;vertical-align:top;%(cell)s}th{font-weight:%(weight)s}.n{text-align:right}
tr.h th{%(head)s}thead{display:table-row-group}%(more)s"""


@dataclass(frozen=True)
class Sample:
    """One page: its PDF, what it says, its table as HTML ("" of a page without one) and its kind."""

    pdf: bytes
    text: str
    table: str
    kind: str


def prose(rng: random.Random, count: int, words: Sequence[str] = WORDS) -> str:
    said = [rng.choice(words) for _ in range(count)]
    for first in range(0, count, 12):
        said[first] = said[first].capitalize()
        said[min(first + 11, count - 1)] += "."
    return " ".join(said)


def make_table(rng: random.Random, spans: bool) -> tuple[str, str, str]:
    """(HTML to print, HTML of the truth, text)."""
    rows, columns = rng.randint(4, 9), rng.randint(3, 6)
    numeric = [c > 0 and rng.random() < 0.7 for c in range(columns)]
    taken: set[tuple[int, int]] = set()
    printed, truth, text = [], [], []
    for r in range(rows):
        out, true = [], []
        for c in range(columns):
            if (r, c) in taken:
                continue
            height = width = 1
            if spans and rng.random() < 0.15:
                width = 2 if c + 1 < columns and (r, c + 1) not in taken else 1
                height = 2 if r and r + 1 < rows and width == 1 and rng.random() < 0.6 else 1
            taken |= {(r + i, c + j) for i in range(height) for j in range(width)}
            if r == 0:
                said = prose(rng, rng.randint(1, 2)).rstrip(".")
            elif numeric[c]:
                said = f"{rng.uniform(0, 1000):.{rng.randint(0, 2)}f}"
            else:
                said = prose(rng, rng.choice([1, 1, 2, 2, 3, 6])).rstrip(".")
            tag = "th" if r == 0 else "td"
            attributes = "".join(f' {n}="{v}"' for n, v in (("rowspan", height), ("colspan", width)) if v > 1)
            out.append(f"<{tag}{attributes}{' class=n' if numeric[c] else ''}>{html.escape(said)}</{tag}>")
            true.append(f"<td{attributes}>{html.escape(said)}</td>")
            text.append(said)
        printed.append(f"<tr{' class=h' if r == 0 else ''}>{''.join(out)}</tr>")
        truth.append(f"<tr>{''.join(true)}</tr>")
    true_html = f"<table><thead>{truth[0]}</thead><tbody>{''.join(truth[1:])}</tbody></table>"
    return f"<table>{''.join(printed)}</table>", true_html, " ".join(text)


def make_samples(count: int, seed: int) -> list[Sample]:
    from weasyprint import HTML

    samples = []
    for number in range(count):
        rng = random.Random(f"{seed} {number}")
        kind = ("ruled", "booktabs", "ruled with spans", "borderless", "ruled", "rows ruled")[number % 6]
        style = {
            "font": rng.choice(["serif", "sans-serif"]),
            "align": rng.choice(["left", "justify"]),
            "table": rng.choice(["", "width:100%"]),
            "pad": rng.choice(["2px 6px", "4px 8px"])
            if kind.startswith("ruled")
            else rng.choice(["2px 10px", "3px 14px"]),
            "weight": rng.choice(["bold", "normal"]),
            "cell": "",
            "head": "",
            "more": "",
        }
        if kind.startswith("ruled"):
            style["cell"] = f"border:{rng.choice(['0.5pt solid black', '1pt solid #888', '1px dashed #444'])}"
            style["head"] = rng.choice(["", "background:#ddd"])
        elif kind == "booktabs":
            style["table"] += ";border-top:1pt solid black;border-bottom:1pt solid black"
            style["head"] = "border-bottom:.5pt solid black"
        elif kind == "rows ruled":
            style["cell"] = "border-bottom:.5pt solid #999"
        printed, truth, text = make_table(rng, kind == "ruled with spans")
        title, first, second = prose(rng, 4), prose(rng, 90), prose(rng, 120)
        caption = f"Table {number + 1}: {prose(rng, 6)}"
        body = f"<h1>{title}</h1><p>{first}</p><p>{caption}</p>{printed}<p>{second}</p>"
        pdf = HTML(string=f"<style>{CSS % style}</style>{body}").write_pdf()
        samples.append(Sample(pdf, f"{title} {first} {caption} {text} {second}", truth, kind))
    for number in range(max(4, count // 4)):
        rng = random.Random(f"{seed} prose {number}")
        kind = ("two columns", "list", "contents", "address")[number % 4]
        parts = [prose(rng, rng.randint(40, 90)) for _ in range(6)]
        if kind == "two columns":
            body, more = "".join(f"<p>{part}</p>" for part in parts), "body{columns:2;column-gap:14pt}"
        elif kind == "list":
            parts = [prose(rng, rng.randint(3, 25)) for _ in range(12)]
            body, more = f"<ul>{''.join(f'<li>{part}</li>' for part in parts)}</ul>", "ul{list-style:none}"
        elif kind == "contents":
            parts = [f"{prose(rng, rng.randint(2, 5))} {i * 3 + 1}" for i in range(14)]
            lines = (part.rsplit(" ", 1) for part in parts)
            body = "".join(
                f"<div class=t><span>{name}</span><span>{page}</span></div>" for name, page in lines
            )
            more = ".t{display:flex;justify-content:space-between}"
        else:
            parts = [prose(rng, rng.randint(1, 3)) for _ in range(5)] + parts[:2]
            body, more = (
                "<p>" + "<br>".join(parts[:5]) + "</p>" + "".join(f"<p>{p}</p>" for p in parts[5:]),
                "",
            )
        style = dict.fromkeys(("table", "cell", "head"), "") | {
            "font": "serif",
            "align": "justify",
            "pad": "2px",
        }
        style |= {"weight": "bold", "more": more}
        pdf = HTML(string=f"<style>{CSS % style}</style>{body}").write_pdf()
        samples.append(Sample(pdf, " ".join(parts), "", kind))
    return samples


def teds(found: str, truth: str, *, head: bool = False) -> float:
    """TEDS, without `head` of tables whose rows are in no groups; white space and line ends of cells are collapsed."""

    def plain(text: str) -> str:
        text = re.sub(r"(?<=>) +| +(?=<)", "", re.sub(r"\s*<br>\s*|\s+", " ", text))
        return text if head else re.sub(r"</?t(head|body)>", "", text)

    return table_metrics.teds(plain(found), plain(truth))


Reader = Callable[[bytes], tuple[str | None, Sequence[str]]]


def ours(pdf: bytes) -> tuple[str | None, Sequence[str]]:
    from framework.workflow.files.pdf import PdfReader
    from ocr.results.layer_check import is_usable
    from ocr.results.page_text import read_text_layer
    from ocr.tables.ruled_tables import find_ruled_tables
    from ocr.tables.ruling_lines import ruling_lines_of_page
    from ocr.tables.text_tables import find_text_tables

    with PdfReader(pdf, dpi=144) as pages:
        page = pages.content(0)
    layer = read_text_layer(page)
    assert is_usable(layer, page)
    rules = ruling_lines_of_page(page)
    ruled, rest = find_ruled_tables(rules, layer.lines)
    plain, _ = find_text_tables(rest, rules)
    return layer.text, [block.content.to_html() for block in (*ruled, *plain)]


def pdfplumber_reader() -> Reader:
    import pdfplumber

    def read(pdf: bytes) -> tuple[str | None, Sequence[str]]:
        with pdfplumber.open(io.BytesIO(pdf)) as document:
            page = document.pages[0]
            tables = page.extract_tables()
            return page.extract_text(), [rows_html(table) for table in tables]

    return read


def rows_html(table: Sequence[Sequence[str | None]]) -> str:
    rows = ("".join(f"<td>{html.escape(cell or '')}</td>" for cell in row) for row in table)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def img2table_reader() -> Reader:
    from img2table.document import PDF
    from img2table.ocr.pdf import PdfOCR

    def read(pdf: bytes) -> tuple[str | None, Sequence[str]]:
        tables = PDF(pdf).extract_tables(ocr=PdfOCR(), borderless_tables=True, implicit_rows=False)
        return None, [re.sub(r"\s*\n\s*", " ", table.html) for table in tables.get(0, [])]

    return read


def documents(argv: list[str]) -> None:
    parser = arguments(__doc__, tables=48, seed=0)
    parser.add_argument("--peers", nargs="*", default=["pdfplumber", "img2table"])
    parser.add_argument("--failures", type=Path)
    args = parser.parse_args(argv)
    logging.disable(logging.WARNING)
    from rapidfuzz.distance import Levenshtein

    makers = {"pdfplumber": pdfplumber_reader, "img2table": img2table_reader}
    readers: dict[str, Reader] = {"oar": ours} | {name: makers[name]() for name in args.peers}
    samples = make_samples(args.tables, args.seed)
    for name, read in readers.items():
        read(samples[0].pdf)
        scores: dict[str, list[float]] = {}
        heads, distances, seconds, false = [], [], [], 0
        for number, sample in enumerate(samples):
            start = time.process_time()
            text, tables = read(sample.pdf)
            seconds.append(time.process_time() - start)
            if text is not None:
                said = (" ".join(text.split()), " ".join(sample.text.split()))
                distances.append(Levenshtein.normalized_distance(*said))
            if not sample.table:
                false += len(tables)
            else:
                best = max((teds(table, sample.table) for table in tables), default=0.0)
                scores.setdefault(sample.kind, []).append(best / max(len(tables), 1))
                heads.append(
                    max((teds(t, sample.table, head=True) for t in tables), default=0.0) / max(len(tables), 1)
                )
            wrong = tables if not sample.table else scores[sample.kind][-1] < 1
            if name == "oar" and args.failures and (wrong or (distances and distances[-1] > 0.01)):
                args.failures.mkdir(parents=True, exist_ok=True)
                stem = args.failures / f"{number:03d}_{sample.kind.replace(' ', '_')}"
                stem.with_suffix(".pdf").write_bytes(sample.pdf)
                stem.with_suffix(".txt").write_text(
                    "\n\n".join([sample.table, *tables, sample.text, text or ""]), encoding="utf-8"
                )
        every = [score for values in scores.values() for score in values]
        print(
            f"{name}: TEDS {statistics.mean(every):.4f} over {len(every)} tables, "
            f"with head {statistics.mean(heads):.4f}"
        )
        print("   " + ", ".join(f"{kind} {statistics.mean(values):.4f}" for kind, values in scores.items()))
        shown = f"{statistics.mean(distances):.4f}" if distances else "none"
        pages = 1 / statistics.median(seconds)
        print(f"   false tables {false}, text distance {shown}, {pages:.1f} pages per second of CPU")


# -- pages whose order is known --------------------------------------------------------------------------------------

FEW_WORDS = WORDS[: WORDS.index("money") + 1]
PAGE_CSS = """@page{size:A4;margin:2cm}body{font:10pt %(font)s;text-align:%(align)s}
h1{font-size:20pt;text-align:left}h2{font-size:13pt;text-align:left;column-span:%(span)s}
.c{columns:%(columns)d;column-gap:16pt}table{border-collapse:collapse;break-inside:avoid}
td{border:.5pt solid black;padding:2px 6px}ul{padding-left:1.2em}
p.i{text-indent:1.5em;margin:0}img{width:100%%;height:60pt;display:block}"""
# A grey image of one pixel.
IMAGE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg"
    "=="
)


@dataclass(frozen=True)
class Page:
    """A page's PDF, and the texts of its blocks in the order in which they are read."""

    pdf: bytes
    blocks: tuple[str, ...]


def make_page(number: int, seed: int) -> Page:
    from weasyprint import HTML

    rng = random.Random(f"{seed} round trip {number}")
    columns = rng.choice([1, 2, 2, 3])
    blocks, parts = [], []
    title = prose(rng, 5, FEW_WORDS)
    blocks.append(title)
    for section in range(rng.randint(2, 3)):
        heading = f"{section + 1} {prose(rng, 3, FEW_WORDS).rstrip('.')}"
        blocks.append(heading)
        inside = [f"<h2>{heading}</h2>"]
        for _ in range(rng.randint(2, 3)):
            kind = rng.choice(["p", "p", "p", "list", "table", "figure"])
            if kind == "p":
                text = prose(rng, rng.randint(25, 55), FEW_WORDS)
                blocks.append(text)
                inside.append(f"<p>{text}</p>")
            elif kind == "list":
                items = [prose(rng, rng.randint(3, 9), FEW_WORDS) for _ in range(3)]
                blocks += items
                inside.append(f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")
            elif kind == "table":
                rows = [[prose(rng, 1, FEW_WORDS).rstrip("."), f"{rng.uniform(0, 99):.2f}"] for _ in range(3)]
                blocks.append(" ".join(cell for row in rows for cell in row))
                cells = "".join(f"<tr>{''.join(f'<td>{c}</td>' for c in row)}</tr>" for row in rows)
                inside.append(f"<table>{cells}</table>")
            else:
                inside.append(f'<img src="{IMAGE}">')
        parts.append(f"<div class=c>{''.join(inside)}</div>")
    style = {
        "font": rng.choice(["serif", "sans-serif"]),
        "align": rng.choice(["left", "justify"]),
        "columns": columns,
        "span": "all",
    }
    html = f"<style>{PAGE_CSS % style}</style><h1>{title}</h1>{''.join(parts)}"
    return Page(HTML(string=html).write_pdf(), tuple(blocks))


def words(text: str) -> str:
    """What a text says without Markdown's and HTML's markup."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)|<[^>]+>", " ", text)
    text = re.sub(r"^[|\s:-]+$|^\s*(#+|-|\*|•|\|)\s", " ", text, flags=re.MULTILINE)
    return " ".join(re.sub(r"\\(?=\W)|\||•", " ", text).split())


def order_distance(markdown: str, blocks: Sequence[str]) -> float:
    """Edit distance of the order in which the blocks' beginnings stand, over their number."""
    from rapidfuzz import fuzz
    from rapidfuzz.distance import Levenshtein

    said = words(markdown)
    places = []
    for number, block in enumerate(blocks):
        start = " ".join(words(block).split()[:8])
        at = said.find(start)
        if at < 0:
            found = fuzz.partial_ratio_alignment(start, said, score_cutoff=80)
            at = -1 if found is None else found.dest_start
        if at >= 0:
            places.append((at, number))
    found_order = [number for _, number in sorted(places)]
    return Levenshtein.distance(found_order, list(range(len(blocks)))) / max(len(blocks), 1)


def read_with_pdfplumber(pdf: bytes) -> tuple[str, int]:
    """The text as pdfplumber has it, and how many pages it is from."""
    import pdfplumber

    with pdfplumber.open(io.BytesIO(pdf)) as opened:
        texts = [(page.extract_text(), page.extract_tables())[0] for page in opened.pages]
    return "\n".join(texts), len(texts)


def round_trip(argv: list[str]) -> None:
    parser = arguments(__doc__, pages=200, ocr=10, dpi=150.0, seed=0)
    parser.add_argument("--peers", nargs="*", default=[], choices=("pdfplumber",))
    parser.add_argument("--failures", type=Path)
    args = parser.parse_args(argv)
    from rapidfuzz.distance import Levenshtein

    from framework.inference import Runtime
    from ocr.documents.document import make_reader
    from ocr.documents.loaders import lazy_ocr
    from ocr.documents.options import DocumentOptions

    samples = [make_page(number, args.seed) for number in range(args.pages)]
    runtime = Runtime()
    open_ocr = lazy_ocr("pp_ocrv6_small", runtime)

    def oar(**options: Any) -> Callable[[bytes], tuple[str, int]]:
        read = make_reader(DocumentOptions(**options), open_ocr, runtime)

        def markdown_of(pdf: bytes) -> tuple[str, int]:
            found = read(pdf)
            return found.to_markdown(), len(found.pages)

        return markdown_of

    readers = {
        "text layer": (oar(), samples),
        f"OCR at {args.dpi:g} dpi": (oar(text_layer="never", dpi=args.dpi), samples[: args.ocr]),
        **{peer: (read_with_pdfplumber, samples) for peer in args.peers},
    }
    for name, (read, chosen) in readers.items():
        texts, orders, seconds, pages = [], [], [], 0
        for number, sample in enumerate(chosen):
            start = time.process_time()
            markdown, count = read(sample.pdf)
            seconds.append((time.process_time() - start) / count)
            pages += count
            truth = " ".join(map(words, sample.blocks))
            texts.append(Levenshtein.normalized_distance(words(markdown), truth))
            orders.append(order_distance(markdown, sample.blocks))
            if args.failures and (orders[-1] > 0 or texts[-1] > 0.02):
                args.failures.mkdir(parents=True, exist_ok=True)
                stem = args.failures / f"{number:03d}_{name.replace(' ', '_')}"
                stem.with_suffix(".pdf").write_bytes(sample.pdf)
                stem.with_suffix(".md").write_text(
                    markdown + "\n---\n" + "\n".join(sample.blocks), encoding="utf-8"
                )
        if chosen:
            print(
                f"{name}: text {statistics.mean(texts):.4f} (worst {max(texts):.3f}), "
                f"order {statistics.mean(orders):.4f} (worst {max(orders):.3f}), "
                f"{1 / statistics.median(seconds):.1f} pages per second of CPU, {pages} pages"
            )
