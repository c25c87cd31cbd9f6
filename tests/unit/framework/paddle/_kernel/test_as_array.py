"""Values from outside as arrays."""

from __future__ import annotations

import numpy as np
import pytest

from framework.paddle._kernel.tensor import as_array


@pytest.mark.parametrize("given", [None, "float32", "float64", "int64"])
@pytest.mark.parametrize(
    "values", [np.ones((2, 3), np.float32), np.ones((2, 3), np.float64), np.ones(2, np.int32)]
)
def test_numpys_values_get_the_type_that_is_asked_for(given: str | None, values: np.ndarray) -> None:
    # np.dtype("float64") == None is true.
    assert as_array(values, given).dtype == (given or values.dtype)


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, [1, 2]), ("bfloat16", [1, 2]), ("float32", [0x3F80, 0x4000]), ("float64", [0x3F80, 0x4000])],
)
def test_uint16_holds_the_bits_of_bfloat16_unless_another_type_is_asked_for(
    given: str | None, expected: list[int]
) -> None:
    bits = np.array([0x3F80, 0x4000], np.uint16)
    made = as_array(bits, given)
    assert made.dtype == (given or "bfloat16")
    np.testing.assert_array_equal(np.asarray(made, np.float32), expected)
    np.testing.assert_array_equal(bits, [0x3F80, 0x4000])


def test_a_tensor_by_paddles_own_arguments() -> None:
    from framework import paddle

    tensor = paddle.Tensor(
        np.ones(2, np.float32), paddle.CPUPlace(), zero_copy=True, persistable=True, name="w"
    )
    assert tensor.persistable and tensor.name == "w" and tensor.dtype == paddle.float32
    assert not paddle.Tensor(np.ones(2, np.float32), zero_copy=True).persistable
