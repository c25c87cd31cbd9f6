"""`python -m framework` and the script `oar`, before the command itself has begun."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from framework.__main__ import run


def test_ctrl_c_while_the_commands_are_imported(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Interrupted(ModuleType):
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "framework.commands", Interrupted("framework.commands"))
    with pytest.raises(SystemExit) as ended:
        run()
    assert ended.value.code == 130 and capsys.readouterr().err == "stopped\n"
