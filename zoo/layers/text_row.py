"""The last pooling of the backbones that read a text line 48 pixels high."""

from __future__ import annotations

import jax

from framework.core.errors import ShapeError
from framework.nn import functional as F

TEXT_ROW_STRIDE = (48, 8)
"""(vertical, horizontal) stride of the row that these backbones make of a line."""

FINE_ROW_STRIDE = (32, 4)
"""The same of backbones that read lines 32 pixels high and keep more columns."""

LINE_STRIDES = ((2, 1), (1, 2), (2, 1), (2, 1))
"""(vertical, horizontal) strides of the four stages of PP-HGNet and PP-HGNetV2 behind a stem of stride 2, for lines."""


def pool_rows(x: jax.Array, rows: int, where: str) -> jax.Array:
    """One row of features and all columns: [N, rows, W, C] -> [N, 1, W, C], in training too.

    Raises:
        ShapeError: x has another number of rows.
    """
    if x.shape[1] != rows:
        raise ShapeError(
            f"{where} reads text lines of one height",
            received=f"{x.shape[1]} rows of features before the last pooling",
            allowed=f"{rows}, from an image {16 * rows} pixels high",
            fix=f"resize the line to a height of {16 * rows}",
        )
    return F.avg_pool2d(x, (rows, 1))


def pool_text_row(x: jax.Array, training: bool, where: str) -> jax.Array:
    """One row of features: [N, 3, W, C] -> [N, 1, W // 2, C]; in training from any number of rows.

    Differs: upstream gives 40 columns in training, whatever the width, and trains on lines 320 pixels wide alone, for
    which both are the same. Of other widths a line would have other columns in training than when it is read.

    Raises:
        ShapeError: in eval x does not have the rows of an image 48 pixels high.
    """
    columns = x.shape[2] // 2
    if training:
        return F.adaptive_avg_pool2d(x[:, :, : 2 * columns], (1, columns))
    if not 3 <= x.shape[1] <= 5:
        raise ShapeError(
            f"{where} reads text lines of one height",
            received=f"{x.shape[1]} rows of features before the last pooling",
            allowed="3, from an image 48 pixels high",
            fix="resize the line to a height of 48",
        )
    return F.avg_pool2d(x, (3, 2))
