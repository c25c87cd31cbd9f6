from __future__ import annotations

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from framework.core import dtypes
from framework.core.errors import ShapeError
from framework.nn import functional as F


@pytest.mark.parametrize(
    ("wide", "kept"),
    [("float64", "float32"), ("int64", "int32"), ("uint64", "int32"), ("complex128", "complex64")],
)
def test_64_bit_types_become_32_bit(wide, kept):
    out = dtypes.narrow(np.array([0, 1, 2**31 - 1 if wide[0] in "iu" else 2], wide))
    assert out.dtype == kept and out[1] == 1


@pytest.mark.parametrize("kept", ["float32", "float16", "int32", "uint8", "bool", "complex64"])
def test_narrower_types_stay(kept):
    array = np.zeros(2, kept)
    assert dtypes.narrow(array) is array


def test_an_integer_beyond_32_bits_is_an_error_and_not_wrapped():
    with pytest.raises(
        ShapeError, match=r"label: an integer does not fit into 32 bits(.|\n)*2147483648(.|\n)*enable_x64"
    ):
        dtypes.narrow(np.array([1, 2**31]), where="label")


def test_an_empty_array_of_integers_narrows():
    assert dtypes.narrow(np.zeros((0, 4), "int64")).shape == (0, 4)


def test_precision_is_a_scope():
    assert dtypes.precision() == "float32"
    with dtypes.precision_scope("bfloat16"):
        assert dtypes.precision() == "bfloat16"
        with dtypes.precision_scope("float32"):
            assert dtypes.precision() == "float32"
    assert dtypes.precision() == "float32"


def test_an_unknown_precision_is_an_error():
    with pytest.raises(ShapeError, match="unknown precision"), dtypes.precision_scope("float16"):
        pass


def test_products_of_float32_keep_their_digits_on_every_device():
    """GPUs would compute them with the ten bits of TF32."""
    x, w, image = np.ones((2, 3), np.float32), np.ones((3, 4), np.float32), np.ones((1, 4, 4, 3), np.float32)
    for product, operands in ((F.linear, (x, w)), (F.conv2d, (image, np.ones((5, 3, 3, 3), np.float32)))):
        program = jax.jit(product).lower(*operands).as_text()
        assert "precision HIGHEST" in program or "precision = [HIGHEST, HIGHEST]" in program, program
    code = "import framework.nn, jax; print(jax.config.jax_default_matmul_precision)"
    environment = {**os.environ, "JAX_DEFAULT_MATMUL_PRECISION": "tensorfloat32"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "tensorfloat32"  # who asks for speed gets it
