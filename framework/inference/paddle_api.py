"""The surface of paddle.inference over an artifact: Config, create_predictor, handles, clone.

    config = Config("inference_model/resnet50")
    predictor = create_predictor(config)
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.copy_from_cpu(batch)
    predictor.run()
    result = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()

`clone()` shares program and weights and has handles of its own: one clone per thread, as in Paddle. `run([arrays])`
touches no handle and may be called from any thread.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from framework.core.compilation import jax_version
from framework.core.dtypes import narrow
from framework.core.errors import InputError, ShapeError
from framework.core.lazy import LazyModule
from framework.core.process import cpu_limit
from framework.export.artifact import Artifact, load_artifact
from framework.inference.engine import Engine, TensorShape
from framework.inference.paddle_config import Config as Config
from framework.inference.paddle_config import DataType as DataType
from framework.inference.paddle_config import PlaceType as PlaceType
from framework.inference.paddle_config import PrecisionType as PrecisionType
from framework.inference.runtime import Runtime
from framework.interop.source import Source

if TYPE_CHECKING:
    import jax.numpy as jnp
else:
    jnp = LazyModule("jax.numpy")

log = logging.getLogger("oar")


class Handle:
    """One input or output of a predictor."""

    def __init__(self, name: str, aval: TensorShape) -> None:
        self.name, self._aval = name, aval
        self.value: np.ndarray | None = None
        self._announced: list[int] | None = None

    def copy_from_cpu(self, array: np.ndarray) -> None:
        self.value = self._read(np.array, array)

    def share_external_data(self, array: np.ndarray) -> None:
        """As copy_from_cpu without the copy: the array must stay as it is until `run` is done."""
        self.value = self._read(np.asarray, array)

    def _read(self, convert: Callable[[np.ndarray], np.ndarray], array: np.ndarray) -> np.ndarray:
        try:
            value = convert(array)
        except ValueError:  # lists of several lengths
            value = np.empty((), object)
        if value.dtype == object and not all(isinstance(one, str) for one in value.ravel()):
            raise ShapeError(
                "this is no array",
                where=self.name,
                received=type(array).__name__,
                allowed="an array, or lists of one length, of numbers or of texts",
            )
        self._announced = None
        return narrow(value, self.name)

    def reshape(self, shape: Sequence[int]) -> None:
        """Say the shape of the next array, which brings its own: `shape()` gives it until then, as in Paddle."""
        self._announced = [int(size) for size in shape]

    def copy_to_cpu(self) -> np.ndarray:
        """A copy, which may be written to. Raises: ShapeError before the first run."""
        if self.value is None:
            raise ShapeError("nothing to read yet", where=self.name, fix="call predictor.run() first")
        return np.array(self.value)

    def shape(self) -> list[int]:
        if self._announced is not None:
            return self._announced
        if self.value is not None:
            return list(self.value.shape)
        return [n if isinstance(n, int) else -1 for n in self._aval.shape]

    def type(self) -> DataType:
        """Of the values that it holds, else of those that it takes."""
        dtype = self._aval.dtype if self.value is None else self.value.dtype
        return DataType.STRING if dtype.kind in "OUS" else DataType(dtype.name)

    def lod(self) -> list[list[int]]:
        """No levels: arrays are padded here, and what is padding is another array."""
        return []

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Raises: ShapeError, where there are levels."""
        if lod:
            raise ShapeError(
                "inputs have no levels (LoD)", where=self.name, received=lod, fix="pad them to one length"
            )


