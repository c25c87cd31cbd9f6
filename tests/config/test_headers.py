"""Every config begins with 3 to 6 lines of comment: what it is, the command, what it cost and reached, or whose scores
stand for it.

    # PicoDet-S on blood cells, from scratch.
    # Run: oar train -c picodet_s_320_bccd; …
    # Result: trained here in 22 minutes on two shared processors (docs/training/…): AP50 82.9 % on …
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from framework import hub

REPO = Path(__file__).resolve().parents[2]
CONFIGS = sorted((REPO / "configs").rglob("*.yml"))
SHARED = "_base_"  # the folder of what configs have in common, which is not run by itself
ORIGINS = (
    r"trained here",  # with what it cost, and the document that tells it
    r"not trained here",  # with the published score and its source
    r"nothing is trained",
    r"no score of its own: the data are yours",
    r"no score: the pages are yours",
    r"this repository holds no run of it and no score of it",
)


def read_header(path: Path) -> tuple[list[str], str, str]:
    """(lines of the comment at the head, what follows `Run:`, what follows `Result:`)."""
    text = path.read_text(encoding="utf-8")
    lines = list(itertools.takewhile(lambda line: line.startswith("#"), text.splitlines()))
    whole = " ".join(line.lstrip("# ") for line in lines)
    match = re.search(r" Run: (.*) Result: (.*)$", whole)
    return lines, match[1] if match else "", match[2] if match else ""


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_config_says_how_it_is_run_and_what_it_reached(path: Path) -> None:
    lines, command, result = read_header(path)
    assert 3 <= len(lines) <= 6 and command and result, (
        "what it is; `Run: ` a command; `Result: ` a score or why none"
    )
    assert not lines[0].startswith("# Run: "), "first what it is"
    if path.parent.name == SHARED:
        assert command.startswith("not by itself") and result.startswith("none of its own")
        return
    verb = re.match(rf"oar (train|infer|document) (?:\S+ )*-c {re.escape(path.stem)}(?![\w.-])", command)
    assert verb is not None, f"a command that names {path.stem}"
    assert any(re.match(origin, result) for origin in ORIGINS), f"begins with one of {ORIGINS}"
    if result.startswith("trained here"):
        assert re.search(r"\d", result), "a score"
        named = re.findall(r"[\w/]+\.(?:md|log|yml)", result)
        assert named, "where the run is told"
        assert all(
            (REPO / name).is_file() or (path.parent / name).is_file() or is_config(name) for name in named
        )


def is_config(name: str) -> bool:
    """Whether a config of this name stands anywhere below configs."""
    return any(path.name == name for path in CONFIGS)


@pytest.mark.parametrize("path", [p for p in CONFIGS if p.parent.name != SHARED], ids=lambda path: path.stem)
def test_the_score_is_that_of_the_index(path: Path) -> None:
    match = re.search(r"^weights: *(\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    entry = hub.entries().get(match[1]) if match else None
    if entry is None or not entry.scores:
        return
    result = read_header(path)[2]
    missing = [score["value"] for score in entry.scores if str(score["value"]) not in result]
    assert not missing, f"scores of {entry.name} in its index that the header lacks"
