"""Scores of documents that a tool read into Markdown, a file for each page, against OmniDocBench's truth.

Texts, tables and formulas are matched by their edit distances, one to one, and pieces that a tool cut or joined are
put together where that brings the texts closer. Then, as OmniDocBench has them: the edit distance of texts and of
formulas, the sum over a page divided by the sum of the longer lengths, and the mean over pages; TEDS of tables, where a
table too many counts as 0; the edit distance of the order in which the matched texts come. Where matplotlib is
installed (the extra "formulas"), formulas are also compared as they look, by `ocr.formulas.cdm`, over all pages, and
one too many counts as 0; `overall` stays with their edit distance.

Source: Ouyang et al. 2024, https://arxiv.org/abs/2412.07626, section 4. Its `quick_match` cuts and joins by rules of
its own, so that published scores can be compared, but are not those of this file to the last digit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from framework.core.bounded import read_text
from framework.core.errors import InputError
from framework.core.types import JSON
from ocr.documents.evaluation.markdown_blocks import Kind, MarkdownPart, read_markdown
from ocr.documents.evaluation.omnidocbench import TrueBlock, TruePage, read_pages
from ocr.formulas.cdm import CDMScores, can_draw
from ocr.tables.html import read_table
from ocr.tables.teds import tree_similarity
from ocr.text.scores import edit_distance, order_edit_distance

_LIMIT = 1 << 26  # characters of a page's Markdown
_FAR = 0.7  # a distance from which on two texts are not the same one
_NO_WORD = re.compile(r"[^\w]|_")
_LAST_MARKS = re.compile(r"(?<!\\)[.,;\s]+$")  # behind a formula
_INLINE = re.compile(r"\$([^$\n]+)\$")
# Whole commands alone: \leftarrow is a symbol, and what stands behind the line break \\ is no part of it.
_COMMAND = re.compile(
    r"(\\\\)|\\(?:(?:left|right|quad|qquad|displaystyle|nonumber|notag)(?![a-zA-Z])|[,;!:]|(?:tag|label)\{[^}]*\})"
)


@dataclass(frozen=True)
class Match:
    """Blocks of the truth and parts of the Markdown, by their numbers, that say the same; one side may be empty.

    `distance` is that of edits, `longest` the longer length of both.
    """

    truth: tuple[int, ...]
    found: tuple[int, ...]
    distance: int
    longest: int


@dataclass
class PageScores:
    """What is compared on a page. `order` is None where fewer than two texts match."""

    name: str
    texts: list[Match] = field(default_factory=list)
    formulas: list[Match] = field(default_factory=list)
    drawn: list[tuple[str | None, str | None]] = field(default_factory=list)
    """LaTeX of the formulas of `formulas`, found and true"""
    tables: list[tuple[float, float]] = field(default_factory=list)
    order: float | None = None


def normalize_text(text: str) -> str:
    """Letters and digits alone, inline formulas without their marks; case stays."""
    return _NO_WORD.sub("", _INLINE.sub(r"\1", text))


def normalize_formula(latex: str) -> str:
    """LaTeX without what only moves or numbers it."""
    return re.sub(r"\s+", "", _COMMAND.sub(r"\1", latex)).rstrip(".,;")


def score_page(page: TruePage, parts: Sequence[MarkdownPart]) -> PageScores:
    """The scores of one page whose Markdown has these parts."""
    scores = PageScores(page.name)
    texts = _join_pieces(*_sides(page.blocks, parts, "text", normalize_text))
    wanted = [block for block in page.blocks if block.kind == "text"]
    scores.texts = [m for m in texts if not m.truth or any(wanted[i].scored for i in m.truth)]
    formulas = _sides(page.blocks, parts, "formula", normalize_formula)
    scores.formulas = _match(*formulas)
    latex = _sides(page.blocks, parts, "formula", lambda text: _LAST_MARKS.sub("", text))
    scores.drawn = [
        (latex[1][m.found[0]] if m.found else None, latex[0][m.truth[0]] if m.truth else None)
        for m in scores.formulas
    ]
    scores.tables = _score_tables(page.blocks, parts)
    read = sorted((m for m in scores.texts if m.truth and m.found), key=lambda m: m.found)
    order = [m.truth[0] for m in read if wanted[m.truth[0]].order is not None]
    if len(order) > 1:
        scores.order = order_edit_distance(order, sorted(order))
    return scores


def score_documents(truth: str | Path, folder: str | Path) -> tuple[dict[str, float], list[dict[str, JSON]]]:
    """Scores of a folder of Markdown files, `<name of the page's image>.md`; and what was compared on each page.

    A page without a file counts as one on which nothing was found.

    Returns:
        {"overall", "text_edit", "formula_edit", "table_teds", "table_teds_structure", "order_edit", "pages",
        "missing_pages"}, those of kinds that the truth has, and with matplotlib {"formula_cdm",
        "formula_cdm_exp_rate", "formula_cdm_truths_not_drawn", "formula_cdm_found_not_drawn"}, see CDMScores. `overall`
        is in [0, 100]: the mean of what text, formulas and tables reach.

    Raises:
        InputError, FormatError: truth or Markdown cannot be read, or no page has a file.
    """
    pages, folder, rows, missing = read_pages(truth), Path(folder), [], 0
    for page in pages:
        path = folder / f"{page.name}.md"
        there = os.path.isfile(path)  # no file either where its name is too long for one
        missing += not there
        rows.append(score_page(page, read_markdown(read_text(path, _LIMIT, "Markdown")) if there else []))
    if missing == len(pages):
        raise InputError(
            "no page of the truth has a file of Markdown",
            where=folder,
            received=", ".join(sorted(path.name for path in folder.glob("*"))[:3]) or "an empty folder",
            allowed=f"{pages[0].name}.md and so on",
        )
    return _means(rows) | {"pages": len(pages), "missing_pages": missing}, [_row(row) for row in rows]


def _means(rows: Sequence[PageScores]) -> dict[str, float]:
    tables = np.array([table for row in rows for table in row.tables]).reshape(-1, 2)
    teds, structure = tables.mean(axis=0).tolist() if len(tables) else (None, None)
    text, formula = _page_mean(row.texts for row in rows), _page_mean(row.formulas for row in rows)
    orders = [row.order for row in rows if row.order is not None]
    reached = [1 - edit for edit in (text, formula) if edit is not None]
    if teds is not None:
        reached.append(teds)
    found = {
        "overall": 100 * float(np.mean(reached)) if reached else None,
        "text_edit": text,
        "formula_edit": formula,
        "table_teds": teds,
        "table_teds_structure": structure,
        "order_edit": float(np.mean(orders)) if orders else None,
    }
    return {name: value for name, value in found.items() if value is not None} | _score_drawn(rows)


def _score_drawn(rows: Iterable[PageScores]) -> dict[str, float]:
    """What formulas reach as they look; empty without matplotlib or without formulas."""
    scores = CDMScores()
    if can_draw():
        for found, wanted in (pair for row in rows for pair in row.drawn):
            scores.add(found, wanted)
    return {f"formula_{name}": value for name, value in scores.result().items()}


def _page_mean(pages: Iterable[Sequence[Match]]) -> float | None:
    shares = [
        sum(match.distance for match in matches) / max(sum(match.longest for match in matches), 1)
        for matches in pages
        if matches
    ]
    return float(np.mean(shares)) if shares else None


def _row(row: PageScores) -> dict[str, JSON]:
    text, formula = _page_mean([row.texts]), _page_mean([row.formulas])
    return {
        "page": row.name,
        "text_edit": text,
        "formula_edit": formula,
        **_score_drawn([row]),
        "tables": [{"teds": teds, "teds_structure": structure} for teds, structure in row.tables],
        "order_edit": row.order,
    }


# -- matching ----------------------------------------------------------------------------------------------------------


def _sides(
    blocks: Iterable[TrueBlock], parts: Iterable[MarkdownPart], kind: Kind, normalize: Callable[[str], str]
) -> tuple[list[str], list[str]]:
    wanted = [normalize(block.text) for block in blocks if block.kind == kind]
    return wanted, [normalize(part.text) for part in parts if part.kind == kind]


def _distances(wanted: Sequence[str], found: Sequence[str]) -> np.ndarray:
    """[len(wanted), len(found)] edit distances over the longer length; 1 where the lengths alone tell them apart."""
    table = np.ones((len(wanted), len(found)))
    for row, one in enumerate(wanted):
        for column, other in enumerate(found):
            shorter, longer = sorted((len(one), len(other)))
            if longer and (longer - shorter) / longer < _FAR:
                table[row, column] = edit_distance(one, other) / longer
    return table


def _match(wanted: Sequence[str], found: Sequence[str]) -> list[Match]:
    """One to one, by the least sum of distances; what is far from all has no partner."""
    table = _distances(wanted, found)
    pairs = [(int(i), int(j)) for i, j in zip(*linear_sum_assignment(table)) if table[i, j] < _FAR]
    matches = [_compare((i,), (j,), wanted, found) for i, j in pairs]
    lost, more = set(range(len(wanted))), set(range(len(found)))
    matches += [_compare((i,), (), wanted, found) for i in sorted(lost - {i for i, _ in pairs})]
    matches += [_compare((), (j,), wanted, found) for j in sorted(more - {j for _, j in pairs})]
    return [match for match in matches if match.longest]


def _compare(
    truth: tuple[int, ...], parts: tuple[int, ...], wanted: Sequence[str], found: Sequence[str]
) -> Match:
    one, other = "".join(wanted[i] for i in truth), "".join(found[j] for j in parts)
    return Match(truth, parts, edit_distance(one, other), max(len(one), len(other)))


def _join_pieces(wanted: Sequence[str], found: Sequence[str]) -> list[Match]:
    """`_match`, and then neighbours without a partner join a match, on either side, as long as that saves edits."""
    matches = _match(wanted, found)
    joined = True
    while joined:
        joined = False
        for alone in [match for match in matches if not (match.truth and match.found)]:
            best: tuple[int, Match, Match] | None = None
            for other in matches:
                union = _neighbours(alone, other)
                if union is None:
                    continue
                both = _compare(*union, wanted, found)
                saved = alone.distance + other.distance - both.distance
                if saved > 0 and both.distance < _FAR * both.longest and (best is None or saved > best[0]):
                    best = saved, other, both
            if best is not None:
                matches = [match for match in matches if match not in (alone, best[1])] + [best[2]]
                joined = True
    return matches


def _neighbours(alone: Match, other: Match) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The numbers of both where they stand beside each other on the side that `alone` has; None where they do not."""
    if alone == other or not (other.truth and other.found):
        return None
    ours, theirs = (alone.truth, other.truth) if alone.truth else (alone.found, other.found)
    if ours[-1] + 1 == theirs[0]:
        union = ours + theirs
    elif theirs[-1] + 1 == ours[0]:
        union = theirs + ours
    else:
        return None
    return (union, other.found) if alone.truth else (other.truth, union)


def _score_tables(blocks: Iterable[TrueBlock], parts: Iterable[MarkdownPart]) -> list[tuple[float, float]]:
    """(TEDS, TEDS-S) of each table of the truth, and 0 of those that are there too often."""
    wanted = [read_table(block.text) for block in blocks if block.kind == "table"]
    found = [read_table(part.text) for part in parts if part.kind == "table"]
    scores = np.zeros((len(wanted), len(found)))
    for row, one in enumerate(wanted):
        for column, other in enumerate(found):
            if one is not None and other is not None:
                scores[row, column] = tree_similarity(other, one)
    pairs = {int(i): int(j) for i, j in zip(*linear_sum_assignment(scores, maximize=True))}
    rows = []
    for number, one in enumerate(wanted):
        other = found[pairs[number]] if number in pairs else None
        if one is None or other is None:
            rows.append((0.0, 0.0))
        else:
            structure = tree_similarity(other, one, structure_only=True)
            rows.append((float(scores[number, pairs[number]]), structure))
    return rows + [(0.0, 0.0)] * (len(found) - len(pairs))
