"""Tensors of the Open Inference Protocol (KServe's v2) as numpy arrays, in JSON and as raw bytes.

Source: github.com/kserve/open-inference-protocol (REST, inference), and the binary tensor extension of Triton: a body
is a JSON header of `Inference-Header-Content-Length` bytes, and behind it the bytes of its tensors, little-endian and
row by row, in the order in which the header names them, each of `binary_data_size` bytes. A header of 0 bytes is of a
"raw binary request": all of the body is the only input, and the answer is bytes, too.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from framework.core.bounded import parse_json
from framework.core.errors import InputError, ShapeError
from framework.core.lazy import LazyModule
from framework.core.types import JSON
from framework.inference.engine import TensorShape

_ml_dtypes = LazyModule("ml_dtypes")
HEADER_LENGTH = "Inference-Header-Content-Length"
_NUMPY = {
    "BOOL": "bool",
    **{f"INT{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"UINT{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "BF16": "bfloat16",
}
_NAMES = {name: datatype for datatype, name in _NUMPY.items()}
DATATYPES = tuple(_NUMPY)
_AXES = 32
"""Those that arrays of every numpy can have."""


@dataclass(frozen=True)
class OutputRequest:
    """An output that a request asks for, and whether as bytes behind the header instead of numbers in JSON."""

    name: str
    binary: bool


@dataclass(frozen=True)
class InferRequest:
    """A request for an inference.

    Attributes:
        outputs: Those that are asked for; None: all.
        binary: Whether outputs that say nothing of it come as bytes.
        id: What the answer repeats; "" where the request has none.
        timeout: Seconds; None: what the server allows.
    """

    inputs: Mapping[str, np.ndarray]
    outputs: tuple[OutputRequest, ...] | None = None
    binary: bool = False
    id: str = ""
    timeout: float | None = None


@dataclass(frozen=True)
class InferResponse:
    """The body of an answer; `header_length` is of its JSON where bytes of tensors follow it, else None."""

    body: bytes
    header_length: int | None = None


def datatype_of(dtype: np.dtype) -> str:
    """The protocol's name of a dtype. Raises: ShapeError, where it has none."""
    if dtype.name not in _NAMES:
        raise ShapeError(
            "the protocol has no name for this dtype", received=dtype.name, allowed=", ".join(_NAMES)
        )
    return _NAMES[dtype.name]


def dtype_of(datatype: object, where: object) -> np.dtype:
    """The dtype of a datatype of the protocol. Raises: InputError, where programs take none of it."""
    if datatype == "BYTES":
        raise InputError(
            "programs take numbers, not BYTES",
            where=where,
            received="datatype BYTES",
            allowed=", ".join(DATATYPES),
            fix="decode images and tokenize texts first, or POST files and texts to /v1/models/<name>:predict",
        )
    if not isinstance(datatype, str) or datatype not in _NUMPY:
        raise InputError(
            "unknown datatype", where=where, received=repr(datatype)[:80], allowed=", ".join(DATATYPES)
        )
    return np.dtype(_ml_dtypes.bfloat16 if datatype == "BF16" else _NUMPY[datatype])


def describe_tensors(tensors: Mapping[str, TensorShape]) -> list[JSON]:
    """The tensors of a model's metadata; -1 is a size that varies."""
    return [
        {
            "name": name,
            "datatype": datatype_of(tensor.dtype),
            "shape": [size if isinstance(size, int) else -1 for size in tensor.shape],
        }
        for name, tensor in tensors.items()
    ]


def describe_configured(tensors: Mapping[str, TensorShape], has_rows: bool) -> list[JSON]:
    """The tensors of a model's configuration, as Triton has it.

    Args:
        has_rows: The first axis is that of rows, which a configuration leaves out.
    """
    return [
        {
            "name": name,
            "data_type": f"TYPE_{datatype_of(tensor.dtype)}",
            "dims": [size if isinstance(size, int) else -1 for size in tensor.shape[int(has_rows) :]],
        }
        for name, tensor in tensors.items()
    ]


