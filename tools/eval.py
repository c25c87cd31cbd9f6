"""Evaluate a model on the data of its config file.

python tools/eval.py -c configs/classification/lenet/lenet_mnist.yml
python tools/eval.py -c configs/classification/lenet/lenet_mnist.yml -o weights=output/lenet_mnist/checkpoints
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from framework.config.arguments import add_config, add_settings, settings
from framework.core.errors import OarError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Evaluate a model on the data of its config file.")
    add_config(parser)
    parser.add_argument("--device", help="cpu, gpu, gpu:1, tpu; default: what jax takes")
    add_settings(parser)
    args = parser.parse_args(argv)
    from framework.core.device import set_device
    from framework.inference.memory import keep_memory
    from framework.workflow import train as workflow

    keep_memory()
    try:
        if args.device:
            set_device(args.device)
        scores = workflow.evaluate(args.config, settings(args.opt, args.model_path))
    except OarError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps(scores, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
