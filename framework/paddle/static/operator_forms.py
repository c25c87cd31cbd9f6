"""Recorded operations as the operators that Paddle 2.6.2 records for them, for the files that it reads.

Source: paddle/phi/api/yaml/op_compat.yaml (slots and attributes), and the programs that Paddle 2.6.2 records.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.ops.indexing import AT, CUT, FROM
from framework.paddle.static.operator_names import operator_name
from framework.paddle.static.operator_writer import NoOperator, OperatorWriter
from framework.paddle.static.recorded_operations import AssignOp, CallOp
from framework.paddle.static.variable import Op

Form = Callable[[OperatorWriter, CallOp], None]
_END = 2**31 - 1  # of a slice without an end
_FORMS: dict[str, Form] = {}
_ONE_INPUT = (
    "relu sigmoid tanh silu relu6 softsign exp log sqrt rsqrt square abs floor ceil round sign sin cos tan asin acos "
    "atan sinh cosh erf reciprocal log1p log2 log10 expm1 isnan isinf isfinite logical_not assign"
)


def write_operation(writer: OperatorWriter, op: Op) -> None:
    """Append what computes the same as a recorded operation.

    Raises:
        NoOperator: no operators of Paddle are known for it, or not with these settings.
    """
    if isinstance(op, AssignOp) and isinstance(op.inputs[0], Tensor):
        writer.append("assign", {"X": op.inputs[0].name}, {"Out": op.target.name})
        return
    write = _FORMS.get(op.operation) if isinstance(op, CallOp) else None
    if write is None:
        raise NoOperator(op.operation or op.type)
    write(writer, cast("CallOp", op))


def form_of(*names: str) -> Callable[[Form], Form]:
    """Make a function the one that writes the operations of these names."""

    def register(form: Form) -> Form:
        _FORMS.update(dict.fromkeys(names, form))
        return form

    return register


def input_of(op: CallOp, number: int = 0) -> Tensor:
    """An input that has to be a Tensor. Raises: NoOperator: it is something else."""
    tensor = op.inputs[number] if number < len(op.inputs) else None
    if not isinstance(tensor, Tensor):
        raise NoOperator(op.operation)
    return tensor


def output_name(op: CallOp) -> str:
    """The name of the first output."""
    return op.outputs[0].name


def require(condition: bool, op: CallOp) -> None:
    """Raises: NoOperator: the condition does not hold."""
    if not condition:
        raise NoOperator(op.operation)


def write_copy(
    writer: OperatorWriter,
    op: CallOp,
    names: Mapping[str, str] | None = None,
    fixed: Mapping[str, object] | None = None,
    slots: tuple[str, str] = ("X", "Out"),
) -> None:
    """One input, one output; `names` says what Paddle calls the settings that it has."""
    settings = {theirs: op.attrs[ours] for ours, theirs in (names or {}).items()}
    writer.append(
        operator_name(op.operation, op.inputs),
        {slots[0]: input_of(op).name},
        {slots[1]: output_name(op)},
        **settings,
        **(fixed or {}),
    )


for _name in _ONE_INPUT.split():
    _FORMS[_name] = write_copy
_FORMS["leaky_relu"] = partial(write_copy, names={"negative_slope": "alpha"})
_FORMS["elu"] = partial(write_copy, names={"alpha": "alpha"})
_FORMS["selu"] = partial(write_copy, names={"alpha": "alpha", "scale": "scale"})
_FORMS["gelu"] = partial(write_copy, names={"approximate": "approximate"})
_FORMS["swish"] = partial(write_copy, fixed={"beta": 1.0})
_FORMS["mish"] = partial(write_copy, fixed={"threshold": 20.0})
_FORMS["hardswish"] = partial(write_copy, fixed={"threshold": 6.0, "scale": 6.0, "offset": 3.0})
_FORMS["hardsigmoid"] = partial(write_copy, names={"slope": "slope", "offset": "offset"})
_FORMS["pixel_shuffle"] = partial(
    write_copy, names={"upscale_factor": "upscale_factor", "data_format": "data_format"}
)
_FORMS["tile"] = partial(write_copy, names={"repeat_times": "repeat_times"})
_FORMS["shape"] = partial(write_copy, slots=("Input", "Out"))


@form_of("log_sigmoid")
def _log_sigmoid(writer: OperatorWriter, op: CallOp) -> None:
    writer.append("logsigmoid", {"X": input_of(op).name}, {"Out": output_name(op)})


@form_of("softplus")
def _softplus(writer: OperatorWriter, op: CallOp) -> None:
    beta, threshold = (float(cast("float", op.attrs[name])) for name in ("beta", "threshold"))
    write_copy(writer, op, fixed={"beta": beta, "threshold": threshold})


@form_of("softmax", "log_softmax")
def _softmax(writer: OperatorWriter, op: CallOp) -> None:
    require(op.attrs["dtype"] in (None, input_of(op).dtype.name), op)
    write_copy(writer, op, {"axis": "axis"})


# -- of two operands -----------------------------------------------------------------------------------------------


@form_of("add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder", "floor_divide")
def _elementwise(writer: OperatorWriter, op: CallOp) -> None:
    if operator_name(op.operation, op.inputs) == "scale":
        _scale_by_number(writer, op)
        return
    _binary(writer, op, operator_name(op.operation, op.inputs))


def _scale_by_number(writer: OperatorWriter, op: CallOp) -> None:
    """x + 2, 2 - x, x * 3, x / 2 as one operator; of whole numbers only where the result is one."""
    first, second = op.inputs
    tensor, number = (first, second) if isinstance(first, Tensor) else (second, first)
    require(isinstance(tensor, Tensor) and isinstance(number, int | float), op)
    require(op.outputs[0].dtype == tensor.dtype, op)
    value = float(cast("float", number))
    scale, bias = {
        "add": (1.0, value),
        "subtract": (1.0, -value) if tensor is first else (-1.0, value),
        "multiply": (value, 0.0),
        "divide": (1.0 / value if value else float("inf"), 0.0),
    }[op.operation]
    writer.append(
        "scale", {"X": tensor.name}, {"Out": output_name(op)}, scale=scale, bias=bias, bias_after_scale=True
    )


def _binary(writer: OperatorWriter, op: CallOp, op_type: str, kind: types.dtype | None = None) -> None:
    """Operands of one type, as the operators ask for; a number is a variable of its own."""
    tensors = [one for one in op.inputs if isinstance(one, Tensor)]
    numbers = [one for one in op.inputs if isinstance(one, bool | int | float)]
    require(len(op.inputs) == 2 == len(tensors) + len(numbers) and bool(tensors), op)
    kind = kind or op.outputs[0].dtype
    require(not numbers or tensors[0].dtype == kind, op)
    x, y = (
        writer.cast(one, kind, output_name(op))
        if isinstance(one, Tensor)
        else writer.add_constant(cast("float", one), tensors[0], output_name(op))
        for one in op.inputs
    )
    writer.append(op_type, {"X": x, "Y": y}, {"Out": output_name(op)}, axis=-1)


@form_of("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
def _compare(writer: OperatorWriter, op: CallOp) -> None:
    tensors = [one for one in op.inputs if isinstance(one, Tensor)]
    require(bool(tensors) and len({one.dtype for one in tensors}) == 1, op)
    _binary(writer, op, op.operation, tensors[0].dtype)


@form_of("logical_and", "logical_or", "logical_xor")
def _logical(writer: OperatorWriter, op: CallOp) -> None:
    _binary(writer, op, op.operation, input_of(op).dtype)


@form_of("pow")
def _pow(writer: OperatorWriter, op: CallOp) -> None:
    exponent = op.inputs[1]
    if isinstance(exponent, Tensor):
        _binary(writer, op, "elementwise_pow")
        return
    require(isinstance(exponent, int | float), op)
    writer.append(
        "pow", {"X": input_of(op).name}, {"Out": output_name(op)}, factor=float(cast("float", exponent))
    )


@form_of("neg")
def _neg(writer: OperatorWriter, op: CallOp) -> None:
    writer.append(
        "scale",
        {"X": input_of(op).name},
        {"Out": output_name(op)},
        scale=-1.0,
        bias=0.0,
        bias_after_scale=True,
    )


@form_of("scale")
def _scale(writer: OperatorWriter, op: CallOp) -> None:
    scale, bias = op.inputs[1:3]
    numbers = isinstance(scale, int | float) and isinstance(bias, int | float)
    require(numbers and op.attrs["act"] is None, op)
    writer.append(
        "scale",
        {"X": input_of(op).name},
        {"Out": output_name(op)},
        scale=float(cast("float", scale)),
        bias=float(cast("float", bias)),
        bias_after_scale=bool(op.attrs["bias_after_scale"]),
    )


@form_of("matmul", "mm")
def _matmul(writer: OperatorWriter, op: CallOp) -> None:
    x, y = input_of(op), input_of(op, 1)
    if op.type == "mul":  # of fully connected layers
        writer.append(
            "mul",
            {"X": x.name, "Y": y.name},
            {"Out": output_name(op)},
            x_num_col_dims=len(x.shape) - 1,
            y_num_col_dims=1,
        )
        return
    writer.append(
        "matmul_v2",
        {"X": x.name, "Y": y.name},
        {"Out": output_name(op)},
        trans_x=bool(op.attrs.get("transpose_x")),
        trans_y=bool(op.attrs.get("transpose_y")),
    )


@form_of("bmm")
def _bmm(writer: OperatorWriter, op: CallOp) -> None:
    writer.append("bmm", {"X": input_of(op).name, "Y": input_of(op, 1).name}, {"Out": output_name(op)})


@form_of("where")
def _where(writer: OperatorWriter, op: CallOp) -> None:
    condition, x, y = (input_of(op, number) for number in range(3))
    require(x.dtype == y.dtype and x.shape == y.shape == condition.shape, op)
    writer.append("where", {"Condition": condition.name, "X": x.name, "Y": y.name}, {"Out": output_name(op)})


@form_of("clip")
def _clip(writer: OperatorWriter, op: CallOp) -> None:
    low, high = (3.4e38 * sign if one is None else one for one, sign in zip(op.inputs[1:3], (-1, 1)))
    require(all(isinstance(one, int | float) for one in (low, high)), op)
    writer.append("clip", {"X": input_of(op).name}, {"Out": output_name(op)}, min=float(low), max=float(high))  # type: ignore[arg-type]


# -- reductions and choices ----------------------------------------------------------------------------------------


@form_of("mean", "sum", "max", "min", "prod", "all", "any")
def _reduce(writer: OperatorWriter, op: CallOp) -> None:
    axis = op.attrs["axis"]
    require(op.attrs.get("dtype") is None, op)
    axes = [] if axis is None else list(cast("Sequence[int]", axis if isinstance(axis, tuple) else (axis,)))
    x = input_of(op)
    summed = writer.cast(x, op.outputs[0].dtype, output_name(op)) if op.operation == "sum" else x.name
    writer.append(
        f"reduce_{op.operation}",
        {"X": summed},
        {"Out": output_name(op)},
        dim=axes,
        keep_dim=bool(op.attrs["keepdim"]),
        reduce_all=not axes,
        in_dtype=-1,
        out_dtype=-1,
    )


@form_of("argmax", "argmin")
def _arg(writer: OperatorWriter, op: CallOp) -> None:
    axis = op.attrs["axis"]
    writer.append(
        operator_name(op.operation, op.inputs),
        {"X": input_of(op).name},
        {"Out": output_name(op)},
        axis=0 if axis is None else axis,
        flatten=axis is None,
        keepdims=bool(op.attrs["keepdim"]),
        dtype=int(op.outputs[0].dtype),
    )


@form_of("topk")
def _topk(writer: OperatorWriter, op: CallOp) -> None:
    axis = op.attrs["axis"]
    writer.append(
        "top_k_v2",
        {"X": input_of(op).name},
        {"Out": output_name(op), "Indices": op.outputs[1].name},
        k=op.attrs["k"],
        axis=-1 if axis is None else axis,
        largest=op.attrs["largest"],
        sorted=True,
    )


@form_of("argsort")
def _argsort(writer: OperatorWriter, op: CallOp) -> None:
    x = input_of(op)
    ordered = writer.add_variable(output_name(op), "Values", x.shape, x.dtype)
    writer.append(
        "argsort",
        {"X": x.name},
        {"Out": ordered, "Indices": output_name(op)},
        axis=op.attrs["axis"],
        descending=op.attrs["descending"],
    )


@form_of("accuracy")
def _accuracy(writer: OperatorWriter, op: CallOp) -> None:
    x, label = input_of(op), input_of(op, 1)
    rows, k = x.shape[0], cast("int", op.attrs["k"])
    top = writer.add_variable(output_name(op), "Top", [rows, k], x.dtype)
    indices = writer.add_variable(output_name(op), "Indices", [rows, k], types.int64)
    writer.append(
        "top_k_v2",
        {"X": x.name},
        {"Out": top, "Indices": indices},
        k=k,
        axis=-1,
        largest=True,
        sorted=True,
    )
    counts = {
        name: writer.add_variable(output_name(op), name, [], types.int32) for name in ("Correct", "Total")
    }
    writer.append(
        "accuracy",
        {"Out": top, "Indices": indices, "Label": label.name},
        {"Accuracy": output_name(op), **counts},
    )


@form_of("cumsum")
def _cumsum(writer: OperatorWriter, op: CallOp) -> None:
    axis = op.attrs["axis"]
    require(op.attrs.get("dtype") is None, op)
    writer.append(
        "cumsum",
        {"X": input_of(op).name},
        {"Out": output_name(op)},
        axis=-1 if axis is None else axis,
        flatten=axis is None,
        exclusive=False,
        reverse=False,
    )


# -- shapes --------------------------------------------------------------------------------------------------------


def _with_old_shape(writer: OperatorWriter, op: CallOp, op_type: str, **attributes: object) -> None:
    """Operators that also say which shape there was."""
    x = input_of(op)
    before = writer.add_variable(output_name(op), "XShape", [0, *x.shape], x.dtype)
    writer.append(op_type, {"X": x.name}, {"Out": output_name(op), "XShape": before}, **attributes)


@form_of("reshape")
def _reshape(writer: OperatorWriter, op: CallOp) -> None:
    sizes = list(cast("Sequence[int]", op.attrs["shape"]))
    shape = op.outputs[0].shape
    require(all(size in (free, -1, 0) for size, free in zip(sizes, shape, strict=True)), op)
    _with_old_shape(writer, op, "reshape2", shape=sizes)


@form_of("transpose")
def _transpose(writer: OperatorWriter, op: CallOp) -> None:
    _with_old_shape(writer, op, "transpose2", axis=op.attrs["perm"])


@form_of("flatten")
def _flatten(writer: OperatorWriter, op: CallOp) -> None:
    start, stop = op.attrs["start_axis"], op.attrs["stop_axis"]
    _with_old_shape(writer, op, "flatten_contiguous_range", start_axis=start, stop_axis=stop)


@form_of("squeeze", "unsqueeze")
def _squeeze(writer: OperatorWriter, op: CallOp) -> None:
    axis = op.attrs["axis"]
    axes = [] if axis is None else axis if isinstance(axis, tuple) else [axis]
    _with_old_shape(writer, op, f"{op.operation}2", axes=axes)


@form_of("concat")
def _concat(writer: OperatorWriter, op: CallOp) -> None:
    kind = op.outputs[0].dtype
    names = [writer.cast(input_of(op, number), kind, output_name(op)) for number in range(len(op.inputs))]
    writer.append("concat", {"X": names}, {"Out": output_name(op)}, axis=op.attrs["axis"])


@form_of("stack")
def _stack(writer: OperatorWriter, op: CallOp) -> None:
    names = [input_of(op, number).name for number in range(len(op.inputs))]
    writer.append("stack", {"X": names}, {"Y": output_name(op)}, axis=op.attrs["axis"])


@form_of("split")
def _split(writer: OperatorWriter, op: CallOp) -> None:
    x, axis = input_of(op), cast("int", op.attrs["axis"])
    size = x.shape[axis]
    require(size != -1, op)
    bounds = [0, *cast("Sequence[int]", op.attrs["ends"]), size]
    sections = [end - start for start, end in itertools.pairwise(bounds)]
    names = [one.name for one in op.outputs]
    writer.append("split", {"X": x.name}, {"Out": names}, axis=axis, num=0, sections=sections)


@form_of("expand")
def _expand(writer: OperatorWriter, op: CallOp) -> None:
    sizes = list(cast("Sequence[int]", op.attrs["shape"]))
    shape = op.outputs[0].shape
    require(len(sizes) == len(shape), op)
    sizes = [-1 if free == -1 else size for size, free in zip(sizes, shape)]
    write_copy(writer, op, fixed={"shape": sizes})


@form_of("getitem")
def _slice(writer: OperatorWriter, op: CallOp) -> None:
    """Positions and slices that are numbers."""
    x = input_of(op)
    numbers = iter(op.inputs[1:])
    axes, starts, ends, steps, dropped = [], [], [], [], []
    for axis, (kind, *bounds) in enumerate(cast("Sequence[tuple[Any, ...]]", op.attrs["index"])):
        if kind == CUT:
            start, end, step = bounds
            if (start, end, step) == (None, None, None):
                continue
            step = 1 if step is None else step
            require(step > 0, op)
            start, end = 0 if start is None else start, _END if end is None else end
        else:
            start, step = next(numbers, None), 1
            require(kind in (AT, FROM) and isinstance(start, int | np.integer), op)
            start = int(cast("int", start))
            end = start + (bounds[0] if kind == FROM else 1) or _END  # x[-1] goes to the end
            if kind == AT:
                dropped.append(axis)
        axes.append(axis)
        starts.append(start)
        ends.append(end)
        steps.append(step)
    strides = {"strides": steps} if any(step != 1 for step in steps) else {}
    writer.append(
        "strided_slice" if strides else "slice",
        {"Input": x.name},
        {"Out": output_name(op)},
        axes=axes,
        starts=starts,
        ends=ends,
        decrease_axis=dropped,
        infer_flags=[1] * len(axes),
        **strides,
    )


@form_of("cast")
def _cast(writer: OperatorWriter, op: CallOp) -> None:
    x, kind = input_of(op), op.outputs[0].dtype
    writer.append("cast", {"X": x.name}, {"Out": output_name(op)}, in_dtype=int(x.dtype), out_dtype=int(kind))


@form_of("spread")
def _full(writer: OperatorWriter, op: CallOp) -> None:
    out, value = op.outputs[0], op.inputs[0]
    require(isinstance(value, int | float) and -1 not in out.shape, op)
    writer.append(
        "fill_constant",
        {},
        {"Out": out.name},
        shape=out.shape,
        dtype=int(out.dtype),
        value=float(cast("float", value)),
        str_value=repr(value),
        force_cpu=False,
    )


# -- tables --------------------------------------------------------------------------------------------------------


@form_of("embedding")
def _embedding(writer: OperatorWriter, op: CallOp) -> None:
    padding = op.attrs["padding_idx"]
    writer.append(
        "lookup_table_v2",
        {"Ids": input_of(op).name, "W": input_of(op, 1).name},
        {"Out": output_name(op)},
        padding_idx=-1 if padding is None else padding,
        is_sparse=False,
        is_distributed=False,
    )


@form_of("gather")
def _gather(writer: OperatorWriter, op: CallOp) -> None:
    axis = op.attrs["axis"]
    writer.append(
        "gather",
        {"X": input_of(op).name, "Index": input_of(op, 1).name},
        {"Out": output_name(op)},
        axis=0 if axis is None else axis,
    )


@form_of("one_hot")
def _one_hot(writer: OperatorWriter, op: CallOp) -> None:
    depth, kind = op.attrs["num_classes"], int(op.outputs[0].dtype)
    write_copy(writer, op, fixed={"depth": depth, "dtype": kind, "allow_out_of_range": False})
