"""paddle.callbacks: what Model.fit, evaluate and predict call on their way."""

from __future__ import annotations

import functools
import importlib
import logging
import math
import numbers
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import jax

from framework.core.errors import ConfigError
from framework.paddle.hapi.progressbar import ProgressBar
from framework.paddle.optimizer.lr import LRScheduler as Schedule

if TYPE_CHECKING:
    from types import ModuleType

    from framework.paddle.hapi.model import Model

log = logging.getLogger("oar")
Logs = dict[str, Any] | None


def _is_first() -> bool:
    """Of several processes that train together the first prints and writes."""
    return jax.process_index() == 0


class Callback:
    """Base: a subclass defines the methods that it needs. `model` is the paddle.Model, `params` has batch_size, epochs,
    steps, verbose and metrics; `logs` has the loss and the metrics by name, `step` and `batch_size`."""

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, object]) -> None:
        self.params = params

    def set_model(self, model: Model | None) -> None:
        self.model = model

    def on_train_begin(self, logs: Logs = None) -> None: ...
    def on_train_end(self, logs: Logs = None) -> None: ...
    def on_eval_begin(self, logs: Logs = None) -> None: ...
    def on_eval_end(self, logs: Logs = None) -> None: ...
    def on_predict_begin(self, logs: Logs = None) -> None: ...
    def on_predict_end(self, logs: Logs = None) -> None: ...
    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None: ...
    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None: ...
    def on_train_batch_begin(self, step: int, logs: Logs = None) -> None: ...
    def on_train_batch_end(self, step: int, logs: Logs = None) -> None: ...
    def on_eval_batch_begin(self, step: int, logs: Logs = None) -> None: ...
    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None: ...
    def on_predict_batch_begin(self, step: int, logs: Logs = None) -> None: ...
    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None: ...


class CallbackList:
    """Several callbacks, called in order."""

    def __init__(
        self, callbacks: Iterable[Callback], model: Model | None | None, params: dict[str, object]
    ) -> None:
        self.callbacks = list(callbacks)
        for callback in self.callbacks:
            callback.set_model(model)
            callback.set_params(params)

    def call(self, name: str, *args: object) -> None:
        for callback in self.callbacks:
            getattr(callback, name)(*args)

    def __getattr__(self, name: str) -> Callable[..., None]:
        """`on_begin(mode, logs)`, `on_epoch_end(epoch, logs)`, `on_batch_end(mode, step, logs)` and their kin, as
        programs of Paddle call them: those of each callback."""
        if not name.startswith("on_"):
            raise AttributeError(name)
        if "epoch" in name or not name.endswith(("on_begin", "on_end", "on_batch_begin", "on_batch_end")):
            return functools.partial(self.call, name)

        def call(mode: str, *args: object) -> None:
            self.call(name.replace("on_", f"on_{mode}_", 1), *args)

        return call


class _Progress:
    """Steps, samples and times of training, evaluating or predicting."""

    def __init__(self, steps: int | None, metrics: list[str], verbose: int) -> None:
        self.steps, self.metrics = steps, metrics
        self.bar = ProgressBar(steps or None, verbose=verbose)
        self.step = self.samples = 0
        self.reset()
        self.mark = time.time()

    def reset(self) -> None:
        self.data_time = self.batch_time = 0.0
        self.count = self.recent = 0

    def began(self) -> None:
        now = time.time()
        self.data_time += now - self.mark
        self.mark = now

    def ended(self, logs: Logs) -> None:
        now, size = time.time(), (logs or {}).get("batch_size", 1)
        self.batch_time += now - self.mark
        self.mark = now
        self.step, self.count = self.step + 1, self.count + 1
        self.samples, self.recent = self.samples + size, self.recent + size


