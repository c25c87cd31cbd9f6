"""What models of a server have in common: they are opened from a source, and anew where its folder changes."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Generic, TypeVar

from framework.core.errors import OarError
from framework.serving.errors import RetryError
from framework.serving.settings import ModelSettings

log = logging.getLogger("oar.serving")
T = TypeVar("T")
V = TypeVar("V")


class ServedSource(ABC, Generic[V]):
    """A model under its name, as it was opened last.

    Args:
        workers: Threads that open models, and read and write what requests hold.
    """

    def __init__(self, settings: ModelSettings, workers: ThreadPoolExecutor) -> None:
        self.settings, self._workers = settings, workers
        self._version: V | None = None
        self._signature: Hashable = None
        self.created = int(time.time())
        """Seconds since 1970"""

    @property
    def name(self) -> str:
        """In addresses."""
        return self.settings.name

    @property
    def ready(self) -> bool:
        """Whether it was opened and has run."""
        return self._version is not None

    @property
    def version(self) -> V:
        """What runs new requests. Raises: RetryError, before it is ready."""
        if self._version is None:
            raise RetryError("the model is not ready yet", received=self.name, retry_after=5)
        return self._version

    @property
    @abstractmethod
    def admitted(self) -> int:
        """Requests under way."""

    @abstractmethod
    def _open_version(self) -> V:
        """Open the model and run it once. Raises: OarError."""

    def _retire(self, version: V) -> None:
        """A version takes no new requests any more."""

    @property
    def _settle_seconds(self) -> float:
        """How long a changed folder is to stay as it is before it is opened."""
        return 0.5

    async def start(self) -> None:
        """Open it and run it once. Raises: OarError, where it cannot be opened."""
        self._signature = await self.in_thread(self._look)
        self._version = await self.in_thread(self._open_version)
        log.info("%s is ready", self.name)

    async def reload_if_changed(self) -> bool:
        """Open the artifact anew where its folder has changed and is still; whether that was done.

        Requests go to the new one from when it is ready; those before are finished by the old one. One that cannot be
        opened is logged, and the old one goes on.
        """
        signature = await self.in_thread(self._look)
        if signature is None or signature == self._signature:
            return False
        await asyncio.sleep(self._settle_seconds)
        if await self.in_thread(self._look) != signature:  # it is still being written
            return False
        self._signature = signature
        try:
            version = await self.in_thread(self._open_version)
        except (OarError, OSError) as error:
            log.error("%s has changed and cannot be opened; the one before goes on: %s", self.name, error)
            return False
        before, self._version = self._version, version
        if before is not None:
            self._retire(before)
        log.info("%s has changed and was opened anew", self.name)
        return True

    def _look(self) -> Hashable:
        """What changes with the files of the artifact's folder; None, where the model is no folder or it is gone."""
        folder = Path(self.settings.source).expanduser()
        if not folder.is_dir():
            return None
        facts = []
        for file in sorted(folder.rglob("*")):
            try:
                stat = file.stat()
            except OSError:  # it goes while we look
                return None
            facts.append((str(file), stat.st_mtime_ns, stat.st_size, stat.st_ino))
        return tuple(facts)

    async def in_thread(self, function: Callable[[], T]) -> T:
        """What a function gives that takes CPU time or waits for a disk."""
        return await asyncio.get_running_loop().run_in_executor(self._workers, function)

    def start_in_thread(self, function: Callable[[], object]) -> None:
        """Call a function in a thread, and wait for nothing."""
        asyncio.get_running_loop().run_in_executor(self._workers, function)

    @abstractmethod
    async def close(self) -> None:
        """Finish what is under way."""
