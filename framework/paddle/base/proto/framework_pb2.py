"""The protobuf messages of Paddle's programs, made by the package protobuf from framework.txt.

They read and write what `Program.desc.serialize_to_string` and a `.pdmodel` hold. They stand in a pool of their own, so
that a package which carries Paddle's messages can be imported beside them.

Raises:
    ImportError: protobuf is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

try:
    from google.protobuf import descriptor_pb2, message_factory
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
    from google.protobuf.message import Message
except ImportError as error:
    raise ImportError("paddle.base.proto needs the package protobuf: pip install protobuf") from error

_FILE = "paddle/fluid/framework/framework.proto"
_PACKAGE = "paddle.framework.proto"


def _read_schema() -> Iterator[list[str]]:
    """The lines of framework.txt as words."""
    lines = Path(__file__).with_name("framework.txt").read_text(encoding="utf-8").splitlines()
    return (line.split() for line in lines if not line.startswith("#"))


def _build_file() -> descriptor_pb2.FileDescriptorProto:
    """The description of the messages that protobuf makes its classes of."""
    file = descriptor_pb2.FileDescriptorProto(name=_FILE, package=_PACKAGE, syntax="proto2")
    messages: dict[str, descriptor_pb2.DescriptorProto] = {}
    enums: dict[str, descriptor_pb2.EnumDescriptorProto] = {}
    current: descriptor_pb2.DescriptorProto | descriptor_pb2.EnumDescriptorProto | None = None
    fields: list[tuple[descriptor_pb2.FieldDescriptorProto, str]] = []
    for words in _read_schema():
        if words[0] in ("enum", "message"):
            outer, _, name = words[1].rpartition(".")
            parent = messages.get(outer)
            if words[0] == "enum":
                current = (file if parent is None else parent).enum_type.add(name=name)
                enums[words[1]] = current
            else:
                current = (
                    file.message_type.add(name=name) if parent is None else parent.nested_type.add(name=name)
                )
                messages[words[1]] = current
        elif isinstance(current, descriptor_pb2.EnumDescriptorProto):
            current.value.add(name=words[0], number=int(words[1]))
        elif current is not None:
            label, kind, name, number, *default = words
            field = current.field.add(name=name, number=int(number))
            field.label = getattr(field, f"LABEL_{label.upper()}")
            if default:
                field.default_value = default[0]
            fields.append((field, kind))
    for field, kind in fields:
        if kind in messages or kind in enums:
            field.type = field.TYPE_MESSAGE if kind in messages else field.TYPE_ENUM
            field.type_name = f".{_PACKAGE}.{kind}"
        else:
            field.type = getattr(field, f"TYPE_{kind.upper()}")
    return file


def _message_class(name: str) -> type[Message]:
    return _build_class(DESCRIPTOR.message_types_by_name[name])


def _build_class(descriptor: Descriptor) -> type[Message]:
    """The class of a message, with the classes of its own messages as attributes (protobuf's Python form sets none)."""
    built = message_factory.GetMessageClass(descriptor)
    for inner in descriptor.nested_types:
        if not hasattr(built, inner.name):
            setattr(built, inner.name, _build_class(inner))
    return built


_POOL = DescriptorPool()
_POOL.AddSerializedFile(_build_file().SerializeToString())
DESCRIPTOR = _POOL.FindFileByName(_FILE)

AttrType = EnumTypeWrapper(DESCRIPTOR.enum_types_by_name["AttrType"])
(INT, FLOAT, STRING, INTS, FLOATS, STRINGS, BOOLEAN, BOOLEANS, BLOCK) = range(9)
(LONG, BLOCKS, LONGS, FLOAT64S, VAR, VARS, FLOAT64, SCALAR, SCALARS) = range(9, 18)

Version = _message_class("Version")
Complex = _message_class("Complex")
Scalar = _message_class("Scalar")
OpDesc = _message_class("OpDesc")
OpProto = _message_class("OpProto")
VarType = _message_class("VarType")
VarDesc = _message_class("VarDesc")
BlockDesc = _message_class("BlockDesc")
OpVersion = _message_class("OpVersion")
OpVersionMap = _message_class("OpVersionMap")
ProgramDesc = _message_class("ProgramDesc")
