"""Programs written for Paddle, with only their import changed: the examples in the docstrings of an installed Paddle.

`python -m tools.bench paddle_examples --python PADDLE_VENV/bin/python --work DIR [-j 2] [nn__ tensor__paddle.abs …]`

Paddle's interpreter extracts the examples into DIR/examples (one script each, called part__name__number) and runs each
three times, drawing other random numbers each time (DIR/paddle); both are kept for later calls. Then this interpreter
runs them on framework.paddle (DIR/ours, --ours) and compares the variables that a script leaves behind:

    ours     scripts that end without an error, of those that Paddle runs
    values   variables whose kind, shape and values agree (1e-5 + 1e-4 |Paddle's|, two units of the last place in half
             precision), of those that were the same in the three runs of Paddle
    shapes   kind and shape alone, of all variables whose shape was the same
    dtypes   of all variables
    flags    stop_gradient of all Tensors
    printed  the text on stdout, its numbers within the same tolerance, where Paddle prints the same three times

Words after the options choose examples whose name contains one of them.
"""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

from tools.bench import paddle_examples_run
from tools.bench.paddle_examples_run import OURS, RUNS, chosen, run_all
from tools.bench.peers import REPO, arguments

NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\.\d+|inf|nan)\b", re.IGNORECASE)


def load(out: Path, name: str) -> tuple[dict[str, Any], dict[str, np.ndarray], str]:
    record = json.loads((out / f"{name}.json").read_text(encoding="utf-8"))
    if record["status"] != "runs":
        return record, {}, ""
    with np.load(out / f"{name}.npz") as file:
        arrays = {str(path): file[f"v{n}"] for n, path in enumerate(file["names"])}
    return record, arrays, (out / f"{name}.stdout").read_text(encoding="utf-8", errors="replace")


def same_values(a: np.ndarray | None, b: np.ndarray | None, dtype: str) -> bool:
    """Whether our values `a` agree with Paddle's `b`."""
    if a is None or b is None or a.shape != b.shape:
        return a is b
    if a.dtype.kind not in "fciub" or b.dtype.kind not in "fciub":
        return bool(np.array_equal(a, b))
    half = {"float16": 2e-3, "bfloat16": 1.6e-2}.get(dtype.rpartition(".")[2])
    wide = [x.astype(np.complex128 if "c" in (a.dtype.kind, b.dtype.kind) else np.float64) for x in (a, b)]
    return bool(np.allclose(*wide, rtol=half or 1e-4, atol=half or 1e-5, equal_nan=True))


def same_text(a: str, b: str) -> bool:
    if NUMBER.sub("#", a).split() != NUMBER.sub("#", b).split():
        return False
    x, y = (np.array([float(number) for number in NUMBER.findall(text)]) for text in (a, b))
    return same_values(x, y, "float64")


def compare(name: str, paddle: Path, ours: Path) -> dict[str, Any]:
    """Of one example: status on both sides, and for each count (equal, compared) and the names of what differs."""
    runs = [load(paddle / str(n), name) for n in range(RUNS)]
    record, arrays, printed = runs[0]
    mine, my_arrays, my_printed = load(ours, name)
    result: dict[str, Any] = {"paddle": record["status"], "ours": mine["status"]}
    result |= {key: mine[key] for key in ("error", "line", "seconds") if key in mine}
    if record["status"] != "runs":
        return result | {"paddle_error": record["error"]}
    if mine["status"] != "runs":
        return result
    counts: dict[str, list[int]] = collections.defaultdict(lambda: [0, 0])
    differs = []

    def count(column: str, what: str, equal: bool, got: Any, want: Any) -> None:
        counts[column][0] += equal
        counts[column][1] += 1
        if not equal:
            differs.append(f"{column} {what}: {got}, Paddle {want}")

    for path, want in record["variables"].items():
        others = [other["variables"].get(path) for other, _, _ in runs]
        got = mine["variables"].get(path, {"kind": "absent"})
        if "shape" not in want or any(other is None or "shape" not in other for other in others):
            continue
        if all(other == want for other in others):
            shape = (got["kind"], got.get("shape"))
            count(
                "shapes", path, shape == (want["kind"], want["shape"]), shape, (want["kind"], want["shape"])
            )
            if path in arrays and all(same_values(each.get(path), arrays[path], "") for _, each, _ in runs):
                value = my_arrays.get(path)
                equal = same_values(value, arrays[path], want["dtype"]) and shape == (
                    want["kind"],
                    want["shape"],
                )
                count("values", path, equal, *(str(x)[:80] for x in (value, arrays[path])))
        count("dtypes", path, got.get("dtype") == want["dtype"], got.get("dtype"), want["dtype"])
        if "stop_gradient" in want:
            flags = got.get("stop_gradient"), want["stop_gradient"]
            count("flags", path, flags[0] == flags[1], *flags)
    if printed.strip() and all(text == printed for _, _, text in runs):
        count("printed", "stdout", same_text(my_printed, printed), my_printed[:200], printed[:200])
    return result | {"counts": counts, "differs": differs}