def read_request(
    body: bytes, header_length: int | None, declared: Mapping[str, TensorShape], outputs: Sequence[str]
) -> InferRequest:
    """The request of a body.

    Args:
        header_length: Of the JSON header, where bytes of tensors may follow it; 0: there is none, and all of the body
            is the bytes of the model's only input; None: all of the body is JSON.
        declared: The inputs of the model, by name.
        outputs: The names of its outputs.

    Raises:
        InputError: it is no request of the protocol, or not of this model.
    """
    if header_length == 0:
        return InferRequest(_read_raw(body, declared), binary=True)
    if header_length is not None and not 0 < header_length <= len(body):
        raise InputError(
            "the JSON header is longer than the body",
            where=HEADER_LENGTH,
            received=f"{header_length}, of a body of {len(body)} bytes",
            allowed="0 to the length of the body",
        )
    header = _parse(body, header_length)
    blob = memoryview(b"" if header_length is None else body)[header_length or 0 :]
    tensors = header.get("inputs")
    if not isinstance(tensors, list) or not tensors:
        raise InputError(
            "the request has no inputs",
            where="inputs",
            received=_kind(tensors),
            allowed="a list of tensors: name, shape, datatype, data",
        )
    arrays: dict[str, np.ndarray] = {}
    offset = 0
    for number, tensor in enumerate(tensors):
        name, array, offset = _read_tensor(tensor, number, declared, blob, offset)
        if name in arrays:
            raise InputError("an input is there twice", where=f"input {name!r}")
        arrays[name] = array
    if offset != len(blob):
        raise InputError(
            "there are bytes behind the last tensor",
            where="the binary data",
            received=f"{len(blob)} bytes, of which the tensors take {offset}",
            allowed="the sum of binary_data_size",
        )
    if missing := [name for name in declared if name not in arrays]:
        raise InputError(
            "the model has inputs that the request leaves out",
            where="inputs",
            received=", ".join(arrays),
            allowed=", ".join(declared),
            fix=f"add {', '.join(missing)}",
        )
    parameters = _mapping(header.get("parameters"), "parameters")
    binary = _flag(parameters, "binary_data_output", False, "parameters")
    return InferRequest(
        arrays,
        _read_outputs(header.get("outputs"), outputs, binary),
        binary,
        "" if header.get("id") is None else _text(header["id"], "id"),
        _read_timeout(parameters),
    )


def write_response(
    model: str, version: str, request: InferRequest, outputs: Mapping[str, np.ndarray]
) -> InferResponse:
    """The answer to a request.

    Raises:
        InputError: a value that JSON cannot write was asked for in JSON: NaN or an infinity.
    """
    requested = request.outputs
    if requested is None:
        requested = tuple(OutputRequest(name, request.binary) for name in outputs)
    described: list[JSON] = []
    blobs: list[bytes] = []
    for output in requested:
        array = np.ascontiguousarray(outputs[output.name])
        tensor: dict[str, JSON] = {
            "name": output.name,
            "datatype": datatype_of(array.dtype),
            "shape": list(outputs[output.name].shape),
        }
        if output.binary:
            blobs.append(_little_endian(array).tobytes())
            tensor["parameters"] = {"binary_data_size": len(blobs[-1])}
        else:
            tensor["data"] = _numbers(array, output.name)
        described.append(tensor)
    answer: dict[str, JSON] = {"model_name": model, "model_version": version, "outputs": described}
    if request.id:
        answer["id"] = request.id
    header = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    return InferResponse(b"".join([header, *blobs]), len(header)) if blobs else InferResponse(header)


def _parse(body: bytes, header_length: int | None) -> Mapping[str, object]:
    try:
        return _mapping(
            parse_json(body[:header_length], "the request", "body", InputError), "the body", required=True
        )
    except InputError:
        if header_length is not None or b'"binary_data_size"' not in body:
            raise
        raise InputError(
            "bytes follow the JSON, and nothing says where it ends",
            where=HEADER_LENGTH,
            received="a request without this header",
            allowed="the length of the JSON, in bytes",
        ) from None


