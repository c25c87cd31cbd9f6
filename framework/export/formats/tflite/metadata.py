"""What a `.tflite` says of itself: TensorFlow Lite's metadata, which Android Studio and the task libraries read.

The flatbuffer of metadata (schema version 1.5.0, file identifier M001) stands in the file under TFLITE_METADATA, and
the files that it names, such as labels, in a zip archive behind the model: `unzip model.tflite` takes them out.
Source: tensorflow/lite/support/metadata/metadata_schema.fbs for the fields and their numbers.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import flatbuffers
from flatbuffers import number_types, table
from flatbuffers.encode import Get
from flatbuffers.packer import uoffset

from framework.core.errors import FormatError

BUFFER = "TFLITE_METADATA"
IDENTIFIER = b"M001"
Kind = Literal["feature", "image", "boxes"]
_KINDS: dict[str, int] = {"feature": 1, "image": 2, "boxes": 3}
_FILE_KINDS = {"axis": 2, "values": 3, "vocabulary": 5}
_RGB, _GRAY = 1, 2
_BOUNDARIES, _PIXELS = 1, 1
_NORMALIZATION = 1  # of the union of process units
_EPOCH = (1980, 1, 1, 0, 0, 0)  # in the archive, so that the same model gives the same bytes


@dataclass(frozen=True)
class TensorMetadata:
    """What is said of an input or an output.

    Attributes:
        description: Layout, units and range in a sentence.
        kind: An image's input, boxes, or anything else.
        size_hw: (height, width) of an image; None where signatures have several.
        channels: Of an image, 1 or 3.
        mean, std: What an image's values are still to be shifted and scaled by before they are fed: 0 and 1, since the
            program normalises.
        value_range: The least and the largest value.
        labels: The name of the file of its labels, a label a line.
        labels_of: What labels name: the positions of its last axis, its values, or symbols of texts.
    """

    name: str
    description: str
    kind: Kind = "feature"
    size_hw: tuple[int, int] | None = None
    channels: int = 3
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    value_range: tuple[float, float] | None = None
    labels: str | None = None
    labels_of: Literal["axis", "values", "vocabulary"] = "axis"


@dataclass(frozen=True)
class ModelMetadata:
    """What is said of a model.

    Attributes:
        subgraphs: (inputs, outputs) of each signature, in the order of the file.
        files: Those in the archive, by name.
    """

    name: str
    description: str = ""
    version: str = ""
    license: str = ""
    subgraphs: Sequence[tuple[Sequence[TensorMetadata], Sequence[TensorMetadata]]] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)


# A field of a table: its number, and what writes it into a builder behind the table's strings and vectors.
_Slots = dict[int, Callable[[flatbuffers.Builder], None]]


def encode_metadata(metadata: ModelMetadata) -> bytes:
    """The flatbuffer of metadata."""
    builder = flatbuffers.Builder(1024)
    subgraphs = [_subgraph(builder, *tensors) for tensors in metadata.subgraphs]
    slots = _texts(
        builder,
        {0: metadata.name, 1: metadata.description, 2: metadata.version, 5: metadata.license, 7: "1.5.0"},
    )
    slots[3] = _offset(3, _vector(builder, subgraphs))
    builder.Finish(_table(builder, 8, slots), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def append_files(model: bytes, files: Mapping[str, bytes]) -> bytes:
    """A model with a zip archive of files behind it; uncompressed, so that they can be mapped into memory."""
    if not files:
        return model
    stream = io.BytesIO()
    stream.write(model)
    with zipfile.ZipFile(stream, "a", zipfile.ZIP_STORED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), data)
    return stream.getvalue()


def read_files(model: bytes) -> dict[str, bytes]:
    """The files behind a model, by name; none where it has no archive."""
    stream = io.BytesIO(model)
    if not zipfile.is_zipfile(stream):
        return {}
    with zipfile.ZipFile(stream) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def read_summary(data: bytes) -> dict[str, list[str]]:
    """The names of a metadata flatbuffer: {"name", "inputs", "outputs"}, of all signatures one after the other.

    Raises:
        FormatError: these bytes are no metadata.
    """
    if data[4:8] != IDENTIFIER:
        raise FormatError(
            "these bytes are no metadata of TensorFlow Lite",
            received=repr(data[:8]),
            allowed="a flatbuffer whose identifier is M001",
        )
    root = table.Table(data, Get(uoffset, data, 0))
    names: dict[str, list[str]] = {"name": [_read_text(root, 0)], "inputs": [], "outputs": []}
    for subgraph in _read_tables(root, 3):
        names["inputs"] += [_read_text(tensor, 0) for tensor in _read_tables(subgraph, 2)]
        names["outputs"] += [_read_text(tensor, 0) for tensor in _read_tables(subgraph, 3)]
    return names


# -- writing ----------------------------------------------------------------------------------------------------------


def _table(builder: flatbuffers.Builder, size: int, slots: _Slots) -> int:
    """A table of `size` fields, those of `slots` set."""
    builder.StartObject(size)
    for number in sorted(slots):
        slots[number](builder)
    return builder.EndObject()


def _offset(number: int, offset: int) -> Callable[[flatbuffers.Builder], None]:
    return lambda builder: builder.PrependUOffsetTRelativeSlot(number, offset, 0)


def _byte(number: int, value: int) -> Callable[[flatbuffers.Builder], None]:
    return lambda builder: builder.PrependUint8Slot(number, value, 0)


def _uint(number: int, value: int) -> Callable[[flatbuffers.Builder], None]:
    return lambda builder: builder.PrependUint32Slot(number, value, 0)


def _texts(builder: flatbuffers.Builder, texts: Mapping[int, str]) -> _Slots:
    return {number: _offset(number, builder.CreateString(text)) for number, text in texts.items() if text}


def _vector(builder: flatbuffers.Builder, offsets: Sequence[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()


def _floats(builder: flatbuffers.Builder, values: Sequence[float]) -> int:
    builder.StartVector(4, len(values), 4)
    for value in reversed(values):
        builder.PrependFloat32(value)
    return builder.EndVector()


def _subgraph(
    builder: flatbuffers.Builder, inputs: Sequence[TensorMetadata], outputs: Sequence[TensorMetadata]
) -> int:
    tensors = {
        number: _vector(builder, [_tensor(builder, one) for one in group])
        for number, group in ((2, inputs), (3, outputs))
    }
    return _table(builder, 10, {number: _offset(number, vector) for number, vector in tensors.items()})


def _tensor(builder: flatbuffers.Builder, tensor: TensorMetadata) -> int:
    content = _table(
        builder,
        3,
        {0: _byte(0, _KINDS[tensor.kind]), 1: _offset(1, _properties(builder, tensor))},
    )
    slots = _texts(builder, {0: tensor.name, 1: tensor.description})
    slots[3] = _offset(3, content)
    if tensor.kind == "image":
        vectors = {0: _floats(builder, tensor.mean), 1: _floats(builder, tensor.std)}
        options = _table(builder, 2, {number: _offset(number, one) for number, one in vectors.items()})
        unit = _table(builder, 2, {0: _byte(0, _NORMALIZATION), 1: _offset(1, options)})
        slots[4] = _offset(4, _vector(builder, [unit]))
    if tensor.value_range is not None:
        least, most = tensor.value_range
        bounds = {0: _floats(builder, [most]), 1: _floats(builder, [least])}
        slots[5] = _offset(
            5, _table(builder, 2, {number: _offset(number, one) for number, one in bounds.items()})
        )
    if tensor.labels is not None:
        texts = _texts(builder, {0: tensor.labels, 1: "a label a line, from 0"})
        file = _table(builder, 5, {**texts, 2: _byte(2, _FILE_KINDS[tensor.labels_of])})
        slots[6] = _offset(6, _vector(builder, [file]))
    return _table(builder, 7, slots)


def _properties(builder: flatbuffers.Builder, tensor: TensorMetadata) -> int:
    if tensor.kind == "image":
        slots: _Slots = {0: _byte(0, _RGB if tensor.channels == 3 else _GRAY)}
        if tensor.size_hw is not None:
            height, width = tensor.size_hw
            slots[1] = _offset(1, _table(builder, 2, {0: _uint(0, width), 1: _uint(1, height)}))
        return _table(builder, 2, slots)
    if tensor.kind == "boxes":
        builder.StartVector(4, 4, 4)
        for index in (3, 2, 1, 0):
            builder.PrependUint32(index)
        order = builder.EndVector()
        return _table(builder, 3, {0: _offset(0, order), 1: _byte(1, _BOUNDARIES), 2: _byte(2, _PIXELS)})
    return _table(builder, 0, {})


# -- reading ----------------------------------------------------------------------------------------------------------


def _read_text(one: table.Table, number: int) -> str:
    offset = number_types.UOffsetTFlags.py_type(one.Offset(4 + 2 * number))
    return one.String(offset + one.Pos).decode() if offset else ""


def _read_tables(one: table.Table, number: int) -> list[table.Table]:
    offset = number_types.UOffsetTFlags.py_type(one.Offset(4 + 2 * number))
    if not offset:
        return []
    start = one.Vector(offset)
    return [table.Table(one.Bytes, one.Indirect(start + 4 * index)) for index in range(one.VectorLen(offset))]
