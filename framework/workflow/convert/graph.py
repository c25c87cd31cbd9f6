"""Graphs of other frameworks as artifacts: what `oar convert model.onnx folder` does."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.core.disk import scratch_folder
from framework.core.errors import FormatError, InputError, OarError, TraceError
from framework.core.process import cpu_limit
from framework.core.types import JSON
from framework.export import Artifact, TensorSpec
from framework.export.artifact import ONNX, StoredFiles, check_output
from framework.export.formats.onnx.check import example_inputs, trial_sizes
from framework.export.program import lower_layer
from framework.export.program_bytes import Program
from framework.inference.engine import Engine, XLAEngine
from framework.inference.graph_engine import GraphEngine, load_graph
from framework.interop.graph.layer import GraphLayer
from framework.interop.graph.values import collect_limits
from framework.interop.programs.program import TEXT_NAME
from framework.interop.programs.program import TensorSpec as GraphTensorSpec
from framework.interop.source import Source, read_source

GRAPHS = (".onnx", ".pdmodel", ".json")
_TO_ONNX = {
    ".pb": "python -m tf2onnx.convert --saved-model FOLDER --output model.onnx   (pip install tensorflow-cpu tf2onnx)",
    ".tflite": "python -m tf2onnx.convert --tflite FILE --output model.onnx   (pip install tensorflow-cpu tf2onnx)",
    ".keras": "python -c \"import keras; keras.models.load_model('FILE').export('saved_model')\", then "
    "python -m tf2onnx.convert --saved-model saved_model --output model.onnx   (pip install tensorflow-cpu tf2onnx)",
    ".caffemodel": "python -m caffe2onnx.convert --prototxt FILE.prototxt --caffemodel FILE.caffemodel "
    "--onnx model.onnx   (see docs/graphs.md)",
}
_TO_ONNX |= {".h5": _TO_ONNX[".keras"], ".prototxt": _TO_ONNX[".caffemodel"]}
_AGREES = 1e-3  # of the largest value: differences of rounding
_MULTIPLES = (1, 2, 4, 8, 16, 32, 64)
_AXES = "hwdklmpqrstuvxyz"
_RESERVED = ("max", "min", "mod", "floordiv", "n")  # words of jax's sizes, and our name of a batch


def refuse_foreign(graph: str | Path) -> None:
    """Say which command makes an ONNX file of a graph of TensorFlow, Keras, TFLite or Caffe.

    Raises:
        FormatError: the file, or the folder with saved_model.pb, is such a graph.
    """
    path = Path(graph)
    suffix = ".pb" if (path / "saved_model.pb").is_file() else path.suffix.lower()
    if suffix in _TO_ONNX:
        raise FormatError(
            "graphs of this framework come in through ONNX",
            where=str(path),
            received=suffix,
            allowed=", ".join(GRAPHS),
            fix=_TO_ONNX[suffix]
            .replace("FILE.prototxt", f"{path.stem}.prototxt")
            .replace("FILE.caffemodel", f"{path.stem}.caffemodel")
            .replace("FILE", path.name)
            .replace("FOLDER", str(path if path.is_dir() else path.parent)),
        )


@dataclass(frozen=True)
class Conversion:
    """A graph as a program, in memory.

    Attributes:
        graph: What it was made of.
        inputs: Of the program, by name.
        program, weights: As an artifact takes them.
        source: The file of the graph.
        limits: What the program asks of its sizes, such as "t <= 512".
    """

    graph: GraphLayer
    inputs: Mapping[str, TensorSpec]
    program: Program
    weights: dict[str, np.ndarray]
    source: Source
    limits: tuple[str, ...] = ()

    @functools.cached_property
    def engine(self) -> XLAEngine:
        """What runs the program."""
        return XLAEngine(self.program, self.weights)

    @functools.cached_property
    def reference(self) -> GraphEngine:
        """What runs the graph as it is."""
        return GraphEngine(self.graph)

    def write(self, output: str | Path, with_onnx: bool = False) -> list[EngineTime]:
        """As an artifact, which runs on all platforms without the graph's file; where `output` ends in .onnx, as one
        ONNX file, which needs the extra onnx.

        Args:
            with_onnx: Whether the artifact holds an ONNX file for other engines, too, and ranks those that are
                installed here by the time of a call.

        Returns: what was measured for that ranking, fastest first.
        """
        output = Path(output)
        if output.suffix == ".onnx":
            self._write_onnx(output)
            return []
        digest = hashlib.sha256(self.source.data).hexdigest()
        config: dict[str, JSON] = {
            "name": output.name,
            "inputs": [*self.inputs],
            "outputs": [spec.name for spec in self.graph.outputs],
            "provenance": {"graph": Path(self.source.name).name, "sha256": digest},
        }
        artifact = Artifact(config, {"float32": self.program}, self.weights)
        if not with_onnx:
            artifact.save(output)
            return []
        check_output(output)  # before the time that follows
        with scratch_folder("oar-convert-") as folder:
            files = self._write_onnx(folder / ONNX)
            times = measure_engines(self, folder / ONNX)
            agreeing = (one.engine for one in times if one.agrees)
            if faster := list(itertools.takewhile(lambda name: name != "xla", agreeing)):
                config["engines"] = {"cpu": [*faster, "xla"]}
            artifact.formats = (StoredFiles(tuple(files)),)
            artifact.save(output)
        return times

    def _write_onnx(self, path: Path) -> list[Path]:
        from framework.export.formats.onnx import export_layer  # needs the extra

        names = [spec.name for spec in self.graph.outputs]
        return export_layer(self.graph, self.inputs, path, outputs=names, constraints=self.limits)


@dataclass(frozen=True)
class EngineTime:
    """An engine with a converted graph.

    Attributes:
        engine: As `Runtime` calls it.
        milliseconds: A call takes on a CPU of this machine.
        difference: From the graph, of the largest value.
        problem: Why the engine does not run it; "" where it does.
    """

    engine: str
    milliseconds: float
    difference: float
    problem: str = ""

    @property
    def agrees(self) -> bool:
        """Whether the engine gives the results of the graph."""
        return not self.problem and self.difference <= _AGREES


def convert_graph(
    graph: str | Path,
    params: str | Path | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> Conversion:
    """The program of an ONNX model or a program of Paddle.

    Sizes that the graph leaves open stay open, as multiples of a power of two where the graph halves them; `shapes`
    says otherwise, by input: ("n", 3, "32*h", 320).

    Raises:
        FormatError: the file is damaged, or has operators that are not known.
        InputError: `shapes` names no input, or the graph does not go with open sizes.
    """
    source = read_source(graph)
    layer = load_graph(source, None if params is None else Path(params))
    unknown = [name for name in shapes or {} if name not in {spec.name for spec in layer.inputs}]
    if unknown:
        raise InputError(
            "the graph has no such input",
            received=", ".join(unknown),
            allowed=", ".join(f"{spec.name} {list(spec.shape)}" for spec in layer.inputs),
        )
    names = tuple(spec.name for spec in layer.outputs)

    def by_name(out: object) -> dict[str, object]:
        return dict(zip(names, out if isinstance(out, tuple) else (out,), strict=True))

    failure: Exception | None = None
    tried: list[Mapping[str, TensorSpec]] = []
    for by_axis in (False, True):
        for multiple in _MULTIPLES:
            inputs = _inputs(layer, shapes or {}, multiple, by_axis)
            if inputs in tried:
                continue
            tried.append(inputs)
            try:
                program, weights, limits = _lower(layer, inputs, by_name)
                return Conversion(layer, inputs, program, weights, source, limits)
            except (OarError, ValueError, TypeError) as error:  # jax raises both about symbolic sizes
                failure = failure or error
    raise InputError(
        "the graph does not go with these sizes",
        where=str(graph),
        received=f"{_describe(tried[0])}: {_first_lines(failure)}",
        fix=_advise(layer, shapes or {}, by_name, str(graph)),
    ) from failure


_ByName = Callable[[object], dict[str, object]]


def _lower(
    layer: GraphLayer, inputs: Mapping[str, TensorSpec], by_name: _ByName
) -> tuple[Program, dict[str, np.ndarray], tuple[str, ...]]:
    """The program, its weights and the limits of its sizes, such as the rows of a table of positions."""
    with collect_limits() as limits:
        try:
            return *lower_layer(layer, inputs, after=by_name), ()  # type: ignore[arg-type]
        except (OarError, ValueError, TypeError):
            if not limits:
                raise
        return *lower_layer(layer, inputs, after=by_name, constraints=limits), tuple(limits)  # type: ignore[arg-type]


def _first_lines(error: Exception | None) -> str:
    """What an error says, with the value that it is about."""
    return " ".join(line.strip() for line in str(error).splitlines()[:2])


def _advise(
    layer: GraphLayer, shapes: Mapping[str, Sequence[int | str]], by_name: _ByName, graph: str
) -> str:
    """Sizes that work, tried, as they are written on the command line; or that none do. Where those that were asked for
    are the fault, the graph's own are tried."""
    reason: Exception | None = None
    for sizes, by_axis in itertools.product((shapes, {}) if shapes else ({},), (False, True)):
        inputs = _fixed(_inputs(layer, sizes, 1, by_axis))
        try:
            _lower(layer, inputs, by_name)
        except (OarError, ValueError, TypeError) as error:
            reason = reason or error
        else:
            return "say the sizes of your inputs as numbers: " + _describe(inputs)
    return (
        f"no sizes help ({_first_lines(reason)}); run the graph where it is, node by node where it must be: "
        f"framework.inference.create_predictor(Config({graph!r}))"
    )


