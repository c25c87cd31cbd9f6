"""The operators of ONNX, one file a theme; `OPERATORS` is the table of all."""

from framework.interop.graph.onnx import (
    attention,
    control,
    conv,
    elementwise,
    index,
    linear,
    microsoft,
    microsoft_attention,
    microsoft_quantize,
    ml,
    ml_trees,
    norm,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    shapes,
    signal,
    text,
)
from framework.interop.graph.operator import Table

MODULES = (
    *(
        elementwise,
        shapes,
        reduce,
        linear,
        conv,
        pool,
        norm,
        resize,
        index,
        control,
        recurrent,
        quantize,
        attention,
    ),
    *(signal, microsoft, microsoft_attention, microsoft_quantize, ml, ml_trees, text),
)
OPERATORS: Table = {name: entry for module in MODULES for name, entry in module.OPERATORS.items()}
NEWEST = {"": 28, "com.microsoft": 1, "ai.onnx.ml": 5}
"""The newest version of each operator set that is understood."""
