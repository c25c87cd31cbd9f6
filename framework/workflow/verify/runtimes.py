"""The runtimes that one artifact is opened on, each behind the same predictor with inputs of the same sizes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from framework.core.errors import FormatError, OarError
from framework.export.artifact import ONNX_FILES, ORT, TFLITE, WEIGHTS, Artifact, program_file
from framework.inference.engine import Engine, TensorShape
from framework.inference.runtime import Runtime

LOCAL = ("xla", "onnxruntime", "openvino", "litert", "wasm", "ort")
"""Those that run a program in this process, or in one of node."""
SERVER = "server"
RUNTIMES = (*LOCAL, SERVER)
REFERENCE = "xla"
_FILES: Mapping[str, tuple[str, ...]] = {
    "xla": (program_file("float32"), WEIGHTS),
    "onnxruntime": ONNX_FILES,
    "openvino": ONNX_FILES,
    "wasm": ONNX_FILES,
    "litert": (TFLITE,),
    "ort": (ORT,),
}


class _SameSizes:
    """An engine that is fed with the declared sizes whether it needs them or not, and says how long its calls took."""

    takes_any_shape = False

    def __init__(self, engine: Engine, seconds: list[float]) -> None:
        self._engine, self._seconds = engine, seconds
        self.inputs: Mapping[str, TensorShape] = engine.inputs
        self.outputs: Mapping[str, TensorShape] = engine.outputs

    @property
    def compile_count(self) -> int:
        return self._engine.compile_count

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        start = time.perf_counter()
        outputs = self._engine(inputs)
        self._seconds.append(time.perf_counter() - start)
        return outputs

    def start(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        return self(inputs)

    def prepare(self, shapes: Iterable[Mapping[str, tuple[int, ...]]]) -> None:
        """Nothing: what a shape costs at first is no part of a call."""
        return None


@dataclass(frozen=True)
class VerifyRuntime(Runtime):
    """Opens the programs of an artifact on one of `LOCAL`, in float32.

    Attributes:
        name: Of the runtime.
        seconds: Of the engine's calls, filled as they are made.
    """

    name: str = REFERENCE
    seconds: list[float] = field(default_factory=list, compare=False)

    def open(self, artifact: Artifact) -> Engine:
        return _SameSizes(self._open(artifact), self.seconds)

    def _open(self, artifact: Artifact) -> Engine:
        if self.name not in ("wasm", "ort"):
            runtime = Runtime(self.device, "float32", self.name, self.threads, self.trust)
            return runtime.open(artifact)
        from framework.inference.engines.onnx_file import declared_inputs, find_onnx_file
        from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine

        if self.name == "ort":
            file = artifact.format_file(ORT)
            if file is None:
                raise FormatError(
                    "the artifact has no .ort",
                    where=artifact.source,
                    received=f"no {ORT} beside its program",
                    allowed="an artifact that was exported as .ort, too",
                    fix="oar export -c … --format ort",
                )
            return ONNXRuntimeEngine(file, "cpu", "float32", self.threads, declared_inputs(artifact))
        from framework.inference.engines.wasm import WasmEngine

        file = find_onnx_file(artifact)
        like = ONNXRuntimeEngine(file, "cpu", "float32", 1, declared_inputs(artifact))
        return WasmEngine(file, like.inputs, like.outputs)


def file_size(artifact: Artifact, runtime: str) -> int:
    """Bytes of the files that a runtime reads, of all stages."""
    programs = artifact.stages.values() if artifact.stages else (artifact,)
    paths = (
        Path(one.folder) / name
        for one in programs
        if one.folder is not None
        for name in _FILES.get(runtime, ())
    )
    return sum(path.stat().st_size for path in paths if path.is_file())


def reason(error: OarError) -> str:
    """Why a runtime is left out, in one line."""
    return "; ".join(str(text) for text in (error.problem, error.received, error.fix) if text)
