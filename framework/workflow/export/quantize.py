"""Quantise a model after training: what `oar quantize` does, for models of every domain and for pipelines.

The ONNX file of each program gets int8 layers, as many as the score allows; the program for XLA computes in float32
with weights that the artifact's file holds as int8. Examples come from the data of the configuration, or from files
that the model's own predictor reads. What is held is the score on labelled data; of a pipeline, what its results say.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import logging
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.compress import QuantizedModel, Quantizer
from framework.compress.weight_only import quantize_weights
from framework.core.disk import scratch_folder
from framework.core.errors import ConfigError, InputError
from framework.core.types import JSON
from framework.export import Artifact, load_artifact
from framework.export.artifact import ONNX, check_output
from framework.export.formats.onnx.check import NamedArrays
from framework.inference import Runtime
from framework.inference.engine import Engine
from framework.io.checkpoint import config_name
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import find_config
from framework.workflow.export.agreement import agreement
from framework.workflow.export.examples import (
    example_files,
    example_inputs,
    programs_of,
    record_inputs,
    spread,
)
from framework.workflow.export.export import export_config, settle_predict_options
from framework.workflow.export.onnx import OnnxOptions
from framework.workflow.export.pipeline_score import SCORED_FILES, PipelineScore
from framework.workflow.train.artifact_scores import score_engine
from framework.workflow.train.run import EvaluationSet, evaluation_set

log = logging.getLogger("oar")
_TIMED_CALLS = 15
_MAX_LAYERS = 6  # layers in float32 that the table names; the artifact's config has all
Score = Callable[[str, Engine], tuple[str, float]]
"""The name of what is held, and its value, of a program in an engine, whose name comes first."""


@dataclass(frozen=True)
class QuantizeOptions:
    """How a model is quantised.

    Attributes:
        engine: With which the score is held: the one that the model will run in.
        max_loss: Of the score, as a share of 1: 0.01 is a point of a percentage.
        bits: Of weights: 8; or 7, for CPUs without VNNI whose int8 products overflow.
        examples: How many calibrate the ranges.
    """

    engine: Literal["onnxruntime", "openvino"] = "onnxruntime"
    max_loss: float = 0.01
    bits: Literal[7, 8] = 8
    examples: int = 64

    def __post_init__(self) -> None:
        if not 0 <= self.max_loss < 1:
            raise InputError(
                "the loss of the score is a share",
                where="max_loss",
                received=self.max_loss,
                allowed="0 up to 1",
            )
        if self.examples < 1:
            raise InputError(
                "ranges need an example", where="examples", received=self.examples, allowed="1 or more"
            )


@dataclass(frozen=True)
class Row:
    """One line of the table: what ran, its score, and milliseconds a call with the first example."""

    engine: str
    precision: str
    score: float
    milliseconds: float


@dataclass(frozen=True)
class Quantization:
    """What became of one program.

    Attributes:
        name: Of the stage; of the model where there are no stages.
        metric: What the scores are: that of the evaluation; the share of a pipeline's words, or of what else counts in
            its results, that stay as they are in float32; or "agreement" of outputs with float32 on the examples.
        layers: How many there are.
        in_float: Those that stayed in float32, by their weights' names.
        sizes: Bytes of the ONNX file before and after.
        rows: float32 and int8 in every engine that is installed.
    """

    name: str
    metric: str
    layers: int
    in_float: tuple[str, ...]
    sizes: tuple[int, int]
    rows: tuple[Row, ...]

    def _slower(self) -> dict[str, str]:
        """A line for each engine that gains nothing: where small layers stand between those with weights, numbers go
        to 8 bits and back more often than that saves."""
        times = {(row.engine, row.precision): row.milliseconds for row in self.rows}
        return {
            engine: f"int8 is {'slower' if small > full else 'not faster'} than float32 in {engine} here "
            f"({full:.2f} -> {small:.2f} ms), as going to 8 bits and back takes what its layers save: "
            "take it for its size, or leave this model in float32"
            for (engine, precision), full in times.items()
            if precision == "float32" and (small := times.get((engine, "int8"), 0.0)) > 0.95 * full
        }

    def describe(self) -> str:
        """The table as lines of text."""
        before, after = (size / 1e6 for size in self.sizes)
        head = f"{self.name}: {self.layers - len(self.in_float)} of {self.layers} layers in int8, "
        lines = [head + f"{before:.2f} MB as ONNX before, {after:.2f} MB after"]
        lines += [f"{'engine':<12} {'precision':<10} {self.metric:>12} {'ms':>9}"]
        for row in self.rows:
            lines.append(f"{row.engine:<12} {row.precision:<10} {row.score:>12.4f} {row.milliseconds:>9.2f}")
        lines += self._slower().values()
        if self.in_float:
            more = len(self.in_float) - _MAX_LAYERS
            lines.append(
                "in float32: "
                + ", ".join(self.in_float[:_MAX_LAYERS])
                + (f" and {more} more" if more > 0 else "")
            )
        return "\n".join(lines)

    def to_dict(self) -> dict[str, JSON]:
        """For the artifact's config."""
        return {
            "metric": self.metric,
            "layers": self.layers,
            "float32_layers": list(self.in_float),
            "scores": [dataclasses.asdict(row) for row in self.rows],
            "not_faster": dict(self._slower()),
        }


