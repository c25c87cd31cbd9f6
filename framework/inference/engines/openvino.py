"""OpenVINO: the fastest on Intel's and AMD's CPUs, above all in bfloat16 where the CPU multiplies it."""

from __future__ import annotations

import functools
import importlib
import queue
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from framework.core.dtypes import Precision
from framework.core.errors import DeviceError, FormatError, MissingExtraError
from framework.inference.engine import TensorShape
from framework.inference.engines.onnx_file import OnnxEngine

_LINES, _PAGES = 1500, 150
"""Operations of a shape that the CPU plugin keeps prepared: those that were used last. By default they are 5,000, and a
process that reads pages of many sizes grows by 8 MB a page. A shape of lines is about 22 operations and 2.5 MB, so that
some 65 shapes stay; pages take as long as with 3,000."""


def _capacity(inputs: Mapping[str, TensorShape] | None) -> int:
    """Few where two sizes besides the batch are free, as of pages, since hardly one comes again. Lines, of which one
    is, come again and again: with few their shapes are prepared anew, and a page takes 1.4 times as long."""
    free = max((sum(isinstance(n, str) for n in one.shape) for one in (inputs or {}).values()), default=3)
    return _LINES if free < 3 else _PAGES


@functools.cache
def _open_core(openvino: Any) -> Any:
    """OpenVINO's one entrance, which lives as long as the process.

    Its CPU plugin sets the stack on which signals are handled, and when the last core of several goes, the kernel is
    left with one that is freed: the next Ctrl-C would end the process with a segmentation fault (OpenVINO 2026.4).
    """
    return openvino.Core()


class OpenVINOEngine(OnnxEngine):
    """Run an ONNX file with OpenVINO; see `OnnxEngine`.

    Args:
        device: "cpu", or "gpu:N" for Intel's.
        precision: What it computes in. A CPU without bfloat16 takes float32 in its place.
        threads: CPUs for one call; None is all.

    Raises:
        MissingExtraError: the package is not installed. DeviceError: it has no such device.
        FormatError: it cannot read the file.
    """

    def __init__(
        self,
        file: Path,
        device: str = "cpu",
        precision: Precision = "float32",
        threads: int | None = None,
        inputs: Mapping[str, TensorShape] | None = None,
    ) -> None:
        core = _open_core(import_openvino())
        name = _device_name(device, core.available_devices)
        settings: dict[str, Any] = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bfloat16" else "f32",
        }
        if name == "CPU":
            settings["CPU_RUNTIME_CACHE_CAPACITY"] = _capacity(inputs)
            if threads is not None:
                settings["INFERENCE_NUM_THREADS"] = threads
        try:
            self._compiled = core.compile_model(core.read_model(file), name, settings)
        except RuntimeError as error:
            raise FormatError(
                "OpenVINO cannot read the file",
                where=file,
                received=next((line for line in str(error).splitlines() if line.strip()), "")[:300],
                allowed="an ONNX file of operators that it has",
            ) from error
        inside, outside = (
            {port.any_name: _tensor_shape(port) for port in ports}
            for ports in (self._compiled.inputs, self._compiled.outputs)
        )
        self._declare(inside, outside, inputs, file)
        self._ports = [(name, self._compiled.output(name)) for name in self.outputs]
        self._requests: queue.SimpleQueue[Any] = queue.SimpleQueue()  # free ones: one runs one call at a time

    def run(self, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            request = self._requests.get_nowait()
        except queue.Empty:
            request = self._compiled.create_infer_request()
        try:
            outputs = request.infer(arrays, share_inputs=True)
            return {name: outputs[port] for name, port in self._ports}
        finally:
            self._requests.put(request)


def import_openvino() -> Any:
    """The package, which else reports each use to Google Analytics without asking, from a process that it forks.

    Raises:
        MissingExtraError: it is not installed.
    """
    telemetry = "openvino_telemetry"
    hidden = telemetry not in sys.modules
    if hidden:
        sys.modules[telemetry] = None  # type: ignore[assignment]  # an ImportError, for which it has a stub
    try:
        return importlib.import_module("openvino")
    except ImportError as error:
        raise MissingExtraError("openvino", "openvino", "the engine openvino") from error
    finally:
        if hidden:
            del sys.modules[telemetry]


def _tensor_shape(port: Any) -> TensorShape:
    sizes = (
        f"{port.any_name}_{axis}" if size.is_dynamic else size.get_length()
        for axis, size in enumerate(port.partial_shape)
    )
    return TensorShape(tuple(sizes), np.dtype(port.element_type.to_dtype()))


def _device_name(device: str, available: list[str]) -> str:
    """OpenVINO's name of "cpu" or "gpu:1". Raises: DeviceError, where it has none."""
    kind, _, index = device.partition(":")
    requested = kind.upper() + (f".{index}" if index else "")
    if kind == "cpu":
        return "CPU"
    if requested in available or (index in ("", "0") and kind.upper() in available):
        return requested if requested in available else kind.upper()
    raise DeviceError(
        "OpenVINO has no such device",
        received=device,
        allowed=", ".join(name.lower() for name in available),
        fix="an NVIDIA GPU is driven by the engines xla and onnxruntime" if kind == "gpu" else None,
    )
