"""What stands in a synthetic table: rows and columns, spans, and texts as of scientific tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ocr.tables.structure import GridCell


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_SYLLABLES = _split(
    "an ti gen mo de ra te re sult in ter val cell tis sue pro tein bac te ri a hor mone con trol treat "
    "ment group base line mean stan dard ra tio risk fac tor sam ple va ri a ble ex po sure sur vi val "
    "dis ease pa tient age sex mor tal i ty in dex score di et plas ma se rum blood pres sure lip id cho "
    "les ter ol phos phate ki nase re cep tor "
)
_WORDS = _split(
    "Age Gender Male Female Total Yes No Mean SD Median Range Control Group Dose Variable "
    "Characteristics N n P Patients Cases Study Year Country Reference Model Method Accuracy Score Low "
    "High Other Overall Baseline Parameter Unit Value Change Test Sample Species Gene Type Site Outcome "
    "OR HR CI of and the with in for to by years weeks days "
)
_HEADS = _split(
    "N n Mean SD OR HR P Total Yes No Age BMI RMSE AUC F1 Min Max Median IQR Low High CI Unit Year Type "
    "Group Range Ref "
)
_UNITS = ("(%)", "(n)", "(mg/dl)", "(years)", "(95% CI)", "(kg)", "(n = 36)", "(SD)", "(mm)", "(µM)", "±")


@dataclass
class DrawnCell:
    """A cell of the plan: where it stands and what it says, its lines once they are broken."""

    place: GridCell
    text: str = ""
    bold: bool = False
    italic: bool = False
    lines: tuple[str, ...] = ()


@dataclass
class Plan:
    """A table before it is laid out: `head` rows, then the body; how many columns count as text."""

    cells: list[DrawnCell]
    rows: int
    columns: int
    head: int
    text_columns: int
    sections: set[int]  # rows that begin a part of the table


def draw_word(rng: np.random.Generator) -> str:
    """A word, known or made of syllables, maybe with a capital."""
    if rng.random() < 0.5:
        return _pick(_WORDS, rng)
    word = "".join(_pick(_SYLLABLES, rng) for _ in range(int(rng.integers(1, 5))))
    kind = rng.random()
    return word.upper()[:6] if kind < 0.08 else word.capitalize() if kind < 0.4 else word


def draw_words(rng: np.random.Generator, most: int) -> str:
    """Some words, with a unit or a number behind them at times."""
    count = 1 + int(most * rng.random() ** 2)
    text = " ".join(draw_word(rng) for _ in range(count))
    text = text[:1].upper() + text[1:] if rng.random() < 0.8 else text
    if rng.random() < 0.15:
        text += " " + _pick(_UNITS, rng)
    if rng.random() < 0.06:
        text += _pick(("*", "a", "†", ":", "-2", " 1"), rng)
    return text


def make_number_style(rng: np.random.Generator) -> tuple[int, int, float]:
    """Kind of the numbers of a column, their decimals and their size."""
    return (
        int(rng.choice(8, p=(0.3, 0.22, 0.12, 0.08, 0.1, 0.06, 0.06, 0.06))),
        int(rng.integers(0, 4)),
        float(rng.uniform(0.2, 7.5)),
    )


def draw_number(rng: np.random.Generator, style: tuple[int, int, float]) -> str:
    """A number of a column's style: plain, with its deviation, a range, a share, an interval."""
    kind, decimals, size = style
    value = float(np.exp(rng.uniform(-1, 1) * 1.2 + size) / 8)
    plain = f"{value:.{decimals}f}"
    if kind == 1 or (kind == 0 and decimals == 0):
        return f"{value:.0f}" if kind == 0 else plain
    if kind == 2:
        return f"{plain} ± {value * rng.random() / 2:.{decimals}f}"
    if kind == 3:
        return f"{value:.0f} ({rng.uniform(0, 100):.1f})"
    if kind == 4:
        return f"{plain} ({value * 0.6:.{decimals}f}–{value * 1.7:.{decimals}f})"
    if kind == 5:
        return f"{value:.0f}–{value * 2:.0f}"
    if kind == 6:
        return f"{rng.uniform(0, 100):.1f}%"
    if kind == 7:
        return _pick(("<0.001", "0.05", "NS", "–", "+", "Yes", "No", "0.002", "×", "*"), rng)
    return f"−{plain}" if rng.random() < 0.1 else plain