def quantize(
    config: str | Path | ConfigFile,
    output: str | Path,
    settings: Sequence[str] = (),
    data: str | Path | None = None,
    options: QuantizeOptions = QuantizeOptions(),
) -> list[Quantization]:
    """Write the artifact of a configuration with int8 layers to the folder `output`; what became of each program.

    Args:
        settings: Overrides, as `-o` of the tools.
        data: A folder of images, or a file with a text a line, in place of the configuration's own data as examples.
        options: See `QuantizeOptions`.

    Raises:
        InputError: there are no examples. ConfigError: a pipeline without `data`.
        FormatError: the model has no layer that could be in int8, or none may be without losing more than allowed.
    """
    config = open_config(config, settings)
    experiment = config.experiment
    if data is None and experiment.pipeline is not None:
        raise ConfigError(
            "a pipeline has no data of its own",
            where=config.path,
            received="no --data",
            fix="--data FOLDER, with images as those that it will read",
        )
    check_output(Path(output))  # before minutes are spent
    files = None if data is None else example_files(Path(data), options.examples)
    with scratch_folder("oar-quantize-") as work:
        artifact = load_artifact(export_config(config, onnx=OnnxOptions()).save(work / "f32"), trust=True)
        feeds = (
            {
                "": list(
                    example_inputs(
                        settle_predict_options(experiment), artifact.config["inputs"], options.examples
                    )
                )
            }
            if files is None
            else record_inputs(artifact, files, options.engine)
        )
        labelled = None
        if experiment.pipeline is None and experiment.data.eval is not None:
            labelled = evaluation_set(experiment, config.path, tuple(artifact.setting("labels", default=())))
        programs = programs_of(artifact)
        engines = {
            engine: {name: _open(engine, one) for name, one in programs.items()} for engine in _installed()
        }
        pipeline = None
        if files is not None:
            pipeline = PipelineScore.open(artifact, spread(files, SCORED_FILES), engines[options.engine])
        before: dict[str, tuple[str, float]] = {}
        quantizations = []
        for index, (name, one) in enumerate(programs.items()):
            inputs = feeds.get(name, [])
            if not inputs:
                raise InputError(
                    "no example reached this program",
                    where=name or config.name,
                    received="examples in which the stages before it found nothing",
                    fix="--data with images as those that it will read",
                )
            current = {engine: opened[name] for engine, opened in engines.items()}
            if pipeline is None:
                score = _make_score(current[options.engine], inputs, labelled, one)
                before = {}
            else:
                score = _pipeline_score(pipeline, engines, name)
            before = before or {engine: score(engine, program) for engine, program in current.items()}
            # Each stage of a pipeline may lose its part of what all may, and what those before it have left.
            spent = 1.0 if pipeline is None else (index + 1) / len(programs)
            least = (before[options.engine][1] if pipeline is None else 1.0) - spent * options.max_loss
            quantization, smaller = _quantize_program(
                one, name or config.name, inputs, current, score, before, least, options
            )
            for engine, program in smaller.items():
                engines[engine][name] = program
            before = {
                row.engine: (quantization.metric, row.score)
                for row in quantization.rows
                if row.precision == "int8"
            }
            one.config["quantization"] = quantization.to_dict()
            one.config["engines"] = {"cpu": _ranking(quantization, options.max_loss)}
            quantizations.append(quantization)
        artifact.save(output)
    return quantizations


