import numpy as np
import pytest

from framework.core.errors import ShapeError
from zoo.layers.text_row import pool_text_row


def test_eval_averages_three_rows_and_two_columns() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    # columns 0 and 1 of the three rows: 0 1 4 5 8 9; columns 2 and 3: two more each
    assert np.asarray(pool_text_row(x, False, "Net")).tolist() == [[[[4.5], [6.5]]]]


def test_training_gives_forty_columns_for_any_size() -> None:
    x = np.ones((2, 4, 25, 3), np.float32)
    out = np.asarray(pool_text_row(x, True, "Net"))
    assert out.shape == (2, 1, 40, 3) and np.allclose(out, 1)


@pytest.mark.parametrize("rows", [2, 6])
def test_other_heights_are_refused_in_eval(rows: int) -> None:
    with pytest.raises(
        ShapeError, match=rf"Net reads text lines of one height[\s\S]*{rows} rows[\s\S]*48 pixels"
    ):
        pool_text_row(np.ones((1, rows, 4, 1), np.float32), False, "Net")
