"""paddle.base.layer_helper: what makes a layer's parameters in Paddle's older style."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from framework.core.errors import OarError
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle.nn.layer import new_parameter
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle._kernel.arguments import DTypeLike, Integers
    from framework.paddle._kernel.tensor import Parameter
    from framework.paddle.nn.initializer import Initializer
    from framework.paddle.nn.param_attr import AttrLike


class LayerHelper:
    """Parameters of an operation. Operations by name (`append_op`) are not here: the functions of paddle are."""

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

    def append_op(self, *args: object, **kwargs: object) -> NoReturn:
        """Refused. Raises: OarError."""
        raise OarError(
            "operations of Paddle's C++ library cannot be appended by their names",
            where=f"LayerHelper({self.layer_type!r})",
            received=str(kwargs.get("type")),
            fix="call the function of paddle that does the same; docs/paddle_api.md lists them",
        )

    create_variable_for_type_inference = append_op
