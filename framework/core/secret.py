"""A secret of this user on this machine, by which compiled programs are known as written by the user."""

from __future__ import annotations

import contextlib
import hmac
import os
import secrets
import stat
from pathlib import Path

from framework.core.home import home

_SECRET_BYTES = 32


def secret_file() -> Path:
    """Where it is: `OAR_HOME`/compiled/key. Raises: HubError, where there is no home folder."""
    return home() / "compiled" / "key"


def read_secret(path: Path) -> bytes:
    """The user's secret, made at the first call. Raises: OSError, also where others could have read or written it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileNotFoundError):
        return _read_own(path)
    work = path.with_name(f".{secrets.token_hex(8)}.tmp")
    descriptor = os.open(work, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_SECRET_BYTES))
        try:
            os.link(
                work, path
            )  # which, unlike a rename, leaves the secret that another process made meanwhile
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            os.replace(work, path)
    finally:
        work.unlink(missing_ok=True)
    return _read_own(path)


def tag_of(secret: bytes, key: str, data: bytes) -> bytes:
    """What binds data to its key and to the user: HMAC-SHA256, 32 bytes. Compare it by `hmac.compare_digest`."""
    return hmac.digest(secret, key.encode() + b"\n" + data, "sha256")


def _read_own(path: Path) -> bytes:
    """Raises: OSError, where the file is a link, another user's, open to others, or no secret."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    with os.fdopen(descriptor, "rb") as file:
        about, secret = os.fstat(descriptor), file.read(_SECRET_BYTES + 1)
    if os.name == "posix" and (about.st_uid != os.geteuid() or stat.S_IMODE(about.st_mode) & 0o077):
        raise PermissionError(f"{path} must belong to you and be open to nobody else; delete it")
    if len(secret) != _SECRET_BYTES:
        raise OSError(f"{path} is damaged; delete it")
    return secret
