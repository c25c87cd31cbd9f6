"""Every configuration as an ONNX file: ONNX Runtime and OpenVINO against our program, on two sizes of what is free.

python -m tools.bench.onnx_configs [part of a name ...]

Weights are drawn from their names, so none are needed. Columns: nodes, transpositions, seconds to export, and the
largest difference of each engine (relative to the largest value; see framework/export/formats/onnx/check.py).
"""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np

from framework import nn
from framework.config import build, load
from framework.core.errors import HubError, OarError
from framework.engine.experiment import Experiment, bind_experiment
from framework.engine.task import Task
from framework.export import TensorSpec
from framework.export.formats.onnx import export_onnx, write_onnx
from framework.export.formats.onnx.check import (
    RANKED,
    Difference,
    NamedArrays,
    compare,
    example_inputs,
    is_close,
    trial_sizes,
)
from framework.export.formats.onnx.model import Function
from framework.export.program import layer_function
from framework.interop.named_weights import named_weights
from framework.nn.functional.lowering import platform_scope
from framework.nn.reparam import fold_norms, reparameterize
from framework.workflow.domain.domain import find_domain
from framework.workflow.export.export import ExportedModel, settle_predict_options
from framework.workflow.export.onnx import draw_input

REPO = Path(__file__).resolve().parents[2]
# Factors of drawn kernels, the first that spreads the scores of detections: with too small ones a network answers the
# same for every image, with too large ones every score is 1, and which of equal detections are best is up to rounding.
GAINS = (1.0, 2.0, 1.6, 1.3, 0.9, 0.8)
DISTINCT = 0.9  # share of an image's scores, to six digits, that no other one equals
# Configurations, or stages of them, that have no ONNX file, and why.
WITHOUT_ONNX: dict[str, str] = {}


@dataclass(frozen=True)
class Program:
    """What one model of a configuration exports, without weights."""

    name: str
    model: Any
    task: Task
    inputs: Mapping[str, TensorSpec]
    constraints: tuple[str, ...] = ()

    def layer(self) -> nn.Layer:
        """The model with its task's inference, and weights drawn from their names."""
        model = build(self.model)
        model.set_state_dict(named_weights(model.state_shapes()))
        return ExportedModel(fold_norms(reparameterize(model)), self.task, tuple(self.inputs))


def configs() -> list[Path]:
    return sorted(path for path in (REPO / "configs").rglob("*.yml") if "_base_" not in path.parts)


def programs(config: Path) -> Iterator[Program]:
    """The models of a configuration: one, or one of each stage."""
    experiment = bind_experiment(load(config))
    if experiment.pipeline is not None:
        yield from _stages(config.stem, experiment)
        return
    experiment = find_domain(experiment.domain).prepare_export(settle_predict_options(experiment))
    inputs = {name: TensorSpec(spec.shape, spec.dtype) for name, spec in experiment.export.inputs.items()}
    assert experiment.task is not None
    yield Program(
        config.stem, experiment.model, experiment.task, inputs, tuple(experiment.export.constraints)
    )


def _stages(name: str, experiment: Experiment) -> Iterator[Program]:
    pipeline: Any = experiment.pipeline
    for stage in pipeline.stage_names:
        part = getattr(pipeline, stage)
        try:
            found = part.stage()
            yield Program(f"{name}/{stage}", found.model, found.task, found.inputs, found.constraints)
        except HubError:  # which asks for weights and a dictionary, of which nothing here depends
            yield _without_weights(f"{name}/{stage}", stage, part)


def _without_weights(name: str, stage: str, part: Any) -> Program:
    from ocr.tasks.text import TextDetection, TextRecognition

    if stage == "detector":
        inputs = {
            "image": TensorSpec(("n", "32*h", "32*w", 3), "uint8"),
            "size": TensorSpec(("n", 2), "int32"),
        }
        return Program(name, part.model, TextDetection(part.options.normalize), inputs)
    inputs = {
        "image": TensorSpec(("n", part.options.height, "w", 3), "uint8"),
        "width": TensorSpec(("n",), "int32"),
    }
    model = dataclasses.replace(part.model, num_classes=97)
    return Program(name, model, TextRecognition(part.options.normalize), inputs, ("w >= 16",))


@dataclass(frozen=True)
class Row:
    """What became of a program: nodes by operator, seconds, and differences by engine."""

    operators: Counter[str]
    seconds: float
    differences: dict[str, list[Difference]]

    @property
    def close(self) -> bool:
        return all(is_close(one) for found in self.differences.values() for one in found)


def openvino_runner(file: Path) -> Callable[[NamedArrays], NamedArrays]:
    """Runs a file in OpenVINO on the CPU, in float32."""
    import openvino

    model = openvino.Core().compile_model(str(file), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    known = {name for port in model.inputs for name in port.get_names()}

    def run(feed: NamedArrays) -> NamedArrays:
        found = model({name: array for name, array in feed.items() if name in known})
        return {name: np.asarray(value) for port, value in found.items() for name in port.get_names()}

    return run


def spread_scores(
    fn: Function, weights: Mapping[str, np.ndarray], program: Program
) -> Mapping[str, np.ndarray]:
    """The weights, of a detector with kernels scaled by the first of GAINS with which its scores differ, else by that
    with which most do."""
    feed = example_inputs(program.inputs, trial_sizes(program.inputs, program.constraints)[0], draw_input)
    best, most = weights, 0
    with platform_scope("other"):
        run = jax.jit(fn)
        if not {"boxes", RANKED} <= set(jax.eval_shape(run, dict(weights), feed)):
            return weights
        for gain in GAINS:
            scaled = {name: gain * w if w.ndim == 4 else w for name, w in weights.items()}
            scores = np.asarray(run(scaled, feed)[RANKED])[0]
            count = len(np.unique(scores.round(6)))
            if count > most:
                best, most = scaled, count
            if count >= DISTINCT * len(scores):
                break
    return best


def export_and_compare(program: Program, with_openvino: bool = False) -> Row:
    """Raises: as export_onnx."""
    fn, weights = layer_function(program.layer(), program.inputs)
    weights = spread_scores(fn, weights, program)
    start = time.perf_counter()
    model = export_onnx(fn, weights, program.inputs, constraints=program.constraints)
    seconds = time.perf_counter() - start
    operators = Counter(node.op_type for node in model.graph.node)
    with tempfile.TemporaryDirectory() as folder:
        file = write_onnx(model, Path(folder) / "model.onnx")[-1]
        shared: Any = (fn, weights, program.inputs)
        settings: Any = {"constraints": program.constraints, "draw": draw_input}
        found = {"onnxruntime": compare(file, *shared, **settings)}
        if with_openvino:
            found["openvino"] = compare(file, *shared, **settings, run=openvino_runner(file))
    return Row(operators, seconds, found)


def main(argv: list[str]) -> int:
    failed = 0
    for config in configs():
        if argv and not any(part in str(config) for part in argv):
            continue
        for program in programs(config):
            try:
                row = export_and_compare(program, with_openvino=True)
            except (OarError, RuntimeError) as error:
                failed += 1
                print(f"{program.name:52s} FAILED {type(error).__name__}: {str(error)[:200]}", flush=True)
                continue
            failed += not row.close
            worst = {engine: max(one.value for one in all_) for engine, all_ in row.differences.items()}
            print(
                f"{program.name:52s} {row.operators.total():5d} nodes {row.operators['Transpose']:4d} T "
                f"{row.seconds:5.1f} s  "
                + "  ".join(f"{engine} {value:.1e}" for engine, value in worst.items())
                + ("" if row.close else "  TOO FAR"),
                flush=True,
            )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
