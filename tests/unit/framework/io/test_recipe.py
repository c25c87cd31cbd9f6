"""One sample's way from the dataset into a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError, MissingExtraError, OarError, ShapeError
from framework.core.transform import MixTransform, Transform
from framework.io import Dataset, IterableDataset, default_collate
from framework.io.recipe import END, Job, Reader, Recipe, describe_error, rebuild_error
from framework.vision.sample import Sample


class Squares(Dataset):
    """Sample i is i * i; counts what was read."""

    def __init__(self, count: int = 100) -> None:
        self.count, self.read = count, []

    def __getitem__(self, index: int) -> int:
        self.read.append(index)
        return index * index

    def __len__(self) -> int:
        return self.count


class Stream(IterableDataset):
    def __init__(self, *values: Any) -> None:
        self.values, self.epochs = values, []

    def set_epoch(self, epoch: int) -> None:
        self.epochs.append(epoch)

    def __iter__(self) -> Iterator[Any]:
        for value in self.values:
            if isinstance(value, Exception):
                raise value
            yield value


def recipe(dataset: Any, *transforms: Any, **settings: Any) -> Recipe:
    chosen = {
        "pack": None,
        "collate": default_collate,
        "seed": 7,
        "drop_last": False,
        "pad_to": None,
        **settings,
    }
    return Recipe(dataset, transforms, **chosen)


def part(made: Recipe, index: int, epoch: int = 0, batch: int = 0) -> Any:
    found = made.prepare(made.open(epoch, 0), Job(batch, epoch, [index]), index)
    assert found is not None
    return found


def draw(sample: Any, rng: np.random.Generator) -> tuple[Any, int]:
    return sample, int(rng.integers(1 << 60))


def test_the_generator_is_seeded_by_seed_epoch_index() -> None:
    assert part(recipe(Squares(), draw), 3, epoch=2).data == draw(9, np.random.default_rng((7, 2, 3)))


def test_transforms_share_the_generator_and_pack_comes_last() -> None:
    def second(sample: Any, rng: np.random.Generator) -> Any:
        return (*sample, int(rng.integers(1 << 60)))

    rng = np.random.default_rng((7, 0, 3))
    expected = [9, int(rng.integers(1 << 60)), int(rng.integers(1 << 60))]
    assert part(recipe(Squares(), draw, second, pack=list), 3).data == expected


def test_a_sample_is_named_by_its_id() -> None:
    pixels = np.zeros((1, 1, 3), np.uint8)
    named = recipe([Sample(pixels, id="a"), Sample(pixels), Sample(pixels, id=9)], pack=lambda sample: 0)
    assert [part(named, index).id for index in range(3)] == ["a", 1, 9]


@dataclass(frozen=True)
class Mix(MixTransform[Any]):
    """Gathers what it got; `look` says how many of the others it looks at."""

    extra: ClassVar[int] = 2
    look: int = 2

    def __call__(self, sample: Any, rng: np.random.Generator, others: Sequence[Any] = ()) -> Any:
        assert len(others) == 2
        return sample, [others[place] for place in range(self.look)], int(rng.integers(1 << 60))


def test_mixing_takes_samples_through_the_transforms_before_it() -> None:
    dataset = Squares()
    data = part(recipe(dataset, draw, Mix(), lambda sample, rng: ("after", sample)), 5).data
    rng = np.random.default_rng((7, 0, 5))
    first = draw(25, rng)
    indices = rng.integers(100, size=2).tolist()
    others = [draw(index**2, child) for index, child in zip(indices, rng.spawn(2))]
    assert data == ("after", (first, others, int(rng.integers(1 << 60))))
    assert dataset.read == [5, *indices]


def test_what_mixing_does_not_look_at_is_not_read_and_changes_nothing() -> None:
    dataset = Squares()
    (_, others, drawn) = part(recipe(dataset, Mix(look=0)), 5).data
    assert others == [] and dataset.read == [5]
    assert drawn == part(recipe(Squares(), Mix(look=2)), 5).data[2]


@dataclass(frozen=True)
class OneSize(Transform[Any]):
    """Says what it drew."""

    per_batch: ClassVar[bool] = True

    def __call__(self, sample: Any, rng: np.random.Generator) -> Any:
        return *(sample if isinstance(sample, tuple) else (sample,)), int(rng.integers(1 << 60))


def test_one_drawing_for_all_samples_of_a_batch() -> None:
    made = recipe(Squares(), OneSize(), lambda sample, rng: (*sample, int(rng.integers(1 << 60))), OneSize())
    (_, first, own, second), (_, first_too, other, second_too) = (part(made, i, 1, 4).data for i in (3, 5))
    assert (first, second) == (first_too, second_too) and first != second
    assert own == int(np.random.default_rng((7, 1, 3)).integers(1 << 60)) != other
    assert len({part(made, 3, epoch, batch).data[1] for epoch in (0, 1) for batch in (0, 4)}) == 4


def test_further_samples_get_the_drawing_of_their_batch() -> None:
    _, others, _ = part(recipe(Squares(), OneSize(), Mix()), 5, 1, 4).data
    drawn = part(recipe(Squares(), OneSize()), 9, 1, 4).data[1]
    assert [other[1] for other in others] == [drawn, drawn]


@dataclass(frozen=True)
class Slices(MixTransform[Any]):
    extra: ClassVar[int] = 3

    def __call__(self, sample: Any, rng: np.random.Generator, others: Sequence[Any] = ()) -> Any:
        return list(others) == others[:] and others[-1] == others[2] and others[1:] == [others[1], others[2]]


def test_the_others_are_a_sequence_each_read_once() -> None:
    dataset = Squares()
    assert part(recipe(dataset, Slices()), 1).data is True
    assert len(dataset.read) == 4


def test_mixing_within_mixing() -> None:
    dataset = Squares()
    sample, others, _ = part(recipe(dataset, Mix(), Mix()), 0).data
    assert len(sample) == 3 and [len(other) for other in others] == [3, 3]
    assert len(dataset.read) == 9


def broken(sample: Any, rng: np.random.Generator) -> Any:
    raise KeyError("colour")


def test_an_error_names_sample_dataset_and_line() -> None:
    with pytest.raises(InputError) as caught:
        part(recipe(Squares(), broken), 4)
    message = str(caught.value)
    assert "sample 4 of Squares, function: a sample could not be made" in message
    assert "KeyError: 'colour'" in message and 'raise KeyError("colour")' in message
    assert isinstance(caught.value.__cause__, KeyError) and caught.value.__cause__.__traceback__ is not None


@dataclass(frozen=True)
class Refuse:
    def __call__(self, sample: Any, rng: np.random.Generator) -> Any:
        raise ShapeError("too small", where="Refuse.size", received=1, allowed=">= 2", fix="grow it")


def test_our_errors_keep_their_class_and_parts() -> None:
    samples = [Sample(np.zeros((1, 1, 3), np.uint8), id="cat.jpg")]
    with pytest.raises(ShapeError) as caught:
        part(recipe(samples, Refuse()), 0)
    error = caught.value
    assert error.where == "sample 'cat.jpg' (index 0) of list, Refuse: Refuse.size"
    assert (error.problem, error.received, error.allowed, error.fix) == ("too small", 1, ">= 2", "grow it")


def test_errors_name_dataset_pack_and_mixed_in_samples() -> None:
    with pytest.raises(InputError, match=r"^sample 9 of list: (?s:.*)IndexError"):
        part(recipe([1]), 9)
    with pytest.raises(InputError, match=r"^sample 1 of Squares, pack: (?s:.*)ZeroDivisionError"):
        part(recipe(Squares(), pack=lambda sample: 1 / 0), 1)

    class Rotten(Squares):
        def __getitem__(self, index: int) -> int:
            return 1 // (index == 5)

    with pytest.raises(InputError, match=r"^sample 5 of Rotten, Mix, its other sample \d+: "):
        part(recipe(Rotten(), Mix()), 5)


def test_errors_with_a_constructor_of_their_own() -> None:
    error = describe_error(MissingExtraError("x", "nlp", "y"), "sample 1", "unused")
    assert isinstance(error, MissingExtraError) and error.where == "sample 1"
    again = rebuild_error(type(error), error.problem, error.where, None, None, error.fix)
    assert str(again) == str(error) and isinstance(again, OarError)


def job(*samples: int, index: int = 0) -> Job:
    return Job(index, 0, samples)


def test_a_batch() -> None:
    made = recipe(Squares())
    batch = made.make(made.open(0, 0), job(3, 1, index=6))
    assert batch is not None
    assert (batch.index, batch.ids, batch.data.tolist()) == (6, (3, 1), [9, 1])


def test_padding_repeats_the_last_sample() -> None:
    made = recipe(Squares(), pack=lambda sample: {"x": sample}, pad_to=4)
    batch = made.make(made.open(0, 0), job(3, 1))
    assert batch is not None
    assert batch.ids == (3, 1, 1, 1) and batch.data["x"].tolist() == [9, 1, 1, 1]
    assert batch.data["valid"].tolist() == [True, True, False, False]
    full = made.make(made.open(0, 0), job(3, 1, 0, 2))
    assert full is not None and full.data["valid"].tolist() == [True] * 4


@pytest.mark.parametrize(
    ("pack", "received"),
    [(None, "a batch that is a ndarray"), (lambda sample: {"valid": sample}, "the keys valid")],
)
def test_padding_needs_a_place_for_valid(pack: Any, received: str) -> None:
    made = recipe(Squares(), pack=pack, pad_to=2)
    with pytest.raises(ConfigError, match=rf"(?s)under the key 'valid'.*{received}"):
        made.make(made.open(0, 0), job(1, 2))


def test_an_error_of_collating_names_the_batch() -> None:
    made = recipe([np.zeros(index) for index in range(10)])
    with pytest.raises(
        ShapeError, match=r"^batch 2 of list \(samples 0, 1, 2, 3, 4, 5, 6, 7, \.\.\.\): sample: "
    ):
        made.make(made.open(0, 0), job(*range(10), index=2))
    made = recipe(Squares(), collate=lambda samples: samples[99])
    with pytest.raises(InputError, match=r"^batch 0 of Squares \(samples 1\): (?s:.*)IndexError"):
        made.make(made.open(0, 0), job(1))


def test_reader_gives_numbers_in_any_order() -> None:
    stream = Stream("a", "b", "c")
    reader = Reader(stream, epoch=4, first=0)
    assert [reader(2), reader(0), reader(1)] == ["c", "a", "b"]
    assert reader(3) is END and reader(10) is END
    assert stream.epochs == [4]


def test_reader_starts_later() -> None:
    reader = Reader(Stream("a", "b", "c"), epoch=0, first=2)
    assert reader(2) == "c" and reader(3) is END


def test_reader_gives_what_came_before_an_error() -> None:
    reader = Reader(Stream("a", OSError("gone"), "c"), epoch=0, first=0)
    for number in (1, 2):
        with pytest.raises(OSError, match="gone"):
            reader(number)
    assert reader(0) == "a"


def test_the_end_of_a_stream_cuts_a_batch() -> None:
    for drop_last, expected in ((False, ([1, 2], [3])), (True, ([1, 2], None))):
        made = recipe(Stream(1, 2, 3), drop_last=drop_last)
        source = made.open(0, 0)
        batches = [made.make(source, job(n, n + 1, index=n // 2)) for n in (0, 2, 4)]
        assert [None if batch is None else batch.data.tolist() for batch in batches] == [*expected, None]
