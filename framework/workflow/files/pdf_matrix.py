"""Matrices of PDF (ISO 32000-1, 8.3.3): x' = a x + c y + e, y' = b x + d y + f."""

from __future__ import annotations

import numpy as np

Matrix = tuple[float, float, float, float, float, float]


def multiply(first: Matrix, second: Matrix) -> Matrix:
    """The matrix that applies `first`, then `second`."""
    a, b, c, d, e, f = first
    g, h, i, j, k, m = second
    return (a * g + b * i, a * h + b * j, c * g + d * i, c * h + d * j, e * g + f * i + k, e * h + f * j + m)


def invert(matrix: Matrix) -> Matrix:
    """Raises: ZeroDivisionError when the matrix flattens the plane."""
    a, b, c, d, e, f = matrix
    det = a * d - b * c
    return (d / det, -b / det, -c / det, a / det, (c * f - d * e) / det, (b * e - a * f) / det)


def apply(matrix: Matrix, points: np.ndarray) -> np.ndarray:
    """Points [..., 2] through the matrix."""
    a, b, c, d, e, f = matrix
    x, y = points[..., 0], points[..., 1]
    return np.stack([a * x + c * y + e, b * x + d * y + f], axis=-1)


def apply_boxes(matrix: Matrix, boxes: np.ndarray) -> np.ndarray:
    """Upright boxes [N, 4] around the boxes [N, 4] (two opposite corners each) as the matrix moves them."""
    first, second = apply(matrix, boxes[:, :2]), apply(matrix, boxes[:, 2:])
    third, fourth = apply(matrix, boxes[:, [0, 3]]), apply(matrix, boxes[:, [2, 1]])
    corners = np.stack([first, second, third, fourth])
    return np.concatenate([corners.min(0), corners.max(0)], axis=1)
