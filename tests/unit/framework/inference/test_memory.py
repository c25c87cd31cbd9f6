from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from framework.inference import memory

_CODE = "from framework.inference.memory import keep_memory; print(keep_memory())"


def test_it_takes_effect_with_glibc_alone():
    """In a process of its own: the setting is for a whole process."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE],
        cwd=Path(__file__).resolve().parents[4],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    has_mallopt = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "mallopt")
    assert done.stdout.strip() == str(has_mallopt)


def library(answers: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The settings that are made from now on, to a glibc that answers so."""
    made: list[tuple[int, int]] = []

    class Library:
        def __init__(self, name: None) -> None: ...

        def mallopt(self, name: int, value: int) -> int:
            made.append((name, value))
            return answers[len(made) - 1]

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", Library)
    monkeypatch.setattr(memory, "_keeping", False)  # is put back after the test
    return made


@pytest.mark.parametrize(("answers", "expected"), [((1, 1, 1), True), ((1, 0, 1), False)])
def test_every_setting_is_made_and_must_be_taken(answers, expected, monkeypatch: pytest.MonkeyPatch):
    made = library(answers, monkeypatch)
    assert memory.keep_memory() is expected
    assert made == [(-3, 1 << 30), (-1, 2**31 - 1), (-8, 1)]  # glibc's malloc.h


def test_elsewhere_it_does_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())  # a C library without mallopt
    monkeypatch.setattr(sys, "platform", "linux")
    assert memory.keep_memory() is memory.share_arena() is False
    monkeypatch.setattr(sys, "platform", "darwin")
    assert memory.keep_memory() is memory.share_arena() is False


@pytest.mark.parametrize("answer", [1, 0])
def test_threads_share_an_arena_unless_the_user_says_how_many(answer, monkeypatch: pytest.MonkeyPatch):
    for name in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES"):
        monkeypatch.delenv(name, raising=False)
    made = library((answer,), monkeypatch)
    assert memory.share_arena() is bool(answer)
    assert made == [(-8, 1)]
    for name, value in (("MALLOC_ARENA_MAX", "4"), ("GLIBC_TUNABLES", "glibc.malloc.arena_max=4")):
        with monkeypatch.context() as chosen:
            chosen.setenv(name, value)
            assert memory.share_arena() is False
    assert len(made) == 1


def test_memory_is_released_after_an_item_unless_it_is_kept(monkeypatch: pytest.MonkeyPatch):
    released = []
    monkeypatch.setattr(memory, "release_memory", lambda: released.append(1))
    monkeypatch.setattr(memory, "_keeping", False)
    memory.release_after_item()
    monkeypatch.setattr(memory, "_keeping", True)
    memory.release_after_item()
    assert released == [1]
