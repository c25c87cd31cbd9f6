"""What Paddle's programs read and write of programs as data: the descriptions of blocks, operators and variables
(`paddle.base.core.BlockDesc` …). `description_format.py` writes and reads them; `described_program.py` makes them of
programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, TypeAlias

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dtypes import dtype
from framework.paddle._kernel.scalar import Scalar, wrap_as_scalar, wrap_as_scalars

if TYPE_CHECKING:
    from framework.paddle.static.program_description import ProgramDesc

Name: TypeAlias = str | bytes


class AttrType(IntEnum):
    """The type of an operator's attribute; the numbers of Paddle's files."""

    INT = 0
    FLOAT = 1
    STRING = 2
    INTS = 3
    FLOATS = 4
    STRINGS = 5
    BOOL = 6
    BOOLS = 7
    BLOCK = 8
    LONG = 9
    BLOCKS = 10
    LONGS = 11
    FLOAT64S = 12
    VAR = 13
    VARS = 14
    FLOAT64 = 15
    SCALAR = 16
    SCALARS = 17


def text(name: Name) -> str:
    """A name, which Paddle's programs may give as bytes."""
    return name.decode("utf-8") if isinstance(name, bytes) else name


def attribute_type(value: object) -> AttrType:
    """The type of a plain value: int, float, str, bool, Scalar, or a list of them.

    Raises:
        TypeError: attributes have no such values.
    """
    if isinstance(value, list | tuple):
        one = attribute_type(value[0]) if value else AttrType.INT
        several = {attribute_type(item) for item in value}
        if several == {AttrType.INT, AttrType.LONG}:
            one = AttrType.LONG
        elif several == {AttrType.INT, AttrType.FLOAT}:
            one = AttrType.FLOAT
        elif len(several) > 1 or one not in _LISTS:
            raise TypeError(f"an attribute is one value or a list of one type, received {value!r:.80}")
        return _LISTS[one]
    for kind, one in _PLAIN:
        if isinstance(value, kind):
            return AttrType.LONG if one == AttrType.INT and not -(1 << 31) <= value < 1 << 31 else one  # type: ignore[operator]
    raise TypeError(f"an attribute is a number, a text, or a list of them, received {type(value).__name__}")


_PLAIN = (
    (bool, AttrType.BOOL),
    (int, AttrType.INT),
    (float, AttrType.FLOAT),
    (str, AttrType.STRING),
    (Scalar, AttrType.SCALAR),
)
_LISTS = {
    AttrType.BOOL: AttrType.BOOLS,
    AttrType.INT: AttrType.INTS,
    AttrType.LONG: AttrType.LONGS,
    AttrType.FLOAT: AttrType.FLOATS,
    AttrType.STRING: AttrType.STRINGS,
    AttrType.SCALAR: AttrType.SCALARS,
}


class _Attributes:
    """Named values with their types."""

    def __init__(self) -> None:
        self.attributes: dict[str, tuple[AttrType, object]] = {}

    def set_attribute(self, name: str, kind: AttrType, value: object) -> None:
        """Set a value of a type."""
        self.attributes[name] = kind, list(value) if isinstance(value, tuple) else value

    def _set_attr(self, name: str, value: object) -> None:
        """Set a plain value. Raises: TypeError: it is none."""
        self.set_attribute(name, attribute_type(value), value)

    def attr(self, name: str) -> object:
        """A value. Raises: RuntimeError: there is none of this name."""
        return self._entry(name)[1]

    def attr_type(self, name: str) -> AttrType:
        """The type of a value. Raises: RuntimeError: there is none of this name."""
        return self._entry(name)[0]

    def _entry(self, name: str) -> tuple[AttrType, object]:
        if name not in self.attributes:
            raise RuntimeError(f"(NotFound) Attribute {name} is not found.")
        return self.attributes[name]

    def has_attr(self, name: str) -> bool:
        """Whether there is a value of this name."""
        return name in self.attributes

    def attr_names(self) -> list[str]:
        """The names of the values."""
        return list(self.attributes)

    def remove_attr(self, name: str) -> None:
        """Take a value out."""
        self.attributes.pop(name, None)


