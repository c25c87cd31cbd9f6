"""Segmentations as JSON that has all of them: what `to_dict` says, the class of every pixel, names and colours."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np

from framework.core.types import JSON
from framework.workflow.domain.capabilities import ResultFormat, ResultFormats, ResultReader
from framework.workflow.domain.result import Result, read_result
from segmentation.results import Segmentation

LABELS = "labels"


def to_full_dict(result: Segmentation) -> dict[str, JSON]:
    """`to_dict`, and in "label_map" the class of every pixel row by row, as [class, pixels, class, pixels, …] of runs,
    with "names", "palette" (RGB) and "left_out" as the result has them. Its image is not in it."""
    flat = result.labels.ravel()
    starts = np.flatnonzero(np.concatenate(([True], flat[1:] != flat[:-1])))
    lengths = np.diff(np.append(starts, flat.size))
    runs = np.stack((flat[starts].astype(np.int64), lengths), axis=1).ravel().tolist()
    names = [*result.names]
    label_map = {
        "runs": runs,
        "names": names,
        "palette": result.palette.tolist(),
        "left_out": result.left_out,
    }
    return {**result.to_dict(), "label_map": cast(JSON, label_map)}


def from_full_dict(data: Mapping[str, JSON]) -> Segmentation:
    """The result that `to_full_dict` wrote, without its image. Raises: FormatError."""
    return read_result(data, _read, "a segmentation: source, width, height, label_map")


def _read(data: Mapping[str, JSON]) -> Segmentation:
    facts = cast("Mapping[str, JSON]", data["label_map"])
    width, height = cast(int, data["width"]), cast(int, data["height"])
    runs = np.array(facts["runs"], np.int64).reshape(-1, 2)
    names, left_out = (
        tuple(map(str, cast("list[JSON]", facts["names"]))),
        cast("int | None", facts["left_out"]),
    )
    classes, lengths = runs[:, 0], runs[:, 1]
    if (
        (lengths < 1).any()
        or lengths.sum() != width * height
        or not 0 <= classes.min() <= classes.max() < 1 << 16
    ):
        raise ValueError(f"runs of {lengths.sum()} pixels for {width}x{height}")
    dtype = np.uint8 if classes.max() < 256 else np.uint16
    return Segmentation(
        source=str(data["source"]),
        width=width,
        height=height,
        labels=np.repeat(classes.astype(dtype), lengths).reshape(height, width),
        names=names,
        palette=np.array(facts["palette"], np.uint8).reshape(-1, 3),
        left_out=left_out,
    )


def _write(results: Sequence[Result], source: str, path: Path) -> None:
    (result,) = cast("Sequence[Segmentation]", results)
    path.write_text(
        json.dumps(to_full_dict(result), ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
    )


READER = ResultReader(from_full_dict, LABELS)
FORMATS = ResultFormats({LABELS: ResultFormat("application/vnd.oar.labels+json", ".labels.json", _write)})
