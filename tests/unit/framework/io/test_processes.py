"""The loader with spawned processes. Each start costs about a second, so each test looks at several things."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing as mp
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError, MissingExtraError, ShapeError
from framework.io import Batch, DataLoader, Dataset, IterableDataset, get_worker_info

REPO = Path(__file__).resolve().parents[4]


class Items(Dataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __getitem__(self, index: int) -> int:
        return index

    def __len__(self) -> int:
        return self.count


class Stream(IterableDataset):
    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        assert info is not None and (info.id, info.num_workers) == (0, 1)
        return iter(range(self.count))


def jitter(sample: int, rng: np.random.Generator) -> float:
    return sample + rng.random()


def pack(sample: float) -> dict[str, Any]:
    """Arrays of several types, one of them empty, one of objects, in a structure."""
    image = np.full((5, 7, 3), sample % 251, np.uint8)
    return {
        "image": image,
        "pair": (np.float32(sample), np.zeros((0, 2))),
        "name": f"n{sample}",
        "flag": True,
    }


def with_objects(samples: list[dict[str, Any]]) -> dict[str, Any]:
    first = samples[0]
    return {**first, "objects": np.array([None, "x"]), "tuple": (np.arange(3), 4), "order": np.ones((2, 3)).T}


def told(batches: Any) -> list[Any]:
    return [(batch.index, batch.ids, plain(batch.data)) for batch in batches]


def plain(data: Any) -> Any:
    if isinstance(data, (np.ndarray, np.generic)):
        return (str(data.dtype), data.shape, data.tolist())
    if isinstance(data, dict):
        return {key: plain(value) for key, value in data.items()}
    return [type(data), *map(plain, data)] if isinstance(data, (list, tuple)) else data


def loader(dataset: Any, **settings: Any) -> DataLoader:
    chosen = {"batch_size": 3, "transforms": (jitter,), "pack": pack, "worker_mode": "process", **settings}
    return DataLoader(dataset, **chosen)


def segments() -> set[str]:
    return {path.name for path in Path("/dev/shm").glob("psm_*")} if Path("/dev/shm").is_dir() else set()


def of_others() -> set[str]:
    """The segments that other processes have open, such as those of tests that run at the same time."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it was closed, or its process ended
            if file.parts[2] != str(os.getpid()):
                found.add(Path(os.readlink(file)).name)
    return found


def orphans(before: set[str]) -> set[str]:
    """New segments that nobody has open but this process, or nobody at all."""
    return (segments() - before - of_others()) & segments()


@pytest.fixture(autouse=True)
def nothing_is_left(threads: Callable[[], list[str]]) -> Iterator[None]:
    before = segments()
    yield
    gc.collect()
    assert mp.active_children() == []
    assert threads() == []
    # Looked at twice: another process closes its segment a moment before it takes it away.
    if found := orphans(before):
        time.sleep(0.5)
        assert not found & orphans(before)


def test_a_segment_that_is_left_is_found() -> None:
    before = segments()
    if not Path("/dev/shm").is_dir():
        pytest.skip("this system keeps its segments elsewhere")
    segment = shared_memory.SharedMemory(create=True, size=16)
    try:
        assert orphans(before) == {segment.name.lstrip("/")}
    finally:
        segment.close()
        segment.unlink()
    assert orphans(before) == set()


@pytest.mark.parametrize("dataset", [Items(20), Stream(20)])
def test_processes_change_nothing(dataset: Any) -> None:
    settings = {} if isinstance(dataset, Stream) else {"shuffle": True}
    expected = told(loader(Items(20), worker_mode="thread", pad_last=True, **settings).batches(1))
    assert told(loader(dataset, pad_last=True, **settings).batches(1)) == expected
    assert told(loader(dataset, pad_last=True, **settings).batches(1, start=5)) == expected[5:]


def sized(sample: int) -> dict[str, Any]:
    return {"x": np.full((sample % 5 + 1) * 100, sample)}


