from __future__ import annotations

import itertools

import numpy as np
import pytest

from ocr.text import batches
from ocr.text.batches import Batch, fit_batches, plan_batches

WIDTHS = (160, 320, 640)


def cost(plan: list[Batch]) -> int:
    sizes = {(batch.width, batch.rows) for batch in plan}
    return sum(batch.width * batch.rows for batch in plan) + batches.SIZE_COST * len(sizes)


def test_a_narrow_line_goes_with_wider_ones_where_that_saves_a_size():
    assert plan_batches([300, 310, 300, 90], WIDTHS, 640, 4) == [Batch(320, 2, (1, 0)), Batch(320, 2, (2, 3))]


def test_many_narrow_lines_have_a_size_of_their_own():
    plan = plan_batches([300] * 2 + [90] * 12, WIDTHS, 640, 4)
    assert [(batch.width, batch.rows, len(batch.lines)) for batch in plan] == [(320, 2, 2)] + [
        (160, 4, 4)
    ] * 3


def test_lines_of_the_largest_width_are_squeezed_one_by_one():
    plan = plan_batches([5000.0, 700.0], WIDTHS, 640, 4)
    assert plan == [Batch(640, 1, (0,)), Batch(640, 1, (1,))]


@pytest.mark.parametrize("seed", range(4))
def test_each_line_once_and_wide_enough(seed: int):
    rng = np.random.default_rng(seed)
    wanted = rng.lognormal(5.3, 0.7, int(rng.integers(1, 90))).tolist()
    widths = (160, 192, 256, 320, 384, 512, 640, 768, 960, 1280)
    plan = plan_batches(wanted, widths, 1280, 8)
    assert sorted(line for batch in plan for line in batch.lines) == list(range(len(wanted)))
    for batch in plan:
        assert batch.width >= min(max(wanted[line] for line in batch.lines), widths[-1])
        assert len(batch.lines) <= batch.rows in (1, min(8, 1280 // batch.width))
    assert plan == plan_batches(wanted, widths, 1280, 8)  # not from run to run


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_cheaper(seed: int):
    """Against every way to give six sorted lines a width and to cut them into batches."""
    wanted = sorted(np.random.default_rng(seed).uniform(20, 700, 6).tolist(), reverse=True)
    best = 1 << 30
    for chosen in itertools.product(WIDTHS, repeat=6):
        plan, done = [], 0
        for width in chosen:  # the width of each batch; those beyond the last line are not used
            if done >= 6:
                break
            if width < min(wanted[done], WIDTHS[-1]) or (plan and width > plan[-1].width):
                break
            rows = min(4, 640 // width)
            choices = rows if done < 5 else 1
            single = cost([*plan, Batch(width, choices, (done,))])
            filled = cost([*plan, Batch(width, rows, (done,))])
            plan.append(
                Batch(width, choices if single <= filled else rows, tuple(range(done, min(6, done + rows))))
            )
            done += rows
        if done >= 6:
            best = min(best, cost(plan))
    assert cost(plan_batches(wanted, WIDTHS, 640, 4)) == best


def test_fitted_widths_are_few_and_hardly_wider():
    """Each width that comes is prepared and kept by OpenVINO."""
    widths = {fit_batches([float(wanted)], 3200, 1280, 8)[0].width for wanted in range(1, 3200)}
    assert len(widths) < 100
    for wanted in range(100, 3200):
        (batch,) = fit_batches([float(wanted)], 3200, 1280, 8)
        assert wanted <= batch.width <= max(wanted + 8, wanted * 17 / 16 + 1) and batch.width % 8 == 0
