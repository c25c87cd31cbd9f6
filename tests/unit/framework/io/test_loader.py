"""The loader with threads and without; test_processes.py has the processes. What they make is the same."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError, ShapeError
from framework.core.transform import MixTransform, Transform
from framework.io import (
    BatchSampler,
    BucketBatchSampler,
    DataLoader,
    Dataset,
    DistributedBatchSampler,
    IterableDataset,
    get_worker_info,
)
from framework.io.collate import PadToBucket

REPO = Path(__file__).resolve().parents[4]


@dataclass(frozen=True)
class Item:
    value: float
    id: str | None = None


class Items(Dataset):
    """Notes what is read; the lower the index, the longer it takes, so that threads finish out of order."""

    def __init__(self, count: int, *, slow: float = 0.0, named: bool = False) -> None:
        self.count, self.slow, self.named, self.read = count, slow, named, []

    def __getitem__(self, index: int) -> Item:
        self.read.append(index)
        time.sleep(self.slow * (index % 3 == 0))
        if index == 1000:
            raise ValueError("sample 1000 is broken")
        return Item(index, f"item{index}" if self.named else None)

    def __len__(self) -> int:
        return self.count


class Stream(IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Item]:
        info = get_worker_info()
        assert info is None or (info.id, info.num_workers) == (0, 1)
        return (Item(value) for value in range(self.count))


def jitter(sample: Item, rng: np.random.Generator) -> Item:
    return Item(sample.value + rng.random(), sample.id)


@dataclass(frozen=True)
class Blend(MixTransform[Item]):
    extra: ClassVar[int] = 2

    def __call__(self, sample: Item, rng: np.random.Generator, others: Sequence[Item] = ()) -> Item:
        return Item(sample.value + sum(other.value for other in others) * rng.random(), sample.id)


@dataclass(frozen=True)
class Scale(Transform[Item]):
    """One factor a batch, as a random size would be."""

    per_batch: ClassVar[bool] = True

    def __call__(self, sample: Item, rng: np.random.Generator) -> Item:
        return Item(rng.random(), sample.id)


def pack(sample: Item) -> dict[str, Any]:
    return {"value": np.full((2, 3), sample.value, np.float32), "name": sample.id or ""}


def loader(dataset: Any, **settings: Any) -> DataLoader:
    chosen = {"batch_size": 3, "transforms": (jitter,), "pack": pack, "num_workers": 2, **settings}
    return DataLoader(dataset, **chosen)


def told(batches: Any) -> list[Any]:
    """What can be compared with ==."""
    return [
        (batch.index, batch.ids, {key: np.asarray(value).tolist() for key, value in batch.data.items()})
        for batch in batches
    ]


@pytest.fixture(autouse=True)
def no_thread_is_left(threads: Callable[[], list[str]]) -> Iterator[None]:
    yield
    gc.collect()
    assert threads() == []


def test_one_drawing_a_batch_with_any_workers_from_any_place() -> None:
    found = told(loader(Items(20), transforms=(Scale(),), num_workers=0).batches(1))
    factors = [np.unique(batch[2]["value"]) for batch in found]
    assert all(len(one) == 1 for one in factors) and len({float(one[0]) for one in factors}) == 7
    assert told(loader(Items(20), transforms=(Scale(),), num_workers=3).batches(1, start=4)) == found[4:]


@pytest.mark.parametrize("make", [lambda: Items(20, slow=0.002, named=True), lambda: Stream(20)])
def test_workers_change_nothing(make: Any) -> None:
    mixing = {} if isinstance(make(), Stream) else {"transforms": (jitter, Blend()), "shuffle": True}
    expected = told(loader(make(), num_workers=0, **mixing).batches(1))
    assert [batch[0] for batch in expected] == list(range(7)) and len(expected[-1][1]) == 2
    for workers in (1, 2, 4):
        assert told(loader(make(), num_workers=workers, **mixing).batches(1)) == expected


def test_seed_and_epoch_change_order_and_augmentation() -> None:
    found = {
        str(told(loader(Items(20), shuffle=True, seed=seed).batches(epoch)))
        for seed in (0, 1)
        for epoch in (0, 1)
    }
    assert len(found) == 4
    ordered = [told(loader(Items(4)).batches(epoch)) for epoch in (0, 1)]
    assert [batch[1] for batch in ordered[0]] == [(0, 1, 2), (3,)] == [batch[1] for batch in ordered[1]]
    assert ordered[0] != ordered[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_an_epoch_can_be_entered_anywhere(workers: int) -> None:
    whole = told(loader(Items(20), shuffle=True).batches(3))
    dataset = Items(20)
    assert told(loader(dataset, shuffle=True, num_workers=workers).batches(3, start=4)) == whole[4:]
    assert sorted(dataset.read) == sorted(index for batch in whole[4:] for index in batch[1])
    assert (
        told(loader(Stream(20), num_workers=workers).batches(3, start=4))
        == told(loader(Stream(20)).batches(3))[4:]
    )
    for dataset in (Items(20), Stream(20)):
        assert told(loader(dataset, num_workers=workers).batches(3, start=7)) == []


def test_two_iterators_at_once() -> None:
    made = loader(Items(12), shuffle=True)
    expected = [told(loader(Items(12), shuffle=True).batches(epoch)) for epoch in (0, 1)]
    pairs = list(zip(made.batches(0), made.batches(1)))
    assert [told(column) for column in zip(*pairs)] == expected


def test_paddle_style() -> None:
    made = loader(Items(5), shuffle=True, transforms=())
    assert len(made) == 2
    first = [batch["value"][:, 0, 0].tolist() for batch in made]
    assert first == [batch["value"][:, 0, 0].tolist() for batch in made]
    made.set_epoch(1)
    assert [batch["value"][:, 0, 0].tolist() for batch in made] != first
    assert sorted(sum(first, [])) == [0, 1, 2, 3, 4]  # noqa: RUF017


def test_drop_last() -> None:
    assert len(loader(Items(5), drop_last=True)) == 1
    for dataset in (Items(5), Stream(5)):
        assert [batch.ids for batch in loader(dataset, drop_last=True).batches(0)] == [(0, 1, 2)]


def test_pad_last() -> None:
    for dataset in (Items(4), Stream(4)):
        first, last = loader(dataset, pad_last=True, transforms=()).batches(0)
        assert first.ids == (0, 1, 2) and last.ids == (3, 3, 3)
        assert first.data["valid"].tolist() == [True] * 3 and last.data["valid"].tolist() == [
            True,
            False,
            False,
        ]
        assert last.data["value"].shape == (3, 2, 3) and (last.data["value"] == 3).all()
    sampler = DistributedBatchSampler(Items(3), 2, num_replicas=1, rank=0)
    padded = [
        batch.ids
        for batch in DataLoader(Items(3), batch_sampler=sampler, pack=pack, pad_last=True).batches(0)
    ]
    assert padded == [(0, 1), (2, 2)]


def pack_ragged(item: Item) -> dict:
    """A row as long as the value, but three where that is below two."""
    return {"row": np.full(max(3, int(item.value) * 2), item.value), "number": np.int64(item.value)}


@pytest.mark.parametrize("workers", [0, 2])
def test_an_evaluation_takes_images_of_different_sizes_one_by_one(workers: int) -> None:
    made = DataLoader(Items(5), batch_size=3, pack=pack_ragged, pad_last=True, num_workers=workers)
    batches = list(made.batches(0))
    assert [batch.ids for batch in batches] == [(0,), (1,), (2,), (3,), (4,)]
    assert [len(batch.data["row"][0]) for batch in batches] == [3, 3, 4, 6, 8]
    assert all(batch.data["valid"].tolist() == [True] for batch in batches)
    assert [batch.ids for batch in made.batches(0, start=1)] == [(3,), (4,)]  # the last is not filled up
    with pytest.raises(ShapeError, match="different shapes"):
        list(DataLoader(Items(3), batch_size=3, pack=pack_ragged))


def test_datasets_without_samples() -> None:
    assert list(loader(Stream(0), pad_last=True)) == []
    for dataset in (Items(0), []):
        made = loader(dataset, pad_last=True, shuffle=True)
        assert list(made) == [] and len(made) == 0


def test_any_sequence_and_a_collate_fn() -> None:
    made = DataLoader([1, 2, 3], batch_size=2, collate_fn=sum, num_workers=0)
    assert list(made) == [3, 3]


def test_samplers() -> None:
    assert [batch.ids for batch in loader(Items(9), sampler=[4, 2, 8, 0]).batches(0)] == [(4, 2, 8), (0,)]
    given = loader(Items(9), batch_size=1, batch_sampler=[[3, 3], np.array([1])])
    assert [batch.ids for batch in given.batches(0)] == [(3, 3), (1,)] and len(given) == 2
    shuffled = BatchSampler(Items(9), shuffle=True, batch_size=4, seed=5)
    made = loader(Items(9), batch_size=1, batch_sampler=shuffled)
    orders = [[batch.ids for batch in made.batches(epoch)] for epoch in (0, 1)]
    assert orders[0] != orders[1]
    shuffled.set_epoch(1)
    assert orders[1] == [tuple(batch) for batch in shuffled]


def test_workers_stay_close_to_the_consumer() -> None:
    dataset = Items(300)
    batches = loader(dataset, prefetch_factor=2).batches(0)
    next(batches)
    time.sleep(0.2)
    assert len(dataset.read) <= 3 * (1 + 2 * 2)
    batches.close()


@pytest.mark.parametrize("end", ["close", "drop"])
def test_an_iterator_that_is_left_stops_its_threads(end: str, threads: Callable[[], list[str]]) -> None:
    dataset = Items(100_000, slow=0.02)
    batches = iter(loader(dataset, num_workers=4))
    next(batches)
    assert len(threads()) == 4
    started = time.perf_counter()
    if end == "close":
        batches.close()  # type: ignore[attr-defined]
    else:
        del batches
    assert time.perf_counter() - started < 20 and threads() == []  # the epoch would take minutes


def test_no_thread_starts_before_the_first_batch(threads: Callable[[], list[str]]) -> None:
    batches = loader(Items(3)).batches(0)
    assert threads() == []
    batches.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_an_error_comes_in_its_place(workers: int) -> None:
    made = loader(Items(2000), sampler=[1, 2, 3, 5, 1000, 1000, 7], num_workers=workers, pack=pack)
    batches = made.batches(0)
    assert next(batches).ids == (1, 2, 3)
    with pytest.raises(
        InputError, match=r"(?s)^sample 1000 of Items: .*ValueError: sample 1000 is broken"
    ) as caught:
        next(batches)
    assert isinstance(caught.value.__cause__, ValueError) and caught.value.__cause__.__traceback__ is not None


def test_the_first_error_of_a_batch_is_told() -> None:
    def fail(sample: Item, rng: np.random.Generator) -> Item:
        time.sleep(0.02 if sample.value == 1 else 0)
        raise ValueError(f"value {sample.value}")

    with pytest.raises(InputError, match=r"^sample 1 of Items, function: "):
        list(loader(Items(9), sampler=[1, 2, 3], transforms=(fail,), num_workers=3))


def test_a_stream_that_breaks() -> None:
    class Breaks(IterableDataset):
        def __iter__(self) -> Iterator[Item]:
            yield from map(Item, range(4))
            raise OSError("the archive is cut off")

    for workers in (0, 2):
        batches = loader(Breaks(), num_workers=workers).batches(0)
        assert next(batches).ids == (0, 1, 2)
        with pytest.raises(InputError, match=r"(?s)^sample 4 of Breaks: .*OSError: the archive is cut off"):
            next(batches)


def test_leaving_python_in_a_worker_does_not_hang() -> None:
    def leave(sample: Item, rng: np.random.Generator) -> Item:
        sys.exit(3)

    with pytest.raises(SystemExit):
        list(loader(Items(3), transforms=(leave,)))


def test_worker_init_fn() -> None:
    seen, both = [], threading.Barrier(2)

    def init(number: int) -> None:
        info = get_worker_info()
        assert info is not None
        seen.append((number, info.id, info.num_workers))
        both.wait(5)

    list(loader(Items(9), worker_init_fn=init))
    assert sorted(seen) == [(0, 0, 2), (1, 1, 2)]

    def fail(number: int) -> None:
        raise ValueError(f"no licence for worker {number}")

    with pytest.raises(
        InputError, match=r"(?s)^worker \d of the DataLoader: a worker could not start.*no licence for"
    ):
        list(loader(Items(9), worker_init_fn=fail))


def test_a_batch_that_takes_too_long() -> None:
    made = loader(Items(9, slow=0.3), timeout=0.05)
    with pytest.raises(
        InputError, match=r"(?s)batch 0 of Items \(samples 0, 1, 2\): a batch took too long.*0.05 sec"
    ):
        next(made.batches(0))
    assert len(list(loader(Items(9), timeout=30))) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size: a number is out of range"),
        ({"num_workers": -1}, "num_workers: a number is out of range"),
        ({"prefetch_factor": 0}, "prefetch_factor: a number is out of range"),
        ({"seed": -1}, "seed: a number is out of range"),
        ({"worker_mode": "fork"}, r"(?s)worker_mode: unknown kind.*'fork'.*'thread' or 'process'"),
        ({"timeout": -1}, "timeout: a time limit is positive"),
        ({"batch_sampler": [[1]]}, "batch_sampler with batch_size"),
        ({"batch_sampler": [[1]], "batch_size": 1, "drop_last": True}, "batch_sampler with drop_last"),
        ({"sampler": [1], "shuffle": True}, "sampler with shuffle"),
        ({"pad_last": True, "drop_last": True}, "pad_last with drop_last"),
        (
            {"pad_last": True, "batch_size": 1, "batch_sampler": [[1]]},
            r"(?s)how large a full batch is.*a list without",
        ),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        loader(Items(3), **settings)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"shuffle": True}, "shuffle"),
        ({"sampler": [1]}, "sampler"),
        ({"batch_sampler": [[1]], "batch_size": 1}, "batch_sampler"),
        ({"transforms": (Blend(),)}, "Blend"),
    ],
)
def test_a_stream_has_no_index(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError, match=f"an IterableDataset with {name}"):
        loader(Stream(3), **settings)
    with pytest.raises(TypeError):
        len(loader(Stream(3)))


def test_epoch_start_and_indices_are_checked() -> None:
    with pytest.raises(ConfigError, match="epoch: a number is out of range"):
        loader(Items(3)).batches(-1)
    with pytest.raises(ConfigError, match="start: a number is out of range"):
        loader(Items(3)).batches(0, start=-1)
    for wrong in ([["a"]], [3], [[]]):
        with pytest.raises(
            ConfigError,
            match=r"(?s)list of the DataLoader: a batch of indices must be a list of whole numbers",
        ):
            list(loader(Items(3), batch_size=1, batch_sampler=wrong))


def test_a_program_may_end_in_the_middle() -> None:
    script = """
