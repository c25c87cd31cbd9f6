"""paddle.base.data_feeder: checks of arguments that packages call in static mode, and the names of data types."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle.static.program import in_dynamic_mode


def convert_dtype(dtype: object) -> str:
    """The name of a data type: "float32" for `paddle.float32`, numpy's type and "float32".

    Raises:
        TypeError: there is no such type.
    """
    try:
        return types.of_numpy(types.to_numpy(dtype)).name
    except ValueError as error:
        raise TypeError(str(error)) from None


def check_type(
    input: object,
    input_name: str,
    expected_type: type | tuple[type, ...],
    op_name: str,
    extra_message: str = "",
) -> None:
    """In static mode: that an argument is of these classes.

    Raises:
        TypeError: it is not.
    """
    if not in_dynamic_mode() and not isinstance(input, expected_type):
        raise TypeError(
            f"The type of '{input_name}' in {op_name} must be {expected_type}, but received {type(input)}. "
            f"{extra_message}"
        )


def check_dtype(
    input_dtype: object,
    input_name: str,
    expected_dtype: str | Sequence[str],
    op_name: str,
    extra_message: str = "",
) -> None:
    """In static mode: that a data type is one of these.

    Raises:
        TypeError: it is not.
    """
    if not in_dynamic_mode() and convert_dtype(input_dtype) not in expected_dtype:
        raise TypeError(
            f"The data type of '{input_name}' in {op_name} must be {expected_dtype}, "
            f"but received {convert_dtype(input_dtype)}. {extra_message}"
        )


def check_variable_and_dtype(
    input: object, input_name: str, expected_dtype: str | Sequence[str], op_name: str, extra_message: str = ""
) -> None:
    """In static mode: that an argument is a variable of one of these data types.

    Raises:
        TypeError: it is not.
    """
    from framework.paddle._kernel.tensor import Tensor

    check_type(input, input_name, Tensor, op_name, extra_message)
    if isinstance(input, Tensor):
        check_dtype(input.dtype, input_name, expected_dtype, op_name, extra_message)


def check_shape(
    shape: object,
    op_name: str,
    expected_shape_type: type | tuple[type, ...] = (list, tuple),
    expected_element_type: type | tuple[type, ...] = (int, np.integer),
    expected_tensor_dtype: str | Sequence[str] = ("int32", "int64"),
) -> None:
    """In static mode: that a shape is a list of whole numbers, or a variable of them.

    Raises:
        TypeError: it is not.
    """
    from framework.paddle._kernel.tensor import Tensor

    if in_dynamic_mode():
        return
    if isinstance(shape, Tensor):
        check_dtype(shape.dtype, "shape", expected_tensor_dtype, op_name)
        return
    check_type(shape, "shape", expected_shape_type, op_name)
    for item in shape if isinstance(shape, list | tuple) else ():
        if not isinstance(item, Tensor):
            check_type(item, "element of shape", expected_element_type, op_name)
