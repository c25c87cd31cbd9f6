from __future__ import annotations

import logging
import time

import numpy as np
import pytest

from framework.engine import compile_notice
from framework.engine.compile_notice import CompileNotice


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compile_notice, "_FIRST", 0.05)
    monkeypatch.setattr(compile_notice, "_EVERY", 0.05)
    caplog.set_level(logging.INFO, "oar")
    return lambda: [record.getMessage() for record in caplog.records]


def test_a_long_call_with_new_shapes_is_told(lines):
    notice = CompileNotice("the step")
    with notice.around({"x": np.zeros((2, 3))}):
        time.sleep(0.4)
    *during, last = lines()
    assert len(during) >= 2 and all(line.startswith("the step compiles: ") for line in during)
    assert last.startswith("the step compiled in ")


def test_a_short_call_and_one_with_known_shapes_say_nothing(lines, monkeypatch):
    notice = CompileNotice("the step")
    monkeypatch.setattr(compile_notice, "_FIRST", 5.0)
    with notice.around({"x": np.zeros((2, 3))}):
        pass
    monkeypatch.setattr(compile_notice, "_FIRST", 0.05)
    with notice.around({"x": np.ones((2, 3))}):
        time.sleep(0.2)
    assert lines() == []
    with notice.around({"x": np.zeros((2, 4))}):
        time.sleep(0.2)
    assert lines()


def test_an_error_of_the_call_stays_and_ends_the_lines(lines):
    notice = CompileNotice("the step")
    with pytest.raises(ValueError, match="no such program"), notice.around(np.zeros(2)):
        raise ValueError("no such program")
    time.sleep(0.2)
    assert lines() == []
