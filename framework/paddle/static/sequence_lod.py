"""paddle.static.nn.sequence_…: layers of sequences of different lengths, which lie one after the other in one array.

The lengths come with what an Executor is fed (a LoDTensor); they are numbers while a program is traced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from framework.paddle._kernel.checked import checked
from framework.paddle._kernel.errors import ModeError
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional
from framework.paddle.nn.layer import new_parameter
from framework.paddle.static.program import Variable, default_main_program, in_dynamic_mode
from framework.paddle.utils import unique_name

if TYPE_CHECKING:
    from framework.paddle.nn.param_attr import AttrLike


def _output(
    op_type: str,
    inputs: Mapping[str, Tensor | Sequence[Tensor]],
    shape: Sequence[int],
    dtype: object,
    attrs: Mapping[str, object] | None = None,
    slot: str = "Out",
    others: Mapping[str, tuple[Sequence[int], str]] | None = None,
    lod_level: int = 1,
) -> tuple[Variable, ...]:
    """Append an operator whose first slot of inputs has the lengths; returns its outputs.

    Args:
        shape: Of the output in `slot`; -1 is a size that the lengths say.
        others: Further outputs: their shapes and data types, by slot.
        lod_level: How many levels of lengths the output has.
    """
    if in_dynamic_mode():
        raise ModeError(
            "layers of sequences with lengths are for static mode",
            where=f"paddle.static.nn.{op_type}",
            fix="call paddle.enable_static() before it, or pad the sequences and use paddle.nn",
        )
    block = default_main_program().current_block()
    declared = {slot: (shape, dtype), **(others or {})}
    outputs = {
        name: block.create_var(unique_name.generate(f"{op_type}.tmp"), sizes, kind)  # type: ignore[arg-type]
        for name, (sizes, kind) in declared.items()
    }
    outputs[slot].lod_level = lod_level
    for name in others or {}:
        outputs[name].stop_gradient = True
    block.append_op(op_type, inputs, outputs, attrs)
    return tuple(outputs.values())


def _rows_of(x: Tensor, *trailing: int) -> list[int]:
    """The shape of as many rows as lengths say, of the sizes of x unless others are given."""
    return [-1, *(trailing or x.shape[1:])]


def _level(x: Tensor) -> int:
    return x.lod_level if isinstance(x, Variable) else 0


@checked
def sequence_conv(
    input: Tensor,
    num_filters: int,
    filter_size: int = 3,
    filter_stride: int = 1,
    padding: bool = True,
    padding_start: int | None = None,
    bias_attr: AttrLike = None,
    param_attr: AttrLike = None,
    act: str | None = None,
    name: str | None = None,
) -> Tensor:
    """A convolution over the rows of each sequence [rows, C], zeros beyond its ends: [rows, num_filters]."""
    owner = unique_name.generate(name or "sequence_conv")
    dtype = input.dtype
    weight = new_parameter(owner, [filter_size * input.shape[1], num_filters], param_attr, dtype, False, None)
    settings = {
        "contextStride": filter_stride,
        "contextStart": -(filter_size // 2) if padding_start is None else padding_start,
        "contextLength": filter_size,
    }
    assert weight is not None
    (out,) = _output(
        "sequence_conv", {"X": input, "Filter": weight}, _rows_of(input, num_filters), dtype, settings
    )
    bias = new_parameter(owner, [num_filters], bias_attr, dtype, True, None)
    result = out if bias is None else out + bias
    return result if act is None else getattr(functional, act)(result)


@checked
def sequence_softmax(input: Tensor, use_cudnn: bool = False, name: str | None = None) -> Tensor:
    """The softmax of the numbers of each sequence [rows] or [rows, 1]."""
    return _output("sequence_softmax", {"X": input}, input.shape, input.dtype, lod_level=_level(input))[0]


@checked
def sequence_pool(input: Tensor, pool_type: str, is_test: bool = False, pad_value: float = 0.0) -> Tensor:
    """One row for each sequence: its average, sum, sqrt (the sum by the root of the length), max, first or last row;
    `pad_value` where it is empty."""
    settings = {"pooltype": pool_type.upper(), "is_test": is_test, "pad_value": pad_value}
    level = max(_level(input) - 1, 0)
    return _output("sequence_pool", {"X": input}, _rows_of(input), input.dtype, settings, lod_level=level)[0]


@checked
def sequence_first_step(input: Tensor) -> Tensor:
    """The first row of each sequence."""
    return sequence_pool(input, "first")


@checked
def sequence_last_step(input: Tensor) -> Tensor:
    """The last row of each sequence."""
    return sequence_pool(input, "last")


@checked
def sequence_concat(input: list[Tensor], name: str | None = None) -> Tensor:
    """The first sequences of all inputs one behind another, then the second ones …

    Raises:
        TypeError: `input` is no list of Tensors of int64, float32 or float64.
    """
    for index, one in enumerate(input):
        if not isinstance(one, Tensor) or one.dtype.name not in ("int64", "float32", "float64"):
            raise TypeError(f"sequence_concat: input[{index}] is a Tensor of int64, float32 or float64")
    return _output("sequence_concat", {"X": input}, _rows_of(input[0]), input[0].dtype)[0]


@checked
def sequence_slice(input: Tensor, offset: Tensor, length: Tensor, name: str | None = None) -> Tensor:
    """Of each sequence so many rows from its offset on; both are [sequences, 1]."""
    offset.stop_gradient = length.stop_gradient = True
    inputs = {"X": input, "Offset": offset, "Length": length}
    return _output("sequence_slice", inputs, _rows_of(input), input.dtype)[0]


@checked
def sequence_expand(x: Tensor, y: Tensor, ref_level: int = -1, name: str | None = None) -> Tensor:
    """Each sequence (or row) of x as often as level `ref_level` of the lengths of y says."""
    settings = {"ref_level": ref_level}
    return _output("sequence_expand", {"X": x, "Y": y}, _rows_of(x), x.dtype, settings, lod_level=_level(x))[
        0
    ]


@checked
def sequence_expand_as(x: Tensor, y: Tensor, name: str | None = None) -> Tensor:
    """Row i of x as often as sequence i of y is long."""
    return _output("sequence_expand_as", {"X": x, "Y": y}, _rows_of(x), x.dtype)[0]


@checked
def sequence_pad(
    x: Tensor, pad_value: Tensor, maxlen: int | None = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """(The sequences as [sequences, maxlen, ...] with `pad_value` behind their ends, their lengths). Without `maxlen`
    the longest sequence gives it."""
    pad_value.stop_gradient = True
    size = -1 if maxlen is None else maxlen
    out, length = _output(
        "sequence_pad",
        {"X": x, "PadValue": pad_value},
        [-1, size, *x.shape[1:]],
        x.dtype,
        {"padded_length": size},
        others={"Length": ([-1], "int64")},
        lod_level=0,
    )
    return out, length


@checked
def sequence_unpad(x: Tensor, length: Tensor, name: str | None = None) -> Tensor:
    """The inverse of `sequence_pad`."""
    length.stop_gradient = True
    trailing = x.shape[2:] if x.ndim > 2 else [1]
    return _output("sequence_unpad", {"X": x, "Length": length}, _rows_of(x, *trailing), x.dtype)[0]


@checked
def sequence_reshape(input: Tensor, new_dim: int) -> Tensor:
    """Rows of `new_dim` numbers; the lengths change with them."""
    shape = _rows_of(input, new_dim)
    return _output("sequence_reshape", {"X": input}, shape, input.dtype, {"new_dim": new_dim})[0]


@checked
def sequence_scatter(input: Tensor, index: Tensor, updates: Tensor, name: str | None = None) -> Tensor:
    """input[i, index] + updates, where sequence i of `index` and `updates` belongs to row i."""
    inputs = {"X": input, "Ids": index, "Updates": updates}
    return _output("sequence_scatter", inputs, input.shape, input.dtype, lod_level=_level(input))[0]


@checked
def sequence_enumerate(input: Tensor, win_size: int, pad_value: int = 0, name: str | None = None) -> Tensor:
    """The next `win_size` numbers of each row [rows, win_size], `pad_value` behind the end of a sequence."""
    settings = {"win_size": win_size, "pad_value": pad_value}
    return _output("sequence_enumerate", {"X": input}, _rows_of(input, win_size), input.dtype, settings)[0]


@checked
def sequence_reverse(x: Tensor, name: str | None = None) -> Tensor:
    """The rows of each sequence in the opposite order."""
    return _output("sequence_reverse", {"X": x}, x.shape, x.dtype, slot="Y")[0]
