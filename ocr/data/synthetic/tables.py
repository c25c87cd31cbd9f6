"""Images of single tables with their structure, drawn while they are read."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np

from framework.config.registry import register
from framework.core.types import JSON
from framework.io.dataset import LazyDataset
from framework.vision import degrade
from framework.vision.image import resize
from framework.vision.sample import Sample
from framework.vision.sample_transforms.checks import check_number
from ocr.data.synthetic.fonts import list_fonts
from ocr.data.synthetic.table_content import plan_table
from ocr.data.synthetic.table_drawing import DrawnTable, Face, draw_look, draw_table
from ocr.tables.html import read_contents, read_structure
from ocr.tables.structure import structure_html, structure_tokens

_TRIES = 20


@register("dataset")
@dataclass(frozen=True)
class SyntheticTables(LazyDataset):
    """Tables as `PubTabNet` gives them: `text`, HTML of the table with what its cells say; `boxes` [K, 4] of the ink
    of each cell in the order of its HTML; `valid` [K], False for empty cells, whose box is the first pixel; the index
    as `id`.

    Most look as the tables of scientific articles do: small type, a head of one to three rows with groups of columns,
    few rules. Others are ruled, striped, shaded or have no rules. Each depends on the settings, the fonts, `seed` and
    its index alone.

    Attributes:
        count: Number of samples.
        fonts: Font files, and folders that are searched with what is below them; none: those that
            `framework.vision.fonts` finds, which differ from machine to machine. Of a file "Name-Regular" those called
            "Name-Bold" and "Name-Italic" are its bold and italic faces.
        rows, columns: The most of a table's body.
        longest: The longest side of an image, in pixels.
        scan: Share of images that are blurred, noisy, compressed or scaled.

    Raises:
        ConfigError: a number is out of range.
        InputError: at the first use, a font is not there.
    """

    label_file: ClassVar[str] = "labels.jsonl"

    count: int = 10_000
    seed: int = 0
    fonts: tuple[Path, ...] = ()
    rows: int = 32
    columns: int = 12
    longest: int = 720
    scan: float = 0.5

    def __post_init__(self) -> None:
        for name, least in (("count", 1), ("seed", 0), ("rows", 1), ("longest", 64)):
            check_number(self, name, least)
        check_number(self, "columns", 2)
        check_number(self, "scan", 0, 1)

    @property
    def class_names(self) -> tuple[str, ...]:
        """None: structures have no classes."""
        return ()

    def __len__(self) -> int:
        self._faces  # noqa: B018  what cannot be read is said before training starts
        return self.count

    def __getitem__(self, index: int) -> Sample:
        if not -self.count <= index < self.count:
            raise IndexError(f"index {index} of SyntheticTables with {self.count} samples")
        index = int(index) % self.count
        rng = np.random.default_rng((self.seed, index))
        drawn, rows = self._draw(rng)
        cells = sorted(
            zip(drawn.cells, drawn.boxes), key=lambda pair: (pair[0].place.row, pair[0].place.column)
        )
        tokens = structure_tokens([cell.place for cell, _ in cells], rows)
        texts = [html.escape(cell.text, quote=False) for cell, _ in cells]
        boxes = np.array([box or (0, 0, 1, 1) for _, box in cells], np.float32).reshape(-1, 4)
        image, scale = _scan(drawn.image, rng) if rng.random() < self.scan else (drawn.image, 1.0)
        return Sample(
            image,
            boxes=boxes * np.float32(scale),
            valid=np.array([box is not None for _, box in cells], bool),
            text=structure_html(
                tokens,
                [f"<b>{text}</b>" if cell.bold and text else text for (cell, _), text in zip(cells, texts)],
            ),
            source_size=image.shape[:2],
            id=index,
        )

    def label_line(self, sample: Sample, name: str) -> str:
        """JSON as a line of PubTabNet's file, which `PubTabNet` reads."""
        text = str(sample.text)
        assert sample.boxes is not None and sample.valid is not None
        cells: list[dict[str, JSON]] = [{"tokens": tokens} for tokens in read_contents(text)]
        for cell, box, filled in zip(cells, sample.boxes.tolist(), sample.valid.tolist(), strict=True):
            if filled:
                cell["bbox"] = [round(value, 1) for value in box]
        html = {"structure": {"tokens": read_structure(text)}, "cells": cells}
        label = {"filename": name, "split": "train", "imgid": sample.id, "html": html}
        return json.dumps(label, ensure_ascii=False)

    def _draw(self, rng: np.random.Generator) -> tuple[DrawnTable, int]:
        """A table that fits into `longest`, and its rows: after too large ones smaller ones are drawn."""
        rows, columns = self.rows, self.columns
        for _ in range(_TRIES):
            plan = plan_table(rng, rows, columns)
            face = self._faces[int(rng.integers(len(self._faces)))]
            drawn = draw_table(plan, draw_look(rng), face, rng)
            if max(drawn.image.shape) <= self.longest:
                return drawn, plan.rows
            rows, columns = max(rows * 3 // 4, 1), max(columns - 1, 2)
        return _shrink(drawn, self.longest), plan.rows  # pyright: ignore[reportPossiblyUnboundVariable]

    @cached_property
    def _faces(self) -> list[Face]:
        return _group_faces(list_fonts(self.fonts))


def _shrink(drawn: DrawnTable, longest: int) -> DrawnTable:
    """The table with `longest` as its longest side."""
    height, width = drawn.image.shape[:2]
    scale = longest / max(height, width)
    image = resize(drawn.image, (max(1, int(height * scale)), max(1, int(width * scale))), "area")
    boxes = [
        None
        if box is None
        else (int(box[0] * scale), int(box[1] * scale), int(box[2] * scale), int(box[3] * scale))
        for box in drawn.boxes
    ]
    return DrawnTable(image, boxes, drawn.cells)


def _group_faces(sources: Sequence[str]) -> list[Face]:
    """Regular fonts with their bold and italic relatives, by the names of their files."""
    stems = {Path(source).stem: source for source in sources}
    faces = []
    for stem, source in stems.items():
        name = stem.removesuffix("-Regular")
        if any(
            name.endswith(end) for end in ("Bold", "Italic", "Oblique", "BoldItalic", "BoldOblique", "Light")
        ):
            continue
        bold = stems.get(f"{name}-Bold", source)
        italic = stems.get(f"{name}-Italic", stems.get(f"{name}-Oblique", source))
        faces.append(Face(source, bold, italic))
    return faces or [Face(source, source, source) for source in sources]


def _scan(image: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A little worse, and by which factor it was scaled."""
    scale = 1.0
    if rng.random() < 0.4:
        scale = rng.uniform(0.8, 1.3)
        height, width = (max(8, round(side * scale)) for side in image.shape[:2])
        image, scale = (
            resize(image, (height, width), "area" if scale < 1 else "cubic"),
            height / image.shape[0],
        )
    if rng.random() < 0.4:
        image = degrade.blur(image, rng.uniform(0.3, 0.7))
    if rng.random() < 0.25:
        image = degrade.add_noise(image, rng.uniform(1, 8), rng)
    if rng.random() < 0.3:
        image = degrade.jpeg(image, int(rng.integers(50, 95)))
    return image, scale
