"""Samples that cannot be read: what an error says of them, and what a loader puts in their place."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.core.transform import MixTransform
from framework.io import DataLoader, Dataset, IterableDataset
from framework.io.skipped import SKIPPED_FILE, SkipLog, SkippedSample


@dataclass(frozen=True)
class Numbers(Dataset):
    """Sample i is {"x": i}; those in `broken` cannot be read."""

    count: int
    broken: tuple[int, ...] = ()

    def __getitem__(self, index: int) -> dict[str, int]:
        if index in self.broken:
            raise InputError("cut off", where=f"{index}.jpg", received="3 bytes", fix="copy it again")
        return {"x": index}

    def __len__(self) -> int:
        return self.count


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[dict[str, int]]:
        raise InputError("cut off")


class Mix(MixTransform):
    extra: ClassVar[int] = 3

    def __call__(self, sample: Any, rng: np.random.Generator, others: Any = ()) -> Any:
        return {"x": np.array([sample["x"], *(other["x"] for other in others)])}


def values(loader: DataLoader, epoch: int = 0, start: int = 0) -> list[list[int]]:
    return [batch.data["x"].tolist() for batch in loader.batches(epoch, start)]


def test_without_the_setting_the_error_names_file_and_key() -> None:
    with pytest.raises(InputError) as caught:
        values(DataLoader(Numbers(4, (2,)), num_workers=0))
    assert str(caught.value) == (
        "sample 2 of Numbers: 2.jpg: cut off\n  received: 3 bytes\n  what to do: copy it again; "
        "`skip_bad_samples: true` beside the data set leaves such samples out and lists them"
    )
    with pytest.raises(InputError, match=r"Mix, its other sample 2(?s:.)*skip_bad_samples: true"):
        values(DataLoader(Numbers(4, (2,)), transforms=[Mix()], num_workers=0))


def test_nothing_else_is_taken_for_a_damaged_sample() -> None:
    def fail(sample: Any, rng: np.random.Generator) -> Any:
        raise InputError("no such field")

    loader = DataLoader(Numbers(4), transforms=[fail], num_workers=0, skip_bad_samples=True)
    with pytest.raises(InputError, match="no such field") as caught:
        values(loader)
    assert "skip_bad_samples" not in str(caught.value)


def test_others_come_in_the_place_of_bad_samples_and_the_rest_is_as_before() -> None:
    plain = values(DataLoader(Numbers(40), batch_size=4, shuffle=True, seed=3, num_workers=0), epoch=1)
    loader = DataLoader(
        Numbers(40, (7, 30)), batch_size=4, shuffle=True, seed=3, num_workers=0, skip_bad_samples=True
    )
    found = values(loader, epoch=1)
    changed = [(a, b) for a, b in zip(np.ravel(plain), np.ravel(found)) if a != b]
    assert [a for a, _ in changed if a not in (7, 30)] == [] and len(changed) == 2
    assert all(b not in (7, 30) for _, b in changed)
    assert loader.skip_log.found == {"7.jpg": "cut off (3 bytes)", "30.jpg": "cut off (3 bytes)"}
    assert values(loader, epoch=1, start=4) == found[4:]  # as after a resumed run
    assert values(loader, epoch=2) != found


@pytest.mark.parametrize("mode", ["thread", "process"])
def test_workers_make_the_same_batches(mode: Any) -> None:
    data = Numbers(24, (3, 5, 17))
    inline = DataLoader(data, transforms=[Mix()], batch_size=4, num_workers=0, skip_bad_samples=True)
    workers = DataLoader(
        data, transforms=[Mix()], batch_size=4, num_workers=2, worker_mode=mode, skip_bad_samples=True
    )
    assert values(inline) == values(workers)
    assert inline.skip_log.found == workers.skip_log.found != {}


def test_in_evaluation_a_replacement_does_not_count() -> None:
    loader = DataLoader(Numbers(5, (1, 4)), batch_size=2, num_workers=0, pad_last=True, skip_bad_samples=True)
    batches = list(loader.batches(0))
    counted = [batch.data["x"][batch.data["valid"]].tolist() for batch in batches]
    assert counted == [[0], [2, 3], []] and [len(batch.data["x"]) for batch in batches] == [2, 2, 2]


def test_a_data_set_without_a_good_sample_ends_in_the_error() -> None:
    with pytest.raises(InputError, match=r"1\.jpg: cut off(?s:.)*11 samples could not be read"):
        values(
            DataLoader(Numbers(50, tuple(range(1, 50))), sampler=[1], num_workers=0, skip_bad_samples=True)
        )


def test_a_stream_is_refused() -> None:
    with pytest.raises(ConfigError, match="skip_bad_samples"):
        DataLoader(Stream(), skip_bad_samples=True)


def test_each_sample_is_listed_once_in_log_and_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / SKIPPED_FILE
    log = SkipLog(file)
    for where in ("a.jpg", "b.jpg", "a.jpg"):
        log.add(SkippedSample(where, "cut off"))
    SkipLog(file).add(SkippedSample("b.jpg", "cut off"))
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_bytes(file.read_bytes() + b'{"where": "c.j')  # as a killed run leaves it
    resumed = SkipLog(file)
    assert list(resumed.found) == ["a.jpg", "b.jpg"]
    resumed.add(SkippedSample("d.jpg", "cut off"))
    assert list(SkipLog(file).found) == ["a.jpg", "b.jpg", "d.jpg"]
    assert rows == [{"where": name, "reason": "cut off"} for name in ("a.jpg", "b.jpg")]
    assert caplog.messages == [
        "left out, sample 1 so far: a.jpg: cut off",
        "left out, sample 2 so far: b.jpg: cut off",
        "left out, sample 3 so far: d.jpg: cut off",
    ]
