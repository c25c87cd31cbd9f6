"""Masks of structured sparsity: the values of paddle.incubate.asp 2.6.2."""

import numpy as np
import pytest

from framework.nn import sparsity

MATRIX = np.array([[9, 8, 3, 7], [9, 2, 1, 10], [5, 1, 3, 6], [2, 4, 6, 1]], float)


def test_1d_keeps_the_greatest_of_each_group():
    assert sparsity.mask_1d(np.array([[0, 1, 5, 4], [2, 7, 3, 6]]), 2, 4).tolist() == [
        [0, 0, 1, 1],
        [0, 1, 0, 1],
    ]


def test_2d_greedy_keeps_the_greatest_first():
    expected = [[1, 1, 0, 0], [1, 0, 0, 1], [0, 0, 1, 1], [0, 1, 1, 0]]
    assert sparsity.mask_2d_greedy(MATRIX, 2, 4).tolist() == expected


def test_2d_best_keeps_the_greatest_sum():
    matrix = np.array([[2, 8, 9, 9], [9, 1, 3, 9], [5, 6, 3, 9], [2, 4, 6, 9]])
    assert (matrix * sparsity.mask_2d_greedy(matrix, 2, 4)).sum() == 56
    assert (matrix * sparsity.mask_2d_best(matrix, 2, 4)).sum() == 61
    assert len(sparsity.patterns_2d(2, 4)) == 90


@pytest.mark.parametrize("shape", [(5, 5), (4, 8), (3, 9)])
def test_masks_have_their_pattern_whatever_the_size(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    assert sparsity.is_sparse_1d(sparsity.mask_1d(matrix, 2, 4), 2, 4)
    for mask in (sparsity.mask_2d_greedy(matrix, 2, 4), sparsity.mask_2d_best(matrix, 2, 4)):
        assert mask.shape == shape
        assert sparsity.is_sparse_2d(mask, 2, 4)


def test_checks():
    assert sparsity.is_sparse_1d(np.array([[0, 1, 3, 0], [1, 0, 0, 1]]), 2, 4)
    assert not sparsity.is_sparse_1d(np.array([[0, 1, 5, 4], [1, 0, 0, 1]]), 2, 4)
    assert sparsity.is_sparse_1d(np.array([[0, 1, 0, 4, 6], [1, 0, 0, 1, 7]]), 2, 4)  # filled up with zeros
    # Zeros in the columns suffice, though the third row has but one.
    assert sparsity.is_sparse_2d(np.array([[0, 8, 0, 9], [9, 0, 0, 10], [0, 5, 0, 6], [0, 4, 6, 0]]), 2, 4)
    assert not sparsity.is_sparse_2d(np.ones((4, 4)), 2, 4)
    assert sparsity.density(np.array([[0, 1, 3, 0], [1, 1, 0, 1]])) == 0.625
