"""Train and evaluate a configuration file: what `oar train` and `oar eval` do, for every domain."""

from __future__ import annotations

import dataclasses
import json
import logging
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import cast

import jax
import numpy as np
from filelock import Timeout

import framework
from framework import nn
from framework.config import build, override, resolved
from framework.core.disk import disk_errors, write_file
from framework.core.errors import InputError
from framework.core.file_lock import acquire_lock
from framework.core.transform import Transform
from framework.distributed import ParallelOptions, Partitioner, init_parallel_env
from framework.distributed.planning.calibration import hardware_of
from framework.distributed.processes import is_main, was_restarted
from framework.engine import callbacks as C
from framework.engine import finders
from framework.engine.details import Details
from framework.engine.evaluator import Evaluator
from framework.engine.experiment import Experiment, LoaderConfig
from framework.engine.finders import BatchSizeFinding, LRFinding
from framework.engine.label_alignment import AlignedPack, align_labels, infer_classes
from framework.engine.loggers import TensorBoard
from framework.engine.reports import RunReport
from framework.engine.stopping import TrainingStopped
from framework.engine.task import Pack, Task, check_transforms
from framework.engine.trainer import Trainer
from framework.io.checkpoint import (
    CHECKPOINTS,
    RUN_CONFIG,
    CheckpointStore,
    find_checkpoint,
    run_folder,
)
from framework.io.loader import DataLoader
from framework.nn import functional_core
from framework.optimizer import Optimizer
from framework.optimizer.lr.base import LRScheduler
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.outputs import make_folder
from framework.workflow.domain.weights import load_pretrained, load_state_into, resolve_weights
from framework.workflow.export.export import labels_of, trained_model
from framework.workflow.train.loaders import make_loader
from framework.workflow.train.plan import plan

log = logging.getLogger("oar")


def train(
    config: str | Path | ConfigFile,
    overrides: tuple[str, ...] = (),
    output_dir: str | Path | None = None,
    resume: str | bool = False,
    evaluate: bool = True,
    callbacks: Sequence[C.Callback] = (),
) -> dict[str, float]:
    """Train a configuration; returns the scores of the last evaluation.

    Into `output_dir` (default: output/<name of the config>; of a run's own config the run's folder) go `checkpoints/`,
    `config.yml` (as resolved, but without `weights`: those of a run are its checkpoints), `metrics.jsonl`, its
    `curves.png` and `curves.csv`, `evaluation/` with the classes of the best evaluation, and `train.log`.

    Args:
        resume: Go on from the run's last checkpoint (True), or from the one at this path.
        evaluate: Evaluate `data.eval` on the way, where there is one.
        callbacks: Besides those of the config.

    Raises:
        ConfigError, WeightError, InputError, TrainingError: each says what is wrong and what to do.
        TrainingStopped: SIGINT or SIGTERM came; a checkpoint is written, and the message has the command to go on.
    """
    init_parallel_env()
    config = open_config(config, overrides)
    experiment = config.experiment
    experiment.require("model", "task", "optim")
    folder = Path(output_dir) if output_dir else run_folder(config.path)
    if was_restarted():
        resume = CheckpointStore(folder / CHECKPOINTS).last() is not None
    if resume is True and not folder.exists():
        find_checkpoint(folder)  # says that there is none, before the folder is made
    with _run_folder(folder, bool(resume)), _log_file(folder / "train.log") as start_file:
        checkpoint = find_checkpoint(folder if resume is True else resume) if resume else None
        text = resolved(override(config.tree, "weights=null"))
        trainer = make_trainer(experiment, folder, text, evaluate, callbacks)
        if checkpoint is not None:
            trainer.resume(checkpoint)
        # A run that is refused leaves the files of the one before it as they are.
        if is_main():
            start_file()
            write_file(folder / RUN_CONFIG, text.encode("utf-8"))
        try:
            scores = trainer.fit()
        except TrainingStopped as stop:
            words = ["oar", "train", "-c", str(folder / RUN_CONFIG), "--resume"]
            command = subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)
            raise TrainingStopped(stop.signal, stop.step, stop.checkpoint, command) from None
        if trainer.store is not None and (best := trainer.store.best()) is not None:
            log.info(f"best checkpoint: {best}")
    return scores


