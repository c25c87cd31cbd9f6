"""Run a model on images, PDFs, videos and texts.

oar infer -c pp_lcnet_x0_25_clothing shirt.jpg
oar infer --model_dir inference_model/pp_lcnet_x0_25_clothing photos --output_dir output
oar infer --ray -c pp_lcnet_x0_25_clothing photos paths.txt table.parquet --output_dir rows --workers 8
"""

from __future__ import annotations

import argparse
import glob
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from framework.commands import ray_infer
from framework.commands.main import run
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
from framework.config.command_line import find_flags
from framework.core.errors import InputError
from framework.core.process_state import state
from framework.export.artifact import CONFIG
from framework.inference import Runtime, keep_memory
from framework.inference.runtime import ENGINES
from framework.vision.image_formats import SUFFIXES as IMAGE_SUFFIXES
from framework.workflow import open_predictor
from framework.workflow.domain.capabilities import OptionModel
from framework.workflow.domain.domain import all_domains, find_capabilities
from framework.workflow.domain.options import add_option_flags
from framework.workflow.domain.predictor import Predictor
from framework.workflow.files.predict_files import SOURCES, check_sources, predict_files, predict_sources
from framework.workflow.files.sources import open_sources

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


class OneSource(argparse.Action):
    """A flag that names what is read, once: of two the first would be left out in silence."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest)
        if before not in (None, values):
            texts = self.dest.startswith("text")
            several = "--text_file with a text a line" if texts else "FILE …, which takes several"
            parser.error(f"{option_string} is given twice, {before!r} and {values!r}: use {several}")
        setattr(namespace, self.dest, values)


def parser(
    model: str | None = None, prog: str = "oar infer"
) -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The arguments, and the names of the domains' options among them.

    Args:
        model: The model where none is named; without it one must be.
    """
    made = argparse.ArgumentParser(
        prog=prog,
        usage=f"{prog} {'' if model else _usage_of_models()}(FILE … | --text TEXT) [options]",
        description="Run a model on images, PDFs, videos and texts.",
    )
    group = made.add_mutually_exclusive_group()
    add_config(group, required=False)
    group.add_argument(
        *("--model_dir", "--keypoint_model_dir"),
        dest="model_dir",
        help="an artifact's folder, or transformers' or PaddleNLP's of a model",
    )
    made.set_defaults(default_model=model, prog=prog)
    made.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help='images, PDFs, videos, folders with their subfolders, patterns such as "*.png", - for standard input',
    )
    made.add_argument(
        "--allow_url", action=BooleanFlag, default=False, help="fetch files whose address is named"
    )
    source = made.add_mutually_exclusive_group()
    source.add_argument("--image_file", "--infer_img", dest="image_file", action=OneSource)
    source.add_argument(
        *("--image_dir", "--infer_dir"),
        dest="image_dir",
        action=OneSource,
        help="every image of the folder",
    )
    source.add_argument(
        *("-i", "--input", "--image_path", "--source"),
        dest="image_path",
        nargs="+",
        metavar="FILE",
        help="the same as FILE",
    )
    source.add_argument("--pdf_file", action=OneSource)
    source.add_argument(
        "--video_file",
        action=OneSource,
        help="a file, or the address of a stream: rtsp://camera/stream",
    )
    source.add_argument("--camera_id", type=_camera, help="a camera, usually 0, until Ctrl+C; -1 is none")
    source.add_argument("--text", action=OneSource)
    source.add_argument(
        "--text_file",
        action=OneSource,
        help="a text a line, UTF-8; of pairs two, a tab between them",
    )
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
    made.add_argument(
        *("--frame_step", "--vid_stride"),
        dest="frame_step",
        type=int,
        default=1,
        help="read one of so many frames of a video (default: all)",
    )
    ray_infer.add_flags(made)
    for flags in find_flags("infer"):
        flags.add(made, group)
    add_settings(made)
    add_ignored(made, "XLA compiles the program for the device", IGNORED)
    return made, add_option_flags(made, (domain.options for domain in all_domains()))


def _usage_of_models() -> str:
    others = (f"--{one.option} {one.metavar}" for one in find_capabilities(OptionModel))
    return f"({' | '.join(('-c MODEL', '--model_dir FOLDER', *others))}) "


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
        "--trust",
        action="store_true",
        help="run code that an artifact's config names (imports); without it such an artifact is refused",
    )
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
        args.trust,
    )


def _camera(text: str) -> int | None:
    return None if text == "-1" else int(text)


