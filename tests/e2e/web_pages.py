"""A page that `oar export --format web` wrote, served by Python and driven in headless Chromium."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

REPO = Path(__file__).resolve().parents[2]
TOOLS = REPO / "tools" / "web"
MODULES = TOOLS / "node_modules"


def need_node() -> str:
    """The path of node; skips the test where there is none, or one that is older than 20."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout
    if int(version.strip().removeprefix("v").partition(".")[0]) < 20:
        pytest.skip(f"node 20 or newer is needed, this is {version.strip()}")
    return node


def need_packages(*names: str) -> None:
    """Skips the test where `npm ci` has not run in tools/web."""
    if missing := [name for name in names if not (MODULES / name).is_dir()]:
        pytest.skip(f"cd tools/web && npm ci: it installs {', '.join(missing)}")


def need_browser() -> str:
    """The path of Chromium; skips the test where there is none."""
    need_packages("playwright-core", "onnxruntime-web")
    names = ("chromium", "chromium-browser", "google-chrome")
    browser = os.environ.get("OAR_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if browser is None:
        pytest.skip("Chromium is not installed")
    return browser


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a folder that `python -m http.server` serves."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}/"
    finally:
        server.terminate()
        server.wait(20)


def drive(address: str, files: Sequence[Path], *options: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the page says once its model is loaded, and its results of the files."""
    command = [
        need_node(),
        str(TOOLS / "drive.mjs"),
        address,
        need_browser(),
        *options,
        *map(str, files),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr
    ready, *results = map(json.loads, done.stdout.splitlines())
    return ready, [one["result"] for one in results]
