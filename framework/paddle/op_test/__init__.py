"""The `op_test` that tests of Paddle's tree import: `OpTest` checks outputs and gradients through our operations.

    pytest -p framework.paddle.op_test test_softmax_op.py

makes `op_test` (before Paddle 2.6 `eager_op_test`), `op` and `testsuite` mean this module, and `import paddle` Oar.
"""

from __future__ import annotations

import sys

import framework.paddle.install  # noqa: F401  # the tests import paddle
from framework.paddle.base.bfloat16_bits import (
    convert_float_to_uint16,
    convert_uint16_to_float,
    copy_bits_from_float_to_uint16,
)
from framework.paddle.base.scope_operator import Operator, create_op
from framework.paddle.op_test.case import OpTest
from framework.paddle.op_test.helpers import (
    OpTestTool,
    check_grad_ci,
    check_out_dtype,
    get_numeric_gradient,
    is_custom_device,
    paddle_static_guard,
    randomize_probability,
    skip_check_grad_ci,
    skip_check_inplace_ci,
)
from framework.paddle.op_test.helpers import _set_use_system_allocator as _set_use_system_allocator
from framework.paddle.op_test.numpy_names import install_numpy_names
from framework.paddle.op_test.scalar_message import make_scalar_proto

install_numpy_names()

__all__ = [
    "OpTest",
    "OpTestTool",
    "Operator",
    "check_grad_ci",
    "check_out_dtype",
    "convert_float_to_uint16",
    "convert_uint16_to_float",
    "copy_bits_from_float_to_uint16",
    "create_op",
    "get_numeric_gradient",
    "is_custom_device",
    "make_scalar_proto",
    "paddle_static_guard",
    "randomize_probability",
    "skip_check_grad_ci",
    "skip_check_inplace_ci",
]

for _name in ("op_test", "eager_op_test", "op", "testsuite"):
    sys.modules[_name] = sys.modules[__name__]
