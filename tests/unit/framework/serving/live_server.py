"""A server behind a socket, in a thread of this process, for clients that need one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from framework.serving.app import create_app
from framework.serving.settings import BatchSettings, ModelSettings, ServerSettings


@contextlib.contextmanager
def live(folder: Path, name: str = "mean", **settings: Any) -> Iterator[str]:
    """The address of a server that is ready, with the model of a folder."""
    model = ModelSettings(str(folder), name, batch=BatchSettings(wait_ms=2))
    failures: list[Exception] = []
    app = create_app(
        ServerSettings(**{"models": (model,), "reload_seconds": 0.0, **settings}), failures.append
    )
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", http="h11"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        ends = time.monotonic() + 120
        while not server.started:
            assert thread.is_alive() and time.monotonic() < ends
            time.sleep(0.02)
        port = server.servers[0].sockets[0].getsockname()[1]
        address = f"http://127.0.0.1:{port}"
        while not httpx.get(f"{address}/readyz").is_success:
            assert not failures and time.monotonic() < ends, failures
            time.sleep(0.02)
        yield address
    finally:
        server.should_exit = True
        thread.join()