def make_trainer(
    experiment: Experiment,
    folder: Path | None,
    text: str = "",
    evaluate: bool = True,
    callbacks: Sequence[C.Callback] = (),
) -> Trainer:
    """The Trainer of an experiment, with the model's values before the first step."""
    options = experiment.train
    if experiment.data.train is None:
        raise InputError(
            "there is nothing to train on", where="data.train", allowed="a dataset, transforms, batch_size"
        )
    config, task = experiment.model_and_task()
    task = task.adapt(experiment.data.train.dataset)
    framework.seed(options.seed)
    model = build(task.adapt_model(config))
    if experiment.pretrained is not None:
        path = resolve_weights(experiment.pretrained.weights, experiment.domain)
        skipped = _start_from(path, model, task, experiment)
        more = f" and {len(skipped) - 8} more" if len(skipped) > 8 else ""
        log.info(f"starting from {path}" + (f", but for {', '.join(skipped[:8])}{more}" if skipped else ""))
    labels = tuple(getattr(experiment.data.train.dataset, "class_names", ()))
    task.check(model, labels)
    task.prepare_model(model, experiment.data.train.dataset)
    check_transforms(model, experiment.data.train.transforms)
    held_out = experiment.data.eval if evaluate else None
    eval_loader, eval_labels = None, labels
    if held_out is not None:
        if not labels:  # lines of text that a transform turns get their classes from it
            labels = tuple(getattr(held_out.dataset, "class_names", ()))
        pack = task.prepare_pack(model, held_out.dataset, False)
        eval_loader, eval_labels = _held_out_loader(held_out, task, options.seed, labels, folder, pack)
    logs: list[C.Callback] = [C.LogLines()]
    if folder is not None:
        logs += [C.MetricsFile(folder / "metrics.jsonl"), RunReport(folder)]
        if options.tensorboard:
            logs.append(TensorBoard())
        if options.profile_step is not None:
            logs.append(C.Profile(folder / "profile", options.profile_step))
    if options.early_stop is not None:
        logs.append(C.EarlyStopping(patience=options.early_stop))
    logs += (*options.callbacks, *callbacks)
    assert experiment.optim is not None  # as `train` requires
    return Trainer(
        model,
        task,
        experiment.optim,
        make_loader(
            experiment.data.train,
            task,
            options.seed,
            train=True,
            pack=task.prepare_pack(model, experiment.data.train.dataset, True),
            folder=folder,
        ),
        options,
        eval=eval_loader,
        folder=folder,
        labels=labels,
        eval_labels=eval_labels,
        callbacks=logs,
        about={"config": text},
        partitioner=Partitioner(options=_parallel_options(experiment)),
    )


def _parallel_options(experiment: Experiment) -> ParallelOptions:
    """Those of the experiment; `auto` plans them for the devices that there are."""
    if isinstance(experiment.parallel, ParallelOptions):
        return experiment.parallel
    devices = jax.devices()
    if len(devices) == 1:
        return ParallelOptions()
    result = plan(experiment, len(devices), hardware_of(devices))
    if result.best is None:
        raise InputError(
            "no division of the training fits into the devices",
            where="parallel: auto",
            received=result.describe(3),
            allowed="parameters, their optimizer and activations in the memory of the devices",
            fix="a smaller data.train.batch_size, train.amp=bfloat16, train.recompute, or more devices",
        )
    log.info(f"parallel: auto\n{result.describe(3)}")
    return result.best.options


def _held_out_loader(
    config: LoaderConfig,
    task: Task,
    seed: int,
    labels: tuple[str, ...],
    folder: Path | None,
    pack: Pack | None = None,
) -> tuple[DataLoader, tuple[str, ...]]:
    """The loader of `data.eval` for a training with these labels, and the names of the classes that it is judged by.

    A class that either lacks is named in the log, and the numbers of the others are those of the training.

    Raises:
        InputError: the two have no class in common, or the task does not say which of its arrays are classes.
    """
    other = tuple(getattr(config.dataset, "class_names", labels))
    if other != labels:
        if not task.label_arrays:
            raise InputError(
                "training and evaluation data have different classes",
                where="data.eval.dataset",
                received=f"{len(other)} classes {', '.join(other[:5])}",
                allowed=f"the {len(labels)} classes of data.train: {', '.join(labels[:5])}",
            )
        alignment = align_labels(labels, other)
        if line := alignment.describe():
            log.warning(f"data.eval: {line}")
        pack, labels = AlignedPack(task, task.label_arrays, alignment), alignment.labels
    return make_loader(config, task, seed, train=False, pack=pack, folder=folder), labels