class Predictor:
    """Runs an artifact, or a graph of another framework. Made by `create_predictor`."""

    def __init__(
        self, config: Config, engine: Engine | None = None, artifact: Artifact | None = None
    ) -> None:
        config.check_model()
        self._config = config
        graph = engine if config._program is not None else None
        if config._program is not None and graph is None:
            graph = engine = _open_graph(config, *config._program)
        self._artifact = Artifact({}) if graph else artifact or load_artifact(config.model_dir())
        if engine is None:
            programs = self._artifact.programs
            if not programs:
                raise InputError(
                    "this artifact is a pipeline of several programs",
                    where=config.model_dir(),
                    received=", ".join(self._artifact.stages),
                    allowed="the folder of one stage",
                    fix="use the domain's predictor, framework.workflow.predictor(folder), or Config(folder/stage)",
                )
            requested = "onnxruntime" if config.onnxruntime_enabled() and self._artifact.onnx_file else "auto"
            engine = Runtime(config._device, config._precision, requested).open(self._artifact)
        self._engine = engine
        names = list(engine.inputs) if graph else self._artifact.input_names(engine.inputs)
        self._inputs = {name: Handle(name, engine.inputs[name]) for name in names}
        self._outputs = {name: Handle(name, engine.outputs[name]) for name in _in_order(engine.outputs)}

    def get_input_names(self) -> list[str]:
        return list(self._inputs)

    def get_output_names(self) -> list[str]:
        """As `run([arrays])` returns them: sorted, as a saved function returned them, or as a graph has them."""
        return list(self._outputs)

    def get_input_handle(self, name: str) -> Handle:
        return _handle(self._inputs, name, "input")

    def get_output_handle(self, name: str) -> Handle:
        return _handle(self._outputs, name, "output")

    def clone(self) -> Predictor:
        """A predictor with handles of its own over the same program, weights and compiled shapes."""
        return Predictor(self._config, self._engine, self._artifact)

    def run(self, inputs: Sequence[np.ndarray] | None = None) -> list[np.ndarray] | bool:
        """Without arguments from the input to the output handles (returns True); with arrays it returns arrays."""
        if inputs is not None:
            if len(inputs) != len(self._inputs):
                raise ShapeError(
                    "wrong number of inputs", received=len(inputs), allowed=", ".join(self._inputs)
                )
            arrays = {name: narrow(np.asarray(array), name) for name, array in zip(self._inputs, inputs)}
            results = self._run(arrays)
            return [results[name] for name in self._outputs]
        values = {name: handle.value for name, handle in self._inputs.items() if handle.value is not None}
        missing = [name for name in self._inputs if name not in values]
        if missing:
            raise ShapeError(
                "an input was not set",
                received=f"nothing for {', '.join(missing)}",
                allowed=", ".join(self._inputs),
                fix="call get_input_handle(name).copy_from_cpu(array) for each, then run()",
            )
        for name, value in self._run(values).items():
            self._outputs[name].value = value
        return True

    def clear_intermediate_tensor(self) -> None:
        """Nothing to clear: a program's intermediate arrays live while it runs."""

    def try_shrink_memory(self) -> int:
        """0: there are no bytes to give back."""
        return 0

    def _run(self, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        declared = self._engine.inputs
        symbols = (a.shape[0] for a in declared.values() if a.shape and not isinstance(a.shape[0], int))
        batch = str(next(symbols, None))
        count = next((len(a) for n, a in arrays.items() if a.ndim and _has(declared[n], batch)), 0)
        bucket = next((size for size in self._config._buckets if size >= count), count)
        if count == 0 or bucket == count:
            return self._engine(arrays)
        padded = {
            n: np.concatenate([a, np.repeat(a[-1:], bucket - count, 0)]) if _has(declared[n], batch) else a
            for n, a in arrays.items()
        }
        out = self._engine(padded)
        return {n: a[:count] if _has(self._engine.outputs[n], batch) else a for n, a in out.items()}


def _open_graph(config: Config, program: Path | Source, params: Path | Source | None) -> Engine:
    if config._precision != "float32":
        raise InputError(
            "a graph of another framework runs in its own precision",
            where=str(program),
            received=config._precision,
            allowed="float32",
            fix="convert it into an artifact first: oar convert",
        )
    if config.onnxruntime_enabled():
        if isinstance(program, Path) and program.suffix == ".onnx":
            from framework.inference.engines.onnx_runtime import ONNXGraphEngine

            return ONNXGraphEngine(program, config._device, cpu_limit())
        log.info("%s is no ONNX file: it runs with XLA and not with ONNX Runtime", program)
    from framework.inference.graph_engine import GraphEngine, load_graph  # here: it imports all layers

    return GraphEngine(load_graph(program, params), Runtime(config._device).find_device())


def _has(aval: TensorShape, batch: str) -> bool:
    """Whether the first size of an input or output is the batch."""
    return bool(aval.shape) and str(aval.shape[0]) == batch


def _in_order(names: Iterable[str]) -> list[str]:
    """The outputs of a saved function by their numbers, which engines sort as text; others as they are."""
    names = list(names)
    numbers = [re.fullmatch(r"output(\d+)", name) for name in names]
    return sorted(names, key=lambda name: (len(name), name)) if all(numbers) else names


def _handle(handles: dict[str, Handle], name: str, kind: str) -> Handle:
    if name not in handles:
        raise InputError(f"the program has no such {kind}", received=repr(name), allowed=", ".join(handles))
    return handles[name]


def create_predictor(config: Config) -> Predictor:
    """A predictor for the model of `config`, on its device and in its precision.

    Raises:
        FormatError: the folder is no artifact, or one that this jax cannot read.
        InputError: the artifact is a pipeline of several programs, or has no program of the precision.
        DeviceError: there is no such device, or the program was not lowered for it.
    """
    return Predictor(config)


class PredictorPool:
    """So many predictors over one program and one copy of the weights: one for each thread.

    Raises:
        InputError: less than one predictor is asked for, or another one than there are.
    """

    def __init__(self, config: Config, size: int = 1) -> None:
        if size < 1:
            raise InputError(
                "a pool holds predictors", where="PredictorPool", received=size, allowed="1 or more"
            )
        first = create_predictor(config)
        self._predictors = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, index: int) -> Predictor:
        """The predictor of this number. Paddle spells it so."""
        return self.retrieve(index)

    def retrieve(self, index: int) -> Predictor:
        """The predictor of this number, from 0."""
        if not 0 <= index < len(self._predictors):
            raise InputError(
                "the index of the predictor is out of range",
                received=index,
                allowed=f"0 to {len(self._predictors) - 1}",
            )
        return self._predictors[index]


Tensor = Handle  # Paddle's name of it


def get_version() -> str:
    """The versions of Oar and jax, a line each."""
    return f"version: {metadata.version('oar-toolkit')}\njax: {jax_version()}\n"


def get_trt_compile_version() -> tuple[int, int, int]:
    """(0, 0, 0), which says that there is no TensorRT."""
    return (0, 0, 0)


get_trt_runtime_version = get_trt_compile_version


def get_num_bytes_of_data_type(dtype: DataType) -> int:
    """Bytes of one number of this type."""
    return jnp.dtype(dtype.value).itemsize
