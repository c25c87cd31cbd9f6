from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from framework.core.errors import ShapeError
from framework.nn import functional as F
from framework.nn.functional import lowering
from framework.nn.functional.conv import channel_sums, conv_padding


def test_the_platform_is_the_backend_or_the_scope():
    assert lowering.platform() == ("cpu" if jax.default_backend() == "cpu" else "other")
    with lowering.platform_scope("any"):
        assert lowering.platform() == "any"
        with lowering.platform_scope("other"):
            assert lowering.platform() == "other"
        assert lowering.platform() == "any"


def test_choose_runs_the_form_for_the_platform():
    forms = (lambda x: x + 1, lambda x: x + 2)
    x = jnp.zeros(())
    assert float(lowering.choose("cpu", *forms, x)) == 1 and float(lowering.choose("other", *forms, x)) == 2
    here = 1 if jax.default_backend() == "cpu" else 2
    assert float(jax.jit(lambda x: lowering.choose("any", *forms, x))(x)) == here


def test_a_program_for_several_platforms_keeps_the_forms_of_both():
    shapes = [jax.ShapeDtypeStruct(s, jnp.float32) for s in ((1, 4, 4, 3), (3, 1, 3, 3))]

    for scope, grouped in (("any", True), ("cpu", False), ("other", True)):

        def depthwise(x, w):  # a function of its own each time: jit's cache does not know the scope
            return F.conv2d(x, w, padding=1, groups=3)

        with lowering.platform_scope(scope):
            text = export.export(jax.jit(depthwise), platforms=["cpu", "cuda"])(*shapes).mlir_module()
        assert ("stablehlo.convolution" in text) == grouped, scope
        assert ("optimization_barrier" in text) == (scope != "other"), scope


def test_plans_of_plain_cases():
    plan = lowering.conv_plan
    assert plan(8, (3, 3), 8, 8, (1, 1), (1, 1)) == "depthwise"
    assert plan(8, (3, 3), 8, 16, (1, 1), (1, 1)) == "plain"  # two outputs a channel
    assert plan(8, (1, 1), 1, 16, (2, 2), (1, 1)) == "pointwise"
    assert plan(64, (3, 3), 1, 64, (1, 1), (1, 1)) == "plain"


@pytest.mark.parametrize(
    ("in_channels", "kernel_hw", "groups", "out_channels", "stride", "dilation", "plan"),
    [
        (3, (3, 3), 1, 16, (2, 2), (1, 1), "space_to_depth"),
        (4, (7, 7), 1, 64, (4, 4), (1, 1), "space_to_depth"),
        (1, (3, 3), 1, 1, (2, 1), (1, 1), "space_to_depth"),  # one channel is no depthwise convolution
        (5, (3, 3), 1, 16, (2, 2), (1, 1), "plain"),  # too many channels
        (3, (3, 3), 1, 16, (1, 1), (1, 1), "plain"),
        (3, (3, 3), 1, 16, (2, 2), (2, 2), "plain"),
        (3, (1, 1), 1, 16, (2, 2), (1, 1), "pointwise"),
        (48, (3, 3), 48, 48, (2, 2), (1, 1), "depthwise"),
        (48, (5, 5), 48, 48, (1, 1), (2, 2), "depthwise"),
        (48, (1, 1), 48, 48, (1, 1), (1, 1), "depthwise"),
        (48, (3, 3), 4, 48, (1, 1), (1, 1), "plain"),
        (48, (1, 1), 4, 48, (1, 1), (1, 1), "plain"),
    ],
)
def test_the_table_of_plans(in_channels, kernel_hw, groups, out_channels, stride, dilation, plan):
    assert lowering.conv_plan(in_channels, kernel_hw, groups, out_channels, stride, dilation) == plan


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        (1, ((1, 1), (1, 1))),
        ([1, 2], ((1, 1), (2, 2))),
        ([1, 2, 3, 4], ((1, 2), (3, 4))),
        ([[1, 2], [3, 4]], ((1, 2), (3, 4))),
        ("VALID", ((0, 0), (0, 0))),
        ("same", ((1, 1), (1, 2))),  # 7 rows by 2: 4 rows; 8 columns by 3 with 4 taps: 3 columns
    ],
)
def test_paddings(padding, expected):
    assert conv_padding(padding, (3, 5), (1, 1), (2, 3), (7, 8)) == expected


def test_same_padding_of_a_symbolic_size():
    (h,) = export.symbolic_shape("h")
    assert conv_padding("SAME", (3, 4), (1, 2), (1, 1), (h, h)) == ((1, 1), (3, 3))
    with pytest.raises(ShapeError, match="SAME padding with a stride depends on the size"):
        conv_padding("SAME", (3, 3), (1, 1), (2, 2), (h, h))


def test_channel_sums_adds_over_everything_but_channels():
    x = jnp.asarray(np.random.default_rng(0).standard_normal((2, 3, 5, 4)), jnp.float32)
    one, squares = channel_sums([x, x * x])
    np.testing.assert_allclose(one, np.asarray(x).sum((0, 1, 2)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(squares, np.square(x).sum((0, 1, 2)), rtol=1e-5)
