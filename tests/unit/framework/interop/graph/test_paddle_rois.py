"""Paddle's operators of proposals and anchors, `unique` and numbers of 8 bits; values are of Paddle 2.6.2."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.inference.graph_engine import GraphEngine
from framework.interop.graph.paddle import build_paddle_layer
from framework.interop.programs.program import Node, Program, TensorSpec


def run(op: str, inputs: dict[str, Any], outputs: dict[str, int], **attrs: Any) -> dict[str, np.ndarray]:
    """The outputs of one operator; a slot with several arrays or results has numbered names."""
    pairs = [
        (slot, f"{slot}{i}", a)
        for slot, one in inputs.items()
        for i, a in enumerate(one if isinstance(one, list) else [one])
    ]
    results = [(slot, f"{slot}_{i}") for slot, count in outputs.items() for i in range(count)]
    node = Node(
        op, op, tuple(name for _, name, _ in pairs), tuple(name for _, name in results), attrs,
        tuple(slot for slot, *_ in pairs), tuple(slot for slot, _ in results),
    )  # fmt: skip
    specs = tuple(TensorSpec(name, a.shape, a.dtype.name) for _, name, a in pairs)
    program = Program(
        "pdmodel", "2.6.2", (node,), {}, specs, tuple(TensorSpec(n, (), "") for _, n in results)
    )
    return GraphEngine(build_paddle_layer(program))({name: a for _, name, a in pairs})


def test_unique() -> None:
    slots = {"Out": 1, "Indices": 1, "Index": 1, "Counts": 1}
    got = run("unique", {"X": np.int64([4, 2, 4, 1, 2])}, slots, is_sorted=True, dtype=3)
    assert [array.tolist() for array in got.values()] == [[1, 2, 4], [3, 1, 0], [2, 1, 2, 0, 1], [1, 2, 2]]
    got = run("unique", {"X": np.int64([4, 2, 4, 1, 2])}, {"Out": 1, "Index": 1})
    assert [array.tolist() for array in got.values()] == [[4, 2, 1], [0, 1, 0, 2, 1]]


@pytest.mark.parametrize(
    ("op", "round_type", "expected"),
    [
        ("quantize_linear", 0, [[64, 127], [-64, 2]]),
        ("quantize_linear", 1, [[64, 127], [-64, 3]]),
        ("dequantize_linear", 0, [[0.5 / 127, 4 / 127], [-0.5 / 127, 0.0196850393 * 4 / 127]]),
    ],
)
def test_numbers_of_8_bits_with_a_scale_for_each_column(op: str, round_type: int, expected: list) -> None:
    x, scale = np.float32([[0.5, 2.0], [-0.5, 0.0196850393 * 2]]), np.float32([1.0, 2.0])
    x[1, 1] = np.float32(2.5 * 2 / 127) if op == "quantize_linear" else x[1, 1]
    inputs = {"X": x, "Scale": scale, "ZeroPoint": np.zeros(2, np.float32)}
    got = run(op, inputs, {"Y": 1}, quant_axis=1, bit_length=8, round_type=round_type)["Y_0"]
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_prior_boxes() -> None:
    inputs = {"Input": np.zeros((1, 8, 1, 2), np.float32), "Image": np.zeros((1, 3, 64, 80), np.float32)}
    settings = {"min_sizes": [16.0], "max_sizes": [25.0], "aspect_ratios": [4.0], "flip": True, "clip": True}
    got = run("prior_box", inputs, {"Boxes": 1, "Variances": 1}, variances=[0.1, 0.1, 0.2, 0.2], **settings)
    boxes = got["Boxes_0"]
    assert boxes.shape == (1, 2, 4, 4) and got["Variances_0"][0, 1, 3].tolist() == pytest.approx(
        [0.1, 0.1, 0.2, 0.2]
    )
    centre = np.array([20, 32])
    sides = np.array([[16, 16], [32, 8], [8, 32], [20, 20]])
    expected = np.concatenate([centre - sides / 2, centre + sides / 2], 1) / [80, 64, 80, 64]
    np.testing.assert_allclose(boxes[0, 0], expected, rtol=1e-6)


def test_regions_go_to_levels_and_come_back() -> None:
    rows = np.float32([[0, 0, 9, 9], [0, 0, 223, 223], [5, 5, 500, 600], [0, 0, 111, 111]])
    outputs = {"MultiFpnRois": 4, "RestoreIndex": 1, "MultiLevelRoIsNum": 4}
    settings = {"min_level": 2, "max_level": 5, "refer_level": 4, "refer_scale": 224, "pixel_offset": True}
    got = run("distribute_fpn_proposals", {"FpnRois": rows, "RoisNum": np.int32([1, 3])}, outputs, **settings)
    levels = [got[f"MultiFpnRois_{i}"] for i in range(4)]
    assert [len(level) for level in levels] == [1, 1, 1, 1]
    np.testing.assert_array_equal(np.concatenate(levels)[got["RestoreIndex_0"][:, 0]], rows)
    assert [got[f"MultiLevelRoIsNum_{i}"].tolist() for i in range(4)] == [[1, 0], [0, 1], [0, 1], [0, 1]]
    best = run(
        "collect_fpn_proposals",
        {
            "MultiLevelRois": [rows[:2], rows[2:]],
            "MultiLevelScores": [np.float32([[0.1], [0.9]]), np.float32([[0.8], [0.7]])],
            "MultiLevelRoIsNum": [np.int32([1, 1]), np.int32([1, 1])],
        },
        {"FpnRois": 1, "RoisNum": 1},
        post_nms_topN=3,
    )
    np.testing.assert_array_equal(best["FpnRois_0"], rows[[2, 1, 3]])
    assert best["RoisNum_0"].tolist() == [1, 2]


def test_proposals_are_decoded_clipped_and_suppressed() -> None:
    anchors = np.float32([[0, 0, 20, 20], [1, 1, 21, 21], [40, 40, 80, 80], [5, 5, 5.5, 5.5]]).reshape(
        1, 4, 1, 4
    )
    inputs = {
        "Scores": np.float32([0.9, 0.8, 0.7, 0.6]).reshape(1, 1, 1, 4),
        "BboxDeltas": np.zeros((1, 4, 1, 4), np.float32),
        "ImShape": np.float32([[60, 70]]),
        "Anchors": anchors,
        "Variances": np.ones_like(anchors),
    }
    settings = {"pre_nms_topN": 10, "post_nms_topN": 5, "nms_thresh": 0.5, "min_size": 2.0, "eta": 1.0}
    outputs = {"RpnRois": 1, "RpnRoiProbs": 1, "RpnRoisNum": 1}
    got = run("generate_proposals_v2", inputs, outputs, pixel_offset=False, **settings)
    np.testing.assert_allclose(got["RpnRois_0"], [[0, 0, 20, 20], [40, 40, 70, 60]], atol=1e-4)
    assert got["RpnRoisNum_0"].tolist() == [2] and got["RpnRoiProbs_0"].ravel().tolist() == pytest.approx(
        [0.9, 0.7]
    )


def test_boxes_become_offsets_and_boxes_again() -> None:
    anchors, boxes = np.float32([[0, 0, 10, 20], [4, 4, 8, 6]]), np.float32([[1, 2, 9, 16]])
    settings = {"axis": 0, "box_normalized": True, "variance": (0.1, 0.1, 0.2, 0.2)}
    inputs = {"PriorBox": anchors, "TargetBox": boxes}
    offsets = run("box_coder", inputs, {"OutputBox": 1}, code_type="encode_center_size", **settings)[
        "OutputBox_0"
    ]
    expected = [0, -0.5, np.log(0.8) / 0.2, np.log(0.7) / 0.2]
    np.testing.assert_allclose(offsets[0, 0], expected, rtol=1e-5, atol=1e-6)
    back = run(
        "box_coder",
        inputs | {"TargetBox": offsets},
        {"OutputBox": 1},
        code_type="decode_center_size",
        **settings,
    )
    np.testing.assert_allclose(back["OutputBox_0"], np.repeat(boxes[:, None], 2, 1), rtol=1e-5)


def test_runs_ranks_and_repeats() -> None:
    x = np.int64([3, 3, 1, 3, 3, 3])
    got = run("unique_consecutive", {"X": x}, {"Out": 1, "Index": 1, "Counts": 1}, dtype=3)
    assert [array.tolist() for array in got.values()] == [[3, 1, 3], [0, 0, 1, 2, 2, 2], [2, 1, 3]]
    rows = np.float32([[5, 1, 4], [2, 9, 3]])
    got = run("kthvalue", {"X": rows}, {"Out": 1, "Indices": 1}, axis=1, k=2)
    assert [array.tolist() for array in got.values()] == [[4, 3], [2, 2]]
    got = run("repeat_interleave", {"X": rows}, {"Out": 1}, Repeats=2, dim=0)
    np.testing.assert_array_equal(got["Out_0"], rows[[0, 0, 1, 1]])
    counted = {"X": rows, "RepeatsTensor": np.int32([1, 2])}
    got = run("repeat_interleave", counted, {"Out": 1}, Repeats=3, dim=0)
    np.testing.assert_array_equal(got["Out_0"], rows[[0, 1, 1]])
    got = run(
        "searchsorted", {"SortedSequence": np.float32([1, 3, 5]), "Values": np.float32([3, 6])}, {"Out": 1}
    )
    assert got["Out_0"].tolist() == [1, 3]
    boxes = np.float32([[0, 0, 10, 10], [1, 1, 11, 11], [30, 30, 40, 40]])
    assert run("nms", {"Boxes": boxes}, {"KeepBoxesIdxs": 1}, iou_threshold=0.5)[
        "KeepBoxesIdxs_0"
    ].tolist() == [0, 2]


def test_integers_have_the_types_of_paddle_and_64_bits() -> None:
    x, i = np.float32([[1, 3, 2]]), np.int64([[5, -7, 9]])
    factor = run("scale", {"X": i}, {"Out": 1}, scale=3e9)["Out_0"]
    assert (factor.dtype, factor.tolist()) == (np.int64, [[15_000_000_000, -21_000_000_000, 27_000_000_000]])
    count = run("reduce_sum", {"X": x > 1}, {"Out": 1}, dim=[1], out_dtype=-1)["Out_0"]
    assert (count.dtype, count.tolist()) == (np.int64, [2])
    total = run("reduce_sum", {"X": np.int32([2**31 - 1, 1])}, {"Out": 1}, dim=[0], out_dtype=-1)["Out_0"]
    assert (total.dtype, total.tolist()) == (np.int64, 2**31)
    for op, slot in (("kthvalue", "Indices"), ("top_k_v2", "Indices")):  # declared as nothing, or as float32
        index = run(op, {"X": x}, {"Out": 1, slot: 1}, k=2)[f"{slot}_0"]
        assert index.dtype == np.int64, op


def test_same_of_a_transposed_convolution_is_that_of_its_input() -> None:
    """Values of Paddle 2.6.2: dilation does not count, and the output is not the input's size times the stride."""
    x = np.arange(12, dtype=np.float32).reshape(1, 1, 4, 3)
    kernel = np.arange(6, dtype=np.float32).reshape(1, 1, 3, 2) - 2
    settings = {"strides": [2, 1], "dilations": [1, 2], "padding_algorithm": "SAME"}
    got = run("conv2d_transpose", {"Input": x, "Filter": kernel}, {"Output": 1}, **settings)["Output_0"]
    assert got[0, 0].tolist() == [
        [0, -2, -5], [0, 0, 1], [-6, -9, -7], [0, 3, 4], [-6, -3, -1], [0, 6, 7], [-6, 3, 5], [0, 9, 10],
    ]  # fmt: skip
