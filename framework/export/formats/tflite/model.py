"""A `.tflite` as Python objects: names of tensors, metadata, and back to bytes."""

from __future__ import annotations

from collections.abc import Sequence

import flatbuffers
import numpy as np

from framework.export.formats.tflite.metadata import (
    BUFFER,
    ModelMetadata,
    append_files,
    encode_metadata,
)
from framework.export.formats.tflite.packages import import_schema
from framework.export.formats.tflite.types import Model, Tensor

IDENTIFIER = b"TFL3"
_ALIGNMENT = 16  # bytes, of weights: the schema asks for it, and kernels load vectors


class _AlignedBuilder(flatbuffers.Builder):
    """flatbuffers' builder for Python knows no `force_align` of vectors."""

    def StartVector(self, elemSize: int, numElems: int, alignment: int) -> int:
        return super().StartVector(elemSize, numElems, _ALIGNMENT if elemSize == 1 else alignment)


def read_model(data: bytes) -> Model:
    """The model of a file's bytes. Raises: MissingExtraError."""
    model: Model = import_schema().ModelT.InitFromPackedBuf(bytearray(data), 0)
    for buffer in model.buffers:
        if (
            buffer.offset > 1 and buffer.size > 1
        ):  # behind the flatbuffer, as ai-edge-quantizer writes large ones
            buffer.data = np.frombuffer(data, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    return model


def pack_model(model: Model) -> bytes:
    """The bytes of a model."""
    for buffer in model.buffers:
        if buffer.data is not None and not isinstance(buffer.data, np.ndarray):
            buffer.data = np.asarray(buffer.data, np.uint8)
    builder = _AlignedBuilder(1 << 20)
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    return bytes(builder.Output())


def name_tensors(data: bytes) -> bytes:
    """The file with inputs and outputs named as its signatures name them, and a name of its own for every other tensor:
    s<subgraph>_t<number>.

    Quantisation knows tensors by their names, and LiteRT's classes for Java list inputs by them.
    """
    model = read_model(data)
    for number, subgraph in enumerate(model.subgraphs):
        for index, tensor in enumerate(subgraph.tensors):
            tensor.name = f"s{number}_t{index}".encode()
    for signature in model.signatureDefs:
        subgraph = model.subgraphs[signature.subgraphIndex]
        prefix = b"" if len(model.signatureDefs) == 1 else signature.signatureKey + b"_"
        # Outputs first: where one is an input handed through, it keeps the input's name.
        for entry in (*signature.outputs, *signature.inputs):
            subgraph.tensors[entry.tensorIndex].name = prefix + entry.name
    return pack_model(model)


def tensor_shapes(data: bytes) -> list[tuple[dict[str, tuple[int, ...]], dict[str, tuple[int, ...]]]]:
    """(inputs, outputs) of each signature with their shapes, in the order of the subgraph."""
    model = read_model(data)
    shapes = []
    for signature in model.signatureDefs:
        subgraph = model.subgraphs[signature.subgraphIndex]
        groups = []
        for entries, order in ((signature.inputs, subgraph.inputs), (signature.outputs, subgraph.outputs)):
            names = {entry.tensorIndex: entry.name.decode() for entry in entries}
            groups.append(
                {names[int(i)]: tensor_shape(subgraph.tensors[int(i)]) for i in order if int(i) in names}
            )
        shapes.append((groups[0], groups[1]))
    return shapes


def tensor_shape(tensor: Tensor) -> tuple[int, ...]:
    """The sizes of a tensor; none of a scalar."""
    return tuple(int(size) for size in tensor.shape) if tensor.shape is not None else ()


def add_metadata(data: bytes, metadata: ModelMetadata, texts: Sequence[tuple[str, str]] = ()) -> bytes:
    """The file with metadata, and the files that it names behind it.

    Args:
        texts: (name, text) of further buffers of metadata, such as a JSON of all that is known.
    """
    schema = import_schema()
    model = read_model(data)
    model.description = (metadata.description or metadata.name).encode()
    entries = [(BUFFER, encode_metadata(metadata)), *((name, text.encode()) for name, text in texts)]
    model.metadata = [one for one in model.metadata or [] if one.name.decode() not in dict(entries)]
    for name, content in entries:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(content, np.uint8)
        model.buffers.append(buffer)
        entry = schema.MetadataT()
        entry.name, entry.buffer = name.encode(), len(model.buffers) - 1
        model.metadata.append(entry)
    return append_files(pack_model(model), metadata.files)


def read_buffers(data: bytes) -> dict[str, bytes]:
    """The buffers of metadata of a file, by name."""
    model = read_model(data)
    return {
        entry.name.decode(): np.asarray(model.buffers[entry.buffer].data, np.uint8).tobytes()
        for entry in model.metadata or []
    }