def _fixed(inputs: Mapping[str, TensorSpec]) -> dict[str, TensorSpec]:
    """One number for each named size: 1 for a batch, 64 for images, else 12."""
    sizes: dict[str, int] = {}
    fixed = {}
    for name, spec in inputs.items():
        shape = []
        for axis, size in enumerate(spec.shape):
            if isinstance(size, str):
                size = sizes.setdefault(size, 1 if axis == 0 else 64 if len(spec.shape) == 4 else 12)
            shape.append(size)
        fixed[name] = TensorSpec(tuple(shape), spec.dtype)
    return fixed


def _inputs(
    layer: GraphLayer, shapes: Mapping[str, Sequence[int | str]], multiple: int, by_axis: bool = False
) -> dict[str, TensorSpec]:
    """The inputs with a name for each open size: that of the file, which inputs may share, else n for the first axis
    and a letter for another. With `by_axis` inputs of one rank share the sizes of the same axes."""
    named = {size for spec in layer.inputs for size in spec.shape if isinstance(size, str)}
    free = (letter for letter in _AXES if letter not in named)
    names: dict[object, str] = {}

    def name_of(spec: GraphTensorSpec, axis: int) -> str:
        size = spec.shape[axis]
        if by_axis:
            key: object = axis and (len(spec.shape), axis)
        else:
            key = (
                size
                if isinstance(size, str) and size.isidentifier() and size not in _RESERVED
                else (spec.name, axis)
            )
        if key not in names:
            names[key] = key if isinstance(key, str) else "n" if axis == 0 else next(free)
        return "n" if axis == 0 and not isinstance(key, str) else names[key]

    inputs = {}
    for spec in layer.inputs:
        if spec.dtype == TEXT_NAME:
            raise InputError(
                "an input of the graph is text, which is not part of a compiled program",
                where=spec.name,
                fix="run the graph where it is: framework.inference.create_predictor(Config(file))",
            )
        dtype = {"int64": "int32", "float64": "float32"}.get(spec.dtype, spec.dtype or "float32")
        shape: list[int | str] = list(shapes.get(spec.name, ()))
        if not shape:
            for axis, size in enumerate(spec.shape):
                if isinstance(size, int) and size > 0:
                    shape.append(size)
                    continue
                name = name_of(spec, axis)
                shape.append(
                    f"{multiple}*{name}" if axis > 0 and multiple > 1 and len(spec.shape) == 4 else name
                )
        inputs[spec.name] = TensorSpec(tuple(shape), dtype)
    return inputs


