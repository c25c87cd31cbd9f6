"""Images of tables with their structure and cells, as PubTabNet has them."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import FormatError, InputError
from framework.io.dataset import LazyDataset
from framework.vision.dataset_files import listed_path, read_image
from framework.vision.sample import Sample
from ocr.tables.structure import split_cells, starts_cell, structure_html

_MOST_LINE = 4_000_000  # characters


class TableLabel(NamedTuple):
    """One line of a label file: structure tokens, the tokens and the box of each cell, None where it is empty."""

    image: str
    tokens: list[str]
    contents: list[list[str]]
    boxes: list[list[float] | None]
    place: str


@register("dataset")
@dataclass(frozen=True)
class PubTabNet(LazyDataset):
    """Tables of a JSONL file, a line each: `{"filename", "split", "html": {"structure": {"tokens"}, "cells":
    [{"tokens",
    "bbox"}]}}`. Boxes are those of the text; an empty cell has none. Of points, as PPOCRLabel and TableGeneration write
    them, the box is the one around all of them.

    Samples are those of `SyntheticTables`, with the file's name as `id`.

    Attributes:
        root: The folder of the images; those of a split may lie in `root/<split>`.
        labels: The file, from `root` or absolute.
        split: Lines of this split alone; None: all.
        max_text_length: Tables of more tokens, cells without spans counted as one, are left out; None: none is.

    Raises:
        InputError, FormatError: at the first use, the file cannot be read, or a line is no label.
    """

    root: Path
    labels: Path
    split: str | None = None
    max_text_length: int | None = None

    @property
    def class_names(self) -> tuple[str, ...]:
        """None: structures have no classes."""
        return ()

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, index: int) -> Sample:
        label = self._index[index]
        path = listed_path(self.root, label.image)
        image = read_image(path, path)
        boxes = np.array([box or (0, 0, 1, 1) for box in label.boxes], np.float32).reshape(-1, 4)
        return Sample(
            image,
            boxes=boxes,
            valid=np.array([box is not None for box in label.boxes], bool),
            text=structure_html(label.tokens, [_content(tokens) for tokens in label.contents]),
            source_size=image.shape[:2],
            id=label.image,
        )

    @cached_property
    def _index(self) -> list[TableLabel]:
        path = self.root / self.labels
        found = []
        try:
            with path.open(encoding="utf-8") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        label = read_table_label(line, f"{path}:{number}", self.split, self.root)
                        if label is not None and self._fits(label):
                            found.append(label)
        except (OSError, UnicodeDecodeError) as error:
            raise InputError("the labels cannot be read", where=path, received=error) from None
        if not found:
            raise InputError(
                "there are no tables",
                where=path,
                received=f"no line of split {self.split!r}" if self.split else "an empty file",
                allowed="a line of JSON for each table",
            )
        return found

    def _fits(self, label: TableLabel) -> bool:
        length = len(label.tokens) - sum(starts_cell(token) and token == "<td>" for token in label.tokens)
        return self.max_text_length is None or length <= self.max_text_length


def _content(tokens: list[str]) -> str:
    return "".join(token if len(token) > 1 else html.escape(token, quote=False) for token in tokens)


def read_table_label(line: str, place: str, split: str | None, root: Path) -> TableLabel | None:
    """The label of a line; None where it is of another split.

    Raises:
        FormatError: it is no label of PubTabNet's form.
    """
    try:
        data: Any = json.loads(line) if len(line) <= _MOST_LINE else None
        if split is not None and data.get("split") != split:
            return None
        name, tokens = str(data["filename"]), [str(token) for token in data["html"]["structure"]["tokens"]]
        cells = data["html"]["cells"]
        contents = [[str(token) for token in cell["tokens"]] for cell in cells]
        boxes = [_box(cell) for cell in cells]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise FormatError(
            "this is no label of a table",
            where=place,
            received=f"{type(error).__name__}: {error}"[:200],
            allowed='{"filename", "html": {"structure": {"tokens": […]}, "cells": [{"tokens": […], "bbox": […]}]}}',
        ) from None
    tokens = split_cells(tokens)
    count = sum(starts_cell(token) for token in tokens)
    if count != len(cells):
        raise FormatError(
            "structure and cells differ in number",
            where=place,
            received=f"{count} cells in the structure, {len(cells)} cells",
        )
    folder = str(data.get("split") or "")
    if folder and not (root / name).exists() and (root / folder / name).exists():
        name = f"{folder}/{name}"
    return TableLabel(name, tokens, contents, boxes, place)


def _box(cell: Mapping[str, Any]) -> list[float] | None:
    box = cell.get("bbox")
    if not box or not cell["tokens"]:
        return None
    if not isinstance(box, list):
        raise ValueError(f"bbox {box}")
    values = np.concatenate([np.asarray(quad, np.float64).reshape(-1) for quad in box])
    if len(values) < 4 or len(values) % 2 or len(values) == 6 or not np.isfinite(values).all():
        raise ValueError(f"bbox {box}")
    points = values.reshape(-1, 2)
    return [*points.min(axis=0).tolist(), *points.max(axis=0).tolist()]
