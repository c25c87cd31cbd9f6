"""Datasets, samplers and the loader of paddle.io, and paddle.metric."""

from __future__ import annotations

import numpy as np
import pytest

from framework import paddle
from framework.paddle import io, metric


class Squares(io.Dataset):
    def __getitem__(self, idx):
        return np.float32(idx * idx), {"name": str(idx), "label": np.array([idx])}

    def __len__(self):
        return 10


class Count(io.IterableDataset):
    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = io.get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(np.arange(start, self.count, step))


@pytest.mark.parametrize("workers", [0, 3])
def test_batches_are_lists_of_tensors_in_order(workers):
    loader = io.DataLoader(Squares(), batch_size=4, num_workers=workers)
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    values, fields = batches[1]
    assert values.dtype == paddle.float32 and values.tolist() == [16, 25, 36, 49]
    assert fields["name"] == ["4", "5", "6", "7"] and fields["label"].shape == [4, 1]
    assert [len(b[0]) for b in batches] == [4, 4, 2]
    assert len(list(io.DataLoader(Squares(), batch_size=4, drop_last=True, num_workers=workers))) == 2


@pytest.mark.parametrize("workers", [0, 2])
def test_streams_and_single_samples(workers):
    found = [b.tolist() for b in io.DataLoader(Count(5), batch_size=2, num_workers=workers)]
    assert found == ([[0, 1], [2, 3], [4]] if workers == 0 else [[0, 2], [1, 3], [4]])
    single = list(io.DataLoader(Count(3), batch_size=None, num_workers=workers))
    assert sorted(int(x) for x in single) == [0, 1, 2]
    assert [int(x[0]) for x in io.DataLoader(Squares(), batch_size=None, num_workers=workers)][3] == 9


def test_an_error_in_a_worker_reaches_the_caller():
    class Broken(Squares):
        def __getitem__(self, idx):
            if idx == 5:
                raise KeyError("sample 5")
            return np.zeros(1)

    with pytest.raises(KeyError, match="sample 5"):
        list(io.DataLoader(Broken(), num_workers=2))


def test_workers_are_set_up():
    seen = []
    list(io.DataLoader(Squares(), num_workers=2, worker_init_fn=seen.append))
    assert sorted(seen) == [0, 1]


def test_datasets():
    x = paddle.to_tensor(np.arange(6).reshape(3, 2))
    tensors = io.TensorDataset([x, x])
    assert len(tensors) == 3 and tensors[1][0].tolist() == [2, 3]
    both = io.ConcatDataset([Squares(), Squares()])
    assert len(both) == 20 and both[-1][0] == 81 and both[10][0] == 0
    assert len(io.ComposeDataset([Squares(), Squares()])[2]) == 4
    assert list(io.ChainDataset([Count(2), Count(1)])) == [0, 1, 0]
    parts = io.random_split(Squares(), [7, 3])
    assert sorted(int(s[1]["label"][0]) for part in parts for s in part) == list(range(10))
    with pytest.raises(ValueError):
        io.random_split(Squares(), [1])
    with pytest.raises(AssertionError):
        io.ConcatDataset([Count(2)])


def test_samplers():
    np.random.seed(3)
    expected = np.random.choice(np.arange(10), 10, replace=False).tolist()
    np.random.seed(3)
    assert list(io.RandomSampler(Squares())) == expected
    assert len(list(io.RandomSampler(Squares(), replacement=True, num_samples=4))) == 4
    assert set(io.WeightedRandomSampler([0.0, 1.0, 1.0], 20)) == {1, 2}
    assert sorted(io.SubsetRandomSampler([3, 5, 7])) == [3, 5, 7]
    assert list(io.BatchSampler(io.SequenceSampler(Squares()), batch_size=7)) == [list(range(7)), [7, 8, 9]]
    parts = [list(io.DistributedBatchSampler(Squares(), 2, 4, rank)) for rank in range(4)]
    assert parts[1] == [[2, 3], [9]] and sum(len(b) for p in parts for b in p) == 12
    shuffled = io.DistributedBatchSampler(Squares(), 10, 1, 0, shuffle=True)
    order = np.arange(10)
    np.random.RandomState(2).shuffle(order)
    shuffled.set_epoch(2)
    assert next(iter(shuffled)) == order.tolist()


def test_paddle_batch():
    assert list(paddle.batch(lambda: iter(range(5)), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(paddle.batch(lambda: iter(range(5)), 2, drop_last=True)()) == [[0, 1], [2, 3]]


def test_metrics():
    pred = paddle.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5]])
    label = paddle.to_tensor([[1], [1], [0]])
    top = metric.Accuracy(topk=(1, 2))
    assert top.update(top.compute(pred, label)) == pytest.approx([1 / 3, 2 / 3])
    assert top.accumulate() == pytest.approx([1 / 3, 2 / 3]) and top.name() == ["acc_top1", "acc_top2"]
    one_hot = paddle.to_tensor(np.eye(3)[[1, 1, 0]])
    np.testing.assert_array_equal(top.compute(pred, one_hot).numpy(), top.compute(pred, label).numpy())
    assert float(paddle.metric.accuracy(pred, label, k=2)) == pytest.approx(2 / 3)
    scores, truth = np.array([0.9, 0.6, 0.2, 0.4]), np.array([1, 0, 1, 0])
    for kind, expected in ((metric.Precision, 0.5), (metric.Recall, 0.5)):
        found = kind()
        found.update(scores, truth)
        assert found.accumulate() == expected
    halves = (
        np.array([0.6, 0.5]),
        np.array([1, 1]),
    )  # Paddle counts 0.5 as positive in the one, not in the other
    for kind, expected in ((metric.Precision, 1.0), (metric.Recall, 0.5)):
        found = kind()
        found.update(*halves)
        assert found.accumulate() == expected
    auc = metric.Auc()
    auc.update(np.stack([1 - scores, scores], 1), truth)
    assert auc.accumulate() == pytest.approx(0.5)
    with pytest.raises(ValueError):
        metric.Recall().update([1], [1])


def test_a_tensor_does_not_follow_the_array_that_it_was_made_of():
    values = np.zeros(100_000, np.float32)
    tensor = paddle.to_tensor(values)
    values[0] = 1
    assert float(tensor[0]) == 0
