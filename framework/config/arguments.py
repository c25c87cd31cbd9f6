"""The options that the tools share, and PaddleSeg's spellings of them."""

from __future__ import annotations

import argparse
import json
from typing import Any

OUTPUT = ("--output_dir", "--save_dir")


def add_config(parser: Any, *, required: bool = True) -> None:
    """`-c/--config` to a parser or a group of one."""
    parser.add_argument(
        "-c", "--config", required=required, help="a config: a name such as pp_ocrv6_small, or a file"
    )


def add_settings(parser: argparse.ArgumentParser, *, weights: bool = True) -> None:
    """`-o/--opt/--opts` and, where there are `weights` to choose, `--model_path`: what `settings` puts together."""
    parser.add_argument(
        *("-o", "--opt", "--opts"),
        dest="opt",
        nargs="+",
        action="extend",
        default=[],
        metavar="key=value",
        help="change settings of the config",
    )
    if weights:
        parser.add_argument("--model_path", metavar="WEIGHTS", help="short for -o weights=WEIGHTS")


def settings(opt: list[str], model_path: str | None = None) -> tuple[str, ...]:
    """The changes that `-o` and `--model_path` ask for, as `load` takes them."""
    if model_path is None:
        return tuple(opt)
    return (*opt, f"weights={json.dumps(model_path, ensure_ascii=False)}")
