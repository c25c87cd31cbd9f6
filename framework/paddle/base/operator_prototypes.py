"""What Paddle says of its operators: their inputs, outputs and attributes as messages (`paddle.base.core`'s
`get_all_op_protos`, `get_op_extra_attrs` …), from operators.txt, read of Paddle 2.6.2."""

from __future__ import annotations

import functools
import importlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.paddle.static.descriptions import AttrType

if TYPE_CHECKING:
    from google.protobuf.message import Message

_FLAGS = {"*": "duplicable", "?": "dispensable", "~": "intermediate", "+": "extra", "^": "support_tensor"}
_OF_EACH = (
    *(("op_role", AttrType.INT), ("op_role_var", AttrType.STRINGS), ("op_namescope", AttrType.STRING)),
    *(
        ("op_callstack", AttrType.STRINGS),
        ("op_device", AttrType.STRING),
        ("with_quant_attr", AttrType.BOOL),
    ),
)


@dataclass(frozen=True)
class _Entry:
    """A name of a line: its flags, and the type and the default value of an attribute."""

    name: str
    flags: tuple[str, ...]
    type: AttrType | None = None
    default: object = None


@dataclass(frozen=True)
class Prototype:
    """A line of operators.txt."""

    inputs: tuple[_Entry, ...]
    outputs: tuple[_Entry, ...]
    attributes: tuple[_Entry, ...]
    extra: tuple[_Entry, ...]


def _read_entry(word: str) -> _Entry:
    left, has_default, default = word.partition("=")
    text = left.rstrip("".join(_FLAGS))
    flags = tuple(_FLAGS[sign] for sign in left[len(text) :])
    name, _, kind = text.partition(":")
    return _Entry(name, flags, AttrType[kind] if kind else None, json.loads(default) if has_default else None)


@functools.cache
def prototypes() -> dict[str, Prototype]:
    """All operators of Paddle 2.6.2 by their names."""
    lines = Path(__file__).with_name("operators.txt").read_text(encoding="utf-8").splitlines()
    table = {}
    for line in lines:
        if line.startswith("#"):
            continue
        name, *columns = [column.strip() for column in line.split("|")]
        entries = [tuple(_read_entry(word) for word in column.split()) for column in columns]
        table[name] = Prototype(*entries, *[()] * (4 - len(entries)))
    return table


@functools.cache
def operator_message(op_type: str) -> Message:
    """The OpProto of an operator; its comments are empty. Raises: KeyError: there is no such operator."""
    line = prototypes()[op_type]
    messages = importlib.import_module("framework.paddle.base.proto.framework_pb2")  # of the package protobuf
    message = messages.OpProto(type=op_type, comment="")
    for entries, slots in ((line.inputs, message.inputs), (line.outputs, message.outputs)):
        for entry in entries:
            slots.add(name=entry.name, comment="", **dict.fromkeys(entry.flags, True))
    for entry in line.attributes:
        message.attrs.add(name=entry.name, type=entry.type, comment="", **dict.fromkeys(entry.flags, True))
    for name, kind in _OF_EACH:
        message.attrs.add(name=name, type=kind, comment="", extra=True)
    return message


def get_all_op_protos() -> list[bytes]:
    """The OpProto of each operator as bytes. Raises: ImportError: protobuf is not installed."""
    return [operator_message(name).SerializeToString() for name in prototypes()]


def get_op_extra_attrs(op_type: str) -> dict[str, object]:
    """The attributes of an operator that its OpProto does not have, and their default values."""
    line = prototypes().get(op_type)
    return {} if line is None else {entry.name: entry.default for entry in line.extra}


def get_attrtibute_type(op_type: str, attr_name: str) -> AttrType:
    """The type of an attribute (Paddle's spelling). Raises: IndexError: there is no such attribute."""
    line = prototypes().get(op_type)
    types = {} if line is None else {entry.name: entry.type for entry in (*line.attributes, *line.extra)}
    kind = types.get(attr_name)
    if kind is None:
        raise IndexError(f"the operator {op_type!r} has no attribute {attr_name!r}")
    return kind


class OpProtoHolder:
    """The operators of Paddle 2.6.2 as messages."""

    @classmethod
    def instance(cls) -> OpProtoHolder:
        """The one table."""
        return _HOLDER

    @property
    def op_proto_map(self) -> Mapping[str, Message]:
        """Name -> its OpProto."""
        return {name: operator_message(name) for name in prototypes()}

    def has_op_proto(self, type: str) -> bool:
        """Whether there is an operator of this name."""
        return type in prototypes()

    def get_op_proto(self, type: str) -> Message:
        """An operator. Raises: ValueError, there is none of this name."""
        if not self.has_op_proto(type):
            raise ValueError(f'Operator "{type}" has not been registered.')
        return operator_message(type)

    def update_op_proto(self) -> list[str]:
        """The operators that were added since: none, because operations of a user's own are functions here."""
        return []

    @staticmethod
    def generated_op_attr_names() -> set[str]:
        """The attributes that Paddle adds to each operator."""
        return {name for name, _ in _OF_EACH} - {"with_quant_attr"}


_HOLDER = OpProtoHolder()
