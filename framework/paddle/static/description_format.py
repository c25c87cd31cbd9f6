"""Descriptions of programs as the bytes of a `.pdmodel`.

Source: paddle/fluid/framework/framework.proto (numbers of fields and types)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from framework.core.errors import FormatError
from framework.interop.source import Source
from framework.interop.wire import Message
from framework.interop.wire_writer import bytes_field, double_field, float_field, integer_field
from framework.paddle._kernel.dtypes import dtype
from framework.paddle._kernel.scalar import Number, Scalar
from framework.paddle.static.descriptions import AttrType, BlockDesc, OpDesc, VarDesc, text

if TYPE_CHECKING:
    from framework.paddle.static.program_description import ProgramDesc

_KINDS = {
    "VarType.LOD_TENSOR": 7,
    "VarType.SELECTED_ROWS": 8,
    "VarType.FEED_MINIBATCH": 9,
    "VarType.FETCH_LIST": 10,
    "VarType.STEP_SCOPES": 11,
    "VarType.LOD_RANK_TABLE": 12,
    "VarType.LOD_TENSOR_ARRAY": 13,
    "VarType.PLACE_LIST": 14,
    "VarType.READER": 15,
    "VarType.RAW": 17,
    "VarType.STRING": 25,
    "VarType.STRINGS": 26,
    "VarType.VOCAB": 27,
    "VarType.FEED_LIST": 28,
}
_KIND_NAMES = {number: name for name, number in _KINDS.items()}
_TENSOR_FIELDS = {"VarType.SELECTED_ROWS": 2, "VarType.LOD_TENSOR": 3, "VarType.LOD_TENSOR_ARRAY": 4}
# Type of an attribute -> the number of its field, how one value is written, and how all values are read.
_FIELDS: dict[
    AttrType, tuple[int, Callable[[int, object], bytes], Callable[[Message, int], Iterable[object]]]
] = {}


def _add_fields(
    write: Callable[[int, object], bytes],
    read: Callable[[Message, int], Iterable[object]],
    **numbers: int,
) -> None:
    for name, number in numbers.items():
        _FIELDS[AttrType[name]] = number, write, read


def _write_scalar(number: int, value: object) -> bytes:
    plain = cast("Scalar", value).value()
    if isinstance(plain, bool):
        data = integer_field(1, 1) + integer_field(2, plain)
    elif isinstance(plain, int):
        data = integer_field(1, 2) + integer_field(3, plain)
    elif isinstance(plain, float):
        data = integer_field(1, 3) + double_field(4, plain)
    else:
        data = integer_field(1, 4) + bytes_field(5, double_field(1, plain.real) + double_field(2, plain.imag))
    return bytes_field(number, data)


def _read_scalars(message: Message, number: int) -> list[Scalar]:
    return [Scalar(_read_scalar(one)) for one in message.messages(number, "Scalar")]


def _read_scalar(message: Message) -> Number:
    match message.integer(1):
        case 1:
            return bool(message.integer(2))
        case 2:
            return message.integer(3)
        case 3:
            return message.real(4, "<f8") or 0.0
    pair = message.message(5, "Complex")
    return 0j if pair is None else complex(pair.real(1, "<f8") or 0.0, pair.real(2, "<f8") or 0.0)


def _reals(kind: str) -> Callable[[Message, int], Iterable[object]]:
    return lambda message, number: message.reals(number, kind).tolist()


_add_fields(integer_field, Message.integers, INT=3, INTS=6, LONG=13, LONGS=15, BLOCK=12, BLOCKS=14)  # type: ignore[arg-type]
_add_fields(integer_field, lambda m, n: [bool(v) for v in m.integers(n)], BOOL=10, BOOLS=11)  # type: ignore[arg-type]
_add_fields(float_field, _reals("<f4"), FLOAT=4, FLOATS=7)  # type: ignore[arg-type]
_add_fields(double_field, _reals("<f8"), FLOAT64=19, FLOAT64S=16)  # type: ignore[arg-type]
_add_fields(bytes_field, Message.texts, STRING=5, STRINGS=8, VAR=17, VARS=18)  # type: ignore[arg-type]
_add_fields(_write_scalar, _read_scalars, SCALAR=20, SCALARS=21)


def program_bytes(program: ProgramDesc) -> bytes:
    """A program as the bytes of a `.pdmodel`."""
    blocks = b"".join(bytes_field(1, _block_bytes(block)) for block in program.blocks)
    return blocks + bytes_field(4, integer_field(1, program.version))


def _block_bytes(block: BlockDesc) -> bytes:
    fields = [integer_field(1, block.id), integer_field(2, block.parent)]
    fields += [bytes_field(3, variable_bytes(variable)) for variable in block.all_vars()]
    fields += [bytes_field(4, operator_bytes(operator)) for operator in block.operators]
    return b"".join([*fields, integer_field(5, block.get_forward_block_idx())])


def variable_bytes(variable: VarDesc) -> bytes:
    """A variable as a message."""
    flags = {
        3: variable.persistable(),
        4: variable.need_check_feed(),
        5: variable.is_parameter(),
        6: variable.stop_gradient(),
    }
    fields = [bytes_field(1, variable.name()), bytes_field(2, _kind_bytes(variable))]
    fields += [integer_field(number, value) for number, value in flags.items()]
    return b"".join([*fields, _attribute_fields(7, variable.attributes)])


def _kind_bytes(variable: VarDesc) -> bytes:
    kind = variable.type()
    head = integer_field(1, _KINDS.get(kind, _KINDS["VarType.RAW"]))
    tensors = [
        (_tensor_bytes(kind, shape), level)
        for kind, shape, level in zip(variable.dtypes(), variable.shapes(), variable.lod_levels())
    ]
    if kind == "VarType.READER":
        return head + bytes_field(5, b"".join(bytes_field(1, _lod_bytes(*one)) for one in tensors))
    if kind not in _TENSOR_FIELDS or not tensors:
        return head
    one = tensors[0][0] if kind == "VarType.SELECTED_ROWS" else _lod_bytes(*tensors[0])
    return head + bytes_field(_TENSOR_FIELDS[kind], one)


def _tensor_bytes(kind: dtype, shape: Iterable[int]) -> bytes:
    return integer_field(1, int(kind)) + b"".join(integer_field(2, size) for size in shape)


def _lod_bytes(tensor: bytes, level: int) -> bytes:
    return bytes_field(1, tensor) + integer_field(2, level)


def operator_bytes(operator: OpDesc) -> bytes:
    """An operator as a message."""
    fields = [
        bytes_field(number, bytes_field(1, slot) + b"".join(bytes_field(2, name) for name in names))
        for number, slots in ((1, operator.inputs()), (2, operator.outputs()))
        for slot, names in slots.items()
    ]
    fields += [bytes_field(3, operator.type()), _attribute_fields(4, operator.attributes)]
    return b"".join([*fields, integer_field(5, operator.is_target)])


def _attribute_fields(number: int, attributes: Mapping[str, tuple[AttrType, object]]) -> bytes:
    """The attributes by their names, so that equal programs have equal bytes."""
    return b"".join(
        bytes_field(
            number, bytes_field(1, name) + integer_field(2, attributes[name][0]) + _values(*attributes[name])
        )
        for name in sorted(attributes)
    )


def _values(kind: AttrType, value: object) -> bytes:
    number, write, _ = _FIELDS[kind]
    return b"".join(write(number, one) for one in (value if isinstance(value, list) else [value]))


def read_program(program: ProgramDesc, data: bytes) -> None:
    """Make a description what the bytes of a `.pdmodel` say. Raises: ValueError: they are none."""
    try:
        root = Message(Source("bytes", memoryview(data)), "ProgramDesc")
        messages, version = root.messages(1, "BlockDesc"), root.message(4, "Version")
        blocks = [_read_block(program, message) for message in messages]
    except FormatError as error:
        raise ValueError(
            f"(InvalidArgument) Failed to parse program_desc from binary string. {error}"
        ) from error
    if not blocks:
        raise ValueError(
            "(InvalidArgument) Failed to parse program_desc from binary string: it has no blocks. Give the bytes of a "
            "ProgramDesc (.pdmodel)."
        )
    program.blocks, program.version = blocks, version.integer(1) if version is not None else 0


def read_operator(data: bytes) -> OpDesc:
    """The description of an operator. Raises: ValueError: the bytes are no OpDesc."""
    operator = OpDesc()
    try:
        _read_operator(operator, Message(Source("bytes", memoryview(data)), "OpDesc"))
    except FormatError as error:
        raise ValueError(f"(InvalidArgument) Cannot parse user input to OpDesc. {error}") from error
    return operator


def _read_block(program: ProgramDesc, message: Message) -> BlockDesc:
    block = BlockDesc(program, message.integer(1), message.integer(2))
    block._set_forward_block_idx(message.integer(5, -1))
    for variable in message.messages(3, "VarDesc"):
        _read_variable(block.var(variable.text(1)), variable)
    for operator in message.messages(4, "OpDesc"):
        _read_operator(block.append_op(), operator)
    return block


def _read_variable(variable: VarDesc, message: Message) -> None:
    variable.set_persistable(bool(message.integer(3)))
    variable.set_need_check_feed(bool(message.integer(4)))
    variable.set_is_parameter(bool(message.integer(5)))
    variable.set_stop_gradient(bool(message.integer(6)))
    variable.attributes = _read_attributes(message, 7)
    kind = message.message(2, "VarType")
    if kind is None:
        return
    variable.set_type(_KIND_NAMES.get(kind.integer(1), "VarType.RAW"))
    reader = kind.message(5, "ReaderDesc")
    number = _TENSOR_FIELDS.get(variable.type(), 0)
    if variable.type() == "VarType.SELECTED_ROWS":
        tensors = [(kind.message(number, "TensorDesc"), 0)]
    else:
        dense = (
            reader.messages(1, "LoDTensorDesc")
            if reader is not None
            else kind.messages(number, "LoDTensorDesc")
        )
        tensors = [(one.message(1, "TensorDesc"), one.integer(2)) for one in dense]
    several = [(tensor, level) for tensor, level in tensors if tensor is not None]
    if several:
        variable.set_dtypes([dtype(tensor.integer(1)) for tensor, _ in several])
        variable.set_shapes([tensor.integers(2) for tensor, _ in several])
        variable.set_lod_levels([level for _, level in several])


def _read_operator(operator: OpDesc, message: Message) -> None:
    for slot in message.messages(1, "OpDesc.Var"):
        operator.set_input(slot.text(1), slot.texts(2))
    for slot in message.messages(2, "OpDesc.Var"):
        operator.set_output(slot.text(1), slot.texts(2))
    operator.set_type(message.text(3))
    operator.set_is_target(bool(message.integer(5)))
    operator.attributes = _read_attributes(message, 4)


def _read_attributes(message: Message, number: int) -> dict[str, tuple[AttrType, object]]:
    attributes: dict[str, tuple[AttrType, object]] = {}
    for one in message.messages(number, "Attr"):
        kind = AttrType(one.integer(2))
        field, _, read = _FIELDS[kind]
        values = list(read(one, field))
        listed = kind.name.endswith("S")
        attributes[text(one.text(1))] = kind, values if listed else (values[-1] if values else "")
    return attributes
