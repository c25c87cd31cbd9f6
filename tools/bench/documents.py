"""Tables and text of born-digital PDF pages, against pdfplumber and img2table in the same run.

python tools/bench/documents.py [--tables 48] [--seed 0] [--peers pdfplumber img2table] [--failures FOLDER]

Needs weasyprint and rapidfuzz, and the peers. The pages are made here from a seed: prose around one table each,
half of them ruled (a third of these with spans), half with horizontal rules only or none, and pages of prose without a
table. TEDS divides by the larger number of elements, tables that were not found or are too many count 0, and thead and
tbody are taken out of both sides, since the peers do not tell them; `TEDS with head` leaves them in.
The text's distance is Levenshtein's over the longer length, white space collapsed. img2table gives no text of pages.
"""

from __future__ import annotations

import argparse
import html
import io
import logging
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ocr.tables import teds as table_metrics

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


def prose(rng: random.Random, words: int) -> str:
    said = [rng.choice(WORDS) for _ in range(words)]
    for i in range(0, words, 12):
        said[i] = said[i].capitalize()
        said[min(i + 11, words - 1)] += "."
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
    from ocr.results.page_text import is_usable, read_text_layer
    from ocr.tables.ruled_tables import find_ruled_tables
    from ocr.tables.ruling_lines import rules_of_page
    from ocr.tables.text_tables import find_text_tables

    with PdfReader(pdf, dpi=144) as pages:
        page = pages.content(0)
    layer = read_text_layer(page)
    assert is_usable(layer, page)
    rules = rules_of_page(page)
    ruled, rest = find_ruled_tables(rules, layer.lines, layer.styles)
    styles = None if len(rest) != len(layer.lines) else layer.styles
    by_id = {id(line): style for line, style in zip(layer.lines, layer.styles, strict=True)}
    if styles is None:
        kept = [line for line in rest if id(line) in by_id]
        rest, styles = kept, [by_id[id(line)] for line in kept]
    plain, _ = find_text_tables(rest, rules, styles)
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


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tables", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", nargs="*", default=["pdfplumber", "img2table"])
    parser.add_argument(
        "--failures", type=Path, help="write the PDFs that we read wrongly, and what was found"
    )
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


if __name__ == "__main__":
    main()
