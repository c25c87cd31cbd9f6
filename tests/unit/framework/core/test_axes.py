import numpy as np
import pytest

from framework.core.axes import normalize_axis, per_axis
from framework.core.errors import ShapeError


def test_axes_are_counted_from_the_front() -> None:
    assert [normalize_axis(axis, 3) for axis in range(-3, 3)] == [0, 1, 2, 0, 1, 2]
    assert [normalize_axis(axis, 0) for axis in (-1, 0)] == [0, 0]


@pytest.mark.parametrize("axis", (-3, 2))
def test_an_axis_that_is_not_there(axis: int) -> None:
    with pytest.raises(ShapeError) as error:
        normalize_axis(axis, 2, "paddle.flip", "count again")
    assert str(error.value) == (
        f"paddle.flip: the axis is out of range\n  received: axis {axis} of 2 dimensions\n  allowed: -2 to 1\n"
        "  what to do: count again"
    )


def test_a_number_for_each_axis() -> None:
    assert (
        per_axis(3, 2, "stride") == per_axis([3], 2, "stride") == per_axis(np.int64(3), 2, "stride") == (3, 3)
    )
    assert per_axis(np.array([1, 2]), 2, "stride") == (1, 2)
    assert per_axis((0.5, 2.0), 2, "scale", float) == (0.5, 2.0)
    with pytest.raises(ShapeError) as error:
        per_axis([1, 2, 3], 2, "stride")
    assert str(error.value) == (
        "stride takes one number, or one for each axis\n  received: [1, 2, 3]\n  allowed: 1 or 2 numbers"
    )