def plan_table(rng: np.random.Generator, most_rows: int, most_columns: int) -> Plan:
    """Draws rows, columns, head, spans and texts."""
    columns = int(np.clip(round(rng.gamma(4.2, 1.15)), 2, most_columns))
    body = int(np.clip(round(np.exp(rng.normal(2.05, 0.65))), 1, most_rows))
    head = int(rng.choice(4, p=(0.02, 0.58, 0.33, 0.07)))
    text_columns = min(int(rng.choice(3, p=(0.06, 0.72, 0.22))) + (rng.random() < 0.1), columns - 1)
    if rng.random() < 0.08:
        text_columns = columns  # a table of texts
    cells = _plan_head(rng, head, columns)
    sections = _plan_body(rng, cells, head, body, columns, text_columns)
    return Plan(cells, head + body, columns, head, text_columns, sections)


def _plan_head(rng: np.random.Generator, head: int, columns: int) -> list[DrawnCell]:
    bold = bool(rng.random() < 0.6)
    cells: list[DrawnCell] = []
    parts = [(0, columns)]
    stub_span, corner_empty = rng.random() < 0.5, rng.random() < 0.35
    spans = rng.random() < 0.85
    for row in range(head):
        last = row == head - 1
        below: list[tuple[int, int]] = []
        for start, end in parts:
            place = start
            while place < end:
                if (row == 0 and place == 0 and head > 1) or last or not spans:
                    width = 1
                else:
                    width = min(
                        int(rng.choice((1, 2, 3, 4, 5, 6), p=(0.25, 0.35, 0.2, 0.12, 0.05, 0.03))),
                        end - place,
                    )
                single = width == 1 and not last
                down = head - row if single and (stub_span if place == 0 else rng.random() < 0.35) else 1
                text = _head_text(rng, width)
                if (place == 0 and row == 0 and corner_empty) or (
                    single and down == 1 and rng.random() < 0.4
                ):
                    text = ""
                cells.append(DrawnCell(GridCell(row, place, down, width, True), text, bold))
                if down == 1 and not last:
                    below.append((place, place + width))
                place += width
        parts = below
    return cells


def _head_text(rng: np.random.Generator, width: int) -> str:
    if width > 1:
        return draw_words(rng, 4)
    kind = rng.random()
    text = _pick(_HEADS, rng) if kind < 0.35 else draw_words(rng, 3)
    return f"{text} {_pick(_UNITS, rng)}" if rng.random() < 0.2 else text


def _plan_body(
    rng: np.random.Generator, cells: list[DrawnCell], head: int, body: int, columns: int, text_columns: int
) -> set[int]:
    styles = [make_number_style(rng) for _ in range(columns)]
    if rng.random() < 0.5:
        styles = [styles[-1]] * columns
    empty = 0.0 if rng.random() < 0.6 else rng.uniform(0, 0.35)
    lengths = [
        int(rng.integers(1, 4)) if rng.random() < 0.6 else int(rng.integers(3, 14)) for _ in range(columns)
    ]
    grouped = rng.random() < 0.16 and text_columns > 1
    sectioned = rng.random() < 0.22 and body > 3
    spanning, bold_section = rng.random() < 0.45, rng.random() < 0.5
    bold_stub, italic_stub = rng.random() < 0.1, rng.random() < 0.08
    sections: set[int] = set()
    group_end, group_spans = 0, rng.random() < 0.4
    for row in range(body):
        y = head + row
        if sectioned and (row == 0 or rng.random() < 0.2):
            sections.add(y)
            text = draw_words(rng, 6)
            width = columns if spanning else 1
            cells.append(DrawnCell(GridCell(y, 0, 1, width), text, bool(bold_section)))
            cells += [DrawnCell(GridCell(y, x)) for x in range(width, columns)]
            continue
        for x in range(columns):
            if grouped and x == 0:
                if row >= group_end:
                    count = min(int(rng.integers(1, 6)), body - row)
                    if sectioned:
                        count = 1
                    group_end = row + count
                    sections.add(y)
                    span = count if group_spans else 1
                    cells.append(DrawnCell(GridCell(y, 0, span), draw_words(rng, lengths[0])))
                elif not group_spans:
                    cells.append(DrawnCell(GridCell(y, 0)))
                continue
            if x < text_columns:
                text = draw_words(rng, lengths[x])
            else:
                text = "" if rng.random() < empty else draw_number(rng, styles[x])
            bold, italic = (bool(bold_stub), bool(italic_stub)) if x == 0 else (False, False)
            cells.append(DrawnCell(GridCell(y, x), text, bold, italic))
    return sections


def _pick(values: tuple[str, ...] | list[str], rng: np.random.Generator) -> str:
    return values[int(rng.integers(len(values)))]
