"""PIR programs in the form of ProgramDesc: the same operators under other names, with positions instead of slots."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from framework.interop.programs.program import Node, Program


@dataclass(frozen=True)
class Form:
    """An operator's name in ProgramDesc, the slots of its operands and results by position, other names of attributes,
    and attributes that it gets besides."""

    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...] = ("Out",)
    attrs: dict[str, str] = field(default_factory=dict)
    extra: dict[str, object] = field(default_factory=dict)


def _form(
    op: str, inputs: str, outputs: str = "Out", extra: dict[str, object] | None = None, **attrs: str
) -> Form:
    return Form(op, tuple(inputs.split()), tuple(outputs.split()), attrs, extra or {})


_X = ("X",)
_SAME = """
    relu relu6 sigmoid tanh exp expm1 log log2 log10 log1p sqrt rsqrt square floor ceil round sin
    cos tan asin acos atan sinh cosh erf reciprocal softsign silu logsigmoid tanh_shrink abs sign
    celu mish swish softplus elu selu gelu softmax log_softmax logical_not bitwise_not pixel_shuffle
    flip argsort logsumexp
""".split()  # noqa: SIM905
_PAIRS = {
    "add": "elementwise_add",
    "subtract": "elementwise_sub",
    "multiply": "elementwise_mul",
    "divide": "elementwise_div",
    "maximum": "elementwise_max",
    "minimum": "elementwise_min",
    "elementwise_pow": "elementwise_pow",
    "floor_divide": "elementwise_floordiv",
    "remainder": "elementwise_mod",
    **{
        name: name
        for name in ("equal", "not_equal", "greater_than", "greater_equal", "less_than", "less_equal")
    },
    **{name: name for name in ("logical_and", "logical_or", "logical_xor")},
    **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
}
FORMS: dict[str, Form] = {
    **{name: Form(name, _X) for name in _SAME},
    **{name: Form(op, ("X", "Y")) for name, op in _PAIRS.items()},
    **{
        name: _form(name.rstrip("_"), "X")
        for name in ("relu_", "sigmoid_", "tanh_", "assign_", "share_data_")
    },
    **{
        f"{mode}_interp": _form(f"{mode}_interp_v2", "X OutSize SizeTensor Scale", data_format="data_layout")
        for mode in ("nearest", "bilinear", "bicubic", "linear", "trilinear")
    },
    "argsort": _form("argsort", "X", "Out Indices"),
    "softmax_": _form("softmax", "X"),
    "logsumexp": _form("logsumexp", "X", axis="dim", keepdim="keep_dim"),
    "isnan": _form("isnan_v2", "X"),
    "isinf": _form("isinf_v2", "X"),
    "isfinite": _form("isfinite_v2", "X"),
    "hardswish": _form("hard_swish", "X"),
    "hardsigmoid": _form("hard_sigmoid", "X"),
    "hardshrink": _form("hard_shrink", "X"),
    "softshrink": _form("softshrink", "X", threshold="lambda"),
    "hardtanh": _form("hard_tanh", "X"),
    "leaky_relu": _form("leaky_relu", "X", negative_slope="alpha"),
    "prelu": _form("prelu", "X Alpha"),
    "conv2d": _form("conv2d", "Input Filter", "Output"),
    "depthwise_conv2d": _form("depthwise_conv2d", "Input Filter", "Output"),
    "conv3d": _form("conv3d", "Input Filter", "Output"),
    "conv2d_transpose": _form("conv2d_transpose", "Input Filter OutputSizeTensor", "Output"),
    "depthwise_conv2d_transpose": _form(
        "depthwise_conv2d_transpose", "Input Filter OutputSizeTensor", "Output"
    ),
    "pool2d": _form("pool2d", "X KernelSize"),
    "batch_norm": _form("batch_norm", "X Mean Variance Scale Bias", "Y", data_format="data_layout"),
    "batch_norm_": _form("batch_norm", "X Mean Variance Scale Bias", "Y", data_format="data_layout"),
    "sync_batch_norm_": _form("batch_norm", "X Mean Variance Scale Bias", "Y", data_format="data_layout"),
    "layer_norm": _form("layer_norm", "X Scale Bias", "Y"),
    "group_norm": _form("group_norm", "X Scale Bias", "Y", data_format="data_layout"),
    "instance_norm": _form("instance_norm", "X Scale Bias", "Y"),
    "frobenius_norm": _form("frobenius_norm", "X", axis="dim"),
    "p_norm": _form("p_norm", "X"),
    "matmul": _form("matmul_v2", "X Y", transpose_x="trans_x", transpose_y="trans_y"),
    "bmm": _form("bmm", "X Y"),
    "addmm": _form("addmm", "Input X Y", alpha="Alpha", beta="Beta"),
    "embedding": _form("lookup_table_v2", "Ids W"),
    "rnn": _form("rnn", "Input PreState WeightList SequenceLength", "Out DropoutState State Reserve"),
    "dropout": _form("dropout", "X Seed Rate", "Out Mask", mode="dropout_implementation"),
    "scale": _form("scale", "X ScaleTensor"),
    "scale_": _form("scale", "X ScaleTensor"),
    "pow": _form("pow", "X", y="factor"),
    "clip": _form("clip", "X Min Max"),
    "cast": _form("cast", "X", dtype="out_dtype"),
    "cast_": _form("cast", "X", dtype="out_dtype"),
    "where": _form("where", "Condition X Y"),
    "assign": _form("assign", "X"),
    "shape": _form("shape", "Input"),
    "shape64": _form("shape", "Input"),
    "numel": _form("size", "Input"),
    "reshape": _form("reshape2", "X Shape", "Out XShape"),
    "reshape_": _form("reshape2", "X Shape", "Out XShape"),
    "transpose": _form("transpose2", "X", perm="axis"),
    "squeeze": _form("squeeze2", "X AxesTensor", "Out XShape"),
    "squeeze_": _form("squeeze2", "X AxesTensor", "Out XShape"),
    "unsqueeze": _form("unsqueeze2", "X AxesTensor", "Out XShape"),
    "unsqueeze_": _form("unsqueeze2", "X AxesTensor", "Out XShape"),
    "flatten": _form("flatten_contiguous_range", "X", "Out XShape"),
    "flatten_": _form("flatten_contiguous_range", "X", "Out XShape"),
    "concat": _form("concat", "X AxisTensor"),
    "split": _form("split", "X SectionsTensorList AxisTensor"),
    "split_with_num": _form("split", "X AxisTensor"),
    "unbind": _form("unbind", "X"),
    "unstack": _form("unstack", "X", "Y"),
    "stack": _form("stack", "X", "Y"),
    "slice": _form("slice", "Input StartsTensor EndsTensor"),
    "strided_slice": _form("strided_slice", "Input StartsTensor EndsTensor StridesTensor"),
    "expand": _form("expand_v2", "X Shape"),
    "expand_as": _form("expand_as_v2", "X Y"),
    "tile": _form("tile", "X RepeatTimes"),
    "full": _form("fill_constant", ""),
    "full_int_array": _form("assign_value", "", value="values"),
    "full_with_tensor": _form("fill_constant", "ValueTensor ShapeTensor"),
    "full_like": _form("fill_any_like", "X ValueTensor"),
    "full_batch_size_like": _form("fill_constant_batch_size_like", "Input"),
    "assign_value": _form("assign_value", ""),
    "assign_value_": _form("assign_value", "Output"),
    "arange": _form("range", "Start End Step"),
    "linspace": _form("linspace", "Start Stop Num"),
    "eye": _form("eye", ""),
    "tril": _form("tril_triu", "X", extra={"lower": True}),
    "triu": _form("tril_triu", "X", extra={"lower": False}),
    "meshgrid": _form("meshgrid", "X"),
    "roll": _form("roll", "X ShiftsTensor"),
    "gather": _form("gather", "X Index Axis"),
    "gather_nd": _form("gather_nd", "X Index"),
    "index_select": _form("index_select", "X Index", axis="dim"),
    "take_along_axis": _form("take_along_axis", "Input Index", "Result", axis="Axis"),
    "scatter": _form("scatter", "X Ids Updates"),
    "scatter_nd_add": _form("scatter_nd_add", "X Index Updates"),
    "nonzero": _form("where_index", "Condition"),
    "one_hot": _form("one_hot_v2", "X depth_tensor"),
    "pad": _form("pad", "X"),
    "pad3d": _form("pad3d", "X Paddings"),
    "topk": _form("top_k_v2", "X K", "Out Indices"),
    "argmax": _form("arg_max", "X AxisTensor"),
    "argmin": _form("arg_min", "X AxisTensor"),
    "mean": _form("reduce_mean", "X AxisTensor", axis="dim", keepdim="keep_dim"),
    **{
        name: _form(f"reduce_{name}", "X AxisTensor", axis="dim", keepdim="keep_dim")
        for name in ("sum", "max", "min", "prod")
    },
    **{name: _form(f"reduce_{name}", "X", axis="dim", keepdim="keep_dim") for name in ("all", "any")},
    "cumsum": _form("cumsum", "X AxisTensor"),
    "grid_sample": _form("grid_sampler", "X Grid", "Output"),
    "roi_align": _form("roi_align", "X ROIs RoisNum"),
    "unfold": _form("unfold", "X", "Y"),
    "channel_shuffle": _form("shuffle_channel", "X", groups="group"),
    "deformable_conv": _form("deformable_conv", "Input Offset Filter Mask", "Output"),
    "einsum": _form("einsum", "Operands"),
    "add_n": _form("sum", "X"),
    "increment": _form("increment", "X", value="step"),
    "increment_": _form("increment", "X", value="step"),
    "set_value": _form("set_value", "Input StartsTensor EndsTensor StepsTensor"),
    "set_value_": _form("set_value", "Input StartsTensor EndsTensor StepsTensor"),
    "set_value_with_tensor": _form("set_value", "Input ValueTensor StartsTensor EndsTensor StepsTensor"),
    "set_value_with_tensor_": _form("set_value", "Input ValueTensor StartsTensor EndsTensor StepsTensor"),
    "index_put": _form("index_put", "x indices value", "out"),
    "index_put_": _form("index_put", "x indices value", "out"),
    "put_along_axis": _form(
        "put_along_axis",
        "Input Index Value",
        "Result",
        axis="Axis",
        reduce="Reduce",
        include_self="Include_self",
    ),
    "masked_select": _form("masked_select", "X Mask", "Y"),
    "multiclass_nms3": _form("multiclass_nms3", "BBoxes Scores RoisNum", "Out Index NmsRoisNum"),
    "matrix_nms": _form("matrix_nms", "BBoxes Scores", "Out Index RoisNum"),
    "unique_consecutive": _form("unique_consecutive", "X", "Out Index Counts"),
    "nms": _form("nms", "Boxes", "KeepBoxesIdxs", threshold="iou_threshold"),
    "box_coder": _form("box_coder", "PriorBox PriorBoxVar TargetBox", "OutputBox"),
    "repeat_interleave": _form("repeat_interleave", "X", repeats="Repeats", axis="dim"),
    "cumprod": _form("cumprod", "X"),
    "kthvalue": _form("kthvalue", "X", "Out Indices"),
    "searchsorted": _form("searchsorted", "SortedSequence Values"),
    "unique": _form("unique", "X", "Out Indices Index Counts"),
    "prior_box": _form("prior_box", "Input Image", "Boxes Variances"),
    "generate_proposals": _form(
        "generate_proposals_v2",
        "Scores BboxDeltas ImShape Anchors Variances",
        "RpnRois RpnRoiProbs RpnRoisNum",
        pre_nms_top_n="pre_nms_topN",
        post_nms_top_n="post_nms_topN",
    ),
    "distribute_fpn_proposals": _form(
        "distribute_fpn_proposals", "FpnRois RoisNum", "MultiFpnRois MultiLevelRoIsNum RestoreIndex"
    ),
    "collect_fpn_proposals": _form(
        "collect_fpn_proposals",
        "MultiLevelRois MultiLevelScores MultiLevelRoIsNum",
        "FpnRois RoisNum",
        post_nms_topn="post_nms_topN",
    ),
    "quantize_linear": _form("quantize_linear", "X Scale ZeroPoint", "Y"),
    "dequantize_linear": _form("dequantize_linear", "X Scale ZeroPoint", "Y"),
    "yolo_box": _form("yolo_box", "X ImgSize", "Boxes Scores"),
    "create_array": _form("create_array", ""),
    "create_array_like": _form("create_array_like", "X"),
    "array_length": _form("lod_array_length", "X"),
    "array_read": _form("read_from_array", "X I"),
    "array_write_": _form("write_to_array", "Array X I"),
    "array_to_tensor": _form("tensor_array_to_tensor", "X", "Out OutIndex"),
    "if": _form("if", "Condition"),
    "while": _form("while", "Condition"),
    "select_input": _form("select_input", "Mask X"),
}
BUILTIN = {
    "builtin.combine": Form("combine", ("X",)),
    "builtin.split": Form("take_apart", ("X",)),
    "builtin.slice": Form("take_one", ("X",), attrs={"index": "at"}),
}


def in_program_desc_form(program: Program) -> Program:
    """The program with ProgramDesc's names of operators, slots and attributes. Unknown operators stay as they are."""
    defined = {name for node in program.walk() for name in node.outputs} | set(program.parameters)
    defined |= {name for node in program.walk() for body in node.signatures for name in body.inputs}
    defined |= {spec.name for spec in program.inputs}
    return replace(program, nodes=tuple(_convert(node, defined) for node in program.nodes))


