"""More cases, added to CASES of functional_cases.py: 3-D pooling and its inverse, losses, what is seldom used.

They are held to 1e-6. Groups whose names end in _v3 are functions of Paddle 3 and need paddlepaddle 3.3.1; all others
2.6.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tools.golden.functional_cases import CASES, Array, add, image, weight

_before = len(CASES)

# -- pooling and convolution of three axes, places of maxima ------------------------------------------------------

_volume = {"x": image(2, 5, 4, 7, 3)}
_window: dict[str, Any] = dict(kernel_size=3, stride=2, padding=1)
for _ceil in (False, True):
    add(f"pool3d/max_ceil{int(_ceil)}", "max_pool3d", _volume, True, ceil_mode=_ceil, **_window)
    add(f"pool3d/avg_ceil{int(_ceil)}", "avg_pool3d", _volume, True, ceil_mode=_ceil, **_window)
add("pool3d/avg_inclusive", "avg_pool3d", _volume, True, exclusive=False, ceil_mode=True, **_window)
add("pool3d/avg_divisor", "avg_pool3d", _volume, True, divisor_override=5, **_window)
add(
    "pool3d/max_k213", "max_pool3d", _volume, True, kernel_size=[2, 1, 3], stride=[1, 2, 2], padding=[1, 0, 1]
)
add("pool3d/max_six_pads", "max_pool3d", _volume, True, kernel_size=3, stride=2, padding=[1, 0, 0, 1, 1, 1])
add("pool3d/avg_same", "avg_pool3d", _volume, True, kernel_size=2, stride=2, padding="SAME")
add("pool3d/adaptive_avg", "adaptive_avg_pool3d", _volume, True, output_size=[3, None, 2])
add("pool3d/adaptive_avg_one", "adaptive_avg_pool3d", _volume, True, output_size=1)
add("pool3d/adaptive_max", "adaptive_max_pool3d", _volume, True, output_size=[2, 3, 4])
add(
    "pool3d/adaptive_max_places",
    "adaptive_max_pool3d",
    _volume,
    True,
    output_size=[3, 2, 4],
    return_mask=True,
)
add("pool3d/max_places", "max_pool3d", _volume, True, return_mask=True, **_window)
_flat, _line = {"x": image(2, 5, 8, 3)}, {"x": image(2, 9, 3)}
add("pool3d/max_places_2d", "max_pool2d", _flat, True, return_mask=True, **_window)
add("pool3d/max_places_1d", "max_pool1d", _line, True, return_mask=True, **_window)
add("pool3d/adaptive_max_places_2d", "adaptive_max_pool2d", _flat, True, output_size=[3, 5], return_mask=True)
add("pool3d/adaptive_max_places_1d", "adaptive_max_pool1d", _line, True, output_size=4, return_mask=True)
add("pool3d/avg2d_divisor", "avg_pool2d", _flat, True, divisor_override=7, **_window)


def _places(count: int, *shape: int) -> Array:
    """Distinct places below `count` for the values of each channel; `shape` is channels-last."""
    rng = np.random.default_rng(count)
    n, c, inner = shape[0], shape[-1], int(np.prod(shape[1:-1]))
    rows = [[rng.permutation(count)[:inner] for _ in range(c)] for _ in range(n)]
    values = np.moveaxis(np.asarray(rows), 1, 2).reshape(shape)
    return Array(values=values.tolist(), dtype="int32", image=True)


_unpool = {"x": image(2, 3, 4, 2), "indices": _places(48, 2, 3, 4, 2)}
add("unpool/plane", "max_unpool2d", _unpool, True, kernel_size=2)
add("unpool/plane_size", "max_unpool2d", _unpool, True, kernel_size=2, stride=2, output_size=[7, 8])
_unpool = {"x": image(2, 4, 3), "indices": _places(7, 2, 4, 3)}
add("unpool/line_padded", "max_unpool1d", _unpool, True, kernel_size=3, stride=2, padding=1)
_unpool = {"x": image(1, 2, 2, 3, 2), "indices": _places(96, 1, 2, 2, 3, 2)}
add("unpool/volume", "max_unpool3d", _unpool, True, kernel_size=2)

for _name, _per_group, _options in (
    ("plain", 2, {"stride": 2, "padding": 1, "output_padding": [1, 0, 1]}),
    ("groups", 2, {"stride": [1, 2, 2], "padding": [1, 0, 1, 1, 0, 1], "groups": 2}),
    ("dilated", 3, {"dilation": [2, 1, 2]}),
):
    _arrays = {
        "x": image(1, 3, 4, 2, 4),
        "weight": weight(4, _per_group, 3, 3, 2),
        "bias": weight(_per_group * _options.get("groups", 1)),
    }
    add(f"conv3d/transpose_{_name}", "conv3d_transpose", _arrays, True, **_options)

# -- losses -------------------------------------------------------------------------------------------------------

_pair = {"input": weight(5, 3), "label": Array((5, 3), "sign")}
_binary = {
    "input": weight(5, 3),
    "label": Array(values=[[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]]),
}
_scores = {"input": weight(7, 5), "label": Array((7,), "int", high=5)}
_classes = {"weight": Array((5,), "uniform")}
_counts = {
    "input": weight(5, 3),
    "label": Array(values=[[0, 1, 2], [3, 0, 7], [1, 1, 4], [2, 9, 0], [5, 5, 1]]),
}
_gauss = {"input": weight(5, 3), "label": Array((5, 3)), "variance": Array((5, 3), "uniform")}
for _reduction in ("mean", "sum", "none"):
    add(f"margins/hinge_{_reduction}", "hinge_embedding_loss", _pair, margin=0.7, reduction=_reduction)
    add(f"margins/soft_{_reduction}", "soft_margin_loss", _pair, reduction=_reduction)
    add(f"margins/labels_{_reduction}", "multi_label_soft_margin_loss", _binary, reduction=_reduction)
    add(f"margins/classes_{_reduction}", "multi_margin_loss", _scores, reduction=_reduction)
    add(f"margins/gauss_{_reduction}", "gaussian_nll_loss", _gauss, reduction=_reduction)
    add(f"margins/poisson_{_reduction}", "poisson_nll_loss", _counts, reduction=_reduction)
_weights = {"weight": Array((3,), "uniform")}
add("margins/labels_weight", "multi_label_soft_margin_loss", _binary | _weights)
add("margins/classes_p2", "multi_margin_loss", _scores, p=2, margin=0.5)
add("margins/classes_weight", "multi_margin_loss", _scores | _classes)
add("margins/gauss_full", "gaussian_nll_loss", _gauss | {"variance": Array((5,), "uniform")}, full=True)
add("margins/poisson_full", "poisson_nll_loss", _counts, full=True)
_positive = _counts | {"input": Array((5, 3), "uniform", grad=True)}
add("margins/poisson_rate", "poisson_nll_loss", _positive, log_input=False, full=True, reduction="none")
_triple = {"input": weight(4, 3), "positive": weight(4, 3), "negative": weight(4, 3)}
for _swap in (False, True):
    add(f"margins/triplet{int(_swap)}", "triplet_margin_with_distance_loss", _triple, margin=2.0, swap=_swap)
_npair = {"anchor": weight(5, 4), "positive": weight(5, 4), "labels": Array(values=[0.0, 1, 0, 2, 1])}
add("margins/npair", "npair_loss", _npair, l2_reg=0.01)
_tree = {"input": weight(4, 3), "label": Array(values=[[0], [5], [2], [6]], dtype="int64")}
_nodes = {"weight": weight(6, 3), "bias": weight(6, 1)}
add("margins/hsigmoid", "hsigmoid_loss", _tree | _nodes, num_classes=7)
_full = {
    "input": weight(4, 3),
    "label": Array(values=[[0], [3], [2], [1]], dtype="int64"),
    "weight": weight(3, 3),
}
add("margins/hsigmoid_full_tree", "hsigmoid_loss", _full, num_classes=4)
_path = {
    "path_table": Array(values=[[0, 2, -1], [0, 1, 2], [0, 1, -1], [0, 3, 4]], dtype="int64"),
    "path_code": Array(values=[[0, 1, -1], [1, 0, 0], [0, 0, -1], [1, 0, 1]], dtype="int64"),
}
add("margins/hsigmoid_path", "hsigmoid_loss", _tree | _nodes | _path, num_classes=7)
for _name, _p in (("1", 1.0), ("2", 2.0), ("3", 3.0), ("inf", float("inf")), ("0", 0.0)):
    add(f"margins/distance_{_name}", "pairwise_distance", {"x": weight(4, 3), "y": weight(4, 3)}, p=_p)
add("margins/distance_keep", "pairwise_distance", {"x": weight(3), "y": weight(3)}, keepdim=True, epsilon=0.1)
_transducer = {
    "input": weight(3, 6, 4, 5),
    "label": Array(values=[[1, 2, 3], [4, 4, 0], [2, 0, 0]], dtype="int32"),
    "input_lengths": Array(values=[6, 5, 3], dtype="int32"),
    "label_lengths": Array(values=[3, 2, 1], dtype="int32"),
}
for _reduction in ("mean", "sum", "none"):
    add(f"margins/rnnt_{_reduction}", "rnnt_loss", _transducer, reduction=_reduction, fastemit_lambda=0.0)
add("margins/rnnt_fastemit", "rnnt_loss", _transducer, reduction="sum", fastemit_lambda=0.1)

# -- seldom used --------------------------------------------------------------------------------------------------

for _rank, _x in (("line", _line), ("plane", _flat), ("volume", _volume)):
    add(f"seldom/lrn_{_rank}", "local_response_norm", _x, True, size=2, alpha=0.3, beta=0.6, k=1.5)
add("seldom/lrn_wide", "local_response_norm", _flat, True, size=5)
_two = {"x1": weight(4, 3), "x2": weight(4, 5), "weight": weight(2, 3, 5), "bias": weight(1, 2)}
add("seldom/bilinear", "bilinear", _two)
add("seldom/rrelu_eval", "rrelu", {"x": weight(3, 8)}, training=False, lower=0.1, upper=0.4)
add("seldom/temporal_shift", "temporal_shift", {"x": image(6, 2, 3, 8)}, True, seg_num=3, shift_ratio=0.2)
add("seldom/zeropad", "zeropad2d", {"x": image(2, 3, 4, 2)}, True, padding=[1, 0, 2, 3])
add("seldom/mask", "sequence_mask", {"x": Array(values=[[3, 0], [5, 2]], dtype="int64")}, maxlen=4)
_beams = {
    "ids": Array((4, 2, 3), "int", high=9),
    "parents": Array((4, 2, 3), "int", high=3),
}
add("seldom/gather_tree", "gather_tree", _beams)

# -- of Paddle 3 --------------------------------------------------------------------------------------------------

for _name, _x, _p in (
    ("2", _flat, 2.0),
    ("3", {"x": Array((2, 5, 8, 3), "uniform", image=True, grad=True)}, 3.0),
):
    add(f"pool_v3/lp2d_{_name}", "lp_pool2d", _x, True, norm_type=_p, kernel_size=3, stride=2, padding=1)
add("pool_v3/lp2d_ceil", "lp_pool2d", _flat, True, norm_type=2.0, kernel_size=3, stride=2, ceil_mode=True)
# Paddle 2.6 drops ceil_mode here.
add(
    "pool_v3/max_places_2d_ceil",
    "max_pool2d",
    _flat,
    True,
    return_mask=True,
    ceil_mode=True,
    kernel_size=2,
    stride=2,
)
add("pool_v3/lp1d", "lp_pool1d", _line, True, norm_type=2.0, kernel_size=3, stride=2)
add("pool_v3/lp1d_inf", "lp_pool1d", _line, True, norm_type=float("inf"), kernel_size=3, stride=2)
for _name, _x, _options in (
    ("disjoint", _flat, {"output_size": [2, 3], "random_u": 0.3}),
    ("kernel", _flat, {"output_size": [3, 4], "kernel_size": 2, "random_u": 0.7}),
    ("volume", _volume, {"output_size": [2, 3, 4], "random_u": 0.6}),
):
    _op = f"fractional_max_pool{3 if _name == 'volume' else 2}d"
    add(f"pool_v3/fractional_{_name}", _op, _x, True, return_mask=True, **_options)
_several = Array(
    values=[[0, 3, -1, 1, -1], [4, -1, -1, -1, -1], [1, 2, 0, -1, 3], [-1, 2, 3, 1, 0]], dtype="int64"
)
for _reduction in ("mean", "sum", "none"):
    _arrays = {"input": weight(4, 5), "label": _several}
    add(f"margins_v3/several_{_reduction}", "multi_label_margin_loss", _arrays, reduction=_reduction)
# Paddle 2.6 has the weight inside of the power, and takes it off outside.
add("margins_v3/classes_weight_p2", "multi_margin_loss", _scores | _classes, p=2)
add("margins_v3/swiglu", "swiglu", {"x": weight(3, 8)})
add("margins_v3/swiglu_two", "swiglu", {"x": weight(3, 8), "y": weight(3, 8)})

for _number in range(_before, len(CASES)):
    CASES[_number] = replace(CASES[_number], tolerance=1e-6)
