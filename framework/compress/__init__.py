"""Post-training quantisation of ONNX models to int8: with QuantizeLinear and DequantizeLinear around the layers.

    layers = find_layers(model)
    ranges = calibrate(model, feeds, quantized_tensors(model, layers))
    small = insert_qdq(model, layers, ranges)

layers.py finds what is quantised, ranges.py chooses the range of a tensor, calibrate.py runs the model on examples,
insert.py writes the nodes, search.py leaves layers in float32 until a score holds, quantizer.py does it all for a file.
Source: Krishnamoorthi 2018, https://arxiv.org/abs/1806.08342; Nagel et al. 2021, https://arxiv.org/abs/2106.08295
"""

from framework.compress.calibrate import calibrate as calibrate
from framework.compress.insert import insert_qdq as insert_qdq
from framework.compress.layers import QuantizableLayer as QuantizableLayer
from framework.compress.layers import find_layers as find_layers
from framework.compress.layers import quantized_tensors as quantized_tensors
from framework.compress.quantizer import QuantizedModel as QuantizedModel
from framework.compress.quantizer import Quantizer as Quantizer
from framework.compress.ranges import Range as Range
from framework.compress.search import layer_noise as layer_noise
from framework.compress.search import leave_in_float as leave_in_float
