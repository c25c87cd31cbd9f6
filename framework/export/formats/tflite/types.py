"""What is used of the classes of packages that need not be installed: MLIR's bindings and TensorFlow Lite's schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

import numpy as np

Type: TypeAlias = object
"""An MLIR type."""


class Value(Protocol):
    """A value of MLIR: a result of an operation, or an argument of a block."""

    @property
    def type(self) -> Type: ...
    @property
    def owner(self) -> Operation | Block: ...
    def replace_all_uses_with(self, other: Value) -> None: ...


class Operands(Protocol):
    """What an operation takes; an item can be set."""

    def __iter__(self) -> Iterator[Value]: ...
    def __len__(self) -> int: ...
    def __setitem__(self, index: int, value: Value) -> None: ...


class Operation(Protocol):
    """An operation of MLIR, or a view of one."""

    @property
    def operation(self) -> Operation: ...
    @property
    def name(self) -> str: ...
    @property
    def regions(self) -> Sequence[Region]: ...
    @property
    def operands(self) -> Operands: ...
    @property
    def results(self) -> Sequence[Value]: ...
    @property
    def attributes(self) -> Attributes: ...
    def clone(self, ip: object = None) -> Operation: ...
    def erase(self) -> None: ...
    def get_asm(self, *, large_elements_limit: int) -> str: ...


class Attributes(Protocol):
    """The attributes of an operation; iterating gives names, or named attributes, by the version."""

    def __iter__(self) -> Iterator[object]: ...
    def __contains__(self, name: str) -> bool: ...
    def __getitem__(self, name: object) -> object: ...
    def __setitem__(self, name: str, value: object) -> None: ...


class Region(Protocol):
    """A region of an operation."""

    @property
    def blocks(self) -> Blocks: ...


class Blocks(Protocol):
    """The blocks of a region."""

    def __iter__(self) -> Iterator[Block]: ...
    def __getitem__(self, index: int) -> Block: ...
    def append(self, *types: Type) -> Block: ...


class Block(Protocol):
    """A block: its arguments, and its operations, of which the last ends it."""

    @property
    def arguments(self) -> Sequence[Value]: ...
    @property
    def operations(self) -> Sequence[Operation]: ...
    def append(self, operation: Operation) -> None: ...


class Module(Protocol):
    """A module of MLIR."""

    @property
    def operation(self) -> Operation: ...
    @property
    def body(self) -> Block: ...


# -- the schema of `.tflite` ------------------------------------------------------------------------------------------


class Tensor(Protocol):
    """A tensor of a function; `shape` and `buffer` are as in the file."""

    name: bytes
    shape: Sequence[int] | np.ndarray | None
    type: int
    buffer: int


class Operator(Protocol):
    """An operator of a function: tensors by number."""

    @property
    def opcodeIndex(self) -> int: ...
    @property
    def inputs(self) -> Sequence[int]: ...
    @property
    def outputs(self) -> Sequence[int]: ...


class Subgraph(Protocol):
    """A function of a file."""

    @property
    def tensors(self) -> Sequence[Tensor]: ...
    @property
    def operators(self) -> Sequence[Operator]: ...
    @property
    def inputs(self) -> Sequence[int]: ...
    @property
    def outputs(self) -> Sequence[int]: ...


class TensorMap(Protocol):
    """The name of an input or an output in a signature."""

    @property
    def name(self) -> bytes: ...
    @property
    def tensorIndex(self) -> int: ...


class SignatureDef(Protocol):
    """A function of a file with names."""

    @property
    def signatureKey(self) -> bytes: ...
    @property
    def subgraphIndex(self) -> int: ...
    @property
    def inputs(self) -> Sequence[TensorMap]: ...
    @property
    def outputs(self) -> Sequence[TensorMap]: ...


class Buffer(Protocol):
    """The bytes of a constant, uint8; None of a tensor that is computed. `offset` and `size` are those of bytes that
    stand behind the flatbuffer."""

    data: np.ndarray | None
    offset: int
    size: int


class OperatorCode(Protocol):
    """Which operator it is; codes beyond 127 stand in the first field alone."""

    @property
    def builtinCode(self) -> int: ...
    @property
    def deprecatedBuiltinCode(self) -> int: ...


class MetadataEntry(Protocol):
    """A named buffer."""

    name: bytes
    buffer: int


class Model(Protocol):
    """A file."""

    description: bytes
    metadata: list[MetadataEntry] | None

    @property
    def buffers(self) -> list[Buffer]: ...
    @property
    def subgraphs(self) -> Sequence[Subgraph]: ...
    @property
    def signatureDefs(self) -> Sequence[SignatureDef]: ...
    @property
    def operatorCodes(self) -> Sequence[OperatorCode]: ...
    def Pack(self, builder: object) -> int: ...


class Interpreter(Protocol):
    """LiteRT's interpreter."""

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray: ...
    def get_signature_list(self) -> Mapping[str, Mapping[str, Sequence[str]]]: ...
