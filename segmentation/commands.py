"""What segmentation adds to the command `oar`: PaddleSeg's flags of evaluation and prediction at several scales,
mirrored and window by window."""

from __future__ import annotations

import argparse
import functools

from framework.config.arguments import setting
from framework.config.command_line import CommandLine, Flags
from framework.core.errors import ConfigError

_KEY = "task.inference"


def add_augmentation(
    parser: argparse.ArgumentParser, models: argparse._ActionsContainer, switch: str
) -> None:
    """The flags, of which `switch` (--aug_eval or --aug_pred) turns on scales and mirroring."""
    group = parser.add_argument_group("segmentation", f"short for -o {_KEY}.…")
    group.add_argument(switch, action="store_true", help="take --scales and --flip_horizontal")
    group.add_argument("--scales", type=float, nargs="+", default=[1.0], help="of the image's sides")
    group.add_argument("--flip_horizontal", action="store_true", help="average with the mirror image")
    group.add_argument("--is_slide", action="store_true", help="window by window; needs the next two")
    group.add_argument("--crop_size", type=int, nargs=2, metavar=("W", "H"), help="of a window")
    group.add_argument("--stride", type=int, nargs=2, metavar=("W", "H"), help="between windows")


def augmentation_overrides(args: argparse.Namespace, switch: str) -> tuple[str, ...]:
    """What the flags change of a config. Raises: ConfigError, where a size of the windows is missing."""
    changes: tuple[str, ...] = ()
    if getattr(args, switch.removeprefix("--")):
        changes = (*setting(f"{_KEY}.scales", args.scales), *setting(f"{_KEY}.flip", args.flip_horizontal))
    if not args.is_slide:
        return changes
    if args.crop_size is None or args.stride is None:
        raise ConfigError(
            "windows need a size and a stride",
            where="--is_slide",
            received="no --crop_size" if args.crop_size is None else "no --stride",
            allowed="such as --is_slide --crop_size 1024 512 --stride 768 384 (width, height)",
        )
    slide = {"crop_hw": args.crop_size[::-1], "stride_hw": args.stride[::-1]}
    return (*changes, *setting(f"{_KEY}.slide", slide))


COMMANDS = CommandLine(
    flags={
        command: Flags(
            functools.partial(add_augmentation, switch=switch),
            functools.partial(augmentation_overrides, switch=switch),
        )
        for command, switch in (("eval", "--aug_eval"), ("infer", "--aug_pred"))
    }
)
