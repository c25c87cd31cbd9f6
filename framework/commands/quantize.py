"""Write a model as an artifact with int8 layers, as many as its score allows, and print what it costs and gains.

oar quantize -c resnet20_cifar10 -o weights=<file>
oar quantize -c pp_lcnet_x0_25_clothing --data photos/ --engine openvino

A language model, the folder or the .gguf file of one, is written as a folder that this toolkit and transformers open:

oar quantize -c models/qwen3-0.6b --weight_bits 4 --method gptq --data texts.txt
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from framework.commands.main import run
from framework.config.arguments import add_config, add_settings, read_overrides, settings
from framework.core.errors import ConfigError


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
        choices=[4, 7, 8],
        default=8,
        help="7: for CPUs without int8 products (VNNI), where sums of 8 bits overflow; 4: of language models",
    )
    made.add_argument(
        "--examples", type=int, default=64, help="how many the ranges are taken from; default: 64"
    )
    languages = made.add_argument_group("language models")
    languages.add_argument(
        "--method",
        help="how weights are rounded: rtn (to the nearest step), awq or gptq, which need --data; "
        "default: gptq for 4 bits with --data, else rtn",
    )
    languages.add_argument("--group", type=int, default=128, help="inputs that share a scale, of 4 bits")
    languages.add_argument("--length", type=int, default=512, help="tokens of an example; default: 512")
    add_settings(made)
    return made


def _quantize_folder(args: argparse.Namespace) -> bool:
    """Whether a domain took the source for a model of its own form, which is written then."""
    from framework.workflow.domain.capabilities import FolderQuantization, FolderQuantizer
    from framework.workflow.domain.domain import find_capabilities

    quantizer = next((one for one in find_capabilities(FolderQuantizer) if one.accepts(args.config)), None)
    if quantizer is None:
        return False
    if args.method is not None and args.method not in quantizer.methods:
        raise ConfigError(
            "weights are not rounded like this",
            where="--method",
            received=args.method,
            allowed=", ".join(quantizer.methods),
        )
    name = Path(args.config).expanduser().resolve().stem
    folder = Path(args.output_dir or Path("inference_model") / f"{name}_int{args.weight_bits}")
    data = Path(args.data) if args.data else None
    options = FolderQuantization(args.weight_bits, args.method, args.group, data, args.examples, args.length)
    for line in quantizer.write(args.config, folder, options):
        print(line)
    print(f"wrote {folder}")
    return True


def _quantize(args: argparse.Namespace) -> int:
    if _quantize_folder(args):
        return 0
    if args.weight_bits == 4 or args.method is not None:
        raise ConfigError(
            "this is for the folder or the .gguf file of a language model",
            where="--method" if args.method is not None else "--weight_bits",
            received=f"-c {args.config}",
            allowed="of other models: --weight_bits 8 or 7, and no --method",
        )
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
