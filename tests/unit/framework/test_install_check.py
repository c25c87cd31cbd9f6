"""run_check: what it reports, and the failures that it notices."""

from __future__ import annotations

import jax
import pytest

from framework import install_check
from framework.core.device import get_device
from framework.core.errors import DeviceError


def test_run_check_trains_exports_and_reports(capsys: pytest.CaptureFixture[str]):
    report = install_check.run_check()
    assert report["jax"] == jax.__version__ and report["device"] == get_device()
    before, after = str(report["train step"]).removeprefix("loss ").split(" -> ")
    assert 0 < float(after) < float(before)
    out = capsys.readouterr().out
    assert "reloaded program differs by" in out and out.endswith("Oar works on this machine.\n")
    assert install_check.run_check(verbose=False).keys() == report.keys()
    assert capsys.readouterr().out == ""


def test_run_check_notices_a_program_that_differs(monkeypatch: pytest.MonkeyPatch):
    real = install_check.XLAEngine

    class Wrong(real):
        def __call__(self, inputs):
            return {name: value + 1 for name, value in super().__call__(inputs).items()}

    monkeypatch.setattr(install_check, "XLAEngine", Wrong)
    with pytest.raises(
        DeviceError, match=r"program differs from the model\n  received: 1\..*\n  allowed: < 1e-3\n"
    ):
        install_check.run_check(verbose=False)


def test_run_check_notices_a_model_that_does_not_learn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(install_check.nn, "update", lambda layer, params: None)
    with pytest.raises(
        DeviceError, match=r"did not lower the loss\n  received: \[.*\]\n  what to do: another"
    ):
        install_check.run_check(verbose=False)