class ProgBarLogger(Callback):
    """Prints loss and metrics every `log_freq` batches: `verbose` 1 as a bar, 2 as lines, 3 with times too, 0 not."""

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        super().__init__()
        self.log_freq, self.verbose = log_freq, verbose
        self.epochs: int | None = None
        self.steps: int | None = None

    def _prints(self) -> bool:
        return bool(self.verbose) and _is_first()

    def on_train_begin(self, logs: Logs = None) -> None:
        self.epochs = self.params["epochs"]
        if self._prints():
            print(
                "The loss value printed in the log is the current step, and the metric is the average value of "
                "previous steps."
            )

    def on_epoch_begin(self, epoch: int | None = None, logs: Logs = None) -> None:
        self.steps, self.epoch = self.params["steps"], epoch or 0
        self._train = _Progress(self.steps, self.params["metrics"], self.verbose)
        if self.epochs and self._prints():
            print(f"Epoch {self.epoch + 1}/{self.epochs}")

    def _show(self, progress: _Progress, logs: Logs) -> None:
        values = [(name, (logs or {})[name]) for name in progress.metrics if name in (logs or {})]
        if self.verbose == 3:
            count, samples = max(progress.count, 1), max(progress.recent, 1)
            seconds = max(progress.data_time + progress.batch_time, 1e-9)
            values.append(("avg_reader_cost", f"{progress.data_time / count:.5f} sec"))
            values.append(("avg_batch_cost", f"{progress.batch_time / count:.5f} sec"))
            values.append(("ips", f"{samples / seconds:.5f} samples/sec"))
            progress.reset()
        progress.bar.update(progress.step, values)

    def _batch_ended(self, progress: _Progress, logs: Logs) -> None:
        progress.ended(logs)
        between = progress.steps is None or progress.step < progress.steps
        if self._prints() and progress.step % self.log_freq == 0 and between:
            self._show(progress, logs)

    def on_train_batch_begin(self, step: int, logs: Logs = None) -> None:
        self._train.began()

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        self._batch_ended(self._train, logs)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self._prints() and self.steps is not None:
            self._show(self._train, logs)

    def on_eval_begin(self, logs: Logs = None) -> None:
        given = logs or {}
        self._eval = _Progress(given.get("steps"), given.get("metrics", []), self.verbose)
        if self._prints():
            print("Eval begin...")

    def on_eval_batch_begin(self, step: int, logs: Logs = None) -> None:
        self._eval.began()

    def on_eval_batch_end(self, step: int, logs: Logs = None) -> None:
        self._batch_ended(self._eval, logs)

    def on_eval_end(self, logs: Logs = None) -> None:
        if self._prints() and self._eval.steps is not None:
            self._show(self._eval, logs)
            print(f"Eval samples: {self._eval.samples}")

    def on_predict_begin(self, logs: Logs = None) -> None:
        given = logs or {}
        self._test = _Progress(given.get("steps"), given.get("metrics", []), self.verbose)
        if self._prints():
            print("Predict begin...")

    def on_predict_batch_begin(self, step: int, logs: Logs = None) -> None:
        self._test.began()

    def on_predict_batch_end(self, step: int, logs: Logs = None) -> None:
        self._batch_ended(self._test, logs)

    def on_predict_end(self, logs: Logs = None) -> None:
        if self._prints():
            if self._test.step % self.log_freq != 0 or self.verbose == 1:
                self._show(self._test, logs)
            print(f"Predict samples: {self._test.samples}")


class ModelCheckpoint(Callback):
    """Saves the model to `save_dir` every `save_freq` epochs, and as `final` at the end."""

    def __init__(self, save_freq: int = 1, save_dir: str | None = None) -> None:
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def on_epoch_begin(self, epoch: int | None = None, logs: Logs = None) -> None:
        self.epoch = epoch or 0

    def _save(self, name: object) -> None:
        if self.model and self.save_dir and _is_first():
            path = f"{self.save_dir}/{name}"
            print(f"save checkpoint at {os.path.abspath(path)}")
            self.model.save(path)

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self.epoch % self.save_freq == 0:
            self._save(epoch)

    def on_train_end(self, logs: Logs = None) -> None:
        self._save("final")


