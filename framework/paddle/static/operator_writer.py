"""A block of Paddle's operators that is written one operator after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framework.paddle._kernel.dtypes import dtype
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.descriptions import AttrType, BlockDesc, OpDesc, VarDesc, attribute_type


class NoOperator(Exception):
    """An operation has no form as operators of Paddle with these settings."""


class OperatorWriter:
    """Appends operators, and the variables between them, to a block.

    Attributes:
        for_test: Dropout and moving statistics are those of evaluation.
    """

    def __init__(self, block: BlockDesc, for_test: bool) -> None:
        self.block, self.for_test = block, for_test

    def append(
        self,
        op_type: str,
        inputs: Mapping[str, str | Sequence[str]],
        outputs: Mapping[str, str | Sequence[str]],
        **attributes: object,
    ) -> None:
        """Append an operator; tuples among its attributes are lists of integers where they are empty."""
        operator = OpDesc()
        operator.set_type(op_type)
        for slot, names in inputs.items():
            operator.set_input(slot, [names] if isinstance(names, str) else list(names))
        for slot, names in outputs.items():
            operator.set_output(slot, [names] if isinstance(names, str) else list(names))
        for name, value in attributes.items():
            plain = list(value) if isinstance(value, tuple) else value
            operator.attributes[name] = attribute_type(plain), plain
        operator.attributes["op_role"] = AttrType.INT, 0
        operator._block = self.block
        self.block.operators.append(operator)

    def add_variable(self, base: str, slot: str, shape: Sequence[int], kind: dtype) -> str:
        """A variable between two operators, or an output that nothing reads; -> its name."""
        first = name = f"{base}.{slot.lower()}"
        number = 0
        while self.block.has_var(name):
            number += 1
            name = f"{first}_{number}"
        variable = VarDesc(name)
        variable.set_shape(shape)
        variable.set_dtype(kind)
        self.block.variables[name] = variable
        return name

    def add_constant(self, value: float, like: Tensor, base: str, shape: Sequence[int] = ()) -> str:
        """A variable of one number, of the type of `like`; -> its name."""
        name = self.add_variable(base, "constant", shape, like.dtype)
        self.append(
            "fill_constant",
            {},
            {"Out": name},
            shape=list(shape),
            dtype=int(like.dtype),
            value=float(value),
            str_value=repr(value) if like.dtype.name.startswith("int") else "",
            force_cpu=False,
        )
        return name

    def cast(self, tensor: Tensor, kind: dtype, base: str) -> str:
        """The name of a Tensor in another type; its own where it has that."""
        if tensor.dtype == kind:
            return tensor.name
        name = self.add_variable(base, "cast", tensor.shape, kind)
        self.append(
            "cast", {"X": tensor.name}, {"Out": name}, in_dtype=int(tensor.dtype), out_dtype=int(kind)
        )
        return name
