"""Damaged files into every reader: no crash, no hang, no error but ours, and each error names its file.

python -m tests.fuzz --seconds 600                 every reader, ten minutes of CPU each
python -m tests.fuzz png "tiff of bands" --seconds 60 --seed 7

Seconds are of CPU, so that a busy machine changes nothing. A reader runs in a process of its own with 6 GB of address
space; a file that takes longer than 20 of them, or waits for two minutes, ends it.
Failures are printed as JSON lines and kept with their files in the folder of --keep.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

from tests.fuzz.mutations import mutate, mutate_values
from tests.fuzz.readers import READERS, Reader

MEMORY = 6 << 30  # bytes of address space
PATIENCE = 20.0  # CPU seconds for a file
_LONGEST = 120.0  # seconds for a file that waits, for a process of its own or a lock
_CPU_IS_OVER = getattr(signal, "SIGPROF", None)  # Windows has none
_ROW = "\x02"  # begins a row, of what a worker prints
_MOST = 20  # failures of a reader, after which it is left alone
REPO = Path(__file__).resolve().parents[2]


def fuzz(name: str, seconds: float, seed: int, keep: Path | None = None) -> tuple[int, list[dict]]:
    """How many damaged files the reader has seen, and what went wrong: `seed`, `problem`, `detail` of each."""
    failures: list[dict] = []
    count, spent = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        while len(failures) < _MOST and (left := seconds - spent) > 0:
            command = [
                sys.executable,
                "-m",
                "tests.fuzz",
                "--worker",
                name,
                folder,
                str(seed),
                str(left),
                str(keep or ""),
            ]
            done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, errors="replace")
            rows = [json.loads(line[1:]) for line in done.stdout.split("\n") if line.startswith(_ROW)]
            failures += [row for row in rows if "problem" in row]
            if not rows:
                failures.append(
                    {"seed": seed, "problem": "the valid file is not read", "detail": done.stderr[-1500:]}
                )
                break
            last = max(row["seed"] for row in rows)
            spent += max(row.get("spent", 0.0) for row in rows)
            count += last - seed + 1
            if done.returncode:
                hang = "Timeout (" in done.stderr or (
                    _CPU_IS_OVER is not None and done.returncode == -_CPU_IS_OVER
                )
                spent += PATIENCE * hang
                failures.append(
                    {"seed": last, "problem": "hang" if hang else f"crash, exit status {done.returncode}",
                     "detail": done.stderr[-1500:]}
                )  # fmt: skip
            elif any(row.get("done") for row in rows):
                break
            seed = last + 1
    return count, failures


def work(name: str, folder: Path, seed: int, seconds: float, keep: Path | None) -> None:
    """Damage and read until the time is over; each row on stdout begins with _ROW."""
    _limit_memory()
    reader = READERS[name]
    (folder / f"files{seed}").mkdir()  # a process that ended left its damage behind
    path = reader.make(folder / f"files{seed}")
    whole = path.read_bytes()
    _warm_up(reader, path)
    if _CPU_IS_OVER is not None:
        faulthandler.register(_CPU_IS_OVER, chain=True)  # tells where, and ends the process
    start = _cpu_seconds()
    while (spent := _cpu_seconds() - start) < seconds:
        data = damaged(name, whole, seed)
        path.write_bytes(data)
        _tell(seed=seed, spent=spent)
        faulthandler.dump_traceback_later(_LONGEST, exit=True)
        _limit_time(PATIENCE)
        problem, detail = attempt(reader, path)
        _limit_time(0)
        faulthandler.cancel_dump_traceback_later()
        if problem:
            _tell(seed=seed, problem=problem, detail=detail)
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name.replace(' ', '_')}_{seed}_{path.name}").write_bytes(data)
        seed += 1
    _tell(seed=seed - 1, done=True)


def _limit_time(seconds: float) -> None:
    """Ends the process after these CPU seconds; 0: never."""
    if _CPU_IS_OVER is not None:
        signal.setitimer(signal.ITIMER_PROF, seconds)


def _cpu_seconds() -> float:
    """Of this process and of those that it started and that are done."""
    return sum(os.times()[:4])


def damaged(name: str, whole: bytes, seed: int) -> bytes:
    """The file of this seed."""
    rng = random.Random(f"{name} {seed}")
    return (mutate_values if READERS[name].values else mutate)(whole, rng)


def attempt(reader: Reader, path: Path) -> tuple[str, str]:
    """What is wrong with how a damaged file is read; empty where it is read or refused as it should be."""
    from framework.core.errors import MissingExtraError, OarError

    try:
        reader.read(path)
    except MissingExtraError:
        raise
    except OarError as error:
        if path.name not in str(error) and path.parent.name not in str(error):
            return "the error does not name its file", str(error)[:500]
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return type(error).__name__, "".join(traceback.format_exception(error))[-1500:]
    return "", ""


def _warm_up(reader: Reader, path: Path) -> None:
    """The valid file, read once: it must work, and imports do not count as time of a damaged one."""
    reader.read(path)


def _tell(**row: object) -> None:
    print(_ROW + json.dumps(row), flush=True)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> int:
    if sys.argv[1:2] == ["--worker"]:
        name, folder, seed, seconds, keep = sys.argv[2:]
        work(name, Path(folder), int(seed), float(seconds), Path(keep) if keep else None)
        return 0
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("readers", nargs="*", help=f"default: all of {', '.join(READERS)}")
    parser.add_argument("--seconds", type=float, default=60, help="of CPU, for each reader")
    parser.add_argument("--seed", type=int, default=0, help="the first one; a file follows from its seed")
    parser.add_argument("--keep", type=Path, help="a folder for files that go wrong")
    args = parser.parse_args()
    wrong = 0
    for name in args.readers or READERS:
        count, failures = fuzz(name, args.seconds, args.seed, args.keep)
        print(f"{name}: {count} files, {len(failures)} failures", flush=True)
        for failure in failures:
            print(json.dumps({"reader": name, **failure}), flush=True)
        wrong += len(failures)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
