"""ONNX Runtime: on a CPU in float32; on an NVIDIA GPU by TensorRT and CUDA where the installed package has them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from framework.core.dtypes import Precision
from framework.core.errors import DeviceError, FormatError, InputError, MissingExtraError
from framework.inference.engine import TensorShape
from framework.inference.engines.onnx_file import OnnxEngine

_DTYPES = {"float": "float32", "double": "float64"}  # ONNX's names that are not numpy's


class ONNXRuntimeEngine(OnnxEngine):
    """Run an ONNX file with ONNX Runtime; see `OnnxEngine`.

    Args:
        device: "cpu", or "gpu:N" with a package that has the CUDA provider.
        precision: "float32"; on a GPU with TensorRT also "bfloat16".
        threads: CPUs for one call; None is all.

    Raises:
        MissingExtraError: the package is not installed. DeviceError: it cannot use the device.
        InputError: no such precision there. FormatError: it cannot read the file.
    """

    def __init__(
        self,
        file: Path,
        device: str = "cpu",
        precision: Precision = "float32",
        threads: int | None = None,
        inputs: Mapping[str, TensorShape] | None = None,
    ) -> None:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError("onnxruntime", "onnxruntime", "the engine onnxruntime") from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        # Its threads would otherwise spin after a call and take the cores from what comes between two calls.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.log_severity_level = 3  # errors
        providers = _providers(device, precision, onnxruntime.get_available_providers())
        try:
            self._session = onnxruntime.InferenceSession(str(file), options, providers=providers)
        except Exception as error:  # its errors have no class of their own
            raise FormatError(
                "ONNX Runtime cannot read the file",
                where=file,
                received=next(iter(str(error).splitlines()), "")[:300],
                allowed="an ONNX file of operators that it has",
            ) from error
        inside, outside = (
            {node.name: _tensor_shape(node) for node in nodes}
            for nodes in (self._session.get_inputs(), self._session.get_outputs())
        )
        self._declare(inside, outside, inputs, file)
        self._names = list(self.outputs)

    def run(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            outputs = self._session.run(self._names, arrays)
        except Exception as error:  # as above
            raise RuntimeError(str(error)) from error
        return {name: np.asarray(array) for name, array in zip(self._names, outputs)}


class ONNXGraphEngine(ONNXRuntimeEngine):
    """Run an ONNX file of another framework with ONNX Runtime: outputs in the file's order, and inputs of 32 bits where
    the file has 64. See `ONNXRuntimeEngine`."""

    def __init__(self, file: Path, device: str = "cpu", threads: int | None = None) -> None:
        super().__init__(file, device, threads=threads)
        self.outputs = {node.name: _tensor_shape(node) for node in self._session.get_outputs()}
        self._names = list(self.outputs)

    def __call__(self, inputs: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
        arrays = {name: np.asarray(value) for name, value in inputs.items()}
        for name in arrays.keys() & self.inputs.keys():
            dtype = self.inputs[name].dtype
            if np.can_cast(arrays[name].dtype, dtype, "same_kind"):
                arrays[name] = arrays[name].astype(dtype, copy=False)
        return super().__call__(arrays)


def _tensor_shape(node: Any) -> TensorShape:
    kind = str(node.type).removeprefix("tensor(").removesuffix(")")
    try:
        dtype = np.dtype(_DTYPES.get(kind, kind))
    except (TypeError, ValueError) as error:  # texts, sequences, dictionaries
        raise FormatError(
            "this engine takes and gives arrays of numbers",
            where=node.name,
            received=node.type,
            allowed="tensors of numbers",
            fix="engine xla, or Config(file) without enable_onnxruntime()",
        ) from error
    sizes = (n if isinstance(n, int) else n or f"{node.name}_{axis}" for axis, n in enumerate(node.shape))
    return TensorShape(tuple(sizes), dtype)


def _providers(device: str, precision: Precision, available: list[str]) -> list[Any]:
    """Its providers for a device, the first that takes an operation runs it."""
    kind, _, index = device.partition(":")
    tensorrt, cuda, cpu = "TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"
    if kind == "gpu" and cuda not in available:
        raise DeviceError(
            "this ONNX Runtime cannot use a GPU",
            received=device,
            allowed=", ".join(available),
            fix="pip install onnxruntime-gpu in the place of onnxruntime, or engine xla",
        )
    if kind not in ("cpu", "gpu"):
        raise DeviceError("ONNX Runtime drives no such device", received=device, allowed="cpu, gpu, gpu:N")
    if precision == "bfloat16" and (kind == "cpu" or tensorrt not in available):
        raise InputError(
            "ONNX Runtime computes in float32 here",
            received=precision,
            allowed="float32; bfloat16 on a GPU with its TensorRT provider",
            fix="engine openvino or xla for bfloat16 on a CPU",
        )
    if kind == "cpu":
        return [cpu]
    number = {"device_id": int(index or 0)}
    low = {"trt_bf16_enable": precision == "bfloat16"}
    fast = [(tensorrt, {**number, **low})] if tensorrt in available else []
    return [*fast, (cuda, number), cpu]
