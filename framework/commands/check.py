"""Look for what is wrong in the data of a config before it is trained on.

oar check -c pp_lcnet_x0_25_clothing -o data.train.dataset.root=data/shapes data.eval.dataset.root=data/shapes
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framework.commands.main import run
from framework.commands.train import data_settings
from framework.config.arguments import add_config, add_data, add_settings, read_overrides


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar check`."""
    made = argparse.ArgumentParser(
        prog="oar check",
        description="Look for broken files, wrong labels and copies between training and evaluation.",
    )
    add_config(made)
    add_data(made)
    made.add_argument("--part", choices=["train", "eval"], help="only this part of the data; default: both")
    add_settings(made, weights=False)
    return made


def _check(args: argparse.Namespace) -> int:
    from framework.workflow.data.check import check_data

    given = read_overrides(args)
    return check_data(args.config, (*given, *data_settings(args, given)), args.part)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar check`; exit status 0 where all is well, 1 where something is wrong, 2 an error."""
    return run(parser(), _check, argv)