def test_arrays_of_any_kind_and_growing_batches() -> None:
    settings = {"collate_fn": with_objects, "num_workers": 1}
    expected = told(loader(Items(7), worker_mode="thread", **settings).batches(0))
    assert told(loader(Items(7), **settings).batches(0)) == expected
    batches = list(loader(Items(12), batch_size=1, transforms=(), pack=sized, num_workers=1))
    # Every batch is kept: what was copied out is not written again.
    assert [len(batch["x"][0]) for batch in batches] == [(n % 5 + 1) * 100 for n in range(12)]
    assert all((batch["x"] == n).all() for n, batch in enumerate(batches))


def test_without_room_in_shared_memory_arrays_come_through_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = told(loader(Items(5), num_workers=0).batches(0))

    def no_segment(*args: Any, **kwargs: Any) -> Any:
        raise OSError("no space left on device")

    monkeypatch.setattr(shared_memory, "SharedMemory", no_segment)
    assert told(loader(Items(5), num_workers=1).batches(0)) == expected
    if Path("/dev/shm").is_dir():
        usage = namedtuple("usage", "total used free")
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(64, 60, 4))
        monkeypatch.setattr(
            shared_memory, "SharedMemory", lambda *args, **kwargs: pytest.fail("made a segment")
        )
        assert told(loader(Items(5), num_workers=1).batches(0)) == expected


class Inside(Dataset):
    """Tells what a worker process is like."""

    def __getitem__(self, index: int) -> dict[str, Any]:
        info = get_worker_info()
        assert info is not None and isinstance(info.dataset, Inside)
        time.sleep(0.05)  # else one worker may make all batches
        return {
            "jax": "jax" in sys.modules,
            "cv2": "cv2" in sys.modules,
            "pid": os.getpid(),
            "worker": info.id,
            "count": info.num_workers,
            "started": int(os.environ["OAR_TEST_WORKER"]),
        }

    def __len__(self) -> int:
        return 40


def start(number: int) -> None:
    os.environ["OAR_TEST_WORKER"] = str(number)


def test_worker_processes_load_no_jax_and_know_who_they_are() -> None:
    made = DataLoader(Inside(), batch_size=2, worker_mode="process", worker_init_fn=start)
    found = list(made)
    workers = {
        (int(pid), int(worker)) for batch in found for pid, worker in zip(batch["pid"], batch["worker"])
    }
    assert {worker for _, worker in workers} == {0, 1} and len(workers) == 2
    assert os.getpid() not in {pid for pid, _ in workers}
    assert all((batch["worker"] == batch["started"]).all() and (batch["count"] == 2).all() for batch in found)
    assert not any(batch["jax"].any() or batch["cv2"].any() for batch in found)


@dataclass(frozen=True)
class Fails:
    """Fails in another way for each sample."""

    def __call__(self, sample: int, rng: np.random.Generator) -> int:
        if sample == 1:
            raise KeyError("colour")
        if sample == 2:
            raise ShapeError(
                "too small", where="Fails.size", received=lambda: 0, allowed=[2, 3], fix="grow it"
            )
        if sample == 3:
            raise MissingExtraError("x", "nlp", "y")
        if sample == 4:
            os._exit(5)
        return sample


def failure(sample: int) -> Any:
    with pytest.raises(Exception) as caught:
        list(loader(Items(9), sampler=[sample], transforms=(Fails(),), num_workers=1))
    return caught.value


def test_an_error_carries_sample_dataset_and_traceback() -> None:
    error = failure(1)
    assert type(error) is InputError
    assert str(error).startswith(
        "sample 1 of Items, Fails: a sample could not be made\n  received: KeyError: 'colour'"
    )
    assert 'raise KeyError("colour")' in str(error.__cause__) and "Traceback" in str(error.__cause__)


