"""Connections of clients by both readers of requests: long and late headers, and requests that are refused at once."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl

from framework.serving import connections
from framework.serving.admission import RETRY_AFTER, Headers, Refusal
from framework.serving.early_return import EarlyReturn
from framework.serving.header_timer import HEADER_BYTES

KINDS = ["h11", "httptools"]


class App:
    """Answers with the length of the body; refuses while it is full."""

    def __init__(self) -> None:
        self.full, self.asked = False, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.asked += 1
        if self.full:  # as the gate refuses, where the reader has not
            scope["state"][RETRY_AFTER] = 1
        length, more = 0, True
        while more:
            message = await receive()
            length += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = str(length).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        if RETRY_AFTER in scope["state"]:
            headers.append((b"x-refused", b"1"))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def refuse(self, path: str, headers: Headers) -> Refusal | None:
        assert path == "/predict" and dict(headers)[b"host"] == b"a"
        headers = [(b"retry-after", b"1"), (b"content-length", b"2")]
        return Refusal(503, headers, b"no", 1) if self.full else None


@contextmanager
def serve(kind: str, monkeypatch: pytest.MonkeyPatch, seconds: float = 20.0) -> Iterator[tuple[App, int]]:
    app = App()
    if kind == "httptools":
        pytest.importorskip("httptools")
    else:
        monkeypatch.setitem(sys.modules, "framework.serving.httptools_connection", None)
    http = connections.connection_class(seconds, app.refuse)
    config = uvicorn.Config(
        app,
        port=0,
        http=http,
        lifespan="off",
        ws="none",
        log_level="critical",
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield app, server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def read(sock: socket.socket) -> bytes:
    """One answer; nothing where the server closed the connection."""
    data = b""
    try:
        while b"\r\n\r\n" not in data and (chunk := sock.recv(65536)):
            data += chunk
        head, _, body = data.partition(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith(b"content-length:")), 0)
        while len(body) < length and (chunk := sock.recv(65536)):
            body += chunk
        return head + b"\r\n\r\n" + body
    except ConnectionResetError:
        return b""


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


HEAD = b"POST /predict?a=b HTTP/1.1\r\nHost: a\r\n"


@pytest.mark.parametrize("kind", KINDS)
def test_headers_have_a_length(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(kind, monkeypatch) as (app, port):
        for lines in (b"A: " + b"x" * (1 << 20), b"".join(b"A%d: x\r\n" % n for n in range(20_000))):
            with connect(port) as sock:
                with suppress(BrokenPipeError, ConnectionResetError):
                    sock.sendall(HEAD + lines + b"\r\n\r\n")
                assert read(sock)[9:12] in (b"400", b"431", b"")
        with connect(port) as sock, pytest.raises(OSError):  # one that never ends, a little at a time
            for _ in range(1000):
                sock.sendall(b"GET /" + b"x" * 1000)
                time.sleep(0.001)
        assert not app.asked
        with connect(port) as sock:
            sock.sendall(HEAD + b"B: " + b"x" * 30_000 + b"\r\nContent-Length: 3\r\n\r\nabc")
            assert read(sock).endswith(b"3")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("begin", [b"", b"P", HEAD, b"\r\n"])
def test_a_header_that_does_not_end_ends_the_connection(
    kind: str, begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve(kind, monkeypatch, 0.3) as (app, port), connect(port) as sock:
        sock.sendall(begin)
        assert read(sock)[9:12] in (b"", b"400")
        assert not app.asked


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_may_take_longer_than_a_header(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(kind, monkeypatch, 0.3) as (_, port), connect(port) as sock:
        for _ in range(2):  # the second one on a connection that is open already
            sock.sendall(HEAD + b"Content-Length: 5\r\n\r\n")
            for sign in b"abcde":
                time.sleep(0.15)
                sock.sendall(bytes([sign]))
            assert read(sock).endswith(b"\r\n\r\n5")


def test_a_refused_request_costs_no_task_and_the_connection_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("httptools", monkeypatch, 0.5) as (app, port), connect(port) as sock:
        app.full = True
        for size in (0, 5, 3_000_000):
            sock.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % size)
            assert (
                read(sock)
                == b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 2\r\n\r\nno"
            )
            sock.sendall(b"x" * size)
        sock.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        assert read(sock).endswith(b"no")
        sock.sendall(b"0\r\n\r\n")
        assert app.asked == 0
        app.full = False
        sock.sendall(HEAD + b"Content-Length: 4\r\n\r\nabcd")
        assert read(sock).endswith(b"\r\n\r\n4")
        app.full = True  # one behind another, before that one is answered, is not answered before it
        sock.sendall(HEAD + b"Content-Length: 4\r\n\r\n")
        assert read(sock).endswith(b"no")
        began = time.monotonic()
        assert read(sock) == b"\r\n\r\n"  # the rest of the body does not come
        assert time.monotonic() - began < 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_that_comes_too_soon_waits_unread_and_is_answered(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[int] = []
    pause = FlowControl.pause_reading
    monkeypatch.setattr(FlowControl, "pause_reading", lambda self: (pauses.append(1), pause(self)))
    request = HEAD + b"Content-Length: 4\r\n\r\nabcd"
    with serve(kind, monkeypatch) as (app, port), connect(port) as sock:
        for full, expected in ((False, 0), (True, 0), (True, 1), (True, 2), (False, 2), (False, 2)):
            app.full = full
            sock.sendall(request)
            answer = read(sock)
            assert (b" 503 " in answer or b"x-refused" in answer) == full
            with connect(
                port
            ) as other:  # behind its answer, the server has done all that belongs to the first
                sock_full, app.full = app.full, False
                other.sendall(request)
                assert read(other).endswith(b"\r\n\r\n4")
                app.full = sock_full
            assert len(pauses) == expected


class Timers:
    """A loop, a transport and a flow control of simulated time."""

    def __init__(self) -> None:
        self.now, self.timers, self.is_paused, self.is_closed = 0.0, [], False, False

    def time(self) -> float:
        return self.now

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timers:
        self.timers.append((self.now + seconds, call))
        return self

    def cancel(self) -> None:
        self.timers.clear()

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        due = [call for at, call in self.timers if at <= self.now]
        self.timers = [(at, call) for at, call in self.timers if at > self.now]
        for call in due:
            call()

    def is_closing(self) -> bool:
        return self.is_closed

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


def test_who_waits_as_long_as_was_said_is_read_at_once() -> None:
    client, timers = EarlyReturn(), Timers()
    client.loop = client.transport = client.flow = timers  # type: ignore[assignment]
    for _ in range(3):
        client._note_refusal(2)
        assert not timers.is_paused and not timers.timers
        timers.pass_time(2.0)
    refused = 0
    for _ in range(1000):  # ten seconds of one that asks every hundredth of a second
        if not timers.is_paused:
            client._note_refusal(2)
            refused += 1
        timers.pass_time(0.01)
    assert 80 <= refused <= 120
    client._note_refusal(2)
    timers.is_closed = True
    timers.pass_time(5)
    client._note_refusal(9)
    client._note_refusal(9)
    assert not timers.timers


def test_answers_come_in_the_order_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("httptools", monkeypatch) as (app, port), connect(port) as sock:
        sock.sendall(HEAD + b"Content-Length: 2\r\n\r\n")
        while not app.asked:
            time.sleep(0.01)
        app.full = True
        sock.sendall(b"ab" + HEAD + b"Content-Length: 3\r\n\r\nabc")
        first = read(sock)
        assert b"\r\n\r\n2" in first or first.endswith(b"2")


def test_the_body_of_a_refusal(start) -> None:  # type: ignore[no-untyped-def]
    client = start(api_keys=("key",))
    app = client.app
    batcher = app.state.store.get("tiny").batcher
    refuse, path = app.state.admission.refuse, "/v1/models/tiny:predict"
    assert refuse(path, [(b"x-api-key", b"key")]) is None
    batcher.load.capacity = 0
    for name in ("one", "number.2"):  # the answer is written once, and each has its own id
        answer = client.post(path, content=b"x", headers={"x-api-key": "key", "x-request-id": name})
        assert (answer.headers["x-request-id"], answer.headers["retry-after"]) == (name, "1")
        assert answer.json()["error"]["request_id"] == name
    headers = {"x-api-key": "key", "x-request-id": "mine"}
    for url in (path, "/v2/models/tiny/infer", "/v2/models/tiny/versions/1/infer"):
        answer = client.post(url, content=b"x" * 100, headers=headers)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
        assert answer.headers["x-request-id"] == "mine"
        assert "as many requests" in json.dumps(answer.json())
    assert client.post(path, content=b"x").status_code == 401  # who has no key does not hear of the load
    assert (
        'oar_requests_total{model="tiny",route="/v1/models/{name}:predict",status="503"} 3.0'
        in client.get("/metrics", headers=headers).text
    )
    assert client.get("/v1/models/tiny", headers=headers).status_code == 200
