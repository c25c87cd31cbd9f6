"""paddle.base.layer_helper: what makes a layer's parameters in Paddle's older style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.methods import replace_value
from framework.paddle._kernel.operators import run_operator
from framework.paddle._kernel.tensor import as_array, wrap
from framework.paddle.nn.layer import new_parameter
from framework.paddle.nn.param_attr import ParamAttr
from framework.paddle.static.operator import slots_of
from framework.paddle.static.program import default_main_program, default_startup_program, in_dynamic_mode
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle._kernel.arguments import DTypeLike, Integers
    from framework.paddle._kernel.tensor import Parameter, Tensor
    from framework.paddle.nn.initializer import Initializer
    from framework.paddle.nn.param_attr import AttrLike
    from framework.paddle.static.operator import SlotArguments
    from framework.paddle.static.program import Program


def _run(
    op_type: str, inputs: SlotArguments | None, outputs: SlotArguments | None, attrs: Mapping[str, object]
) -> None:
    """Run an operator on Tensors; its results become the values of `outputs`."""

    def refuse(name: str) -> Tensor:
        raise ValueError(f"{op_type}: in dynamic mode operands are Tensors, received the name {name!r}")

    targets = slots_of(outputs, refuse)
    counts = {slot: len(tensors) for slot, tensors in targets.items()}
    results = run_operator(op_type, slots_of(inputs, refuse), attrs, counts)
    for slot, tensors in targets.items():
        for target, result in zip(tensors, results.get(slot, ())):
            replace_value(target, result)


class LayerHelper:
    """Parameters, variables and operators by name of a layer that is recorded."""

    def __init__(self, layer_type: str, **kwargs: object) -> None:
        self.kwargs, self.layer_type = kwargs, layer_type
        name = kwargs.get("name")
        self.name = name if isinstance(name, str) else unique_name.generate(layer_type)

    def create_parameter(
        self,
        attr: AttrLike,
        shape: Integers,
        dtype: DTypeLike | None = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Parameter | None:
        """A new parameter; None where `attr` is False."""
        return new_parameter(
            self.name, shape, attr, dtype or get_default_dtype(), is_bias, default_initializer
        )

    @property
    def main_program(self) -> Program:
        """The program that is recorded into."""
        return default_main_program()

    @property
    def startup_program(self) -> Program:
        """The program that sets parameters up."""
        return default_startup_program()

    def append_op(
        self,
        type: str | None = None,
        inputs: SlotArguments | None = None,
        outputs: SlotArguments | None = None,
        attrs: Mapping[str, object] | None = None,
        **options: object,
    ) -> object:
        """Append an operator by its name to the program, see `Block.append_op`; in dynamic mode run it at once.

        Raises:
            OarError: there is no such operator. ValueError: an operand is a name, in dynamic mode.
        """
        if in_dynamic_mode():
            return _run(str(type), inputs, outputs, attrs or {})
        return self.main_program.current_block().append_op(type, inputs, outputs, attrs, **options)  # type: ignore[arg-type]

    def create_variable_for_type_inference(
        self, dtype: DTypeLike, stop_gradient: bool = False, shape: Sequence[int] = ()
    ) -> Tensor:
        """A variable, in dynamic mode an empty Tensor, for the result of an operator, which gives it its shape."""
        if in_dynamic_mode():
            return wrap(as_array(np.zeros(0, types.to_numpy(dtype))))
        name = unique_name.generate(f"{self.name}.tmp")
        return self.main_program.current_block().create_var(
            name, shape or (), dtype, stop_gradient=stop_gradient
        )

    def get_default_dtype(self) -> str:
        """The type of parameters that are created without one."""
        return get_default_dtype()

    def create_variable(self, *args: object, **kwargs: object) -> Tensor:
        """As `Block.create_var`."""
        return self.main_program.current_block().create_var(*args, **kwargs)  # type: ignore[arg-type]

    create_global_variable = create_variable

    def input(self, input_param_name: str = "input") -> object:
        """What the helper was given as its input."""
        return self.kwargs[input_param_name]

    @property
    def param_attr(self) -> ParamAttr | bool:
        """What it was told of its parameter."""
        return ParamAttr._to_attr(self.kwargs.get("param_attr"))  # type: ignore[arg-type]

    @property
    def bias_attr(self) -> ParamAttr | bool:
        """What it was told of its bias."""
        return ParamAttr._to_attr(self.kwargs.get("bias_attr"))  # type: ignore[arg-type]
