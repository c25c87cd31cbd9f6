"""Rows of several texts: what is learned, and what stands where."""

import numpy as np

from nlp.data.packing import IGNORED, TokenText, pack_best_fit, row_of, whole_text


def test_no_text_is_guessed_from_the_one_before() -> None:
    texts = [whole_text(np.array([5, 6, 7])), TokenText(np.array([8, 9, 4]), np.array([True, False, True]))]
    row = row_of(texts, 8, pad_id=1)
    np.testing.assert_array_equal(row.ids, [5, 6, 7, 8, 9, 4, 1, 1])
    np.testing.assert_array_equal(row.targets, [6, 7, IGNORED, IGNORED, 4, IGNORED, IGNORED, IGNORED])
    np.testing.assert_array_equal(row.positions, [0, 1, 2, 0, 1, 2, 0, 1])
    np.testing.assert_array_equal(row.segments, [1, 1, 1, 2, 2, 2, 0, 0])


def test_best_fit_fills_the_smallest_gap() -> None:
    assert pack_best_fit([6, 5, 4, 3, 2], 10) == [[0, 2], [1, 3, 4]]
    assert pack_best_fit([10, 10], 10) == [[0], [1]]
    assert pack_best_fit([], 10) == []


def test_every_text_stands_in_one_row_that_it_fits() -> None:
    lengths = np.random.default_rng(0).integers(1, 33, 500).tolist()
    rows = pack_best_fit(lengths, 64)
    assert sorted(index for row in rows for index in row) == list(range(500))
    sums = [sum(lengths[index] for index in row) for row in rows]
    assert max(sums) <= 64 and sum(sums) / (64 * len(rows)) > 0.97
