"""Locks between processes on files, also where a file system has none: Lustre and NFS are mounted without them."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from filelock import FileLock

log = logging.getLogger("oar")
_WITHOUT_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}


def acquire_lock(path: Path) -> FileLock | None:
    """The lock file at `path`, which this process holds until it calls `release`. None where the file system has no
    locks: nobody is kept away then, which a line of the log says.

    Raises:
        filelock.Timeout: another process holds it. OSError: the file cannot be made.
    """
    from filelock import FileLock

    lock = FileLock(path, timeout=0)
    try:
        lock.acquire()
    except (OSError, NotImplementedError) as error:  # the second is that of older versions of filelock
        if not is_without_locks(error):
            raise
        log.warning(
            "%s: this file system has no locks, so let one process at a time write there", path.parent
        )
        return None
    return lock


def is_without_locks(error: Exception) -> bool:
    """Whether an error of locking a file says that its file system has no locks."""
    return isinstance(error, NotImplementedError) or getattr(error, "errno", None) in _WITHOUT_LOCKS
