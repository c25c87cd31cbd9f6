"""Formats for phones: size, time and difference of the same model in each, on this machine's CPU."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from framework.workflow.export.tflite import DTYPES, TfliteOptions
from framework.workflow.verify.verify import RuntimeRow, verify_deploy

_FORMATS = {"xla": "jax.export", "onnxruntime": "onnx", "ort": "ort"}


def mobile(argv: Sequence[str]) -> int:
    """Rows of docs/mobile.md: format, model, MB, milliseconds of the program, what is equal, largest difference."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench mobile", description=__doc__)
    parser.add_argument("models", nargs="*", default=["pp_lcnet_x0_25_clothing", "picodet_s_320_bccd"])
    parser.add_argument("--images", required=True, nargs="+", help="a folder for each model")
    parser.add_argument("--most_images", type=int, default=20)
    parser.add_argument("-o", dest="opt", nargs="*", default=[], help="overrides of every model's config")
    args = parser.parse_args(argv)
    print("| model | format | MB | ms | equal | largest difference |\n|---|---|---|---|---|---|")
    for model, folder in zip(args.models, args.images, strict=True):
        for dtype in DTYPES:
            names = ("onnxruntime", "ort", "litert") if dtype == "float32" else ("litert",)
            report = verify_deploy(
                model, Path(folder), names, TfliteOptions(dtype), args.most_images, settings=args.opt
            )
            for row in report.rows if dtype == "float32" else report.rows[1:]:
                label = _FORMATS.get(row.runtime, f"tflite {dtype}")
                print(f"| {model} | {label} | {_cells(row)} |", flush=True)
    return 0


def _cells(row: RuntimeRow) -> str:
    if row.comparison is None:
        return f"- | - | - | {row.note}"
    worst = ", ".join(f"{value:.2g} {name}" for name, value in row.comparison.differences.items())
    equal = f"{row.comparison.equal} / {row.comparison.total}"
    return f"{row.size / 1e6:.2f} | {row.engine_milliseconds:.1f} | {equal} | {worst}"
