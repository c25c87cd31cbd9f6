"""Write a model as an artifact, a folder that runs without the model's code, with an ONNX file or a .tflite in it if
wanted; as the folder of a page that runs it in a browser; or as Paddle's weights.

oar export -c pp_lcnet_x0_25_clothing --output_dir inference_model
oar export -c pp_lcnet_x0_25_clothing --format onnx
oar export -c pp_lcnet_x0_25_clothing --format tflite --tflite_type int8
oar export --model_dir inference_model/<config> --format web
oar export -c <config> -o weights=<file> --input_shape 1 3 1024 512
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framework.commands.main import run
from framework.config.arguments import (
    BooleanFlag,
    add_config,
    add_ignored,
    add_settings,
    read_overrides,
    settings,
)
from framework.core.errors import ConfigError

if TYPE_CHECKING:  # the help of the command loads no model code
    from framework.workflow.export.onnx import OnnxOptions


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar export`."""
    made = argparse.ArgumentParser(
        prog="oar export", description="Write a model as an artifact, or as Paddle's weights."
    )
    model = made.add_mutually_exclusive_group(required=True)
    add_config(model, required=False)
    model.add_argument(
        "--model_dir",
        metavar="FOLDER",
        help="of --format web: an artifact that was exported with --format onnx",
    )
    folder = made.add_mutually_exclusive_group()
    folder.add_argument(
        "--output_dir", help="the artifact is a folder in it, named as the config; default: inference_model"
    )
    folder.add_argument("--save_dir", help="the artifact's own folder, as in PaddleSeg")
    made.add_argument(
        "--input_shape",
        type=int,
        nargs=4,
        metavar=("N", "C", "H", "W"),
        help="of the program's images, -1 where free; images of other sizes are scaled to it and results back",
    )
    made.add_argument(
        "--format",
        choices=["artifact", "onnx", "ort", "tflite", "web", "pdparams"],
        default="artifact",
        help="onnx: the artifact with the program as model.onnx in it, of each stage of a pipeline; ort: that and "
        "model.ort, as ONNX Runtime's packages for phones read it; tflite: model.tflite, for LiteRT on a phone; web: a "
        "folder with a page that runs it in a browser, offline; pdparams: the weights alone, under the names of "
        "Paddle's network, for paddle.load",
    )
    add_tflite(made)
    made.add_argument(
        "--opset", type=int, default=18, help="of --format onnx: version of the operators, 18 or more"
    )
    made.add_argument(
        "--onnx_layout",
        choices=["NHWC", "NCHW"],
        default="NHWC",
        help="of --format onnx: images as uint8 NHWC, or as float32 NCHW; values are 0 to 255 in both",
    )
    made.add_argument(
        "--onnx_check",
        action=BooleanFlag,
        default=True,
        help="of --format onnx: refuse a file that does not give what the program gives (default); "
        "--no-onnx_check writes it and says how far it differs",
    )
    made.add_argument(
        "--node_modules",
        metavar="FOLDER",
        help="of --format web: where onnxruntime-web is installed; default: its files come from npm's registry, once",
    )
    made.add_argument(
        "--webgpu",
        action=BooleanFlag,
        default=True,
        help="of --format web: the folder has the build for GPUs too, 27 MB more (default)",
    )
    made.add_argument(
        "--names",
        help="of --format pdparams: whose names they get: paddle.vision, paddleclas, paddledet, paddleseg, paddlenlp, "
        "paddleocr (default: that of the domain), or an official .pdparams file with such names",
    )
    add_settings(made)
    add_ignored(
        made,
        "an artifact runs on all of the platforms that it names",
        ("device", "use_gpu", "for_fd", "export_serving_model", "slim_config"),
    )
    return made


def add_tflite(parser: argparse.ArgumentParser) -> None:
    """What `--format tflite` is told."""
    parser.add_argument(
        "--tflite_type",
        choices=["float32", "float16", "int8_weights", "int8"],
        default="float32",
        help="of --format tflite: float16 halves the file; int8_weights quarters it and computes in float32; int8 "
        "also computes in it, with ranges of --data",
    )
    parser.add_argument(
        "--input_size",
        type=int,
        nargs=2,
        metavar=("H", "W"),
        help="of --format tflite, whose sizes are fixed: that of images; default: the config's own, or that of the "
        "first image of its evaluation",
    )
    parser.add_argument(
        "--data",
        help="of --tflite_type int8: images, or a file with a text a line, that give the ranges; default: the training "
        "data of the config",
    )
    parser.add_argument(
        "--examples", type=int, default=64, help="of --tflite_type int8: how many of them; default: 64"
    )
    parser.add_argument(
        "--max_loss",
        type=float,
        default=0.01,
        help="of --tflite_type float16 and int8: of the score on data.eval; default: 0.01",
    )
    parser.add_argument(
        "--tflite_check",
        action=BooleanFlag,
        default=True,
        help="of --format tflite: refuse a file that does not give what the program gives (default)",
    )


def _export(args: argparse.Namespace) -> int:
    from framework.workflow.convert.pdparams import SUITES, export_pdparams
    from framework.workflow.export.export import write_artifact

    if args.model_dir is not None and args.format != "web":
        raise ConfigError(
            "only --format web takes an artifact that was made before",
            where="--model_dir",
            received=f"--format {args.format}",
            fix="-c CONFIG",
        )
    changes = settings(read_overrides(args), args.model_path)
    if args.format == "pdparams":
        names = args.names if args.names is None or args.names in SUITES else Path(args.names)
        print(
            f"wrote {export_pdparams(args.config, args.save_dir or args.output_dir or 'output', changes, names)}"
        )
        return 0
    onnx = None
    if args.format in ("onnx", "ort", "web"):
        from framework.workflow.export.onnx import OnnxOptions

        onnx = OnnxOptions(args.opset, args.onnx_layout, check=args.onnx_check, ort=args.format == "ort")
    if args.format == "web":
        print(f"wrote {_export_web(args, changes, onnx)}")
        return 0
    folder, named = Path(args.save_dir or args.output_dir or "inference_model"), args.save_dir is None
    if args.format == "tflite":
        print(f"wrote {_export_tflite(args, changes, folder, named)}")
        return 0
    folder = write_artifact(
        args.config,
        folder,
        changes,
        args.input_shape,
        named=named,
        onnx=onnx,
    )
    print(f"wrote {folder}")
    return 0


def _export_tflite(args: argparse.Namespace, changes: Sequence[str], folder: Path, named: bool) -> Path:
    from framework.workflow.export.mobile import write_tflite_artifact
    from framework.workflow.export.tflite import TfliteOptions

    options = TfliteOptions(
        args.tflite_type,
        None if args.input_size is None else tuple(args.input_size),
        None if args.data is None else Path(args.data),
        args.examples,
        args.max_loss,
        args.tflite_check,
    )
    return write_tflite_artifact(args.config, folder, options, changes, args.input_shape, named=named)


def _export_web(args: argparse.Namespace, changes: Sequence[str], onnx: OnnxOptions | None) -> Path:
    from framework.workflow.export.web.folder import PageOptions
    from framework.workflow.export.web.pages import write_web

    packages = None if args.node_modules is None else Path(args.node_modules)
    return write_web(
        args.config or args.model_dir,
        Path(args.save_dir or args.output_dir or "inference_model"),
        changes,
        args.input_shape,
        named=args.save_dir is None,
        onnx=onnx,
        page=PageOptions(packages, args.webgpu),
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar export`; returns the exit status."""
    return run(parser(), _export, argv)