def _start_from(path: Path, model: nn.Layer, task: Task, experiment: Experiment) -> list[str]:
    """Load the weights of `pretrained`; returns the names of the parameters that keep their own values."""
    start = experiment.pretrained
    assert start is not None
    config = task.adapt_model(experiment.model_and_task()[0])
    whole = start.skip is None and start.into is None and not start.partial
    if whole and task.load_pretrained(model, path):
        return []
    source = task.pretrained_model(config)
    if source == config:
        return load_pretrained(model, path, start.skip, start.into, start.partial)
    other = build(source)
    skipped = load_pretrained(other, path, start.skip, start.into, start.partial)
    state = {name: np.asarray(value) for name, value in other.state_dict().items()}
    load_state_into(model, task.adapt_pretrained(state, model))
    return skipped


def find_lr(
    config: str | Path | ConfigFile,
    overrides: tuple[str, ...] = (),
    output_dir: str | Path | None = None,
    *,
    start: float = 1e-7,
    end: float = 1.0,
    steps: int = 100,
) -> LRFinding:
    """A learning rate for a configuration: a short training with rising rates, which leaves its run alone.

    lr_finder.png and lr_finder.csv go into `output_dir`, by default `lr_finder` in the run's folder. The rates are
    those that the config would say; where its optimizer has a schedule, the suggestion is for the schedule's peak.
    """
    config = open_config(config, overrides)
    experiment = config.experiment
    experiment.require("model", "task", "optim")
    trainer = make_trainer(experiment, None, evaluate=False)
    folder = Path(output_dir) if output_dir else run_folder(config.path) / "lr_finder"
    optimizer = cast(Optimizer, experiment.optim)
    with C.print_log():
        result = finders.find_lr(
            trainer.model,
            trainer.task,
            optimizer,
            trainer.train,
            experiment.train,
            start=start,
            end=end,
            steps=steps,
        )
        with disk_errors(folder):
            written = result.write(folder)
        line = "no rate is suggested, as the loss never fell"
        if result.suggestion is not None:
            key = ".".join(["optim", *_rate_key(optimizer)])
            line = f"suggested learning rate {result.suggestion:.3g}: -o {key}={result.suggestion:.3g}"
        log.info(f"{line}; the curve: {written[-1]}")
    return result


def _rate_key(holder: object) -> list[str]:
    """Where in a config the number of an optimizer's or a schedule's learning rate stands."""
    inner = getattr(holder, "learning_rate", None)
    return (
        ["learning_rate", *(_rate_key(inner) if isinstance(inner, LRScheduler) else [])]
        if inner is not None
        else []
    )


def find_batch_size(
    config: str | Path | ConfigFile,
    overrides: tuple[str, ...] = (),
    *,
    free: int | None = None,
    share: float = 0.9,
) -> BatchSizeFinding:
    """The largest batch size of a configuration whose training step fits into the memory; see the engine's function.

    Texts of different lengths are taken to be as long as the longest bucket.
    """
    experiment = open_config(config, overrides).experiment
    experiment.require("model", "task", "optim")
    data = experiment.data.train
    if data is not None:
        buckets = data.buckets and data.buckets[-1:]
        data = dataclasses.replace(data, batch_size=len(jax.devices()), buckets=buckets, num_workers=0)
    experiment = dataclasses.replace(experiment, data=dataclasses.replace(experiment.data, train=data))
    with C.print_log():
        result = finders.find_batch_size(make_trainer(experiment, None, evaluate=False), free, share)
        log.info(
            f"largest batch size {result.batch_size}, limited by the {result.limited_by}: "
            f"-o data.train.batch_size={result.batch_size}; a step needs {result.needed / 2**20:,.0f} MiB a device, "
            f"{result.free / 2**20:,.0f} MiB are free"
        )
    return result


