from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.io import (
    BatchSampler,
    BucketBatchSampler,
    DistributedBatchSampler,
    RandomSampler,
    Sampler,
    SequenceSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from framework.io.sampler import order_rng

TEN = range(10)


def test_sequence() -> None:
    sampler = SequenceSampler(TEN)
    assert list(sampler) == list(TEN) and len(sampler) == 10
    assert list(SequenceSampler([])) == []


def random_samplers(seed: int) -> list[Any]:
    return [
        RandomSampler(TEN, seed=seed),
        RandomSampler(TEN, replacement=True, num_samples=20, seed=seed),
        WeightedRandomSampler(np.ones(10), 10, seed=seed),
        SubsetRandomSampler(TEN, seed=seed),
        BatchSampler(TEN, shuffle=True, batch_size=3, seed=seed),
        DistributedBatchSampler(TEN, 3, num_replicas=1, rank=0, shuffle=True, seed=seed),
    ]


@pytest.mark.parametrize("place", range(6))
def test_orders_are_functions_of_seed_and_epoch(place: int) -> None:
    sampler, same, other = random_samplers(5)[place], random_samplers(5)[place], random_samplers(6)[place]
    first = list(sampler)
    assert first == list(sampler) == list(same)
    assert first != list(other)
    sampler.set_epoch(1)
    assert list(sampler) != first
    sampler.set_epoch(0)
    assert list(sampler) == first
    assert len(sampler) == len(first)


def test_the_generator_of_an_order_is_none_of_the_samples() -> None:
    draws = {order_rng(3, 4).integers(1 << 60), np.random.default_rng((3, 4)).integers(1 << 60)}
    draws |= {np.random.default_rng((3, 4, index)).integers(1 << 60) for index in range(1, 5)}
    assert len(draws) == 6


def test_random_sampler() -> None:
    assert sorted(RandomSampler(TEN)) == list(TEN)
    drawn = list(RandomSampler([0, 0], replacement=True, num_samples=50))
    assert len(drawn) == 50 and set(drawn) == {0, 1}
    assert len(list(RandomSampler(TEN, replacement=True))) == 10
    assert list(RandomSampler([])) == [] == list(RandomSampler([], replacement=True, num_samples=3))
    assert len(RandomSampler([], replacement=True, num_samples=3)) == 0


def test_random_sampler_refuses() -> None:
    with pytest.raises(ConfigError, match="drawn once"):
        RandomSampler(TEN, num_samples=5)
    with pytest.raises(ConfigError, match=r"(?s)num_samples: a number is out of range.*>= 1"):
        RandomSampler(TEN, replacement=True, num_samples=0)
    with pytest.raises(ConfigError, match=r"(?s)seed: a number is out of range.*-1.*>= 0"):
        RandomSampler(TEN, seed=-1)


def test_weights_are_probabilities() -> None:
    drawn = np.bincount(list(WeightedRandomSampler([0.0, 1.0, 3.0], 4000)), minlength=3)
    assert drawn[0] == 0 and drawn[2] / drawn[1] == pytest.approx(3, rel=0.2)
    assert sorted(WeightedRandomSampler([1.0, 0.0, 2.0], 2, replacement=False)) == [0, 2]


@pytest.mark.parametrize("weights", [[[1.0]], [], [0.0, 0.0], [1.0, -1.0], [1.0, np.nan], [np.inf]])
def test_weights_are_checked(weights: Any) -> None:
    with pytest.raises(ShapeError, match="the weights of samples must be"):
        WeightedRandomSampler(weights, 1)


def test_weighted_sampler_refuses() -> None:
    with pytest.raises(ConfigError, match=r"(?s)without replacement.*at most 1"):
        WeightedRandomSampler([1.0, 0.0], 2, replacement=False)
    with pytest.raises(ConfigError, match="num_samples"):
        WeightedRandomSampler([1.0], 0)


def test_subset() -> None:
    assert sorted(SubsetRandomSampler([4, 9, 2])) == [2, 4, 9]
    with pytest.raises(ConfigError, match="nothing to draw from"):
        SubsetRandomSampler([])


def test_batches() -> None:
    sampler = BatchSampler(range(5), batch_size=2)
    assert list(sampler) == [[0, 1], [2, 3], [4]] and len(sampler) == 3
    sampler = BatchSampler(range(5), batch_size=2, drop_last=True)
    assert list(sampler) == [[0, 1], [2, 3]] and len(sampler) == 2
    sampler = BatchSampler(sampler=SubsetRandomSampler([7]), batch_size=2)
    assert list(sampler) == [[7]]
    assert list(BatchSampler([], batch_size=2)) == [] and len(BatchSampler([], batch_size=2)) == 0
    assert sorted(itertools.chain(*BatchSampler(range(5), shuffle=True, batch_size=2))) == [0, 1, 2, 3, 4]


def test_a_sampler_of_the_user_needs_no_set_epoch() -> None:
    class Backwards:
        def __iter__(self) -> Iterator[int]:
            return iter([2, 1, 0])

    sampler = BatchSampler(sampler=Backwards(), batch_size=2)
    sampler.set_epoch(3)
    assert list(sampler) == [[2, 1], [0]]
    with pytest.raises(TypeError, match="__iter__"):
        type("Half", (Sampler,), {})()


@pytest.mark.parametrize(
    ("settings", "received"),
    [
        ({}, "neither"),
        ({"dataset": TEN, "sampler": SequenceSampler(TEN)}, "dataset, sampler"),
        ({"sampler": SequenceSampler(TEN), "shuffle": True}, "sampler, shuffle"),
    ],
)
def test_a_batch_sampler_has_one_order(settings: dict[str, Any], received: str) -> None:
    with pytest.raises(ConfigError, match=rf"(?s)cuts one order.*received: {received}"):
        BatchSampler(**settings)


@pytest.mark.parametrize("size", [0, -1, 2.0, True, None])
def test_a_batch_size_is_a_positive_integer(size: Any) -> None:
    with pytest.raises(ConfigError, match="batch_size: a number is out of range"):
        BatchSampler(TEN, batch_size=size)


# Written out by hand; Paddle 2.6 gives the same.
@pytest.mark.parametrize(
    ("count", "replicas", "drop_last", "expected"),
    [
        (10, 3, False, [[[0, 1], [6, 7]], [[2, 3], [8, 9]], [[4, 5], [0, 1]]]),
        (9, 2, False, [[[0, 1], [4, 5], [8]], [[2, 3], [6, 7], [0]]]),
        (9, 2, True, [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]),
        (1, 3, False, [[[0]], [[0]], [[0]]]),
        (0, 2, False, [[], []]),
        (3, 1, False, [[[0, 1], [2]]]),
    ],
)
def test_distributed(count: int, replicas: int, drop_last: bool, expected: list[Any]) -> None:
    for rank, batches in enumerate(expected):
        sampler = DistributedBatchSampler(range(count), 2, replicas, rank, drop_last=drop_last)
        assert list(sampler) == batches and len(sampler) == len(batches)


def test_distributed_batches_together_are_the_global_batch() -> None:
    whole = list(DistributedBatchSampler(range(24), 6, 1, 0, shuffle=True, seed=2))
    parts = [list(DistributedBatchSampler(range(24), 2, 3, rank, shuffle=True, seed=2)) for rank in range(3)]
    assert [list(itertools.chain(*batches)) for batches in zip(*parts)] == whole


def test_distributed_asks_jax_for_the_processes() -> None:
    sampler = DistributedBatchSampler(TEN, 4)
    assert (sampler.num_replicas, sampler.rank) == (1, 0)
    assert list(sampler) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


@pytest.mark.parametrize(
    ("replicas", "rank", "name"), [(0, 0, "num_replicas"), (2, 2, "rank"), (2, -1, "rank")]
)
def test_distributed_refuses(replicas: int, rank: int, name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name}: a number is out of range"):
        DistributedBatchSampler(TEN, 2, replicas, rank)


def test_buckets_keep_lengths_together_and_lose_nothing() -> None:
    lengths = [3, 9, 4, 10, 2, 17, 4]
    sampler = BucketBatchSampler(lengths, (4, 10, 20), batch_size=2)
    assert list(sampler) == [[0, 2], [4, 6], [1, 3], [5]]
    assert len(sampler) == 4
    # Nothing fills the batch of the smallest bucket but a longer sample.
    assert list(BucketBatchSampler([1, 9, 1, 1], (4, 10), batch_size=2)) == [[0, 2], [3, 1]]
    dropped = BucketBatchSampler(lengths, (4, 10, 20), batch_size=2, drop_last=True)
    assert list(dropped) == [[0, 2], [4, 6], [1, 3]] and len(dropped) == 3
    assert list(BucketBatchSampler([], (4,), batch_size=2)) == []


def test_shuffled_buckets_depend_on_seed_and_epoch_alone() -> None:
    lengths = [n % 16 + 1 for n in range(100)]
    sampler = BucketBatchSampler(lengths, (8, 16), batch_size=8, shuffle=True, seed=3)
    first = list(sampler)
    assert first == list(sampler) and sorted(itertools.chain(*first)) == list(range(100))
    assert (
        sum(max(lengths[i] for i in batch) > 8 for batch in first) == 7
    )  # 50 long ones, and what was left over
    sampler.set_epoch(1)
    assert list(sampler) != first


def test_errors_of_buckets() -> None:
    with pytest.raises(ConfigError, match=r"(?s)buckets must be ascending lengths.*\[8, 4\]"):
        BucketBatchSampler([1], (8, 4))
    with pytest.raises(ConfigError, match=r"(?s)sample 1.*length 9.*up to 8"):
        BucketBatchSampler([1, 9], (4, 8))
