"""paddle.base.data_feeder: checks of arguments that packages call in static mode, the names of data types, and batches
for an Executor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.lod_tensor import LoDTensor, flatten
from framework.paddle.static.program import Program, Variable, default_main_program, in_dynamic_mode

_PADDLE_DTYPE_2_NUMPY_DTYPE = {
    kind: "uint16" if kind.name == "bfloat16" else kind.name for kind in types.ALL
}  # packages of Paddle read it


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

    if in_dynamic_mode():
        return
    if isinstance(shape, Tensor):
        check_dtype(shape.dtype, "shape", expected_tensor_dtype, op_name)
        return
    check_type(shape, "shape", expected_shape_type, op_name)
    for item in shape if isinstance(shape, list | tuple) else ():
        if not isinstance(item, Tensor):
            check_type(item, "element of shape", expected_element_type, op_name)


class DataFeeder:
    """Makes what an Executor is fed with from samples: the fields of a sample become entries of batches.

    Args:
        feed_list: The variables, or their names in `program`, in the order of a sample's fields.
        place: Where the batches go; the Executor places them.
        program: Of the names; None is the default main program.

    Raises:
        ValueError: a name is of no variable. TypeError: `feed_list` holds something else.
    """

    def __init__(
        self, feed_list: Sequence[Variable | str], place: object, program: Program | None = None
    ) -> None:
        block = (program or default_main_program()).global_block()
        self.feed_list: list[Variable] = []
        for one in feed_list:
            variable = block.var(one) if isinstance(one, str) else one
            if not isinstance(variable, Variable):
                raise TypeError(f"Feed list should contain a list of variable, but received {type(one)}.")
            self.feed_list.append(variable)
        self.feed_names = [one.name for one in self.feed_list]
        self.place = place

    def feed(self, iterable: Iterable[Sequence[object]]) -> dict[str, LoDTensor]:
        """{name: the field of all samples [N, ...]}, in the variable's data type. What comes flat gets its shape.
        Fields of a variable with a `lod_level` are nested sequences, which go one behind another.

        Raises:
            AssertionError: a sample has another number of fields. ValueError: a field does not fit its variable.
        """
        columns: list[list[object]] = [[] for _ in self.feed_list]
        for sample in iterable:
            assert len(sample) == len(columns), (
                f"The number of fields in data ({len(sample)}) does not match len(feed_list) ({len(columns)})"
            )
            for column, field in zip(columns, sample, strict=True):
                column.append(field)
        return {
            name: _lod_tensor(column, variable)
            for name, column, variable in zip(self.feed_names, columns, self.feed_list, strict=True)
        }


def _lod_tensor(column: list[object], variable: Variable) -> LoDTensor:
    rows, lengths = flatten(column, variable.lod_level)
    result = LoDTensor()
    result.set(_fit(rows, variable), None)
    result.set_recursive_sequence_lengths(lengths)
    return result


def _fit(column: list[object], variable: Variable) -> np.ndarray:
    """A batch in the shape of its variable where that has another number of axes; the Executor compares sizes. Where
    more than one size is free it stays as it is.
    """
    shape = variable.shape
    try:
        batch = np.array(column, types.to_numpy(variable.dtype))
    except ValueError as error:
        raise ValueError(
            f"{variable.name}: the samples of a batch differ in shape; pad them to one ({error})"
        ) from None
    if batch.ndim == len(shape) or sum(size < 0 for size in shape) > 1:
        return batch
    try:
        return batch.reshape(shape)
    except ValueError:
        raise ValueError(
            f"Reshape error. What is defined in data layer is {tuple(shape)}, but receive {batch.shape}"
        ) from None
