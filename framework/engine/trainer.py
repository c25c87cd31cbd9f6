"""The Trainer: steps, evaluations, checkpoints and the log of one run, on one or several devices.

What is trained is a Task, a Layer and a DataLoader. A run that was killed goes on from its last checkpoint with the
same numbers: order and augmentation of samples depend on (seed, epoch, index), the keys of a step on (seed, step).
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections import deque
from collections.abc import Generator, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from pathlib import Path
from typing import cast

import jax
import numpy as np

from framework.core.errors import ConfigError, OarError
from framework.core.types import JSON, PyTree
from framework.distributed import Partitioner
from framework.distributed.agreement import agree
from framework.distributed.collectives import compile_together
from framework.distributed.processes import Heartbeat, is_main
from framework.engine.callbacks import Callback
from framework.engine.compile_notice import CompileNotice
from framework.engine.evaluator import EvaluationCancelled, Evaluator
from framework.engine.experiment import TrainOptions
from framework.engine.label_report import find_bad_labels, name_samples
from framework.engine.saved_state import load_state, read_saved, state_besides
from framework.engine.step import TrainState, init_state, train_step, trained_graph
from framework.engine.stopping import AgreedStop, StopSignals, TrainingStopped
from framework.engine.task import Task
from framework.io.checkpoint import CHECKPOINTS, CheckpointStore, flatten
from framework.io.device import prefetch_to_device, without_texts
from framework.io.loader import DataLoader
from framework.io.recipe import Batch
from framework.nn import functional_core
from framework.nn.host_embedding import host_tables
from framework.nn.layer import Layer
from framework.optimizer.base import Optimizer
from framework.optimizer.lr import PlateauState, ReduceOnPlateau

log = logging.getLogger("oar")


DIVERGED = "training has diverged"
ROWS = ".rows.npz"
"""Of a table on the host in a checkpoint, behind the name of its layer."""


class TrainingError(OarError, RuntimeError):
    """Training cannot go on: the loss is no number any more, or labels are no classes."""


class Trainer:
    """Trains `model`, in which the trained parameters are afterwards.

    Args:
        model: The layer; its current values are the start.
        optimizer: One of framework.optimizer.
        train, eval: Loaders. `train` drops a last batch that is not full; `eval` pads it.
        options: Length, precision, intervals.
        folder: Where checkpoints go (`<folder>/checkpoints`); None keeps none.
        labels: The names of the classes, for metrics and checkpoints.
        eval_labels: Those of `eval`, where it has more: classes that the model does not know.
        callbacks: Run in this order.
        about: Plain data that is kept in every checkpoint.
        partitioner: Where batches and state lie; None divides batches over all devices of the default kind.

    Raises:
        ConfigError: the batch cannot be divided among the devices, or nothing says how long to train.
    """

    def __init__(
        self,
        model: Layer,
        task: Task,
        optimizer: Optimizer,
        train: DataLoader,
        options: TrainOptions,
        *,
        eval: DataLoader | None = None,
        folder: Path | None = None,
        labels: tuple[str, ...] = (),
        eval_labels: tuple[str, ...] | None = None,
        callbacks: Sequence[Callback] = (),
        about: dict[str, JSON] | None = None,
        partitioner: Partitioner | None = None,
    ) -> None:
        self.model, self.task, self.train, self.options = model, task, train, options
        first = is_main()
        self.callbacks = tuple(one for one in callbacks if first or one.every_process)
        self.labels, self.about = labels, about or {}
        self.folder = folder
        self.store = CheckpointStore(folder / CHECKPOINTS, options.keep) if folder else None
        self.batch_size = int(train.batch_size or 1)
        self.steps_per_epoch = len(train)
        self.total_steps = _length(options, train)
        self.stop, self.since_best, self.best_score = False, 0, None

        self.partitioner = partitioner or Partitioner()
        self.partitioner.check_batch_size(self.batch_size)
        if train.last_batch_size is not None:
            self.partitioner.check_batch_size(train.last_batch_size, last=True)
        self.partitioner.set_model(model)
        if (rows := self.partitioner.local_rows(self.batch_size)) is not None:
            train.select_rows(rows)

        # An epoch may end within a step of several batches: counted in whole ones, 10 batches by 4 would be 2 steps.
        updates = (
            max(1, self.total_steps // optimizer.accumulate),
            max(1, self.steps_per_epoch / optimizer.accumulate),
        )
        self._open_schedule, self._accumulate = optimizer.schedule, optimizer.accumulate
        self.schedule = optimizer.schedule.resolve(*updates)
        watched = self.schedule.plateau
        self.plateau = PlateauState(watched) if watched is not None else None
        self._check_plateau(watched, eval is not None)
        self.graphdef, self.param_groups = trained_graph(model, optimizer, options)
        tables = self.table_groups = optimizer.table_groups(model)
        self.host_tables = host_tables(model)
        if self.host_tables and self.partitioner.several_processes:
            raise ConfigError(
                "a table in the memory of the host belongs to one process",
                where=next(iter(self.host_tables)),
                received="several processes",
                allowed="one process, with all of its devices",
                fix="nn.ShardedEmbedding is divided among the devices of all processes",
            )
        # Copies: the step consumes its input, and the model keeps its own arrays until training ends.
        self.state: TrainState = self.partitioner.build(
            lambda params, buffers: init_state(
                params, buffers, self.param_groups, optimizer, options, tables
            ),
            *self.partitioner.init_arrays(model),
        )
        batch = self.batch_size
        factor = self._rate_factor = batch / options.lr_batch_size if options.lr_batch_size else 1.0
        if factor != 1.0:
            log.info(f"learning rate times {factor:g}: batch size {batch} instead of {options.lr_batch_size}")
        self.step_fn = train_step(
            self.graphdef,
            task,
            optimizer,
            self.schedule,
            self.param_groups,
            options,
            self.partitioner.devices[0],
            factor,
            self.partitioner.step_shardings(self.state, list(self.param_groups)),
            tables,
        )
        self._compile_notice = CompileNotice("the training step")
        # Who trains by hand gives what has a loss, and need not derive from Task.
        learns = isinstance(task, Task)
        self._experience = task.experience(self.graphdef, train.dataset, options.seed) if learns else None
        if self._experience is not None and self.partitioner.several_processes:
            raise ConfigError(
                "a model that learns from what it does is trained by one process",
                where="task",
                received=f"several processes, {type(task).__name__}",
                allowed="one process, with all of its devices",
            )
        self.evaluator = None
        if eval is not None:
            names = labels if eval_labels is None else eval_labels
            graphdef = functional_core.graph_def(model.eval())
            self.evaluator = Evaluator(graphdef, task, eval, names, self.partitioner)
        self._sums: dict[str, float] = {}
        self._pending: deque[tuple[int, tuple, dict]] = deque()
        self._signals = StopSignals()
        self._evaluation_due, self._saved_step = False, -1
        self._heartbeat = Heartbeat()

    # -- where the run is -------------------------------------------------------------------------------------------

    @property
    def step(self) -> int:
        """Steps done."""
        return int(self.state.step)

    def evaluated(self) -> tuple[dict[str, jax.Array], dict[str, jax.Array]]:
        """The parameters and buffers that are evaluated and exported: averaged where an average is kept."""
        average, state = self.options.ema, self.state
        if average is None:
            return state.params, state.buffers
        values = average.values(state.ema, {**state.params, **state.buffers})
        params, buffers = ({name: values[name] for name in one} for one in (state.params, state.buffers))
        return params, buffers

    def table_state(self, name: str) -> dict[str, np.ndarray]:
        """What is kept for each row of a table (nn.ShardedEmbedding) by the name of its weight, in the order of rows:
        the state of its optimizer, and `seen`, how often its ids were met, with `count_ids` or an entry."""
        return {
            slot: np.asarray(one) for slot, one in self.partitioner.fetch(self.state.tables)[name].items()
        }

    def _settings(self) -> dict[str, JSON]:
        """What must not change between a run and its resumption, for then the data would be in another order."""
        return {
            "batch_size": self.batch_size,
            "samples": len(cast(Sized, self.train.dataset)),
            "seed": self.options.seed,
        }

    def resume(self, folder: Path) -> None:
        """Go on from a checkpoint folder, written on whatever mesh. All processes call it.

        Raises:
            FormatError: a file of it is missing or damaged, here or where another process reads it.
            WeightError: it is of another model, or of a run with other settings.
        """
        saved = agree(
            lambda: read_saved(folder, self.partitioner.whole_shapes(self.state), self._settings()),
            f"reading {folder}",
        )
        self.state = load_state(saved, self.state, self.partitioner)
        for name, layer in self.host_tables.items():
            layer.store.load(folder / f"{name}{ROWS}")
        self.best_score, self.since_best = saved.meta["best_score"], saved.meta["since_best"]
        self._sums = dict(saved.meta["sums"])
        self._evaluation_due, self._saved_step = saved.meta.get("owes_evaluation", False), self.step
        states = saved.meta.get("callbacks", {})
        for name, callback in self._named_callbacks().items():
            if isinstance(states.get(name), dict):
                callback.set_state_dict(states[name])
        if self.plateau is not None and saved.meta["plateau"] is not None:
            self.plateau.set_state_dict(saved.meta["plateau"])
        log.info(f"going on from step {self.step} of {folder}")
        before = saved.meta.get("total_steps")
        if self.step >= self.total_steps:
            log.warning(
                f"nothing is left to train: the checkpoint has {self.step} of {self.total_steps} steps; "
                "a larger train.epochs or train.iters goes on"
            )
        elif isinstance(before, int) and 0 < before != self.total_steps:
            self._explain_length(before)

    def _explain_length(self, before: int) -> None:
        """Say what another length than `before` does to the learning rate: an end that the schedule leaves open is that
        of training."""
        line = f"the run has {self.total_steps} steps now, in place of {before}"
        each = self._accumulate
        updates = max(1, before // each), max(1, self.steps_per_epoch / each)
        was = float(self._open_schedule.resolve(*updates).at(max(0, self.step - 1) // each))
        now = float(self.schedule.at(self.step // each))
        if not math.isclose(was, now, rel_tol=0.05):
            factor = self._rate_factor
            log.warning(
                f"{line}, and its schedule reaches to their end: the learning rate goes from {was * factor:.3g} to "
                f"{now * factor:.3g}; -o optim.learning_rate={was:.3g} goes on with the one before"
            )
        else:
            log.info(f"{line}; the learning rate goes on at {now * self._rate_factor:.3g}")

    def compile_step(self, batch: Mapping[str, jax.Array | jax.ShapeDtypeStruct]) -> jax.stages.Compiled:
        """The program of a step for a batch of these arrays, or of their jax.ShapeDtypeStructs. Nothing is computed."""
        return self.step_fn.lower(self.state, batch).compile()

    def start_from(self, optimizer: dict[str, PyTree]) -> None:
        """Begin with the state that the optimizer had at the end of another training of the same model."""
        self.state = replace(self.state, optimizer=self.partitioner.place(optimizer))

    def _named_callbacks(self) -> dict[str, Callback]:
        """By type, numbered within it: other callbacks may come and go between a run and its resumption."""
        named: dict[str, Callback] = {}
        for callback in self.callbacks:
            kind = type(callback).__name__
            named[f"{kind}_{sum(name.startswith(f'{kind}_') for name in named)}"] = callback
        return named

    def save(self, best: bool = False) -> Path | None:
        """Write a checkpoint of the state as it is now, where the run has a folder. One of a divided state is written
        while training goes on; it is there when the next one begins, or `fit` ends."""
        if self.store is None:
            return None
        self._read_logs(0)
        meta = {
            "epoch": self.step / self.steps_per_epoch,
            "total_steps": self.total_steps,
            "settings": self._settings(),
            "best_score": self.best_score,
            "since_best": self.since_best,
            "sums": self._sums,
            "owes_evaluation": self._evaluation_due,
            "callbacks": {
                name: state
                for name, callback in self._named_callbacks().items()
                if (state := callback.state_dict())
            },
            "plateau": self.plateau.state_dict() if self.plateau else None,
            "labels": list(self.labels),
            **self.about,
        }
        write = self._write_host_tables if self.host_tables else None
        step, state = self.step, self.state
        self._saved_step = step
        model, rest = {**state.params, **state.buffers}, flatten(state_besides(state))
        if self.partitioner.is_divided(state) and not self.partitioner.deals_tables:
            return self.store.save_sharded(step, model, rest, meta, best)
        if self.partitioner.deals_tables:  # written whole, so that they are read onto any mesh
            model = self.partitioner.fetch(model)
            rest = flatten(self.partitioner.fetch(state_besides(state)))
        return self.store.save(step, model, rest, meta, best, write) if is_main() else None

    def _write_host_tables(self, folder: Path) -> None:
        for name, layer in self.host_tables.items():
            layer.store.save(folder / f"{name}{ROWS}")

    # -- the loop ---------------------------------------------------------------------------------------------------

    def fit(self) -> dict[str, float]:
        """Train to the end; returns the scores of the last evaluation. The model then has the final parameters.

        The first SIGINT or SIGTERM lets the step end and a checkpoint be written, from which the run goes on with the
        same numbers; the second ends the process as ever.

        Raises:
            TrainingError: the loss or the norm of the gradients is no number; the steps and samples are named.
            TrainingStopped: a signal came before the end. The model has the parameters of the last step.
        """
        signals = AgreedStop() if self.partitioner.several_processes else StopSignals()
        with signals as self._signals:
            if self.evaluator is not None:
                self.evaluator.cancelled = lambda: self._stopping
            return self._fit()

    @property
    def _stopping(self) -> bool:
        return self._signals.received is not None

    def _fit(self) -> dict[str, float]:
        scores: dict[str, float] = {}
        options, self._waited = self.options, 0.0
        self._mark = time.perf_counter(), self.step, 0.0
        if left := self.total_steps % self._accumulate:
            log.warning(
                f"the last {left} of {self.total_steps} batches train nothing: a step takes the gradients of "
                f"{self._accumulate} (optim.accumulate), and training ends before there are as many again"
            )
        for callback in self.callbacks:
            callback.on_begin(self)
        try:
            if self._evaluation_due:
                scores = self._evaluate(self.step)
            while (step := self.step) < self.total_steps and not self.stop and not self._stopping:
                epoch, start = divmod(step, self.steps_per_epoch)
                waited = self._waited
                loaded = self._prefetch_rows(self.train.batches(epoch, start))
                batches = prefetch_to_device(loaded, self.partitioner.batch)
                with contextlib.closing(batches):
                    for batch in batches:
                        for callback in self.callbacks:
                            callback.on_step(self, step)
                        data = self._trained_on(batch.data, step)
                        with self._compile_notice.around(data) as is_first:
                            if is_first and self.partitioner.several_processes:
                                compile_together(self.step_fn.lower, self.state, data)
                            self.state, values = self.step_fn(self.state, data)
                        self._pending.append((step, batch.ids, values))
                        step += 1
                        self._waited = waited + batches.waited
                        self._read_logs(2)
                        self._heartbeat.beat()
                        self._signals.agree(step)
                        last = step == self.total_steps
                        if (
                            step == 1
                            or step % options.log_every == 0
                            or step % self.steps_per_epoch == 0
                            or last
                        ):
                            self._report(step)
                        if self._due(options.eval_every, step) and self.evaluator is not None:
                            scores = self._evaluate(step)
                        elif self._due(options.save_every, step) or last:
                            self.save()
                        if last or self.stop or self._stopping:
                            break
            unfinished = (self.step < self.total_steps and not self.stop) or self._evaluation_due
            if self._stopping and unfinished and self._saved_step != self.step:
                self.save()
        finally:
            try:
                for callback in self.callbacks:
                    callback.on_end(self)
            finally:
                if self.store is not None:
                    self.store.wait()
        final = self.evaluated()
        if self.partitioner.deals_tables or not self.partitioner.is_divided(self.state):
            # Else the model has arrays that no process has whole.
            final = self.partitioner.fetch(final)
        functional_core.update(self.model, *final)
        if (received := self._signals.received) is not None and unfinished:
            checkpoint = self.store.last() if self.store is not None else None
            raise TrainingStopped(received, self.step, checkpoint)
        return scores

    def _trained_on(self, data: PyTree, step: int) -> PyTree:
        """The arrays of a step: of a batch, or of what the model makes of it."""
        if self._experience is None:
            return without_texts(data)
        return self.partitioner.place_batch(
            self._experience(self.state.params, self.state.buffers, data, step)
        )

    def _prefetch_rows(self, batches: Generator[Batch, None, None]) -> Iterator[Batch]:
        """Batches as they are; tables on the host read their rows ahead."""
        tables = [layer for layer in self.host_tables.values() if layer.prefetch is not None]
        if not tables:
            return batches

        def read_ahead() -> Iterator[Batch]:
            with contextlib.closing(batches):
                for batch in batches:
                    for layer in tables:
                        layer.store.prefetch(batch.data[layer.prefetch], layer.wide_ids)
                    yield batch

        return read_ahead()

    def _due(self, every: int | None, step: int) -> bool:
        return step % (every or self.steps_per_epoch) == 0 or step == self.total_steps

    def _read_logs(self, in_flight: int) -> None:
        """Read the logs of all but the last steps: the device stays busy, and a bad step is known two steps later."""
        while len(self._pending) > in_flight:
            step, ids, values = self._pending.popleft()
            numbers = {name: float(value) for name, value in values.items()}
            scaled = self.options.amp == "float16"  # there gradients may overflow: the step is skipped
            if not math.isfinite(numbers["loss"]) or not (scaled or math.isfinite(numbers["grad_norm"])):
                raise self._explain_divergence(step, ids, numbers)
            for name, value in numbers.items():
                self._sums[name] = value + (self._sums.get(name, 0.0) if name != "lr" else 0.0)
            self._sums["steps"] = self._sums.get("steps", 0) + 1

    def _explain_divergence(self, step: int, ids: tuple, numbers: dict[str, float]) -> TrainingError:
        """The error for a step (from 0) whose loss or gradients are no numbers: wrong labels, or the numbers."""
        is_here = not (self.partitioner.several_processes and self.partitioner.is_divided(self.state))
        if math.isnan(numbers["loss"]) and is_here:
            log.info(f"the loss of step {step + 1} is no number: looking for labels that are no class")
            with contextlib.closing(self.train.batches(*divmod(step, self.steps_per_epoch))) as batches:
                batch = next(iter(batches))
            model = self.graphdef.bind(*self.partitioner.fetch((self.state.params, self.state.buffers)))
            wrong = find_bad_labels(self.task, model, batch.data, step)
            if wrong is not None:
                samples = name_samples(wrong, batch.ids) or batch.ids
                return TrainingError(
                    "training has met a label that is no class",
                    where=f"step {step + 1}",
                    received=f"{wrong.found}; samples {_list(samples)}",
                    allowed=wrong.allowed,
                    fix="correct the labels of these samples, or give the model as many classes as the data have",
                )
        return TrainingError(
            DIVERGED,
            where=f"step {step + 1}",
            received=", ".join(f"{name} {value:g}" for name, value in numbers.items())
            + f"; samples {_list(ids)}",
            allowed="finite numbers",
            fix="look at these samples, lower the learning rate or clip gradients; "
            "--resume goes on from the last checkpoint, which is sound",
        )

    def _report(self, step: int) -> None:
        self._read_logs(0)
        count = self._sums.pop("steps")
        names = sorted(self._sums, key=lambda name: (name != "loss", name in ("lr", "grad_norm")))
        means = {name: self._sums[name] / (count if name != "lr" else 1) for name in names}
        now = time.perf_counter()
        began, first, waited = self._mark
        seconds = now - began
        row = {
            "step": step,
            "epoch": (step - 1) // self.steps_per_epoch,
            **means,
            "samples_per_second": (step - first) * self.batch_size / seconds,
            "wait_share": min(1.0, (self._waited - waited) / seconds),
        }
        self._sums, self._mark = {}, (now, step, self._waited)
        for callback in self.callbacks:
            callback.on_log(self, row)

    def _evaluate(self, step: int) -> dict[str, float]:
        """Evaluate and save. Where a signal cuts it short, {}: then the next checkpoint says that it is to be done."""
        self._read_logs(0)
        assert self.evaluator is not None
        began = time.perf_counter()
        self._evaluation_due = True
        try:
            scores = self.evaluator.run(*self.evaluated())
        except EvaluationCancelled:
            return {}
        except Exception as error:
            # What cannot be scored costs no training: the resumed run evaluates first. Of several processes the others
            # may be at another place, but where the data are at fault all are here.
            if isinstance(error, OarError) or not self.partitioner.several_processes:
                self.save()
            raise
        self._evaluation_due = False
        best = self._better(scores)
        self.since_best = 0 if best else self.since_best + 1
        if best:
            self.best_score = next(iter(scores.values()))
        if self.plateau is not None and scores:
            factor = self.plateau.observe(next(iter(scores.values())))
            self.state = replace(self.state, lr_factor=self.partitioner.place(np.float32(factor)))
        row = {"step": step, "epoch": (step - 1) // self.steps_per_epoch, **scores, "best": best}
        try:
            for callback in self.callbacks:
                callback.on_eval(self, {**row, "seconds": time.perf_counter() - began})
        finally:  # with what the callbacks have made of the scores; and nothing is lost where one of them fails
            self.save(best)
        took = time.perf_counter() - began
        self._mark = self._mark[0] + took, *self._mark[1:]  # evaluation is no training time
        return scores

    def _check_plateau(self, watched: ReduceOnPlateau | None, is_evaluated: bool) -> None:
        """Raises: ConfigError, where the rate would fall while the score that it follows becomes better."""
        if watched is None:
            return
        if not (is_evaluated and self.task.metrics(self.labels)):
            log.warning("nothing is scored, so ReduceOnPlateau leaves the learning rate as it is")
        elif (watched.mode == "max") != self.higher_is_better:
            allowed = "max" if self.higher_is_better else "min"
            raise ConfigError(
                "the learning rate would fall while the score becomes better",
                where="optim.learning_rate.mode",
                received=watched.mode,
                allowed=allowed,
                fix=f"-o optim.learning_rate.mode={allowed}: it follows the first score of an evaluation, of which "
                f"{'more' if self.higher_is_better else 'less'} is better",
            )

    @property
    def higher_is_better(self) -> bool:
        """Of the first score, as the first metric says; there is one where there are scores."""
        return next(iter(self.task.metrics(self.labels).values())).higher_is_better

    def _better(self, scores: dict[str, float]) -> bool:
        """Whether the first score is better than all before."""
        value = next(iter(scores.values()), math.nan)
        if self.best_score is None or math.isnan(value):  # what is no number is never the best
            return not math.isnan(value)
        return value > self.best_score if self.higher_is_better else value < self.best_score


def _list(samples: Sequence[object]) -> str:
    return ", ".join(map(str, samples[:8])) + (" …" if len(samples) > 8 else "")


def _length(options: TrainOptions, loader: DataLoader) -> int:
    steps_per_epoch = len(loader)
    if steps_per_epoch == 0:
        samples = len(cast(Sized, loader.dataset))
        raise ConfigError(
            "the data set has fewer samples than a batch",
            where="data.train",
            received=f"{samples} samples, batch_size {loader.batch_size}",
            allowed="batch_size up to the number of samples",
            fix=f"-o data.train.batch_size={max(1, samples)}",
        )
    if options.iters is not None:
        return options.iters
    if options.epochs is None:
        raise ConfigError(
            "nothing says how long to train",
            where="train",
            received="neither epochs nor iters",
            allowed="one of them",
            fix="-o train.epochs=10",
        )
    return options.epochs * steps_per_epoch
