"""Streams of texts: a client that goes away ends its text before the next token."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from framework.serving.routes.openai import _Stream
from framework.serving.settings import Limits, ModelSettings
from framework.serving.text_models import ServedGenerator
from framework.workflow.domain.text_generation import TextDelta


class Text:
    """A text whose next token comes when the test says so."""

    warnings = ()

    def __init__(self) -> None:
        self.tokens = 0
        self.cancelled = False
        self._listener: Callable[[object], None] | None = None

    def next_delta(self, timeout: float | None = None) -> TextDelta | None:
        raise AssertionError("nobody waits for a stream")

    def listen(self, function: Callable[[object], None]) -> None:
        self._listener = function
        self.write()

    def write(self) -> None:
        assert self._listener is not None and not self.cancelled
        self.tokens += 1
        self._listener(TextDelta("a", 1, (), None))

    def read(self, item: object) -> TextDelta:
        assert isinstance(item, TextDelta)
        return item

    def cancel(self) -> None:
        self.cancelled = True


def test_a_client_that_leaves_ends_its_text_before_the_next_token() -> None:
    text, tokens = Text(), 3

    async def run() -> int:
        with ThreadPoolExecutor(1) as workers:
            served = ServedGenerator(ModelSettings("folder", "tiny"), None, Limits(), workers)  # type: ignore[arg-type]
            gone, bodies = asyncio.Event(), []

            async def events() -> AsyncIterator[bytes]:
                async for _, delta in served.read([text], deadline=float("1e9")):
                    yield delta.text.encode()

            async def receive() -> dict[str, str]:
                await gone.wait()
                return {"type": "http.disconnect"}

            async def send(message: Any) -> None:
                if message["type"] != "http.response.body":
                    return
                bodies.append(message["body"])
                if len(bodies) == tokens:
                    gone.set()  # and no token comes any more
                else:
                    text.write()

            stream = _Stream(events(), contextlib.AsyncExitStack())
            await asyncio.wait_for(stream({"type": "http"}, receive, send), 60)
            return len(bodies)

    assert asyncio.run(run()) == tokens
    assert text.cancelled and text.tokens == tokens
