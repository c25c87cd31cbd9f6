"""More cases beside those of functional_cases.py: 3-D pooling and its inverse, losses, what is seldom used.

They are held to 1e-6. Groups whose names end in _v3 are functions of Paddle 3 and need paddlepaddle 3.3.1; all others
2.6.2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np


def more_cases(kit: Any) -> list[Any]:
    """The cases, made by `kit`: the module functional_cases, which the generator and the test import by two names."""
    before = len(kit.CASES)
    add, image, weight, Array = kit.add, kit.image, kit.weight, kit.Array

    # -- 3-D, places of maxima ---

    volume = {"x": image(2, 5, 4, 7, 3)}
    window: dict[str, Any] = dict(kernel_size=3, stride=2, padding=1)
    for ceil in (False, True):
        add(f"pool3d/max_ceil{int(ceil)}", "max_pool3d", volume, True, ceil_mode=ceil, **window)
        add(f"pool3d/avg_ceil{int(ceil)}", "avg_pool3d", volume, True, ceil_mode=ceil, **window)
    add("pool3d/avg_inclusive", "avg_pool3d", volume, True, exclusive=False, ceil_mode=True, **window)
    add("pool3d/avg_divisor", "avg_pool3d", volume, True, divisor_override=5, **window)
    add(
        "pool3d/max_k213",
        "max_pool3d",
        volume,
        True,
        kernel_size=[2, 1, 3],
        stride=[1, 2, 2],
        padding=[1, 0, 1],
    )
    add(
        "pool3d/max_six_pads", "max_pool3d", volume, True, kernel_size=3, stride=2, padding=[1, 0, 0, 1, 1, 1]
    )
    add("pool3d/avg_same", "avg_pool3d", volume, True, kernel_size=2, stride=2, padding="SAME")
    add("pool3d/adaptive_avg", "adaptive_avg_pool3d", volume, True, output_size=[3, None, 2])
    add("pool3d/adaptive_avg_one", "adaptive_avg_pool3d", volume, True, output_size=1)
    add("pool3d/adaptive_max", "adaptive_max_pool3d", volume, True, output_size=[2, 3, 4])
    add(
        "pool3d/adaptive_max_places",
        "adaptive_max_pool3d",
        volume,
        True,
        output_size=[3, 2, 4],
        return_mask=True,
    )
    add("pool3d/max_places", "max_pool3d", volume, True, return_mask=True, **window)
    flat, line = {"x": image(2, 5, 8, 3)}, {"x": image(2, 9, 3)}
    add("pool3d/max_places_2d", "max_pool2d", flat, True, return_mask=True, **window)
    add("pool3d/max_places_1d", "max_pool1d", line, True, return_mask=True, **window)
    add(
        "pool3d/adaptive_max_places_2d",
        "adaptive_max_pool2d",
        flat,
        True,
        output_size=[3, 5],
        return_mask=True,
    )
    add("pool3d/adaptive_max_places_1d", "adaptive_max_pool1d", line, True, output_size=4, return_mask=True)
    add("pool3d/avg2d_divisor", "avg_pool2d", flat, True, divisor_override=7, **window)

    def places(count: int, *shape: int) -> Any:
        """Distinct places below `count` for the values of each channel; `shape` is channels-last."""
        rng = np.random.default_rng(count)
        n, c, inner = shape[0], shape[-1], int(np.prod(shape[1:-1]))
        rows = [[rng.permutation(count)[:inner] for _ in range(c)] for _ in range(n)]
        values = np.moveaxis(np.asarray(rows), 1, 2).reshape(shape)
        return Array(values=values.tolist(), dtype="int32", image=True)

    unpool = {"x": image(2, 3, 4, 2), "indices": places(48, 2, 3, 4, 2)}
    add("unpool/plane", "max_unpool2d", unpool, True, kernel_size=2)
    add("unpool/plane_size", "max_unpool2d", unpool, True, kernel_size=2, stride=2, output_size=[7, 8])
    unpool = {"x": image(2, 4, 3), "indices": places(7, 2, 4, 3)}
    add("unpool/line_padded", "max_unpool1d", unpool, True, kernel_size=3, stride=2, padding=1)
    unpool = {"x": image(1, 2, 2, 3, 2), "indices": places(96, 1, 2, 2, 3, 2)}
    add("unpool/volume", "max_unpool3d", unpool, True, kernel_size=2)

    for name, per_group, options in (
        ("plain", 2, {"stride": 2, "padding": 1, "output_padding": [1, 0, 1]}),
        ("groups", 2, {"stride": [1, 2, 2], "padding": [1, 0, 1, 1, 0, 1], "groups": 2}),
        ("dilated", 3, {"dilation": [2, 1, 2]}),
    ):
        arrays = {
            "x": image(1, 3, 4, 2, 4),
            "weight": weight(4, per_group, 3, 3, 2),
            "bias": weight(per_group * options.get("groups", 1)),
        }
        add(f"conv3d/transpose_{name}", "conv3d_transpose", arrays, True, **options)

    # -- losses ---

    pair = {"input": weight(5, 3), "label": Array((5, 3), "sign")}
    binary = {
        "input": weight(5, 3),
        "label": Array(values=[[0, 1, 1], [1, 0, 0], [0, 0, 1], [1, 1, 0], [0, 0, 0]]),
    }
    scores = {"input": weight(7, 5), "label": Array((7,), "int", high=5)}
    classes = {"weight": Array((5,), "uniform")}
    counts = {
        "input": weight(5, 3),
        "label": Array(values=[[0, 1, 2], [3, 0, 7], [1, 1, 4], [2, 9, 0], [5, 5, 1]]),
    }
    gauss = {"input": weight(5, 3), "label": Array((5, 3)), "variance": Array((5, 3), "uniform")}
    for reduction in ("mean", "none"):
        add(f"margins/hinge_{reduction}", "hinge_embedding_loss", pair, margin=0.7, reduction=reduction)
        add(f"margins/soft_{reduction}", "soft_margin_loss", pair, reduction=reduction)
        add(f"margins/labels_{reduction}", "multi_label_soft_margin_loss", binary, reduction=reduction)
        add(f"margins/classes_{reduction}", "multi_margin_loss", scores, reduction=reduction)
        add(f"margins/gauss_{reduction}", "gaussian_nll_loss", gauss, reduction=reduction)
        add(f"margins/poisson_{reduction}", "poisson_nll_loss", counts, reduction=reduction)
    weights = {"weight": Array((3,), "uniform")}
    add("margins/labels_weight", "multi_label_soft_margin_loss", binary | weights)
    add("margins/classes_p2", "multi_margin_loss", scores, p=2, margin=0.5)
    add("margins/classes_weight", "multi_margin_loss", scores | classes)
    add("margins/gauss_full", "gaussian_nll_loss", gauss | {"variance": Array((5,), "uniform")}, full=True)
    add("margins/poisson_full", "poisson_nll_loss", counts, full=True)
    positive = counts | {"input": Array((5, 3), "uniform", grad=True)}
    add("margins/poisson_rate", "poisson_nll_loss", positive, log_input=False, full=True, reduction="none")
    triple = {"input": weight(4, 3), "positive": weight(4, 3), "negative": weight(4, 3)}
    for swap in (False, True):
        add(f"margins/triplet{int(swap)}", "triplet_margin_with_distance_loss", triple, margin=2.0, swap=swap)
    npair = {"anchor": weight(5, 4), "positive": weight(5, 4), "labels": Array(values=[0.0, 1, 0, 2, 1])}
    add("margins/npair", "npair_loss", npair, l2_reg=0.01)
    tree = {"input": weight(4, 3), "label": Array(values=[[0], [5], [2], [6]], dtype="int64")}
    nodes = {"weight": weight(6, 3), "bias": weight(6, 1)}
    add("margins/hsigmoid", "hsigmoid_loss", tree | nodes, num_classes=7)
    full = {
        "input": weight(4, 3),
        "label": Array(values=[[0], [3], [2], [1]], dtype="int64"),
        "weight": weight(3, 3),
    }
    add("margins/hsigmoid_full_tree", "hsigmoid_loss", full, num_classes=4)
    path = {
        "path_table": Array(values=[[0, 2, -1], [0, 1, 2], [0, 1, -1], [0, 3, 4]], dtype="int64"),
        "path_code": Array(values=[[0, 1, -1], [1, 0, 0], [0, 0, -1], [1, 0, 1]], dtype="int64"),
    }
    add("margins/hsigmoid_path", "hsigmoid_loss", tree | nodes | path, num_classes=7)
    for name, p in (("1", 1.0), ("2", 2.0), ("3", 3.0), ("inf", float("inf")), ("0", 0.0)):
        add(f"margins/distance_{name}", "pairwise_distance", {"x": weight(4, 3), "y": weight(4, 3)}, p=p)
    add(
        "margins/distance_keep",
        "pairwise_distance",
        {"x": weight(3), "y": weight(3)},
        keepdim=True,
        epsilon=0.1,
    )
    transducer = {
        "input": weight(3, 6, 4, 5),
        "label": Array(values=[[1, 2, 3], [4, 4, 0], [2, 0, 0]], dtype="int32"),
        "input_lengths": Array(values=[6, 5, 3], dtype="int32"),
        "label_lengths": Array(values=[3, 2, 1], dtype="int32"),
    }
    for reduction in ("mean", "none"):
        add(f"margins/rnnt_{reduction}", "rnnt_loss", transducer, reduction=reduction, fastemit_lambda=0.0)
    add("margins/rnnt_fastemit", "rnnt_loss", transducer, reduction="sum", fastemit_lambda=0.1)

    # -- seldom used ---

    for rank, x in (("line", line), ("plane", flat), ("volume", volume)):
        add(f"seldom/lrn_{rank}", "local_response_norm", x, True, size=2, alpha=0.3, beta=0.6, k=1.5)
    add("seldom/lrn_wide", "local_response_norm", flat, True, size=5)
    two = {"x1": weight(4, 3), "x2": weight(4, 5), "weight": weight(2, 3, 5), "bias": weight(1, 2)}
    add("seldom/bilinear", "bilinear", two)
    add("seldom/rrelu_eval", "rrelu", {"x": weight(3, 8)}, training=False, lower=0.1, upper=0.4)
    add("seldom/temporal_shift", "temporal_shift", {"x": image(6, 2, 3, 8)}, True, seg_num=3, shift_ratio=0.2)
    add("seldom/zeropad", "zeropad2d", {"x": image(2, 3, 4, 2)}, True, padding=[1, 0, 2, 3])
    add("seldom/mask", "sequence_mask", {"x": Array(values=[[3, 0], [5, 2]], dtype="int64")}, maxlen=4)
    beams = {
        "ids": Array((4, 2, 3), "int", high=9),
        "parents": Array((4, 2, 3), "int", high=3),
    }
    add("seldom/gather_tree", "gather_tree", beams)

    # -- of Paddle 3 ---

    for name, x, p in (
        ("2", flat, 2.0),
        ("3", {"x": Array((2, 5, 8, 3), "uniform", image=True, grad=True)}, 3.0),
    ):
        add(f"pool_v3/lp2d_{name}", "lp_pool2d", x, True, norm_type=p, kernel_size=3, stride=2, padding=1)
    add("pool_v3/lp2d_ceil", "lp_pool2d", flat, True, norm_type=2.0, kernel_size=3, stride=2, ceil_mode=True)
    # Paddle 2.6 drops ceil_mode here.
    add(
        "pool_v3/max_places_2d_ceil",
        "max_pool2d",
        flat,
        True,
        return_mask=True,
        ceil_mode=True,
        kernel_size=2,
        stride=2,
    )
    add("pool_v3/lp1d", "lp_pool1d", line, True, norm_type=2.0, kernel_size=3, stride=2)
    add("pool_v3/lp1d_inf", "lp_pool1d", line, True, norm_type=float("inf"), kernel_size=3, stride=2)
    for name, x, options in (
        ("disjoint", flat, {"output_size": [2, 3], "random_u": 0.3}),
        ("kernel", flat, {"output_size": [3, 4], "kernel_size": 2, "random_u": 0.7}),
        ("volume", volume, {"output_size": [2, 3, 4], "random_u": 0.6}),
    ):
        op = f"fractional_max_pool{3 if name == 'volume' else 2}d"
        add(f"pool_v3/fractional_{name}", op, x, True, return_mask=True, **options)
    several = Array(
        values=[[0, 3, -1, 1, -1], [4, -1, -1, -1, -1], [1, 2, 0, -1, 3], [-1, 2, 3, 1, 0]], dtype="int64"
    )
    for reduction in ("mean", "none"):
        arrays = {"input": weight(4, 5), "label": several}
        add(f"margins_v3/several_{reduction}", "multi_label_margin_loss", arrays, reduction=reduction)
    # Paddle 2.6 has the weight inside of the power, and takes it off outside.
    add("margins_v3/classes_weight_p2", "multi_margin_loss", scores | classes, p=2)
    add("margins_v3/swiglu", "swiglu", {"x": weight(3, 8)})
    add("margins_v3/swiglu_two", "swiglu", {"x": weight(3, 8), "y": weight(3, 8)})

    made = [replace(case, tolerance=1e-6) for case in kit.CASES[before:]]
    del kit.CASES[before:]
    return made
