"""What the commands' arguments share: configs, settings, the device, and the spellings of Paddle's toolkits.

A value of PaddleDetection's and PaddleOCR's `-o` such as `use_gpu=true` or `TrainReader.batch_size=4` is taken as the
setting of ours that does the same; see `Settings`.
"""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

log = logging.getLogger("oar")
OUTPUT = ("--output_dir", "--save_dir")

# Keys of the configs of PaddleDetection, PaddleOCR and PaddleClas that are given by `-o`, and ours.
UPSTREAM_KEYS = {
    "num_classes": ("model.num_classes",),
    "TrainReader.batch_size": ("data.train.batch_size",),
    "EvalReader.batch_size": ("data.eval.batch_size",),
    "TestReader.batch_size": ("predict.batch_size",),
    "epoch": ("train.epochs",),
    "log_iter": ("train.log_every",),
    "Global.epoch_num": ("train.epochs",),
    "Global.epochs": ("train.epochs",),
    "Global.print_batch_step": ("train.log_every",),
    "Train.loader.batch_size_per_card": ("data.train.batch_size",),
    "Eval.loader.batch_size_per_card": ("data.eval.batch_size",),
}
# Those that are arguments of the commands.
UPSTREAM_ARGUMENTS = {
    "use_gpu": "use_gpu",
    "save_dir": "output_dir",
    "LearningRate.base_lr": "learning_rate",
    "Global.use_gpu": "use_gpu",
    "Global.device": "device",
    "Global.save_model_dir": "output_dir",
    "Global.save_inference_dir": "output_dir",
    "Global.checkpoints": "resume",
    "Global.infer_img": "image_path",
    "Optimizer.lr.learning_rate": "learning_rate",
}
# Paddle's trained weights: what training starts from, and what everything else runs with.
UPSTREAM_WEIGHTS = ("Global.pretrained_model", "Arch.pretrained")
# Training starts from all of them that fits.
UPSTREAM_START = ("pretrained.into=null", "pretrained.skip=null", "pretrained.partial=true")


def add_config(parser: argparse._ActionsContainer, *, required: bool = True) -> None:
    """`-c/--config` to a parser or a group of one."""
    parser.add_argument(
        "-c", "--config", required=required, help="a config: a name such as lenet_mnist, or a file"
    )


def add_settings(parser: argparse.ArgumentParser, *, weights: bool = True) -> None:
    """`-o/--opt/--opts` and, where there are `weights` to choose, `--model_path`: what `settings` puts together."""
    parser.add_argument(
        *("-o", "--opt", "--opts"),
        dest="opt",
        nargs="+",
        action="extend",
        default=[],
        metavar="key=value",
        help="change settings of the config",
    )
    if weights:
        parser.add_argument("--model_path", metavar="WEIGHTS", help="short for -o weights=WEIGHTS")


def add_data(parser: argparse.ArgumentParser) -> None:
    """`--data`, `--num_classes` and `--classes`: short for the settings that own data change in most configs."""
    parser.add_argument("--data", metavar="FOLDER", help="the root of the config's data sets")
    parser.add_argument("--num_classes", type=int, help="short for -o model.num_classes=…")
    parser.add_argument(
        "--classes",
        nargs="+",
        metavar="NAME",
        help="of the data's classes these alone; what else is annotated is left out, and model.num_classes follows",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """`--device` and PaddleOCR's `--use_gpu`; `choose_device` reads both."""
    parser.add_argument("--device", help="cpu, gpu, gpu:1, tpu; default: what jax takes")
    parser.add_argument("--use_gpu", action=BooleanFlag, help="short for --device gpu, or cpu")


def choose_device(device: str | None, use_gpu: bool | None) -> str | None:
    """The device of the arguments, or None where none is given."""
    if device is not None or use_gpu is None:
        return device
    return "gpu" if use_gpu else "cpu"


def settings(opt: Sequence[str], model_path: str | None = None) -> tuple[str, ...]:
    """The changes that `-o` and `--model_path` ask for, as `load` takes them."""
    return (*opt, *setting("weights", model_path))


def setting(key: str, value: object) -> tuple[str, ...]:
    """`key=value` as `-o` takes it; nothing where the value is None."""
    return () if value is None else (f"{key}={json.dumps(value, ensure_ascii=False)}",)


@dataclass(frozen=True)
class Settings:
    """The overrides of a command line, and the arguments that some of Paddle's keys among them are."""

    overrides: tuple[str, ...] = ()
    arguments: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, opt: Sequence[str], *, training: bool = False) -> Settings:
        """Paddle's keys in "key=value" texts become ours; all others stay as they are.

        Args:
            training: Whether weights are those to start from.
        """
        overrides: list[str] = []
        arguments = {}
        for text in opt:
            key, equals, value = text.partition("=")
            key = key.strip()
            if not equals:
                overrides.append(text)
            elif key in UPSTREAM_ARGUMENTS:
                arguments[UPSTREAM_ARGUMENTS[key]] = value
            elif key == "pretrain_weights" or (key in UPSTREAM_WEIGHTS and training):
                overrides += [f"pretrained.weights={value}", *UPSTREAM_START]
            elif key in UPSTREAM_WEIGHTS:
                overrides.append(f"weights={value}")
            else:
                overrides += [f"{ours}={value}" for ours in UPSTREAM_KEYS.get(key, (key,))]
        return cls(tuple(overrides), arguments)


def read_overrides(args: argparse.Namespace, *, training: bool = False) -> tuple[str, ...]:
    """The overrides of parsed arguments' `-o`. Paddle's keys among them that are arguments here are put into `args`,
    where the argument itself is not given."""
    given = Settings.read(args.opt, training=training)
    kinds = {"use_gpu": parse_boolean, "learning_rate": float}
    for name, text in given.arguments.items():
        if name in args and getattr(args, name) in (None, False):
            setattr(args, name, kinds.get(name, str)(text))
    return given.overrides


def parse_boolean(text: str) -> bool:
    """True or False, as `--save_results True` of Paddle's tools says it. Raises: ArgumentTypeError."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    if text.lower() not in known:
        raise argparse.ArgumentTypeError(f"{text!r} is neither true nor false")
    return known[text.lower()]


class BooleanFlag(argparse.Action):
    """`--name`, `--no-name` and, as in Paddle's tools, `--name True` and `--name False`."""

    def __init__(
        self,
        option_strings: Sequence[str],
        dest: str,
        default: bool | None = None,
        help: str | None = None,
        required: bool = False,
    ) -> None:
        names = [name for given in option_strings for name in (given, f"--no-{given.removeprefix('--')}")]
        super().__init__(
            names, dest, nargs="?", default=default, type=parse_boolean, help=help, required=required
        )

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        name: str | None = None,
    ) -> None:
        negated = str(name).startswith("--no-")
        if negated and values is not None:
            parser.error(f"argument {name}: takes no value")
        setattr(namespace, self.dest, not negated if values is None else values)

    def format_usage(self) -> str:
        return " | ".join(self.option_strings)


class _Ignored(argparse.Action):
    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        name: str | None = None,
    ) -> None:
        log.warning("%s has no effect: %s", name, self.const)


def add_ignored(parser: argparse.ArgumentParser, reason: str, names: Sequence[str]) -> None:
    """Flags of Paddle's tools that are accepted, with or without values, and change nothing; a line says so."""
    group = parser.add_argument_group("accepted without effect", reason)
    for name in names:
        group.add_argument(
            f"--{name}", nargs="*", action=_Ignored, const=reason, default=argparse.SUPPRESS, metavar=""
        )
