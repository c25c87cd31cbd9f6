"""Smaller `.tflite` files: weights in float16, or layers in int8 with ranges that examples gave.

In int8 are the layers with weights and what stands between them. What follows the last of them, such as the decoding of
boxes, their suppression and the softmax, stays in float32: with 256 values a coordinate of 320 pixels would be off by
one. Inputs and outputs keep their types.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from framework.compress.ranges import LEVELS, Histogram, sample
from framework.core.errors import FormatError, InputError
from framework.export.formats.onnx.ranked import NamedArrays
from framework.export.formats.tflite.model import pack_model, read_model, tensor_shape
from framework.export.formats.tflite.packages import import_interpreter, import_quantizer, import_schema
from framework.export.formats.tflite.types import Interpreter, Model, Subgraph

_LARGEST = 3e38  # of a value that counts: max-pooling pads with the least number that there is
_WITH_WEIGHTS = ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "BATCH_MATMUL")


def to_float16(data: bytes) -> bytes:
    """The file with weights in float16; it computes in float32 where the device has nothing faster.

    Raises: MissingExtraError.
    """
    module = import_quantizer()
    quantizer = module.Quantizer(data)
    quantizer.add_weight_only_config(".*", "*", 16, algorithm_key=module.AlgorithmName.FLOAT_CASTING)
    with _quiet():
        return share_buffers(bytes(quantizer.quantize().quantized_model))


def to_int8_weights(data: bytes) -> bytes:
    """The file with the weights of its layers in int8, a scale for each channel; it computes in float32, so it needs no
    examples, and a network whose activations 8 bits do not hold stays right. Depthwise weights, which are few and lose
    most, stay as they are.

    Raises: MissingExtraError. FormatError: there is no layer with weights.
    """
    module, names = import_quantizer(), sorted(_large_layers(read_model(data)))
    _check_layers(names, "int8_weights")
    quantizer = module.Quantizer(data)
    quantizer.add_weight_only_config(_pattern(names), "*", 8)
    with _quiet():
        return share_buffers(bytes(quantizer.quantize().quantized_model))


def share_buffers(data: bytes) -> bytes:
    """The file with equal weights once: the quantizer writes those of every signature apart, and a network with 26
    signatures had 128 MB in place of 5."""
    model = read_model(data)
    holders: dict[bytes, int] = {}
    first = list(range(len(model.buffers)))
    for index, buffer in enumerate(model.buffers):
        if index and buffer.data is not None and len(buffer.data):
            first[index] = holders.setdefault(
                hashlib.sha256(np.asarray(buffer.data).tobytes()).digest(), index
            )
            if first[index] != index:
                buffer.data = None
    for subgraph in model.subgraphs:
        for tensor in subgraph.tensors:
            tensor.buffer = first[tensor.buffer]
    return pack_model(model)


def _check_layers(names: Sequence[str], dtype: str) -> None:
    if not names:
        raise FormatError(
            "there is nothing to quantise",
            where=f"--tflite_type {dtype}",
            received="a program without layers with weights",
            fix="leave it in float32",
        )


def _pattern(names: Sequence[str]) -> str:
    """A regular expression for operations with one of these outputs."""
    return f"(?:^|;)(?:{'|'.join(map(re.escape, names))})(?:;|$)"


def to_int8(data: bytes, feeds: Mapping[str, Sequence[NamedArrays]]) -> bytes:
    """The file with its layers in int8, weights with a scale for each channel.

    Args:
        data: A file whose tensors have names of their own; see `name_tensors`.
        feeds: Examples for each signature.

    Raises:
        MissingExtraError: ai-edge-quantizer is not installed. InputError: a signature has no example.
        FormatError: there is no layer with weights.
    """
    module, model = import_quantizer(), read_model(data)
    _separate_loops(model)
    data = pack_model(model)
    names = sorted(_layer_outputs(model))
    _check_layers(names, "int8")
    ranges = calibrate(data, model, feeds)
    _bound_paddings(model, ranges)
    quantizer = module.Quantizer(pack_model(model))
    quantizer.add_static_config(_pattern(names), "*", 8, 8)
    unchanged = module.AlgorithmName.NO_QUANTIZE
    quantizer.update_quantization_recipe(".*", "OUTPUT", algorithm_key=unchanged)
    quantizer.update_quantization_recipe(".*", "INPUT", algorithm_key=unchanged)
    with _quiet():
        return share_buffers(bytes(quantizer.quantize(ranges).quantized_model))


def calibrate(
    data: bytes, model: Model, feeds: Mapping[str, Sequence[NamedArrays]]
) -> dict[str, dict[str, np.ndarray]]:
    """{"min", "max"} of each tensor of the signatures' functions, those of the least squared error over the examples.

    Raises:
        InputError: a signature has no example.
    """
    interpreter_module = import_interpreter()
    ranges: dict[str, dict[str, np.ndarray]] = {}
    for signature in model.signatureDefs:
        name = signature.signatureKey.decode()
        examples = feeds.get(name, ())
        if not examples:
            raise InputError(
                "there is nothing to calibrate with",
                where=f"signature {name}",
                received="no example",
                fix="--data FOLDER, with images as those that the model will see",
            )
        # One for each signature: it holds all tensors of those that have run, gigabytes of large images.
        with _quiet():
            interpreter = interpreter_module.Interpreter(
                model_content=data,
                experimental_preserve_all_tensors=True,
                experimental_op_resolver_type=interpreter_module.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
            )
        runner = interpreter.get_signature_runner(name)
        subgraph = model.subgraphs[signature.subgraphIndex]
        histograms = {index: Histogram() for index in _activations(model, subgraph)}
        for measure in (Histogram.see_extent, Histogram.count):
            for feed in examples:
                runner(**feed)
                for index, histogram in histograms.items():
                    array = _value(interpreter, index, signature.subgraphIndex)
                    if measure is Histogram.count:  # to count all took most of the time
                        array = sample(array)
                    measure(histogram, array[np.abs(array) < _LARGEST])
        for index, histogram in histograms.items():
            if histogram.is_finite:
                best, rank = histogram.best_range(), len(tensor_shape(subgraph.tensors[index]))
                low = -best.zero_point * best.scale
                bounds = {"min": low, "max": low + LEVELS * best.scale}
                ranges[subgraph.tensors[index].name.decode()] = {
                    key: np.full((1,) * rank, value, np.float32) for key, value in bounds.items()
                }
    return ranges


def _bound_paddings(model: Model, ranges: dict[str, dict[str, np.ndarray]]) -> None:
    """Max-pooling pads with the least number that there is, for which int8 has no value: the least of the range serves,
    since no value of int8 lies below it."""
    buffer_class = import_schema().BufferT
    for signature in model.signatureDefs:
        subgraph = model.subgraphs[signature.subgraphIndex]
        for operator in subgraph.operators:
            inputs = [int(index) for index in operator.inputs]
            value = subgraph.tensors[inputs[2]] if len(inputs) == 3 else None
            content = None if value is None else model.buffers[value.buffer].data
            bounds = ranges.get(subgraph.tensors[inputs[0]].name.decode()) if inputs else None
            if value is None or content is None or bounds is None or content.size != 4:
                continue
            if content.view(np.float32)[0] < -_LARGEST:
                padding = buffer_class()
                padding.data = bounds["min"].reshape(1).view(np.uint8)
                model.buffers.append(padding)
                value.buffer = len(model.buffers) - 1
                ranges[subgraph.tensors[int(operator.outputs[0])].name.decode()] = bounds


def _separate_loops(model: Model) -> None:
    """Give the functions of loops constants of their own: they stay in float32 while those of layers change."""
    buffer_class = import_schema().BufferT
    signatures = {signature.subgraphIndex for signature in model.signatureDefs}
    for number, subgraph in enumerate(model.subgraphs):
        for tensor in subgraph.tensors if number not in signatures else ():
            if model.buffers[tensor.buffer].data is not None:
                copied = buffer_class()
                copied.data = model.buffers[tensor.buffer].data
                model.buffers.append(copied)
                tensor.buffer = len(model.buffers) - 1


def _value(interpreter: Interpreter, index: int, subgraph: int) -> np.ndarray:
    """A tensor of a function after a call; empty where the interpreter keeps none, as of a value that nobody reads."""
    try:
        return interpreter.get_tensor(index, subgraph)
    except ValueError:
        return np.zeros(0, np.float32)


def _activations(model: Model, subgraph: Subgraph) -> list[int]:
    """The float32 tensors of a function that are no constants."""
    float32 = import_schema().TensorType.FLOAT32
    computed = {int(index) for operator in subgraph.operators for index in operator.outputs}
    computed |= {int(index) for index in subgraph.inputs}
    return sorted(index for index in computed if subgraph.tensors[index].type == float32)


def _large_layers(model: Model) -> Iterator[str]:
    """The names of the outputs of layers with many weights."""
    kinds = _operator_kinds(model)
    for subgraph in model.subgraphs:
        for operator in subgraph.operators:
            kind = kinds[operator.opcodeIndex]
            if kind in _WITH_WEIGHTS and kind != "DEPTHWISE_CONV_2D":
                yield from (subgraph.tensors[int(index)].name.decode() for index in operator.outputs)


def _operator_kinds(model: Model) -> list[str]:
    """The names of the model's operator codes."""
    schema = import_schema()
    codes = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
    return [codes[max(code.builtinCode, code.deprecatedBuiltinCode)] for code in model.operatorCodes]


def _layer_outputs(model: Model) -> Iterator[str]:
    """The names of the outputs of the operators that lead to a layer with weights, or are one."""
    kinds = _operator_kinds(model)
    for signature in model.signatureDefs:
        subgraph = model.subgraphs[signature.subgraphIndex]
        needed: set[int] = set()  # tensors from which a layer is reached
        for operator in reversed(subgraph.operators):
            kind = kinds[operator.opcodeIndex]
            outputs = [int(index) for index in operator.outputs]
            if kind in _WITH_WEIGHTS or needed.intersection(outputs):
                needed |= {int(index) for index in operator.inputs}
                yield from (subgraph.tensors[index].name.decode() for index in outputs)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the quantiser's table and its warnings about what it is told on purpose."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
