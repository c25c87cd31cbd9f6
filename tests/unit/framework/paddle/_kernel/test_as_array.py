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