def _read_raw(body: bytes, declared: Mapping[str, TensorShape]) -> Mapping[str, np.ndarray]:
    """The only input of a model, whose shape the number of bytes tells. Raises: InputError, where it does not."""
    name, expected = next(iter(declared.items()))
    fixed = [size for size in expected.shape if isinstance(size, int)]
    row = math.prod(fixed) * expected.dtype.itemsize
    varying = len(expected.shape) - len(fixed)
    if len(declared) > 1 or varying > 1:
        raise InputError(
            "bytes alone do not say the shapes of these inputs",
            where=HEADER_LENGTH,
            received="0: no JSON before the bytes",
            allowed="0 with models of one input of which one size varies",
            fix=f"send JSON with the shapes of {', '.join(declared)}",
        )
    count = len(body) // row if varying else 1
    if not body or len(body) != count * row:
        raise InputError(
            "the bytes do not fill the input",
            where=f"input {name!r}",
            received=f"{len(body)} bytes",
            allowed=f"{'a multiple of ' if varying else ''}{row}, of {expected}",
        )
    shape = tuple(size if isinstance(size, int) else count for size in expected.shape)
    return {name: _read_bytes(memoryview(body), expected.dtype).reshape(shape)}


def _read_bytes(data: memoryview, dtype: np.dtype) -> np.ndarray:
    array = np.frombuffer(data, np.uint8) != 0 if dtype.kind == "b" else np.frombuffer(data, _stored(dtype))
    return array.astype(dtype, copy=False)


def _read_tensor(
    tensor: object, number: int, declared: Mapping[str, TensorShape], blob: memoryview, offset: int
) -> tuple[str, np.ndarray, int]:
    """Name and array of an input, and where the next one's bytes begin."""
    values = _mapping(tensor, f"inputs[{number}]", required=True)
    name = _text(values.get("name"), f"inputs[{number}].name")
    where = f"input {name!r}"
    if name not in declared:
        raise InputError(
            "the model has no such input", where=where, received=name[:80], allowed=", ".join(declared)
        )
    dtype = dtype_of(values.get("datatype"), where)
    expected = declared[name]
    if dtype != expected.dtype:
        raise InputError(
            "the input is of another datatype",
            where=where,
            received=values["datatype"],
            allowed=f"{datatype_of(expected.dtype)}, of shape [{', '.join(map(str, expected.shape))}]",
        )
    shape = _read_shape(values.get("shape"), where)
    count = math.prod(shape)
    size = _mapping(values.get("parameters"), f"{where}.parameters").get("binary_data_size")
    if size is None:
        return name, _read_numbers(values.get("data"), dtype, shape, where), offset
    if "data" in values:
        raise InputError(
            "the input has its values twice",
            where=where,
            received="data and binary_data_size",
            allowed="one of them",
        )
    if not isinstance(size, int) or isinstance(size, bool) or size != count * dtype.itemsize:
        raise InputError(
            "the bytes do not fill the shape",
            where=where,
            received=f"binary_data_size {size!r}"[:80],
            allowed=f"{count * dtype.itemsize} bytes of {values['datatype']} {list(shape)}",
        )
    data = blob[offset : offset + size]
    if len(data) < size:
        raise InputError(
            "the body ends within a tensor",
            where=where,
            received=f"{len(data)} of {size} bytes",
            fix=f"send all bytes, and the header {HEADER_LENGTH} with the length of the JSON before them",
        )
    return name, _read_bytes(data, dtype).reshape(shape), offset + size


def _read_shape(shape: object, where: str) -> tuple[int, ...]:
    sizes = shape if isinstance(shape, list) else None
    if sizes is None or not all(
        isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in sizes
    ):
        raise InputError(
            "the shape is no list of sizes",
            where=where,
            received=repr(shape)[:80],
            allowed="whole numbers, 0 or more",
        )
    _check_axes(len(sizes), where)
    return tuple(cast("list[int]", sizes))


