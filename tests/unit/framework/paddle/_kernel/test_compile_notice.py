"""Lines about compiling: none for what is quick, few for what takes long."""

from __future__ import annotations

import logging
import time

import pytest

from framework.paddle._kernel import compile_notice
from framework.paddle._kernel.compile_notice import EagerNotice, announced


def test_operations_say_so_after_two_seconds_and_then_ever_fewer(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(compile_notice.time, "perf_counter", lambda: clock[0])
    notice = EagerNotice()
    with caplog.at_level(logging.WARNING, "oar"):
        for _ in range(96):  # 12 seconds of programs
            clock[0] += 0.125
            notice.count(0.125)
        assert [line.split(";")[0] for line in caplog.messages] == [
            "first step: 16 operations compiled in 2 s",
            "first step: 40 operations compiled in 5 s",
            "first step: 80 operations compiled in 10 s",
        ]
        caplog.clear()
        clock[0] += 60  # steps without programs
        for _ in range(10):
            clock[0] += 0.125
            notice.count(0.125)
        for _ in range(96):  # from disk
            clock[0] += 0.125
            notice.listen("/jax/compilation_cache/cache_retrieval_time_sec", 0.1)
            notice.listen("/jax/core/compile/backend_compile_duration", 0.125)
    assert not caplog.messages


def test_a_large_program_is_announced_while_it_compiles(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compile_notice, "_LINES", (0.05, 0.1, 60.0))
    with caplog.at_level(logging.WARNING, "oar"):
        with announced("the function f"):
            time.sleep(0.3)
        with announced("a quick one"):
            pass
    assert len(caplog.messages) == 2
    assert all(line.startswith("the function f compiles: 0 s until now") for line in caplog.messages)
