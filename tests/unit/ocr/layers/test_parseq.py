import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import InputError
from framework.interop.named_weights import named_weights
from ocr.layers.parseq import PARSeqHead, draw_permutations, permutation_masks


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 25])
def test_permutations_are_orders_of_all_places_from_the_start_on(length: int) -> None:
    found = draw_permutations(np.random.default_rng(0), length)
    assert found.dtype == np.int32 and found.shape == ({1: 1, 2: 2}.get(length, 6), length + 2)
    assert (np.sort(found, axis=1) == np.arange(length + 2)).all()
    assert not found[:, 0].any() and len({tuple(row) for row in found.tolist()}) == len(found)
    np.testing.assert_array_equal(found[0], np.arange(length + 2))
    if length > 1:
        np.testing.assert_array_equal(found[1, 1:], np.arange(length + 1, 0, -1))
    # All but the second end with the end, and the fourth and sixth mirror those before them.
    assert (found[[row != 1 for row in range(len(found))], -1] == length + 1).all()
    for row in range(2, len(found), 2):
        np.testing.assert_array_equal(found[row, 1:-1], found[row + 1, 1:-1][::-1])


def test_permutations_depend_on_the_generator_alone() -> None:
    first, again, other = (draw_permutations(np.random.default_rng(seed), 9) for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()


@pytest.mark.parametrize(("length", "count", "name"), [(0, 6, "length"), (5, 1, "count")])
def test_too_few(length: int, count: int, name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is too small"):
        draw_permutations(np.random.default_rng(0), length, count)


def test_masks_by_hand() -> None:
    """Places: start 0, symbols 1 and 2, end 3; the second symbol is read before the first."""
    query, content = permutation_masks(jnp.array([0, 2, 1, 3]))
    # rows predict places 1, 2 and 3; columns are places 0, 1 and 2
    np.testing.assert_array_equal(query, [[1, 0, 1], [1, 0, 0], [1, 1, 1]])
    # rows stand at places 0, 1 and 2
    np.testing.assert_array_equal(content, [[1, 0, 0], [1, 1, 1], [1, 0, 1]])


@pytest.fixture(scope="module")
def head() -> PARSeqHead:
    built = PARSeqHead(16, 4, 2, 2, num_classes=7, length=4, refine=1)
    built.eval()
    weights = named_weights(built.state_shapes())
    weights["head.bias"][0] = -100.0  # no text ends
    built.set_state_dict(weights)
    return built


@pytest.fixture(scope="module")
def memory() -> jax.Array:
    return jnp.asarray(np.random.RandomState(0).standard_normal((2, 5, 16)), jnp.float32)


def test_left_to_right_is_what_training_asks_for_in_that_order(head: PARSeqHead, memory: jax.Array) -> None:
    """The symbols that are read, given as targets, are predicted with the same logits; two layers deep."""
    head.refine = 0
    logits = head(memory)
    head.refine = 1
    best = np.asarray(logits.argmax(-1))  # [2, 5]
    assert len(np.unique(best)) > 2
    tokens = np.concatenate([np.full((2, 1), head.start), best], axis=1)
    forward = np.arange(6)[None]
    found = head.permuted(memory, jnp.asarray(tokens), jnp.asarray(forward))[0]
    np.testing.assert_allclose(found, logits, atol=1e-5)


def test_a_place_does_not_see_its_own_symbol_nor_what_is_read_later(
    head: PARSeqHead, memory: jax.Array
) -> None:
    tokens = jnp.array([[7, 1, 2, 3, 4, 0]] * 2)
    orders = jnp.array([[0, 4, 2, 3, 1, 5]])
    base = head.permuted(memory, tokens, orders)[0]
    changed = head.permuted(memory, tokens.at[:, 3].set(6), orders)[0]
    # symbol 3 is read third: those before it and itself stay, the others change
    stays = np.abs(changed - base).max((0, 2)) < 1e-6
    np.testing.assert_array_equal(stays, [False, True, True, True, False])


def test_padding_changes_nothing(head: PARSeqHead, memory: jax.Array) -> None:
    short = jnp.array([[7, 1, 2, 0]] * 2)
    long = jnp.array([[7, 1, 2, 0, 8, 8]] * 2)
    found = head.permuted(memory, short, jnp.arange(4)[None])[0]
    padded = head.permuted(memory, long, jnp.arange(6)[None])[0]
    np.testing.assert_allclose(padded[:, :3], found, atol=1e-5)
