"""Score a model on the data of its config.

oar eval -c lenet_mnist
oar eval -c lenet_mnist -o weights=output/lenet_mnist/checkpoints
oar eval -c lenet_mnist --model_dir inference_model/lenet_mnist --engine onnxruntime
oar eval --truth OmniDocBench.json --predictions output/pages
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from framework.commands.main import run, use_device
from framework.commands.segmentation_flags import add_augmentation, augmentation_overrides
from framework.config.arguments import (
    add_config,
    add_device,
    add_ignored,
    add_settings,
    choose_device,
    read_overrides,
    setting,
    settings,
)
from framework.core.errors import InputError
from framework.inference import Runtime
from framework.inference.runtime import ENGINES


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar eval`."""
    made = argparse.ArgumentParser(prog="oar eval", description="Score a model on the data of its config.")
    group = made.add_mutually_exclusive_group(required=True)
    add_config(group, required=False)
    group.add_argument(
        "--truth", metavar="FILE", help="score documents instead: their truth in OmniDocBench's format"
    )
    made.add_argument(
        "--predictions",
        metavar="FOLDER",
        help="of --truth: a Markdown file for each page, named as its image, such as `oar document` writes",
    )
    made.add_argument("--model_dir", help="an artifact's folder: score its program instead of weights")
    made.add_argument(
        "--engine", default="auto", choices=ENGINES, help="of --model_dir: what runs the program"
    )
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


def _score_documents(args: argparse.Namespace) -> int:
    from framework.workflow.domain.domain import document_domain
    from framework.workflow.files.documents import write_scores

    if args.predictions is None:
        raise InputError(
            "documents are scored in a folder",
            where="--predictions",
            received="none",
            allowed="a folder with a Markdown file for each page",
            fix="oar document IMAGES --format md --output FOLDER",
        )
    domain = document_domain()
    scores, pages = domain.score_documents(Path(args.truth), Path(args.predictions))
    print(json.dumps(scores, indent=1))
    if args.output_dir is not None:
        for path in write_scores(scores, pages, Path(args.output_dir)):
            print(f"wrote {path}")
    return 0


def _evaluate(args: argparse.Namespace) -> int:
    if args.truth is not None:
        return _score_documents(args)
    if args.predictions is not None:
        raise InputError(
            "predictions are scored against a truth",
            where="--predictions",
            received=args.predictions,
            fix="--truth OmniDocBench.json instead of -c",
        )
    from framework.core.dtypes import precision_scope
    from framework.inference.memory import keep_memory
    from framework.workflow.train import run as workflow

    keep_memory()
    given = read_overrides(args)
    use_device(args)
    changes = (
        *settings(given, args.model_path),
        *setting("data.eval.batch_size", args.batch_size),
        *setting("data.eval.num_workers", args.num_workers),
        *augmentation_overrides(args, args.aug_eval),
    )
    if args.model_dir is not None:
        from framework.workflow.train.artifact_scores import evaluate_artifact

        runtime = Runtime(
            choose_device(args.device, args.use_gpu), "bfloat16" if args.amp else "auto", args.engine
        )
        found = evaluate_artifact(args.model_dir, args.config, changes, runtime)
    else:
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