class LRScheduler(Callback):
    """Moves the optimizer's learning rate schedule on after each batch, or after each epoch."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        if by_step and by_epoch:
            raise ValueError("LRScheduler: give by_step or by_epoch, not both")
        super().__init__()
        self.by_step, self.by_epoch = by_step, by_epoch

    def _move(self) -> None:
        optimizer = self.model._optimizer
        if optimizer is not None and isinstance(optimizer._learning_rate, Schedule):
            optimizer._learning_rate.step()

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        if self.by_epoch:
            self._move()

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        if self.by_step:
            self._move()


def _monitored(logs: Logs, name: str, where: str) -> float | None:
    """The number that a callback follows; None with a warning where there is none."""
    value = (logs or {}).get(name)
    if isinstance(value, list | tuple) and value:
        value = value[0]
    if isinstance(value, numbers.Real):
        return float(value)
    log.warning("%s follows %r, but the evaluation gave %s", where, name, sorted(logs or {}))
    return None


def _rises(mode: str, monitor: str, where: str) -> bool:
    """Whether greater is better."""
    if mode not in ("auto", "min", "max"):
        log.warning("%s: the mode %r is unknown; auto is taken", where, mode)
        mode = "auto"
    return mode == "max" or (mode == "auto" and "acc" in monitor)


class EarlyStopping(Callback):
    """Ends the training when a metric of the evaluation has not become better, by more than `min_delta`, in `patience`
    evaluations; the best model is saved as `best_model` in fit's `save_dir`."""

    def __init__(
        self,
        monitor: str = "loss",
        mode: str = "auto",
        patience: int = 0,
        verbose: int = 1,
        min_delta: float = 0,
        baseline: float | None = None,
        save_best_model: bool = True,
    ) -> None:
        super().__init__()
        self.monitor, self.patience, self.verbose = monitor, patience, verbose
        self.min_delta, self.baseline, self.save_best_model = abs(min_delta), baseline, save_best_model
        self._sign = 1 if _rises(mode, monitor, "EarlyStopping") else -1
        self.wait_epoch = self.stopped_epoch = 0
        self.save_dir: str | None = None
        self.best_value = 0.0

    def on_train_begin(self, logs: Logs = None) -> None:
        self.wait_epoch = 0
        self.best_value = self.baseline if self.baseline is not None else -self._sign * math.inf

    def on_eval_end(self, logs: Logs = None) -> None:
        current = _monitored(logs, self.monitor, "EarlyStopping")
        if current is None:
            return
        saves = self.save_best_model and self.save_dir is not None
        path = os.path.join(self.save_dir or "", "best_model")
        if self._sign * (current - self.best_value) > self.min_delta:
            self.best_value, self.wait_epoch = current, 0
            if saves:
                self.model.save(path)
        else:
            self.wait_epoch += 1
        if self.wait_epoch >= self.patience:
            self.model.stop_training = True
            if self.verbose > 0:
                print(f"Epoch {self.stopped_epoch + 1}: Early stopping.")
                if saves:
                    print(f"Best checkpoint has been saved at {os.path.abspath(path)}")
        self.stopped_epoch += 1


class ReduceLROnPlateau(Callback):
    """Multiplies a constant learning rate by `factor` when a metric of the evaluation has not become better in
    `patience` evaluations."""

    def __init__(
        self,
        monitor: str = "loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 1,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0,
    ) -> None:
        super().__init__()
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be below 1, received {factor}")
        self.monitor, self.factor, self.patience, self.verbose = monitor, factor, patience, verbose
        self.mode, self.min_delta, self.cooldown, self.min_lr = mode, min_delta, cooldown, min_lr
        self.epoch = 0
        self._reset()

    def _reset(self) -> None:
        self._sign = 1 if _rises(self.mode, self.monitor, "ReduceLROnPlateau") else -1
        self.best = -self._sign * math.inf
        self.cooldown_counter = self.wait = 0

    def on_train_begin(self, logs: Logs = None) -> None:
        self._reset()

    def on_eval_end(self, logs: Logs = None) -> None:
        current = _monitored(logs, self.monitor, "ReduceLROnPlateau")
        if current is None:
            return
        optimizer = self.model._optimizer
        if isinstance(optimizer._learning_rate, Schedule):
            log.warning("ReduceLROnPlateau does nothing: a schedule decides on the learning rate")
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self._sign * (current - self.best) > self.min_delta:
            self.best, self.wait = current, 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience and optimizer.get_lr() > self.min_lr:
                lower = max(optimizer.get_lr() * self.factor, self.min_lr)
                optimizer.set_lr(lower)
                if self.verbose > 0 and _is_first():
                    print(f"\nEpoch {self.epoch + 1}: ReduceLROnPlateau reducing learning rate to {lower}.")
                self.cooldown_counter, self.wait = self.cooldown, 0
        self.epoch += 1

    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0


