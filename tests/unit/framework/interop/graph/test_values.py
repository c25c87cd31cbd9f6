import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

from framework.core.errors import ShapeError
from framework.interop.graph.values import (
    MAX_ELEMENTS,
    Value,
    align,
    channels_last,
    count,
    dims_array,
    reshape,
    to_jax,
)

RNG = np.random.default_rng(0)


def image(*shape: int) -> tuple[np.ndarray, Value]:
    """The same numbers in logical order and stored channels-last."""
    array = RNG.normal(size=shape).astype(np.float32)
    order = channels_last(len(shape))
    return array, Value(Value.of(jnp.asarray(array)).stored(order), order)


def test_a_value_knows_its_logical_order():
    array, value = image(2, 3, 4, 5)
    assert value.shape == (2, 3, 4, 5) and value.data.shape == (2, 4, 5, 3)
    np.testing.assert_array_equal(value.logical(), array)
    np.testing.assert_array_equal(value.stored((3, 2, 1, 0)), array.T)


def test_lines_images_and_volumes_are_stored_with_their_channels_last():
    for sizes, stored in (((2, 3), (2, 3)), ((2, 3, 4), (2, 4, 3)), ((2, 3, 4, 5, 6), (2, 4, 5, 6, 3))):
        array = RNG.normal(size=sizes).astype(np.float32)
        found = Value.of(jnp.asarray(array)).channels_last()
        assert found.shape == stored
        np.testing.assert_array_equal(found, np.moveaxis(array, 1, -1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ((2, 6, 4, 5), (2, 6, 20)),
        ((2, 6, 4, 5), (2, 2, 3, 4, 5)),
        ((2, 6, 4, 5), (2, 120)),
        ((2, 6, 4, 5), (12, 20)),
        ((2, 6, 1, 1), (2, 6)),
        ((2, 6, 4, 5), (2, 6, 2, 2, 5, 1)),
        ((2, 2, 3, 4, 5), (2, 6, 4, 5)),
        ((1, 6, 4, 5), (6, 4, 5)),
        ((2, 6, 4, 5), (240,)),
        ((0, 3, 4), (0, 12)),
        ((1, 1, 1), ()),
    ],
)
def test_reshapes_are_those_of_the_logical_order(old, new):
    array, value = image(*old)
    np.testing.assert_array_equal(reshape(value, new).logical(), array.reshape(new))


def test_merging_rows_and_columns_moves_nothing():
    _, value = image(2, 6, 4, 5)
    merged = reshape(value, (2, 6, 20))
    assert merged.order == (0, 2, 1) and merged.data.shape == (2, 20, 6)
    text = str(jax.make_jaxpr(lambda x: reshape(Value(x, value.order), (2, 6, 20)).data)(value.data))
    assert "transpose" not in text


def test_symbolic_sizes_merge_and_split():
    n, h, w = export.symbolic_shape("n,h,w")

    def merge(x: jax.Array) -> jax.Array:
        return reshape(Value(x, channels_last(4)), (n, 6, h * w)).data

    spec = jax.ShapeDtypeStruct((n, h, w, 6), np.float32)
    program = export.export(jax.jit(merge))(spec)
    assert str(program.out_avals[0].shape) == "(n, h*w, 6)" and "transpose" not in program.mlir_module()


def test_operands_meet_in_the_layout_of_the_largest():
    array, value = image(2, 3, 4, 5)
    bias = RNG.normal(size=(3, 1, 1)).astype(np.float32)
    (a, b, c), order = align([value, bias, np.float32(2)])
    assert order == value.order and a is value.data and b.shape == (1, 1, 1, 3) and c.shape == ()
    np.testing.assert_allclose(Value(a * b + c, order).logical(), array * bias + 2, rtol=1e-6)


def test_sizes_are_kept_as_they_are():
    (n,) = export.symbolic_shape("n")
    assert dims_array([2, 3]).dtype == np.int64
    assert (dims_array([n, 3]) * 2).tolist() == [2 * n, 6]
    assert count([n, 3], "here") == 3 * n


@pytest.mark.parametrize("shape", [(-1, 3), (MAX_ELEMENTS, 2)])
def test_impossible_sizes(shape):
    with pytest.raises(ShapeError, match="node x: a value of the graph has an impossible size"):
        count(shape, "node x")


def test_integers_are_narrowed_with_a_check():
    assert to_jax(np.int64([1, -2])).dtype == jnp.int32
    assert to_jax(np.uint64([2**32 - 1])).tolist() == [2**32 - 1]
    with pytest.raises(ShapeError, match="does not fit into 32 bits"):
        to_jax(np.int64([2**40]))
