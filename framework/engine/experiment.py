"""The sections of a configuration file: what every domain's training, evaluation, export and inference read.

Components are bound to their own dataclasses; what they are is the domain's business, where they stand is written here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from framework.config.bind import bind, packages_of
from framework.config.registry import Kind
from framework.config.tree import Tree
from framework.core.errors import ConfigError
from framework.core.model_config import ModelConfig
from framework.core.transform import Transform
from framework.distributed import ParallelOptions
from framework.engine.callbacks import Callback
from framework.engine.task import Pipeline, Task
from framework.io.dataset import Dataset
from framework.io.weighting import SamplerConfig
from framework.optimizer.base import Optimizer
from framework.optimizer.ema import EMA

Transforms = tuple[Annotated[Transform, Kind("transform")], ...]


@dataclass(frozen=True)
class LoaderConfig:
    """One data set on its way to the device.

    `batch_size` counts the samples of a step over all devices. Order and augmentation do not depend on the workers.
    `buckets` are the lengths, ascending, to which samples of different lengths, such as texts, are padded: a batch
    holds samples of about one length, and the model is compiled once for each bucket.
    `sampler` draws samples by the weights of their classes instead of each once an epoch; in training alone.
    `skip_bad_samples` leaves out samples that cannot be read, and lists them in the log and in the folder of the run.
    """

    dataset: Annotated[Dataset, Kind("dataset")]
    transforms: Transforms = ()
    batch_size: int = 32
    num_workers: int = 2
    worker_mode: Literal["thread", "process"] = "thread"
    buckets: tuple[int, ...] | None = None
    sampler: SamplerConfig | None = None
    skip_bad_samples: bool = False

    def __post_init__(self) -> None:
        if self.sampler is not None and self.buckets is not None:
            raise ConfigError(
                "a loader has one order of samples",
                received="sampler and buckets",
                allowed="one of them",
                fix="without buckets, texts are of one length: transforms with a fixed max_length",
            )
        if self.batch_size < 1 or self.num_workers < 0:
            raise ConfigError(
                "a loader needs samples",
                received=f"batch_size {self.batch_size}, num_workers {self.num_workers}",
                allowed="batch_size from 1, num_workers from 0",
            )


@dataclass(frozen=True)
class Data:
    """What is trained on, and what is evaluated."""

    train: LoaderConfig | None = None
    eval: LoaderConfig | None = None


@dataclass(frozen=True)
class TrainOptions:
    """How long, how precisely, and what is reported. Give `epochs` or `iters`.

    Attributes:
        log_every: Steps between two lines of the log; the first step and the end of each epoch have one too.
        eval_every, save_every: Steps; without a number at the end of each epoch. The last step always does both.
        keep: How many of the latest checkpoints stay; the best one always does.
        amp: The type of activations and matrix products; parameters stay float32.
        amp_level: O1 casts operation by operation, O2 everything but normalisations and losses.
        recompute: A regular expression of sublayers whose activations are computed again in the backward pass.
        lr_batch_size: The batch size that the learning rate is meant for; it is scaled linearly to the actual one.
        ema: A moving average of the parameters and of the running statistics of normalisations, which is evaluated and
            exported instead of them.
        early_stop: Stop after so many evaluations without a better score.
        tensorboard: Write scalars, and images where the task draws some, to <run>/tensorboard; the same as the callback
            `{type: TensorBoard}`.
        profile_step: Record a profile of this step and the two after it to <run>/profile.
        callbacks: Run after those of the framework, in this order: EarlyStopping, TensorBoard, VisualDL, WandB, and the
            user's own.
    """

    epochs: int | None = None
    iters: int | None = None
    seed: int = 0
    log_every: int = 10
    eval_every: int | None = None
    save_every: int | None = None
    keep: int = 2
    amp: Literal["float32", "bfloat16", "float16"] = "float32"
    amp_level: Literal["O1", "O2"] = "O1"
    recompute: str | None = None
    lr_batch_size: int | None = None
    ema: EMA | None = None
    early_stop: int | None = None
    tensorboard: bool = False
    profile_step: int | None = None
    callbacks: tuple[Annotated[Callback, Kind("callback")], ...] = ()

    def __post_init__(self) -> None:
        if self.epochs is not None and self.iters is not None:
            raise ConfigError(
                "training has one length",
                received=f"epochs {self.epochs} and iters {self.iters}",
                allowed="one of them",
                fix="take one out: -o train.epochs=null",
            )
        for name in (
            "epochs",
            "iters",
            "log_every",
            "eval_every",
            "save_every",
            "keep",
            "lr_batch_size",
            "early_stop",
        ):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"{name} is too small", received=value, allowed="1 or more")


@dataclass(frozen=True)
class Pretrained:
    """Weights to start from: a name of the hub, a path or an address. Parameters whose names match `skip` (a regular
    expression, such as "^fc\\." for another number of classes) keep their own initialisation; all others must fit.

    `into` names the part of the model that the weights are of, such as "backbone"; what else they hold, such as the
    classifier of ImageNet, is left out.

    With `partial`, in place of these two, everything is taken that fits by name and shape, and the log says what is
    not: a detector for other classes starts from one of COCO so."""

    weights: str
    skip: str | None = None
    into: str | None = None
    partial: bool = False

    def __post_init__(self) -> None:
        if self.partial and (self.skip is not None or self.into is not None):
            raise ConfigError(
                "`partial` takes what fits",
                received=f"skip {self.skip!r}, into {self.into!r}",
                allowed="partial alone, or skip and into",
                fix="-o pretrained.skip=null pretrained.into=null",
            )


@dataclass(frozen=True)
class Input:
    """Shape and dtype of an exported program's input; a string is a symbolic size such as "n" or "32*h"."""

    shape: tuple[int | str, ...]
    dtype: str = "uint8"