def test_our_errors_keep_their_class() -> None:
    error = failure(2)
    assert type(error) is ShapeError and error.where == "sample 2 of Items, Fails: Fails.size"
    assert (error.problem, error.allowed, error.fix) == ("too small", "[2, 3]", "grow it")
    assert type(failure(3)) is MissingExtraError


def test_a_worker_that_dies() -> None:
    error = failure(4)
    assert type(error) is InputError
    assert str(error).startswith(
        "worker 0 of the loader of Items: a worker process has ended\n  received: exit code 5"
    )


def refuse(number: int) -> None:
    raise ValueError(f"no licence for worker {number}")


def test_worker_init_fn_fails() -> None:
    with pytest.raises(
        InputError, match=r"(?s)^worker 0 of the DataLoader: a worker could not start.*no licence for"
    ):
        list(loader(Items(3), num_workers=1, worker_init_fn=refuse))


def test_what_cannot_be_pickled() -> None:
    with pytest.raises(ConfigError, match=r'(?s)cannot be sent to a worker process.*worker_mode="thread"'):
        list(loader(Items(3), pack=lambda sample: sample))


class Slow(Items):
    def __getitem__(self, index: int) -> int:
        time.sleep(0.0 if index < 3 else 30.0)
        return index


def test_an_iterator_that_is_left_ends_its_processes_at_once() -> None:
    batches = iter(loader(Slow(100)))
    next(batches)
    assert len(mp.active_children()) == 2
    if (
        sys.platform != "win32"
    ):  # services send SIGTERM to all processes, and the first one saves after the step
        for child in mp.active_children():
            child.terminate()
        time.sleep(0.2)
        assert len(mp.active_children()) == 2
    started = time.perf_counter()
    del batches
    assert time.perf_counter() - started < 20 and mp.active_children() == []
    with pytest.raises(InputError, match="took too long"):
        list(loader(Slow(100), num_workers=1, timeout=3))


def run(script: str, folder: Path, *, until: str | None = None) -> tuple[int | None, str, str]:
    path = folder / "script.py"
    path.write_text(script, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    with subprocess.Popen(
        [sys.executable, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        env=environment,
    ) as process:
        if until is not None:
            assert process.stdout is not None
            line = process.stdout.readline()
            process.kill()
            process.wait()
            return None, line, ""
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


SCRIPT = """
import multiprocessing, time
from framework.io import DataLoader

class Slow:
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.1)
        return index

def main():
    global batches
    batches = iter(DataLoader(Slow(), batch_size=2, worker_mode="process"))
    print(next(batches).tolist(), *(child.pid for child in multiprocessing.active_children()), flush=True)
"""


def test_a_program_may_end_in_the_middle(tmp_path: Path) -> None:
    code, out, err = run(SCRIPT + 'if __name__ == "__main__":\n    main()\n', tmp_path)
    assert (code, out[:6], err) == (0, "[0, 1]", "")


def test_a_script_without_a_guard_is_told_so(tmp_path: Path) -> None:
    code, _, err = run(SCRIPT + "main()\n", tmp_path)
    assert code == 1
    assert "a worker process has ended" in err and 'needs `if __name__ == "__main__":`' in err


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="looks processes up by signals")
def test_workers_of_a_killed_program_end(tmp_path: Path) -> None:
    before = segments()
    _, line, _ = run(
        SCRIPT + 'if __name__ == "__main__":\n    main()\n    time.sleep(60)\n', tmp_path, until="line"
    )
    pids = [int(pid) for pid in line.partition("]")[2].split()]
    assert len(pids) == 2
    deadline = time.monotonic() + 20
    while (alive := [pid for pid in pids if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive == []
    while segments() - before and time.monotonic() < deadline:  # freed by multiprocessing's resource tracker
        time.sleep(0.1)
    assert segments() <= before


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")
    return not (status.exists() and ") Z " in status.read_text(encoding="utf-8"))


def test_batches_are_the_same_class() -> None:
    (batch,) = loader(Items(2), num_workers=1).batches(0)
    assert type(batch) is Batch and batch.data["image"].flags.writeable
