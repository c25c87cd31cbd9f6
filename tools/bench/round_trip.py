"""Documents that are made, printed and read again: text, reading order, pages a second.

python tools/bench/round_trip.py [--pages 200] [--ocr 10] [--dpi 150] [--seed 0] [--peers pdfplumber]
    [--failures FOLDER]

Needs weasyprint and rapidfuzz, and the peers. A page has a title and headings, one to three columns of paragraphs, and
among them a list, a ruled table, a figure and a title that spans the columns, in an order that is known. It is read as
`ocr.document` reads it. The text's distance is Levenshtein's over the longer length, of words alone: Markdown's markup
and white space are taken out of both sides. The order's is that of the sequence of blocks as Markdown has them: a block
is where its first words are found. Of peers the time of tables is counted too, as Oar finds them.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work government number night point home water room mother area money
""".split()  # noqa: SIM905
CSS = """@page{size:A4;margin:2cm}body{font:10pt %(font)s;text-align:%(align)s}
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
class Sample:
    """A page's PDF, and the texts of its blocks in the order in which they are read."""

    pdf: bytes
    blocks: tuple[str, ...]


def prose(rng: random.Random, count: int) -> str:
    said = [rng.choice(WORDS) for _ in range(count)]
    for first in range(0, count, 12):
        said[first] = said[first].capitalize()
        said[min(first + 11, count - 1)] += "."
    return " ".join(said)


def make_sample(number: int, seed: int) -> Sample:
    from weasyprint import HTML

    rng = random.Random(f"{seed} round trip {number}")
    columns = rng.choice([1, 2, 2, 3])
    blocks, parts = [], []
    title = prose(rng, 5)
    blocks.append(title)
    for section in range(rng.randint(2, 3)):
        heading = f"{section + 1} {prose(rng, 3).rstrip('.')}"
        blocks.append(heading)
        inside = [f"<h2>{heading}</h2>"]
        for _ in range(rng.randint(2, 3)):
            kind = rng.choice(["p", "p", "p", "list", "table", "figure"])
            if kind == "p":
                text = prose(rng, rng.randint(25, 55))
                blocks.append(text)
                inside.append(f"<p>{text}</p>")
            elif kind == "list":
                items = [prose(rng, rng.randint(3, 9)) for _ in range(3)]
                blocks += items
                inside.append(f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>")
            elif kind == "table":
                rows = [[prose(rng, 1).rstrip("."), f"{rng.uniform(0, 99):.2f}"] for _ in range(3)]
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
    html = f"<style>{CSS % style}</style><h1>{title}</h1>{''.join(parts)}"
    return Sample(HTML(string=html).write_pdf(), tuple(blocks))


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


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--ocr", type=int, default=10, help="so many of them are read by OCR, too")
    parser.add_argument("--dpi", type=float, default=150.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--peers", nargs="*", default=[], choices=("pdfplumber",))
    parser.add_argument(
        "--failures", type=Path, help="write PDFs and Markdown of pages that were read wrongly"
    )
    args = parser.parse_args(argv)
    from rapidfuzz.distance import Levenshtein

    from framework.inference import Runtime
    from ocr.documents.document import make_reader
    from ocr.documents.loaders import make_opener
    from ocr.documents.options import DocumentOptions

    samples = [make_sample(number, args.seed) for number in range(args.pages)]
    runtime = Runtime()
    open_ocr = make_opener("pp_ocrv6_small", runtime)

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


if __name__ == "__main__":
    main()