def _describe(inputs: Mapping[str, TensorSpec]) -> str:
    return " ".join(f"--shape {name}={','.join(map(str, spec.shape))}" for name, spec in inputs.items())


def compare_with_graph(conversion: Conversion) -> float:
    """The largest difference between the program and the graph on two sizes of inputs, relative to the largest value.

    Raises:
        TraceError: the program gives other results than the graph.
    """
    worst = largest_difference(conversion, conversion.engine)
    if not worst <= _AGREES:
        raise TraceError(
            "the program gives other results than the graph",
            received=f"a difference of {worst:.1e} of the largest value",
            allowed=f"{_AGREES:g}",
            fix="run it with Config(file): the graph computes with float64, and programs have float32"
            if conversion.graph.graph.doubles
            else "report the graph; until then run it with Config(file)",
        )
    return worst


def largest_difference(conversion: Conversion, engine: Engine) -> float:
    """As `compare_with_graph`, of any engine that runs the program; inf, where an output has another shape, or NaN at
    another place."""
    worst = 0.0
    for sizes in trial_sizes(conversion.inputs, conversion.limits):
        arrays = example_inputs(conversion.inputs, sizes)
        got, expected = engine(arrays), conversion.reference(arrays)
        for name, array in expected.items():
            if array.dtype == object:  # dictionaries of labels and scores: the program gives the scores
                array = np.asarray([list(row.values()) for row in array])
            a, b = np.asarray(array, np.float64), np.asarray(got[name], np.float64)
            if a.ndim and a.shape[1:] == b.shape[1:]:
                b = b[: len(a)]  # the program fills up what suppression left
            if a.shape != b.shape:
                return math.inf
            scale = max(float(np.abs(a[np.isfinite(a)]).max(initial=0.0)), 1e-6)
            differs = (a != b) & ~(np.isnan(a) & np.isnan(b))
            difference = float(np.abs(a[differs] - b[differs]).max(initial=0.0)) / scale
            if math.isnan(difference):  # one of two is no number
                return math.inf
            worst = max(worst, difference)
    return worst


