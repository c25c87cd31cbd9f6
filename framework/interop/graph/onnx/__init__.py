"""The operators of ONNX, one file a theme; `OPERATORS` is the table of all."""

from framework.interop.graph.onnx import (
    attention,
    control,
    conv,
    elementwise,
    index,
    linear,
    microsoft,
    norm,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    shapes,
    signal,
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
    *(signal, microsoft),
)
OPERATORS: Table = {name: entry for module in MODULES for name, entry in module.OPERATORS.items()}
NEWEST = {"": 28, "com.microsoft": 1}
"""The newest version of each operator set that is understood."""
