"""The packages of the extra `mobile`, imported when they are needed."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import NamedTuple

from framework.core.errors import MissingExtraError

EXTRA = "mobile"


class Converter(NamedTuple):
    """The modules of litert-converter: MLIR's bindings, its passes, and the conversion itself."""

    ir: ModuleType
    passes: ModuleType
    api: ModuleType


def import_converter() -> Converter:
    """litert-converter, which writes `.tflite` without TensorFlow. Raises: MissingExtraError."""
    return Converter(
        _import("litert_converter.mlir.ir", "litert-converter", "--format tflite"),
        _import("litert_converter.mlir.passmanager", "litert-converter", "--format tflite"),
        _import("litert_converter.converter_api_ext", "litert-converter", "--format tflite"),
    )


def import_interpreter() -> ModuleType:
    """The module of ai-edge-litert's `Interpreter`. Raises: MissingExtraError."""
    return _import("ai_edge_litert.interpreter", "ai-edge-litert", "the engine litert")


def import_schema() -> ModuleType:
    """The classes of TensorFlow Lite's flatbuffers. Raises: MissingExtraError."""
    return _import("ai_edge_litert.schema_py_generated", "ai-edge-litert", "--format tflite")


def import_quantizer() -> ModuleType:
    """The module of ai-edge-quantizer's `Quantizer`. Raises: MissingExtraError."""
    return _import("ai_edge_quantizer.quantizer", "ai-edge-quantizer", "--tflite_type float16 or int8")


def can_write_tflite() -> bool:
    """Whether the packages are installed that write a `.tflite` and run it."""
    return all(importlib.util.find_spec(name) is not None for name in ("litert_converter", "ai_edge_litert"))


def _import(module: str, package: str, purpose: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, EXTRA, purpose) from error
