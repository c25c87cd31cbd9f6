from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from framework.core.errors import TraceError
from framework.core.trace import explain_trace_errors, user_line


def test_a_question_about_a_value_is_told_with_its_line():
    with (
        pytest.raises(
            TraceError, match=r"test_trace\.py:\d+: jax\.jit\(lambda x: x if x > 0 else -x\)"
        ) as caught,
        explain_trace_errors(),
    ):
        jax.jit(lambda x: x if x > 0 else -x)(jnp.ones(()))
    assert isinstance(caught.value.__cause__, jax.errors.TracerBoolConversionError)
    assert caught.value.fix and caught.value.allowed and caught.value.received


def test_other_errors_and_none_pass():
    with explain_trace_errors():
        pass
    with pytest.raises(ZeroDivisionError), explain_trace_errors():
        _ = 1 / 0


def test_an_error_without_a_frame_of_the_user():
    assert user_line(ValueError()) == "an unknown line"
