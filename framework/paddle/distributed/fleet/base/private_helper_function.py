"""Waiting for processes that listen."""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import Iterable

from framework.paddle._kernel.modules import complete as _complete


def _listens(endpoint: str) -> bool:
    """Whether somebody takes connections at "host:port"."""
    host, _, port = endpoint.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=2):
            return True
    except OSError:
        return False


def wait_server_ready(endpoints: Iterable[str]) -> None:
    """Wait until somebody listens at each of these addresses, "host:port"; ask every three seconds."""
    while waiting := [endpoint for endpoint in endpoints if not _listens(endpoint)]:
        sys.stderr.write(f"server not ready, wait 3 sec to retry...\nnot ready endpoints:{waiting}\n")
        sys.stderr.flush()
        time.sleep(3)


_complete(__name__)
