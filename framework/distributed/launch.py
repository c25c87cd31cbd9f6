"""Run a script, or a command of `oar`, on chosen devices: the arguments of paddle.distributed.launch.

python -m framework.distributed.launch --gpus 0,1 tools/train.py -c lenet_mnist
oar launch --gpus 0,1 train -c lenet_mnist

One process drives all of its devices, so nothing is started beside this one: training divides each batch among them.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from framework.core.errors import ConfigError, InputError


def parser(prog: str = "python -m framework.distributed.launch") -> argparse.ArgumentParser:
    """The arguments of Paddle's launcher that choose devices, and what is to be run."""
    made = argparse.ArgumentParser(
        prog=prog, description="Run a script or a command of oar on chosen devices."
    )
    made.add_argument("--gpus", "--devices", dest="gpus", help="such as 0,1; default: all that are there")
    made.add_argument("--nnodes", default="1", help="1: several machines are not there yet")
    made.add_argument("script", help="a Python file, or a command of oar such as train")
    made.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script takes")
    return made


def launch(script: str, arguments: Sequence[str], gpus: str | None = None, nnodes: str = "1") -> None:
    """Run the script in this process, which must not have used jax yet; raises SystemExit as the script does.

    Raises:
        ConfigError: the devices are no list of numbers, or there is more than one machine.
        InputError: there is no such script.
    """
    if nnodes != "1":
        raise ConfigError(
            "training on several machines is not there yet",
            where="--nnodes",
            received=nnodes,
            allowed="1: one process with all devices of this machine",
        )
    if gpus is not None:
        if not all(number.strip().isdecimal() for number in gpus.split(",")):
            raise ConfigError(
                "devices must be named by numbers",
                where="--gpus",
                received=gpus,
                allowed="numbers, such as 0,1",
            )
        for variable in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"):
            os.environ[variable] = gpus
    if script.endswith(".py"):
        if not Path(script).is_file():
            raise InputError("there is no such script", where=script, fix="check the path")
        sys.argv = [script, *arguments]
        sys.path.insert(0, str(Path(script).resolve().parent))
        runpy.run_path(script, run_name="__main__")
    else:
        sys.argv = ["oar", script, *arguments]
        runpy.run_module("framework", run_name="__main__", alter_sys=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the launcher with these arguments (default: those of this process)."""
    args = parser().parse_args(argv)
    launch(args.script, args.arguments, args.gpus, args.nnodes)


if __name__ == "__main__":
    main()