@dataclass(frozen=True)
class Evaluation:
    """Scores by name, the one that decides first, and what is known of each class."""

    scores: dict[str, float]
    details: Details | None

    def write(self, folder: str | Path) -> list[Path]:
        """scores.json, and the files of `Details`; returns what was written.

        Raises:
            DiskError: the folder cannot be written to.
        """
        path, text = Path(folder) / "scores.json", json.dumps(self.scores, indent=1)
        with disk_errors(path.parent, len(text)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return [path, *(self.details.write(path.parent) if self.details else ())]


def evaluate(config: str | Path | ConfigFile, overrides: tuple[str, ...] = ()) -> dict[str, float]:
    """The scores of `evaluate_classes`."""
    return evaluate_classes(config, overrides).scores


def evaluate_classes(config: str | Path | ConfigFile, overrides: tuple[str, ...] = ()) -> Evaluation:
    """Scores of `weights` (default: the best checkpoint of the config's run) on `data.eval`, and those of each class.

    Classes are compared by the names that come with the weights, where the task says which arrays hold them. Those that
    the model does not know or that the data lack are named in one line of the log; none is refused.
    """
    config = open_config(config, overrides)
    experiment = config.experiment
    _evaluation_data(experiment, config.path)
    model, _, labels = trained_model(experiment, config.path)
    data = evaluation_set(experiment, config.path, labels)
    data.task.check(model, data.classes)
    check_transforms(model, data.transforms)
    graphdef, params, buffers = functional_core.split(model.eval())
    evaluator = Evaluator(graphdef, data.task, data.loader, data.labels)
    return Evaluation(evaluator.run(params, buffers), evaluator.details())


@dataclass(frozen=True)
class EvaluationSet:
    """What a model is evaluated on: its labels, and the names of the classes that its task should have."""

    task: Task
    loader: DataLoader
    labels: tuple[str, ...]
    classes: tuple[str, ...]
    transforms: tuple[Transform, ...]


def evaluation_set(experiment: Experiment, config: Path, kept: tuple[str, ...]) -> EvaluationSet:
    """`data.eval` of an experiment for a model whose weights came with the labels `kept`.

    Raises:
        InputError: the experiment has none.
    """
    data, task = _evaluation_data(experiment, config), cast(Task, experiment.task)
    pack, arrays = None, task.label_arrays
    if kept and arrays:
        data = dataclasses.replace(data, dataset=infer_classes(data.dataset))
        alignment = align_labels(kept, getattr(data.dataset, "class_names", ()))
        if line := alignment.describe():
            log.warning(line)
        pack, labels, classes = AlignedPack(task, arrays, alignment), alignment.labels, kept
    else:
        labels = labels_of(experiment, kept)
        classes = tuple(getattr(data.dataset, "class_names", labels))
    loader = make_loader(data, task, experiment.train.seed, train=False, pack=pack)
    return EvaluationSet(task, loader, labels, classes, tuple(data.transforms))


def _evaluation_data(experiment: Experiment, config: Path) -> LoaderConfig:
    if experiment.data.eval is None:
        raise InputError(
            "there is nothing to evaluate on", where=f"{config}: data.eval", allowed="a dataset, transforms"
        )
    return experiment.data.eval


@contextmanager
def _run_folder(folder: Path, resume: bool) -> Iterator[None]:
    """Hold the folder of a run: a second run into it is refused, at the same time or afterwards."""
    if not is_main():  # the first process holds it for all
        yield
        return
    if not resume and CheckpointStore(folder / CHECKPOINTS).last() is not None:
        raise InputError(
            "the folder holds a run already",
            where=folder,
            received=f"checkpoints up to {CheckpointStore(folder / 'checkpoints').last()}",
            allowed="a new folder",
            fix="--resume goes on with it; --output_dir names another one; or move it away",
        )
    try:
        make_folder(folder)
        lock = acquire_lock(folder / ".lock")
    except Timeout:
        raise InputError(
            "another process trains into this folder",
            where=folder,
            allowed="one run at a time",
            fix="wait for it, stop it, or name another folder with --output_dir",
        ) from None
    except OSError as error:
        raise InputError(
            "the folder of the run cannot be made",
            where=folder,
            received=error.strerror or str(error),
            fix="choose another --output_dir",
        ) from error
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


@contextmanager
def _log_file(path: Path) -> Iterator[Callable[[], None]]:
    """Lines of the log to the terminal and, added at the end, to a file: from the call of what this gives on, with the
    lines before it."""
    memory = MemoryHandler(sys.maxsize, flushLevel=sys.maxsize)
    opened: list[logging.Handler] = []

    def start() -> None:
        with disk_errors(path):
            # Names of files may be no text.
            file = logging.FileHandler(path, encoding="utf-8", errors="backslashreplace")
        opened.append(file)
        file.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%Y-%m-%d %H:%M:%S"))
        memory.setTarget(file)
        memory.flush()
        memory.capacity = 1

    try:
        with C.print_log(memory):
            yield start
    finally:
        for file in opened:
            file.close()
