"""Score a model on the data of its config.

oar eval -c lenet_mnist
oar eval -c lenet_mnist -o weights=output/lenet_mnist/checkpoints
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from framework.commands.main import run, use_device
from framework.commands.segmentation_flags import add_augmentation, augmentation_overrides
from framework.config.arguments import (
    add_config,
    add_device,
    add_ignored,
    add_settings,
    read_overrides,
    setting,
    settings,
)


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar eval`."""
    made = argparse.ArgumentParser(prog="oar eval", description="Score a model on the data of its config.")
    add_config(made)
    made.add_argument(
        *("--output_dir", "--output_eval"),
        dest="output_dir",
        help="write scores.json, a table of the classes and the confusion matrix to this folder",
    )
    made.add_argument("--classwise", action="store_true", help="print the scores of each class too")
    made.add_argument("--amp", action="store_true", help="matrix products in bfloat16")
    made.add_argument("--batch_size", type=int, help="short for -o data.eval.batch_size=…")
    made.add_argument("--num_workers", type=int, help="short for -o data.eval.num_workers=…")
    add_augmentation(made, "--aug_eval")
    add_device(made)
    add_settings(made)
    add_ignored(made, "the config and the weights say it", ("data_format", "bias", "slim_config"))
    return made


def _evaluate(args: argparse.Namespace) -> int:
    from framework.core.dtypes import precision_scope
    from framework.inference.memory import keep_memory
    from framework.workflow import train as workflow

    keep_memory()
    given = read_overrides(args)
    use_device(args)
    changes = (
        *settings(given, args.model_path),
        *setting("data.eval.batch_size", args.batch_size),
        *setting("data.eval.num_workers", args.num_workers),
        *augmentation_overrides(args, args.aug_eval),
    )
    with precision_scope("bfloat16" if args.amp else "float32"):
        found = workflow.evaluate_classes(args.config, changes)
    print(json.dumps(found.scores, indent=1))
    if args.classwise and found.details is not None:
        print(found.details.classes.to_text())
    if args.output_dir is not None:
        for path in found.write(args.output_dir):
            print(f"wrote {path}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar eval`; returns the exit status."""
    return run(parser(), _evaluate, argv)
