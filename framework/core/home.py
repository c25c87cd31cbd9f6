"""Where Oar keeps files on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from framework.core.errors import HubError


def home() -> Path:
    """`OAR_HOME`, or the system's place for caches: ~/.cache/oar, ~/Library/Caches/oar, %LOCALAPPDATA%/oar.

    The folder is not created here.

    Raises:
        HubError: `OAR_HOME` is not set and this user has no home folder.
    """
    try:
        if folder := os.environ.get("OAR_HOME"):
            return Path(folder).expanduser()
        if sys.platform == "win32":
            return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "oar"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches" / "oar"
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oar"
    except RuntimeError as error:
        raise HubError("no folder for the cache", received=error, fix="set OAR_HOME to a folder") from None
