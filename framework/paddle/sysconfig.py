"""paddle.sysconfig: folders that C++ extensions of Paddle would look into. There are no headers or libraries here."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Where headers would be."""
    return str(Path(__file__).parent / "include")


def get_lib() -> str:
    """Where libraries would be."""
    return str(Path(__file__).parent / "libs")
