"""From a pure function to the bytes of a `.tflite`: jax lowers to StableHLO, litert-converter writes it.

A file has a signature for each combination of sizes that it is asked for; they share their weights. Sizes are fixed:
LiteRT's kernels are several times slower where they are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from framework.core.errors import FormatError
from framework.core.trace import explain_trace_errors
from framework.export.formats.tflite.loops import outline_loops
from framework.export.formats.tflite.packages import Converter, import_converter
from framework.export.formats.tflite.sums import split_sums
from framework.export.formats.tflite.types import Module, Operation
from framework.export.program import ArrayFunction
from framework.export.specs import TensorSpec
from framework.nn.functional.lowering import platform_scope

DEFAULT_SIGNATURE = "serving_default"
MOST_BYTES = 2**31 - 2**20  # offsets in a flatbuffer have 31 bits; room for all but the weights
_DIALECTS = ("tfl", "arith", "func", "builtin", "quant")
_LINES = 3  # of the converter's report in a message


@dataclass(frozen=True)
class Signature:
    """One function of a file: its name, and its inputs, whose sizes are numbers."""

    name: str
    inputs: Mapping[str, TensorSpec]

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each input."""
        return {name: tuple(int(size) for size in spec.shape) for name, spec in self.inputs.items()}


def make_signatures(specs: Mapping[str, TensorSpec], sizes: Iterable[Mapping[str, int]]) -> list[Signature]:
    """The signatures of a program: one for each assignment of numbers to its symbolic sizes, such as {"n": 1, "h": 10}.

    One alone has the name that every tool takes for the default; of several each is named by its sizes.

    Raises:
        FormatError: a size has no number.
    """
    assignments = list(sizes)
    names = [DEFAULT_SIGNATURE] if len(assignments) == 1 else []
    signatures = []
    for assignment in assignments:
        fixed = {name: TensorSpec(_fix(name, spec, assignment), spec.dtype) for name, spec in specs.items()}
        name = "_".join(f"{key}{value}" for key, value in assignment.items() if key != "n") or "n1"
        signatures.append(Signature(names[0] if names else name, fixed))
    return signatures


def _fix(name: str, spec: TensorSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    fixed = []
    for size in spec.shape:
        match = re.fullmatch(r"(?:(\d+)\s*\*\s*)?([A-Za-z_]\w*)", str(size))
        if isinstance(size, int):
            fixed.append(size)
        elif match and match[2] in sizes:
            fixed.append(int(match[1] or 1) * sizes[match[2]])
        else:
            raise FormatError(
                "a .tflite has fixed sizes, and one is free",
                where=name,
                received=f"[{', '.join(map(str, spec.shape))}] with {dict(sizes)}",
                allowed="a number for every name of a size",
                fix="--input_size H W, or --input_shape N C H W",
            )
    return tuple(fixed)


def convert(fn: ArrayFunction, weights: Mapping[str, np.ndarray], signatures: Sequence[Signature]) -> bytes:
    """The bytes of a `.tflite` that computes `fn(weights, inputs) -> outputs`, outputs by sorted names.

    Raises:
        MissingExtraError: litert-converter is not installed.
        FormatError: the function has an operation that LiteRT has not, or its weights do not fit into one file.
    """
    converter = import_converter()
    size = sum(np.asarray(array).nbytes for array in weights.values())
    if size > MOST_BYTES:
        raise FormatError(
            "a .tflite holds less than 2 GB",
            where="--format tflite",
            received=f"{size / 1e9:.2f} GB of weights",
            fix="--format onnx keeps weights of any size beside the file",
        )
    context = converter.ir.Context()
    converter.api.prepare_mlir_context(context)
    with context, converter.ir.Location.unknown():
        modules = [_convert_one(converter, fn, weights, signature) for signature in signatures]
        module = modules[0] if len(modules) == 1 else converter.api.merge_modules(modules)
        try:
            return converter.api.export_flatbuffer_to_bytes(module.operation)
        except ValueError as error:
            raise _refusal(f"{error}".strip(), _foreign_operations(module)) from error


def _convert_one(
    converter: Converter, fn: ArrayFunction, weights: Mapping[str, np.ndarray], signature: Signature
) -> Module:
    """The module of one signature; the conversion calls its function by the signature's name."""
    order = tuple(signature.inputs)
    text, outputs = lower(fn, weights, signature)
    module = converter.ir.Module.parse(text)
    main = next(view.operation for view in module.body.operations if _symbol(view.operation) == "main")
    converter.api.set_signature(main, signature.name, list(order), list(outputs))
    try:
        converter.api.run_convert_to_tfl_passes(
            module, converter.passes.PassManager(), converter.api.ConvertToTFLConfig()
        )
    except ValueError as error:
        raise _refusal(str(error), ()) from error
    split_sums(converter, module)
    outline_loops(converter, module)
    return module


def lower(
    fn: ArrayFunction, weights: Mapping[str, np.ndarray], signature: Signature
) -> tuple[str, tuple[str, ...]]:
    """(StableHLO with the weights in it, names of the outputs) of a function with fixed sizes.

    Raises: TraceError, as `lower_program`.
    """
    arrays = {name: jax.numpy.asarray(array) for name, array in weights.items()}
    order = tuple(signature.inputs)
    arguments = [
        jax.ShapeDtypeStruct(signature.shapes[name], jax.dtypes.canonicalize_dtype(spec.dtype))
        for name, spec in signature.inputs.items()
    ]
    names: list[str] = []

    def main(*inputs: jax.Array) -> tuple[jax.Array, ...]:
        outputs = fn(arrays, dict(zip(order, inputs)))
        names[:] = sorted(outputs)
        return tuple(outputs[name] for name in names)

    with platform_scope("graph"), explain_trace_errors():
        text = jax.jit(main, keep_unused=True).lower(*arguments).as_text()
    return text, tuple(names)


def _symbol(operation: Operation) -> str:
    return str(operation.attributes["sym_name"]).strip('"') if "sym_name" in operation.attributes else ""


def _foreign_operations(module: Module) -> tuple[str, ...]:
    """The operations of a module that a `.tflite` has not."""
    names = re.findall(
        r"(?m)(?:= |^\s*)\"?([a-z_]+\.[a-z_A-Z0-9.]+)\"?[( <]",
        module.operation.get_asm(large_elements_limit=8),
    )
    return tuple(sorted({name for name in names if name.partition(".")[0] not in _DIALECTS}))


def _refusal(report: str, operations: Sequence[str]) -> FormatError:
    lines = [line for line in report.splitlines() if "error:" in line] or report.splitlines()
    report = "; ".join(line.partition("error:")[2].strip() or line.strip() for line in lines[:_LINES])
    return FormatError(
        "LiteRT's converter cannot write this program",
        where="--format tflite",
        received=", ".join(operations) or report[:400] or "no reason",
        allowed="programs of the operators of TensorFlow Lite",
        fix="--format onnx, or --format ort for ONNX Runtime on a phone, has operators that LiteRT has not",
    )
