"""What a domain plugs into the engine: a Task with the metrics that judge it, and a Pipeline of several models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Generic, Protocol, Self, TypeVar

import jax
import numpy as np

from framework.core.errors import ConfigError
from framework.core.model_config import ConfigT, ModelConfig, setting_of
from framework.core.transform import SampleT, Transform
from framework.core.types import JSON
from framework.export import TensorSpec
from framework.nn.functional_core import GraphDef, State
from framework.nn.layer import Layer

Batch = Mapping[str, jax.Array]
Arrays = Mapping[str, np.ndarray]
ModelT = TypeVar("ModelT")


@dataclass(frozen=True)
class Losses:
    """`total` is minimised; `parts` are logged beside it. All are float32 scalars, means over the batch.

    `weight` says of how much they are the mean, where that is not the number of samples, such as the number of tokens
    that have a label: by it the micro batches of a pipeline are averaged.
    """

    total: jax.Array
    parts: Mapping[str, jax.Array] = field(default_factory=dict)
    weight: jax.Array | None = None


jax.tree_util.register_dataclass(Losses, ("total", "parts", "weight"), ())


class Metric(Protocol):
    """Collects over an evaluation. `higher_is_better` says which of two first results is the better one."""

    higher_is_better: bool

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        """Take in one batch: what `Task.infer` gave and what the loader gave, without padded samples."""
        ...

    def result(self) -> dict[str, float]:
        """Scores by name, the one that chooses the best checkpoint first."""
        ...


Pack = Callable[[SampleT], dict[str, np.ndarray]]
"""A sample as arrays"""


class Experience(Protocol):
    """Lets a model act, and gives what is learned from it: the same for the same state and batch."""

    def __call__(self, params: State, buffers: State, batch: Arrays, step: int, /) -> dict[str, np.ndarray]:
        """The arrays that `Task.loss` reads, from those of the loader, among which are texts.

        Args:
            step: The steps done.
        """
        ...


class Task(ABC, Generic[SampleT, ModelT]):
    """Base of the tasks, which are frozen dataclasses: all that a domain says about training and inference.

    `loss` and `infer` are pure. `SampleT` is what its data sets yield, `ModelT` what it asks of a model: a Layer, a
    base of models, or a protocol of a domain.

    Attributes:
        padding: What pads the arrays of samples of different lengths, by name; None where all have one shape.
        padding_axes: The axis that is padded, of arrays where it is not the first.
        label_arrays: Names of the packed arrays that hold class indices: those of data with other classes than the
            model's are mapped to the model's in evaluation.
    """

    padding: ClassVar[Mapping[str, int] | None] = None
    padding_axes: ClassVar[Mapping[str, int]] = {}
    label_arrays: ClassVar[tuple[str, ...]] = ()

    def adapt(self, dataset: object) -> Self:
        """The task for this training data: with numbers where a setting leaves them to the data."""
        return self

    def misfits(self, dataset: object) -> list[str]:
        """What of a data set this task cannot learn, or judge, as it is: a line of each, for the check of data.

        Raises: OarError, where there is nothing to compare it with, such as the dictionary of weights to download.
        """
        return []

    def pack(self, sample: SampleT) -> dict[str, np.ndarray]:
        """Arrays of fixed shape, for one sample of the data set. Those of texts ("U") are for the metrics alone.

        Raises:
            ConfigError: the task takes no samples of data sets.
        """
        raise self._cannot("be trained or evaluated: it does not say what of a sample goes to the device")

    def pack_evaluated(self, sample: SampleT) -> dict[str, np.ndarray]:
        """As `pack`, for evaluation: without what `loss` alone reads."""
        return self.pack(sample)

    def length(self, sample: SampleT) -> int:
        """How long a sample is, in what `buckets` counts. Needed where `padding` is given."""
        raise self._cannot("sort samples into buckets: they all have one shape")

    def lengths(self, dataset: object, transforms: Sequence[Transform[SampleT]]) -> list[int] | None:
        """`length` of every sample of a data set that tells it without reading them; None: they are read."""
        return None

    def adapt_model(self, config: ConfigT) -> ConfigT:
        """The bound config of the model with what the task decides, such as the number of classes of a dictionary."""
        return config

    def pretrained_model(self, config: ConfigT) -> ConfigT:
        """The config of the model that the weights of `pretrained` are of, where it is another one than is trained."""
        return config

    def adapt_pretrained(self, state: dict[str, np.ndarray], model: ModelT) -> dict[str, np.ndarray]:
        """The weights of `pretrained_model` as `model` takes them."""
        return state

    def load_pretrained(self, model: ModelT, path: Path) -> bool:
        """Load the weights of `pretrained` from a file or a folder that only the domain can read; False: it is read as
        any other."""
        return False

    def prepare_model(self, model: ModelT, dataset: object) -> None:
        """Give a model that is to be trained what it holds of the training data, such as their graph.

        Raises:
            ConfigError: the data do not have it, or it does not fit.
        """

    def prepare_pack(self, model: ModelT, dataset: object, train: bool) -> Pack[SampleT] | None:
        """What packs the samples of a training in the place of `pack` and `pack_evaluated`: with what `model`, as it
        is before the first step, says of each. None: these two."""
        return None

    def experience(self, graphdef: GraphDef, dataset: object, seed: int) -> Experience | None:
        """What makes a batch of what the model itself does, before each step of a training; None: batches are trained
        on as they are. `graphdef` is the model in training, `dataset` what is trained on."""
        return None

    def loss(self, model: ModelT, batch: Batch) -> Losses:
        """`batch` has what `pack` gave, stacked, and `step`, int32 []: the steps done.

        Raises:
            ConfigError: the task is one of inference alone.
        """
        raise self._cannot("be trained: it has no loss")

    @abstractmethod
    def infer(self, model: ModelT, inputs: Batch) -> dict[str, jax.Array]:
        """Fixed shapes: this is what is evaluated and exported."""

    def describe_outputs(self) -> Mapping[str, Mapping[str, JSON]]:
        """What programs that run elsewhere must know of each output of `infer`, by its name: keys such as "meaning",
        "format" (xyxy), "unit" (pixels of the input image), "range"."""
        return {}

    def metrics(self, labels: tuple[str, ...]) -> Mapping[str, Metric]:
        """Fresh ones; the first decides which checkpoint is the best."""
        return {}

    def visualize(self, outputs: Arrays, batch: Arrays, labels: tuple[str, ...]) -> np.ndarray | None:
        """A drawing [H, W, 3] uint8 of the first sample of a batch, for TensorBoard; None where there is none."""
        return None

    def check(self, model: ModelT, labels: tuple[str, ...]) -> None:
        """Raises: ConfigError, where model and data do not fit, such as other numbers of classes."""
        check_classes(model, labels)

    def _cannot(self, what: str) -> ConfigError:
        return ConfigError(f"{type(self).__name__} cannot {what}", where="task", received=type(self).__name__)


def check_transforms(model: Layer, transforms: Iterable[Transform]) -> None:
    """Raises: ConfigError, where a transform does not fit the model."""
    for transform in transforms:
        transform.check(model)


def check_classes(model: object, labels: tuple[str, ...]) -> None:
    """Raises: ConfigError where the model's config has another `num_classes` than the data have labels."""
    count = setting_of(model, "num_classes", int)
    if labels and count is not None and count != len(labels):
        names = ", ".join(labels[:5]) + (" …" if len(labels) > 5 else "")
        raise ConfigError(
            "the model and the data have different numbers of classes",
            where="model.num_classes",
            received=f"{count} for the {len(labels)} classes {names}",
            allowed=str(len(labels)),
            fix=f"-o model.num_classes={len(labels)}",
        )


