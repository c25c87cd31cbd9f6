"""Run a model on images, PDFs, videos and texts.

oar infer -c pp_ocrv6_small --image_file docs/images/receipt.png
oar infer --model_dir inference_model/pp_ocrv6_small --pdf_file scan.pdf --output_dir output
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from framework.commands.main import run
from framework.commands.segmentation_flags import add_augmentation, augmentation_overrides
from framework.config.arguments import (
    BooleanFlag,
    add_config,
    add_device,
    add_ignored,
    add_settings,
    choose_device,
    read_overrides,
    settings,
)
from framework.core.errors import InputError
from framework.export.artifact import CONFIG
from framework.inference import Runtime, keep_memory
from framework.inference.runtime import ENGINES
from framework.vision.video import SUFFIXES as VIDEO_SUFFIXES
from framework.workflow import open_predictor
from framework.workflow.domain.domain import all_domains
from framework.workflow.domain.options import add_option_flags
from framework.workflow.files.predict_files import SOURCES, check_sources, predict_files

OUTPUT = ("--output_dir", "--save_dir", "--save_path", "--draw_img_save_dir")
# What the engines of Paddle Inference are told; XLA is told nothing.
IGNORED = """
enable_mkldnn enable_mkldnn_bfloat16 mkldnn_cache_capacity use_trt use_tensorrt trt_min_shape
trt_max_shape trt_opt_shape trt_calib_mode collect_trt_shape_info tuned_trt_shape_file enable_auto_tune
auto_tuned_shape_file min_subgraph_size gpu_mem gpu_id ir_optim use_xpu use_npu use_mlu enable_hpi slim_config
print_detail run_benchmark benchmark warmup use_onnx use_mp total_process_num task_type det_algorithm rec_algorithm
""".split()  # noqa: SIM905
# Precisions by the names of Paddle's tools. float16 is bfloat16 here: the artifact has programs of these two.
_PRECISIONS = {
    "auto": "auto",
    "float32": "float32",
    "bfloat16": "bfloat16",
    "fp32": "float32",
    "fp16": "bfloat16",
    "bf16": "bfloat16",
}
_RUN_MODES = {"paddle": "float32", "fluid": "float32", "trt_fp32": "float32", "trt_fp16": "bfloat16"}


def parser(
    model: str | None = None, prog: str = "oar infer"
) -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The arguments, and the names of the domains' options among them.

    Args:
        model: The model where none is named; without it one must be.
    """
    made = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} {'' if model else '(-c MODEL | --model_dir FOLDER | --lang LANGUAGE) '}"
        "(-i FILE | --text TEXT) [options]",
        description="Run a model on images, PDFs, videos and texts.",
    )
    group = made.add_mutually_exclusive_group()
    add_config(group, required=False)
    group.add_argument(
        *("--model_dir", "--keypoint_model_dir"),
        dest="model_dir",
        help="an artifact's folder, or transformers' or PaddleNLP's of a model",
    )
    made.set_defaults(default_model=model)
    source = made.add_mutually_exclusive_group(required=True)
    source.add_argument("--image_file", "--infer_img", dest="image_file")
    source.add_argument("--image_dir", "--infer_dir", dest="image_dir", help="every image of the folder")
    source.add_argument(
        *("-i", "--input", "--image_path"),
        dest="image_path",
        help="an image, a PDF, a video or a folder of images",
    )
    source.add_argument("--pdf_file")
    source.add_argument("--video_file")
    source.add_argument("--camera_id", type=_camera, help="a camera, usually 0, until Ctrl+C; -1 is none")
    source.add_argument("--text")
    source.add_argument("--text_file", help="a text a line, UTF-8; of pairs two, a tab between them")
    made.add_argument("--pair", help="the second text of a pair, with --text")
    made.add_argument(*OUTPUT, dest="output_dir", default="output", help="default: output")
    add_runtime(made)
    made.add_argument(
        *("--draw", "--visualize", "--save_images"),
        action=BooleanFlag,
        default=True,
        help="write images of what was found (default) beside the JSON",
    )
    made.add_argument("--no_draw", dest="draw", action="store_false", help="write no images, only JSON")
    made.add_argument(
        "--save_results", action=BooleanFlag, default=False, help="also one file: bbox.json, MOT's .txt"
    )
    add_augmentation(made, "--aug_pred")
    add_settings(made)
    add_ignored(made, "XLA compiles the program for the device", IGNORED)
    return made, add_option_flags(made, (domain.options for domain in all_domains()))


