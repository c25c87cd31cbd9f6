"""paddle.utils.download: files by URL. Paddle's own cache comes first, then the hub's, which downloads."""

from __future__ import annotations

import hashlib
from pathlib import Path

from framework.core.errors import HubError
from framework.hub.store import resolve

WEIGHTS_HOME = Path.home() / ".cache" / "paddle" / "hapi" / "weights"


def _get_unique_endpoints(trainer_endpoints: list[str]) -> set[str]:
    """One address of each machine, the first: the processes that download for the others of their machine."""
    first = {endpoint.rpartition(":")[0]: endpoint for endpoint in reversed(trainer_endpoints)}
    return set(first.values())


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """The local path of a file of weights.

    Raises:
        HubError: it is not in a cache and cannot be fetched, or has another MD5 sum.
    """
    return get_path_from_url(url, str(WEIGHTS_HOME), md5sum)


def get_path_from_url(url: str, root_dir: str, md5sum: str | None = None, check_exist: bool = True) -> str:
    """The local path of a file: in `root_dir` under its own name, or in the hub's cache."""
    path = Path(root_dir) / url.rsplit("/", 1)[-1]
    if not (check_exist and path.is_file()):
        path = resolve(url)
    if md5sum is not None and (found := hashlib.md5(path.read_bytes()).hexdigest()) != md5sum:
        raise HubError("the file is another one", where=str(path), received=f"md5 {found}", allowed=md5sum)
    return str(path)