class VarDesc(_Attributes):
    """A variable: its name, what it is, its sizes and the type of its elements."""

    VarType = dtype  # the class of both is one, as in Paddle: base/core.py adds what is no type of elements

    def __init__(self, name: Name) -> None:
        super().__init__()
        self._name, self._type = text(name), "VarType.LOD_TENSOR"
        self._dtypes: list[dtype] = [types.float32]
        self._shapes: list[list[int]] = [[]]
        self._lod_levels = [0]
        self._persistable = self._is_parameter = self._stop_gradient = self._need_check_feed = False

    def name(self) -> str:
        """The variable's name."""
        return self._name

    def set_name(self, name: Name) -> None:
        """Rename it."""
        self._name = text(name)

    def type(self) -> str:
        """What it is ("VarType.LOD_TENSOR")."""
        return self._type

    def set_type(self, kind: str) -> None:
        """Say what it is."""
        self._type = kind

    def shape(self) -> list[int]:
        """Its sizes; -1 where one is known when the program runs."""
        return list(self._shapes[0])

    get_shape = shape

    def set_shape(self, shape: Sequence[int]) -> None:
        """Say its sizes."""
        self._shapes = [[int(size) for size in shape]]

    def shapes(self) -> list[list[int]]:
        """The sizes of each variable of a reader."""
        return [list(shape) for shape in self._shapes]

    def set_shapes(self, shapes: Iterable[Sequence[int]]) -> None:
        """Say the sizes of each variable of a reader."""
        self._shapes = [[int(size) for size in shape] for shape in shapes]

    def dtype(self) -> dtype:
        """The type of its elements."""
        return self._dtypes[0]

    def set_dtype(self, kind: dtype) -> None:
        """Say the type of its elements."""
        self._dtypes = [kind]

    def dtypes(self) -> list[dtype]:
        """The types of a reader's elements."""
        return list(self._dtypes)

    def set_dtypes(self, kinds: Iterable[dtype]) -> None:
        """Say the types of a reader's elements."""
        self._dtypes = list(kinds)

    def lod_level(self) -> int:
        """How deep its sequences lie."""
        return self._lod_levels[0]

    def set_lod_level(self, level: int) -> None:
        """Say how deep its sequences lie."""
        self._lod_levels = [level]

    def lod_levels(self) -> list[int]:
        """How deep the sequences of a reader lie."""
        return list(self._lod_levels)

    def set_lod_levels(self, levels: Iterable[int]) -> None:
        """Say how deep the sequences of a reader lie."""
        self._lod_levels = list(levels)

    def persistable(self) -> bool:
        """Whether it stays between runs."""
        return self._persistable

    def set_persistable(self, value: bool) -> None:
        """Say whether it stays between runs."""
        self._persistable = value

    def is_parameter(self) -> bool:
        """Whether an optimizer moves it."""
        return self._is_parameter

    def set_is_parameter(self, value: bool) -> None:
        """Say whether an optimizer moves it."""
        self._is_parameter = value

    def stop_gradient(self) -> bool:
        """Whether gradients end here."""
        return self._stop_gradient

    def set_stop_gradient(self, value: bool) -> None:
        """Say whether gradients end here."""
        self._stop_gradient = value

    def need_check_feed(self) -> bool:
        """Whether Paddle would compare what is fed with it. An Executor takes what is fed, and warns where the shape
        differs."""
        return self._need_check_feed

    def set_need_check_feed(self, value: bool) -> None:
        """See `need_check_feed`."""
        self._need_check_feed = value


