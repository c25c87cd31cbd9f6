"""Lays a synthetic table out and draws it: column widths, row heights, lines of text, rules and shades."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from framework.vision.degrade import blend
from ocr.data.synthetic.glyphs import draw_run, measure_line
from ocr.data.synthetic.table_content import DrawnCell, Plan


@dataclass
class Face:
    """Font files of one look: regular, bold and italic ones, which may be one file."""

    regular: str
    bold: str
    italic: str

    def of(self, cell: DrawnCell) -> str:
        """The file that a cell is drawn with."""
        return self.bold if cell.bold else self.italic if cell.italic else self.regular


@dataclass
class Look:
    """How a table is drawn, in pixels: drawn at random by `draw_look`."""

    size: int
    line: float  # from baseline to baseline
    gap: float  # between columns
    pad: float  # above and below the lines of a row
    wrap: float  # most width of a text column
    head_wrap: float
    margin: int
    rules: str  # "booktabs", "rows", "grid", "columns", "none"
    thickness: int
    ink: tuple[int, int, int]
    rule_ink: tuple[int, int, int]
    paper: tuple[int, int, int]
    head_paper: tuple[int, int, int] | None
    head_ink: tuple[int, int, int]
    stripe: tuple[int, int, int] | None
    align: str  # of number columns
    head_align: str
    group_align: str
    vertical: str  # of cells lower than their row
    head_vertical: str
    indent: float  # of rows below a section
    spread: float  # extra width, a share of the table's
    group_rules: bool
    section_rules: bool


def draw_look(rng: np.random.Generator) -> Look:
    """A look, most of them as of scientific journals: few rules, black on white, small type."""
    size = int(rng.choice((6, 7, 8, 9, 10, 11, 12), p=(0.05, 0.22, 0.27, 0.2, 0.12, 0.08, 0.06)))
    rules = str(rng.choice(("booktabs", "rows", "grid", "columns", "none"), p=(0.6, 0.16, 0.12, 0.02, 0.1)))
    ink = _grey(rng, 0, 90)
    shade = None
    if rng.random() < 0.14:
        shade = _tint(rng, 190, 245) if rng.random() < 0.7 else _tint(rng, 30, 150)
    dark = shade is not None and sum(shade) < 3 * 160
    return Look(
        size=size,
        line=size * rng.uniform(1.0, 1.35),
        gap=size * (rng.uniform(0.5, 1.2) if rng.random() < 0.3 else rng.uniform(0.9, 3.5)),
        pad=size * (rng.uniform(0.02, 0.2) if rng.random() < 0.45 else rng.uniform(0.1, 0.7)),
        wrap=size * rng.uniform(7, 26),
        head_wrap=size * rng.uniform(3.5, 12),
        margin=int(rng.integers(0, 5)),
        rules=rules,
        thickness=1 if rng.random() < 0.8 else 2,
        ink=ink,
        rule_ink=ink if rng.random() < 0.5 else _tint(rng, 0, 200),
        paper=(255, 255, 255) if rng.random() < 0.93 else _tint(rng, 225, 255),
        head_paper=shade,
        head_ink=(255, 255, 255) if dark else ink,
        stripe=_tint(rng, 215, 248) if rng.random() < 0.08 else None,
        align=str(rng.choice(("centre", "left", "right", "point"), p=(0.42, 0.33, 0.17, 0.08))),
        head_align=str(rng.choice(("same", "centre", "left"), p=(0.55, 0.35, 0.1))),
        group_align="centre" if rng.random() < 0.7 else "left",
        vertical="top" if rng.random() < 0.7 else "middle",
        head_vertical=str(rng.choice(("top", "middle", "bottom"), p=(0.45, 0.25, 0.3))),
        indent=size * rng.uniform(0.5, 1.5) if rng.random() < 0.5 else 0.0,
        spread=rng.uniform(0, 0.8) if rng.random() < 0.4 else 0.0,
        group_rules=rng.random() < 0.65,
        section_rules=rng.random() < 0.15,
    )


@dataclass
class DrawnTable:
    """`image` [H, W, 3] uint8 and `boxes`, the ink of each cell of the plan (left, top, right, bottom) or None."""

    image: np.ndarray
    boxes: list[tuple[int, int, int, int] | None]
    cells: list[DrawnCell] = field(default_factory=list)


def draw_table(plan: Plan, look: Look, face: Face, rng: np.random.Generator) -> DrawnTable:
    """The table on its own: nothing stands around it but the margin."""
    for cell in plan.cells:
        cell.lines = _break_lines(cell, plan, look, face)
    widths = _column_widths(plan, look, face, rng)
    heights = _row_heights(plan, look)
    lefts = look.margin + np.concatenate([[0.0], np.cumsum(widths)])
    tops = look.margin + np.concatenate([[0.0], np.cumsum(heights)])
    size = round(tops[-1]) + look.margin + 1, round(lefts[-1]) + look.margin + 1
    canvas = np.empty((*size, 3), np.uint8)
    canvas[...] = look.paper
    _draw_shades(canvas, plan, look, lefts, tops)
    _draw_rules(canvas, plan, look, lefts, tops, rng)
    boxes = [_draw_cell(canvas, cell, plan, look, face, lefts, tops) for cell in plan.cells]
    return DrawnTable(canvas, boxes, plan.cells)


def _break_lines(cell: DrawnCell, plan: Plan, look: Look, face: Face) -> tuple[str, ...]:
    if not cell.text:
        return ()
    place, font = cell.place, face.of(cell)
    if place.colspan > 1:
        return (cell.text,)
    most = look.head_wrap if place.header and place.column else look.wrap
    lines, line = [], ""
    for word in cell.text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and measure_line(font, longer) * look.size > most:
            lines.append(line)
            line = word
        else:
            line = longer
    return (*lines, line)


def _width(cell: DrawnCell, look: Look, face: Face) -> float:
    return max((measure_line(face.of(cell), line) for line in cell.lines), default=0.0) * look.size


def _column_widths(plan: Plan, look: Look, face: Face, rng: np.random.Generator) -> np.ndarray:
    widths = np.full(plan.columns, 0.8 * look.size)
    wide = []
    for cell in plan.cells:
        own = _width(cell, look, face) + (look.indent if cell.place.column == 0 else 0.0)
        if cell.place.colspan == 1:
            widths[cell.place.column] = max(widths[cell.place.column], own)
        else:
            wide.append((cell.place, own))
    if rng.random() < 0.25:  # columns of numbers of one width
        numbers = slice(max(plan.text_columns, 1), None)
        widths[numbers] = widths[numbers].max(initial=0.0)
    widths += look.gap
    widths *= 1 + look.spread
    for place, own in wide:
        part = slice(place.column, place.column + place.colspan)
        missing = own + look.gap * 0.7 - widths[part].sum()
        if missing > 0:
            widths[part] += missing / place.colspan
    return widths


def _row_heights(plan: Plan, look: Look) -> np.ndarray:
    heights = np.full(plan.rows, look.line)
    for cell in plan.cells:
        if cell.place.rowspan == 1:
            row = cell.place.row
            heights[row] = max(heights[row], len(cell.lines) * look.line)
    heights += 2 * look.pad
    heights[: plan.head] += look.pad
    for cell in plan.cells:
        if cell.place.rowspan > 1:
            part = slice(cell.place.row, cell.place.row + cell.place.rowspan)
            missing = len(cell.lines) * look.line + 2 * look.pad - heights[part].sum()
            if missing > 0:
                heights[part] += missing / cell.place.rowspan
    return heights


def _draw_cell(
    canvas: np.ndarray,
    cell: DrawnCell,
    plan: Plan,
    look: Look,
    face: Face,
    lefts: np.ndarray,
    tops: np.ndarray,
) -> tuple[int, int, int, int] | None:
    if not cell.lines:
        return None
    place, font = cell.place, face.of(cell)
    left, right = lefts[place.column] + look.gap / 2, lefts[place.column + place.colspan] - look.gap / 2
    top, bottom = tops[place.row] + look.pad, tops[place.row + place.rowspan] - look.pad
    height = len(cell.lines) * look.line
    vertical = look.head_vertical if place.header else look.vertical
    y = top if vertical == "top" else bottom - height if vertical == "bottom" else (top + bottom - height) / 2
    align = "left" if place.column < plan.text_columns else look.align
    if place.header and place.column and look.head_align != "same":
        align = look.head_align
    if place.colspan > 1:
        align = look.group_align if place.header else "left"
    if (
        place.column == 0
        and place.colspan == 1
        and not place.header
        and place.row not in plan.sections
        and plan.sections
    ):
        left += look.indent
    ink = look.head_ink if place.header else look.ink
    box: list[int] = []
    for line in cell.lines:
        coverage, dx, dy = draw_run(font, line, look.size)
        if align == "left":
            x = left
        elif align == "centre":
            x = (left + right - coverage.shape[1]) / 2
        elif align == "point":
            whole = measure_line(font, line.partition(".")[0]) * look.size
            x = min(max((left + right) / 2 - whole, left), right - coverage.shape[1])
        else:
            x = right - coverage.shape[1]
        x0, y0 = round(x) + dx, round(y + look.line / 2 + look.size * 0.35) + dy
        y += look.line
        x0, y0 = max(x0, 0), max(y0, 0)
        part = canvas[y0 : y0 + coverage.shape[0], x0 : x0 + coverage.shape[1]]
        if not part.size:
            continue
        coverage = coverage[: part.shape[0], : part.shape[1]]
        part[...] = blend(part, coverage, np.array(ink))
        corners = (x0, y0, x0 + part.shape[1], y0 + part.shape[0])
        box = [*np.minimum(box[:2], corners[:2]), *np.maximum(box[2:], corners[2:])] if box else [*corners]
    return (int(box[0]), int(box[1]), int(box[2]), int(box[3])) if box else None


def _draw_shades(canvas: np.ndarray, plan: Plan, look: Look, lefts: np.ndarray, tops: np.ndarray) -> None:
    left, right = round(lefts[0]), round(lefts[-1])
    if look.stripe is not None:
        for row in range(plan.head, plan.rows, 2):
            canvas[round(tops[row]) : round(tops[row + 1]), left:right] = look.stripe
    if look.head_paper is not None and plan.head:
        canvas[round(tops[0]) : round(tops[plan.head]), left:right] = look.head_paper


def _draw_rules(
    canvas: np.ndarray, plan: Plan, look: Look, lefts: np.ndarray, tops: np.ndarray, rng: np.random.Generator
) -> None:
    """Rules stand between rows and columns, never through a cell that spans them."""
    owner = np.full((plan.rows + 1, plan.columns + 1), -1)
    for number, cell in enumerate(plan.cells):
        p = cell.place
        owner[p.row : p.row + p.rowspan, p.column : p.column + p.colspan] = number
    across: set[int] = set()
    if look.rules in ("booktabs", "rows", "grid"):
        across = {0, plan.head, plan.rows}
    if look.rules in ("rows", "grid"):
        across |= set(range(plan.head, plan.rows + 1))
    if look.section_rules:
        across |= plan.sections
    thick = look.thickness
    for row in across:
        heavy = (
            thick if row not in (0, plan.rows) else thick + (look.rules == "booktabs" and rng.random() < 0.3)
        )
        for column in range(plan.columns):
            if 0 < row < plan.rows and owner[row - 1, column] == owner[row, column]:
                continue
            y = round(tops[row])
            canvas[y : y + heavy, round(lefts[column]) : round(lefts[column + 1])] = look.rule_ink
    if look.rules == "grid" or (look.rules in ("booktabs", "rows") and look.group_rules):
        for cell in plan.cells:  # below the groups of the head
            p = cell.place
            bottom = p.row + p.rowspan
            if p.header and bottom < plan.head and (p.colspan > 1 or look.rules == "grid") and cell.lines:
                inset = 0 if look.rules == "grid" else look.gap / 4
                y = round(tops[bottom])
                left, right = round(lefts[p.column] + inset), round(lefts[p.column + p.colspan] - inset)
                canvas[y : y + 1, left:right] = look.rule_ink
    if look.rules in ("grid", "columns"):
        for column in range(plan.columns + 1):
            if look.rules == "columns" and column in (0, plan.columns):
                continue
            for row in range(plan.rows):
                if 0 < column < plan.columns and owner[row, column - 1] == owner[row, column]:
                    continue
                x = round(lefts[column])
                canvas[round(tops[row]) : round(tops[row + 1]) + 1, x : x + thick] = look.rule_ink


def _grey(rng: np.random.Generator, low: int, high: int) -> tuple[int, int, int]:
    value = int(rng.integers(low, high + 1))
    return value, value, value


def _tint(rng: np.random.Generator, low: int, high: int) -> tuple[int, int, int]:
    base = rng.integers(low, high + 1) + rng.integers(-25, 26, 3)
    red, green, blue = (int(value) for value in np.clip(base, 0, 255))
    return red, green, blue
