"""The cases on which `framework.nn` is compared with Paddle: operations, options and how inputs are derived.

Nothing here imports jax or paddle. tools/golden/functional.py runs the cases with Paddle and stores what comes out;
tests/golden/test_functional.py runs them with ours. Both make the same inputs from the CRC of the case's name, so only
outputs and gradients are stored. Arrays are channels-last here; the generator turns images over for Paddle.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np


def _rng(*words: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32("/".join(words).encode()))


def derived(case: str, name: str, shape: tuple[int, ...], scale: float = 1.0) -> np.ndarray:
    """Normal float32 values that depend on nothing but their names."""
    return (_rng(case, name).standard_normal(shape) * scale).astype(np.float32)


@dataclass(frozen=True)
class Array:
    """One input. kind: normal, uniform (0.05 to 0.95), simplex (last axis sums to 1), int (0 to `high` - 1), sign."""

    shape: tuple[int, ...] = ()
    kind: str = "normal"
    scale: float = 1.0
    high: int = 0
    image: bool = False
    values: Any = None
    dtype: str = "float32"
    grad: bool = False

    def make(self, case: str, name: str) -> np.ndarray:
        if self.values is not None:
            return np.asarray(self.values, self.dtype)
        rng = _rng(case, name)
        if self.kind == "int":
            return rng.integers(0, self.high, self.shape).astype("int64")
        if self.kind == "sign":
            return rng.choice([-1.0, 1.0], self.shape).astype("float32")
        if self.kind == "uniform":
            return rng.uniform(0.05, 0.95, self.shape).astype("float32")
        if self.kind == "simplex":
            raw = rng.uniform(0.1, 1.0, self.shape)
            return (raw / raw.sum(-1, keepdims=True)).astype("float32")
        return derived(case, name, self.shape, self.scale)


@dataclass(frozen=True)
class Case:
    name: str
    op: str
    arrays: dict[str, Array]
    options: dict[str, Any] = field(default_factory=dict)
    image_out: bool = False
    platforms: bool = False  # whether the form depends on the platform, so that all of them are tried
    tolerance: float = 1e-5  # of the largest magnitude in the reference

    @property
    def group(self) -> str:
        return self.name.split("/")[0]

    def inputs(self) -> dict[str, np.ndarray]:
        return {name: array.make(self.name, name) for name, array in self.arrays.items()}

    @property
    def differentiated(self) -> list[str]:
        return [name for name, array in self.arrays.items() if array.grad]

    def cotangent(self, index: int, shape: tuple[int, ...]) -> np.ndarray:
        return derived(self.name, f"cotangent{index}", shape)


def image(*shape: int, **more: Any) -> Array:
    return Array(shape, image=True, grad=True, **more)


def weight(*shape: int, **more: Any) -> Array:
    return Array(shape, grad=True, **more)


CASES: list[Case] = []


def add(name: str, op: str, arrays: dict[str, Array], image_out: bool = False, **options: Any) -> None:
    platforms = op in ("conv2d", "conv2d_transpose", "max_pool2d", "avg_pool2d", "batch_norm", "conv1d")
    CASES.append(Case(name, op, arrays, options, image_out, platforms))


# -- convolution and pooling --------------------------------------------------------------------------------------


def _conv(
    name: str, hw: tuple[int, int], cin: int, cout: int, kernel: tuple[int, int], **options: Any
) -> None:
    groups = options.get("groups", 1)
    arrays = {"x": image(2, *hw, cin), "weight": weight(cout, cin // groups, *kernel), "bias": weight(cout)}
    add(f"conv/{name}", "conv2d", arrays, True, **options)


_conv("plain_s1", (5, 6), 4, 3, (3, 3), padding=1)
_conv("plain_s2_odd", (7, 9), 4, 3, (3, 3), stride=2, padding=1)
_conv("stem_s2", (7, 8), 3, 4, (3, 3), stride=2, padding=1)
_conv("wide_kernel", (4, 9), 4, 2, (1, 7), padding=[0, 3])
_conv("four_pads", (5, 5), 4, 2, (3, 3), padding=[0, 1, 2, 1])
_conv("same_s2_odd", (7, 9), 4, 2, (3, 3), stride=2, padding="SAME")
_conv("same_s2_even", (6, 8), 4, 2, (3, 3), stride=2, padding="SAME")
_conv("valid", (5, 6), 4, 2, (2, 3), padding="VALID")
_conv("pointwise_s2", (5, 7), 6, 4, (1, 1), stride=2)
_conv("dilated", (7, 7), 4, 2, (3, 3), padding=2, dilation=2)
_conv("grouped", (5, 5), 6, 4, (3, 3), padding=1, groups=2)
_conv("depthwise_s1", (5, 7), 4, 4, (3, 3), padding=1, groups=4)
_conv("depthwise_5_s2_odd", (7, 9), 3, 3, (5, 5), stride=2, padding=2, groups=3)
_conv("depthwise_s2_even", (6, 8), 3, 3, (3, 3), stride=2, padding=1, groups=3)
_conv("depthwise_s21", (6, 7), 3, 3, (3, 3), stride=[2, 1], padding=1, groups=3)
_conv("depthwise_dilated", (7, 7), 3, 3, (3, 3), padding=2, dilation=2, groups=3)
_conv("depthwise_same_s2", (6, 7), 3, 3, (3, 3), stride=2, padding="SAME", groups=3)
_conv("depthwise_twice", (5, 6), 3, 6, (3, 3), padding=1, groups=3)


def _transpose(name: str, cin: int, per_group: int, kernel: int, **options: Any) -> None:
    cout = per_group * options.get("groups", 1)
    arrays = {
        "x": image(2, 4, 5, cin),
        "weight": weight(cin, per_group, kernel, kernel),
        "bias": weight(cout),
    }
    add(f"conv/transpose_{name}", "conv2d_transpose", arrays, True, **options)


_transpose("blocks", 4, 3, 2, stride=2)
_transpose("k4_s2", 3, 2, 4, stride=2, padding=1)
_transpose("output_padding", 3, 2, 3, stride=2, padding=1, output_padding=1)
_transpose("groups", 4, 2, 3, stride=2, padding=1, groups=2)
_transpose("dilated", 3, 2, 3, dilation=2)
add(
    "conv/conv1d_s2", "conv1d", {"x": image(2, 9, 3), "weight": weight(4, 3, 3), "bias": weight(4)}, True,
    stride=2, padding=1,
)  # fmt: skip
add(
    "conv/conv1d_transpose", "conv1d_transpose",
    {"x": image(2, 5, 3), "weight": weight(3, 2, 4), "bias": weight(2)}, True, stride=2, padding=1, output_padding=1,
)  # fmt: skip
add(
    "conv/conv3d", "conv3d", {"x": image(1, 4, 5, 4, 2), "weight": weight(3, 2, 3, 3, 2), "bias": weight(3)}, True,
    stride=[1, 2, 1], padding=[1, 1, 0],
)  # fmt: skip
add("conv/linear", "linear", {"x": weight(2, 3, 4), "weight": weight(4, 5), "bias": weight(5)})

for _ceil in (False, True):
    for _hw in ((5, 7), (6, 8)):
        _tag = f"{_hw[0]}{_hw[1]}_ceil{int(_ceil)}"
        _x = {"x": image(2, *_hw, 2)}
        _window: dict[str, Any] = dict(kernel_size=3, stride=2, padding=1, ceil_mode=_ceil)
        add(f"pool/max_{_tag}", "max_pool2d", _x, True, **_window)
        add(f"pool/avg_{_tag}", "avg_pool2d", _x, True, exclusive=True, **_window)
        add(f"pool/avg_inclusive_{_tag}", "avg_pool2d", _x, True, exclusive=False, **_window)
_x = {"x": image(2, 5, 6, 2)}
add("pool/max_s1", "max_pool2d", _x, True, kernel_size=3, stride=1, padding=1)
add("pool/max_k2", "max_pool2d", _x, True, kernel_size=2)
add("pool/max_same", "max_pool2d", _x, True, kernel_size=2, stride=2, padding="SAME")
add("pool/max_ceil_k2", "max_pool2d", _x, True, kernel_size=2, stride=2, ceil_mode=True)
add("pool/avg_k2", "avg_pool2d", _x, True, kernel_size=2)
add("pool/avg_same", "avg_pool2d", _x, True, kernel_size=2, stride=2, padding="SAME")
add(
    "pool/avg_k21", "avg_pool2d", _x, True, kernel_size=[3, 2], stride=[2, 1], padding=[1, 0], exclusive=False
)
add("pool/avg_k5", "avg_pool2d", _x, True, kernel_size=5, stride=1, padding=2)
add("pool/adaptive_1", "adaptive_avg_pool2d", _x, True, output_size=1)
add("pool/adaptive_3", "adaptive_avg_pool2d", _x, True, output_size=3)
add("pool/adaptive_42", "adaptive_avg_pool2d", _x, True, output_size=[4, 2])
add("pool/adaptive_up", "adaptive_avg_pool2d", _x, True, output_size=[7, 4])
add("pool/adaptive_max_34", "adaptive_max_pool2d", _x, True, output_size=[3, 4])
_x = {"x": image(2, 7, 3)}
add("pool/max1d", "max_pool1d", _x, True, kernel_size=3, stride=2, padding=1)
add("pool/avg1d", "avg_pool1d", _x, True, kernel_size=3, stride=2, padding=1, exclusive=True)
add("pool/adaptive1d", "adaptive_avg_pool1d", _x, True, output_size=3)

# -- normalisation ------------------------------------------------------------------------------------------------

_STATS = {"running_mean": Array((3,)), "running_var": Array((3,), "uniform")}
_AFFINE = {"weight": weight(3), "bias": weight(3)}
for _name, _shape in (("4d", (2, 5, 3, 3)), ("3d", (2, 5, 3)), ("2d", (6, 3)), ("one_row", (2, 1, 7, 3))):
    _x = {"x": image(*_shape)}
    add(f"norm/batch_train_{_name}", "batch_norm", _x | _STATS | _AFFINE, True, training=True)
    add(f"norm/batch_eval_{_name}", "batch_norm", _x | _STATS | _AFFINE, True, training=False)
_x = {"x": image(2, 3, 5, 3, scale=4.0)}
add(
    "norm/batch_momentum",
    "batch_norm",
    _x | _STATS | _AFFINE,
    True,
    training=True,
    momentum=0.7,
    epsilon=1e-3,
)
add("norm/batch_global", "batch_norm", _x | _STATS | _AFFINE, True, training=True, use_global_stats=True)
add(
    "norm/layer",
    "layer_norm",
    {"x": weight(2, 4, 6), "weight": weight(6), "bias": weight(6)},
    normalized_shape=6,
)
add("norm/layer_eps", "layer_norm", {"x": weight(3, 6, scale=0.01)}, normalized_shape=6, epsilon=1e-3)
_two = {"x": weight(3, 4, 5), "weight": weight(20), "bias": weight(20)}
add("norm/layer_two_axes", "layer_norm", _two, normalized_shape=[4, 5])
_x = {"x": image(2, 3, 4, 6), "weight": weight(6), "bias": weight(6)}
add("norm/group_2", "group_norm", _x, True, num_groups=2)
add("norm/group_6_eps", "group_norm", _x, True, num_groups=6, epsilon=1e-2)
add("norm/instance", "instance_norm", _x, True)
add("norm/instance_eps", "instance_norm", {"x": image(2, 3, 4, 3)}, True, eps=1e-2)
add("norm/normalize_last", "normalize", {"x": weight(3, 4, 5)}, axis=-1)
add("norm/normalize_l1", "normalize", {"x": weight(3, 5)}, p=1, axis=1)

# -- activations --------------------------------------------------------------------------------------------------

_PLAIN = """
    relu relu6 sigmoid log_sigmoid tanh silu swish mish hardswish softsign tanhshrink hardsigmoid hardtanh gelu
    leaky_relu elu celu selu softplus softshrink hardshrink thresholded_relu glu softmax log_softmax
