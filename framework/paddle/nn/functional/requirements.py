"""What Paddle's functions ask of their arguments before they compute, beyond what the core asks; see `face`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import jax
import numpy as np

from framework.paddle._kernel.errors import AssertedError, IntegerError, ShapeError, require

Arguments: TypeAlias = Mapping[str, Any]
Requirement: TypeAlias = Callable[[str, Arguments], None]
_FRACTIONS = (np.float32, np.float64)
_REDUCTIONS = ("none", "mean", "sum")


def _fractions(*names: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        for name in names:
            kind = arguments[name].dtype
            require(kind in _FRACTIONS, f"{name} is float32 or float64", where, kind)

    return check


def _all(*requirements: Requirement) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        for requirement in requirements:
            requirement(where, arguments)

    return check


def _formats(*formats: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        received = arguments["data_format"]
        require(received in formats, f"data_format is one of {', '.join(formats)}", where, received)

    return check


def _axes(name: str, count: int, error: type[ShapeError] = ShapeError) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        shape = arguments[name].shape
        require(len(shape) == count, f"{name} has {count} axes", where, shape, error)

    return check


def _cosine_embedding(where: str, arguments: Arguments) -> None:
    kind = arguments["label"].dtype
    require(kind in (*_FRACTIONS, np.int32, np.int64), "label is an integer or a fraction", where, kind)


def _margin(where: str, arguments: Arguments) -> None:
    require(arguments["margin"] >= 0, "the margin is 0 or more", where, arguments["margin"])


def _multi_margin(where: str, arguments: Arguments) -> None:
    weight, input = arguments["weight"], arguments["input"]
    if weight is not None:
        require(weight.shape[0] == input.shape[1], "a weight for each class", where, weight.shape)


def _dice(where: str, arguments: Arguments) -> None:
    input, label = arguments["input"], arguments["label"]
    shapes = f"shapes {list(input.shape)} and {list(label.shape)}, types {input.dtype} and {label.dtype}"
    holds = input.ndim >= 2 and input.shape[:-1] == label.shape[:-1] and label.shape[-1] == 1
    holds = holds and input.size > 0 and label.size > 0
    holds = holds and input.dtype in _FRACTIONS and label.dtype in (np.int32, np.int64)
    require(holds, "fractions [N, ..., C] and integers [N, ..., 1]", where, shapes, AssertedError)


def _probability(name: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        if isinstance(arguments[name], int | float):
            require(0 <= arguments[name] <= 1, f"{name} lies from 0 to 1", where, arguments[name])

    return check


def _not_empty(*names: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        for name in names:
            require(arguments[name].size > 0, f"{name} has elements", where, arguments[name].shape)

    return check


def _glu(where: str, arguments: Arguments) -> None:
    rank = arguments["x"].ndim
    require(-rank <= arguments["axis"] < rank, f"the axis is one of {rank}", where, arguments["axis"])


def _flag(name: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        require(isinstance(arguments[name], bool), f"{name} is True or False", where, arguments[name])

    return check


def _integer(name: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        number = arguments[name]
        require(isinstance(number, int | np.integer), f"{name} is an integer", where, number, IntegerError)

    return check


def _positive(name: str) -> Requirement:
    def check(where: str, arguments: Arguments) -> None:
        require(arguments[name] > 0, f"{name} is above 0", where, arguments[name])

    return check


def _pad(where: str, arguments: Arguments) -> None:
    formats = {3: ("NCL", "NLC"), 4: ("NCHW", "NHWC"), 5: ("NCDHW", "NDHWC")}
    modes = ("reflect", "replicate", "constant", "circular")
    mode, rank, pad = arguments["mode"], arguments["x"].ndim, arguments["pad"]
    require(mode in modes, f"the mode is one of {', '.join(modes)}", where, mode, AssertedError)
    if mode == "constant" and not isinstance(pad, int) and len(pad) == 2 * rank:
        return
    require(rank in formats, "x has 3 to 5 axes", where, arguments["x"].shape, AssertedError)
    allowed = formats[rank]
    received = arguments["data_format"]
    if received != "NCHW":  # the default stands for that of any number of axes
        require(
            received in allowed, f"data_format is one of {', '.join(allowed)}", where, received, AssertedError
        )


def _prelu(where: str, arguments: Arguments) -> None:
    x, weight = arguments["x"], arguments["weight"]
    shapes = f"shapes {list(x.shape)} and {list(weight.shape)}"
    require(weight.ndim < 2, "the weight has one axis at most", where, shapes, AssertedError)
    if weight.size > 1:
        channels = x.shape[-1] if arguments["data_format"].endswith("C") else x.shape[min(1, x.ndim - 1)]
        holds = x.ndim > 1 and weight.shape[0] == channels
        require(holds, "a weight for each channel", where, shapes, AssertedError)


def _pairs(*names: str) -> Requirement:
    """Numbers, or lists of two."""

    def check(where: str, arguments: Arguments) -> None:
        for name in names:
            value = arguments[name]
            holds = not isinstance(value, list | tuple) or len(value) == 2
            require(holds, f"{name} is a number or a list of two", where, value, AssertedError)

    return check


def _asserted_reduction(where: str, arguments: Arguments) -> None:
    holds = arguments["reduction"] in _REDUCTIONS
    require(holds, "the reduction is mean, sum or none", where, arguments["reduction"], AssertedError)


def _lengths(where: str, arguments: Arguments) -> None:
    for name in ("input_lengths", "label_lengths"):
        require(arguments[name] is not None, f"{name} is needed", where, None)


def _weight_is_a_tensor(where: str, arguments: Arguments) -> None:
    weight = arguments["weight"]
    holds = weight is None or isinstance(weight, jax.Array | jax.ShapeDtypeStruct)
    require(holds, "the weight is a Tensor", where, type(weight).__name__)


def _transposed(where: str, arguments: Arguments) -> None:
    groups, output, stride = arguments["groups"], arguments["output_padding"], arguments["stride"]
    require(groups > 0, "groups is above 0", where, groups)
    outputs, strides = ([v] if isinstance(v, int) else list(v) for v in (output, stride))
    if where.endswith("conv1d_transpose") and outputs:
        require(outputs[0] <= strides[0], "output_padding is at most the stride", where, output)


def _without_ceil_mode(where: str, arguments: Arguments) -> None:
    padding = arguments["padding"]
    if isinstance(padding, str) and padding.upper() == "VALID":
        require(not arguments["ceil_mode"], "padding VALID goes without ceil_mode", where, "ceil_mode=True")


REQUIREMENTS: Mapping[str, Requirement] = MappingProxyType(
    {
        "adaptive_avg_pool2d": _formats("NCHW", "NHWC"),
        "adaptive_avg_pool3d": _formats("NCDHW", "NDHWC"),
        "avg_pool1d": _without_ceil_mode,
        "avg_pool2d": _without_ceil_mode,
        "avg_pool3d": _without_ceil_mode,
        "channel_shuffle": _all(_axes("x", 4), _integer("groups"), _positive("groups")),
        "conv1d_transpose": _transposed,
        "conv2d_transpose": _transposed,
        "conv3d_transpose": _transposed,
        "cosine_embedding_loss": _all(_fractions("input1"), _cosine_embedding),
        "ctc_loss": _all(_lengths, _asserted_reduction),
        "dice_loss": _dice,
        "fold": _all(
            _axes("x", 3, AssertedError), _pairs("output_sizes", "kernel_sizes", "strides", "dilations")
        ),
        "gaussian_nll_loss": _fractions("input", "label", "variance"),
        "glu": _glu,
        "grid_sample": _flag("align_corners"),
        "label_smooth": _probability("epsilon"),
        "max_pool1d": _without_ceil_mode,
        "max_pool2d": _without_ceil_mode,
        "max_pool3d": _without_ceil_mode,
        "multi_margin_loss": _multi_margin,
        "npair_loss": _not_empty("anchor", "positive"),
        "pad": _pad,
        "pixel_shuffle": _all(_integer("upscale_factor"), _positive("upscale_factor")),
        "prelu": _prelu,
        "rnnt_loss": _asserted_reduction,
        "triplet_margin_loss": _margin,
        "unfold": _all(_axes("x", 4, AssertedError), _pairs("kernel_sizes", "strides", "dilations")),
    }
)
