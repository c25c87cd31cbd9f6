"""Which numbers of a graph are computed in 64 bits: integers that its arithmetic makes of inputs, and its float64.

All else has 32 bits here: inputs are checked when they come in, indices and sizes fit, and what is known before the
program runs is numpy's. A product of two such integers need not fit, nor a float that is cast to an integer, so
arithmetic on int64 and such casts run in 64 bits, and so does every operator that takes their results.

float64 has 64 bits where a graph is run as it is: exporters write it where differences of large numbers are left (the
deviation of a Gaussian process, which float32 gets wrong in the second digit). A layer computes it with 32.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from framework.core.dtypes import fits_int32
from framework.interop.graph.values import Item, Value, as_type, is_known
from framework.interop.programs.program import Node, Program

ARITHMETIC = frozenset(
    """
    Add Sub Mul Div Mod Pow Neg Abs Sum BitShift BitwiseAnd BitwiseOr BitwiseXor CumSum CumProd ReduceSum ReduceProd
    ReduceL1 ReduceSumSquare MatMul Einsum
    elementwise_add elementwise_sub elementwise_mul elementwise_floordiv elementwise_mod elementwise_pow scale pow
    increment sum abs square bitwise_and bitwise_or bitwise_xor bitwise_not cumsum cumprod reduce_sum reduce_prod
    matmul_v2 matmul bmm einsum
    """.split()  # noqa: SIM905
)
_PASSING = frozenset(
    """
    Identity Reshape Squeeze Unsqueeze Flatten Transpose Concat Slice Split Expand Tile Where Min Max Clip Gather
    GatherElements ReduceMin ReduceMax Pad Sign
    assign share_data reshape2 squeeze2 unsqueeze2 flatten_contiguous_range transpose2 concat stack unstack unbind slice
    strided_slice split expand_v2 expand_as_v2 tile where elementwise_min elementwise_max clip gather gather_nd
    index_select take_along_axis reduce_min reduce_max pad3d sign flip roll top_k_v2 argsort kthvalue masked_select
    """.split()  # noqa: SIM905
)
_READING = frozenset(
    """
    Cast Equal Less LessOrEqual Greater GreaterOrEqual ArgMax ArgMin
    cast equal not_equal less_than less_equal greater_than greater_equal arg_max arg_min
    """.split()  # noqa: SIM905
)
# They hand constants on; one beyond 32 bits may be a table or what is written.
_HOLDING = frozenset(
    """
    Where Concat Gather GatherElements GatherND ScatterElements ScatterND OneHot Max Min
    Equal Less LessOrEqual Greater GreaterOrEqual ai.onnx.ml.ArrayFeatureExtractor
    """.split()  # noqa: SIM905
)
_INDEXING = frozenset("Gather GatherElements GatherND gather gather_nd index_select take_along_axis".split())  # noqa: SIM905
_MODEL_DOMAIN = "ai.onnx.ml."  # its operators hold labels, keys and categories as attributes
_INT64, _FLOAT64, _UINT64 = 7, 11, 13  # of TensorProto.DataType
_PADDLE_INT64 = (3, "int64")  # of VarType.Type, and in PIR
_PADDLE_FLOAT64 = (6, "float64")
_VALUE_SLOTS = ("X", "Y", "Input")  # of Paddle's nodes; indices and sizes stand in others


def find_wide_values(program: Program) -> frozenset[str]:
    """The names of the values that are int64 and arithmetic's, or could be operands of it."""
    wide = {spec.name for spec in program.inputs if spec.dtype == "int64"}
    wide |= {n for n, a in program.parameters.items() if isinstance(a, np.ndarray) and a.dtype == np.int64}
    for node in program.walk():
        passes = node.op in ARITHMETIC or node.op in _PASSING
        if (passes and any(name in wide for name in _values(node))) or _makes_int64(node):
            wide.update(node.outputs)
    return frozenset(wide)


def find_double_values(program: Program) -> frozenset[str]:
    """The names of the values that are float64, or made of such."""
    doubles = {spec.name for spec in program.inputs if spec.dtype == "float64"}
    doubles |= {
        n for n, a in program.parameters.items() if isinstance(a, np.ndarray) and a.dtype == np.float64
    }
    for node in program.walk():
        passes = node.op not in _READING and any(name in doubles for name in node.inputs)
        if passes or makes_float64(node):
            doubles.update(node.outputs)
            for signature in node.signatures:  # of the bodies, which are walked after their node
                doubles.update(signature.inputs)
    return frozenset(doubles)


def makes_float64(node: Node) -> bool:
    """Whether the node itself says that its result is float64."""
    if node.input_slots or node.op in ("cast", "fill_constant"):
        return any(node.attrs.get(name) in _PADDLE_FLOAT64 for name in ("out_dtype", "dtype"))
    return any(node.attrs.get(name) == _FLOAT64 for name in ("to", "dtype"))