def _read_numbers(data: object, dtype: np.dtype, shape: tuple[int, ...], where: str) -> np.ndarray:
    """The values of a JSON list, flat or nested as the shape is."""
    if not isinstance(data, list):
        raise InputError(
            "the input has no data",
            where=where,
            received=_kind(data),
            allowed="data: a list of numbers, flat or nested as the shape; or parameters.binary_data_size",
        )
    values, sizes = _flatten(data, where)
    if len(values) != math.prod(shape):
        raise InputError(
            "the data do not fill the shape",
            where=where,
            received=f"{len(values)} values",
            allowed=f"{math.prod(shape)} of the shape {list(shape)}",
        )
    ends = {1, *itertools.accumulate(shape, operator.mul)}
    if values and not ends.issuperset(itertools.accumulate(sizes, operator.mul)):
        # Rows that end elsewhere than those of the shape are of axes in another order, and of another array.
        raise InputError(
            "the data are nested otherwise than the shape says",
            where=where,
            received=f"lists of {' x '.join(map(str, sizes))}",
            allowed=f"a flat list, or lists nested as the shape {list(shape)}",
            fix="send the shape that the lists have, or flatten them, with the axes in the shape's order",
        )
    return _convert(values, dtype, where).reshape(shape)


def read_nested(data: object, dtype: np.dtype, where: str) -> np.ndarray:
    """The array of nested lists, whose shape is theirs. Raises: InputError, where they are of different lengths, or a
    value is not of the datatype."""
    if not isinstance(data, list):
        raise InputError(
            "the input is no list", where=where, received=_kind(data), allowed="a value of each sample"
        )
    values, sizes = _flatten(data, where)
    _check_axes(len(sizes), where)
    return _convert(values, dtype, where).reshape(sizes)


def _check_axes(count: int, where: str) -> None:
    """Raises: InputError, where arrays have no so many axes."""
    if count > _AXES:
        raise InputError("too many axes", where=where, received=count, allowed=f"at most {_AXES}")


def _flatten(data: list[object], where: str) -> tuple[list[object], list[int]]:
    """The values of nested lists, row by row, and the size of each level.

    Raises: InputError, where lists of one depth differ in length.
    """
    sizes = [len(data)]
    while data and any(isinstance(row, list) for row in data):
        rows = [row for row in data if isinstance(row, list)]
        if len(rows) != len(data) or len({len(row) for row in rows}) > 1:
            raise InputError(
                "the rows of the data differ in length",
                where=where,
                allowed="a flat list, or lists nested as the shape is",
            )
        sizes.append(len(rows[0]))
        data = [value for row in rows for value in row]
    return data, sizes


def _convert(values: list[object], dtype: np.dtype, where: str) -> np.ndarray:
    """The values as an array [N]. Raises: InputError with the first one that the datatype does not have."""
    if dtype.kind in "biu" and float in set(
        map(type, values)
    ):  # JSON does not tell 1 from 1.0, and clients write both
        values = [int(v) if type(v) is float and v.is_integer() else v for v in values]
    if dtype.kind == "b":
        values = [v == 1 if type(v) is int and v in (0, 1) else v for v in values]
    kinds = {bool} if dtype.kind == "b" else {int} if dtype.kind in "iu" else {int, float}
    if set(map(type, values)) <= kinds:
        with contextlib.suppress(OverflowError), np.errstate(over="ignore"):
            array = np.array(values, dtype)
            if dtype.kind in "biu" or not np.isinf(array.astype(np.float64)).any():
                return array
    for index, value in enumerate(values):
        if type(value) not in kinds or not _fits(cast(float, value), dtype):
            bounds = np.iinfo(dtype) if dtype.kind in "iu" else None
            kind = "true or false" if dtype.kind == "b" else "numbers" if bounds is None else "whole numbers"
            limits = "" if bounds is None else f" from {bounds.min} to {bounds.max}"
            raise InputError(
                f"a value is no {datatype_of(dtype)}",
                where=f"{where}, value {index}",
                received=repr(value)[:80],
                allowed=kind + limits,
            )
    return np.array(values, dtype)


def _fits(value: float, dtype: np.dtype) -> bool:
    """Whether a number is one of the dtype, after rounding; infinities are in floats."""
    try:
        with np.errstate(over="ignore"):
            array = np.array([value], dtype).astype(np.float64)
    except OverflowError:
        return False
    return dtype.kind in "biu" or math.isinf(value) or not np.isinf(array).any()


def _numbers(array: np.ndarray, name: str) -> list[JSON]:
    """The values row by row, as numbers of JSON."""
    return cast("list[JSON]", _as_numbers(array, name).ravel().tolist())


