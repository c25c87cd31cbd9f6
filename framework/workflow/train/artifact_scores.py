"""Score an artifact's program on the data of its configuration, in any engine: what runs is what was exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import ConfigError, FormatError
from framework.engine.evaluator import Judge
from framework.export import Artifact, load_artifact
from framework.inference import Runtime
from framework.inference.engine import Engine
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.train.run import Evaluation, EvaluationSet, evaluation_set


def evaluate_artifact(
    folder: str | Path,
    config: str | Path | ConfigFile,
    overrides: tuple[str, ...] = (),
    runtime: Runtime | None = None,
) -> Evaluation:
    """Scores of an artifact on `data.eval` of a configuration, by the engine and the precision of `runtime`.

    Raises:
        FormatError: the artifact is a pipeline, or its program gives something else than the metrics take.
        InputError: the configuration has no `data.eval`.
    """
    config = open_config(config, overrides)
    experiment = config.experiment
    experiment.require("task")
    artifact = load_artifact(folder)
    data = evaluation_set(experiment, config.path, tuple(artifact.setting("labels", default=())))
    judge = Judge(data.task, data.loader, data.labels)
    scores = score_engine((runtime or Runtime()).open(artifact), data, artifact, judge)
    return Evaluation(scores, judge.details())


def score_engine(
    engine: Engine, data: EvaluationSet, artifact: Artifact, judge: Judge | None = None
) -> dict[str, float]:
    """The scores of what an engine computes. Raises: FormatError, where it is not what the metrics take."""
    judge = judge or Judge(data.task, data.loader, data.labels)

    def infer(arrays: dict[str, np.ndarray]) -> Mapping[str, ArrayLike]:
        missing = [name for name in engine.inputs if name not in arrays]
        if missing:
            raise ConfigError(
                "the data have not all that the program takes",
                where=artifact.source,
                received=", ".join(arrays),
                allowed=", ".join(engine.inputs),
                fix="score it with the configuration that it was exported from",
            )
        return engine.start({name: arrays[name] for name in engine.inputs})

    try:
        return judge.judge(infer)
    except KeyError as error:
        raise FormatError(
            "the program gives something else than the metrics take",
            where=artifact.source,
            received=", ".join(engine.outputs),
            allowed=f"{error.args[0]}, among others",
            fix="score the weights: oar eval -c … -o weights=…",
        ) from error
