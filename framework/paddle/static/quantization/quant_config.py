"""Operators that Paddle quantises, with the names of their inputs and outputs, and what each engine takes of them."""

from __future__ import annotations

from collections.abc import Sequence

from framework.paddle._kernel.modules import complete as _complete

Names = list[list[str]]  # of inputs, of outputs


def _rows(text: str) -> dict[str, Names]:
    """Lines `Input Input > Output: operator operator …`."""
    rows: dict[str, Names] = {}
    for line in text.strip().splitlines():
        names, _, operators = line.partition(": ")
        inputs, _, outputs = names.partition(">")
        rows.update({one: [inputs.split(), outputs.split()] for one in operators.split()})
    return rows


SUPPORT_WEIGHT_QUANTIZATION_OP_DICT = _rows("""
Input Filter > Output: conv2d depthwise_conv2d conv2d_transpose
X Y > Out: mul matmul matmul_v2
""")
SUPPORT_ACT_QUANTIZATION_OP_DICT = _rows("""
X Y > Out: mul matmul matmul_v2
X > Out: pool2d
X Y > Out: elementwise_add
X > Out: concat softmax argmax transpose
X Y > Out: equal
X > Out: gather
X Y > Out: greater_equal greater_than less_equal less_than
X > Out: mean
X Y > Out: not_equal
X > Out: reshape reshape2 transpose2 nearest_interp trilinear_interp
Input > Out: slice
X > Out: squeeze
X Y > Out: elementwise_sub
X > Out: relu relu6 leaky_relu
X Alpha > Out: prelu
X > Out: tanh swish dropout
X > Y: batch_norm layer_norm
X > Out: sigmoid
X Y > Out: elementwise_mul elementwise_pow
X > Out: hard_swish hard_sigmoid
Input Weight > Hidden: gru lstm
X > Out: pad2d pad3d flatten flatten2 unsqueeze2 flatten_contiguous_range split squeeze2 nearest_interp_v2
X > Out: bilinear_interp bilinear_interp_v2
Input > Out: fill_constant_batch_size_like
X > Out: arg_max abs assign cast clip
PriorBox > OutputBox: box_coder
X > Out: crop cumsum expand_v2 fill_any_like
> Out: fill_constant
X > Out: gelu
X > Y: instance_norm
W Ids > Out: lookup_table lookup_table_v2
X > Norm: norm
X > Out: p_norm pow reduce_mean
X > Y: stack
X > Out Indices: top_k_v2
X Y > Out: logical_and
X > Out: logical_not meshgrid
X ROIs > Out: roi_align
Input > Out: strided_slice
Condition X Y > Out: where
X Grid > Output: grid_sampler
X > Out: tile
X > Y Mean Variance: group_norm
X > Out: reduce_sum square softplus shuffle_channel reduce_max scale
""")
SUPPORT_QUANTIZATION_OP_DICT = {**SUPPORT_WEIGHT_QUANTIZATION_OP_DICT, **SUPPORT_ACT_QUANTIZATION_OP_DICT}


class BaseQuantizer:
    """Operators that are quantised, all that Paddle has or `quantizable_op_type`, and the bits of an integer."""

    _activations: tuple[str, ...] = ("mul", "matmul", "matmul_v2")  # where none are named
    _fixed = False  # whether `_activations` are those of an engine, whatever is named
    _least = -128

    def __init__(self, quantizable_op_type: Sequence[str] = (), quant_bits: int = 8) -> None:
        self._quantizable_op_type, self._quant_bits = list(quantizable_op_type), quant_bits
        self._quant_min, self._quant_max = self._least, 127

    @property
    def weight_quant_operation_types(self) -> list[str]:
        """Operators whose weights are quantised."""
        every = list(SUPPORT_WEIGHT_QUANTIZATION_OP_DICT)
        return (
            [one for one in self._quantizable_op_type if one in every] if self._quantizable_op_type else every
        )

    @property
    def activation_quant_operation_types(self) -> list[str]:
        """Operators whose inputs are quantised."""
        if self._fixed or not self._quantizable_op_type:
            return list(self._activations)
        return [one for one in self._quantizable_op_type if one in SUPPORT_ACT_QUANTIZATION_OP_DICT]

    @property
    def observer_operation_types(self) -> list[str]:
        """Operators of which ranges are measured."""
        return list(SUPPORT_ACT_QUANTIZATION_OP_DICT)


class TensorRTQuantizer(BaseQuantizer):
    """What TensorRT quantises."""

    _fixed = True
    _activations = (
        *("pool2d", "elementwise_add", "elementwise_sub", "elementwise_mul", "elementwise_pow", "concat"),
        *("softmax", "argmax", "mean", "relu", "relu6", "leaky_relu", "tanh", "swish", "softplus", "gelu"),
        *("hard_sigmoid", "hard_swish", "sigmoid", "layer_norm", "matmul_v2", "split", "bilinear_interp"),
        *("nearest_interp", "trilinear_interp", "nearest_interp_v2", "bilinear_interp", "bilinear_interp_v2"),
        *("clip", "pow", "reduce_mean", "reduce_sum", "reduce_max"),
    )


class MKLDNNQuantizer(BaseQuantizer):
    """What oneDNN quantises."""

    _fixed = True
    _activations = (
        *("pool2d", "elementwise_add", "elementwise_mul", "concat", "nearest_interp", "nearest_interp_v2"),
        "split",
    )


class ARMCPUQuantizer(BaseQuantizer):
    """What Paddle Lite quantises."""

    _least = -127


_complete(__name__)