def add_runtime(parser: argparse.ArgumentParser) -> None:
    """Device, precision, engine and threads: what `choose_runtime` reads."""
    parser.add_argument("--precision", default="auto", choices=list(_PRECISIONS), help="fp16 is bfloat16")
    parser.add_argument(
        "--engine",
        default="auto",
        choices=ENGINES,
        help="what runs the program; auto is the fastest known here",
    )
    parser.add_argument("--cpu_threads", type=int, help="CPUs for one call; XLA uses all")
    parser.add_argument(
        "--run_mode", choices=list(_RUN_MODES), help="PaddleDetection's name of the precision"
    )
    add_device(parser)


def choose_runtime(args: argparse.Namespace) -> Runtime:
    """Where and how the arguments ask programs to run."""
    return Runtime(
        choose_device(args.device, args.use_gpu),
        _RUN_MODES.get(args.run_mode, _PRECISIONS[args.precision]),
        args.engine,
        args.cpu_threads,
    )


def _camera(text: str) -> int | None:
    return None if text == "-1" else int(text)


def _infer(args: argparse.Namespace, names: Sequence[str]) -> int:
    given = read_overrides(args)
    values = vars(args)
    for name in ("image_path", "image_dir"):  # PaddleOCR's --image_dir takes files too
        if (path := values[name]) is not None and (name == "image_path" or Path(path).is_file()):
            values[name], values[_source_of(Path(path))] = None, path
    sources = {name: values[name] for name in SOURCES}
    keep_memory()
    check_sources(**sources)
    options = {name: values[name] for name in names}
    predictor = open_predictor(
        _model(args, options),
        runtime=choose_runtime(args),
        overrides=(
            *settings(given, args.model_path),
            *augmentation_overrides(args, args.aug_pred),
        ),
        options=options,
    )
    report = predict_files(
        predictor, Path(args.output_dir), **sources, draw=args.draw, save=args.save_results
    )
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


def _model(args: argparse.Namespace, options: Mapping[str, Any]) -> str:
    """The model's name, file or folder; the deploy.yaml and infer_cfg.yml of an artifact stand for its folder.

    Raises: InputError, where none is named and no option stands for one.
    """
    if args.model_dir is not None:
        return args.model_dir
    if args.config is None:
        chosen = (domain.default_model(options) for domain in all_domains())
        model = args.default_model or next(filter(None, chosen), None)
        if model is None:
            raise InputError(
                "no model is named",
                where="oar infer",
                allowed="-c MODEL, --model_dir FOLDER, or --lang LANGUAGE to recognise text",
                fix="run `oar models names` for the models that -c takes",
            )
        return model
    path = Path(args.config)
    return str(path.parent) if path.name in (CONFIG, "deploy.yaml") else args.config


def _source_of(path: Path) -> str:
    """The argument that takes a file of this kind."""
    if path.is_dir():
        return "image_dir"
    if path.suffix.lower() == ".pdf":
        return "pdf_file"
    return "video_file" if path.suffix.lower() in VIDEO_SUFFIXES else "image_file"


def run_infer(argv: Sequence[str] | None, model: str | None, prog: str) -> int:
    """Runs `oar infer`, with `model` where the arguments name none; returns the exit status."""
    made, names = parser(model, prog)
    return run(made, lambda args: _infer(args, names), argv, "stopped; what is written stays")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar infer`; returns the exit status."""
    return run_infer(argv, None, "oar infer")
