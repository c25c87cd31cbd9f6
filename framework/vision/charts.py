"""Charts as images: curves over steps, and a matrix of counts; for reports, where no plotting library is needed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from framework.core.errors import ShapeError
from framework.vision.fonts import text_alpha

Points = tuple[Sequence[float] | np.ndarray, Sequence[float] | np.ndarray]

_PANEL_HW = (380, 640)
_MARGINS = (34, 20, 34, 76)  # pixels above, right, below, left of the axes
_FONT = 13  # pixels
_INK, _GRID, _PAPER = (60, 60, 60), (225, 225, 225), (255, 255, 255)
# Okabe and Ito's colours, which people with any colour vision tell apart; jfly.uni-koeln.de/color, 2008.
_COLORS = (
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (230, 159, 0),
    (86, 180, 233),
    (148, 115, 0),
    (60, 60, 60),
)
_SUBPIXEL_BITS = 4


@dataclass(frozen=True)
class Panel:
    """Axes with curves.

    Attributes:
        title: Stands above.
        curves: (x, y) by name; values that are not finite are left out, and so is what is below 0 on a log axis.
        log_x: The x axis is logarithmic.
        mark: An x that gets a vertical line.
    """

    title: str
    curves: Mapping[str, Points]
    log_x: bool = False
    mark: float | None = None


def draw_panels(panels: Sequence[Panel], columns: int = 2) -> np.ndarray:
    """Panels in rows, [H, W, 3] uint8 RGB.

    Raises:
        ShapeError: there is no panel, or the x and y of a curve are not as many.
    """
    if not panels:
        raise ShapeError("there is no panel to draw", where="charts.draw_panels")
    drawn = [_draw_panel(panel) for panel in panels]
    columns = min(columns, len(drawn))
    drawn += [np.full_like(drawn[0], 255)] * (-len(drawn) % columns)
    rows = [np.concatenate(drawn[start : start + columns], 1) for start in range(0, len(drawn), columns)]
    return np.concatenate(rows)


def draw_matrix(
    counts: np.ndarray, names: Sequence[str], title: str = "", axes: tuple[str, str] = ("", "")
) -> np.ndarray:
    """Counts [N, N] as a table of shades, [H, W, 3] uint8 RGB; a shade is the share of the row.

    Up to 30 classes have their numbers in the fields; with more than 60 names are left out. `axes` name rows and
    columns.

    Raises:
        ShapeError: the counts are not square, empty, or there is not one name for each row.
    """
    size = len(counts)
    if counts.shape != (size, size) or not size or len(names) != size:
        raise ShapeError(
            "counts of classes have the wrong shape",
            where="charts.draw_matrix",
            received=f"counts {list(counts.shape)}, {len(names)} names",
            allowed="[N, N] and N names, N from 1",
        )
    cell = max(2, min(56, 1080 // size))
    shown = list(names) if cell >= _FONT + 4 else [""] * size
    labels = [text_alpha(name, _FONT, 170) for name in shown]
    room = max(label.shape[1] for label in labels) + 34
    top, left, side = room + 30, room, cell * size
    canvas = np.full((top + side + 12, max(left + side + 12, 360), 3), 255, np.uint8)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    shades = np.rint(255 - shares[..., None] * (255 - np.array(_COLORS[0]))).astype(np.uint8)
    canvas[top : top + side, left : left + side] = shades.repeat(cell, 0).repeat(cell, 1)
    for place in range(size + 1 if cell >= 8 else 0):
        at = place * cell
        cv2.line(canvas, (left, top + at), (left + side, top + at), _GRID)
        cv2.line(canvas, (left + at, top), (left + at, top + side), _GRID)
    for place, label in enumerate(labels):
        centre = place * cell + cell // 2
        _blend(canvas, label, (left - 6 - label.shape[1], top + centre - label.shape[0] // 2), _INK)
        upright = np.rot90(label)
        _blend(canvas, upright, (left + centre - upright.shape[1] // 2, top - 6 - upright.shape[0]), _INK)
    if size <= 30:
        for row, column in np.argwhere(counts > 0).tolist():
            number = text_alpha(_shorten(int(counts[row, column])), min(_FONT, cell // 3 + 2), cell)
            y, x = (
                top + row * cell + (cell - number.shape[0]) // 2,
                left + column * cell + (cell - number.shape[1]) // 2,
            )
            _blend(canvas, number, (x, y), _PAPER if shares[row, column] > 0.5 else _INK)
    _blend(canvas, text_alpha(title, _FONT + 2, canvas.shape[1] - 16), (8, 6), _INK)
    rows, across = text_alpha(axes[0], _FONT, side), text_alpha(axes[1], _FONT, side)
    _blend(canvas, np.rot90(rows), (6, top + (side - rows.shape[1]) // 2), _INK)
    _blend(canvas, across, (left + (side - across.shape[1]) // 2, 28), _INK)
    return canvas


def _draw_panel(panel: Panel) -> np.ndarray:
    height, width = _PANEL_HW
    above, right, below, left = _MARGINS
    canvas = np.full((height, width, 3), 255, np.uint8)
    _blend(canvas, text_alpha(panel.title, _FONT + 2, width - left), (left, 8), _INK)
    curves = {name: _finite(name, points, panel.log_x) for name, points in panel.curves.items()}
    curves = {name: points for name, points in curves.items() if len(points)}
    box = (left, above, width - right, height - below)  # xyxy
    if curves:
        points = np.concatenate(list(curves.values()))
        low, high = points.min(0), points.max(0)
        low[1], high[1] = low[1] - 0.04 * (high[1] - low[1]), high[1] + 0.04 * (high[1] - low[1])
        flat = high <= low
        reach = np.maximum(np.abs(low) * 0.05, 1e-12)
        low, high = np.where(flat, low - reach, low), np.where(flat, high + reach, high)
        _draw_axes(canvas, box, low, high, panel.log_x)
        scale = np.array([box[2] - box[0], box[1] - box[3]]) / (high - low)
        for (_, line), color in zip(curves.items(), _COLORS * len(curves)):
            pixels = (np.array([box[0], box[3]]) + (_thin(line) - low) * scale) * 2**_SUBPIXEL_BITS
            cv2.polylines(
                canvas, [np.rint(pixels).astype(np.int32)], False, color, 2, cv2.LINE_AA, _SUBPIXEL_BITS
            )
            if len(line) == 1:
                cv2.circle(
                    canvas, (round(pixels[0, 0] / 16), round(pixels[0, 1] / 16)), 3, color, -1, cv2.LINE_AA
                )
        if panel.mark is not None:
            at = math.log10(panel.mark) if panel.log_x else panel.mark
            x = round(box[0] + (at - low[0]) * scale[0])
            cv2.line(canvas, (x, box[1]), (x, box[3]), _COLORS[1], 1)
    cv2.rectangle(canvas, box[:2], box[2:], _INK, 1)
    if len(curves) > 1:
        _draw_legend(canvas, list(curves), box)
    return canvas


def _finite(name: str, points: Points, log_x: bool) -> np.ndarray:
    """[N, 2], x as it is drawn."""
    if len(points[0]) != len(points[1]):
        raise ShapeError(
            "x and y are not as many",
            where=f"charts.Panel.curves[{name!r}]",
            received=f"{len(points[0])} and {len(points[1])}",
            allowed="one y for each x",
        )
    values = np.array([points[0], points[1]], np.float64).T.reshape(-1, 2)
    if log_x:
        values = values[values[:, 0] > 0]
        values[:, 0] = np.log10(values[:, 0])
    return values[np.isfinite(values).all(1)]


def _thin(line: np.ndarray) -> np.ndarray:
    """At most some points a pixel: the least and the greatest of each run, so that no peak is lost."""
    runs = _PANEL_HW[1]
    if len(line) <= 4 * runs:
        return line
    parts = np.array_split(np.arange(len(line)), runs)
    keep = [part[[line[part, 1].argmin(), line[part, 1].argmax()]] for part in parts]
    return line[np.unique(np.concatenate(keep))]


def _draw_axes(
    canvas: np.ndarray, box: tuple[int, ...], low: np.ndarray, high: np.ndarray, log_x: bool
) -> None:
    x0, y0, x1, y1 = box
    for value in _ticks(low[0], high[0], log_x):
        x = round(x0 + (value - low[0]) / (high[0] - low[0]) * (x1 - x0))
        cv2.line(canvas, (x, y0), (x, y1), _GRID)
        label = text_alpha(_format(10**value if log_x else value), _FONT, 90)
        _blend(canvas, label, (x - label.shape[1] // 2, y1 + 6), _INK)
    for value in _ticks(low[1], high[1], False):
        y = round(y1 - (value - low[1]) / (high[1] - low[1]) * (y1 - y0))
        cv2.line(canvas, (x0, y), (x1, y), _GRID)
        label = text_alpha(_format(value), _FONT, _MARGINS[3] - 10)
        _blend(canvas, label, (x0 - 6 - label.shape[1], y - label.shape[0] // 2), _INK)


def _ticks(low: float, high: float, whole: bool) -> list[float]:
    """Four to eight round numbers from low to high; whole ones on a log axis that is long enough."""
    step = 10 ** math.floor(math.log10((high - low) / 4))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= 8)
    if whole and high - low >= 2:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    return [number * step for number in range(first, math.floor(high / step + 1e-9) + 1)]


def _shorten(count: int) -> str:
    """123,456 as 123k: what a field has room for."""
    for power, unit in ((9, "G"), (6, "M"), (3, "k")):
        if count >= 10 ** (power + 2):
            return f"{count // 10**power}{unit}"
    return f"{count:,}"


def _format(value: float) -> str:
    return f"{0.0 if abs(value) < 1e-15 else value:.4g}"


def _draw_legend(canvas: np.ndarray, names: list[str], box: tuple[int, ...]) -> None:
    labels = [text_alpha(name, _FONT, 200) for name in names]
    width, height = max(label.shape[1] for label in labels) + 32, len(labels) * (_FONT + 6) + 6
    x, y = box[2] - width - 8, box[1] + 8
    patch = canvas[y : y + height, x : x + width]
    patch[...] = cv2.addWeighted(patch, 0.2, np.full_like(patch, 255), 0.8, 0)
    for place, (label, color) in enumerate(zip(labels, _COLORS * len(labels))):
        top = y + 4 + place * (_FONT + 6)
        cv2.line(canvas, (x + 4, top + _FONT // 2 + 2), (x + 20, top + _FONT // 2 + 2), color, 2, cv2.LINE_AA)
        _blend(canvas, label, (x + 26, top), _INK)


def _blend(canvas: np.ndarray, alpha: np.ndarray, xy: tuple[int, int], ink: tuple[int, int, int]) -> None:
    """Write `alpha` [h, w] uint8 at its top-left corner `xy`; what is outside of the canvas is cut off."""
    x, y = max(0, xy[0]), max(0, xy[1])
    region = canvas[y : y + alpha.shape[0], x : x + alpha.shape[1]]
    share = alpha[: region.shape[0], : region.shape[1], None] / 255
    region[...] = np.rint(region * (1 - share) + np.array(ink) * share).astype(np.uint8)
