"""python -m detection.data check <folder or file> [--split train] [--images val2017]"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from detection.data.check import open_dataset, validate
from framework.io.data_check import Report, print_reports


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status, see `print_reports`."""
    parser = argparse.ArgumentParser(prog="python -m detection.data", description=__doc__)
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="count the classes and find what is broken")
    check.add_argument("path", type=Path, help="a COCO annotation file, or a folder with VOC annotations")
    check.add_argument("--split", default="", help="the part of a folder: train, val")
    check.add_argument(
        "--images", default="", help="where the images of a COCO file are, seen from its folder"
    )
    options = parser.parse_args(arguments)

    def reports() -> Iterator[tuple[str, Report]]:
        yield "", validate(open_dataset(options.path, options.split, options.images))

    return print_reports(reports())


if __name__ == "__main__":
    sys.exit(main())
