"""The folder that Oar keeps its files in."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from framework.core.errors import HubError
from framework.core.home import home


def test_home_follows_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("OAR_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    expected = {"linux": ".cache", "darwin": "Library/Caches", "win32": "AppData/Local"}
    for platform, folder in expected.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert home() == tmp_path / folder / "oar"
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert home() == tmp_path / "local" / "oar"
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert home() == tmp_path / "xdg" / "oar"
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "mine"))
    assert home() == tmp_path / "mine"


def test_no_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for name in ("OAR_HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(
        HubError, match=r"no folder for the cache\n.*home directory.*\n.*set OAR_HOME to a folder"
    ):
        home()
