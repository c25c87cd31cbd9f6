from __future__ import annotations

import math

import numpy as np
import pytest

from framework.core.errors import ShapeError
from framework.nn import initializer as I
from framework.nn.common import _ZeroRow
from framework.nn.moe import _EachExpert


def draw(initializer, shape=(200, 100), seed=0):
    values = initializer(np.random.default_rng(seed), shape)
    assert values.shape == shape and values.dtype == np.float32
    return values


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((3, 5), (3, 5)), ((8, 4, 3, 3), (36, 72)), ((8, 4, 5), (20, 40)), ((6,), (6, 6)), ((), (1, 1))],
)
def test_fans_follow_paddle(shape, expected):
    assert I.fans(shape) == expected


@pytest.mark.parametrize(
    ("initializer", "mean", "std"),
    [
        (I.Normal(1.0, 0.5), 1.0, 0.5),
        (I.Uniform(-2.0, 4.0), 1.0, 6 / math.sqrt(12)),
        (I.XavierUniform(), 0.0, math.sqrt(2 / 300)),
        (I.XavierNormal(gain=2.0), 0.0, 2 * math.sqrt(2 / 300)),
        (I.XavierNormal(fan_in=10, fan_out=40), 0.0, math.sqrt(2 / 50)),
        (I.KaimingNormal(), 0.0, math.sqrt(2 / 200)),
        (I.KaimingUniform(), 0.0, math.sqrt(2 / 200)),
        (I.KaimingNormal(fan_in=50, nonlinearity="linear"), 0.0, math.sqrt(1 / 50)),
        (I.KaimingUniform(negative_slope=1.0, nonlinearity="leaky_relu"), 0.0, math.sqrt(1 / 200)),
        (I.TruncatedNormal(0.0, 1.0), 0.0, 0.8796),  # of a normal cut at two sigma
    ],
)
def test_moments(initializer, mean, std):
    values = draw(initializer)
    assert values.mean() == pytest.approx(mean, abs=4 * std / math.sqrt(values.size))
    assert values.std() == pytest.approx(std, rel=0.02)


def test_bounds():
    uniform = draw(I.XavierUniform())
    assert np.abs(uniform).max() <= math.sqrt(6 / 300)
    truncated = draw(I.TruncatedNormal(0.0, 1.0, a=-0.5, b=1.0))
    assert truncated.min() >= -0.5 and truncated.max() <= 1.0


def test_the_generator_decides_the_values():
    np.testing.assert_array_equal(draw(I.Normal(), seed=1), draw(I.Normal(), seed=1))
    assert not np.array_equal(draw(I.Normal(), seed=1), draw(I.Normal(), seed=2))


def test_constant_and_assign():
    assert draw(I.Constant(2.5), (2, 3)).tolist() == [[2.5] * 3] * 2
    assert draw(I.Assign([[1, 2], [3, 4]]), (2, 2)).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(ShapeError, match="Assign has values of another shape"):
        draw(I.Assign([1.0]), (2,))


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (4, 3, 2)])
def test_orthogonal_rows_or_columns(shape):
    matrix = draw(I.Orthogonal(gain=2.0), shape).reshape(shape[0], -1).astype(np.float64)
    square = matrix @ matrix.T if shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(square, 4 * np.eye(len(square)), atol=1e-5)


def test_dirac_passes_its_input_through():
    weight = draw(I.Dirac(), (3, 2, 3, 3))
    assert weight[0, 0, 1, 1] == weight[1, 1, 1, 1] == 1 and weight.sum() == 2
    grouped = draw(I.Dirac(groups=2), (4, 2, 3))
    assert [grouped[i, i % 2, 1] for i in range(4)] == [1.0] * 4 and grouped.sum() == 4


def test_bilinear_is_the_kernel_of_twofold_upsampling():
    weight = draw(I.Bilinear(), (1, 1, 4, 4))
    line = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(weight[0, 0], np.outer(line, line))


@pytest.mark.parametrize(
    ("name", "param", "gain"),
    [
        ("linear", None, 1),
        ("conv2d", None, 1),
        ("sigmoid", None, 1),
        ("tanh", None, 5 / 3),
        ("relu", None, 2**0.5),
        ("leaky_relu", None, (2 / 1.0001) ** 0.5),
        ("leaky_relu", 1.0, 1.0),
        ("selu", None, 0.75),
    ],
)
def test_gains(name, param, gain):
    assert I.calculate_gain(name, param) == pytest.approx(gain)


def test_an_unknown_gain_is_an_error():
    with pytest.raises(ShapeError, match=r"unknown nonlinearity(.|\n)*'swosh'(.|\n)*relu"):
        I.calculate_gain("swosh")


@pytest.mark.parametrize("shape", [(7, 6), (5, 2, 3, 3), (9,), ()])
@pytest.mark.parametrize(
    "initializer",
    [
        *(I.Constant(2.0), I.Normal(1.0, 0.5), I.Uniform(0.0, 2.0), I.XavierUniform(), I.XavierNormal()),
        *(I.KaimingNormal(), I.KaimingUniform(fan_in=3), I.TruncatedNormal(), _ZeroRow(I.Normal(), 4)),
    ],
)
def test_blocks_have_the_bits_of_the_whole(initializer, shape):
    if isinstance(initializer, _ZeroRow) and (len(shape) == 0 or shape[0] <= 4):
        pytest.skip("no such row")
    whole = initializer(np.random.default_rng(3), shape)
    for numbers in (1, 12, 1000):
        blocks = list(initializer.blocks(np.random.default_rng(3), shape, numbers))
        np.testing.assert_array_equal(blocks[0] if shape == () else np.concatenate(blocks), whole)
        if numbers == 12 and shape == (7, 6) and not isinstance(initializer, I.TruncatedNormal):
            assert [len(block) for block in blocks] == [2, 2, 2, 1]


def test_experts_are_drawn_one_by_one():
    initializer = _EachExpert(I.XavierNormal())
    whole = initializer(np.random.default_rng(3), (3, 4, 5))
    blocks = list(initializer.blocks(np.random.default_rng(3), (3, 4, 5), 1))
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert len(blocks) == 3