class _Recorder(Callback):
    """Records loss and metrics of each training batch and of each evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch = self.train_step = 0
        self._fits = False
        self._eval_metrics: list[str] = []

    def record(self, mode: str, step: int, values: dict[str, float]) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def _record(self, mode: str, step: int, names: list[str], logs: Logs) -> None:
        values = {}
        for name in names:
            value = (logs or {}).get(name)
            value = value[0] if isinstance(value, list | tuple) and value else value
            if isinstance(value, numbers.Real):
                values[f"{mode}/{name}"] = float(value)
        if _is_first():
            self.record(mode, step, values)

    def on_train_begin(self, logs: Logs = None) -> None:
        self.train_step, self._fits = 0, True

    def on_epoch_begin(self, epoch: int | None = None, logs: Logs = None) -> None:
        self.epoch = epoch or 0

    def on_train_batch_end(self, step: int, logs: Logs = None) -> None:
        self.train_step += 1
        self._record("train", self.train_step, self.params["metrics"], logs)

    def on_eval_begin(self, logs: Logs = None) -> None:
        self._eval_metrics = (logs or {}).get("metrics", [])

    def on_eval_end(self, logs: Logs = None) -> None:
        self._record("eval", self.epoch, self._eval_metrics, logs)
        if not self._fits:
            self.close()

    def on_train_end(self, logs: Logs = None) -> None:
        self._fits = False
        self.close()


def _extra(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise ConfigError(
            "a package that this callback writes with is not installed",
            received=f"no {name}",
            fix=f"pip install {name}",
        ) from None


class VisualDL(_Recorder):
    """Writes loss and metrics for `visualdl --logdir`; needs the package visualdl."""

    def __init__(self, log_dir: str) -> None:
        super().__init__()
        self.log_dir = log_dir
        self._writer: Any = None

    def record(self, mode: str, step: int, values: dict[str, float]) -> None:
        if self._writer is None:
            self._writer = _extra("visualdl").LogWriter(self.log_dir)
        for tag, value in values.items():
            self._writer.add_scalar(tag=tag, step=step, value=value)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


class WandbCallback(_Recorder):
    """Sends loss and metrics to Weights & Biases; needs the package wandb. Arguments are those of `wandb.init`."""

    def __init__(
        self,
        project: str | None = None,
        entity: str | None = None,
        name: str | None = None,
        dir: str | None = None,
        mode: str | None = None,
        job_type: str | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__()
        self.wandb = _extra("wandb")
        self.wandb_args = dict(
            project=project, entity=entity, name=name, dir=dir, mode=mode, job_type=job_type, **kwargs
        )
        self._run: Any = None
        _ = self.run

    @property
    def run(self) -> Any:
        """The run that is written to: one that is open already, or a new one."""
        if self._run is None and _is_first():
            self._run = self.wandb.run or self.wandb.init(**self.wandb_args)
        return self._run

    def on_train_begin(self, logs: Logs = None) -> None:
        super().on_train_begin(logs)
        if _is_first():
            for metric, by in (("train/*", "train/step"), ("eval/*", "epoch")):
                self.run.define_metric(by)
                self.run.define_metric(metric, step_metric=by)

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().on_epoch_begin(epoch, logs)

    def record(self, mode: str, step: int, values: dict[str, float]) -> None:
        self.run.log({**values, "train/step" if mode == "train" else "epoch": step})

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None


__all__ = [
    "Callback",
    "EarlyStopping",
    "LRScheduler",
    "ModelCheckpoint",
    "ProgBarLogger",
    "ReduceLROnPlateau",
    "VisualDL",
    "WandbCallback",
]


def completed(
    callbacks: Sequence[Callback], verbose: int, log_freq: int, save_freq: int, save_dir: str | None
) -> list[Callback]:
    """These callbacks with those that every run has: a progress bar where it is verbose, checkpoints, the schedule."""
    calls = list(callbacks)
    if verbose and not any(isinstance(c, ProgBarLogger) for c in calls):
        calls.insert(0, ProgBarLogger(log_freq, verbose=verbose))
    if not any(isinstance(c, ModelCheckpoint) for c in calls):
        calls.append(ModelCheckpoint(save_freq, save_dir))
    for call in calls:
        if isinstance(call, EarlyStopping):
            call.save_dir = save_dir
    if not any(isinstance(c, LRScheduler) for c in calls):
        calls.append(LRScheduler())
    return calls


def config_callbacks(
    callbacks: Callback | Sequence[Callback] | None = None,
    model: Model | None = None,
    batch_size: int | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    log_freq: int = 2,
    verbose: int = 2,
    save_freq: int = 1,
    save_dir: str | None = None,
    metrics: Sequence[str] | None = None,
    mode: str = "train",
) -> CallbackList:
    """The list of callbacks of a run, as `Model.fit` makes it."""
    named = list(metrics or []) if mode != "test" else []
    params: dict[str, object] = {
        "batch_size": batch_size,
        "epochs": epochs,
        "steps": steps,
        "verbose": verbose,
        "metrics": named,
    }
    listed = [callbacks] if isinstance(callbacks, Callback) else callbacks or []
    return CallbackList(completed(listed, verbose, log_freq, save_freq, save_dir), model, params)