class OpDesc(_Attributes):
    """An operator: its type, the names of its variables by slot, and its attributes."""

    def __init__(self, block: BlockDesc | None = None) -> None:
        super().__init__()
        self._block, self._type = block, ""
        self._inputs: dict[str, list[str]] = {}
        self._outputs: dict[str, list[str]] = {}
        self.is_target = False

    def block(self) -> BlockDesc | None:
        """The block that it stands in."""
        return self._block

    def type(self) -> str:
        """The operator ("matmul_v2")."""
        return self._type

    def set_type(self, name: str) -> None:
        """Say the operator."""
        self._type = name

    def input(self, slot: str) -> list[str]:
        """The names in a slot of the inputs. Raises: RuntimeError: there is no such slot."""
        return list(_slot(self._inputs, slot))

    def output(self, slot: str) -> list[str]:
        """The names in a slot of the outputs. Raises: RuntimeError: there is no such slot."""
        return list(_slot(self._outputs, slot))

    def set_input(self, slot: str, names: Iterable[Name]) -> None:
        """Say the names in a slot of the inputs."""
        self._inputs[slot] = [text(name) for name in names]

    def set_output(self, slot: str, names: Iterable[Name]) -> None:
        """Say the names in a slot of the outputs."""
        self._outputs[slot] = [text(name) for name in names]

    def remove_input(self, slot: str) -> None:
        """Take a slot of the inputs out."""
        self._inputs.pop(slot, None)

    def remove_output(self, slot: str) -> None:
        """Take a slot of the outputs out."""
        self._outputs.pop(slot, None)

    def inputs(self) -> dict[str, list[str]]:
        """The names of the inputs by slot."""
        return {slot: list(names) for slot, names in self._inputs.items()}

    def outputs(self) -> dict[str, list[str]]:
        """The names of the outputs by slot."""
        return {slot: list(names) for slot, names in self._outputs.items()}

    def input_names(self) -> list[str]:
        """The slots of the inputs."""
        return list(self._inputs)

    def output_names(self) -> list[str]:
        """The slots of the outputs."""
        return list(self._outputs)

    def input_arg_names(self) -> list[str]:
        """The names of all inputs."""
        return [name for names in self._inputs.values() for name in names]

    def output_arg_names(self) -> list[str]:
        """The names of all outputs."""
        return [name for names in self._outputs.values() for name in names]

    def _rename_input(self, old: Name, new: Name) -> None:
        """Read another variable."""
        _rename(self._inputs, text(old), text(new))

    def _rename_output(self, old: Name, new: Name) -> None:
        """Write another variable."""
        _rename(self._outputs, text(old), text(new))

    def _set_scalar_attr(self, name: str, value: Scalar) -> None:
        self.set_attribute(name, AttrType.SCALAR, wrap_as_scalar(value))

    def _set_scalars_attr(self, name: str, value: Iterable[Scalar]) -> None:
        self.set_attribute(name, AttrType.SCALARS, wrap_as_scalars(value))

    def set_block_attr(self, name: str, block: BlockDesc) -> None:
        """Let an attribute be a block."""
        self.set_attribute(name, AttrType.BLOCK, block.id)

    def set_blocks_attr(self, name: str, blocks: Iterable[BlockDesc]) -> None:
        """Let an attribute be several blocks."""
        self.set_attribute(name, AttrType.BLOCKS, [block.id for block in blocks])

    def _block_attr_id(self, name: str) -> object:
        """The number of the block that an attribute is. Raises: RuntimeError: there is no such attribute."""
        return self.attr(name)

    _blocks_attr_ids = _block_attr_id

    def get_attr_map(self) -> dict[str, object]:
        """All attributes."""
        return {name: value for name, (_, value) in self.attributes.items()}

    def set_is_target(self, value: bool) -> None:
        """Say whether a pruned program keeps it."""
        self.is_target = value

    def check_attrs(self) -> None:
        """Set the attributes that are not set to their first values, for the operators that have rows of it."""
        for name, value in _DEFAULTS.get(self._type, {}).items():
            if name not in self.attributes:
                self._set_attr(name, value)

    def copy_from(self, other: OpDesc) -> None:
        """Be as another one."""
        self._type, self.is_target = other._type, other.is_target
        self._inputs, self._outputs = other.inputs(), other.outputs()
        self.attributes = dict(other.attributes)

    def infer_var_type(self, block: BlockDesc) -> None:
        """Accepted: the shapes and types of outputs come from the operations that a program records."""

    infer_shape = infer_var_type


def _typed_setter(kind: AttrType) -> Callable[[OpDesc, str, object], None]:
    def set_attr(self: OpDesc, name: str, value: object) -> None:
        self.set_attribute(name, kind, value)

    return set_attr


