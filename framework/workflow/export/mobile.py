"""From a configuration to an artifact with a `.tflite`, calibrated and compared on images."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from framework.core.errors import OarError
from framework.export import Artifact
from framework.export.formats.onnx.check import NamedArrays
from framework.inference.engine import Engine, XLAEngine
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.export.examples import example_files, programs_of, record_inputs
from framework.workflow.export.export import export_config, read_examples, settle_predict_options
from framework.workflow.export.onnx import OnnxOptions
from framework.workflow.export.tflite import TfliteFile, TfliteOptions
from framework.workflow.train.artifact_scores import score_engine
from framework.workflow.train.run import EvaluationSet, evaluation_set


def write_tflite_artifact(
    config: str | Path | ConfigFile,
    output_dir: Path,
    options: TfliteOptions,
    settings: Sequence[str] = (),
    input_shape: Sequence[int] | None = None,
    *,
    named: bool = True,
) -> Path:
    """Write the artifact of a configuration with `model.tflite` in it, as `write_artifact` does; returns its folder."""
    config = open_config(config, settings)
    folder = output_dir / config.name if named else output_dir
    return export_tflite(config, options, input_shape=input_shape).save(folder)


def export_tflite(
    config: str | Path | ConfigFile,
    options: TfliteOptions | None,
    settings: Sequence[str] = (),
    input_shape: Sequence[int] | None = None,
    onnx: OnnxOptions | None = None,
) -> Artifact:
    """The artifact of a configuration with a `.tflite` of each program, which is made and compared when it is saved.

    Args:
        options: None: no `.tflite`.
        onnx: Write the program as ONNX, too.

    Raises: as `export_config`; and when it is saved as `TfliteFile.write`.
    """
    config = open_config(config, settings)
    artifact = export_config(config, input_shape=input_shape, onnx=onnx, tflite=options)
    if options is None:
        return artifact

    @functools.cache
    def recorded() -> Mapping[str, Sequence[NamedArrays]]:
        """What the predictor feeds the programs with on `options.data`, by stage."""
        if options.data is None:
            return {}
        return record_inputs(artifact, example_files(options.data, options.examples))

    for name, one in programs_of(artifact).items():
        examples = functools.partial(_recorded_of, recorded, name)
        score = None
        if config.experiment.pipeline is None:
            score = _score_of(config, artifact)
            if options.data is None:
                experiment, names = (
                    settle_predict_options(config.experiment),
                    tuple(artifact.config["inputs"]),
                )
                examples = functools.partial(read_examples, experiment, names, options.examples)
        program = functools.partial(_open_program, one)
        one.formats = tuple(
            replace(file, examples=examples, score=score, program=program)
            if isinstance(file, TfliteFile)
            else file
            for file in one.formats
        )
    return artifact


def _recorded_of(
    recorded: Callable[[], Mapping[str, Sequence[NamedArrays]]], stage: str
) -> Sequence[NamedArrays]:
    return recorded().get(stage, ())


def _open_program(artifact: Artifact) -> Engine:
    return XLAEngine(artifact.programs["float32"], artifact.weights)


def _score_of(config: ConfigFile, artifact: Artifact) -> Callable[[Engine], tuple[str, float] | None]:
    """The first score on `data.eval` that an engine reaches; None where the data are not on this machine."""

    @functools.cache
    def data() -> EvaluationSet | None:
        try:
            return evaluation_set(
                config.experiment, config.path, tuple(artifact.setting("labels", default=()))
            )
        except (OarError, OSError):
            return None

    def score(engine: Engine) -> tuple[str, float] | None:
        evaluation = data()
        return None if evaluation is None else next(iter(score_engine(engine, evaluation, artifact).items()))

    return score
