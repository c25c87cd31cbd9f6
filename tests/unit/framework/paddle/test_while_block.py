"""`While` and arrays whose positions are variables. The values are those of Paddle 2.6.2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from framework.paddle.static.nn.control_flow import While  # type: ignore[import-not-found]

from framework import paddle
from framework.core.errors import TraceError
from framework.paddle import static

X = {"x": np.arange(3, dtype=np.float32)}


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with static.program_guard(static.Program(), static.Program()):
        yield
    paddle.disable_static()


def run(*fetches: paddle.Tensor) -> list[list]:
    return [np.asarray(one).tolist() for one in static.Executor().run(feed=X, fetch_list=list(fetches))]


def counter(count: int) -> tuple:
    step, end = paddle.zeros([1], "int64"), paddle.full([1], count, "int64")
    return step, end, paddle.less_than(step, end)


def count_up(step: paddle.Tensor, end: paddle.Tensor, more: paddle.Tensor) -> None:
    paddle.increment(step)
    paddle.assign(paddle.less_than(step, end), more)


def test_a_block_assigns_to_variables_of_the_outside() -> None:
    step, end, more = counter(4)
    total, x = paddle.zeros([3]), static.data("x", [3])
    with While(more).block():
        paddle.assign(total + x * paddle.cast(step, "float32"), total)
        count_up(step, end, more)
    assert run(total, step, more) == [[0, 6, 12], [4], [False]]
    never = paddle.full([1], False, "bool")
    with While(never).block():
        paddle.assign(total + 1, total)
    assert run(total) == [[0, 6, 12]]


def test_loops_have_gradients() -> None:
    step, end, more = counter(4)
    x = static.data("x", [3])
    x.stop_gradient = False
    total = x * 0
    with While(more).block():
        paddle.assign(total + x * paddle.cast(step, "float32"), total)
        count_up(step, end, more)
    (gradient,) = static.gradients([total.sum()], [x])
    assert run(gradient) == [[6, 6, 6]]
    _, product = static.nn.while_loop(
        lambda i, y: i < 2, lambda i, y: [i + 1, y * x], [paddle.zeros([1], "int64"), x]
    )
    (gradient,) = static.gradients([product.sum()], [x])
    assert run(product, gradient) == [[0, 1, 8], [0, 3, 12]]


def test_arrays_grow_in_loops() -> None:
    step, end, more = counter(4)
    x = static.data("x", [3])
    x.stop_gradient = False
    array = paddle.tensor.create_array("float32")
    with pytest.raises(TraceError, match="no variables yet"), While(more).block():
        paddle.tensor.array_read(array, step)
    with While(more).block():
        paddle.tensor.array_write(x * paddle.cast(step, "float32"), step, array)
        count_up(step, end, more)
    length, last = paddle.tensor.array_length(array), paddle.tensor.array_read(array, end - 1)
    (gradient,) = static.gradients([last.sum()], [x])
    stacked, sizes = paddle.tensor.manipulation.tensor_array_to_tensor(array, axis=0, use_stack=True)
    assert stacked.shape == (-1, 3)
    rows = [[0, 0, 0], [0, 1, 2], [0, 2, 4], [0, 3, 6]]
    assert run(length, last, gradient, stacked, sizes) == [[4], rows[3], [3, 3, 3], rows, [1, 1, 1, 1]]
    with pytest.raises(TraceError, match="only known when the program runs"):
        paddle.stack(array)


def test_arrays_that_were_written_before_are_read_in_nested_loops() -> None:
    x = static.data("x", [3])
    outer, two, more = counter(2)
    zero = paddle.zeros([1], "int64")
    array = paddle.tensor.array_write(x + 1, zero)
    with While(more).block():
        inner, three, again = counter(3)
        with While(again).block():
            value = paddle.tensor.array_read(array, zero)
            paddle.tensor.array_write(value * 2, zero, array)
            count_up(inner, three, again)
        count_up(outer, two, more)
    assert run(paddle.tensor.array_read(array, zero)) == [[64, 128, 192]]
    assert run(paddle.tensor.array_read(array, zero)) == [[64, 128, 192]]


def test_variables_of_loops_in_dicts_and_lists() -> None:
    x = static.data("x", [3])
    start = [paddle.zeros([1], "int64"), {"sum": x}, [[x]]]
    step, sums, nested = static.nn.while_loop(
        lambda i, d, n: i < 3, lambda i, d, n: [i + 1, {"sum": d["sum"] + n[0][0]}, n], start
    )
    assert run(step, sums["sum"], nested[0][0]) == [[3], [0, 4, 8], [0, 1, 2]]
    with pytest.raises(ValueError, match="another structure"):
        static.nn.while_loop(lambda i, d, n: i < 3, lambda i, d, n: [i + 1, d], start)


def test_the_condition_is_one_boolean() -> None:
    for condition in (paddle.full([2], True, "bool"), paddle.full([1], 1.0)):
        with pytest.raises(TypeError, match="cond"):
            While(condition)


def with_lod(array: np.ndarray, lod: list[list[int]]) -> paddle.base.core.LoDTensor:
    tensor = paddle.base.core.LoDTensor()
    tensor.set(array, paddle.CPUPlace())
    tensor.set_lod(lod)
    return tensor


def append(op_type: str, inputs: dict, outputs: dict[str, str], **attrs: object) -> list[paddle.Tensor]:
    """Append an operator; returns new variables of its outputs, whose types are given by slot."""
    block = static.default_main_program().current_block()
    made = {slot: block.create_var(dtype=dtype, shape=[-1]) for slot, dtype in outputs.items()}
    block.append_op(type=op_type, inputs=inputs, outputs=made, attrs=attrs)
    return list(made.values())


def test_a_search_with_beams_in_a_loop():
    """Lengths of sequences go through the loop and its arrays; the sequences are those of Paddle 2.6.2."""
    words, steps = 7, 4
    table = np.log(np.random.RandomState(3).dirichlet(np.ones(words), words)).astype(np.float32)
    table[:, 0] -= 0.5
    weights = static.data("table", [words, words])
    tokens, scores = (
        static.data(name, [None, 1], kind, lod_level=2)
        for name, kind in (("tokens", "int64"), ("scores", "float32"))
    )
    step, limit = paddle.zeros([1], "int64"), paddle.full([1], steps, "int64")
    found, rated = (paddle.tensor.create_array(kind) for kind in ("int64", "float32"))
    paddle.tensor.array_write(tokens, step, found)
    paddle.tensor.array_write(scores, step, rated)
    more = paddle.less_than(step, limit)
    selected = {"selected_ids": "int64", "selected_scores": "float32", "parent_idx": "int32"}
    with While(more).block():
        before, rate = paddle.tensor.array_read(found, step), paddle.tensor.array_read(rated, step)
        best, ids = paddle.topk(paddle.gather(weights, paddle.reshape(before, [-1])), 3)
        (total,) = append("lod_reset", {"X": best + rate, "Y": rate}, {"Out": "float32"})
        slots = {"pre_ids": before, "pre_scores": rate, "ids": ids, "scores": total}
        new, sums, _ = append(
            "beam_search", slots, selected, level=0, beam_size=2, end_id=0, is_accumulated=True
        )
        paddle.increment(step)
        paddle.tensor.array_write(new, step, found)
        paddle.tensor.array_write(sums, step, rated)
        paddle.assign(paddle.less_than(step, limit), more)
    sentences = {"SentenceIds": "int64", "SentenceScores": "float32"}
    fetches = append("beam_search_decode", {"Ids": found, "Scores": rated}, sentences, beam_size=2, end_id=0)
    lod = [[0, 1, 2], [0, 1, 2]]
    feed = {"table": table, "tokens": with_lod(np.array([[1], [2]]), lod)}
    feed["scores"] = with_lod(np.zeros((2, 1), np.float32), lod)
    ids, rates = static.Executor().run(feed=feed, fetch_list=fetches, return_numpy=False)
    expected = [[1, 5, 1, 5, 1], [1, 5, 1, 5, 2], [2, 1, 5, 1, 5], [2, 1, 5, 1, 4]]
    assert np.asarray(ids).reshape(4, 5).tolist() == expected
    np.testing.assert_allclose(
        np.asarray(rates).reshape(4, 5)[:, -1], [-4.5939, -4.8550, -4.8158, -5.3559], atol=1e-4
    )
    assert ids.lod() == rates.lod() == [[0, 2, 4], [0, 5, 10, 15, 20]]  # type: ignore[union-attr]


def test_sequences_end_once_and_stop_where_their_source_has_ended():
    """The second step has no row of the first source; the values are those of Paddle 2.6.2."""
    steps = [
        ([1, 1], [0.0, 0.0], [[0, 1, 2], [0, 1, 2]]),
        ([0, 2, 3, 0], [0.3, 0.5, 0.6, 0.2], [[0, 1, 2], [0, 2, 4]]),
        ([4, 0], [0.9, 0.1], [[0, 2, 4], [0, 0, 0, 1, 2]]),
    ]
    found, rated = (paddle.tensor.create_array(kind) for kind in ("int64", "float32"))
    feed = {}
    for index, (tokens, scores, lod) in enumerate(steps):
        position = paddle.full([1], index, "int64")
        for array, kind, values in ((found, "int64", tokens), (rated, "float32", scores)):
            name = f"{kind}_{index}"
            paddle.tensor.array_write(static.data(name, [None, 1], kind, lod_level=2), position, array)
            feed[name] = with_lod(np.array(values, kind)[:, None], lod)
    sentences = {"SentenceIds": "int64", "SentenceScores": "float32"}
    fetches = append("beam_search_decode", {"Ids": found, "Scores": rated}, sentences, beam_size=2, end_id=0)
    ids, rates = static.Executor().run(feed=feed, fetch_list=fetches, return_numpy=False)
    assert np.asarray(ids).ravel().tolist() == [1, 2, 1, 0, 1, 3, 4, 1, 0]
    np.testing.assert_allclose(np.asarray(rates).ravel(), [0, 0.5, 0, 0.3, 0, 0.6, 0.9, 0, 0.1])
    assert ids.lod() == [[0, 2, 4], [0, 2, 4, 7, 9]]  # type: ignore[union-attr]