for _name, _kind in {
    "bool": AttrType.BOOL,
    "int32": AttrType.INT,
    "int64": AttrType.LONG,
    "float32": AttrType.FLOAT,
    "float64": AttrType.FLOAT64,
    "str": AttrType.STRING,
    "bools": AttrType.BOOLS,
    "int32s": AttrType.INTS,
    "int64s": AttrType.LONGS,
    "float32s": AttrType.FLOATS,
    "float64s": AttrType.FLOAT64S,
    "strs": AttrType.STRINGS,
}.items():
    setattr(OpDesc, f"_set_{_name}_attr", _typed_setter(_kind))
# First values that Paddle's makers of operators set. Others have theirs where they run.
_DEFAULTS: dict[str, dict[str, object]] = {"mul": {"x_num_col_dims": 1, "y_num_col_dims": 1}}


def _slot(slots: dict[str, list[str]], slot: str) -> list[str]:
    if slot not in slots:
        raise RuntimeError(f"(NotFound) {slot} cannot be found among the slots {', '.join(slots) or 'none'}.")
    return slots[slot]


def _rename(slots: dict[str, list[str]], old: str, new: str) -> None:
    for slot, names in slots.items():
        slots[slot] = [new if name == old else name for name in names]


class BlockDesc:
    """Variables and operators of a program, or of the body of an operator."""

    def __init__(self, program: ProgramDesc, number: int, parent: int) -> None:
        self._program, self.id, self.parent = program, number, parent
        self.variables: dict[str, VarDesc] = {}
        self.operators: list[OpDesc] = []
        self._forward_block_idx = -1

    def set_parent_idx(self, parent: int) -> None:
        """Say which block it stands in."""
        self.parent = parent

    def get_forward_block_idx(self) -> int:
        """The block that it computes gradients of; -1: it computes none."""
        return self._forward_block_idx

    def _set_forward_block_idx(self, number: int) -> None:
        self._forward_block_idx = number

    def var(self, name: Name) -> VarDesc:
        """The variable of this name, a new one where there is none."""
        return self.variables.setdefault(text(name), VarDesc(name))

    def find_var(self, name: Name) -> VarDesc | None:
        """The variable of this name; None: there is none."""
        return self.variables.get(text(name))

    def find_var_recursive(self, name: Name) -> VarDesc | None:
        """As `find_var`, also in the blocks that this one stands in."""
        variable = self.find_var(name)
        if variable is not None or self.parent < 0:
            return variable
        return self._program.block(self.parent).find_var_recursive(name)

    def has_var(self, name: Name) -> bool:
        """Whether there is a variable of this name."""
        return self.find_var(name) is not None

    def has_var_recursive(self, name: Name) -> bool:
        """As `has_var`, also in the blocks that this one stands in."""
        return self.find_var_recursive(name) is not None

    def all_vars(self) -> list[VarDesc]:
        """All variables."""
        return list(self.variables.values())

    def _remove_var(self, name: Name) -> None:
        self.variables.pop(text(name), None)

    def _rename_var(self, old: Name, new: Name) -> None:
        """Rename a variable, also where operators name it."""
        variable = self.variables.pop(text(old), None)
        if variable is not None:
            variable.set_name(new)
            self.variables[text(new)] = variable
        for operator in self.operators:
            operator._rename_input(old, new)
            operator._rename_output(old, new)

    def op_size(self) -> int:
        """How many operators there are."""
        return len(self.operators)

    def op(self, index: int) -> OpDesc:
        """An operator. Raises: IndexError: there are not so many."""
        return self.operators[index]

    def append_op(self) -> OpDesc:
        """A new operator after all others."""
        return self._insert_op(len(self.operators))

    def _prepend_op(self) -> OpDesc:
        return self._insert_op(0)

    def _insert_op(self, index: int) -> OpDesc:
        operator = OpDesc(self)
        self.operators.insert(index, operator)
        return operator

    def _remove_op(self, start: int, end: int) -> None:
        """Take the operators from `start` to before `end` out."""
        del self.operators[start:end]
