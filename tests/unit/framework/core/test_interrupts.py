"""SIGTERM of a command, which is an interrupt as Ctrl+C is."""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from framework.commands.main import run
from framework.core.interrupts import (
    catch_interrupt,
    import_jax_whole,
    terminate_as_interrupt,
)


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_command_that_is_terminated_cleans_up_and_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    cleaned = []

    def work(args: argparse.Namespace) -> int:
        try:
            signal.raise_signal(signal.SIGTERM)
            return 0
        finally:
            cleaned.append(signal.getsignal(signal.SIGTERM))

    assert run(argparse.ArgumentParser(), work, []) == 130
    assert cleaned == [signal.SIG_DFL]  # a second one ends the process
    assert capsys.readouterr().err == "stopped by SIGTERM\n"
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_done_is_kept_where_a_run_can_end_early(number: signal.Signals, ctrl_c_interrupts) -> None:
    stopped = threading.Event()
    with terminate_as_interrupt():
        with catch_interrupt(stopped):
            signal.raise_signal(number)
            assert stopped.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(number)
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt(), catch_interrupt(stopped):
        signal.raise_signal(number)
        signal.raise_signal(number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_in_a_finalizer_is_not_lost(number: signal.Signals, ctrl_c_interrupts, capfd) -> None:
    class Interrupted:
        def __del__(self) -> None:
            signal.raise_signal(number)

    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt), terminate_as_interrupt():
        del Interrupted().__dict__  # the object goes, and Python drops what its finalizer raises
        time.sleep(20)
    assert capfd.readouterr().err == "" and sys.unraisablehook is hook


def test_handlers_of_others_stay() -> None:
    noted: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    stopped = threading.Event()
    with terminate_as_interrupt(), catch_interrupt(stopped):
        signal.raise_signal(signal.SIGTERM)
    assert noted == [signal.SIGTERM] and not stopped.is_set()
    # A program that calls functions of Oar ends at SIGTERM as ever.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with catch_interrupt(stopped):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_an_interrupt_waits_until_jax_is_imported(
    ctrl_c_interrupts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """jaxlib 0.10.2 ends the process by SIGSEGV where an exception leaves it half imported."""
    (tmp_path / "jax.py").write_text(
        "import signal\nsignal.raise_signal(signal.SIGINT)\nis_whole = True\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    before, modules = list(sys.meta_path), []
    with pytest.raises(KeyboardInterrupt), import_jax_whole():
        modules.append(importlib.import_module("jax"))
        time.sleep(20)
    assert modules[0].is_whole and sys.meta_path == before
    # An import that is not of a command ends at once, as ever.
    monkeypatch.delitem(sys.modules, "jax")
    with pytest.raises(KeyboardInterrupt):
        importlib.import_module("jax")