@dataclass(frozen=True)
class ExportOptions:
    """`inputs` replaces what the task exports by default; `precisions` are the programs in the artifact.

    Attributes:
        constraints: What holds for symbolic sizes, such as "w >= 16".
        bf16_verified: The score in bfloat16 was measured and holds.
        engines: For a kind of device ("cpu", "gpu") the engines that were measured with the score held, fastest first:
            `engine: auto` takes the first that is installed. Of a pipeline, for all its stages.
        bf16_engines: Engines of ONNX files whose score in bfloat16 was measured and holds, whatever that of XLA does.
            Each stage of a pipeline has its own.
    """

    inputs: dict[str, Input] = field(default_factory=dict)
    constraints: tuple[str, ...] = ()
    precisions: tuple[Literal["float32", "bfloat16"], ...] = ("float32", "bfloat16")
    bf16_verified: bool = False
    engines: dict[str, tuple[Literal["xla", "onnxruntime", "openvino"], ...]] = field(default_factory=dict)
    bf16_engines: tuple[Literal["onnxruntime", "openvino"], ...] = ()


@dataclass(frozen=True)
class PredictOptions:
    """`transforms` of an image or a text before the program; without them those of `data.eval`, and so its `buckets`,
    the lengths that texts are padded to."""

    transforms: Transforms | None = None
    batch_size: int = 8
    buckets: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Experiment:
    """A whole file. `weights` are those that evaluation, export and inference run with, `imports` the user's own files
    and modules of components; see framework/config/imports.py. `parallel: auto` divides a training among the devices
    that there are as `oar plan` would."""

    domain: str
    imports: tuple[str, ...] = ()
    model: Annotated[ModelConfig, Kind("model")] | None = None
    task: Annotated[Task, Kind("task")] | None = None
    pipeline: Annotated[Pipeline, Kind("pipeline")] | None = None
    data: Data = Data()
    optim: Annotated[Optimizer, Kind("optimizer")] | None = None
    train: TrainOptions = TrainOptions()
    parallel: ParallelOptions | Literal["auto"] = ParallelOptions()
    pretrained: Pretrained | None = None
    weights: str | None = None
    export: ExportOptions = ExportOptions()
    predict: PredictOptions = PredictOptions()

    def require(self, *sections: str) -> None:
        """Raises: ConfigError naming the sections that are missing for what is to be done."""
        missing = [name for name in sections if getattr(self, name) is None]
        if missing:
            raise ConfigError(
                "sections are missing in the configuration",
                received=", ".join(f.name for f in fields(self) if getattr(self, f.name) is not None),
                allowed=f"also {', '.join(missing)}",
            )

    def model_and_task(self) -> tuple[ModelConfig, Task]:
        """Raises: ConfigError, where one of them is missing."""
        self.require("model", "task")
        assert self.model is not None and self.task is not None
        return self.model, self.task


def bind_experiment(tree: Tree) -> Experiment:
    """The file as dataclasses, with the packages of its `domain`. Raises: ConfigError with all that is wrong in it."""
    return bind(tree, Experiment, packages_of(tree))
