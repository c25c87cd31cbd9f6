"""Paths as clients and proxies write them: with a slash too many, or below the address that a proxy has."""

from __future__ import annotations

import re

_SLASHES = re.compile("/{2,}")


def plain_path(path: str, prefix: str = "") -> str:
    """A path as routes have it.

    A redirect would not do: it names an address that a client behind a proxy may not reach, and few send a file twice.

    Args:
        prefix: What a proxy leaves before the path, without a slash at its end: "/oar".
    """
    if "//" in path:
        path = _SLASHES.sub("/", path)
    if prefix and path.startswith(prefix) and path[len(prefix) : len(prefix) + 1] in ("", "/"):
        path = path[len(prefix) :]
    return path.rstrip("/") or "/"
