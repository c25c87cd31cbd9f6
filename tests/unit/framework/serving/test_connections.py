"""Connections of clients by both readers of requests: long and late headers, and requests that are refused at once."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, cast

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl

from framework.serving import connections, middleware, server
from framework.serving.admission import RETRY_AFTER, Headers, Refusal
from framework.serving.early_return import EARLY_BEFORE, HOLD_SECONDS, EarlyReturn
from framework.serving.header_timer import HEADER_BYTES
from framework.serving.lost_clients import drop, is_lost, note_task
from framework.serving.models import ModelStore
from framework.serving.server import Restart, Server, open_socket
from framework.serving.settings import Limits, ServerSettings

KINDS = ["h11", "httptools"]


class App:
    """Answers with the length of the body; refuses while it is full."""

    def __init__(self) -> None:
        self.full, self.asked, self.early = False, 0, 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        self.asked += 1
        if self.full:  # as the gate refuses, where the reader has not
            self.early += asyncio.get_running_loop().time() < scope["state"].get(EARLY_BEFORE, 0)
            scope["state"][RETRY_AFTER] = 1
        length, more = 0, True
        while more:
            message = await receive()
            length += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = str(length).encode()
        headers = [(b"content-length", str(len(body)).encode())]
        if scope["query_string"] == b"lines":
            headers = []
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
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run)
    thread.start()
    try:
        while not running.started:
            assert thread.is_alive()
            time.sleep(0.01)
        yield app, running.servers[0].sockets[0].getsockname()[1]
    finally:
        running.should_exit = True
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
def test_the_answer_of_a_client_that_comes_too_soon_is_held(
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
            assert (app.early if kind == "h11" else len(pauses)) == expected


class Clock:
    """A loop of simulated time."""

    now = 0.0

    def time(self) -> float:
        return self.now


def test_who_waits_as_long_as_was_said_does_not_come_too_soon() -> None:
    client, clock = EarlyReturn(), Clock()
    client.loop = clock  # type: ignore[assignment]
    assert not client._is_early
    client._note_refusal(2)
    early = []
    for clock.now in (0.0, 1.9, 2.0, 9.0):
        early.append(client._is_early)
    assert early == [True, True, False, False]


def test_the_gate_holds_the_refusal_of_who_comes_too_soon(start, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    client = start()
    client.app.state.store.get("tiny").batcher.load.capacity = 0
    held: list[float] = []
    sleep = asyncio.sleep

    async def note(seconds: float) -> None:
        held.append(seconds)
        await sleep(0)

    for early_before, expected in ((math.inf, 1), (0.0, 0)):
        held.clear()
        with monkeypatch.context() as patch:
            patch.setattr(middleware.asyncio, "sleep", note)
            client.app_state[EARLY_BEFORE] = early_before
            assert client.post("/v1/models/tiny:predict", content=b"x").status_code == 503
            assert held.count(HOLD_SECONDS) == expected


def test_an_answer_that_is_held_comes_before_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    request = HEAD + b"Content-Length: 4\r\n\r\nabcd"
    with serve("httptools", monkeypatch) as (app, port), connect(port) as sock:
        app.full = True
        sock.sendall(request)
        assert read(sock).endswith(b"no")
        sock.sendall(request * 3)
        data = b""
        while data.count(b"503 Service Unavailable") < 3:
            chunk = sock.recv(65536)
            assert chunk
            data += chunk
        app.full = False
        sock.sendall(request)
        assert read(sock).endswith(b"\r\n\r\n4")


def test_answers_come_in_the_order_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve("httptools", monkeypatch) as (app, port), connect(port) as sock:
        sock.sendall(HEAD + b"Content-Length: 2\r\n\r\n")
        while not app.asked:
            time.sleep(0.01)
        app.full = True
        sock.sendall(b"ab" + HEAD + b"Content-Length: 3\r\n\r\nabc")
        first = read(sock)
        assert b"\r\n\r\n2" in first or first.endswith(b"2")


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_offers_http_2_is_answered_with_its_body(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Java's HttpClient sends it: uvicorn#2722."""
    offer = (
        HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
    )
    bodies = [
        b"Content-Length: 5\r\n\r\nabcde",
        b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n2\r\nde\r\n0\r\nX: y\r\n\r\n",
    ]
    with serve(kind, monkeypatch) as (app, port), connect(port) as sock:
        for body in bodies:
            sock.sendall(offer + body)
            assert read(sock).endswith(b"\r\n\r\n5")
            for byte in offer + body:
                sock.sendall(bytes([byte]))
            assert read(sock).endswith(b"\r\n\r\n5")
        sock.sendall(offer.replace(b"POST", b"GET") + b"\r\n" + HEAD + b"Content-Length: 2\r\n\r\nab")
        answers = read(sock)
        while answers.count(b" 200 ") < 2:
            answers += read(sock)
        assert answers.endswith(b"2")
        if kind == "httptools":
            app.full = True
            sock.sendall(offer + bodies[0])
            assert b" 503 " in read(sock)
            app.full = False
            sock.sendall(HEAD + b"Content-Length: 2\r\n\r\nab")
            assert read(sock).endswith(b"2")
        sock.sendall(offer + b"Transfer-Encoding: chunked\r\n\r\nno\r\n")
        assert b" 400 " in read(sock)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_client_that_has_gone_began_is_cancelled(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    with serve(kind, monkeypatch) as (app, port):

        async def wait(scope: Scope, receive: Receive, send: Send) -> None:
            note_task(scope["state"])
            app.asked += 1
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                assert is_lost(scope["state"])
                ended.set()

        monkeypatch.setattr(App, "__call__", lambda self, scope, receive, send: wait(scope, receive, send))
        with connect(port) as sock:
            sock.sendall(HEAD + b"Content-Length: 1\r\n\r\na")
            while not app.asked:
                time.sleep(0.01)
        assert ended.wait(10)


def test_clients_that_go_are_no_failures_of_the_server(start, caplog: pytest.LogCaptureFixture) -> None:  # type: ignore[no-untyped-def]
    client = start()
    app = client.app

    async def ask(how: str) -> None:
        state: dict[str, object] = {}
        headers = [(b"content-type", b"image/png"), (b"content-length", b"9")]
        path = "/v1/models/tiny:predict"
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
        asked = asyncio.Event()

        async def receive() -> dict[str, object]:
            asked.set()
            if how == "gone":
                return {"type": "http.disconnect"}
            await asyncio.sleep(30)
            raise AssertionError

        async def send(message: object) -> None:
            raise AssertionError(message)

        task = asyncio.create_task(app({**scope, "state": state}, receive, send))
        await asked.wait()
        if how == "lost":
            cycle: Any = SimpleNamespace(scope={"state": state}, response_complete=False)
            drop(cycle)
            assert is_lost(state)
        await task

    for how in ("gone", "lost"):
        client.portal.call(ask, how)
    assert "the request failed" not in caplog.text
    assert app.state.store.get("tiny").batcher.admitted == 0
    assert 'route="/v1/models/{name}:predict",status="499"} 2.0' in client.get("/metrics").text


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="the machine has no IPv6")
def test_all_addresses_of_ipv6_are_those_of_ipv4_too() -> None:
    with open_socket("::", 0) as sock:
        for host in ("127.0.0.1", "::1"):
            socket.create_connection((host, sock.getsockname()[1]), 10).close()


