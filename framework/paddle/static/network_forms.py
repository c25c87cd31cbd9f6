"""Convolutions, pooling, normalization and losses as operators of Paddle (operator_forms)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.static.operator_forms import (
    form_of,
    input_of,
    output_name,
    require,
    write_copy,
)
from framework.paddle.static.operator_writer import OperatorWriter
from framework.paddle.static.recorded_operations import CallOp


def _pair(value: object, op: CallOp, axes: int = 2) -> list[int]:
    """A number for each axis."""
    if isinstance(value, int):
        return [value] * axes
    require(isinstance(value, tuple | list) and len(value) == axes, op)
    require(all(isinstance(one, int) for one in cast("Sequence[object]", value)), op)
    return list(cast("Sequence[int]", value))


def _paddings(value: object, op: CallOp) -> dict[str, object]:
    """How much an image is padded: one or two numbers, four (top, bottom, left, right), or a rule."""
    if isinstance(value, str):
        return {"paddings": [0, 0], "padding_algorithm": value.upper()}
    four = isinstance(value, tuple | list) and len(value) == 4
    return {"paddings": _pair(value, op, 4 if four else 2), "padding_algorithm": "EXPLICIT"}


@form_of("conv2d", "conv2d_transpose")
def _conv(writer: OperatorWriter, op: CallOp) -> None:
    x, kernel, bias = input_of(op), input_of(op, 1), (*op.inputs, None, None)[2]
    transposed = op.operation == "conv2d_transpose"
    more: dict[str, object] = {}
    if transposed:
        output_padding, size = op.attrs["output_padding"], op.attrs["output_size"]
        require(size is None, op)
        more = {"output_size": [], "output_padding": _pair(output_padding, op) if output_padding else []}
    layout = cast("str", op.attrs["data_format"])
    out = op.outputs[0]
    name = out.name if bias is None else writer.add_variable(out.name, "Product", out.shape, out.dtype)
    writer.append(
        op.operation,
        {"Input": x.name, "Filter": kernel.name},
        {"Output": name},
        strides=_pair(op.attrs["stride"], op),
        dilations=_pair(op.attrs["dilation"], op),
        groups=op.attrs["groups"],
        data_format=layout,
        **_paddings(op.attrs["padding"], op),
        **more,
    )
    if isinstance(bias, Tensor):
        axis = 1 if layout == "NCHW" else -1
        writer.append("elementwise_add", {"X": name, "Y": bias.name}, {"Out": out.name}, axis=axis)


@form_of("max_pool2d", "avg_pool2d")
def _pool(writer: OperatorWriter, op: CallOp) -> None:
    settings = op.attrs
    require(not settings.get("return_mask") and settings.get("divisor_override") is None, op)
    size = _pair(settings["kernel_size"], op)
    write_copy(
        writer,
        op,
        fixed={
            "pooling_type": op.operation[:3],
            "ksize": size,
            "strides": size if settings["stride"] is None else _pair(settings["stride"], op),
            "ceil_mode": settings["ceil_mode"],
            "exclusive": settings.get("exclusive", True),
            "data_format": settings["data_format"],
            "adaptive": False,
            "global_pooling": False,
            **_paddings(settings["padding"], op),
        },
    )


@form_of("adaptive_avg_pool2d", "adaptive_max_pool2d")
def _adaptive_pool(writer: OperatorWriter, op: CallOp) -> None:
    require(not op.attrs.get("return_mask"), op)
    if op.operation == "adaptive_max_pool2d":
        out = op.outputs[0]
        writer.append(
            "max_pool2d_with_index",
            {"X": input_of(op).name},
            {"Out": out.name, "Mask": writer.add_variable(out.name, "Mask", out.shape, types.int32)},
            ksize=_pair(op.attrs["output_size"], op),
            strides=[1, 1],
            paddings=[0, 0],
            adaptive=True,
            global_pooling=False,
        )
        return
    write_copy(
        writer,
        op,
        fixed={
            "pooling_type": "avg",
            "ksize": _pair(op.attrs["output_size"], op),
            "strides": [1, 1],
            "paddings": [0, 0],
            "padding_algorithm": "EXPLICIT",
            "ceil_mode": False,
            "exclusive": True,
            "data_format": op.attrs.get("data_format", "NCHW"),
            "adaptive": True,
            "global_pooling": False,
        },
    )


@form_of("batch_norm")
def _batch_norm(writer: OperatorWriter, op: CallOp) -> None:
    """The moving statistics are outputs of the operator itself."""
    x, mean, variance, scale, bias = (input_of(op, number) for number in range(5))
    saved = {
        slot: writer.add_variable(output_name(op), slot, mean.shape, mean.dtype)
        for slot in ("SavedMean", "SavedVariance")
    }
    writer.append(
        "batch_norm",
        {"X": x.name, "Scale": scale.name, "Bias": bias.name, "Mean": mean.name, "Variance": variance.name},
        {"Y": output_name(op), "MeanOut": mean.name, "VarianceOut": variance.name, **saved},
        momentum=op.attrs.get("momentum", 0.9),
        epsilon=op.attrs["epsilon"],
        data_layout=op.attrs["data_format"],
        is_test=writer.for_test or len(op.outputs) == 1,
        use_global_stats=False,
        trainable_statistics=False,
    )


@form_of("layer_norm", "group_norm", "instance_norm")
def _norm(writer: OperatorWriter, op: CallOp) -> None:
    x, rank = input_of(op), len(input_of(op).shape)
    scale, bias = (
        (*op.inputs[3:], None, None)[:2]
        if op.operation == "instance_norm"
        else (*op.inputs[1:], None, None)[:2]
    )
    inputs = {
        "X": x.name,
        **{s: t.name for s, t in (("Scale", scale), ("Bias", bias)) if isinstance(t, Tensor)},
    }
    settings: dict[str, object] = {"epsilon": op.attrs.get("epsilon", op.attrs.get("eps"))}
    names = ("SavedMean", "SavedVariance") if op.operation == "instance_norm" else ("Mean", "Variance")
    rows = x.shape[:1]
    if op.operation == "layer_norm":
        shape = op.attrs["normalized_shape"]
        begin = rank - (1 if isinstance(shape, int) else len(cast("Sequence[int]", shape)))
        settings["begin_norm_axis"] = begin
        size = 1
        for one in x.shape[:begin]:
            size = -1 if -1 in (one, size) else size * one
        rows = [size]
    elif op.operation == "group_norm":
        settings |= {"groups": op.attrs["num_groups"], "data_layout": op.attrs["data_format"]}
        rows = [x.shape[0], cast("int", op.attrs["num_groups"])]
    else:
        require(bool(op.attrs["use_input_stats"]) and op.attrs["data_format"] == "NCHW", op)
        rows = [-1 if -1 in x.shape[:2] else x.shape[0] * x.shape[1]]
    extra = {slot: writer.add_variable(output_name(op), slot, rows, x.dtype) for slot in names}
    writer.append(op.operation, inputs, {"Y": output_name(op), **extra}, **settings)


@form_of("prelu")
def _prelu(writer: OperatorWriter, op: CallOp) -> None:
    alpha = input_of(op, 1)
    mode = "all" if list(alpha.shape) == [1] else "channel"
    writer.append(
        "prelu",
        {"X": input_of(op).name, "Alpha": alpha.name},
        {"Out": output_name(op)},
        mode=mode,
        data_format=op.attrs["data_format"],
    )


@form_of("dropout")
def _dropout(writer: OperatorWriter, op: CallOp) -> None:
    x = input_of(op)
    require(op.attrs["axis"] is None, op)
    mask = writer.add_variable(output_name(op), "Mask", x.shape, types.uint8)
    writer.append(
        "dropout",
        {"X": x.name},
        {"Out": output_name(op), "Mask": mask},
        dropout_prob=float(cast("float", op.attrs["p"])),
        dropout_implementation=op.attrs["mode"],
        is_test=writer.for_test,
        fix_seed=False,
        seed=0,
    )


_RULES = {"nearest": "nearest_interp_v2", "bilinear": "bilinear_interp_v2", "bicubic": "bicubic_interp_v2"}


@form_of("interpolate")
def _interpolate(writer: OperatorWriter, op: CallOp) -> None:
    rule, size, scale = (op.attrs[name] for name in ("mode", "size", "scale_factor"))
    x = input_of(op)
    require(rule in _RULES and len(x.shape) == 4, op)
    height, width = (-1, -1) if size is None else _pair(size, op)
    factors: list[float] = []
    if size is None:
        require(isinstance(scale, int | float | tuple), op)
        listed = scale if isinstance(scale, tuple) else (scale, scale)
        factors = [float(one) for one in cast("Sequence[float]", listed)]
    writer.append(
        _RULES[cast("str", rule)],
        {"X": x.name},
        {"Out": output_name(op)},
        interp_method=rule,
        align_corners=op.attrs["align_corners"],
        align_mode=op.attrs["align_mode"],
        data_layout=op.attrs["data_format"],
        out_d=-1,
        out_h=height,
        out_w=width,
        **({"scale": factors} if factors else {}),
    )


@form_of("pad")
def _pad(writer: OperatorWriter, op: CallOp) -> None:
    """Of the last axes of an image as if it had a depth of 1, or of all axes from the first one on."""
    x, out = input_of(op), op.outputs[0]
    sizes, mode = list(cast("Sequence[int]", op.attrs["pad"])), op.attrs["mode"]
    value, layout = float(cast("float", op.attrs["value"])), op.attrs["data_format"]
    if len(sizes) == 2 * len(x.shape) and mode == "constant":
        writer.append("pad", {"X": x.name}, {"Out": out.name}, paddings=sizes, pad_value=value)
        return
    require(len(x.shape) == 4 and len(sizes) == 4 and layout == "NCHW", op)
    shapes = {"Deep": [*x.shape[:2], 1, *x.shape[2:]], "Padded": [*out.shape[:2], 1, *out.shape[2:]]}
    deep, padded = (writer.add_variable(out.name, slot, shape, x.dtype) for slot, shape in shapes.items())
    before, after = (
        writer.add_variable(out.name, "XShape", [0, *shape], x.dtype) for shape in (x.shape, shapes["Padded"])
    )
    writer.append("unsqueeze2", {"X": x.name}, {"Out": deep, "XShape": before}, axes=[2])
    settings = {"paddings": [*sizes, 0, 0], "mode": mode, "value": value, "data_format": "NCDHW"}
    writer.append("pad3d", {"X": deep}, {"Out": padded}, **settings)
    writer.append("squeeze2", {"X": padded}, {"Out": out.name, "XShape": after}, axes=[2])


@form_of("norm", "normalize")
def _p_norm(writer: OperatorWriter, op: CallOp) -> None:
    """The norm along one axis; to normalize, the quotient by it."""
    x, axis, order = input_of(op), op.attrs["axis"], op.attrs["p"]
    require(isinstance(axis, int) and (order == "fro" or isinstance(order, int | float)), op)
    normalizes = op.operation == "normalize"
    epsilon = float(cast("float", op.attrs["epsilon"])) if normalizes else 1e-12
    last = cast("int", axis) % len(x.shape)
    shape = [1 if number == last else size for number, size in enumerate(x.shape)]
    norm = writer.add_variable(output_name(op), "Norm", shape, x.dtype) if normalizes else output_name(op)
    writer.append(
        "p_norm",
        {"X": x.name},
        {"Out": norm},
        axis=axis,
        porder=2.0 if order == "fro" else float(cast("float", order)),
        epsilon=1e-12,
        keepdim=normalizes or bool(op.attrs["keepdim"]),
        asvector=False,
    )
    if normalizes:
        least = writer.add_constant(epsilon, x, output_name(op), [1])
        bounded = writer.add_variable(output_name(op), "Bounded", shape, x.dtype)
        writer.append("elementwise_max", {"X": norm, "Y": least}, {"Out": bounded}, axis=-1)
        writer.append("elementwise_div", {"X": x.name, "Y": bounded}, {"Out": output_name(op)}, axis=-1)


# -- losses --------------------------------------------------------------------------------------------------------


def _reduced(writer: OperatorWriter, op: CallOp, name: str, shape: Sequence[int]) -> str:
    """Where a loss is written before `reduction`; appends nothing. See `_write_reduction`."""
    if op.attrs["reduction"] == "none":
        return output_name(op)
    return writer.add_variable(output_name(op), name, shape, op.outputs[0].dtype)


def _write_reduction(writer: OperatorWriter, op: CallOp, name: str) -> None:
    rule = op.attrs["reduction"]
    if rule == "none":
        return
    writer.append(
        f"reduce_{rule}",
        {"X": name},
        {"Out": output_name(op)},
        dim=[],
        keep_dim=False,
        reduce_all=True,
        in_dtype=-1,
        out_dtype=-1,
    )


@form_of("cross_entropy")
def _cross_entropy(writer: OperatorWriter, op: CallOp) -> None:
    """A mean counts labels of `ignore_index` as the operators of Paddle do not: they have to be out of use."""
    x, label, weight = input_of(op), input_of(op, 1), op.inputs[2]
    settings = op.attrs
    plain = weight is None and not settings["label_smoothing"] and settings["axis"] in (-1, len(x.shape) - 1)
    require(plain and (settings["reduction"] != "mean" or cast("int", settings["ignore_index"]) < 0), op)
    soft = bool(settings["soft_label"])
    if not soft and len(label.shape) == len(x.shape) - 1:
        longer = writer.add_variable(output_name(op), "Label", [*label.shape, 1], label.dtype)
        before = writer.add_variable(output_name(op), "XShape", [0, *label.shape], label.dtype)
        writer.append("unsqueeze2", {"X": label.name}, {"Out": longer, "XShape": before}, axes=[-1])
    else:
        longer = label.name
    rows = [*x.shape[:-1], 1]
    loss = writer.add_variable(output_name(op), "Loss", rows, x.dtype)
    softmax = writer.add_variable(output_name(op), "Softmax", x.shape, x.dtype)
    writer.append(
        "softmax_with_cross_entropy",
        {"Logits": x.name, "Label": longer},
        {"Loss": loss, "Softmax": softmax},
        axis=-1,
        ignore_index=settings["ignore_index"],
        soft_label=soft,
        use_softmax=settings["use_softmax"],
        numeric_stable_mode=True,
    )
    if settings["reduction"] != "none":
        _write_reduction(writer, op, loss)
    elif list(op.outputs[0].shape) == rows:
        writer.append("assign", {"X": loss}, {"Out": output_name(op)})
    else:
        before = writer.add_variable(output_name(op), "XShape", [0, *rows], x.dtype)
        writer.append("squeeze2", {"X": loss}, {"Out": output_name(op), "XShape": before}, axes=[-1])


@form_of("mse_loss", "l1_loss", "square_error_cost")
def _difference(writer: OperatorWriter, op: CallOp) -> None:
    x, y = input_of(op), input_of(op, 1)
    require(x.shape == y.shape and x.dtype == y.dtype, op)
    difference = writer.add_variable(output_name(op), "Difference", x.shape, x.dtype)
    writer.append("elementwise_sub", {"X": x.name, "Y": y.name}, {"Out": difference}, axis=-1)
    if op.operation == "square_error_cost":
        writer.append("square", {"X": difference}, {"Out": output_name(op)})
        return
    each = _reduced(writer, op, "Each", x.shape)
    writer.append("abs" if op.operation == "l1_loss" else "square", {"X": difference}, {"Out": each})
    _write_reduction(writer, op, each)


@form_of("binary_cross_entropy_with_logits")
def _sigmoid_cross_entropy(writer: OperatorWriter, op: CallOp) -> None:
    x, y = input_of(op), input_of(op, 1)
    require(all(one is None for one in op.inputs[2:]) and x.shape == y.shape, op)
    each = _reduced(writer, op, "Each", x.shape)
    writer.append(
        "sigmoid_cross_entropy_with_logits",
        {"X": x.name, "Label": y.name},
        {"Out": each},
        ignore_index=-100,
        normalize=False,
    )
    _write_reduction(writer, op, each)