import time
from framework.io import DataLoader
class Slow(list):
    def __getitem__(self, index):
        time.sleep(0.05)
        return index
batches = iter(DataLoader(Slow(range(10000)), batch_size=8))
print(next(batches).tolist())
"""
    started = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPO,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split("]")[0], done.stderr) == (0, "[0, 1, 2, 3, 4, 5, 6, 7", "")
    assert time.perf_counter() - started < 60  # the epoch would take minutes


def test_the_package_loads_no_jax() -> None:
    script = (
        "import sys, framework.io as io; "
        "on_devices = ('prefetch_to_device', 'load_sharded', 'save_sharded'); "
        "names = [n for n in dir(io) if n not in on_devices and not n.startswith('_')]; "
        "[getattr(io, name) for name in names]; assert 'DataLoader' in names; "
        "print([m for m in ('jax', 'cv2', 'flax') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPO,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
    import framework.io

    with pytest.raises(AttributeError, match="no attribute 'Loader'"):
        framework.io.Loader  # type: ignore[attr-defined] # noqa: B018


def test_no_time_limit_is_said_as_in_paddle() -> None:
    assert DataLoader(Items(4), timeout=0).timeout is None


class Lines(Dataset):
    """Ids of 1 to 9 words."""

    def __len__(self) -> int:
        return 37

    def __getitem__(self, index: int) -> dict[str, np.ndarray]:
        return {"ids": np.full(1 + index * 5 % 9, index + 1)}


def test_shares_of_a_batch_are_padded_as_the_whole() -> None:
    """What several processes read of batches of several buckets are the rows of those that one reads."""

    def make(rows: list[int] | None) -> DataLoader:
        lengths = [1 + index * 5 % 9 for index in range(37)]
        sampler = BucketBatchSampler(lengths, (3, 6, 9), 4, shuffle=True, drop_last=True)
        loader = DataLoader(Lines(), batch_sampler=sampler, collate_fn=PadToBucket((3, 6, 9), {"ids": 0}))
        loader.select_rows(rows)
        return loader

    for epoch in (0, 1):
        whole = [batch.data["ids"] for batch in make(None).batches(epoch)]
        shares = [[batch.data["ids"] for batch in make(rows).batches(epoch)] for rows in ([0, 1], [2, 3])]
        assert len({batch.shape for batch in whole}) == 3
        for batch, first, second in zip(whole, *shares, strict=True):
            np.testing.assert_array_equal(np.concatenate([first, second]), batch)


def test_lengths_that_a_sampler_does_not_know() -> None:
    """Else one process would pad to another length, and all would wait for ever."""
    collate = PadToBucket((3, 9), {"ids": 0})
    loader = DataLoader(Lines(), batch_size=4, collate_fn=collate)
    with pytest.raises(ConfigError, match="length of the whole batch"):
        loader.select_rows([0, 1])
    sampler = BucketBatchSampler([1] * 37, (3, 9), 4)  # of samples that are in fact longer
    loader = DataLoader(Lines(), batch_sampler=sampler, collate_fn=collate)
    loader.select_rows([0, 1])
    with pytest.raises(ShapeError, match=r"(?s)fits no bucket.*length 6.*up to 3.*one bucket"):
        list(loader.batches(0))
