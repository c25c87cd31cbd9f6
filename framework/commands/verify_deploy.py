"""Run a model on every runtime that is installed, on the same images, and print whether results are equal.

oar verify-deploy pp_lcnet_x0_25_clothing --images photos
oar verify-deploy inference_model/picodet_s_320_bccd --images photos --runtimes xla,onnxruntime,litert --json table.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from framework.commands.main import run
from framework.config.arguments import add_settings, read_overrides, settings


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar verify-deploy`."""
    arguments = argparse.ArgumentParser(
        prog="oar verify-deploy",
        description="Run a model on every runtime and print whether results are equal to those of XLA, times and "
        "sizes. The exit status is 1 where a runtime that ran gives something else.",
    )
    arguments.add_argument(
        "model",
        metavar="ARTIFACT_OR_NAME",
        help="an artifact's folder, or the name of a config, which is exported to every format first",
    )
    arguments.add_argument(
        "--images", required=True, metavar="FOLDER", help="images, with those of subfolders"
    )
    arguments.add_argument(
        "--runtimes",
        metavar="A,B",
        help="of xla, onnxruntime, openvino, litert, wasm, ort and server; default: all; a line says of "
        "those that cannot run what they lack",
    )
    arguments.add_argument("--most_images", type=int, metavar="N", help="of the folder, spread over it")
    arguments.add_argument(
        "--tflite_type",
        choices=["float32", "float16", "int8_weights", "int8"],
        default="float32",
        help="of the .tflite of a config's name",
    )
    arguments.add_argument(
        "--data",
        metavar="FOLDER",
        help="images that give the ranges of int8; default: those of --images",
    )
    arguments.add_argument(
        "--examples",
        type=int,
        default=64,
        metavar="N",
        help="of these images for the ranges of int8, which take the most time; default: 64",
    )
    arguments.add_argument(
        "--input_size",
        type=int,
        nargs=2,
        metavar=("H", "W"),
        help="of images in the .tflite of a config's name",
    )
    arguments.add_argument("--json", metavar="FILE", help="write the table as JSON, too")
    add_settings(arguments)
    arguments.add_argument(
        "--trust", action="store_true", help="run code that an artifact's config names (imports)"
    )
    return arguments


def _verify(args: argparse.Namespace) -> int:
    from framework.workflow.export.tflite import TfliteOptions
    from framework.workflow.verify.runtimes import RUNTIMES
    from framework.workflow.verify.verify import verify_deploy

    names = RUNTIMES if args.runtimes is None else tuple(filter(None, args.runtimes.split(",")))
    size = None if args.input_size is None else tuple(args.input_size)
    report = verify_deploy(
        args.model,
        Path(args.images),
        names,
        TfliteOptions(args.tflite_type, size, Path(args.data or args.images), args.examples),
        args.most_images,
        settings=settings(read_overrides(args), args.model_path),
        trust=args.trust,
    )
    print(report.describe())
    if args.json is not None:
        text = json.dumps(report.to_dict(), indent=2, ensure_ascii=False)
        Path(args.json).write_text(text + "\n", encoding="utf-8")
    return 0 if report.is_equal else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar verify-deploy`; returns the exit status."""
    return run(parser(), _verify, argv)
