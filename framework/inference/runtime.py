"""Where and how programs run: the device, the precision and the engine that a user chose."""

from __future__ import annotations

import functools
import importlib.util
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from framework.core.device import (
    Device,
    bfloat16_is_fast,
    default_device,
    default_device_name,
    find_device,
)
from framework.core.dtypes import Precision
from framework.core.errors import FormatError, InputError
from framework.core.process import cpu_limit
from framework.core.process_state import state
from framework.export.artifact import Artifact
from framework.inference.engine import Engine, XLAEngine

log = logging.getLogger("oar")
ENGINES = ("auto", "xla", "onnxruntime", "openvino", "litert")
_PACKAGES = {"onnxruntime": "onnxruntime", "openvino": "openvino"}  # what an engine needs besides jax


@dataclass(frozen=True)
class Runtime:
    """How an artifact's programs run.

    Attributes:
        device: "cpu", "gpu", "gpu:1", "tpu", …; None is what `set_device` chose, else jax's default.
        precision: "float32", "bfloat16" or "auto"; see `choose_precision`.
        engine: What runs a program. "xla" compiles it with jax; "openvino" and "onnxruntime" run the artifact's ONNX
            file and "litert" its .tflite, and are extras; "auto" is the first of those that the artifact's `engines`
            lists for this kind of device, fastest first and measured with the score held, that is installed here; else
            "xla".
        threads: CPUs for one call, of engines that can be told; XLA uses all. None is all, or as many as a quota of the
            container allows.
        trust: Whether code may run that an artifact's config names by `imports`.

    Raises:
        InputError: there is no such engine, or less than one thread.
    """

    device: str | None = None
    precision: str = "auto"
    engine: str = "auto"
    threads: int | None = None
    trust: bool = False

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError("unknown engine", received=repr(self.engine), allowed=", ".join(ENGINES))
        if self.threads is not None and self.threads < 1:
            raise InputError("a call needs a thread", received=f"threads={self.threads}", allowed="1 or more")

    def find_device(self) -> Device:
        """The jax device. Raises: DeviceError, where there is none."""
        return default_device() if self.device is None else find_device(self.device)

    def choose_engine(self, table: Mapping[str, Sequence[str]]) -> str:
        """The engine: as asked for; of "auto" the first that is installed of those that `table` lists for this kind of
        device, see `ArtifactSettings.engines`, else "xla"."""
        if self.engine != "auto":
            return self.engine
        if not table:  # so that no device is asked for
            return "xla"
        kind = (self.device or default_device_name()).partition(":")[0]
        for engine in table.get("gpu" if kind in ("cuda", "rocm") else kind, ()):
            package = _PACKAGES.get(engine)
            if package is None or importlib.util.find_spec(package) is not None:
                return engine
        return "xla"

    def open(self, artifact: Artifact) -> Engine:
        """The engine of an artifact's program, in the precision that fits the device and the model.

        Raises:
            DeviceError: no such device. InputError: no program of this precision. FormatError: no program at all, or
            no ONNX file for an engine that runs one. MissingExtraError: the engine is not installed.
        """
        if not artifact.programs:
            raise FormatError(
                "the artifact has no program of its own",
                where=artifact.source,
                received=f"stages: {', '.join(artifact.stages) or 'none'}",
                allowed="a program, such as model.jaxexp",
                fix="open the folder of one stage, or export it again",
            )
        name = self.device or default_device_name()
        engine, kind = self.choose_engine(artifact.setting("engines", default={})), name.partition(":")[0]
        reason = ""
        if engine != "xla" and self.engine == "auto":
            reason = f"the fastest here by the artifact's table for {kind}, "
            if artifact.onnx_file is None:
                reason = f"since there is no ONNX file for {engine} (oar export --format onnx writes one), "
                engine = "xla"
        if engine == "xla":
            device = self.find_device()
            precision = choose_precision(self.precision, device, artifact.programs, _verified(artifact))
            _say(_whole_name(artifact), engine, reason, precision)
            return XLAEngine(artifact.programs[precision], artifact.weights, device)
        if engine == "litert":
            return self._open_tflite(artifact, name)
        return self._open_onnx(artifact, engine, name, reason)

    def _open_onnx(self, artifact: Artifact, engine: str, device: str, reason: str) -> Engine:
        from framework.inference.engines.onnx_file import declared_inputs, find_onnx_file
        from framework.inference.engines.onnx_runtime import ONNXRuntimeEngine
        from framework.inference.engines.openvino import OpenVINOEngine

        # One file serves both precisions, which are the engine's. ONNX Runtime has no bfloat16 on a CPU.
        if device == "cpu":
            can = ("float32",) if engine == "onnxruntime" else ("float32", "bfloat16")
            verified = _verified(artifact) or engine in artifact.setting("bf16_engines", default=())
            precision = choose_precision(self.precision, "cpu", can, verified)
        else:
            precision = "bfloat16" if self.precision == "bfloat16" else "float32"
        _say(_whole_name(artifact), engine, reason, _stored_precision(artifact, engine, precision))
        kind = OpenVINOEngine if engine == "openvino" else ONNXRuntimeEngine
        threads = cpu_limit() if self.threads is None else self.threads
        return kind(find_onnx_file(artifact), device, precision, threads, declared_inputs(artifact))

    def _open_tflite(self, artifact: Artifact, device: str) -> Engine:
        from framework.inference.engines.litert import LiteRTEngine, check_device, find_tflite_file
        from framework.inference.engines.onnx_file import declared_inputs

        check_device(device, self.precision)
        _say(_whole_name(artifact), "litert", "", "the types of its file")
        return LiteRTEngine(find_tflite_file(artifact), self.threads, declared_inputs(artifact))