def time_program(conversion: Conversion, engine: Engine | None = None) -> float:
    """Milliseconds that a call of the program takes, with inputs of the first size that it is compared with."""
    engine = engine or conversion.engine
    arrays = example_inputs(conversion.inputs, trial_sizes(conversion.inputs, conversion.limits)[0])
    engine(arrays)
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        engine(arrays)
        seconds.append(time.perf_counter() - start)
    return 1e3 * statistics.median(seconds)


def measure_engines(conversion: Conversion, file: Path) -> list[EngineTime]:
    """XLA, and the engines of ONNX files that are installed, on a CPU: those that agree with the graph first, by time.

    Args:
        file: The program as ONNX.
    """
    from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine
    from framework.inference.engines.openvino import OpenVINOEngine

    threads = cpu_limit()
    openers: dict[str, Callable[[], Engine]] = {
        "openvino": lambda: OpenVINOEngine(file, threads=threads),
        "onnxruntime": lambda: ONNXRuntimeEngine(file, threads=threads),
        "xla": lambda: conversion.engine,
    }
    times = []
    for name, open_engine in openers.items():
        if name != "xla" and importlib.util.find_spec(name) is None:
            continue
        try:
            engine = open_engine()
            difference = largest_difference(conversion, engine)
            times.append(EngineTime(name, time_program(conversion, engine), difference))
        except OarError as error:
            times.append(EngineTime(name, math.inf, math.inf, _first_lines(error)))
    return sorted(times, key=lambda one: (not one.agrees, one.milliseconds))
