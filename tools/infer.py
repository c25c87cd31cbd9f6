"""Run a model on images, PDFs, videos and texts.

python tools/infer.py -c configs/ocr/pp_ocrv6_small.yml --image_file docs/images/receipt.png
python tools/infer.py --model_dir inference_model/pp_ocrv6_small --pdf_file scan.pdf --output_dir output
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.config.arguments import OUTPUT, add_config, add_settings, settings
from framework.core.errors import OarError
from framework.inference import Runtime, keep_memory
from framework.workflow import open_predictor
from framework.workflow.domain import all_domains
from framework.workflow.options import add_option_flags
from framework.workflow.predict_files import SOURCES, check_sources, predict_files


def arguments() -> tuple[argparse.ArgumentParser, tuple[str, ...]]:
    """The parser, and the names of the domains' options in it."""
    parser = argparse.ArgumentParser(description="Run a model on images, PDFs, videos and texts.")
    model = parser.add_mutually_exclusive_group(required=True)
    add_config(model, required=False)
    model.add_argument("--model_dir", help="an artifact's folder, or transformers' or PaddleNLP's of a model")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--image_file")
    source.add_argument("--image_dir", help="every image of the folder")
    source.add_argument("--image_path", help="an image or a folder of them")
    source.add_argument("--pdf_file")
    source.add_argument("--video_file")
    source.add_argument("--camera_id", type=int, help="a camera, usually 0, until Ctrl+C")
    source.add_argument("--text")
    source.add_argument("--text_file", help="a text a line, UTF-8; of pairs two, a tab between them")
    parser.add_argument("--pair", help="the second text of a pair, with --text")
    parser.add_argument(*OUTPUT, default="output", help="default: output")
    parser.add_argument("--device", help="cpu, gpu, gpu:1, tpu; default: what jax takes")
    parser.add_argument("--precision", default="auto", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--no_draw", action="store_true", help="write no images, only JSON")
    parser.add_argument("--save_results", action="store_true", help="also one file: bbox.json, MOT's .txt")
    add_settings(parser)
    return parser, add_option_flags(parser, (domain.options for domain in all_domains()))


def main(argv: list[str] | None = None) -> int:
    parser, names = arguments()
    args = vars(parser.parse_args(argv))
    if (path := args.pop("image_path")) is not None:
        args["image_dir" if Path(path).is_dir() else "image_file"] = path
    sources = {name: args[name] for name in SOURCES}
    keep_memory()
    try:
        check_sources(**sources)
        predictor = open_predictor(
            args["model_dir"] if args["model_dir"] is not None else args["config"],
            runtime=Runtime(args["device"], args["precision"]),
            overrides=settings(args["opt"], args["model_path"]),
            options={name: args[name] for name in names},
        )
        draw, save = not args["no_draw"], args["save_results"]
        report = predict_files(predictor, Path(args["output_dir"]), **sources, draw=draw, save=save)
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
