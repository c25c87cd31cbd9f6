"""What stands in Ray's proxy: requests whose replica dies are asked again, with applications that die in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import pytest
from starlette.types import Message, Receive, Scope, Send

from framework.serving.budget import Budget
from framework.serving.ray_retry import Repeater

START: Message = {"type": "http.response.start", "status": 200, "headers": []}
FIRST: Message = {"type": "http.response.body", "body": b"first", "more_body": True}
LAST: Message = {"type": "http.response.body", "body": b"last"}
BODY: tuple[Message, ...] = (
    {"type": "http.request", "body": b"ab", "more_body": True},
    {"type": "http.request", "body": b"cd", "more_body": False},
)
GONE: Message = {"type": "http.disconnect"}


class Proxy:
    """An application that reads a body, sends these messages, and returns; one tuple of them a call."""

    def __init__(self, *answers: Iterable[Message], reads: int = 2) -> None:
        self.answers, self.reads, self.bodies = list(answers), reads, list[bytes]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = [await receive() for _ in range(self.reads)]
        self.bodies.append(b"".join(message.get("body", b"") for message in received))
        scope["path"] = "changed"
        for message in self.answers.pop(0):
            await send(message)


def ask(app: Proxy, messages: Iterable[Message] = BODY, most: int = 9, total: int = 9) -> list[Message]:
    """What a client gets; what was held is given back."""
    sent, left, bodies = list[Message](), list(messages), Budget(total)
    scope: Scope = {"type": "http", "path": "/"}

    async def receive() -> Message:
        return left.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(Repeater(app, most, bodies)(scope, receive, send))
    assert bodies.left == total and scope["path"] == "/"
    return sent


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framework.serving.ray_retry._PAUSE", 0.0)


@pytest.mark.parametrize("before", [(), (START,)])
def test_another_replica_is_asked(before: tuple[Message, ...]) -> None:
    app = Proxy(before, (START, FIRST, LAST))
    assert ask(app) == [START, FIRST, LAST]
    assert app.bodies == [b"abcd", b"abcd"]


def test_a_body_that_had_not_come_whole_goes_on() -> None:
    app = Proxy((), (START, LAST), reads=1)
    assert ask(app) == [START, LAST] and app.bodies == [b"ab", b"ab"]


def test_an_answer_that_began_is_not_sent_twice() -> None:
    app = Proxy((START, FIRST), (START, LAST))
    assert ask(app) == [START, FIRST] and len(app.bodies) == 1


def test_a_request_at_which_two_die_is_not_asked_again() -> None:
    app = Proxy((), (), (START, LAST))
    assert ask(app) == [] and len(app.bodies) == 2


@pytest.mark.parametrize(
    ("messages", "most", "total"), [(BODY, 3, 9), (BODY, 9, 3), ((BODY[0], GONE), 9, 9)], ids=str
)
def test_what_cannot_be_held_is_asked_once(messages: tuple[Message, ...], most: int, total: int) -> None:
    app = Proxy((), (START, LAST))
    assert ask(app, messages, most, total) == [] and len(app.bodies) == 1
