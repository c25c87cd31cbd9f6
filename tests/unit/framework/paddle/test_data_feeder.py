"""`paddle.base.DataFeeder`: samples as what an Executor is fed with; the expected values are those of Paddle 2.6.2."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from framework import paddle
from framework.paddle import base


@pytest.fixture(autouse=True)
def program() -> Iterator[None]:
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        paddle.static.data("image", [None, 2, 1, 3])
        paddle.static.data("label", [None, 1], "int64")
        paddle.static.data("text", [None, None], "int64")
        yield
    paddle.disable_static()


def samples(count: int) -> list[tuple[np.ndarray, int]]:
    return [(np.full(6, n, np.float64), n) for n in range(count)]


def test_flat_fields_get_the_shape_and_type_of_their_variables() -> None:
    image = paddle.static.default_main_program().global_block().var("image")
    feeder = base.DataFeeder([image, "label"], paddle.CPUPlace())
    batch = feeder.feed(samples(4))
    assert {name: value.shape() for name, value in batch.items()} == {"image": [4, 2, 1, 3], "label": [4, 1]}
    assert [np.asarray(batch[name]).dtype for name in ("image", "label")] == [np.float32, np.int64]
    executor = paddle.static.Executor()
    (total,) = executor.run(feed=batch, fetch_list=[paddle.sum(image)])
    assert total == 36


def test_what_has_several_free_sizes_stays_as_it_is() -> None:
    feeder = base.DataFeeder(["text"], None)
    assert feeder.feed([([1, 2, 3],), ([4, 5, 6],)])["text"].shape() == [2, 3]
    with pytest.raises(ValueError, match="text: the samples of a batch differ in shape"):
        feeder.feed([([1, 2, 3],), ([4],)])


def test_wrong_samples_and_names() -> None:
    feeder = base.DataFeeder(["image", "label"], None)
    with pytest.raises(AssertionError, match=r"fields in data \(1\) does not match len\(feed_list\) \(2\)"):
        feeder.feed([(1,)])
    with pytest.raises(ValueError, match=r"defined in data layer is \(-1, 2, 1, 3\), but receive \(1, 5\)"):
        feeder.feed([(np.ones(5), 1)])
    with pytest.raises(ValueError, match="absent"):
        base.DataFeeder(["absent"], None)
    with pytest.raises(TypeError, match="list of variable"):
        base.DataFeeder([3], None)  # type: ignore[list-item]


def test_sequences_go_one_behind_another_with_their_lengths() -> None:
    paddle.static.data("words", [None, 1], "int64", lod_level=1)
    batch = base.DataFeeder(["words"], None).feed([([1, 2, 3],), ([4],)])["words"]
    assert batch.recursive_sequence_lengths() == [[3, 1]] and batch.lod() == [[0, 3, 4]]
    np.testing.assert_array_equal(batch, [[1], [2], [3], [4]])
