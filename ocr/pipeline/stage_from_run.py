"""A training run as a stage of the reader: what `pipeline.detector: output/my_detector` means."""

from __future__ import annotations

from pathlib import Path

from framework.config import load
from framework.core.errors import ConfigError
from framework.engine.experiment import bind_experiment
from framework.engine.task import Stage
from framework.export import TensorSpec
from framework.io.checkpoint import CHECKPOINTS, RUN_CONFIG
from framework.workflow.domain.weights import resolve_weights
from ocr.tasks.contracts import DescribesStage
from ocr.tasks.text import TextRecognition
from ocr.text.characters import CharacterSet


def read_run_stage(folder: str, kind: str) -> Stage:
    """The stage of the best checkpoint of a run.

    Args:
        folder: Where `oar train` wrote the run.
        kind: "detector", "recognizer" or "orientation".

    Raises:
        ConfigError: there is no run, or it trained another kind of model.
    """
    config = Path(folder).expanduser() / RUN_CONFIG
    if not config.is_file():
        raise ConfigError(
            "there is no training run",
            where=f"pipeline.{kind}",
            received=f"{folder}: no {RUN_CONFIG} in it",
            allowed="the folder that `oar train` wrote, or a mapping of model, weights and options",
        )
    experiment = bind_experiment(load(config))
    model, task = experiment.model_and_task()
    data = experiment.data.eval or experiment.data.train
    buckets = None if data is None else data.buckets
    about = task.describe_stage(buckets) if isinstance(task, DescribesStage) else {}
    if about.get("kind") != kind:
        raise ConfigError(
            f"this run trained no {kind}",
            where=f"pipeline.{kind}",
            received=f"{config}: task {type(task).__name__}, "
            + str(about.get("kind") or "no stage of a reader"),
            allowed=kind,
        )
    export = experiment.export
    return Stage(
        task.adapt_model(model),
        task,
        folder,
        resolve_weights(folder),
        {name: TensorSpec(one.shape, one.dtype) for name, one in export.inputs.items()},
        export.constraints,
        {name: value for name, value in about.items() if name != "kind"},
        export.bf16_verified,
        export.bf16_engines,
    )


def find_run(weights: str) -> Path | None:
    """The folder of the run that `weights` are of, itself or something in it; else None."""
    path = Path(weights).expanduser()
    for folder in (path, *path.parents) if path.exists() else ():
        if (folder / RUN_CONFIG).is_file() and (folder / CHECKPOINTS).is_dir():
            return folder
    return None


def read_run_characters(folder: Path) -> CharacterSet:
    """The dictionary that a run trained a recogniser with.

    Raises:
        ConfigError: it trained no recogniser.
    """
    experiment = bind_experiment(load(folder / RUN_CONFIG))
    if not isinstance(experiment.task, TextRecognition):
        raise ConfigError(
            "this run trained no recogniser",
            where="pipeline.recognizer.weights",
            received=f"{folder}: task {type(experiment.task).__name__}",
            allowed="a run of TextRecognition, or weights with `characters`",
        )
    return experiment.task.alphabet.characters
