"""Train a model from a config file.

python tools/train.py -c configs/classification/lenet/lenet_mnist.yml -o train.epochs=5
python tools/train.py -c configs/classification/lenet/lenet_mnist.yml --resume
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.config.arguments import OUTPUT, add_config, add_settings, settings
from framework.core.errors import OarError


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Train a model from a config file.")
    add_config(parser)
    parser.add_argument(*OUTPUT, help="folder of the run; default: output/<name of the config>")
    parser.add_argument(
        *("--resume", "--resume_model"),
        nargs="?",
        const=True,
        default=False,
        metavar="PATH",
        help="go on from the last checkpoint of the run, or from this one",
    )
    parser.add_argument(
        "--eval", action=argparse.BooleanOptionalAction, default=True, help="evaluate on the way"
    )
    parser.add_argument("--device", help="cpu, gpu, gpu:1, tpu; default: what jax takes")
    add_settings(parser, weights=False)
    return parser


def main(argv: list[str] | None = None) -> int:
    args = arguments().parse_args(argv)
    from framework.core.device import set_device
    from framework.inference.memory import keep_memory
    from framework.workflow import train as workflow

    keep_memory()  # steps that allocate fresh pages cost up to twice the time
    try:
        if args.device:
            set_device(args.device)
        workflow.train(args.config, settings(args.opt), args.output_dir, args.resume, args.eval)
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        print(str(stop) or "stopped; --resume goes on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