def report(results: dict[str, dict[str, Any]]) -> None:
    columns = ("values", "shapes", "dtypes", "flags", "printed")
    rows: dict[str, list[list[int]]] = {}
    failures: dict[str, list[str]] = collections.defaultdict(list)
    for name, result in sorted(results.items()):
        sums = [
            rows.setdefault(part, [[0, 0, 0], *([0, 0] for _ in columns)])
            for part in (name.split("__")[0], "all")
        ]
        runs = result["paddle"] == "runs"
        for row in sums:
            for n, one in enumerate((1, runs, runs and result["ours"] == "runs")):
                row[0][n] += one
            for cell, column in zip(row[1:], columns, strict=True):
                for n, one in enumerate(result.get("counts", {}).get(column, (0, 0))):
                    cell[n] += one
        if runs and result["ours"] != "runs":
            failures[re.sub(r"0x[0-9a-f]+|\d{4,}", "#", result["error"])[:140]].append(name)
    for message, names in sorted(failures.items(), key=lambda item: len(item[1])):
        print(f"{len(names):4} {message}\n     {' '.join(names[:3])}{' ...' * (len(names) > 3)}")
    print(
        f"{'part':14}{'examples':>9}{'Paddle':>8}{'ours':>6}" + "".join(f"{column:>13}" for column in columns)
    )
    for part, row in sorted(rows.items(), key=lambda item: item[1][0]):
        cells = "".join(f"{f'{equal}/{compared}':>13}" for equal, compared in row[1:])
        print(f"{part:14}{row[0][0]:9}{row[0][1]:8}{row[0][2]:6}{cells}")


def paddle_examples(argv: list[str]) -> None:
    parser = arguments(__doc__, timeout=60.0)
    parser.add_argument("only", nargs="*", help="parts of the names of examples")
    parser.add_argument(
        "--python", help="interpreter that has paddlepaddle: needed for what Paddle has not run yet"
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="folder of the examples and of Paddle's results"
    )
    parser.add_argument("--ours", type=Path, help="folder of our results; earlier ones are kept [WORK/ours]")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--differs", action="store_true", help="print each variable that differs")
    options = parser.parse_args(argv)
    work = options.work.resolve()
    examples, recorded, ours = work / "examples", work / "paddle", (options.ours or work / "ours").resolve()
    names = chosen(work, options.only)
    if not names or any(not (recorded / str(RUNS - 1) / f"{name}.json").exists() for name in names):
        if not options.python:
            parser.error("--python is needed: Paddle has not run these examples yet")
        command = [options.python, "-m", paddle_examples_run.__name__, work, options.jobs, options.timeout]
        subprocess.run([str(word) for word in (*command, *options.only)], check=True, cwd=REPO)
        names = chosen(work, options.only)
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(work / "jaxcache"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    run_all(OURS, names, examples, ours, options.jobs, options.timeout)
    results = {name: compare(name, recorded, ours) for name in names}
    if options.differs:
        for name, result in results.items():
            for line in result.get("differs", ()):
                print(f"{name}: {line}")
    report(results)
    merged = ours / "results.json"
    kept = json.loads(merged.read_text(encoding="utf-8")) if merged.exists() else {}
    merged.write_text(json.dumps(kept | results, indent=1), encoding="utf-8")
