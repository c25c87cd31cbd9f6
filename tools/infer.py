"""Run a model on pictures, PDFs and videos.

python tools/infer.py -c configs/ocr/pp_ocrv6_small.yml --image_file docs/images/receipt.png
python tools/infer.py --model_dir inference_model/pp_ocrv6_small --pdf_file scan.pdf --output_dir output
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.core.errors import OarError
from framework.inference import keep_memory, runner


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Run a model on pictures, PDFs and videos.")
    model = parser.add_mutually_exclusive_group(required=True)
    model.add_argument("-c", "--config", help="a config file, such as configs/ocr/pp_ocrv6_small.yml")
    model.add_argument("--model_dir", help="an artifact folder, written by tools/export_model.py")
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--image_file")
    source.add_argument("--image_dir", help="every picture of the folder")
    source.add_argument("--pdf_file")
    source.add_argument("--video_file")
    parser.add_argument("--output_dir", default="output", help="default: output")
    parser.add_argument("--device", help="cpu, gpu, gpu:1, tpu; default: what jax takes")
    parser.add_argument("--precision", default="auto", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--no_draw", action="store_true", help="write no pictures, only JSON")
    parser.add_argument(
        "-o", "--opt", nargs="+", default=[], metavar="key=value", help="change settings of the model"
    )
    return parser


def main(argv: list[str] | None = None) -> int:
    args = arguments().parse_args(argv)
    keep_memory()
    try:
        runner.check_sources(args.image_file, args.image_dir, args.pdf_file, args.video_file)
        predictor = runner.open_predictor(args.config, args.model_dir, args.device, args.precision, args.opt)
        report = runner.run(
            predictor,
            Path(args.output_dir),
            image_file=args.image_file,
            image_dir=args.image_dir,
            pdf_file=args.pdf_file,
            video_file=args.video_file,
            draw=not args.no_draw,
        )
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(report.summary(), file=sys.stderr if report.failed else sys.stdout)
    return report.exit_code


if __name__ == "__main__":
    sys.exit(main())