# -- pipelines: a configuration whose artifact is composed of those of several stages, each exported as any model is --


@dataclass(frozen=True)
class Stage:
    """One model of a pipeline: what `model`, `task`, `weights` and `export` are in a file with one model.

    Attributes:
        model: The bound config of the model.
        task: What its program computes is `task.infer`.
        weights: As the configuration names them.
        path: The file that they come from.
        inputs: Of the program, by name.
        constraints: What holds for symbolic sizes, such as "w >= 16".
        config: What the artifact's config holds besides, such as the options of the stage.
        bf16_verified: The score in bfloat16 was measured and holds.
        bf16_engines: Engines of ONNX files whose score in bfloat16 was measured and holds, whatever that of XLA does.
    """

    model: ModelConfig
    task: Task
    weights: str
    path: Path
    inputs: Mapping[str, TensorSpec]
    constraints: tuple[str, ...] = ()
    config: Mapping[str, JSON] = field(default_factory=dict)
    bf16_verified: bool = False
    bf16_engines: tuple[str, ...] = ()


class Pipeline(ABC):
    """Base of what is registered as a "pipeline": a frozen dataclass bound to the key `pipeline` of a file."""

    @property
    @abstractmethod
    def stage_names(self) -> tuple[str, ...]:
        """The keys of its stages in the configuration, each of which has `weights`."""

    @abstractmethod
    def stages(self) -> Mapping[str, Stage]:
        """Every stage by its name, with its weights found and fetched.

        Raises:
            HubError: weights cannot be had.
        """

    @abstractmethod
    def describe(self) -> Mapping[str, JSON]:
        """What the artifact's config holds besides its stages."""