def nested_numbers(array: np.ndarray, name: str) -> JSON:
    """The values as nested lists of numbers of JSON. Raises: InputError, where one is NaN or infinite."""
    return cast("JSON", _as_numbers(array, name).tolist())


def _as_numbers(array: np.ndarray, name: str) -> np.ndarray:
    if array.dtype.kind not in "biu":
        array = array.astype(np.float64 if array.dtype == np.float64 else np.float32)
        if not np.isfinite(array).all():
            raise InputError(
                "JSON has no NaN and no infinity, and the output has some",
                where=f"output {name!r}",
                received=f"{int((~np.isfinite(array)).sum())} of {array.size} values",
                fix='ask for its bytes at /v2/models/<name>/infer: "parameters": {"binary_data": true}',
            )
    return array


def _read_outputs(outputs: object, names: Sequence[str], binary: bool) -> tuple[OutputRequest, ...] | None:
    if outputs is None or outputs == []:
        return None
    if not isinstance(outputs, list):
        raise InputError(
            "the outputs are no list", where="outputs", received=_kind(outputs), allowed="a list"
        )
    requested = []
    for number, output in enumerate(outputs):
        values = _mapping(output, f"outputs[{number}]", required=True)
        name = _text(values.get("name"), f"outputs[{number}].name")
        if name not in names:
            raise InputError(
                "the model has no such output", where=f"outputs[{number}]", received=name[:80],
                allowed=", ".join(names),
            )  # fmt: skip
        parameters = _mapping(values.get("parameters"), f"output {name!r}.parameters")
        if unknown := [key for key, value in parameters.items() if value and key != "binary_data"]:
            raise InputError(
                "the server has no such extension of outputs",
                where=f"output {name!r}",
                received=f"parameters.{unknown[0][:80]}",
                allowed="binary_data",
                fix="leave it out",
            )
        requested.append(OutputRequest(name, _flag(parameters, "binary_data", binary, f"output {name!r}")))
    if len({output.name for output in requested}) < len(requested):
        raise InputError("an output is asked for twice", where="outputs")
    return tuple(requested)


def _little_endian(array: np.ndarray) -> np.ndarray:
    return array.astype(_stored(array.dtype), copy=False)


def _stored(dtype: np.dtype) -> np.dtype:
    """As the protocol writes it: the least byte first. bfloat16 is no type of numpy's own and is the machine's."""
    return dtype if dtype.kind == "V" else dtype.newbyteorder("<")


def _mapping(value: object, where: str, *, required: bool = False) -> Mapping[str, object]:
    if value is None and not required:
        return {}
    if not isinstance(value, dict):
        raise InputError("this is no JSON object", where=where, received=_kind(value), allowed="an object")
    return value


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise InputError("this is no text", where=where, received=_kind(value), allowed="a string")
    return value


def _read_timeout(parameters: Mapping[str, object]) -> float | None:
    """Seconds, of Triton's `timeout` in microseconds; 0 is none. Raises: InputError, also of a sequence."""
    if parameters.get("sequence_id"):
        raise InputError(
            "models keep no state between requests",
            where="parameters.sequence_id",
            received=repr(parameters["sequence_id"])[:80],
            fix="leave it out",
        )
    microseconds = parameters.get("timeout", 0)
    if not isinstance(microseconds, int) or isinstance(microseconds, bool) or microseconds < 0:
        raise InputError(
            "this is no time",
            where="parameters.timeout",
            received=repr(microseconds)[:80],
            allowed="whole microseconds",
        )
    return microseconds / 1e6 if microseconds else None


def _flag(values: Mapping[str, object], name: str, default: bool, where: str) -> bool:
    value = values.get(name, default)
    if not isinstance(value, bool):
        raise InputError(
            "this is no truth value",
            where=f"{where}.{name}",
            received=repr(value)[:80],
            allowed="true or false",
        )
    return value


def _kind(value: object) -> str:
    """What stands in the place of what JSON should hold, for messages."""
    return "nothing" if value is None else f"{type(value).__name__} {repr(value)[:60]}"
