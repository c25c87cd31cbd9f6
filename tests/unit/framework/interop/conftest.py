"""Files of other frameworks (tests/data/interop), the shared real weights, and bytes written by hand."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from framework.interop.source import Source
from tools.golden import interop

REPO = Path(__file__).resolve().parents[4]


@pytest.fixture(scope="session")
def data() -> Path:
    return REPO / "tests" / "data" / "interop"


@pytest.fixture(scope="session")
def values() -> Callable[[str, tuple[int, ...]], np.ndarray]:
    """The values that the script which made the files gives to a parameter of this name."""
    return interop.values


@pytest.fixture(scope="session")
def weights() -> Path:
    """The folder of real weights, which are not part of the repository."""
    folder = Path(os.environ.get("OAR_SHARED", REPO.parent / "shared")) / "weights"
    if not folder.is_dir():
        pytest.skip(f"the real weights are not at {folder}; set OAR_SHARED")
    return folder


@pytest.fixture
def source() -> Callable[[bytes], Source]:
    return lambda content: Source("made.bin", memoryview(content))


class Wire:
    """Writes protobuf by hand: what no honest writer produces, too."""

    @staticmethod
    def varint(value: int) -> bytes:
        value &= (1 << 64) - 1
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    def number(self, field: int, value: int) -> bytes:
        return self.varint(field << 3) + self.varint(value)

    def bytes(self, field: int, *parts: bytes | str) -> bytes:
        content = b"".join(part.encode("utf-8") if isinstance(part, str) else part for part in parts)
        return self.varint(field << 3 | 2) + self.varint(len(content)) + content


@pytest.fixture(scope="session")
def wire() -> Wire:
    return Wire()
