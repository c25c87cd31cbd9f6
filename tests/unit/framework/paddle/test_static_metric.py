"""paddle.static.auc against Paddle 2.6.2 and against sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from framework import paddle


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    yield
    paddle.disable_static()


def by_pairs(probability: np.ndarray, label: np.ndarray) -> float:
    """The share of pairs in which the positive one is likelier, in bins of 31 thresholds; ties count half."""
    bins = (probability * 31).astype(int)
    positive, negative = bins[label == 1][:, None], bins[label == 0][None]
    if not positive.size or not negative.size:
        return 0.0
    return float(((positive > negative) + (positive == negative) / 2).mean())


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_the_area_of_all_batches_and_of_the_last(steps: int) -> None:
    main, start = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, start):
        x = paddle.static.data("x", [None, 2], "float32")
        label = paddle.static.data("label", [None, 1], "int64")
        area, of_last, counts = paddle.static.auc(x, label, num_thresholds=31, slide_steps=steps)
    executor = paddle.static.Executor()
    executor.run(start)
    draw, seen = np.random.RandomState(0), []
    for number in range(6):
        probability = draw.rand(20).astype(np.float32)
        probability[:2] = 1, 0
        labels = (draw.rand(20) < probability).astype(np.int64) * (number > 0)
        seen.append((probability, labels))
        feed = {"x": np.stack([1 - probability, probability], 1), "label": labels[:, None]}
        values = executor.run(main, feed=feed, fetch_list=[area, of_last, *counts])
        for value, batches in zip(values, (seen, seen[-steps:])):
            expected = by_pairs(*(np.concatenate(column) for column in zip(*batches)))
            assert float(value) == pytest.approx(expected, abs=1e-12)
    assert [value.shape for value in values[2:]] == [((1 + steps) * 32 + 1,) if steps else (1, 32)] * 2 + [
        (1, 32)
    ] * 2
    assert float(values[0]) == pytest.approx(0.75511111, abs=1e-8)  # Paddle's
    assert sum(int(value.sum()) for value in values[4:]) == 120


def test_another_curve_is_refused() -> None:
    with pytest.raises(ValueError, match="PR"):
        paddle.static.auc(None, None, curve="PR")  # type: ignore[arg-type]
