"""jax's cache of compiled programs, whose entries are bound to their keys and to the user's secret.

jax loads whatever lies under a program's key, so two files that are exchanged make it compute something else. Here an
entry begins with its HMAC-SHA256, and what was changed, exchanged or brought from elsewhere is compiled again.
"""

from __future__ import annotations

import contextlib
import contextvars
import hmac
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from framework.core.secret import tag_of

log = logging.getLogger("oar")
_bypassed: contextvars.ContextVar[bool] = contextvars.ContextVar("oar_bypassed_cache", default=False)
_MAGIC = b"oar-jax1"
_HEAD = len(_MAGIC) + 32
_secrets: dict[str, bytes] = {}
"""Of the folders whose entries are bound, by the path that jax is given."""


class Cache(Protocol):
    """What jax asks for entries."""

    def get(self, key: str) -> bytes | None: ...
    def put(self, key: str, value: bytes) -> None: ...


def bind_entries(folder: str, secret: bytes) -> None:
    """Bind what jax keeps in `folder` from now on. Where this jax has another cache than is known, nothing is bound."""
    try:
        from jax._src import compilation_cache
    except ImportError:
        return
    if not hasattr(compilation_cache, "get_file_cache"):
        return
    if not _secrets:
        original = compilation_cache.get_file_cache

        def get_file_cache(path: str) -> tuple[Cache, str] | None:
            opened = original(path)
            if opened is None or path not in _secrets:
                return opened
            return SignedCache(opened[0], Path(path), _secrets[path]), opened[1]

        compilation_cache.get_file_cache = get_file_cache
    _secrets[folder] = secret


def is_bound(folder: str) -> bool:
    """Whether the entries of a folder are bound."""
    return folder in _secrets


@contextlib.contextmanager
def bypassed() -> Iterator[None]:
    """Compile within the block as if no bound folder had an entry, and keep none: an executable that jax read from its
    cache cannot be written again (its kernels are not found afterwards)."""
    token = _bypassed.set(True)
    try:
        yield
    finally:
        _bypassed.reset(token)


class SignedCache:
    """What jax asks for entries: `get` and `put` of the cache `inner`, which keeps them in `folder`."""

    def __init__(self, inner: Cache, folder: Path, secret: bytes) -> None:
        self._inner, self._folder, self._secret = inner, folder, secret
        self._is_refused = False  # which the log has said

    def get(self, key: str) -> bytes | None:
        """The entry of a key; None where there is none that this user wrote there."""
        data = None if _bypassed.get() else self._inner.get(key)
        if data is None:
            return None
        if data[: len(_MAGIC)] == _MAGIC and hmac.compare_digest(
            data[len(_MAGIC) : _HEAD], self._tag(key, data[_HEAD:])
        ):
            return data[_HEAD:]
        if data[: len(_MAGIC)] == _MAGIC:  # else it is of an older Oar, which bound none
            log.warning("a kept program was changed or is damaged, it is made again: %s", self._folder / key)
        with contextlib.suppress(OSError):  # jax writes none where there is one
            (self._folder / f"{key}-cache").unlink()
        return None

    def put(self, key: str, value: bytes) -> None:
        """Keep an entry."""
        if _bypassed.get():
            return
        try:
            self._inner.put(key, _MAGIC + self._tag(key, value) + value)
        except OSError as error:  # jax writes in place, so half of it may be there
            with contextlib.suppress(OSError):
                (self._folder / f"{key}-cache").unlink()
            if not self._is_refused:
                log.warning("compiled programs are not kept: %s: %s", self._folder, error.strerror or error)
            self._is_refused = True

    def _tag(self, key: str, value: bytes) -> bytes:
        return tag_of(self._secret, key, value)

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)
