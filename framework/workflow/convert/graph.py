"""Graphs of other frameworks as artifacts: what `oar convert model.onnx folder` does."""

from __future__ import annotations

import hashlib
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.core.errors import FormatError, InputError, OarError, TraceError
from framework.export import Artifact, TensorSpec
from framework.export.artifact import load_artifact
from framework.export.formats.onnx.check import example_inputs, trial_sizes
from framework.export.program import lower_layer
from framework.inference.engine import XLAEngine
from framework.inference.graph_engine import GraphEngine, load_graph
from framework.interop.graph.layer import GraphLayer

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
_MULTIPLES = (1, 2, 4, 8, 16, 32, 64)
_AXES = "hwdklmpqrstuvxyz"


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
    """What `convert_graph` made: the inputs of the program, the largest difference from the graph relative to the
    largest value, and milliseconds a call of the program."""

    inputs: dict[str, TensorSpec]
    difference: float
    milliseconds: float


def convert_graph(
    graph: str | Path,
    output: str | Path,
    params: str | Path | None = None,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
) -> Conversion:
    """Write an ONNX model or a program of Paddle as an artifact, which runs on all platforms without its file; where
    `output` ends in .onnx, as one ONNX file, which needs the extra onnx.

    Sizes that the graph leaves open stay open, as multiples of a power of two where the graph halves them; `shapes`
    says otherwise, by input: ("n", 3, "32*h", 320). The program is compared with the graph on two sizes before the
    folder is called written.

    Raises:
        FormatError: the file is damaged, or has operators that are not known.
        InputError: `shapes` names no input, or the graph does not go with open sizes.
        TraceError: the program gives other results than the graph.
    """
    layer = load_graph(Path(graph), None if params is None else Path(params))
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
    for multiple in _MULTIPLES:
        inputs = _inputs(layer, shapes or {}, multiple)
        try:
            program, weights = lower_layer(layer, inputs, after=by_name)  # type: ignore[arg-type]
            break
        except (OarError, ValueError, TypeError) as error:  # jax raises both about symbolic sizes
            failure = failure or error
    else:
        raise InputError(
            "the graph does not go with these sizes",
            where=str(graph),
            received=f"{_describe(_inputs(layer, shapes or {}, 1))}: {str(failure).splitlines()[0]}",
            fix="say the sizes that it was made for, such as --shape " + _describe(_inputs(layer, {}, 32)),
        ) from failure
    source = Path(graph)
    if Path(output).suffix == ".onnx":
        return _write_onnx(layer, inputs, Path(output), XLAEngine(program, weights))
    config = {
        "name": Path(output).name,
        "inputs": list(inputs),
        "outputs": list(names),
        "provenance": {"graph": source.name, "sha256": hashlib.sha256(source.read_bytes()).hexdigest()},
    }
    artifact = Artifact(config, {"float32": program}, weights)
    difference = _compare(layer, XLAEngine(program, weights), inputs)
    artifact.save(output)
    engine = XLAEngine((stored := load_artifact(output)).programs["float32"], stored.weights)
    return Conversion(inputs, difference, _time(engine, example_inputs(inputs, trial_sizes(inputs)[0])))


def _write_onnx(
    layer: GraphLayer, inputs: Mapping[str, TensorSpec], path: Path, engine: XLAEngine
) -> Conversion:
    from framework.export.formats.onnx import export_layer  # needs the extra

    difference = _compare(layer, engine, inputs)
    export_layer(layer, inputs, path, outputs=[spec.name for spec in layer.outputs])
    return Conversion(dict(inputs), difference, _time(engine, example_inputs(inputs, trial_sizes(inputs)[0])))


def _inputs(
    layer: GraphLayer, shapes: Mapping[str, Sequence[int | str]], multiple: int
) -> dict[str, TensorSpec]:
    """The inputs with a name for each open size: n for the first axis, multiples for the axes of images."""
    free = iter(_AXES)
    found = {}
    for spec in layer.inputs:
        dtype = {"int64": "int32", "float64": "float32"}.get(spec.dtype, spec.dtype or "float32")
        shape: list[int | str] = list(shapes.get(spec.name, ()))
        if not shape:
            for axis, size in enumerate(spec.shape):
                if isinstance(size, int) and size > 0:
                    shape.append(size)
                elif axis == 0:
                    shape.append("n")
                else:
                    name = next(free)
                    shape.append(f"{multiple}*{name}" if multiple > 1 and len(spec.shape) == 4 else name)
        found[spec.name] = TensorSpec(tuple(shape), dtype)
    return found


def _describe(inputs: Mapping[str, TensorSpec]) -> str:
    return " ".join(f"{name}={','.join(map(str, spec.shape))}" for name, spec in inputs.items())


def _compare(layer: GraphLayer, engine: XLAEngine, inputs: Mapping[str, TensorSpec]) -> float:
    """The largest difference between the program and the graph, relative to the largest value. Raises: TraceError."""
    reference, worst = GraphEngine(layer), 0.0
    for sizes in trial_sizes(inputs):
        arrays = example_inputs(inputs, sizes)
        got, wanted = engine(arrays), reference(arrays)
        for name, array in wanted.items():
            a, b = np.asarray(array, np.float64), np.asarray(got[name], np.float64)
            if a.ndim and a.shape[1:] == b.shape[1:]:
                b = b[: len(a)]  # the program fills up what suppression left
            scale = max(float(np.abs(a).max(initial=0.0)), 1e-6)
            worst = max(worst, float(np.abs(a - b).max(initial=0.0)) / scale)
    if not worst <= 1e-3:
        raise TraceError(
            "the program gives other results than the graph",
            received=f"a difference of {worst:.1e} of the largest value",
            allowed="1e-3",
            fix="report the graph; until then run it with Config(file)",
        )
    return worst


def _time(engine: XLAEngine, arrays: Mapping[str, np.ndarray]) -> float:
    engine(arrays)
    taken = []
    for _ in range(5):
        start = time.perf_counter()
        engine(arrays)
        taken.append(time.perf_counter() - start)
    return 1e3 * statistics.median(taken)
