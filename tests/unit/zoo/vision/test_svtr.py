"""SVTR's backbone: who sees whom in a local block, the row that comes out, and sizes that do not fit."""

import re

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, ShapeError
from zoo.vision.svtr import SVTRNetConfig, neighbours


def test_neighbours_are_three_rows_and_five_columns_away() -> None:
    height, width = 8, 13
    seen = np.asarray(neighbours(height, width)).reshape(height, width, height, width)
    for row, column in ((0, 0), (4, 6), (7, 12)):
        rows, columns = np.nonzero(seen[row, column])
        assert set(rows) == set(range(max(0, row - 3), min(height, row + 4)))
        assert set(columns) == set(range(max(0, column - 5), min(width, column + 6)))
        assert len(rows) == len(set(rows)) * len(set(columns))


def test_local_blocks_alone_are_blind_to_what_is_far() -> None:
    """In the first stage of svtr_tiny all blocks are local: three see 15 tokens, the convolutions three pixels more."""
    model = build(SVTRNetConfig(image_hw=(16, 160), columns=40)).eval()
    x = np.random.RandomState(0).standard_normal((1, 16, 160, 3)).astype(np.float32)
    changed = x.copy()
    changed[:, :, :4] += 1.0

    def first_stage(x: np.ndarray) -> np.ndarray:
        maps = model.patch_embed["proj"](x)
        return np.asarray(model._mix(maps, model.blocks1, 6))

    moved = np.abs(first_stage(changed) - first_stage(x)).max((0, 1, 3))
    reach = 3 * 5 + 1
    assert (moved[: reach + 1] > 0).all() and (moved[reach + 2 :] == 0).all()


def test_the_row_has_the_columns_that_are_asked_for() -> None:
    model = build(SVTRNetConfig(image_hw=(32, 320), columns=40, out_channels=96)).eval()
    assert model.features == ((96, (32, 8)),)
    graphdef, params, buffers = nn.abstract(model)
    x = jax.ShapeDtypeStruct((2, 32, 320, 3), np.float32)
    ((row,), _) = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x), params, buffers, x)
    assert row.shape == (2, 1, 40, 96)


@pytest.mark.parametrize(
    ("image_hw", "columns"), [((32, 100), 40), ((40, 100), 25), ((0, 100), 25), ((32, 102), 25)]
)
def test_sizes_that_do_not_divide(image_hw: tuple[int, int], columns: int) -> None:
    received = re.escape(f"received: image_hw {image_hw}, columns {columns}")
    with pytest.raises(
        ConfigError, match=rf"(?s)columns of tokens.*{received}.*4 \* columns.*beside `image_hw`"
    ):
        SVTRNetConfig(image_hw=image_hw, columns=columns)


def test_lines_of_one_size() -> None:
    model = build(SVTRNetConfig())
    with pytest.raises(ShapeError, match=r"(?s)one size.*height 32, width 128.*32 by 100.*image_hw"):
        model(np.zeros((1, 32, 128, 3), np.float32))
