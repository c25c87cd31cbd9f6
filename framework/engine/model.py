"""Model: Paddle's high-level training of a network, on the Trainer's compiled step.

    model = framework.Model(network)
    model.prepare(optimizer.Adam(1e-3), nn.CrossEntropyLoss(), framework.metric.Accuracy())
    model.fit(train_dataset, eval_dataset, batch_size=64, epochs=2)
    model.evaluate(eval_dataset)

A data set gives tuples: the inputs of the network, then its labels. Arrays are one as `io.TensorDataset([x, y])`.
Source: paddle.Model.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import logging
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from framework.core.errors import ConfigError
from framework.core.types import PyTree
from framework.distributed import Partitioner
from framework.engine.callbacks import Callback, LogLines, print_log
from framework.engine.evaluator import Evaluator
from framework.engine.experiment import TrainOptions
from framework.engine.label_report import find_bad_labels
from framework.engine.task import Losses, Task
from framework.engine.trainer import Trainer
from framework.io.checkpoint import flatten, unflatten
from framework.io.dataset import Indexed, IterableDataset
from framework.io.loader import DataLoader
from framework.io.recipe import Batch
from framework.io.state import load, save
from framework.metric import Metric
from framework.nn import functional_core
from framework.nn.layer import Layer, Parameter
from framework.nn.summary import Sizes, summarize
from framework.optimizer import Optimizer

log = logging.getLogger("oar")
_OPTIMIZER = ".optimizer.safetensors"


class _MetricState:
    """One of Paddle's metrics, or the loss, as the engine asks for it."""

    def __init__(self, metric: Metric, labels: int) -> None:
        self.metric, self.labels = metric, labels
        self.higher_is_better = metric.higher_is_better
        metric.reset()

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        preds = [outputs[f"output{n}"] for n in range(len(outputs))]
        truth = [batch[f"label{n}"] for n in range(self.labels)]
        values = self.metric.compute(*preds, *truth)
        self.metric.update(*(values if isinstance(values, tuple) else (values,)))

    def result(self) -> dict[str, float]:
        return _named(self.metric)


def _named(metric: Metric) -> dict[str, float]:
    names, values = metric.name(), metric.accumulate()
    names = [names] if isinstance(names, str) else names
    return dict(zip(names, map(float, values if isinstance(values, (list, tuple)) else [values])))


class _Spec(Protocol):
    """What is asked of an InputSpec."""

    @property
    def shape(self) -> Sequence[object]: ...

    @property
    def dtype(self) -> DTypeLike: ...


Fields = int | _Spec | Sequence[_Spec | None] | None  # how many fields, or what they are
Data = DataLoader | Indexed[object] | IterableDataset
Arrays = ArrayLike | Sequence[ArrayLike]


