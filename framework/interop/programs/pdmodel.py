"""Paddle's older program format: a protobuf ProgramDesc (`.pdmodel`, `__model__`).

Source: paddle/fluid/framework/framework.proto
"""

from __future__ import annotations

from pathlib import Path

from framework.interop.programs.program import Node, Program, TensorSpec
from framework.interop.source import Source, read_source
from framework.interop.weights.pdparams import DTYPES
from framework.interop.wire import Message

_NOT_TENSORS = (9, 10, 15, 17)  # FEED_MINIBATCH, FETCH_LIST, READER, RAW
_NOISE = ("op_callstack", "op_role", "op_role_var", "op_namescope", "op_device", "with_quant_attr")
_MAX_DEPTH = 16


def read_pdmodel(path: str | Path | Source) -> Program:
    """Read a ProgramDesc. Its parameters are TensorSpecs: the values lie in the parameter file.

    Raises FormatError when the file is damaged or no ProgramDesc.
    """
    source = read_source(path)
    root = Message(source, "ProgramDesc")
    blocks = root.messages(1, "BlockDesc")
    version = root.message(4, "Version")
    if not blocks or version is None:
        raise source.error(
            "not a complete ProgramDesc",
            received=f"{len(blocks)} blocks, {'no' if version is None else 'a'} version",
            allowed="at least one block, and a version",
        )
    variables = {spec.name: spec for block in blocks for spec in _specs(block, parameters=False)}
    parameters = {spec.name: spec for block in blocks for spec in _specs(block, parameters=True)}
    reader = _Reader(source, [block.messages(4, "OpDesc") for block in blocks])
    nodes = reader.block(0, 0)

    def ends(op: str) -> tuple[TensorSpec, ...]:
        matching = [node for node in nodes if node.op == op]
        matching.sort(key=lambda node: _column(node.attrs.get("col")))
        names = [name for node in matching for name in (node.outputs if op == "feed" else node.inputs)]
        return tuple(variables.get(name, TensorSpec(name, (), "")) for name in names)

    number = version.integer(1)  # 2006002 is 2.6.2; 0 is written by development builds
    return Program(
        format="pdmodel",
        version=f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}" if number else "develop",
        nodes=tuple(node for node in nodes if node.op not in ("feed", "fetch")),
        parameters=dict(parameters),
        inputs=ends("feed"),
        outputs=ends("fetch"),
        name=source.name,
    )


def _column(value: object) -> int:
    return value if isinstance(value, int) else 0


def _specs(block: Message, *, parameters: bool) -> list[TensorSpec]:
    specs = []
    for variable in block.messages(3, "VarDesc"):
        kind = variable.message(2, "VarType")
        code = kind.integer(1) if kind else -1
        if parameters and (not variable.integer(3) or code in _NOT_TENSORS):
            continue
        dense = kind.message(3, "LoDTensorDesc") if kind else None
        tensor = dense.message(1, "TensorDesc") if dense else None
        if tensor is None:
            if parameters:
                raise block.source.error(
                    f"the parameter {variable.text(1)!r} is no dense tensor",
                    variable.start,
                    received=f"variable type {code}",
                    allowed="DENSE_TENSOR (7)",
                    fix="export the model without sparse parameters",
                )
            continue
        dtype = DTYPES.get(tensor.integer(1))
        shape = tuple(size if size >= 0 else None for size in tensor.integers(2))
        specs.append(TensorSpec(variable.text(1), shape, dtype.name if dtype is not None else ""))
    return specs


class _Reader:
    def __init__(self, source: Source, operations: list[list[Message]]) -> None:
        self.source, self.operations = source, operations
        self._entered: set[int] = set()

    def block(self, index: int, depth: int) -> tuple[Node, ...]:
        # A block belongs to one operation; entering one twice would also let a small file grow without end.
        if not 0 <= index < len(self.operations) or index in self._entered or depth > _MAX_DEPTH:
            raise self.source.error(
                "the blocks of the program do not form a tree", received=f"a reference to block {index}"
            )
        self._entered.add(index)
        return tuple(
            self._node(desc, index, number, depth) for number, desc in enumerate(self.operations[index])
        )

    def _node(self, desc: Message, block: int, number: int, depth: int) -> Node:
        op = desc.text(3)
        attrs: dict[str, object] = {}
        bodies: list[int] = []
        for attr in desc.messages(4, "Attr"):
            name = attr.text(1)
            if name not in _NOISE:
                attrs[name] = _attribute(attr)
            if attr.integer(2) == 8:
                bodies.append(attr.integer(12, -1))
            elif attr.integer(2) == 10:
                bodies.extend(attr.integers(14))
        inputs, outputs = _slots(desc, 1), _slots(desc, 2)
        return Node(
            op=op,
            name=f"{op}#{number}" if block == 0 else f"{op}#{block}.{number}",
            inputs=tuple(name for _, name in inputs),
            outputs=tuple(name for _, name in outputs),
            attrs=attrs,
            input_slots=tuple(slot for slot, _ in inputs),
            output_slots=tuple(slot for slot, _ in outputs),
            blocks=tuple(self.block(body, depth + 1) for body in bodies),
        )


def _slots(desc: Message, field: int) -> list[tuple[str, str]]:
    pairs = []
    for variable in desc.messages(field, "OpDesc.Var"):
        slot = variable.text(1)
        pairs.extend((slot, name) for name in variable.texts(2))
    return pairs


def _attribute(attr: Message) -> object:
    match attr.integer(2):
        case 0:
            return attr.integer(3)
        case 1:
            return attr.real(4)
        case 2:
            return attr.text(5)
        case 3:
            return attr.integers(6)
        case 4:
            return tuple(attr.reals(7).tolist())
        case 5:
            return attr.texts(8)
        case 6:
            return bool(attr.integer(10))
        case 7:
            return tuple(bool(value) for value in attr.integers(11))
        case 9:
            return attr.integer(13)
        case 11:
            return attr.integers(15)
        case 12:
            return tuple(attr.reals(16, "<f8").tolist())
        case 15:
            return attr.real(19, "<f8")
        case 16:
            scalar = attr.message(20, "Scalar")
            return None if scalar is None else _scalar(scalar)
        case 17:
            return tuple(_scalar(scalar) for scalar in attr.messages(21, "Scalar"))
    return None


def _scalar(scalar: Message) -> bool | int | float | None:
    match scalar.integer(1):
        case 1:
            return bool(scalar.integer(2))
        case 2:
            return scalar.integer(3)
        case 3:
            return scalar.real(4, "<f8")
    return None  # complex numbers, which no operator that runs here takes
