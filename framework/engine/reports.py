"""Files that show a run: the curves of its numbers, and what its best evaluation tells of each class."""

from __future__ import annotations

import csv
import json
import logging
import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framework.core.errors import OarError
from framework.engine.callbacks import Callback, Row
from framework.vision import charts, image

if TYPE_CHECKING:
    from framework.engine.trainer import Trainer

log = logging.getLogger("oar")
_SECONDS = 30.0  # between two drawings
_NO_CURVES = ("kind", "step", "epoch", "best", "seconds", "samples_per_second", "wait_share")
_MOST_CURVES = 8  # in one panel: as many as there are colours


class RunReport(Callback):
    """`curves.png` and `curves.csv` of the run's metrics.jsonl, and `evaluation/` with the classes of the best
    evaluation: see Details. What cannot be written is said in the log, and training goes on."""

    every_process = False

    def __init__(self, folder: Path) -> None:
        self.folder, self._drawn = folder, time.monotonic()

    def on_eval(self, trainer: Trainer, row: Row) -> None:
        if row["best"] and trainer.evaluator and (details := trainer.evaluator.details()):
            self._attempt(lambda: details.write(self.folder / "evaluation"))
        if time.monotonic() - self._drawn > _SECONDS:
            self._draw()

    def on_end(self, trainer: Trainer) -> None:
        self._draw()

    def _draw(self) -> None:
        self._attempt(lambda: write_curves(self.folder / "metrics.jsonl", self.folder))
        self._drawn = time.monotonic()

    def _attempt(self, write: Callable[[], object]) -> None:
        try:
            write()
        except (OSError, OarError) as error:
            log.warning(f"the report of the run cannot be written to {self.folder}: {error}")


def write_curves(metrics: Path, folder: Path) -> None:
    """`curves.png` and `curves.csv` from a metrics.jsonl; nothing where it has no rows."""
    rows = []
    for line in metrics.read_text(encoding="utf-8").splitlines() if metrics.is_file() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:  # a line that is being written
            continue
    if not rows:
        return
    write_table(folder / "curves.csv", rows)
    image.write(folder / "curves.png", charts.draw_panels(_panels(rows)))


def write_table(path: Path, rows: Sequence[Row]) -> None:
    """Rows as CSV; the columns are all keys in the order in which they come, and what a row lacks is empty."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _panels(rows: Sequence[Row]) -> list[charts.Panel]:
    """The loss, the learning rate, the parts of the loss, and scores: shares in a panel of their own."""
    train = _curves([row for row in rows if row.get("kind") == "train"])
    scores = _curves([row for row in rows if row.get("kind") == "eval"])
    shares = {name for name, (_, values) in scores.items() if all(0 <= v <= 1 for v in values)}
    losses = [name for name in train if name not in ("loss", "lr", "grad_norm")]
    groups = (
        ("training", train, ["loss"]),
        ("training", train, ["lr"]),
        ("training", train, losses),
        ("evaluation", scores, [name for name in scores if name in shares]),
        ("evaluation, other scores", scores, [name for name in scores if name not in shares]),
        ("training", train, ["grad_norm"]),
    )
    panels = []
    for title, source, names in groups:
        curves = {name: source[name] for name in names[:_MOST_CURVES] if name in source}
        if curves:
            name = "" if len(curves) > 1 else f": {next(iter(curves))}"  # several have a legend
            panels.append(charts.Panel(f"{title}{name}", curves))
    return panels


def _curves(rows: Sequence[Row]) -> dict[str, tuple[list[float], list[float]]]:
    """(steps, values) by name; scores of single classes ("iou/car") are left out."""
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for row in rows:
        for name, value in row.items():
            number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
            if number and name not in _NO_CURVES and "/" not in name:
                steps, values = curves.setdefault(name, ([], []))
                steps.append(row["step"])
                values.append(value)
    return curves
