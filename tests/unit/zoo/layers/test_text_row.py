import numpy as np
import pytest

from framework.core.errors import ShapeError
from zoo.layers.text_row import pool_text_row


def test_eval_averages_three_rows_and_two_columns() -> None:
    x = np.arange(12, dtype=np.float32).reshape(1, 3, 4, 1)
    # columns 0 and 1 of the three rows: 0 1 4 5 8 9; columns 2 and 3: two more each
    assert np.asarray(pool_text_row(x, False, "Net")).tolist() == [[[[4.5], [6.5]]]]


@pytest.mark.parametrize("columns", [25, 80])
def test_a_line_has_the_same_columns_in_training(columns: int) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, columns, 3)).astype(np.float32)
    out = np.asarray(pool_text_row(x, True, "Net"))
    assert out.shape == (2, 1, columns // 2, 3)
    np.testing.assert_allclose(out, pool_text_row(x, False, "Net"), atol=1e-6)
    assert (
        pool_text_row(x[:, :2], True, "Net").shape == out.shape
    )  # lines of other heights are for training alone


@pytest.mark.parametrize("rows", [2, 6])
def test_other_heights_are_refused_in_eval(rows: int) -> None:
    with pytest.raises(
        ShapeError, match=rf"Net reads text lines of one height[\s\S]*{rows} rows[\s\S]*48 pixels"
    ):
        pool_text_row(np.ones((1, rows, 4, 1), np.float32), False, "Net")
