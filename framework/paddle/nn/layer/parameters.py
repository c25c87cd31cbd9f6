"""Parameters that layers own, and the maker of them that layers in Paddle's older style hold as `_helper`."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NoReturn

from framework.core.errors import OarError
from framework.paddle._kernel.dtypes import get_default_dtype
from framework.paddle._kernel.mode import mode
from framework.paddle._kernel.tensor import Parameter
from framework.paddle.nn import initializer as initializers
from framework.paddle.nn.param_attr import AttrLike, ParamAttr
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle._kernel.arguments import DTypeLike, Integers
    from framework.paddle.nn.initializer import Initializer


def new_parameter(
    owner: str,
    shape: Integers,
    attr: AttrLike,
    dtype: object,
    is_bias: bool,
    default_initializer: Initializer | None,
) -> Parameter | None:
    """A parameter with its first values. `owner` starts its name; see `Layer.create_parameter`."""
    attribute = ParamAttr._to_attr(attr)
    if not isinstance(attribute, ParamAttr):
        return None
    sizes = tuple(int(size) for size in ([shape] if isinstance(shape, int) else shape))
    if attribute.name is not None:
        unique_name.claim(attribute.name)
    parameter = Parameter(
        initializers.new_value(sizes, dtype),
        name=attribute.name or unique_name.generate(f"{owner}.{'b' if is_bias else 'w'}"),
        trainable=attribute.trainable,
        learning_rate=attribute.learning_rate,
        regularizer=attribute.regularizer,
        need_clip=attribute.need_clip,
        do_model_average=attribute.do_model_average,
    )
    initializers.begin(parameter, initializers.starting(attribute.initializer, is_bias, default_initializer))
    if mode.keep_parameter is not None:
        mode.keep_parameter(parameter)
    return parameter


def create_parameter(
    shape: Any,
    dtype: object,
    name: str | None = None,
    attr: AttrLike = None,
    is_bias: bool = False,
    default_initializer: Any = None,
) -> Parameter | None:
    """A parameter outside of any layer; `name` holds where `attr` has none."""
    attribute = ParamAttr._to_attr(attr)
    if name is not None and isinstance(attribute, ParamAttr) and attribute.name is None:
        attribute = copy.copy(attribute)
        attribute.name = name
    owner = unique_name.generate("create_parameter")
    return new_parameter(owner, shape, attribute, dtype, is_bias, default_initializer)


class LayerHelper:
    """Parameters of an operation. Operations by name (`append_op`) are not here: the functions of paddle are."""

    def __init__(self, layer_type: str, **kwargs: object) -> None:
        self.kwargs, self.layer_type = kwargs, layer_type
        name = kwargs.get("name")
        self.name = name if isinstance(name, str) else unique_name.generate(layer_type)

    def get_default_dtype(self) -> str:
        return get_default_dtype()

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
