"""Train a model from a config.

oar train -c lenet_mnist -o train.epochs=5
oar train -c lenet_mnist --resume
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from framework.commands.main import run, use_device
from framework.config.arguments import (
    OUTPUT,
    UPSTREAM_START,
    BooleanFlag,
    add_config,
    add_data,
    add_device,
    add_ignored,
    add_settings,
    read_overrides,
    setting,
)

if TYPE_CHECKING:
    from framework.workflow.domain.config_file import ConfigFile

log = logging.getLogger("oar")
STOPPED = "stopped; --resume goes on from the last checkpoint"
_PRECISIONS = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_TYPES = ("float32", "bfloat16", "float16")


def parser() -> argparse.ArgumentParser:
    """The arguments of `oar train`."""
    made = argparse.ArgumentParser(prog="oar train", description="Train a model from a config.")
    add_config(made)
    made.add_argument(*OUTPUT, help="folder of the run; default: output/<name of the config>")
    made.add_argument(
        *("-r", "--resume", "--resume_model"),
        dest="resume",
        nargs="?",
        const=True,
        default=False,
        metavar="PATH",
        help="go on from the last checkpoint of the run, or from this one",
    )
    made.add_argument(
        *("--eval", "--do_eval"), action=BooleanFlag, default=True, help="evaluate on the way (default)"
    )
    add_data(made)
    made.add_argument("--pretrained", metavar="WEIGHTS", help="start from all of these weights that fits")
    made.add_argument("--amp", action="store_true", help="short for -o train.amp=bfloat16")
    made.add_argument(
        "--precision", choices=[*_PRECISIONS, *_TYPES], help="short for -o train.amp=…; fp16 is float16"
    )
    made.add_argument("--amp_level", choices=["O1", "O2"], help="short for -o train.amp_level=…")
    made.add_argument(
        "--epochs", type=int, help="length of training, in place of the config's epochs or iters"
    )
    made.add_argument("--iters", type=int, help="length of training in steps, in place of the config's")
    made.add_argument("--batch_size", type=int, help="short for -o data.train.batch_size=…")
    made.add_argument(
        "--learning_rate", type=float, help="in place of the config's; its schedule keeps its form"
    )
    made.add_argument("--save_interval", type=int, help="steps between checkpoints and evaluations")
    made.add_argument("--log_iters", type=int, help="short for -o train.log_every=…")
    made.add_argument("--keep_checkpoint_max", type=int, help="short for -o train.keep=…")
    made.add_argument(
        "--early_stop_intervals", type=int, help="stop after so many evaluations without a better score"
    )
    made.add_argument(
        "--use_ema", action="store_true", help="evaluate and export an average of the parameters"
    )
    made.add_argument("--use_vdl", action=BooleanFlag, help="log to VisualDL: <run>/visualdl")
    made.add_argument("--vdl_log_dir", help="the folder of VisualDL's files")
    made.add_argument("--use_wandb", action=BooleanFlag, help="log to Weights & Biases")
    made.add_argument("--seed", type=int, help="short for -o train.seed=…")
    made.add_argument("--num_workers", type=int, help="of each data set")
    made.add_argument(
        "--find_lr", action="store_true", help="suggest a learning rate by a short training with rising rates"
    )
    made.add_argument(
        "--find_batch_size", action="store_true", help="the largest batch whose step fits into the memory"
    )
    add_device(made)
    add_settings(made, weights=False)
    add_ignored(
        made,
        "steps are always compiled, seeded, and run on all devices of the process",
        ("to_static", "to_static_training", "enable_ce", "fleet", "data_format", "log_ranks"),
    )
    return made


def open_data_config(args: argparse.Namespace, given: Sequence[str]) -> ConfigFile:
    """The config with the changes that are given, then those of `--data`, `--classes` and `--num_classes`."""
    from framework.workflow.domain.config_file import open_config
    from framework.workflow.train.overrides import data_overrides

    config = open_config(args.config, given)
    if args.data is not None:
        config = open_config(config, data_overrides(config.plain, args.data))
    selection = () if args.classes is None else _choose_classes(config, args.classes)
    return open_config(config, (*selection, *setting("model.num_classes", args.num_classes)))


def _choose_classes(config: ConfigFile, names: Sequence[str]) -> tuple[str, ...]:
    from framework.config.bind import packages_of
    from framework.config.registry import Catalog
    from framework.workflow.train.overrides import class_overrides

    catalog = Catalog(packages_of(config.tree))
    return class_overrides(
        config.plain, names, lambda kind: getattr(catalog.find("dataset", kind).config, "selected_by", None)
    )


def open_train_config(args: argparse.Namespace, given: Sequence[str]) -> ConfigFile:
    """The config with the changes of `-o` and, after them, those of the other arguments."""
    from framework.workflow.domain.config_file import open_config
    from framework.workflow.train.overrides import (
        callback_overrides,
        ema_overrides,
        evaluation_overrides,
        learning_rate_overrides,
        worker_overrides,
    )

    amp = _PRECISIONS.get(args.precision, args.precision) or ("bfloat16" if args.amp else None)
    start = (
        () if args.pretrained is None else (*setting("pretrained.weights", args.pretrained), *UPSTREAM_START)
    )
    changes = [
        *start,
        *(("train.iters=null", f"train.epochs={args.epochs}") if args.epochs is not None else ()),
        *(("train.epochs=null", f"train.iters={args.iters}") if args.iters is not None else ()),
        *setting("train.amp", amp),
        *setting("train.amp_level", args.amp_level),
        *setting("data.train.batch_size", args.batch_size),
        *setting("train.save_every", args.save_interval),
        *setting("train.eval_every", args.save_interval),
        *setting("train.log_every", args.log_iters),
        *setting("train.keep", args.keep_checkpoint_max),
        *setting("train.early_stop", args.early_stop_intervals),
        *setting("train.seed", args.seed),
    ]
    config = open_config(open_data_config(args, given), changes)
    more: list[str] = list(evaluation_overrides(config.source.plain(), config.plain))
    loggers = _loggers(args)  # what these four change depends on what the config says
    if args.use_ema:
        more += ema_overrides(config.plain)
    if loggers:
        more += callback_overrides(config.plain, *loggers)
    if args.num_workers is not None:
        more += worker_overrides(config.plain, args.num_workers)
    if args.learning_rate is not None:
        more += learning_rate_overrides(config.plain, args.learning_rate)
    return open_config(config, more)


def _loggers(args: argparse.Namespace) -> list[dict[str, str]]:
    """The callbacks of --use_vdl and --use_wandb. Without VisualDL's package training goes on, and a line says so."""
    found = [{"type": "WandB"}] if args.use_wandb else []
    if args.use_vdl:
        if importlib.util.find_spec("visualdl") is None:
            log.warning(
                '--use_vdl: the package visualdl is not installed (pip install "oar-toolkit[visualdl]"); '
                "metrics.jsonl in the folder of the run has the same numbers"
            )
        else:
            folder = {} if args.vdl_log_dir is None else {"log_dir": args.vdl_log_dir}
            found.append({"type": "VisualDL", **folder})
    return found


def _train(args: argparse.Namespace) -> int:
    from framework.distributed import init_parallel_env
    from framework.inference.memory import keep_memory
    from framework.workflow.train import run as workflow

    keep_memory()  # steps that allocate fresh pages cost up to twice the time
    init_parallel_env()
    config = open_train_config(args, read_overrides(args, training=True))
    use_device(args)
    if args.find_lr or args.find_batch_size:
        if args.find_lr:
            workflow.find_lr(config, output_dir=args.output_dir)
        if args.find_batch_size:
            workflow.find_batch_size(config)
        return 0
    workflow.train(config, (), args.output_dir, args.resume, args.eval)
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `oar train`; returns the exit status."""
    return run(parser(), _train, argv, STOPPED)
