"""Export a config and its weights as an artifact folder that runs without model code.

python tools/export_model.py -c configs/ocr/pp_ocrv6_small.yml --output_dir inference_model
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.core.errors import OarError
from framework.inference import runner


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Export a config and its weights as an artifact folder.")
    parser.add_argument("-c", "--config", required=True)
    parser.add_argument(
        "--output_dir", default="inference_model", help="the artifact is a folder in it, named as the config"
    )
    parser.add_argument(
        "-o", "--opt", nargs="+", default=[], metavar="key=value", help="change settings of the config"
    )
    args = parser.parse_args(argv)
    try:
        folder = runner.export(args.config, Path(args.output_dir), args.opt)
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"wrote {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
