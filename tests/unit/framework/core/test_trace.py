from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from framework.core.errors import TraceError
from framework.core.trace import explained_trace, user_line


def test_a_question_about_a_value_is_told_with_its_line():
    with (
        pytest.raises(
            TraceError, match=r"test_trace\.py:\d+: jax\.jit\(lambda x: x if x > 0 else -x\)"
        ) as caught,
        explained_trace(),
    ):
        jax.jit(lambda x: x if x > 0 else -x)(jnp.ones(()))
    assert isinstance(caught.value.__cause__, jax.errors.TracerBoolConversionError)
    assert caught.value.fix and caught.value.allowed and caught.value.received


def test_other_errors_and_none_pass():
    with explained_trace():
        pass
    with pytest.raises(ZeroDivisionError), explained_trace():
        _ = 1 / 0


def test_an_error_without_a_frame_of_the_user():
    assert user_line(ValueError()) == "an unknown line"
