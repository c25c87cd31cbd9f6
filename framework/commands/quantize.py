"""Write a model as an artifact with int8 layers, as many as its score allows, and print what it costs and gains.

oar quantize -c resnet20_cifar10 -o weights=<file>
oar quantize -c pp_ocrv6_small --data scans/ --engine openvino
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from framework.commands.main import run
from framework.config.arguments import add_config, add_settings, read_overrides, settings


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar quantize`."""
    made = argparse.ArgumentParser(
        prog="oar quantize", description="Write a model as an artifact with int8 layers."
    )
    add_config(made)
    made.add_argument(
        "--data",
        help="examples: a folder of images, or a file with a text a line; default: the training data of the config",
    )
    made.add_argument(
        *("--output_dir", "--save_dir"),
        dest="output_dir",
        help="the artifact's folder; default: inference_model/<config>_int8",
    )
    made.add_argument(
        "--engine",
        choices=["onnxruntime", "openvino"],
        default="onnxruntime",
        help="the engine that it will run in, with which the score is held",
    )
    made.add_argument(
        "--max_loss",
        type=float,
        default=0.01,
        help="of the score on data.eval, where the config has it, else of the agreement with float32; default: 0.01",
    )
    made.add_argument(
        "--weight_bits",
        type=int,
        choices=[7, 8],
        default=8,
        help="7: for CPUs without int8 products (VNNI), where sums of 8 bits overflow",
    )
    made.add_argument(
        "--examples", type=int, default=64, help="how many the ranges are taken from; default: 64"
    )
    add_settings(made)
    return made


def _quantize(args: argparse.Namespace) -> int:
    from framework.workflow.export.quantize import QuantizeOptions, default_folder, quantize

    options = QuantizeOptions(args.engine, args.max_loss, args.weight_bits, args.examples)
    folder = Path(args.output_dir) if args.output_dir else default_folder(args.config)
    for made in quantize(args.config, folder, settings(read_overrides(args)), args.data, options):
        print(made.describe())
    print(f"wrote {folder}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar quantize`; returns the exit status."""
    return run(parser(), _quantize, argv)