def default_folder(config: str | Path) -> Path:
    """Where an artifact in int8 is written where nothing else is asked for."""
    return Path("inference_model") / f"{config_name(find_config(config))}_int8"


def _ranking(quantization: Quantization, max_loss: float) -> list[str]:
    """Engines by their time in int8, those whose score holds."""
    reference = next(row.score for row in quantization.rows if row.precision == "float32")
    held = [row for row in quantization.rows if row.precision == "int8" and row.score >= reference - max_loss]
    return [row.engine for row in sorted(held, key=lambda row: row.milliseconds)]


def _quantize_program(
    artifact: Artifact,
    name: str,
    feeds: list[NamedArrays],
    floats: Mapping[str, Engine],
    score: Score,
    before: Mapping[str, tuple[str, float]],
    least: float,
    options: QuantizeOptions,
) -> tuple[Quantization, dict[str, Engine]]:
    """Quantise one program of an artifact, in place; what became of it, and its engines then.

    Args:
        floats: It in every engine.
        before: Its score in each.
        least: The score that must be reached.
    """
    assert artifact.folder is not None and artifact.onnx_file is not None
    file = artifact.folder / ONNX
    quantizer = Quantizer.read(file, feeds[: options.examples], options.bits)
    metric = before[options.engine][0]
    size = file.stat().st_size

    def holds(in_float: frozenset[str]) -> bool:
        _, reached = score(options.engine, _open(options.engine, artifact))
        log.info(
            "%s: %s %.4f with %d of %d layers in int8 (%.4f needed)",
            *(name, metric, reached, len(quantizer.layers) - len(in_float), len(quantizer.layers), least),
        )
        return reached >= least

    quantized: QuantizedModel = quantizer.search(file, holds)
    rows = [Row(engine, "float32", before[engine][1], _time(one, feeds[0])) for engine, one in floats.items()]
    precise = {f"model.{layer.weight}" for layer in quantizer.layers if layer.name in quantized.in_float}
    artifact.weights, artifact.scales = quantize_weights(artifact.weights, precise)
    artifact.formats = (quantized,)
    smaller = {engine: _open(engine, artifact) for engine in floats}
    for engine, one in smaller.items():
        rows.append(Row(engine, "int8", score(engine, one)[1], _time(one, feeds[0])))
    sizes = (size, file.stat().st_size)
    in_float = tuple(layer.name for layer in quantizer.layers if layer.name in quantized.in_float)
    return Quantization(name, metric, len(quantizer.layers), in_float, sizes, tuple(rows)), smaller


def _open(engine: str, artifact: Artifact) -> Engine:
    return Runtime(engine=engine, precision="float32").open(artifact)


def _installed() -> list[str]:
    """The engines that run here."""
    return [
        name for name in ("xla", "onnxruntime", "openvino") if name == "xla" or importlib.util.find_spec(name)
    ]


def _make_score(
    reference: Engine, feeds: Sequence[NamedArrays], labelled: EvaluationSet | None, artifact: Artifact
) -> Score:
    """What is held of one program: the first score of an evaluation, or the agreement with float32."""
    if labelled is not None:
        data = labelled
        return lambda _, engine: next(iter(score_engine(engine, data, artifact).items()))
    expected = [reference(feed) for feed in feeds]
    return lambda _, engine: ("agreement", agreement(expected, [engine(feed) for feed in feeds]))


def _pipeline_score(score: PipelineScore, engines: Mapping[str, Mapping[str, Engine]], stage: str) -> Score:
    """What is held of a stage: the results of the pipeline with the stages before it as they are by now.

    Args:
        engines: Those of each stage, by the engine's name.
    """
    return lambda name, engine: (score.content.counts, score({**engines[name], stage: engine}))


def _time(engine: Engine, feed: NamedArrays) -> float:
    """The median of some calls with the first of a batch, in milliseconds."""
    one = {name: array[:1] for name, array in feed.items()}
    engine(one)
    seconds = []
    for _ in range(_TIMED_CALLS):
        start = time.perf_counter()
        engine(one)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)
