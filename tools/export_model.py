"""Export a config and its weights as an artifact folder that runs without model code.

python tools/export_model.py -c configs/ocr/pp_ocrv6_small.yml --output_dir inference_model
python tools/export_model.py -c <config> -o weights=<file> --input_shape 1 3 1024 512
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.config.arguments import OUTPUT, add_config, add_settings, settings
from framework.core.errors import OarError
from framework.workflow.export import write_artifact


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Export a config and its weights as an artifact folder.")
    add_config(parser)
    parser.add_argument(
        *OUTPUT, default="inference_model", help="the artifact is a folder in it, named as the config"
    )
    parser.add_argument(
        "--input_shape",
        type=int,
        nargs=4,
        metavar=("N", "C", "H", "W"),
        help="of the program's images, -1 where free; images of other sizes are scaled to it and results back",
    )
    add_settings(parser)
    args = parser.parse_args(argv)
    try:
        changes = settings(args.opt, args.model_path)
        folder = write_artifact(args.config, Path(args.output_dir), changes, args.input_shape)
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
