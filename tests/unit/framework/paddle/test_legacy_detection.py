"""Operators of older detectors, hashes and losses over sequences, as Paddle's older programs have them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from framework import paddle
from framework.paddle._kernel.operators import run_operator
from framework.paddle.legacy_operators import Levels
from framework.paddle.legacy_operators.hashing import xxh64

BOXES = np.array([[0, 0, 9, 9], [20, 20, 29, 29]], np.float32)


def _run(
    op: str, slots: dict[str, np.ndarray], lod: Mapping[str, Levels] | None = None, **attrs: object
) -> dict[str, np.ndarray]:
    tensors = {slot: [paddle.to_tensor(array)] for slot, array in slots.items()}
    results = run_operator(
        op, tensors, attrs, {"Out": 1}, {slot: [levels] for slot, levels in (lod or {}).items()}
    )
    return {slot: values[0].numpy() for slot, values in results.items()}


def _truth(**others: np.ndarray) -> dict[str, np.ndarray]:
    """Two boxes, the second of which is a crowd, in an image of 64 x 64."""
    info, crowd = np.array([[64, 64, 1]], np.float32), np.array([0, 1], np.int32)
    return {"GtBoxes": BOXES, "IsCrowd": crowd, "ImInfo": info, **others}


def test_proposals_are_labelled_by_the_boxes_that_they_overlap():
    rois = np.array([[0, 0, 9, 8], [40, 40, 50, 50]], np.float32)
    slots = _truth(RpnRois=rois, GtClasses=np.array([3, 2], np.int32))
    lod: dict[str, Levels] = {slot: [[2]] for slot in ("GtBoxes", "IsCrowd", "GtClasses", "RpnRois")}
    out = _run("generate_proposal_labels", slots, lod, class_nums=4, use_random=False, batch_size_per_im=8)
    assert out["LabelsInt32"].ravel().tolist() == [3, 3, 0]  # the box itself, the near RoI, the far one
    np.testing.assert_allclose(out["MaxOverlapWithGT"], [1, 0.9, 0], rtol=1e-6)
    assert out["BboxInsideWeights"].reshape(3, 4, 4)[:, :, 0].tolist() == [
        [0, 0, 0, 1],
        [0, 0, 0, 1],
        [0] * 4,
    ]
    expected = [0, (5 - 4.5) / 9 / 0.1, 0, np.log(10 / 9) / 0.2]
    np.testing.assert_allclose(out["BboxTargets"][1, 12:], expected, rtol=1e-5, atol=1e-6)


def test_anchors_outside_the_image_are_not_trained():
    anchors = np.array([[0, 0, 9, 9], [1, 0, 10, 9], [-5, 0, 5, 9], [40, 40, 49, 49]], np.float32)
    lod: dict[str, Levels] = {slot: [[2]] for slot in ("GtBoxes", "IsCrowd")}
    out = _run("rpn_target_assign", _truth(Anchor=anchors), lod, use_random=False)
    assert out["LocationIndex"].tolist() == [0, 1] and out["ScoreIndex"].tolist() == [0, 1, 3]
    assert out["TargetLabel"].ravel().tolist() == [1, 1, 0]
    np.testing.assert_allclose(out["TargetBBox"], [[0, 0, 0, 0], [-0.1, 0, 0, 0]], atol=1e-6)
    classes = _truth(Anchor=anchors, GtLabels=np.array([[7], [2]], np.int32))
    out = _run("retinanet_target_assign", classes, {**lod, "GtLabels": [[2]]}, positive_overlap=0.7)
    assert out["TargetLabel"].ravel().tolist() == [7, 7, 0] and out["ForegroundNumber"].tolist() == [[3]]


def test_priors_are_decoded_and_get_the_box_of_their_best_class_but_the_background():
    scores, deltas = np.array([[0.9, 0.1]], np.float32), np.zeros((1, 8), np.float32)
    deltas[0, 4] = 10
    variances = np.full(4, 0.1, np.float32)
    slots = {"PriorBox": BOXES[:1], "PriorBoxVar": variances, "TargetBox": deltas, "BoxScore": scores}
    out = _run("box_decoder_and_assign", slots, box_clip=4.0)
    assert out["DecodeBox"].tolist() == [[0, 0, 9, 9, 10, 0, 19, 9]]
    assert out["OutputAssignBox"].tolist() == [[10, 0, 19, 9]]


@pytest.mark.parametrize("corners", [False, True])
def test_neighbours_are_merged_before_the_suppression(corners: bool):
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 1.5], [3, 3, 4, 4]], np.float32)
    if corners:
        boxes = boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]]
    scores = np.array([[[0.25, 0.75, 0.5]]], np.float32)
    slots = {"BBoxes": boxes[None], "Scores": scores}
    out = _run("locality_aware_nms", slots, nms_threshold=0.5, score_threshold=0.1)["Out"]
    merged = 0.25 * boxes[0] + 0.75 * boxes[1]
    np.testing.assert_allclose(out, [[0, 1, *merged], [0, 0.5, *boxes[2]]], rtol=1e-6)
    assert _run("locality_aware_nms", slots, score_threshold=2.0)["Out"].tolist() == [[-1]]


def test_retinanet_decodes_the_best_scores_of_each_level():
    scores = np.array([[[0.1, 0.9], [0.02, 0.2]]], np.float32)
    slots = {"BBoxes": np.zeros((1, 2, 4), np.float32), "Scores": scores, "Anchors": BOXES}
    info = {"ImInfo": np.array([[25, 100, 1]], np.float32)}
    out = _run("retinanet_detection_output", {**slots, **info}, nms_top_k=3)["Out"]
    np.testing.assert_allclose(
        out, [[2, 0.9, 0, 0, 9, 9], [2, 0.2, 20, 20, 29, 24], [1, 0.1, 0, 0, 9, 9]], rtol=1e-6
    )


def test_the_mean_average_precision_goes_on_from_an_earlier_batch():
    truth = np.array([[1, 0, 0.1, 0.1, 0.3, 0.3], [2, 1, 0.5, 0.5, 0.8, 0.8]], np.float32)
    boxes = [[1, 0.9, 0.1, 0.1, 0.3, 0.3], [1, 0.8, 0.5, 0.1, 0.6, 0.3], [2, 0.7, 0.5, 0.5, 0.8, 0.8]]
    slots = {"Label": truth, "DetectRes": np.array(boxes, np.float32)}
    lod: dict[str, Levels] = {"Label": [[2]], "DetectRes": [[3]]}
    first = _run("detection_map", slots, lod, class_num=3)
    assert first["MAP"].tolist() == [1] and first["AccumPosCount"].ravel().tolist() == [0, 1, 1]
    assert first["AccumTruePos"][:, 1].tolist() == [1, 0, 1]
    state = {
        "HasState": np.array([1]),
        "PosCount": first["AccumPosCount"],
        "TruePos": first["AccumTruePos"],
        "FalsePos": first["AccumFalsePos"],
    }
    levels: Levels = [[0, 2, 1]]
    again = _run(
        "detection_map", {**slots, **state}, {**lod, "TruePos": levels, "FalsePos": levels}, class_num=3
    )
    assert again["AccumPosCount"].ravel().tolist() == [0, 2, 2] and len(again["AccumTruePos"]) == 6
    np.testing.assert_allclose(
        _run("detection_map", slots, lod, class_num=3, evaluate_difficult=False)["MAP"], [1]
    )


def test_rows_are_hashed_as_xxh64_does():
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999 and xxh64(b"abc", 0) == 0x44BC2CF5AD770999
    assert xxh64(b"a" * 40, 1) != xxh64(b"a" * 40, 2)
    out = _run("hash", {"X": np.array([[10], [5]], np.int64)}, num_hash=2, mod_by=2**32)["Out"]
    assert out.ravel().tolist() == [1204014882, 393011615, 3586283837, 2814821595]  # Paddle's values


def test_warpctc_takes_rows_of_sequences_or_padded_ones():
    logits = np.random.RandomState(0).randn(5, 4)
    labels = np.array([[1], [2], [3]], np.int32)
    rows = _run("warpctc", {"Logits": logits, "Label": labels}, {"Logits": [[3, 2]], "Label": [[2, 1]]})
    padded = np.zeros((3, 2, 4))
    padded[:, 0], padded[:2, 1] = logits[:3], logits[3:]
    lengths = {"LogitsLength": np.array([3, 2]), "LabelLength": np.array([2, 1])}
    slots = {"Logits": padded, "Label": np.array([[1, 2], [3, 0]], np.int32), **lengths}
    same = _run("warpctc", slots)["Loss"]
    assert rows["Loss"].shape == (2, 1)
    np.testing.assert_allclose(rows["Loss"], same, rtol=1e-6)


def test_matmul_multiplies_blocks_of_columns():
    random = np.random.RandomState(1)
    x, y, narrow = random.randn(2, 3, 8), random.randn(2, 8, 5), random.randn(2, 2, 12)
    out = _run("matmul", {"X": x, "Y": y}, head_number=4)["Out"]
    blocks = [x[..., 2 * i : 2 * i + 2] @ y[:, 2 * i : 2 * i + 2] for i in range(4)]
    np.testing.assert_allclose(out, np.concatenate(blocks, -1), rtol=1e-12)
    out = _run("matmul", {"X": x, "Y": narrow}, head_number=4)["Out"]
    blocks = [x[..., 2 * i : 2 * i + 2] @ narrow[..., 3 * i : 3 * i + 3] for i in range(4)]
    np.testing.assert_allclose(out, np.concatenate(blocks, -1), rtol=1e-12)


def test_trees_give_children_and_samples_of_each_layer():
    tree = np.array([[0, 0, 0, 0, 0], [0, 1, 0, 2, 3], [7, 2, 1, 0, 0], [0, 2, 1, 0, 0]], np.int32)
    out = _run("tdm_child", {"X": np.array([[1], [2], [0]]), "TreeInfo": tree}, child_nums=2)
    assert out["Child"].tolist() == [[2, 3], [0, 0], [0, 0]]
    assert out["LeafMask"].tolist() == [[1, 0], [0, 0], [0, 0]]
    slots = {
        "X": np.array([[0], [1]]),
        "Travel": np.array([[1, 3], [2, 0]]),
        "Layer": np.arange(1, 6)[:, None],
    }
    attrs = {"neg_samples_num_list": [1, 2], "layer_offset_lod": [0, 2, 5], "seed": 3}
    out = _run("tdm_sampler", slots, **attrs)
    nodes = out["Out"][..., 0]
    assert nodes[:, :2].tolist() == [[1, 2], [2, 1]] and nodes[1, 2:].tolist() == [0, 0, 0]
    assert nodes[0, 2] == 3 and set(nodes[0, 3:].tolist()) == {4, 5}
    assert out["Labels"][..., 0].tolist() == [[1, 0, 1, 0, 0], [1, 0, 0, 0, 0]]
    assert out["Mask"][..., 0].tolist() == [[1] * 5, [1, 1, 0, 0, 0]]


def test_nearest_with_corners_on_corners():
    x = np.arange(16.0).reshape(1, 1, 4, 4)
    out = _run("nearest_interp_v2", {"X": x}, out_h=3, out_w=7, align_corners=True, interp_method="nearest")
    rows, columns = [0, 2, 3], [0, 1, 1, 2, 2, 3, 3]  # halves go up
    np.testing.assert_array_equal(out["Out"], x[:, :, rows][..., columns])


def test_the_gradient_of_shows_and_clicks_is_their_counts():
    x, counts = paddle.ones([2, 4]), paddle.to_tensor([[5.0, 2.0], [7.0, 3.0]])
    x.stop_gradient = False
    out = run_operator("cvm", {"X": [x], "CVM": [counts]}, {"use_cvm": False}, {"Y": 1})["Y"][0]
    (out * 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[5, 2, 2, 2], [7, 3, 2, 2]]
