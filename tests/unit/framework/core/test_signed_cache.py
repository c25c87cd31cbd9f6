"""jax's cache: entries that were exchanged or changed are compiled again, and folders of others are not used."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.core.signed_cache import SignedCache

CODE = """
import logging, sys
logging.basicConfig(format="%(message)s")
from framework.core.compilation import enable_compilation_cache
print(enable_compilation_cache() is not None)
import jax, numpy as np
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event) if "cache_hits" in event else None)
f = jax.jit(lambda x: x + 1.0); g = jax.jit(lambda x: x * 100.0)
print(float(f(np.float32(3))), float(g(np.float32(3))), len(hits))
"""
pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and modes of files")


def start(home: Path) -> tuple[list[str], str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CODE],
        env={**kept, "OAR_HOME": str(home), "JAX_PLATFORMS": "cpu", "OAR_COMPILATION_CACHE": "on"},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split(), done.stderr


def test_entries_that_were_exchanged_are_compiled_again(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert start(home)[0] == ["True", "4.0", "300.0", "0"]
    assert start(home)[0] == ["True", "4.0", "300.0", "2"]
    files = sorted(home.glob("compiled/*/jit__lambda*-cache"))
    data = [file.read_bytes() for file in files]
    assert len(files) == 2
    for file, other in zip(files, data[::-1]):
        file.write_bytes(other)
    out, errors = start(home)
    assert out == ["True", "4.0", "300.0", "0"]
    assert errors.count("a kept program was changed or is damaged") == 2
    files[0].write_bytes(files[0].read_bytes()[:-1] + b"?")
    assert start(home)[0] == ["True", "4.0", "300.0", "1"]
    for file in files:  # as an older Oar wrote them
        file.write_bytes(file.read_bytes()[40:])
    out, errors = start(home)
    assert (out, errors) == (["True", "4.0", "300.0", "0"], "")
    assert start(home)[0] == ["True", "4.0", "300.0", "2"]


def test_an_entry_that_the_disk_does_not_take_leaves_no_half_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Full:
        def get(self, key: str) -> bytes | None:
            return None

        def put(self, key: str, value: bytes) -> None:
            (tmp_path / f"{key}-cache").write_bytes(value[:5])
            raise OSError(errno.ENOSPC, "No space left on device")

    cache = SignedCache(Full(), tmp_path, b"secret")
    with caplog.at_level("WARNING", "oar"):
        for key in ("one", "two"):
            cache.put(key, b"program")
    assert not os.listdir(tmp_path)
    assert caplog.messages == [f"compiled programs are not kept: {tmp_path}: No space left on device"]


@pytest.mark.parametrize("folder", ["", "compiled", "compiled/*"])
def test_folders_that_others_may_write_into_are_not_used(tmp_path: Path, folder: str) -> None:
    home = tmp_path / "home"
    start(home)
    places = [path for path in (home.glob(folder) if folder else [home]) if path.is_dir()]
    for place in places:
        place.chmod(0o777)
    out, errors = start(home)
    assert out == ["False", "4.0", "300.0", "0"]
    assert "compiled programs are not kept" in errors
    assert "chmod go-w" in errors


def test_every_folder_is_made_for_the_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    start(home)
    made = [home, home / "compiled", *[path for path in (home / "compiled").iterdir() if path.is_dir()]]
    assert len(made) == 3
    assert all(path.stat().st_mode & 0o077 == 0 for path in made)
