from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.io import (
    ChainDataset,
    ComposeDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    random_split,
)


class Numbers(Dataset):
    def __init__(self, *values: int) -> None:
        self.values = values

    def __getitem__(self, index: int) -> int:
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)


class Stream(IterableDataset):
    def __init__(self, *values: int) -> None:
        self.values, self.epoch = values, None

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(self.values)


def test_a_dataset_without_its_methods_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="__getitem__"):
        type("Half", (Dataset,), {"__len__": lambda self: 0})()
    with pytest.raises(TypeError, match="__iter__"):
        type("Half", (IterableDataset,), {})()


def test_both_kinds_are_datasets_and_streams_have_no_length() -> None:
    assert isinstance(Numbers(), Dataset) and not isinstance(Numbers(), IterableDataset)
    assert isinstance(Stream(), Dataset) and isinstance(Stream(), IterableDataset)
    assert list(Stream(3, 4)) == [3, 4]
    with pytest.raises(TypeError):
        len(Stream())  # type: ignore[arg-type]


def test_tensor_dataset() -> None:
    dataset = TensorDataset([np.arange(6).reshape(3, 2), [7, 8, 9]])
    assert len(dataset) == 3
    first, second = dataset[1]
    assert first.tolist() == [2, 3] and second == 8
    assert len(TensorDataset([np.zeros((0, 4))])) == 0


@pytest.mark.parametrize(
    "tensors", [[], [np.zeros(2), np.zeros(3)], [np.zeros(())], [np.zeros(2), np.zeros(())]]
)
def test_tensor_dataset_refuses(tensors: list[np.ndarray]) -> None:
    with pytest.raises(ShapeError, match="same number of rows"):
        TensorDataset(tensors)


def test_compose_joins_fields() -> None:
    dataset = ComposeDataset([Numbers(1, 2), TensorDataset([np.array([5, 6]), np.array([7, 8])])])
    assert len(dataset) == 2 and dataset[1] == (2, 6, 8)


def test_compose_refuses_other_lengths() -> None:
    with pytest.raises(ConfigError, match=r"(?s)differ in length.*\[2, 1\]"):
        ComposeDataset([Numbers(1, 2), Numbers(1)])


def test_concat() -> None:
    dataset = ConcatDataset([Numbers(1, 2), Numbers(), Numbers(3)])
    assert len(dataset) == 3 and list(dataset) == [1, 2, 3]
    assert dataset[-1] == 3 and dataset[-3] == 1
    for index in (3, -4):
        with pytest.raises(IndexError, match=f"index {index} of a ConcatDataset with 3 samples"):
            dataset[index]


@pytest.mark.parametrize("kind", [ComposeDataset, ConcatDataset])
@pytest.mark.parametrize("parts", [[], [Numbers(1), Stream(1)]])
def test_joining_takes_indexed_datasets(kind: type, parts: list[Dataset]) -> None:
    with pytest.raises(ConfigError, match=r"(?s)cannot be joined.*ChainDataset"):
        kind(parts)


def test_chain() -> None:
    parts = [Stream(1, 2), Stream(), Stream(3)]
    dataset = ChainDataset(parts)
    assert list(dataset) == [1, 2, 3] == list(dataset)
    dataset.set_epoch(4)
    assert [part.epoch for part in parts] == [4, 4, 4]


@pytest.mark.parametrize("parts", [[], [Stream(1), Numbers(1)]])
def test_chain_takes_streams(parts: list[IterableDataset]) -> None:
    with pytest.raises(ConfigError, match=r"(?s)cannot be chained.*ConcatDataset"):
        ChainDataset(parts)


def test_subset() -> None:
    dataset = Subset(Numbers(10, 11, 12), np.array([2, 0]))
    assert len(dataset) == 2 and list(dataset) == [12, 10]


def test_random_split_is_a_partition_that_the_seed_decides() -> None:
    dataset = Numbers(*range(10))
    first, empty, second = random_split(dataset, [7, 0, 3], seed=1)
    assert (len(first), len(empty), len(second)) == (7, 0, 3)
    assert sorted([*first, *second]) == list(range(10))
    assert list(random_split(dataset, [7, 3], seed=1)[0]) == list(first)
    assert list(random_split(dataset, [7, 3], seed=2)[0]) != list(first)
    assert random_split(Numbers(), [], seed=0) == []


@pytest.mark.parametrize("lengths", [[7, 2], [11, -1], []])
def test_random_split_refuses_other_sums(lengths: list[int]) -> None:
    with pytest.raises(ConfigError, match="add up to 10"):
        random_split(Numbers(*range(10)), lengths)
