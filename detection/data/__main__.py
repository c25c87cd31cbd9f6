"""python -m detection.data check <folder or file> [--split train] [--images val2017]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from detection.data.check import open_dataset, validate
from framework.core.errors import OarError


def main(arguments: Sequence[str] | None = None) -> int:
    """0: nothing to complain of; 1: there is; 2: the data set cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m detection.data", description=__doc__)
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="count the classes and find what is broken")
    check.add_argument("path", type=Path, help="a COCO annotation file, or a folder with VOC annotations")
    check.add_argument("--split", default="", help="the part of a folder: train, val")
    check.add_argument(
        "--images", default="", help="where the images of a COCO file are, seen from its folder"
    )
    chosen = parser.parse_args(arguments)
    try:
        report = validate(open_dataset(chosen.path, chosen.split, chosen.images))
    except OarError as error:
        print(error, file=sys.stderr)
        return 2
    print(report)
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
