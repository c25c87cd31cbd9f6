from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from detection.layers.nms import NMS, multiclass_nms
from framework.core.errors import ConfigError

CONFIG = NMS(score_threshold=0.1, iou_threshold=0.5, nms_top_k=20, keep_top_k=5)
BOXES = np.asarray([[0, 0, 10, 10], [0, 0, 10, 8], [20, 20, 30, 30]], np.float32)  # IoU 0.8 of the first two


def detect(
    boxes: np.ndarray, scores: np.ndarray, config: NMS = CONFIG
) -> list[tuple[float, int, list[float]]]:
    """(score, label, box) of the detections of one image."""
    found = jax.jit(lambda b, s: multiclass_nms(b, s, config))(
        jnp.asarray(boxes, jnp.float32)[None], jnp.asarray(scores, jnp.float32)[None]
    )
    assert found.scores.shape == (1, config.keep_top_k)
    rows = zip(found.scores[0].tolist(), found.labels[0].tolist(), found.boxes[0].tolist())
    kept = [row for row in rows if row[0] > 0]
    empty = found.scores[0] == 0
    assert not np.asarray(found.boxes[0])[np.asarray(empty)].any()
    return kept


def greedy(boxes: np.ndarray, scores: np.ndarray, config: NMS) -> list[tuple[float, int, list[float]]]:
    """The rule as a loop over pairs of box and class, best first."""
    pairs = [
        (float(scores[i, c]), c, boxes[i].tolist())
        for i in range(len(boxes))
        for c in range(scores.shape[1])
        if scores[i, c] > config.score_threshold
    ]
    kept: list[tuple[float, int, list[float]]] = []
    for pair in sorted(pairs, key=lambda pair: -pair[0])[: config.nms_top_k]:
        rivals = [k for k in kept if config.class_agnostic or k[1] == pair[1]]
        if all(overlap(k[2], pair[2]) <= config.iou_threshold for k in rivals):
            kept.append(pair)
    return kept[: config.keep_top_k]


def overlap(a: list[float], b: list[float]) -> float:
    width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
    height = max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = [(x[2] - x[0]) * (x[3] - x[1]) for x in (a, b)]
    return width * height / (sum(areas) - width * height)


def test_the_better_of_two_overlapping_boxes_stays() -> None:
    kept = detect(BOXES, np.asarray([[0.8], [0.9], [0.7]]))
    assert [row[2] for row in kept] == [BOXES[1].tolist(), BOXES[2].tolist()]
    assert [row[0] for row in kept] == pytest.approx([0.9, 0.7])


def test_a_dropped_box_drops_no_other() -> None:
    chain = np.asarray([[0, 0, 10, 10], [4, 0, 14, 10], [8, 0, 18, 10]])  # neighbours 3/7, ends 1/9
    config = NMS(score_threshold=0.1, iou_threshold=0.4, nms_top_k=20, keep_top_k=5)
    kept = detect(chain, np.asarray([[0.9], [0.8], [0.7]]), config)
    assert [row[2][0] for row in kept] == [0, 8]


def test_classes_do_not_suppress_one_another_unless_asked() -> None:
    scores = np.asarray([[0.9, 0], [0, 0.8], [0, 0.7]])
    assert [row[1] for row in detect(BOXES, scores)] == [0, 1, 1]
    agnostic = NMS(0.1, 0.5, 20, 5, class_agnostic=True)
    assert [row[1] for row in detect(BOXES, scores, agnostic)] == [0, 1]


def test_a_box_may_have_two_classes() -> None:
    assert [row[1] for row in detect(BOXES[:1], np.asarray([[0.3, 0.6]]))] == [1, 0]


def test_thresholds_are_exclusive() -> None:
    halves = np.asarray([[0, 0, 10, 10], [0, 0, 10, 5]])  # IoU 0.5
    assert len(detect(halves, np.asarray([[0.9], [0.8]]))) == 2
    quarter = NMS(0.25, 0.5, 20, 5)
    assert len(detect(halves, np.asarray([[0.9], [0.25]]), quarter)) == 1


def test_nothing_found() -> None:
    assert detect(BOXES, np.zeros((3, 2))) == []


def test_only_the_best_are_compared_and_kept() -> None:
    apart = np.stack([np.asarray([20 * i, 0, 20 * i + 10, 10]) for i in range(8)])
    scores = np.linspace(0.2, 0.9, 8)[:, None]
    assert [row[0] for row in detect(apart, scores)] == pytest.approx([0.9, 0.8, 0.7, 0.6, 0.5])
    assert len(detect(apart, scores, NMS(0.1, 0.5, 3, 3))) == 3


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_greedy_rule(seed: int) -> None:
    random = np.random.default_rng(seed)
    corners = random.uniform(0, 60, (150, 2))
    boxes = np.concatenate([corners, corners + random.uniform(5, 40, (150, 2))], axis=1).astype(np.float32)
    scores = random.uniform(0, 1, (150, 3)).astype(np.float32) ** 3
    config = NMS(0.05, 0.45, 300, 60, class_agnostic=seed == 3)
    want = greedy(boxes, scores, config)
    assert len(want) > 20
    ours = detect(boxes, scores, config)
    assert [row[1] for row in ours] == [row[1] for row in want]
    np.testing.assert_allclose([row[2] for row in ours], [row[2] for row in want], atol=1e-4)


def test_images_of_a_batch_are_apart() -> None:
    scores = jnp.asarray([[[0.9], [0.8], [0.7]], [[0.0], [0.8], [0.0]]])
    found = multiclass_nms(jnp.stack([jnp.asarray(BOXES)] * 2), scores, CONFIG)
    assert (found.scores > 0).sum(axis=1).tolist() == [2, 1]


def test_number_of_boxes_may_be_symbolic() -> None:
    n, length = export.symbolic_shape("n, l")
    run = jax.jit(lambda b, s: multiclass_nms(b, s, CONFIG))
    shapes = [jax.ShapeDtypeStruct((n, length, last), jnp.float32) for last in (4, 2)]
    program = export.export(run)(*shapes)
    scores = jnp.asarray([[[0.9, 0], [0, 0.8], [0, 0.7]]])
    found: Any = program.call(jnp.asarray(BOXES)[None], scores)
    assert found.labels[0, :3].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    "values",
    [
        {"score_threshold": 1.0},
        {"score_threshold": -0.1},
        {"iou_threshold": 0.0},
        {"iou_threshold": 1.5},
        {"keep_top_k": 0},
        {"nms_top_k": 50},
    ],
)
def test_impossible_settings(values: dict) -> None:
    with pytest.raises(ConfigError, match="a setting of the suppression is out of range"):
        NMS(**values)