def test_proxies_close_idle_connections_before_the_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the server closes first, the request that a proxy sends at that moment is lost: 502."""

    class Configured(Exception):
        pass

    def configure(app: object, **settings: object) -> None:
        raise Configured(settings["timeout_keep_alive"])

    monkeypatch.setattr(server.uvicorn, "Config", configure)
    monkeypatch.setattr(server, "keep_memory", lambda: None)
    monkeypatch.setattr(server.sys, "setswitchinterval", lambda seconds: None)
    for limits, expected in ((Limits(), 75), (Limits(idle_seconds=0.5), 1)):
        with socket.socket() as sock, pytest.raises(Configured) as configured:
            server.run_server(ServerSettings(limits=limits), sock)
        assert configured.value.args == (expected,)


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


@pytest.mark.parametrize("fails", [False, True])
def test_a_process_that_takes_the_place_of_another_opens_its_models_first(fails: bool) -> None:
    """Else it answers with 503 what its neighbours would have answered."""
    done: list[str] = []

    class Store:
        async def start(self) -> None:
            await asyncio.sleep(0.2)
            done.append("opened")
            if fails:
                raise ValueError("broken")

        async def close(self) -> None:
            done.append("closed")

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"6")]})
        await send({"type": "http.response.body", "body": done[0].encode()})
        running.should_exit = True

    sock = open_socket("127.0.0.1", 0)
    config = uvicorn.Config(app, lifespan="off", ws="none", log_level="critical")
    running = Server(config, cast(ModelStore, Store()), opens_first=True)
    running.shutdown = functools.partial(uvicorn.Server.shutdown, running)  # type: ignore[method-assign]
    with connect(sock.getsockname()[1]) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        thread = threading.Thread(target=running.run, args=([sock],))
        thread.start()
        if not fails:
            assert read(client).endswith(b"opened")
        thread.join()
    sock.close()
    assert done == (["opened", "closed"] if fails else ["opened"])
    assert [str(error) for error in running.failures] == (["broken"] if fails else [])


def test_workers_that_fail_again_and_again_are_started_less_often() -> None:
    restart, now, starts = Restart(0.0), 0.0, list[float]()
    while now < 200:
        now += 0.5  # each ends at once
        if not restart.is_early(now):
            starts.append(now)
            restart.note_start(now)
    assert starts == [1.5, 4.0, 8.5, 17.0, 33.5, 64.0, 94.5, 125.0, 155.5, 186.0]
    assert not restart.is_early(now + 60)  # one that ran for long


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_of_http_1_0_gets_no_chunks(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: uvicorn#1360, starlette#128."""
    with serve(kind, monkeypatch) as (_, port):
        for query, kept in ((b"lines", b""), (b"lines", b"Connection: keep-alive\r\n"), (b"", b"")):
            with connect(port) as sock:
                sock.sendall(
                    b"POST /predict?%b HTTP/1.0\r\nHost: a\r\n%bContent-Length: 4\r\n\r\nabcd" % (query, kept)
                )
                answer = b"".join(iter(lambda: sock.recv(65536), b""))  # to the end of the connection
            head, _, body = answer.partition(b"\r\n\r\n")
            assert body == b"4" and b"transfer-encoding" not in head.lower()
        with connect(port) as sock:
            sock.sendall(HEAD.replace(b"a=b", b"lines") + b"Content-Length: 4\r\n\r\nabcd")
            assert b"transfer-encoding: chunked" in read(sock).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_of_http_1_1_has_one_host(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: RFC 9112, 3.2. A proxy may choose another Host, or another version, than the server."""
    lines = [b"GET /\r\n", b"GET / HTTP/1.1\r\n", HEAD + b"Host: b\r\n"]
    if kind == "httptools":  # h11 reads it as 1.1
        lines.append(b"GET / HTTP/2.0\r\nHost: a\r\n")
    with serve(kind, monkeypatch) as (app, port):
        for line in lines:
            with connect(port) as sock:
                sock.sendall(line + b"\r\n")
                assert read(sock)[9:12] == b"400"
        assert not app.asked
        with connect(port) as sock:
            sock.sendall(b"GET / HTTP/1.0\r\n\r\n")  # as checks of health by HAProxy
            assert read(sock)[9:12] == b"200"
