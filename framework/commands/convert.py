"""Weights of another framework or form as safetensors or .pdparams.

oar convert resnet50.pth resnet50.safetensors -c resnet50
oar convert model.pdparams model.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from framework.commands.main import run
from framework.config.arguments import add_config, add_settings, read_overrides


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar convert`."""
    made = argparse.ArgumentParser(
        prog="oar convert",
        description="Read .pdparams, Paddle's programs, ONNX, torch or safetensors, and write weights. With a config "
        "they are matched with its model and written under Paddle's names in Paddle's layouts; without one names and "
        "layouts stay those of the file.",
    )
    made.add_argument("weights", help="a file, a run's folder, or a name of `oar models`")
    made.add_argument("output", help="a file to write: .safetensors or .pdparams")
    add_config(made, required=False)
    made.add_argument("--params", help="the parameter file of a Paddle program; default: the one beside it")
    add_settings(made, weights=False)
    return made


def _convert(args: argparse.Namespace) -> int:
    from framework.workflow.convert import convert_weights

    count = convert_weights(args.weights, args.output, args.config, read_overrides(args), args.params)
    print(f"wrote {args.output}: {count} arrays")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar convert`; returns the exit status."""
    return run(parser(), _convert, argv)
