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
from framework.workflow.export.examples import example_files, programs_of, record_inputs, spread
from framework.workflow.export.export import export_config, read_examples, settle_predict_options
from framework.workflow.export.onnx import OnnxOptions
from framework.workflow.export.pipeline_score import SCORED_FILES, PipelineScore
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

    programs = programs_of(artifact)
    open_program = functools.cache(lambda name: _open_program(programs[name]))

    @functools.cache
    def pipeline_score() -> PipelineScore | None:
        """What the pipeline says on `options.data` in float32, with which each stage's file is compared."""
        if options.data is None:
            return None
        files = spread(example_files(options.data, options.examples), SCORED_FILES)
        return PipelineScore.open(artifact, files, {name: open_program(name) for name in programs})

    for name, one in programs.items():
        examples = functools.partial(_recorded_of, recorded, name)
        score: Callable[[Engine], tuple[str, float] | None] = functools.partial(
            _score_of_stage, pipeline_score, open_program, tuple(programs), name
        )
        if config.experiment.pipeline is None:
            score = _score_of(config, artifact)
            if options.data is None:
                experiment, names = (
                    settle_predict_options(config.experiment),
                    tuple(artifact.config["inputs"]),
                )
                examples = functools.partial(read_examples, experiment, names, options.examples)
        # Each stage of a pipeline may lose its part of what all may.
        options_of_one = replace(options, max_loss=options.max_loss / len(programs))
        program = functools.partial(open_program, name)
        one.formats = tuple(
            replace(file, options=options_of_one, examples=examples, score=score, program=program)
            if isinstance(file, TfliteFile)
            else file
            for file in one.formats
        )
    return artifact


def _recorded_of(
    recorded: Callable[[], Mapping[str, Sequence[NamedArrays]]], stage: str
) -> Sequence[NamedArrays]:
    return recorded().get(stage, ())


def _score_of_stage(
    pipeline: Callable[[], PipelineScore | None],
    open_program: Callable[[str], Engine],
    stages: Sequence[str],
    stage: str,
    engine: Engine,
) -> tuple[str, float] | None:
    """How much of what a pipeline says stays with this engine in one of its stages; None where nothing tells."""
    score = pipeline()
    if score is None:
        return None
    if engine is open_program(stage):
        return score.content.counts, 1.0
    return score.content.counts, score({**{name: open_program(name) for name in stages}, stage: engine})


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