"""
_ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in _PLAIN.split()}
_ACTIVATIONS |= {
    "hardsigmoid_02": ("hardsigmoid", {"slope": 0.2, "offset": 0.5}),
    "gelu_tanh": ("gelu", {"approximate": True}),
    "leaky_02": ("leaky_relu", {"negative_slope": 0.2}),
    "elu_2": ("elu", {"alpha": 2.0}),
    "celu_2": ("celu", {"alpha": 2.0}),
    "softplus_2": ("softplus", {"beta": 2.0, "threshold": 5.0}),
    "softmax_0": ("softmax", {"axis": 0}),
}
for _name, (_op, _options) in _ACTIVATIONS.items():
    add(f"activation/{_name}", _op, {"x": weight(3, 8, scale=3.0)}, **_options)
add("activation/maxout", "maxout", {"x": image(2, 3, 2, 4)}, True, groups=2)
add("activation/prelu_one", "prelu", {"x": image(2, 3, 4, 3), "weight": weight(1)}, True)
add("activation/prelu_channels", "prelu", {"x": image(2, 3, 4, 3), "weight": weight(3)}, True)
_corners = {
    "relu": [-1.0, 0.0, 1.0], "relu6": [0.0, 6.0, 7.0], "hardtanh": [-1.0, 1.0, 2.0], "hardsigmoid": [-3.0, 3.0, 0.0],
    "leaky_relu": [0.0, -0.0, 1.0], "elu": [0.0, -30.0, 90.0], "softshrink": [0.5, -0.5, 0.0],
    "hardshrink": [0.5, -0.5, 0.0], "hardswish": [-3.0, 3.0, 0.0], "softplus": [25.0, -120.0, 120.0],
}  # fmt: skip
for _name, _values in _corners.items():
    add(f"activation/corner_{_name}", _name, {"x": Array(values=_values, grad=True)})

# -- sampling and rearranging -------------------------------------------------------------------------------------

_x = {"x": image(1, 5, 4, 2)}
_SIZES: dict[str, dict[str, Any]] = {
    "up": {"size": [8, 11]}, "down": {"size": [3, 2]}, "one": {"size": [1, 7]}, "same": {"size": [5, 4]},
    "x2": {"scale_factor": 2}, "x3": {"scale_factor": [3, 3]}, "x17": {"scale_factor": 1.7},
    "half": {"scale_factor": 0.5},
}  # fmt: skip
for _size, _options in _SIZES.items():
    add(f"sampling/nearest_{_size}", "interpolate", _x, True, mode="nearest", **_options)
    if "size" in _options:
        add(f"sampling/area_{_size}", "interpolate", _x, True, mode="area", **_options)
    for _align, _mode in ((False, 0), (False, 1), (True, 0)):
        _tag = f"{_size}_corners{int(_align)}_mode{_mode}"
        _more: dict[str, Any] = dict(align_corners=_align, align_mode=_mode, **_options)
        add(f"sampling/bilinear_{_tag}", "interpolate", _x, True, mode="bilinear", **_more)
        if _mode == 0:
            add(f"sampling/bicubic_{_tag}", "interpolate", _x, True, mode="bicubic", **_more)
_wide = {"x": image(1, 2, 2, 1)}
add("sampling/bilinear_x16", "interpolate", _wide, True, mode="bilinear", scale_factor=16)
add(
    "sampling/linear",
    "interpolate",
    {"x": image(2, 5, 3)},
    True,
    mode="linear",
    size=[8],
    align_corners=False,
)
_volume = {"x": image(1, 2, 3, 4, 2)}
add("sampling/trilinear", "interpolate", _volume, True, mode="trilinear", size=[3, 5, 6])
add("sampling/nearest_3d", "interpolate", _volume, True, mode="nearest", size=[3, 6, 5])

_grid = {"x": image(2, 4, 5, 2), "grid": weight(2, 3, 4, 2, scale=0.8)}
for _mode in ("bilinear", "nearest"):
    for _padding in ("zeros", "border", "reflection"):
        for _align in (True, False):
            add(
                f"sampling/grid_{_mode}_{_padding}_{int(_align)}", "grid_sample", _grid, True,
                mode=_mode, padding_mode=_padding, align_corners=_align,
            )  # fmt: skip
for _align in (True, False):
    add(
        f"sampling/affine_grid_{int(_align)}", "affine_grid", {"theta": weight(2, 2, 3)},
        out_shape=[2, 3, 4, 1], align_corners=_align,
    )  # fmt: skip

_x = {"x": image(1, 4, 5, 2)}
for _mode in ("constant", "reflect", "replicate", "circular"):
    add(f"rearrange/pad_{_mode}", "pad", _x, True, pad=[1, 2, 3, 0], mode=_mode)
add("rearrange/pad_value", "pad", _x, True, pad=[1, 0, 0, 2], value=1.5)
add("rearrange/pad_1d", "pad", {"x": image(2, 5, 2)}, True, pad=[2, 1], mode="replicate")
add("rearrange/pad_3d", "pad", {"x": image(1, 2, 3, 2, 1)}, True, pad=[1, 0, 0, 2, 1, 1])
add("rearrange/pixel_shuffle", "pixel_shuffle", {"x": image(1, 2, 3, 12)}, True, upscale_factor=2)
add("rearrange/pixel_unshuffle", "pixel_unshuffle", {"x": image(1, 4, 6, 3)}, True, downscale_factor=2)
add("rearrange/channel_shuffle", "channel_shuffle", {"x": image(1, 2, 2, 6)}, True, groups=3)
add("rearrange/unfold", "unfold", _x, kernel_sizes=[2, 3], strides=[1, 2], paddings=[1, 0, 0, 2], dilations=1)
add("rearrange/unfold_dilated", "unfold", _x, kernel_sizes=2, strides=1, paddings=1, dilations=2)
_windows = {"x": weight(2, 12, 12)}
add("rearrange/fold", "fold", _windows, True, output_sizes=[4, 5], kernel_sizes=2, strides=1)
_windows = {"x": weight(1, 9, 8)}
add(
    "rearrange/fold_strided",
    "fold",
    _windows,
    True,
    output_sizes=[5, 5],
    kernel_sizes=2,
    strides=2,
    paddings=1,
)
_table = {"x": Array((2, 4), "int", high=5), "weight": weight(5, 3)}
add("rearrange/embedding", "embedding", _table)
add("rearrange/embedding_padding", "embedding", _table, padding_idx=0)
add("rearrange/one_hot", "one_hot", {"x": Array((2, 3), "int", high=4)}, num_classes=4)
add("rearrange/cosine_similarity", "cosine_similarity", {"x1": weight(3, 5), "x2": weight(3, 5)})
add("rearrange/label_smooth", "label_smooth", {"label": Array((3, 4), "simplex")})

# -- losses -------------------------------------------------------------------------------------------------------

_logits = {"input": weight(6, 5, scale=2.0)}
_hard = {"label": Array((6,), "int", high=5)}
_column = {"label": Array((6, 1), "int", high=5)}
_ignored = {"label": Array(values=[0, 4, 255, 2, 255, 1], dtype="int64")}
_soft = {"label": Array((6, 5), "simplex")}
_classes = {"weight": Array((5,), "uniform")}
for _reduction in ("mean", "sum", "none"):
    add(f"loss/ce_{_reduction}", "cross_entropy", _logits | _hard, reduction=_reduction)
    add(
        f"loss/ce_ignore_{_reduction}",
        "cross_entropy",
        _logits | _ignored,
        reduction=_reduction,
        ignore_index=255,
    )
    add(f"loss/ce_weight_{_reduction}", "cross_entropy", _logits | _hard | _classes, reduction=_reduction)
    add(f"loss/ce_soft_{_reduction}", "cross_entropy", _logits | _soft, reduction=_reduction, soft_label=True)
    add(
        f"loss/ce_soft_weight_{_reduction}", "cross_entropy", _logits | _soft | _classes,
        reduction=_reduction, soft_label=True,
    )  # fmt: skip
add("loss/ce_column", "cross_entropy", _logits | _column, reduction="none")
add("loss/ce_ignore_weight", "cross_entropy", _logits | _ignored | _classes, ignore_index=255)
add("loss/ce_smoothing", "cross_entropy", _logits | _hard, label_smoothing=0.1)
add("loss/ce_smoothing_weight", "cross_entropy", _logits | _hard | _classes, label_smoothing=0.2)
add("loss/ce_smoothing_none", "cross_entropy", _logits | _hard, label_smoothing=0.2, reduction="none")
_probabilities = {"input": Array((6, 5), "simplex", grad=True)}
add("loss/ce_probabilities", "cross_entropy", _probabilities | _hard, use_softmax=False)
_pixels = {"input": weight(2, 5, 3), "label": Array((2, 3), "int", high=5)}
add("loss/ce_axis", "cross_entropy", _pixels, axis=1)
_pixels = {"input": weight(2, 3, 4, 5), "label": Array((2, 3, 4), "int", high=5)}
add("loss/ce_pixels", "cross_entropy", _pixels)
add("loss/softmax_with_ce", "softmax_with_cross_entropy", {"logits": _logits["input"]} | _column)
add("loss/nll", "nll_loss", _logits | _hard)
add("loss/nll_weight", "nll_loss", _logits | _ignored | _classes, ignore_index=255)
_pair = {"input": weight(4, 3), "label": Array((4, 3), scale=2.0)}
for _op in ("mse_loss", "l1_loss", "smooth_l1_loss"):
    for _reduction in ("mean", "sum", "none"):
        add(f"loss/{_op}_{_reduction}", _op, _pair, reduction=_reduction)
add("loss/smooth_l1_delta", "smooth_l1_loss", _pair, delta=0.3)
add("loss/square_error", "square_error_cost", _pair)
_p = {"input": Array((4, 3), "uniform", grad=True)}
_y = {"label": Array((4, 3), "int", high=2)}
_y01 = {"label": Array((4, 3), "uniform")}
_binary = {"label": Array(values=[[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0]])}
_x = {"logit": weight(4, 3, scale=3.0)}
_w = {"weight": Array((4, 3), "uniform")}
add("loss/bce", "binary_cross_entropy", _p | _y01)
add("loss/bce_weight_sum", "binary_cross_entropy", _p | _y01 | _w, reduction="sum")
add("loss/bce_logits", "binary_cross_entropy_with_logits", _x | _y01)
add("loss/bce_logits_weight", "binary_cross_entropy_with_logits", _x | _binary | _w, reduction="none")
add(
    "loss/log_loss",
    "log_loss",
    {"input": Array((5, 1), "uniform", grad=True), "label": Array((5, 1), "uniform")},
)
add("loss/focal", "sigmoid_focal_loss", _x | _binary)
_norm = {"normalizer": Array(values=[3.0])}
add("loss/focal_norm", "sigmoid_focal_loss", _x | _binary | _norm, alpha=0.4, gamma=1.5, reduction="mean")
_dice = {"input": Array((2, 4, 3), "simplex", grad=True), "label": Array((2, 4, 1), "int", high=3)}
add("loss/dice", "dice_loss", _dice)
_logs = {"input": weight(4, 3), "label": Array((4, 3), "simplex")}
for _reduction in ("mean", "batchmean", "sum", "none"):
    add(f"loss/kl_{_reduction}", "kl_div", _logs, reduction=_reduction)
_rank = {"input": weight(5), "other": weight(5), "label": Array((5,), "sign")}
add("loss/margin", "margin_ranking_loss", _rank, margin=0.3)
_triplet = {"input": weight(4, 3), "positive": weight(4, 3), "negative": weight(4, 3)}
add("loss/triplet", "triplet_margin_loss", _triplet)
add("loss/triplet_swap", "triplet_margin_loss", _triplet, margin=2.0, swap=True, reduction="sum")
add("loss/triplet_p1", "triplet_margin_loss", _triplet, p=1.0)
_cosine = {
    "input1": weight(4, 3),
    "input2": weight(4, 3),
    "label": Array(values=[1, -1, 1, -1], dtype="int64"),
}
add("loss/cosine", "cosine_embedding_loss", _cosine, margin=0.1)


def _ctc(
    name: str, labels: list[list[int]], label_lengths: list[int], input_lengths: list[int], **more: Any
) -> None:
    arrays = {
        "log_probs": weight(7, len(labels), 5),
        "labels": Array(values=labels, dtype="int32"),
        "input_lengths": Array(values=input_lengths, dtype="int64"),
        "label_lengths": Array(values=label_lengths, dtype="int64"),
    }
    add(f"ctc/{name}", "ctc_loss", arrays, **more)


_LABELS = [[1, 2, 3], [2, 2, 0], [4, 0, 0]]
for _reduction in ("mean", "sum", "none"):
    _ctc(_reduction, _LABELS, [3, 2, 1], [7, 7, 7], reduction=_reduction)
_ctc("lengths", _LABELS, [3, 2, 1], [5, 3, 4], reduction="none")
_ctc("tight", _LABELS, [3, 2, 1], [3, 3, 1], reduction="none")
_ctc("blank_last", [[0, 1, 3], [3, 3, 0], [2, 0, 0]], [3, 2, 1], [7, 6, 5], blank=4, reduction="sum")
_ctc("by_times", _LABELS, [3, 2, 1], [7, 6, 5], norm_by_times=True, reduction="sum")
_ctc("infeasible", _LABELS, [3, 2, 1], [2, 2, 4], reduction="none")

# -- layers -------------------------------------------------------------------------------------------------------
# Their weights are derived from the names in the state dict, so both sides have the same without storing them.

_sequence = {"x": weight(2, 4, 3)}
for _layer in ("SimpleRNN", "LSTM", "GRU"):
    _sizes: dict[str, Any] = dict(input_size=3, hidden_size=4)
    add(f"rnn/{_layer}", f"layer:{_layer}", _sequence, **_sizes)
    add(f"rnn/{_layer}_two_bi", f"layer:{_layer}", _sequence, num_layers=2, direction="bidirect", **_sizes)
_lengths = {"sequence_length": Array(values=[3, 2], dtype="int64")}
add("rnn/LSTM_lengths", "layer:LSTM", _sequence | _lengths, input_size=3, hidden_size=4, direction="bidirect")
add("rnn/GRU_lengths", "layer:GRU", _sequence | _lengths, input_size=3, hidden_size=4)
add("rnn/RNN_relu", "layer:SimpleRNN", _sequence, input_size=3, hidden_size=4, activation="relu")
add("rnn/GRU_time_major", "layer:GRU", _sequence, input_size=3, hidden_size=4, time_major=True)
for _layer in ("SimpleRNNCell", "LSTMCell", "GRUCell"):
    add(f"rnn/{_layer}", f"layer:{_layer}", {"x": weight(2, 3)}, input_size=3, hidden_size=4)

_sequence = {"x": weight(2, 4, 8)}
_mask = {"attn_mask": Array(values=np.tril(np.ones((4, 4), bool))[None, None].tolist(), dtype="bool")}
add("attention/self", "layer:MultiHeadAttention", _sequence, embed_dim=8, num_heads=2)
add("attention/masked", "layer:MultiHeadAttention", _sequence | _mask, embed_dim=8, num_heads=2)
_cross = {"x": weight(2, 4, 8), "key": weight(2, 3, 6), "value": weight(2, 3, 5)}
add("attention/cross", "layer:MultiHeadAttention", _cross, embed_dim=8, num_heads=4, kdim=6, vdim=5)
_encoder: dict[str, Any] = dict(d_model=8, nhead=2, dim_feedforward=6, dropout=0.0)
add("attention/encoder", "layer:TransformerEncoderLayer", _sequence, **_encoder)
add(
    "attention/encoder_first",
    "layer:TransformerEncoderLayer",
    _sequence,
    normalize_before=True,
    activation="gelu",
    **_encoder,
)
_memory = {"x": weight(2, 4, 8), "memory": weight(2, 3, 8)}
add("attention/decoder", "layer:TransformerDecoderLayer", _memory, **_encoder)
add(
    "attention/transformer", "layer:Transformer", {"x": weight(2, 3, 8), "tgt": weight(2, 2, 8)},
    d_model=8, nhead=2, num_encoder_layers=2, num_decoder_layers=1, dim_feedforward=6, dropout=0.0,
)  # fmt: skip

_x = {"x": image(2, 5, 6, 4)}
add(
    "layer/conv_reflect",
    "layer:Conv2D",
    _x,
    True,
    in_channels=4,
    out_channels=3,
    kernel_size=3,
    padding=2,
    padding_mode="reflect",
)
add(
    "layer/conv_circular",
    "layer:Conv2D",
    _x,
    True,
    in_channels=4,
    out_channels=3,
    kernel_size=3,
    padding=1,
    stride=2,
    padding_mode="circular",
)
add("layer/weight_norm", "layer:weight_norm:Conv2D", _x, True, in_channels=4, out_channels=3, kernel_size=3)
add(
    "layer/weight_norm_linear", "layer:weight_norm:Linear", {"x": weight(2, 4)}, in_features=4, out_features=3
)
add(
    "layer/spectral_norm",
    "layer:spectral_norm:Conv2D",
    _x,
    True,
    in_channels=4,
    out_channels=3,
    kernel_size=3,
)
add(
    "layer/spectral_norm_linear",
    "layer:spectral_norm:Linear",
    {"x": weight(2, 4)},
    in_features=4,
    out_features=3,
)
# Values only: the gradient of Paddle's kernel is not that of its formula (checked by finite differences).
add(
    "layer/SpectralNorm",
    "layer:SpectralNorm",
    {"x": Array((3, 4, 2))},
    weight_shape=[3, 4, 2],
    dim=1,
    power_iters=2,
)
add("layer/InstanceNorm2D", "layer:InstanceNorm2D", _x, True, num_features=4)
add("layer/BatchNorm2D", "layer:BatchNorm2D", _x, True, num_features=4, momentum=0.8)
add("layer/PReLU", "layer:PReLU", _x, True, num_parameters=4)
