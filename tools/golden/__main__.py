"""Reference outputs that tests/golden compares with: made where the reference is installed, or checked there.

    python -m tools.golden                      what there is, and what has to be installed for each
    python -m tools.golden NAME [case …]        writes tests/golden/data/NAME…
    python -m tools.golden NAME [case …] --check        compares with what is there instead
    python -m tools.golden NAME … --path FOLDER         a checkout that is imported, such as PaddleOCR's

Run it at the root of the repository, by the interpreter of an environment with the reference and PyYAML; our packages
need not be installed there. Networks are rows of references.yml, or the table REFERENCES of tests/golden/test_NAME.py,
see network.py. What is no network is a module with `files`, named in references.yml, too. Weights and inputs are drawn
from names and seeds, so none are stored; of an output a few values are.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tools.golden import tables
from tools.golden.network import reference_arrays

ROOT = Path(__file__).resolve().parents[2]
BLOBS = {"model", "program"}  # files, which hold the places of the programs that wrote them
DATA = ROOT / "tests" / "golden" / "data"


def network_files(name: str, rows: dict[str, Any], cases: list[str]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The file of each case, and what the reference gives for it."""
    for case in cases or rows:
        file = rows[case].get("file", f"{name}/{case}.npz")
        arrays = reference_arrays(rows[case])
        if not rows[case].get("print"):
            yield DATA / file, arrays


def write(path: Path, arrays: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **arrays)
    print(f"{path.relative_to(ROOT)}: {len(arrays)} arrays, {path.stat().st_size / 1024:.0f} KiB")


def check(path: Path, arrays: dict[str, Any]) -> bool:
    """Whether the file holds these: the same entries, and floats within 1e-5 of the largest."""
    with np.load(path) as data:
        stored = {key: data[key] for key in data.files}
    if set(stored) != set(arrays):
        print(f"{path.relative_to(ROOT)}: only stored {sorted(set(stored) - set(arrays))[:9]}", end=" ")
        print(f"only made {sorted(set(arrays) - set(stored))[:9]}")
    worst, where = 0.0, ""
    for key in stored.keys() & arrays.keys() - BLOBS:
        want, found = stored[key], np.asarray(arrays[key])
        if want.shape != found.shape or want.dtype.kind != found.dtype.kind:
            worst, where = np.inf, f"{key} {want.dtype}{want.shape} {found.dtype}{found.shape}"
        elif want.dtype.kind != "f":
            if not np.array_equal(want, found):
                worst, where = np.inf, key
        elif want.size:
            scale = np.nanmax(np.abs(want), initial=0.0, where=np.isfinite(want)) or 1.0
            same = np.array_equal(np.isfinite(want), np.isfinite(found))
            apart = np.abs(want - found)[np.isfinite(want)].max(initial=0) / scale if same else np.inf
            if apart > worst:
                worst, where = float(apart), key
    good = set(stored) == set(arrays) and worst < 1e-5
    says = "equal" if good and not worst else f"apart by {worst:.1e} in {where}"
    print(f"{path.relative_to(ROOT)}: {len(stored)} arrays, {'as stored' if good else 'OTHERS'}, {says}")
    return good


def write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def check_text(path: Path, text: str) -> bool:
    stored = path.read_text(encoding="utf-8")
    good = stored == text or (path.suffix == ".json" and close(json.loads(stored), json.loads(text)))
    print(f"{path.relative_to(ROOT)}: {'equal' if stored == text else 'as stored' if good else 'OTHERS'}")
    return good


def close(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same, their floats within 1e-5."""
    if isinstance(a, float) and isinstance(b, float):
        return abs(a - b) <= 1e-5 * max(1.0, abs(a))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(close(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(close, a, b))
    return a == b


def main() -> int:
    parser = argparse.ArgumentParser(
        "python -m tools.golden", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", nargs="?")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--path", action="append", default=[], help="a folder to import from")
    args = parser.parse_args()
    rows, others = tables.networks(), tables.load("references")["_recipes"]
    if args.name is None:
        for name, cases in rows.items():
            needs = tables.load("references").get(name, {}).get("needs", "what its rows call")
            print(f"{name:22} {len(cases):2} cases, needs {needs}")
        for name, recipe in others.items():
            print(f"{name:22} needs {recipe['needs']}")
        return 0
    sys.path[:0] = args.path
    made: Callable[..., Any]
    if args.name in rows and not set(args.cases) - set(rows[args.name]):
        files = network_files(args.name, rows[args.name], args.cases)
    elif args.name in others:
        made = importlib.import_module(f"tools.golden.{others[args.name]['module']}").files
        files = made(args.name, args.cases)
    else:
        parser.error(f"no reference {args.name!r} with such cases; one of {', '.join([*rows, *others])}")
    good = True
    for path, content in files:
        if isinstance(content, str):
            good &= check_text(path, content) if args.check else write_text(path, content) is None
        else:
            good &= check(path, content) if args.check else write(path, content) is None
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
