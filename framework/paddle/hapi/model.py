"""paddle.Model: training, evaluating and predicting with a network, and the files of it."""

from __future__ import annotations

import inspect
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from framework.paddle._kernel import tape
from framework.paddle._kernel.arguments import DTypeLike, TensorLike
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Parameter, Tensor, as_array, wrap
from framework.paddle.amp import GradScaler, auto_cast, decorate
from framework.paddle.amp.casting import available
from framework.paddle.files import load, save
from framework.paddle.hapi.callbacks import (
    Callback,
    CallbackList,
    EarlyStopping,
    completed,
)
from framework.paddle.hapi.summary import summary
from framework.paddle.io import DataLoader, Dataset, DistributedBatchSampler
from framework.paddle.jit.spec import InputSpec
from framework.paddle.metric import Metric
from framework.paddle.nn.layer import Layer
from framework.paddle.utils.structure import flatten

if TYPE_CHECKING:
    from framework.paddle.io.dataset import Dataset
    from framework.paddle.optimizer.base import Optimizer

log = logging.getLogger("oar")
_LEVELS = ("O0", "O1", "O2")
_LISTS = ("custom_white_list", "custom_black_list")
_SCALER = (
    *("init_loss_scaling", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf"),
    "use_dynamic_loss_scaling",
)


def _list(value: object) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _tensors(values: object) -> list[Tensor]:
    return [value if isinstance(value, Tensor) else wrap(as_array(value)) for value in _list(values)]


def _arrays(values: object) -> list[Any]:
    return [value.numpy() if isinstance(value, Tensor) else value for value in _list(values)]


def _all_gather(x: Tensor) -> Tensor:
    """The values of all processes along the first axis, of which packages make metrics."""
    from framework.paddle import concat
    from framework.paddle.distributed import all_gather

    gathered: list[Tensor] = []
    all_gather(gathered, x)
    return concat(gathered, axis=0)


def to_list(value: object) -> list[object] | None:
    """A list or tuple as a list, one thing as a list of it, None as it is."""
    if value is None:
        return None
    return list(value) if isinstance(value, list | tuple) else [value]


class Model:
    """A network with what it is trained by.

    Args:
        network: a Layer.
        inputs, labels: InputSpecs, or lists of them; how many parts of a batch are inputs. Without them the arguments
            of `network.forward` count.
    """

    def __init__(self, network: Layer, inputs: Any = None, labels: TensorLike | None = None) -> None:
        self.mode, self.network = "train", network
        self._loss: Any = None
        self._optimizer: Any = None
        self._metrics: list[Metric] = []
        self._scaler: GradScaler | None = None
        self._amp_level = "O0"
        self._amp_lists: dict[str, Any] = {}
        self._amp_configs: dict[str, Any] = {}
        self._accumulate = 1
        self.num_iters: int | None = None
        self.stop_training = False
        self._inferred = inputs is None
        self._inputs = self._own_inputs() if inputs is None else _specs(inputs)
        self._labels = _specs(labels)

    def _own_inputs(self) -> list[InputSpec]:
        names = [
            name
            for name, parameter in inspect.signature(self.network.forward).parameters.items()
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        ]
        return [InputSpec([None], "float32", name) for name in names]

    # One batch

    def train_batch(self, inputs: TensorLike, labels: TensorLike | None = None, update: bool = True) -> Any:
        """Forward, backward and, with `update`, a step of the optimizer; returns the losses as arrays, with metrics
        (losses, metrics)."""
        if self._optimizer is None:
            raise AssertionError("Model.train_batch: call model.prepare(optimizer, loss) first")
        self.network.train()
        self.mode = "train"
        given, truth = _tensors(inputs), _tensors(labels)
        self._learn_inputs(given)
        amp = self._amp_level != "O0"
        if amp and self._scaler is None:
            self._scaler = GradScaler(**self._amp_configs)
        with auto_cast(enable=amp, level=self._amp_level, **self._amp_lists):
            outputs = self.network(*given)
        losses = _list(self._loss(*_list(outputs), *truth))
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        if amp and self._scaler is not None:
            scaled = self._scaler.scale(total)
            scaled.backward()
            if update:
                self._scaler.minimize(self._optimizer, scaled)
        else:
            total.backward()
            if update:
                self._optimizer.minimize(total)
        if update:
            self.network.clear_gradients()
        metrics = self._measure(outputs, truth)
        return (_arrays(losses), metrics) if metrics else _arrays(losses)

    @tape.no_grad()
    def eval_batch(self, inputs: TensorLike, labels: TensorLike | None = None) -> Any:
        """Losses as arrays, metrics, or (losses, metrics), as far as there are any."""
        self.network.eval()
        self.mode = "eval"
        given, truth = _tensors(inputs), _tensors(labels)
        self._learn_inputs(given)
        outputs = self.network(*given)
        losses = _arrays(self._loss(*_list(outputs), *truth)) if self._loss else []
        metrics = self._measure(outputs, truth)
        if self._loss and metrics:
            return losses, metrics
        return losses if self._loss else metrics

    @tape.no_grad()
    def predict_batch(self, inputs: TensorLike) -> list[np.ndarray]:
        """The outputs as arrays."""
        self.network.eval()
        self.mode = "test"
        given = _tensors(inputs)
        self._learn_inputs(given)
        return _arrays(self.network(*given))

    def _measure(self, outputs: object, labels: Sequence[Tensor]) -> list[Any]:
        with tape.no_grad():
            found = []
            for metric in self._metrics:
                computed = metric.compute(*_list(outputs), *labels)
                found.append(metric.update(*_arrays(computed)))
        return found

    def _learn_inputs(self, inputs: Sequence[Tensor]) -> None:
        """Take shapes and types from the first batch, for `save(training=False)` and `summary`."""
        if self._inferred and self._inputs and list(self._inputs[0].shape) == [-1]:
            names = [spec.name for spec in self._inputs]
            self._inputs = [
                InputSpec([None, *tensor.shape[1:]], tensor.dtype, name)
                for tensor, name in zip(inputs, names, strict=False)
            ]

    # Settings

    def prepare(
        self,
        optimizer: Optimizer | None = None,
        loss: Callable[..., object] | None = None,
        metrics: Metric | Sequence[Metric] | None = None,
        amp_configs: str | Mapping[str, object] | None = None,
    ) -> None:
        """Say what the network is trained by.

        Args:
            loss: called with the outputs and the labels.
            amp_configs: a level ("O1", "O2"), or a dict of `level`, `custom_white_list`, `custom_black_list` and the
                arguments of paddle.amp.GradScaler.
        """
        if loss is not None and not callable(loss):
            raise TypeError(f"Model.prepare: loss is a Layer or a function, received {type(loss).__name__}")
        for metric in _list(metrics):
            assert isinstance(metric, Metric), (
                f"Model.prepare: {type(metric).__name__} is no paddle.metric.Metric"
            )
        self._optimizer, self._loss, self._metrics = optimizer, loss, _list(metrics)
        self._prepare_amp(amp_configs)

    def _prepare_amp(self, configs: Any) -> None:
        settings = {"level": configs} if isinstance(configs, str) else dict(configs or {"level": "O0"})
        level = settings.pop("level", "O1")
        if level not in _LEVELS:
            raise ValueError(f"Model.prepare: the level of amp_configs is O0, O1 or O2, received {level!r}")
        self._amp_level, self._scaler = level, None
        self._amp_lists = {name: settings.pop(name) for name in _LISTS if name in settings}
        self._amp_configs = {name: settings.pop(name) for name in _SCALER if name in settings}
        if settings:
            raise ValueError(f"Model.prepare: amp_configs has no {sorted(settings)[0]!r}")
        if level == "O2" and available() and self._optimizer is not None:
            decorate(self.network, self._optimizer, level="O2")

    def parameters(self, *args: Any, **kwargs: Any) -> list[Parameter]:
        return self.network.parameters(*args, **kwargs)

    # Whole data sets

    def fit(
        self,
        train_data: Dataset | Iterable[object] | None = None,
        eval_data: Dataset | Iterable[object] | None = None,
        batch_size: int | Sequence[int] = 1,
        epochs: int = 1,
        eval_freq: int = 1,
        log_freq: int = 10,
        save_dir: str | None = None,
        save_freq: int = 1,
        verbose: int = 2,
        drop_last: bool = False,
        shuffle: bool = True,
        num_workers: int = 0,
        callbacks: Callback | Sequence[Callback] | None = None,
        accumulate_grad_batches: int = 1,
        num_iters: int | None = None,
    ) -> None:
        """Train.

        Args:
            train_data, eval_data: a Dataset, or a DataLoader or anything that gives batches.
            batch_size: of Datasets; two numbers for training and evaluating.
            eval_freq: epochs between evaluations.
            save_dir: where `0.pdparams`, `0.pdopt`, … and `final.pdparams` go, every `save_freq` epochs.
            verbose: see ProgBarLogger.
            accumulate_grad_batches: batches whose gradients are added for one step.
            num_iters: batches to train with; takes the place of `epochs`.
        """
        assert train_data is not None, "Model.fit: train_data is missing"
        sizes = [batch_size, batch_size] if isinstance(batch_size, int) else list(batch_size)
        assert len(sizes) == 2, f"Model.fit: batch_size is one number or two, received {batch_size}"
        train = _loader(train_data, sizes[0], num_workers, shuffle, drop_last)
        evaluation = None if eval_data is None else _loader(eval_data, sizes[1], num_workers)
        self._accumulate = accumulate_grad_batches
        steps = _length(train)
        self.num_iters = num_iters
        if num_iters is not None and steps is not None:
            assert num_iters > 0, f"Model.fit: num_iters must be above 0, received {num_iters}"
            epochs = num_iters // steps + 1
            steps = min(num_iters, steps)
        calls = self._callbacks(
            callbacks,
            {"epochs": epochs, "steps": steps, "verbose": verbose, "metrics": self._metrics_name()},
            log_freq,
            save_freq,
            save_dir,
        )
        if evaluation is None and any(isinstance(c, EarlyStopping) for c in calls.callbacks):
            log.warning("EarlyStopping does nothing without eval_data")
        logs: dict[str, Any] = {}
        calls.call("on_train_begin", None)
        for epoch in range(epochs):
            calls.call("on_epoch_begin", epoch, None)
            logs, _ = self._run(train, calls, "train")
            calls.call("on_epoch_end", epoch, logs)
            if evaluation is not None and epoch % eval_freq == 0:
                self._evaluate(evaluation, _length(evaluation), calls)
            if self.stop_training:
                break
        calls.call("on_train_end", logs)

    def evaluate(
        self,
        eval_data: Dataset | Iterable[object] | None,
        batch_size: int = 1,
        log_freq: int = 10,
        verbose: int = 2,
        num_workers: int = 0,
        callbacks: Callback | Sequence[Callback] | None = None,
        num_iters: int | None = None,
    ) -> dict[str, Any]:
        """Loss and metrics by name."""
        loader = _loader(eval_data, batch_size, num_workers)
        params = {"epochs": None, "steps": None, "verbose": verbose, "metrics": self._metrics_name()}
        calls = self._callbacks(callbacks, params, log_freq)
        steps = _length(loader)
        self.num_iters = num_iters
        if num_iters is not None and steps is not None:
            assert num_iters > 0, f"Model.evaluate: num_iters must be above 0, received {num_iters}"
            self.num_iters = steps = min(num_iters, steps)
        logs = self._evaluate(loader, steps, calls)
        return {name: logs[name] for name in self._metrics_name()}

    def _evaluate(self, loader: Iterable[object], steps: int | None, calls: CallbackList) -> dict[str, Any]:
        calls.call("on_eval_begin", {"steps": steps, "metrics": self._metrics_name()})
        logs, _ = self._run(loader, calls, "eval")
        calls.call("on_eval_end", logs)
        return logs

    def predict(
        self,
        test_data: Dataset | Iterable[object],
        batch_size: int = 1,
        num_workers: int = 0,
        stack_outputs: bool = False,
        verbose: int = 1,
        callbacks: Callback | Sequence[Callback] | None = None,
    ) -> list[Any]:
        """For each output of the network its arrays, one a batch; with `stack_outputs` one array of all."""
        loader = _loader(test_data, batch_size, num_workers)
        params = {"epochs": None, "steps": None, "verbose": verbose, "metrics": []}
        calls = self._callbacks(callbacks, params, 2)
        calls.call("on_predict_begin", {"steps": _length(loader)})
        logs, outputs = self._run(loader, calls, "predict")
        found: list[Any] = list(zip(*outputs, strict=True))
        if stack_outputs:
            found = [np.vstack(parts) for parts in found]
        calls.call("on_predict_end", logs)
        return found

    def _run(self, loader: Any, calls: CallbackList, mode: str) -> tuple[dict[str, Any], list[Any]]:
        """One pass: the last logs, and of predicting the outputs."""
        logs: dict[str, Any] = {}
        outputs: list[Any] = []
        count, steps = len(self._inputs), _length(loader)
        for step, batch in enumerate(loader):
            data = flatten(batch)
            calls.call(f"on_{mode}_batch_begin", step, logs)
            if mode == "predict":
                outputs.append(self.predict_batch(data[:count] if count else data))
            else:
                if mode == "train":
                    update = (step + 1) % self._accumulate == 0 or step + 1 == steps
                    result = self.train_batch(data[:count], data[count:], update)
                else:
                    result = self.eval_batch(data[:count], data[count:])
                logs.update(zip(self._metrics_name(), self._numbers(result), strict=True))
            logs.update(step=step, batch_size=data[0].shape[0])
            calls.call(f"on_{mode}_batch_end", step, logs)
            if self.num_iters is not None:
                self.num_iters -= 1
                if self.num_iters <= 0:
                    self.stop_training, self.num_iters = True, None
                    break
        for metric in self._metrics:
            metric.reset()
        return logs, outputs

    def _numbers(self, result: Any) -> list[Any]:
        """The losses of a batch, and the metrics so far."""
        found: list[Any] = []
        if self._loss:
            losses = result[0] if self._metrics else result
            found.append([float(np.asarray(loss).reshape(())) for loss in losses])
        for metric in self._metrics:
            found.extend(_list(metric.accumulate()))
        return found

    def _metrics_name(self) -> list[str]:
        names = ["loss"] if self._loss else []
        return names + [name for metric in self._metrics for name in _list(metric.name())]

    def _callbacks(
        self,
        given: object,
        params: dict[str, Any],
        log_freq: int,
        save_freq: int = 1,
        save_dir: str | None = None,
    ) -> CallbackList:
        return CallbackList(
            completed(_list(given), params["verbose"], log_freq, save_freq, save_dir),
            self,
            {"batch_size": None, **params},
        )

    # Files

    def save(self, path: str, training: bool = True) -> None:
        """Write `path.pdparams` and `path.pdopt`, or with `training=False` the exported network."""
        if not training:
            from framework.paddle import jit

            if self._inferred and any(list(spec.shape) == [-1] for spec in self._inputs):
                raise RuntimeError(
                    "Model.save(training=False): the shapes of the inputs are not known: give InputSpecs to "
                    "Model(network, inputs), or run a batch first"
                )
            jit.save(self.network, path, input_spec=self._inputs)
            return
        save(self.network.state_dict(), path + ".pdparams")
        if self._optimizer is not None and (state := self._optimizer.state_dict()):
            save(state, path + ".pdopt")
        if self._scaler is not None and (state := self._scaler.state_dict()):
            save(state, path + ".pdscaler")

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Read `path.pdparams` and, unless `reset_optimizer`, `path.pdopt`.

        Raises:
            ValueError: a parameter is missing or has another shape, unless `skip_mismatch` leaves it as it is.
        """
        path, suffix = os.path.splitext(path)
        if suffix not in ("", ".pdparams", ".pdopt", ".pdmodel"):
            path += suffix
        state = load(path + ".pdparams")
        for key, tensor in self.network.state_dict().items():
            value = state.get(key)
            if value is None or list(value.shape) != list(tensor.shape):
                problem = (
                    f"{key} is not in the file"
                    if value is None
                    else f"{key} has the shape {list(value.shape)} in the file, here {tensor.shape}"
                )
                if not skip_mismatch:
                    raise ValueError(f"Model.load, {path}.pdparams: {problem}")
                log.warning("Skip loading for %s: %s", key, problem)
                reset_optimizer = True
                continue
            tensor._value = as_array(value, tensor.dtype)
        if self._scaler is not None and os.path.exists(path + ".pdscaler"):
            self._scaler.load_state_dict(load(path + ".pdscaler", return_numpy=True))
        if self._optimizer is not None and not reset_optimizer and os.path.exists(path + ".pdopt"):
            self._optimizer.set_state_dict(load(path + ".pdopt"))

    def summary(self, input_size: object = None, dtype: DTypeLike | None = None) -> dict[str, int]:
        """Print the table of layers; see paddle.summary."""
        assert input_size is not None or self._inputs, "Model.summary: give input_size, or inputs to Model"
        return summary(self.network, input_size if input_size is not None else self._inputs, dtypes=dtype)


def _specs(specs: object) -> list[InputSpec]:
    found = list(specs.values()) if isinstance(specs, dict) else _list(specs)
    for place, spec in enumerate(found):
        assert isinstance(spec, InputSpec), f"Model: inputs and labels are InputSpecs, received {spec!r}"
        if spec.name is None:
            raise ValueError(f"Model: InputSpec {place} has no name: {spec}")
    return found


def _loader(
    data: object, batch_size: int, num_workers: int, shuffle: bool = False, drop_last: bool = False
) -> Any:
    if not isinstance(data, Dataset):
        return data
    sampler = DistributedBatchSampler(data, batch_size, shuffle=shuffle, drop_last=drop_last)
    return DataLoader(data, batch_sampler=sampler, num_workers=num_workers)


def _length(loader: Any) -> int | None:
    """Batches in a pass; None where that is not known."""
    try:
        return len(loader)
    except (TypeError, ValueError, RuntimeError, NotImplementedError):
        return None


_complete(__name__)