@dataclass(frozen=True)
class _Supervised(Task[Sequence[object], Layer]):
    """A network, a loss of (outputs…, labels…) and metrics, as a Task."""

    inputs: int
    labels: int
    loss_fn: Callable[..., PyTree] | None
    judges: tuple[Metric, ...]

    def pack(self, sample: Sequence[object]) -> dict[str, np.ndarray]:
        if isinstance(sample, Mapping):
            names = [f"sample[{name!r}]" for name in sample]
            raise ConfigError(
                "a sample is a dict",
                where="Model",
                received=f"the keys {', '.join(map(repr, sample))}",
                allowed=f"a tuple of {self._fields()}, in the order of the network's arguments",
                fix=f"let the data set return ({', '.join(names[: self.inputs + self.labels])})",
            )
        fields = sample if isinstance(sample, (tuple, list)) else (sample,)
        if len(fields) < self.inputs + self.labels:
            raise ConfigError(
                "a sample has too few fields",
                where="Model",
                received=len(fields),
                allowed=self._fields(),
                fix="of arrays a data set is made with framework.io.TensorDataset([x, y])",
            )
        names = [f"input{n}" for n in range(self.inputs)] + [f"label{n}" for n in range(self.labels)]
        return {name: np.asarray(value) for name, value in zip(names, fields)}

    def _fields(self) -> str:
        counts = ((self.inputs, "input"), (self.labels, "label"))
        return " and ".join(f"{n} {name}{'s' if n != 1 else ''}" for n, name in counts)

    def _outputs(self, model: Layer, batch: Mapping[str, jax.Array]) -> tuple:
        out = model(*(batch[f"input{n}"] for n in range(self.inputs)))
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    def loss(self, model: Layer, batch: Mapping[str, jax.Array]) -> Losses:
        assert self.loss_fn is not None
        labels = (batch[f"label{n}"] for n in range(self.labels))
        losses = self.loss_fn(*self._outputs(model, batch), *labels)
        terms = tuple(losses) if isinstance(losses, (tuple, list)) else (losses,)
        total: jax.Array = functools.reduce(operator.add, terms)
        return Losses(total, {f"loss{n}": part for n, part in enumerate(terms)} if len(terms) > 1 else {})

    def infer(self, model: Layer, inputs: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
        return {f"output{n}": value for n, value in enumerate(self._outputs(model, inputs))}

    def metrics(self, labels: tuple[str, ...]) -> dict[str, _MetricState]:
        return {str(n): _MetricState(metric, self.labels) for n, metric in enumerate(self.judges)}

    def check(self, model: Layer, labels: tuple[str, ...]) -> None:
        pass


class Model:
    """A network with its training. `network` is the same Layer throughout and has the current values.

    Args:
        inputs, labels: How many fields of a sample are inputs and labels: numbers, an InputSpec or a sequence of them;
            None is one.
    """

    def __init__(self, network: Layer, inputs: Fields = None, labels: Fields = None) -> None:
        self.network = network
        self._inputs, self._labels = _count(inputs), _count(labels)
        listed = inputs if isinstance(inputs, Sequence) else [inputs]
        self._specs = [spec for spec in listed if spec is not None and not isinstance(spec, int)]
        self._optimizer: Optimizer | None = None
        self._loss: Callable[..., PyTree] | None = None
        self._metrics: tuple[Metric, ...] = ()
        self._amp: dict[str, Any] = {}
        self._optimizer_state: dict[str, PyTree] | None = (
            None  # the optimizer's state between two calls of fit
        )
        self._collected: dict[str, jax.Array] | None = (
            None  # gradients of calls of train_batch without an update
        )

    def prepare(
        self,
        optimizer: Optimizer | None = None,
        loss: Callable[..., PyTree] | None = None,
        metrics: Metric | Sequence[Metric] | None = None,
        amp_configs: str | Mapping[str, str] | None = None,
    ) -> None:
        """Set what trains and judges the network. `loss` takes outputs and labels and returns a scalar, or several.

        `amp_configs` is "O1" or "O2", for bfloat16 activations, or `{"level": "O1", "dtype": "float16"}`.
        """
        self._optimizer, self._loss = optimizer, loss
        self._metrics = (metrics,) if isinstance(metrics, Metric) else tuple(metrics or ())
        amp_options = (
            {"level": amp_configs or "O0"} if not isinstance(amp_configs, Mapping) else dict(amp_configs)
        )
        level, dtype = amp_options.pop("level", "O1"), amp_options.pop("dtype", "bfloat16")
        if level not in ("O0", "O1", "O2") or dtype not in ("bfloat16", "float16") or amp_options:
            raise ConfigError(
                "unknown level",
                where="Model.prepare",
                received=amp_configs,
                allowed='O0, O1, O2, or {"level": one of them, "dtype": "bfloat16" or "float16"}',
            )
        self._amp = {"amp": dtype, "amp_level": level} if level != "O0" else {}
        self._optimizer_state = self._collected = None

    def _task(self, has_metrics: bool = True) -> _Supervised:
        return _Supervised(self._inputs, self._labels, self._loss, self._metrics if has_metrics else ())

    def _ready(self, *needs: str) -> None:
        missing = [name for name in needs if getattr(self, f"_{name}") in (None, ())]
        if missing:
            raise ConfigError(
                "the model is not prepared for this",
                received=f"no {', '.join(missing)}",
                fix="call model.prepare(optimizer, loss, metrics) first",
            )

    def fit(
        self,
        train_data: Data | None = None,
        eval_data: Data | None = None,
        batch_size: int = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | Path | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Callback | Sequence[Callback] | None = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
        seed: int = 0,
    ) -> dict[str, float]:
        """Train; returns the last scores. `train_data` is a Dataset or a DataLoader; frequencies count epochs.

        `save_dir` gets checkpoints every `save_freq` epochs and `final.safetensors`. `accumulate_grad_batches` averages
        the gradients of so many batches for one step of the optimizer. With `verbose` 0 nothing is printed.

        Raises:
            ConfigError: the model is not prepared, or the data are no data set of inputs and labels.
            TrainingError, TrainingStopped: see Trainer.fit.
        """
        self._ready("optimizer", "loss")
        assert self._optimizer is not None
        _check_data(train_data, "fit")
        task, optimizer = self._task(), self._optimizer
        if accumulate_grad_batches != 1:
            optimizer = dataclasses.replace(optimizer, accumulate=accumulate_grad_batches)
        train = self._loader(
            train_data, task, batch_size, num_workers, shuffle=shuffle, drop_last=drop_last, seed=seed
        )
        has_metrics = eval_data is not None and self._metrics
        evaluated = (
            self._loader(eval_data, task, batch_size, num_workers, pad_last=True) if has_metrics else None
        )
        options = TrainOptions(
            epochs=None if num_iters else epochs,
            iters=num_iters or None,
            seed=seed,
            log_every=log_freq,
            eval_every=eval_freq * len(train),
            save_every=save_freq * len(train),
            **self._amp,
        )
        trainer = Trainer(
            self.network,
            task,
            optimizer,
            train,
            options,
            eval=evaluated,
            folder=Path(save_dir) if save_dir else None,
            callbacks=[*([LogLines()] if verbose else []), *_listed(callbacks)],
            partitioner=Partitioner(jax.local_devices()[:1]),
        )
        if (
            self._optimizer_state is not None
            and self._optimizer_state.keys() == trainer.state.optimizer.keys()
        ):
            trainer.start_from(self._optimizer_state)
        with print_log() if verbose else contextlib.nullcontext():
            scores = trainer.fit()
        self._optimizer_state = trainer.state.optimizer
        if save_dir:
            save(self.network.state_dict(), Path(save_dir) / "final.safetensors")
        return scores

    def evaluate(
        self,
        eval_data: Data,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Callback | Sequence[Callback] | None = None,
        num_iters: int | None = None,
    ) -> dict[str, float]:
        """Scores of the metrics by name, and the mean `loss` where a loss is prepared.

        With `verbose` the scores are printed, with 2 also a line every `log_freq` batches. `num_iters` is the most
        batches that are looked at. Callbacks watch training: none can be given here.

        Raises:
            ConfigError: the data are no data set of inputs and labels, or there are callbacks.
        """
        _check_data(eval_data, "evaluate")
        _refuse_callbacks(callbacks, "evaluate")
        metrics = [*self._metrics, *([_MeanLoss(self._loss)] if self._loss else [])]
        task = _Supervised(self._inputs, self._labels, self._loss, tuple(metrics))
        loader = self._loader(eval_data, task, batch_size, num_workers, pad_last=True)
        watched = _Watched(loader, log_freq if verbose == 2 else None, num_iters)
        graphdef, params, buffers = functional_core.split(self.network.eval())
        with print_log() if verbose else contextlib.nullcontext():
            scores = Evaluator(graphdef, task, cast(DataLoader, watched)).run(params, buffers)
            log.info("eval  " + "  ".join(f"{name} {value:.4f}" for name, value in scores.items()))
        return scores

    def predict(
        self,
        test_data: Data | ArrayLike,
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Callback | Sequence[Callback] | None = None,
    ) -> list[Any]:
        """For each output of the network a list of its batches, or with `stack_outputs` one array.

        `test_data` may be an array of inputs. With `verbose` the number of samples is printed.
        """
        _refuse_callbacks(callbacks, "predict")
        task = _Supervised(self._inputs, 0, None, (collect := _Collect(),))
        loader = self._loader(test_data, task, batch_size, num_workers, pad_last=True)
        graphdef, params, buffers = functional_core.split(self.network.eval())
        with print_log() if verbose else contextlib.nullcontext():
            Evaluator(graphdef, task, loader).run(params, buffers)
            outputs = [list(batches) for batches in zip(*collect.batches)]
            log.info(f"predicted {sum(map(len, outputs[0])) if outputs else 0} samples")
        return [np.concatenate(batches) for batches in outputs] if stack_outputs else outputs

    def _loader(
        self,
        data: Data | ArrayLike | None,
        task: _Supervised,
        batch_size: int,
        num_workers: int,
        shuffle: bool = False,
        drop_last: bool = False,
        pad_last: bool = False,
        seed: int = 0,
    ) -> DataLoader:
        if isinstance(data, DataLoader):
            return cast(DataLoader, _NamedLoader(data, task, pad_last))
        return DataLoader(
            cast("Indexed[object]", data),
            pack=task.pack,
            batch_size=batch_size,
            num_workers=num_workers,
            shuffle=shuffle,
            drop_last=drop_last,
            pad_last=pad_last,
            seed=seed,
        )

    # -- one batch at a time ------------------------------------------------------------------------------------------

    def train_batch(self, inputs: Arrays, labels: Arrays = (), update: bool = True) -> float:
        """One step on one batch of arrays; returns the loss. For loops of one's own; `fit` is faster.

        With `update=False` the gradients are kept, and added to those of the next call.

        Raises:
            LabelError: a label is no class.
        """
        self._ready("optimizer", "loss")
        assert self._optimizer is not None
        task = self._task()
        step = functional_core.value_and_grad(
            self.network.train(), lambda layer, batch: task.loss(layer, batch).total
        )
        batch = self._batch(inputs, labels)
        loss, grads = step(batch)
        if np.isnan(float(loss)) and (wrong := find_bad_labels(task, self.network, batch)) is not None:
            raise wrong
        if self._collected is not None:
            grads = jax.tree.map(jnp.add, self._collected, grads)
        self._collected = None if update else grads
        if update:
            self._optimizer.step(self.network, grads)
        return float(loss)

    def eval_batch(self, inputs: Arrays, labels: Arrays = ()) -> dict[str, float]:
        """Scores of one batch of arrays."""
        self._ready("metrics")
        task, batch = self._task(), self._batch(inputs, labels)
        outputs = {k: np.asarray(v) for k, v in task.infer(self.network.eval(), batch).items()}
        scores: dict[str, float] = {}
        for judge in task.metrics(()).values():
            judge.update(outputs, {k: np.asarray(v) for k, v in batch.items()})
            scores |= judge.result()
        return scores

    def predict_batch(self, inputs: Arrays) -> list[np.ndarray]:
        """The outputs for one batch of arrays."""
        outputs = self._task().infer(self.network.eval(), self._batch(inputs, ()))
        return [np.asarray(value) for value in outputs.values()]

    def _batch(self, inputs: Arrays, labels: Arrays) -> dict[str, jax.Array]:
        named = {f"input{n}": jnp.asarray(value) for n, value in enumerate(_listed(inputs))}
        return named | {f"label{n}": jnp.asarray(value) for n, value in enumerate(_listed(labels))}

    # -- files and facts ----------------------------------------------------------------------------------------------

    def save(self, path: str | Path, training: bool = True) -> None:
        """Write the network's arrays to `path`.safetensors and, after `fit`, the optimizer's to `path`.optimizer.
        safetensors.

        Raises:
            ConfigError: `training` is False: a program is written by `framework.jit.save`.
        """
        if not training:
            raise ConfigError(
                "Model.save writes arrays, and no program",
                where="Model.save",
                received="training=False",
                fix="framework.jit.save(model.network.eval(), path, input_spec=[...])",
            )
        save(self.network.state_dict(), Path(f"{path}").with_suffix(".safetensors"))
        if self._optimizer_state is not None:
            save(flatten(self._optimizer_state), Path(f"{path}").with_suffix(_OPTIMIZER))

    def load(self, path: str | Path, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read the network's arrays; with `skip_mismatch` only those that fit by name and shape.

        The state of the optimizer comes with them, where it was saved beside them and one is prepared;
        `reset_optimizer` leaves it out.

        Raises:
            WeightError: the arrays do not fit the network, or those of the optimizer the one that is prepared.
        """
        path = Path(path)
        optimizer_file = path.with_suffix(_OPTIMIZER)
        if self._optimizer is not None:
            self._optimizer_state = None
            if optimizer_file.is_file() and not reset_optimizer:
                groups = self._optimizer.param_groups(self.network)
                trained = {name: p.value for name, p in self.network.named_parameters() if name in groups}
                self._optimizer_state = unflatten(
                    self._optimizer.init(trained, groups), load(optimizer_file), where=optimizer_file
                )
        state = load(path if path.suffix else path.with_suffix(".safetensors"))
        if skip_mismatch:
            shapes = self.network.state_shapes()
            state = {k: v for k, v in state.items() if k in shapes and tuple(np.shape(v)) == shapes[k]}
        self.network.set_state_dict(state, strict=not skip_mismatch)

    def parameters(self) -> list[Parameter]:
        return self.network.parameters()

    def summary(self, input_size: Sizes | None = None, dtype: str | Sequence[str] | None = None) -> str:
        """A table of layers, shapes, parameters and FLOPs; see `framework.summary`. Shape and dtype are by default
        those of the InputSpecs that the model was made with; a size that is open there counts as 1."""
        if input_size is None:
            if not self._specs:
                raise ConfigError(
                    "nothing says how large the input is",
                    where="Model.summary",
                    fix="model.summary((1, 224, 224, 3)), or Model(network, inputs=[InputSpec(...)])",
                )
            input_size = [
                [n if isinstance(n, int) and n > 0 else 1 for n in spec.shape] for spec in self._specs
            ]
            dtype = dtype or [str(np.dtype(spec.dtype)) for spec in self._specs]
        return str(summarize(self.network, input_size, dtype or "float32"))


def _count(fields: Fields) -> int:
    if isinstance(fields, int):
        return fields
    return len(fields) if isinstance(fields, (tuple, list)) else 1


def _listed(value: PyTree) -> Sequence[PyTree]:
    if isinstance(value, (tuple, list)):
        return value
    return () if value is None else (value,)


def _check_data(data: object, where: str) -> None:
    """Raises: ConfigError for arrays, which hold no pairs of an input and its label."""
    if data is None or isinstance(data, (np.ndarray, jax.Array)):
        raise ConfigError(
            f"{where} takes a data set of inputs and labels",
            where=f"Model.{where}",
            received="nothing" if data is None else f"an array {list(data.shape)}",
            allowed="a Dataset or a DataLoader",
            fix=f"model.{where}(framework.io.TensorDataset([x, y]), ...)",
        )


def _refuse_callbacks(callbacks: object, where: str) -> None:
    if callbacks:
        raise ConfigError(
            "callbacks watch training",
            where=f"Model.{where}",
            received=type(callbacks).__name__,
            allowed="callbacks of Model.fit",
            fix=f"use what {where} returns",
        )


class _Watched:
    """The batches of a loader, up to `limit` of them, with a line of the log every so many."""

    def __init__(self, loader: DataLoader, log_every: int | None, limit: int | None) -> None:
        self.loader, self.log_every = loader, log_every
        self.count = len(loader) if limit is None else min(limit, len(loader))

    def batches(self, epoch: int) -> Iterator[Batch]:
        with contextlib.closing(self.loader.batches(epoch)) as batches:
            for number, batch in enumerate(itertools.islice(batches, self.count), start=1):
                yield batch
                if self.log_every and (number % self.log_every == 0 or number == self.count):
                    log.info(f"eval  batch {number}/{self.count}")


class _NamedLoader:
    """A user's DataLoader, its batches of fields named as the task reads them."""

    def __init__(self, loader: DataLoader, task: _Supervised, judged: bool) -> None:
        self.loader, self.task, self.judged = loader, task, judged
        self.batch_size, self.dataset = loader.batch_size, loader.dataset
        self.last_batch_size, self.select_rows = loader.last_batch_size, loader.select_rows

    def __len__(self) -> int:
        return len(self.loader)

    def batches(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        with contextlib.closing(self.loader.batches(epoch, start)) as batches:
            for batch in batches:
                data = self.task.pack(batch.data)
                if self.judged:
                    data["valid"] = np.ones(len(data["input0"]), bool)
                yield dataclasses.replace(batch, data=data)


class _MeanLoss(Metric):
    """The mean of a loss over samples, computed on what inference gave."""

    higher_is_better = False

    def __init__(self, loss_fn: Callable[..., PyTree] | None) -> None:
        assert loss_fn is not None
        self.loss_fn = loss_fn

    def reset(self) -> None:
        self.total, self.count = 0.0, 0

    def compute(self, *args: np.ndarray) -> tuple[float, int]:  # pyright: ignore[reportIncompatibleMethodOverride]
        losses = self.loss_fn(*map(jnp.asarray, args))
        terms = losses if isinstance(losses, (tuple, list)) else (losses,)
        return sum(float(part) for part in terms), len(args[0])

    def update(self, loss: float, count: int) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.total, self.count = self.total + loss * count, self.count + count

    def accumulate(self) -> float:
        return self.total / max(1, self.count)

    def name(self) -> str:
        return "loss"


class _Collect(Metric):
    """Keeps the outputs of every batch."""

    def reset(self) -> None:
        self.batches: list[tuple[np.ndarray, ...]] = []

    def compute(self, *outputs: np.ndarray) -> tuple[tuple[np.ndarray, ...]]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return (outputs,)

    def update(self, outputs: tuple[np.ndarray, ...]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.batches.append(outputs)

    def accumulate(self) -> list[float]:
        return []

    def name(self) -> list[str]:
        return []
