"""paddle.hub: models of a folder with a `hubconf.py`, whose public functions are its entries."""

from __future__ import annotations

import builtins
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from framework.core.errors import HubError

_CONFIG = "hubconf.py"


def _module(repo_dir: str, source: str) -> ModuleType:
    """The folder's hubconf.py, run.

    Raises:
        HubError: the source is no folder, or has no such file.
    """
    if source != "local":
        raise HubError(
            "code is not downloaded and run",
            where="paddle.hub",
            received=f"source {source!r}",
            allowed="source='local'",
            fix="git clone the repository, and give its folder with source='local'",
        )
    path = Path(repo_dir) / _CONFIG
    spec = importlib.util.spec_from_file_location("hubconf", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise HubError(f"the folder has no {_CONFIG}", where="paddle.hub", received=str(repo_dir))
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(repo_dir)))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(Path(repo_dir)))
    return module


def _entries(module: ModuleType) -> dict[str, Callable[..., object]]:
    return {n: f for n, f in vars(module).items() if callable(f) and not n.startswith("_")}


def _entry(repo_dir: str, model: str, source: str) -> Callable[..., object]:
    entries = _entries(_module(repo_dir, source))
    if model not in entries:
        raise HubError(
            "there is no such entry", where="paddle.hub", received=repr(model), allowed=", ".join(entries)
        )
    return entries[model]


def list(repo_dir: str, source: str = "github", force_reload: bool = False) -> builtins.list[str]:
    """The entries of a folder; `source` is "local"."""
    return [*_entries(_module(repo_dir, source))]


def help(repo_dir: str, model: str, source: str = "github", force_reload: bool = False) -> str | None:
    """The docstring of an entry."""
    return _entry(repo_dir, model, source).__doc__


def load(
    repo_dir: str, model: str, source: str = "github", force_reload: bool = False, **kwargs: object
) -> Any:
    """What an entry makes with these arguments."""
    return _entry(repo_dir, model, source)(**kwargs)