def named_files(args: argparse.Namespace) -> list[str]:
    """The files and folders that the arguments name, in whichever way.

    Raises: InputError, where another source is named beside them, or none at all.
    """
    if (
        args.image_dir is not None
        and not glob.has_magic(args.image_dir)
        and not Path(args.image_dir).is_file()
    ):
        check_sources(None, args.image_dir, None, None)
    inputs = args.image_path or []  # a text where it came from -o
    named = [*args.files, *([inputs] if isinstance(inputs, str) else inputs)]
    named += [args.image_dir] if args.image_dir is not None else []  # PaddleOCR's takes files too
    others = [
        name for name in SOURCES if name not in ("image_dir", "pair") and getattr(args, name) is not None
    ]
    if len(others) + bool(named) != 1:
        raise InputError(
            "there is nothing to read" if not (named or others) else "there are sources of several kinds",
            where=args.prog,
            received=", ".join([*named, *(f"--{name}" for name in others)]) or "no file",
            allowed="files and folders, or one of " + ", ".join(f"--{name}" for name in SOURCES[:-1]),
            fix=f"{args.prog} FILE" if not (named or others) else "leave all but one out",
        )
    return named


def open_model(args: argparse.Namespace, names: Sequence[str]) -> Predictor:
    """The predictor that the arguments ask for; `names` are those of the domains' options."""
    options = {name: getattr(args, name) for name in names}
    keep_memory()
    return open_predictor(
        _model(args, options), runtime=choose_runtime(args), overrides=_overrides(args), options=options
    )


def _overrides(args: argparse.Namespace) -> tuple[str, ...]:
    return (
        *settings(read_overrides(args), args.model_path),
        *(text for flags in find_flags("infer") for text in flags.changes(args)),
    )


def _infer_on_ray(args: argparse.Namespace, names: Sequence[str]) -> int:
    options = {name: getattr(args, name) for name in names}
    files = named_files(args)
    if not files:
        raise InputError(
            "a batch on Ray is about files",
            where=args.prog,
            received="another source",
            allowed="FILE …: files, folders, patterns, lists of paths (.txt), tables (.parquet)",
        )
    return ray_infer.run_batch(
        args, files, _model(args, options), choose_runtime(args), _overrides(args), options
    )


def infer(args: argparse.Namespace, names: Sequence[str], suffixes: Sequence[str] = IMAGE_SUFFIXES) -> int:
    """What `oar infer` does; `suffixes` are those of the files that are read of a folder."""
    read_overrides(args)  # which may name the source
    ray_infer.check_flags(args)
    if args.ray:
        return _infer_on_ray(args, names)
    named = named_files(args)
    if args.frame_step < 1:
        raise InputError("--frame_step is out of range", received=args.frame_step, allowed="1 or more")
    output_dir, draw, save = Path(args.output_dir), args.draw, args.save_results
    state.engines.clear()  # those of an earlier command of this process
    if named:
        with open_sources(
            named, suffixes, output_dir=output_dir, allow_url=args.allow_url, with_streams=True
        ) as sources:
            report = predict_sources(
                open_model(args, names), output_dir, sources, draw=draw, save=save, stride=args.frame_step
            )
    else:
        sources = {name: getattr(args, name) for name in SOURCES}
        check_sources(**sources)
        report = predict_files(
            open_model(args, names), output_dir, **sources, draw=draw, save=save, stride=args.frame_step
        )
    report.notes += state.engines
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


def _model(args: argparse.Namespace, options: Mapping[str, object]) -> str:
    """The model's name, file or folder; the deploy.yaml and infer_cfg.yml of an artifact stand for its folder.

    Raises: InputError, where none is named and no option stands for one.
    """
    if args.model_dir is not None:
        return args.model_dir
    if args.config is None:
        known = list(find_capabilities(OptionModel))
        chosen = (one.model for one in known if options.get(one.option))
        model = args.default_model or next(chosen, None)
        if model is None:
            others = (f"--{one.option} {one.metavar} {one.purpose}" for one in known)
            raise InputError(
                "no model is named",
                where="oar infer",
                allowed=", or ".join(("-c MODEL, --model_dir FOLDER", *others)),
                fix="run `oar models names` for the models that -c takes",
            )
        return model
    path = Path(args.config)
    return str(path.parent) if path.name in (CONFIG, "deploy.yaml") else args.config


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar infer`; returns the exit status."""
    made, names = parser()
    return run(made, lambda args: infer(args, names), argv, "stopped; what is written stays")
