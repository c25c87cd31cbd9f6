from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.io import Batch, DataLoader, prefetch_to_device


@pytest.fixture(autouse=True)
def no_thread_is_left(threads: Callable[[], list[str]]) -> Iterator[None]:
    yield
    gc.collect()
    for _ in range(100):
        if not threads():
            return
        time.sleep(0.02)
    raise AssertionError(threads())


def test_arrays_are_moved_and_narrowed_the_rest_stays() -> None:
    data = {
        "image": np.ones((2, 3), np.uint8),
        "label": np.array([1, 2**31 - 1]),
        "more": [np.zeros(2, np.float64), (np.float64(1.5), "text")],
        "name": ["a", "b"],
        "objects": np.array([None]),
    }
    (out,) = prefetch_to_device([data])
    assert isinstance(out["image"], jax.Array) and out["image"].dtype == np.uint8
    assert out["label"].dtype == np.int32 and out["label"].tolist() == [1, 2**31 - 1]
    assert out["more"][0].dtype == np.float32 and out["more"][1][0].dtype == np.float32
    assert out["more"][1][1] == "text" and out["name"] == ["a", "b"] and out["objects"] is data["objects"]


def test_batches_keep_index_and_ids() -> None:
    (out,) = prefetch_to_device([Batch(3, ("a",), {"x": np.zeros(1)})], jax.devices()[0])
    assert (out.index, out.ids) == (3, ("a",)) and out.data["x"].devices() == {jax.devices()[0]}


def test_a_sharding() -> None:
    mesh = jax.make_mesh((1,), ("data",), devices=jax.devices()[:1])
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    (out,) = prefetch_to_device([{"x": np.arange(4)}], sharding)
    assert out["x"].sharding == sharding and out["x"].tolist() == [0, 1, 2, 3] and out["x"].dtype == np.int32


def test_order_and_end() -> None:
    moved = prefetch_to_device(({"x": np.array(n)} for n in range(10)), size=3)
    assert [int(batch["x"]) for batch in moved] == list(range(10))
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(moved)
    assert list(prefetch_to_device([])) == []


def settle(taken: list[int], count: int) -> None:
    """Wait until so many are taken, and a little longer for one too many."""
    deadline = time.monotonic() + 20
    while len(taken) < count and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)


def test_it_runs_ahead_by_size_and_not_further() -> None:
    taken: list[int] = []

    def batches() -> Iterator[np.ndarray]:
        for number in range(100):
            taken.append(number)
            yield np.array(number)

    moved = prefetch_to_device(batches(), size=2)
    settle(taken, 2)
    assert taken == [0, 1]
    next(moved)
    settle(taken, 3)
    assert taken == [0, 1, 2]
    moved.close()
    assert list(moved) == []


def test_waited_counts_the_time_of_the_consumer() -> None:
    def slow() -> Iterator[np.ndarray]:
        for _ in range(3):
            time.sleep(0.1)
            yield np.zeros(1)

    moved = prefetch_to_device(slow())
    assert moved.waited == 0
    list(moved)
    assert moved.waited > 0.2
    ready = prefetch_to_device([np.zeros(1)] * 2)
    time.sleep(1)
    next(ready), next(ready)
    assert ready.waited < 1  # the consumer's own second is none of it
    ready.close()


def test_errors_come_at_their_batch() -> None:
    moved = prefetch_to_device([{"x": np.array([1])}, {"label": np.array([2**31])}])
    assert next(moved)["x"].tolist() == [1]
    with pytest.raises(ShapeError, match=r"^batch\.label: an integer does not fit"):
        next(moved)
    with pytest.raises(ShapeError, match=r"^batch 5\.0: an integer does not fit"):
        list(prefetch_to_device([Batch(5, (), [np.array([2**31])])]))

    def broken() -> Iterator[Any]:
        yield np.zeros(1)
        raise KeyError("x")

    moved = prefetch_to_device(broken())
    next(moved)
    with pytest.raises(KeyError):
        next(moved)


@pytest.mark.parametrize("end", ["close", "drop"])
def test_leaving_it_stops_the_loader_too(end: str, threads: Callable[[], list[str]]) -> None:
    loader = DataLoader(list(range(10000)), batch_size=4, num_workers=2)
    moved = prefetch_to_device(loader.batches(0))
    assert next(moved).ids == (0, 1, 2, 3)
    assert len(threads()) == 3
    if end == "close":
        moved.close()
        assert threads() == []
    else:
        del moved


def test_size_is_checked() -> None:
    with pytest.raises(ConfigError, match="size: a number is out of range"):
        prefetch_to_device([], size=0)
