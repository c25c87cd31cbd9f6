"""Structured sparsity: of every m weights in a row, or in every m x m block, n are zero.

1D: in each row each group of m neighbours. 2D: each m x m block keeps n values in every row and in every column.
A matrix whose sizes are no multiples of m is filled up with zeros.
Source: Mishra et al. 2021, https://arxiv.org/abs/2104.08378
Reference: paddle/python/paddle/incubate/asp/utils.py
"""

from __future__ import annotations

import functools
import itertools

import numpy as np


def density(array: np.ndarray) -> float:
    """The share of the values that are not zero."""
    return np.count_nonzero(array) / array.size


def _groups(matrix: np.ndarray, m: int) -> np.ndarray:
    """[rows, groups, m]: the groups of neighbours in each row."""
    padded = np.pad(matrix, ((0, 0), (0, -matrix.shape[1] % m)))
    return padded.reshape(matrix.shape[0], -1, m)


def _blocks(matrix: np.ndarray, m: int) -> np.ndarray:
    """[block rows, block columns, m, m]."""
    padded = np.pad(matrix, [(0, -size % m) for size in matrix.shape])
    rows, columns = (size // m for size in padded.shape)
    return padded.reshape(rows, m, columns, m).transpose(0, 2, 1, 3)


def _matrix_of(blocks: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The matrix of these blocks, without what filled it up."""
    rows, columns, m, _ = blocks.shape
    return blocks.transpose(0, 2, 1, 3).reshape(rows * m, columns * m)[: shape[0], : shape[1]]


def is_sparse_1d(matrix: np.ndarray, n: int, m: int) -> bool:
    """Whether every group of m in a row has n zeros."""
    return bool((np.count_nonzero(_groups(np.atleast_2d(matrix), m), axis=-1) <= m - n).all())


def is_sparse_2d(matrix: np.ndarray, n: int, m: int) -> bool:
    """Whether every m x m block has n zeros in each row, or in each column: as Paddle, which asks for one of both."""
    filled = _blocks(matrix, m) != 0
    rows, columns = ((filled.sum(axis) <= m - n).all(-1) for axis in (3, 2))
    return bool((rows | columns).all())


def mask_1d(matrix: np.ndarray, n: int, m: int) -> np.ndarray:
    """1 for the values that stay: in each group of m all but the n smallest in size."""
    groups = _groups(matrix, m)
    mask = np.ones_like(groups)
    np.put_along_axis(mask, np.argsort(np.abs(groups), axis=-1)[..., :n], 0, axis=-1)
    return mask.reshape(matrix.shape[0], -1)[:, : matrix.shape[1]]


def mask_2d_greedy(matrix: np.ndarray, n: int, m: int) -> np.ndarray:
    """1 for the values that stay: in each block the greatest first, while their row and column have fewer than n."""
    blocks = _blocks(matrix, m)
    flat = np.abs(blocks).reshape(-1, m * m)
    mask = np.zeros((len(flat), m, m))
    in_row, in_column = np.zeros((2, len(flat), m), int)
    index = np.arange(len(flat))
    for entry in np.argsort(flat, axis=-1).T[::-1]:
        row, column = entry // m, entry % m
        fits = (in_row[index, row] < n) & (in_column[index, column] < n)
        mask[index, row, column] = fits
        in_row[index, row] += fits
        in_column[index, column] += fits
    return _matrix_of(mask.reshape(blocks.shape), matrix.shape)


@functools.cache
def patterns_2d(n: int, m: int) -> np.ndarray:
    """[patterns, m, m]: all masks of a block with n ones in every row and in every column."""
    rows = [[float(i in chosen) for i in range(m)] for chosen in itertools.combinations(range(m), n)]
    blocks = np.array(list(itertools.product(rows, repeat=m)))
    return blocks[(blocks.sum(1) == n).all(-1)]


def mask_2d_best(matrix: np.ndarray, n: int, m: int) -> np.ndarray:
    """1 for the values that stay: in each block the pattern that keeps the greatest sum, with the signs, as Paddle."""
    blocks = _blocks(matrix, m)
    patterns = patterns_2d(n, m)
    best = np.argmax(
        blocks.reshape(*blocks.shape[:2], m * m) @ patterns.reshape(len(patterns), -1).T, axis=-1
    )
    return _matrix_of(patterns[best], matrix.shape)
