"""Programs as ONNX files: an exporter over the jaxpr of a pure function.

    model = export_onnx(fn, weights, {"image": TensorSpec(("n", "32*h", "32*w", 3), "uint8")})
    write_onnx(model, "model.onnx")
    export_layer(layer, {"image": TensorSpec(("n", 224, 224, 3))}, "model.onnx")     # compared with the layer

graph.py holds nodes and sizes, values.py the order of axes, convert.py walks the jaxpr, rules/ has one rule a primitive
or a function that is one operator, optimize.py simplifies, check.py compares with the program in ONNX Runtime.
"""

from framework.export.formats.onnx.layer import export_layer as export_layer
from framework.export.formats.onnx.model import export_onnx as export_onnx
from framework.export.formats.onnx.model import write_onnx as write_onnx