def _convert(node: Node, defined: set[str]) -> Node:
    """`made` are the values that exist: the dropout state of a recurrent layer is declared, and has no value."""
    node = replace(
        node, blocks=tuple(tuple(_convert(one, defined) for one in block) for block in node.blocks)
    )
    dialect, _, name = node.op.partition(".")
    form = FORMS.get(name) if dialect == "pd_op" else BUILTIN.get(node.op)
    if form is None:
        return node
    input_count, results = len(node.inputs), len(node.outputs)
    many = not form.inputs[1:] and input_count > 1  # combine takes any number
    inputs = form.inputs * input_count if many else (*form.inputs, *(f"Input{i}" for i in range(input_count)))
    outputs = (
        form.outputs * results
        if form.op == "take_apart"
        else (*form.outputs, *(f"Output{i}" for i in range(results)))
    )
    attrs = {form.attrs.get(key, key): value for key, value in node.attrs.items()} | form.extra
    if form.op == "assign_value" and "shape" not in attrs:
        attrs["shape"] = (len(attrs.get("values", ())),)
    return replace(
        node,
        op=form.op,
        attrs=attrs,
        inputs=tuple(name if name in defined else "" for name in node.inputs),
        input_slots=tuple(inputs[:input_count]),
        output_slots=tuple(outputs[:results]),
    )