def _verified(artifact: Artifact) -> bool:
    return bool(artifact.config.get("bf16_verified"))


def _stored_precision(artifact: Artifact, engine: str, precision: str) -> str:
    """The precision of the ONNX file for the log: with int8 layers where it was quantised, and whether they pay."""
    quantization = artifact.config.get("quantization")
    if not isinstance(quantization, dict):
        return precision
    lines = quantization.get("not_faster")
    line = lines.get(engine) if isinstance(lines, dict) else None
    if line and str(line) not in state.slow_engines:
        state.slow_engines.append(str(line))
    return f"int8 and {precision}" + (f"; where it was measured, {line}" if line else "")


def _whole_name(artifact: Artifact) -> str:
    """What an artifact is called, a stage by the pipeline that it is of: so that the log names an engine once."""
    folder = artifact.folder
    if folder is None or "kind" not in artifact.config:
        return artifact.source
    return str(folder.parent if folder.name == artifact.config["kind"] else folder)


def _say(artifact: str, engine: str, reason: str, precision: str) -> None:
    """In the log, once for each artifact, and in `state.engines` of the process, where commands read it."""
    text = f"{artifact}: engine {engine}, {reason}in {precision}"
    if text not in state.engines:
        state.engines.append(text)
    _log_once(logging.INFO if reason or precision != "float32" else logging.DEBUG, text)


@functools.cache
def _log_once(level: int, text: str) -> None:
    log.log(level, text)


PrecisionChoice = Literal["auto", "float32", "bfloat16"]


def choose_precision(
    choice: str, device: Device | str, available: Iterable[str], bf16_verified: bool
) -> Precision:
    """The precision to run in. "auto" takes bfloat16 where the device multiplies it in hardware and the model's
    score table says that its score holds (`bf16_verified`), and where there is nothing else; else float32.

    Raises:
        InputError: unknown choice, or a precision that the artifact has no program for.
    """
    available = list(available)
    if choice == "auto":
        low = bf16_verified and "bfloat16" in available and bfloat16_is_fast(device)
        return "bfloat16" if low or available == ["bfloat16"] else "float32"
    if choice not in ("float32", "bfloat16") or choice not in available:
        raise InputError(
            "this precision is not available",
            received=repr(choice),
            allowed="auto, " + ", ".join(available),
            fix="export the model again with it" if choice in ("float32", "bfloat16") else None,
        )
    return choice  # type: ignore[return-value]
