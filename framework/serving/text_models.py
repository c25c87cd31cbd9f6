"""Language models of a server: the texts of all clients share its slots, and the tokens reach the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from framework.core.errors import OarError
from framework.serving.errors import BadRequestError, DeadlineError, RetryError
from framework.serving.settings import Limits, ModelSettings
from framework.serving.source import ServedSource
from framework.workflow.domain.domain import find_capabilities
from framework.workflow.domain.options import make_options
from framework.workflow.domain.text_generation import TextDelta, TextGeneration, TextGenerator, TextRequest

_LOOK = 0.05  # seconds between two looks whether the last request of an old version has ended


def find_generation(settings: ModelSettings) -> TextGeneration | None:
    """What opens the model, where it is one that writes texts."""
    return next((one for one in find_capabilities(TextGeneration) if one.accepts(settings.source)), None)


@dataclass
class GeneratorVersion:
    """A model that was opened, and how many requests use it."""

    generator: TextGenerator
    users: int = 0


class ServedGenerator(ServedSource[GeneratorVersion]):
    """A language model under its name.

    Args:
        limits: `queue` texts are under way at a time, those that wait for a slot too.
    """

    def __init__(
        self,
        settings: ModelSettings,
        generation: TextGeneration,
        limits: Limits,
        workers: ThreadPoolExecutor,
    ) -> None:
        super().__init__(settings, workers)
        self.limits, self._generation = limits, generation
        self._readers = ThreadPoolExecutor(limits.queue, f"oar-texts-{settings.name}")
        self._lock = threading.Lock()
        self._admitted = 0
        self._closing = False

    @property
    def admitted(self) -> int:
        return self._admitted

    @property
    def load(self) -> tuple[int, int]:
        """Texts that are written, and that wait."""
        if not self.ready:
            return 0, 0
        generator = self.version.generator
        return generator.running, generator.waiting

    def _open_version(self) -> GeneratorVersion:
        options = make_options(self._generation.options, self.settings.options, f"the model {self.name}")
        generator = self._generation.open(self.settings.source, options)
        warm = generator.start(generator.encode("a") or (0,), {"max_tokens": 2, "ignore_eos": True})
        for request in warm:  # which compiles the programs
            while request.next_delta() is not None:
                pass
        return GeneratorVersion(generator)

    def _retire(self, version: GeneratorVersion) -> None:
        def close() -> None:
            while version.users and not self._closing:
                time.sleep(_LOOK)
            version.generator.close()

        threading.Thread(target=close, name=f"oar-retire-{self.name}", daemon=True).start()

    @contextlib.contextmanager
    def admit(self, count: int) -> Iterator[TextGenerator]:
        """Counts so many texts as under way. Raises: RetryError, where they are too many at this time."""
        version = self.version
        if count > self.limits.queue:
            raise BadRequestError(
                "the request asks for too many texts", received=count, allowed=f"{self.limits.queue} at most"
            )
        with self._lock:
            if self._closing:
                raise RetryError("the server is stopping")
            if self._admitted + count > self.limits.queue:
                raise RetryError(
                    "the server writes as many texts as it can", received=f"{self._admitted} texts under way"
                )
            self._admitted += count
            version.users += 1
        try:
            yield version.generator
        finally:
            with self._lock:
                self._admitted -= count
                version.users -= 1

    async def read(
        self, requests: Sequence[TextRequest], deadline: float
    ) -> AsyncGenerator[tuple[int, TextDelta], None]:
        """The deltas of several texts as they come, each with the number of its text.

        Where the iteration ends before the texts do, they are cancelled.

        Args:
            deadline: In seconds of `time.monotonic`.

        Raises:
            DeadlineError: they were not written in time. OarError: what ended a text.
        """
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[int, TextDelta | BaseException | None]] = asyncio.Queue()

        def read(number: int, request: TextRequest) -> None:
            def put(item: TextDelta | BaseException | None) -> None:
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(queue.put_nowait, (number, item))

            try:
                while (delta := request.next_delta()) is not None:
                    put(delta)
                put(None)
            except BaseException as error:
                put(error)

        for number, request in enumerate(requests):
            self._readers.submit(read, number, request)
        left = len(requests)
        try:
            while left:
                number, item = await self._next(queue, deadline)
                if item is None:
                    left -= 1
                elif isinstance(item, BaseException):
                    raise item
                else:
                    yield number, item
        finally:
            for request in requests:
                request.cancel()

    @staticmethod
    async def _next(
        queue: asyncio.Queue[tuple[int, TextDelta | BaseException | None]], deadline: float
    ) -> tuple[int, TextDelta | BaseException | None]:
        if not queue.empty():
            return queue.get_nowait()
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0.001)):
                return await queue.get()
        except TimeoutError as error:
            if isinstance(error, OarError):
                raise
            raise DeadlineError("the text was not written before the deadline of the request") from None

    async def close(self) -> None:
        self._closing = True
        if self._version is not None:
            generator = self._version.generator
            await asyncio.get_running_loop().run_in_executor(None, generator.close)
        self._readers.shutdown(wait=False, cancel_futures=True)
