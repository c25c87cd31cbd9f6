"""Whether the default suite catches 66 chosen faults of one line: `python -m tests.faults`.

Each row of faults.yml is applied to a copy of the repository, in which pytest then runs the row's tests until one
fails. `--all` runs the whole default suite instead, `--only TEXT` takes the rows whose group, file or reason has this
text. The tests are run without a fault first: what fails anyway catches nothing. The exit status is 0 when every fault
is caught. About 5 s a fault, on one core.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import yaml

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("framework", "zoo", "ocr", "detection", "segmentation", "nlp")
FOLDERS = (*PACKAGES, "configs", "docs", "tests", "tools", ".ci")


@dataclass(frozen=True)
class Fault:
    group: str
    why: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def locate(self, root: Path) -> tuple[Path, int]:
        """The file and the index of the line. Raises: ValueError unless the line stands exactly once."""
        named = root / self.file
        files = [named] if named.is_file() and self._lines(named) else _sources(root)
        found = [(file, place) for file in files for place in self._lines(file)]
        if len(found) != 1:
            raise ValueError(f"{self.file}: this line stands {len(found)} times: {self.old}")
        return found[0]

    def _lines(self, file: Path) -> list[int]:
        lines = file.read_text(encoding="utf-8").splitlines()
        return [place for place, line in enumerate(lines) if line.strip() == self.old]

    def apply(self, root: Path) -> tuple[Path, str]:
        """Put the fault in; returns the file and its text before."""
        file, place = self.locate(root)
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        lines[place] = lines[place].replace(self.old, self.new)
        file.write_text("".join(lines), encoding="utf-8")
        return file, text


def read_faults() -> list[Fault]:
    rows = yaml.safe_load((REPO / "tests/faults/faults.yml").read_text(encoding="utf-8"))
    return [Fault(**{**row, "tests": tuple(row["tests"])}) for row in rows]


def _sources(root: Path) -> list[Path]:
    return [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]


def find_tests(root: Path, tests: tuple[str, ...]) -> list[str]:
    """Those files or node ids that are there; a moved one is found by its file's name. Raises: ValueError for none."""
    found = []
    for test in tests:
        path, colons, name = test.partition("::")
        files = [root / path] if (root / path).exists() else list((root / "tests").rglob(Path(path).name))
        found += [f"{file.relative_to(root)}{colons}{name}" for file in files]
    if not found:
        raise ValueError(f"there are no such tests: {', '.join(tests)}")
    return found


def run_pytest(root: Path, tests: list[str]) -> tuple[int, str]:
    """pytest's exit status and the first line that says what failed."""
    shared = os.environ.get("OAR_SHARED", str(REPO.parent / "shared"))
    environment = {**os.environ, "PYTHONPATH": str(root), "OAR_SHARED": shared}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
    return done.returncode, (failed or lines[-1:] or done.stderr.splitlines()[-1:] or [""])[0]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--all", action="store_true", help="run the whole default suite for each fault")
    parser.add_argument("--only", default="", help="rows with this text in their group, file or reason")
    arguments = parser.parse_args(argv)
    faults = [f for f in read_faults() if arguments.only in f"{f.group} {f.file} {f.why}"]
    missed = 0
    with tempfile.TemporaryDirectory(prefix="oar_faults_") as work:
        root = Path(work) / "repo"
        for folder in FOLDERS:
            shutil.copytree(REPO / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
        for file in REPO.iterdir():
            if file.is_file():
                shutil.copy2(file, root)
        chosen = {fault: [] if arguments.all else find_tests(root, fault.tests) for fault in faults}
        status, line = run_pytest(
            root, list(dict.fromkeys(test for tests in chosen.values() for test in tests))
        )
        if status:
            print(f"the tests fail without a fault: {line}")
            return 2
        for fault, tests in chosen.items():
            started = time.monotonic()
            file, before = fault.apply(root)
            status, line = run_pytest(root, tests)
            file.write_text(before, encoding="utf-8")
            missed += status != 1
            verdict = {0: "NOT caught", 1: "caught"}.get(status, f"pytest ended with {status}")
            print(
                f"{verdict} in {time.monotonic() - started:.0f} s: {fault.group}: {fault.why}: {line[:160]}",
                flush=True,
            )
    print(f"{len(faults) - missed} of {len(faults)} caught")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
