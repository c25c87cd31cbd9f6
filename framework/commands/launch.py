"""Run a script or a command on chosen devices: framework/distributed/launch.py.

oar launch --gpus 0,1 train -c lenet_mnist
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framework.commands.main import run
from framework.distributed.launch import launch, parser


def _launch(args: argparse.Namespace) -> int:
    return launch(args)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar launch`; returns the exit status."""
    return run(parser("oar launch"), _launch, argv)
