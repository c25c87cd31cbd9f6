"""Language models of a server: the texts of all clients share its slots, and the tokens reach the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

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


class _Mailbox:
    """Brings what threads of a model put into it to an event loop, all of one step at once: each call that wakes a
    loop takes longer than many tokens do."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._items: deque[tuple[asyncio.Queue[tuple[int, object]], tuple[int, object]]] = deque()
        self._called = False

    def put(self, queue: asyncio.Queue[tuple[int, object]], item: tuple[int, object]) -> None:
        """Puts an item into a queue of the loop, soon. May be called by any thread."""
        self._items.append((queue, item))
        if not self._called:
            self._called = True
            with contextlib.suppress(RuntimeError):  # the loop has ended
                self.loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        self._called = False  # before the items are looked at, so that none stays behind
        while self._items:
            queue, item = self._items.popleft()
            queue.put_nowait(item)


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
        self._mailbox: _Mailbox | None = None
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
        queue: asyncio.Queue[tuple[int, object]] = asyncio.Queue()
        loop = asyncio.get_running_loop()
        mailbox = self._mailbox_of(loop)
        for number, request in enumerate(requests):
            request.listen(lambda item, number=number: mailbox.put(queue, (number, item)))
        late = DeadlineError("the text was not written before the deadline of the request")
        alarm = loop.call_later(max(deadline - time.monotonic(), 0.001), queue.put_nowait, (0, late))
        left = len(requests)
        try:
            while left:
                number, item = await queue.get()
                if isinstance(item, BaseException):
                    raise item
                delta = requests[number].read(item)
                left -= delta.finish_reason is not None
                yield number, delta
        finally:
            alarm.cancel()
            for request in requests:
                request.cancel()

    def _mailbox_of(self, loop: asyncio.AbstractEventLoop) -> _Mailbox:
        if self._mailbox is None or self._mailbox.loop is not loop:
            self._mailbox = _Mailbox(loop)
        return self._mailbox

    async def close(self) -> None:
        self._closing = True
        if self._version is not None:
            generator = self._version.generator
            await asyncio.get_running_loop().run_in_executor(None, generator.close)