def runs_in_doubles(node: Node, items: Sequence[Item], doubles: frozenset[str]) -> bool:
    """Whether the node computes with float64, or makes it. Of one with bodies, its nodes decide for themselves."""
    if node.signatures or not doubles:
        return False
    named = (name in doubles for name in node.inputs)
    return makes_float64(node) or any(is_double(item) for item, is_named in zip(items, named) if is_named)


def is_double(item: object) -> bool:
    """Whether it is an array of float64, or a sequence with one."""
    if isinstance(item, list):
        return any(map(is_double, item))
    return isinstance(item, Value | np.ndarray) and item.dtype == np.float64


def as_double_value(item: Item) -> Item:
    """An array of float64 as a value of the program that keeps its 64 bits; others and sequences as they are."""
    return Value.of(as_type(item, np.dtype(np.float64))) if isinstance(item, np.ndarray) else item


def _values(node: Node) -> list[str]:
    """The inputs whose values the outputs have."""
    if node.input_slots:
        slots = zip(node.input_slots, node.inputs, strict=True)
        return [name for slot, name in slots if slot in _VALUE_SLOTS]
    first = node.op in ("Reshape", "Slice", "Expand", "Tile", "Gather", "Pad")
    return list(node.inputs[:1] if first else node.inputs)


def _makes_int64(node: Node) -> bool:
    """Whether the node itself says that its result is int64."""
    if node.op in ("cast", "reduce_sum", "reduce_prod"):
        return node.attrs.get("out_dtype") in _PADDLE_INT64
    return node.op == "Cast" and node.attrs.get("to") == _INT64


def runs_wide(node: Node, items: Sequence[Item], wide: frozenset[str]) -> bool:
    """Whether the node computes in 64 bits. One with bodies does not: its nodes decide for themselves."""
    if node.signatures or is_known(*items):
        return False
    if node.op in ARITHMETIC and any(name in wide for name in node.inputs):
        return True
    if node.op == "Cast" and node.attrs.get("to") in (_INT64, _UINT64) and _is_float(items[0]):
        return True
    if node.op == "reduce_sum" and _is_whole(items[0]):
        return True  # Paddle's sums of integers and booleans are int64
    if _has_large_attribute(node):
        return True
    if node.input_slots and _makes_int64(node) and (node.op != "cast" or _is_float(items[0])):
        return True
    return any(map(_is_wide, items)) or (node.op in _HOLDING and any(map(_is_large, items)))


def _is_wide(item: Item) -> bool:
    if isinstance(item, list):
        return any(map(_is_wide, item))
    return isinstance(item, Value) and item.dtype in (np.int64, np.uint64)


def _is_large(item: Item) -> bool:
    return isinstance(item, np.ndarray) and item.dtype == np.int64 and not fits_int32(item)


def _has_large_attribute(node: Node) -> bool:
    """Whether a node of ai.onnx.ml writes or compares integers that 32 bits do not hold."""
    return node.op.startswith(_MODEL_DOMAIN) and any(
        array.dtype.kind == "i" and not fits_int32(array)
        for name, value in node.attrs.items()
        if "int64" in name or name.endswith(("_ints", "_tensor"))
        for array in (np.asarray(value),)
    )


def _is_float(item: Item) -> bool:
    return isinstance(item, Value) and bool(jnp.issubdtype(item.dtype, jnp.floating))


def _is_whole(item: Item) -> bool:
    return isinstance(item, Value) and item.dtype.kind in "biu"


def widen_items(node: Node, items: Sequence[Item]) -> list[Item]:
    """Integers of 32 bits in 64, where the operands have one type; within `jax.enable_x64`.

    Where indices alone have 64 bits, what they are indices of stays as it is.
    """
    alike = node.op in ARITHMETIC or node.op in _PASSING or node.op in _READING or node.op in _HOLDING
    alike = alike or node.op.startswith(_MODEL_DOMAIN)
    if node.op in _INDEXING:
        alike = _is_wide(items[0]) or _is_large(items[0])
    return [_widen(item) for item in items] if alike or any(map(_is_wide, items[:1])) else list(items)


def _widen(item: Item) -> Item:
    if isinstance(item, list):
        return [_widen(one) for one in item]
    return (
        item.keep(item.data.astype(jnp.int64)) if isinstance(item, Value) and item.dtype == np.int32 else item
    )


def narrow_floats(item: Item) -> Item:
    """Floats of 64 bits, which numbers of numpy make within `jax.enable_x64`, in 32."""
    if isinstance(item, Value) and item.dtype == np.float64:
        return item.keep(item.data.astype(jnp.float32))
    return item
