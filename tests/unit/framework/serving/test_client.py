"""Clients of a server: the results of a predictor, errors of their classes, further tries where a server is busy."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from detection.results import Box, DetectionResult
from framework.core.errors import ConfigError, FormatError, InputError, OarError
from framework.serving import AsyncClient, Client
from framework.serving.exchange import (
    Lines,
    Retries,
    ServerError,
    direct_mounts,
    make_result,
    read_retry_after,
)
from framework.workflow import open_predictor
from framework.workflow.verify import server as served_model
from nlp.json_results import result_from_dict
from nlp.results import Label, Similarity, Span, Tagged, TextLabels, Translated
from tests.unit.framework.serving.live_server import live
from tests.unit.framework.serving.protocol_server import classifier, file_of, grey
from zoo.classification.results import Classification


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return classifier("mean").save(tmp_path_factory.mktemp("client") / "mean")


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    with live(folder) as opened:
        yield opened


def test_results_are_those_of_a_predictor(address: str, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "ä grey.png"
    path.write_bytes(file_of(51))
    expected: Any = open_predictor(folder).predict(str(path))
    with Client(address) as client:
        assert client.is_ready()
        result = client.predict(str(path))
        assert isinstance(result, Classification)
        assert (result.source, result.width, result.height) == (str(path), 16, 12)
        assert [c.label for c in result.classes] == [c.label for c in expected.classes]
        np.testing.assert_allclose(
            [c.score for c in result.classes], [c.score for c in expected.classes], atol=1e-6
        )
        assert client.predict(path, top=1).label == "dark"  # type: ignore[attr-defined]
        assert client.predict_json(path)["classes"][0]["label"] == "dark"
        assert Image.open(io.BytesIO(client.predict_file(path, "png"))).size == (16, 12)


def test_every_kind_of_source(address: str) -> None:
    data = file_of(204)
    sources: list[Any] = [data, io.BytesIO(data), grey(204), Image.fromarray(grey(204))]
    with Client(address, "mean") as client:
        results: list[Any] = client.predict(sources)
    assert [result.label for result in results] == ["light"] * 4
    assert {result.source for result in results} == {""}


def test_lists_keep_their_order(address: str) -> None:
    values = list(range(0, 250, 10))
    with Client(address) as client:
        results: list[Any] = client.predict([file_of(value) for value in values])
    means = [next(c.score for c in result.classes if c.label == "light") for result in results]
    np.testing.assert_allclose(means, np.array(values) / 255, atol=1e-5)


def test_the_async_client_gives_the_same(address: str) -> None:
    async def ask() -> tuple[Any, Any, Any, list[Any]]:
        async with AsyncClient(address) as client:
            assert await client.is_ready()
            one, several = await client.predict(file_of(51)), await client.predict([file_of(0), file_of(255)])
            pages = [page async for page in client.predict_stream(file_of(0, 255, format="PDF"))]
            return one, several, await client.predict_json(file_of(51)), pages

    one, several, facts, pages = asyncio.run(ask())
    assert one.label == "dark" and [result.label for result in several] == ["dark", "light"]
    assert facts["classes"][0]["label"] == "dark"
    assert [page.label for page in pages] == ["dark", "light"]


def test_pages_come_one_by_one(address: str) -> None:
    with Client(address) as client:
        pages: list[Any] = list(client.predict_stream(file_of(0, 255, 0, format="PDF")))
        assert [page.label for page in pages] == ["dark", "light", "dark"]
        with pytest.raises(InputError, match="a result for each page"):
            client.predict(file_of(0, 255, format="PDF"))


def test_errors_are_of_the_classes_of_a_predictor(address: str, tmp_path: Path) -> None:
    with Client(address) as client:
        with pytest.raises(InputError, match="not of a known format"):
            client.predict(b"no image")
        with pytest.raises(ConfigError, match="unknown option"):
            client.predict(file_of(1), colour=3)
        with pytest.raises(ConfigError, match="cannot hold this option"):
            client.predict(file_of(1), top=object())
        with pytest.raises(InputError, match="cannot be read"):
            client.predict(tmp_path / "none.png")
        with pytest.raises(InputError, match="no source"):
            client.predict(3)  # type: ignore[call-overload]
    with Client(address, "other") as client, pytest.raises(ConfigError, match="no model of this name"):
        client.predict(file_of(1))


def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """hermes-agent#5834: it cannot reach the server."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    image = grey(9)
    with Client(address) as client:
        here = client.predict(image).to_dict()

    async def ask() -> object:
        async with AsyncClient(address.replace("127.0.0.1", "localhost")) as client:
            return (await client.predict(image)).to_dict()

    assert asyncio.run(ask()) == here
    assert direct_mounts("http://[::1]:80") == {"all://[::1]": None}
    assert direct_mounts("http://example.org") == direct_mounts("http://10.0.0.1:80") == {}
    with served_model._OPENER.open(f"{address}/readyz") as answer:  # of `oar verify-deploy`
        assert answer.status == 200


def test_keys(folder: Path) -> None:
    with live(folder, api_keys=("secret",)) as address:
        with Client(address, api_key="secret") as client:
            assert isinstance(client.predict(file_of(51)), Classification)
        with Client(address) as client, pytest.raises(OarError, match="a key is needed"):
            client.predict(file_of(51))


# -- a server that fails in its own way ------------------------------------------------------------------------------

Reply = Callable[[BaseHTTPRequestHandler, int], None]


@pytest.fixture
def faulty() -> Iterator[Callable[[Reply], str]]:
    """The address of a server with the model "mean" that answers predictions by a function of their number."""
    servers = []

    def start(reply: Reply) -> str:
        calls = iter(range(1000))

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                model = {"name": "mean", "ready": True, "domain": "classification", "takes": "image"}
                send(self, 200, json.dumps({"models": [], "data": [model]}).encode())

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                reply(self, next(calls))

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {
        "Content-Length": str(len(body)),
        "Content-Type": "application/json",
        **headers,
    }.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


def page(label: str) -> bytes:
    classes = [{"label": label, "category_id": 0, "score": 1.0}]
    return json.dumps(
        {"source": "a", "width": 1, "height": 1, "classes": classes}, ensure_ascii=False
    ).encode()


def ask(address: str, **settings: Any) -> Any:
    with Client(address, **settings) as client:
        return client.predict(b"x")


def test_a_busy_server_is_asked_again(
    faulty: Callable[[Reply], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(handler: BaseHTTPRequestHandler, call: int) -> None:
        if call < 2:
            send(handler, 503, b"{}", Retry_After="3")
        else:
            send(handler, 200, page("light"))

    delays: list[float] = []
    clock = SimpleNamespace(sleep=delays.append, monotonic=time.monotonic)
    monkeypatch.setattr("framework.serving.client.time", clock)
    assert ask(faulty(reply)).label == "light"
    assert len(delays) == 2 and all(3 <= delay <= 3.75 for delay in delays)


def test_a_connection_that_breaks_is_made_again(faulty: Callable[[Reply], str]) -> None:
    def reply(handler: BaseHTTPRequestHandler, call: int) -> None:
        if call == 0:
            handler.connection.close()
        else:
            send(handler, 200, page("dark"))

    assert ask(faulty(reply)).label == "dark"


def test_pages_go_on_where_the_connection_broke(faulty: Callable[[Reply], str]) -> None:
    lines = [page(f"page\u2028{n}") + b"\n" for n in range(5)]

    def reply(handler: BaseHTTPRequestHandler, call: int) -> None:
        whole = b"".join(lines)
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-ndjson")
        handler.send_header("Content-Length", str(len(whole)))
        handler.end_headers()
        handler.wfile.write(b"".join(lines[:2]) + lines[2][:9] if call == 0 else whole)
        handler.wfile.flush()
        handler.close_connection = True

    with Client(faulty(reply)) as client:
        results: list[Any] = list(client.predict_stream(b"x"))
    assert [result.label for result in results] == [f"page\u2028{n}" for n in range(5)]


def test_a_page_that_cannot_be_read_is_its_error(faulty: Callable[[Reply], str]) -> None:
    error = {"page": 2, "error": {"status": 422, "type": "InputError", "problem": "the page is damaged"}}
    body = b"\n".join([page("a"), json.dumps(error).encode(), page("c")])

    def reply(handler: BaseHTTPRequestHandler, call: int) -> None:
        send(handler, 200, body, Content_Type="application/x-ndjson")

    with Client(faulty(reply)) as client:
        first, second, third = client.predict_stream(b"x")
    assert isinstance(first, Classification) and isinstance(third, Classification)
    assert isinstance(second, InputError) and second.problem == "the page is damaged"


@pytest.mark.parametrize("status", [503, 500, 504])
def test_tries_end(faulty: Callable[[Reply], str], status: int) -> None:
    calls = []

    def reply(handler: BaseHTTPRequestHandler, call: int) -> None:
        calls.append(call)
        send(handler, status, b"no JSON", Retry_After="0")

    with pytest.raises(ServerError, match=f"status {status}") as raised:
        ask(faulty(reply), retries=2)
    assert raised.value.status == status and len(calls) == (3 if status == 503 else 1)


def test_a_wait_beyond_the_deadline_is_not_begun(faulty: Callable[[Reply], str]) -> None:
    calls = []

    def reply(handler: BaseHTTPRequestHandler, call: int) -> None:
        calls.append(call)
        send(handler, 503, b"", Retry_After="60")

    with pytest.raises(ServerError, match="status 503"):
        ask(faulty(reply), timeout=30)
    assert calls == [0]


def test_no_server() -> None:
    with Client("http://127.0.0.1:9", retries=1) as client:
        assert not client.is_ready()
        with pytest.raises(ServerError, match="cannot be reached"):
            client.models()


def test_delays_double_and_are_random(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    retries = Retries.begin(1000, 9)
    assert [retries.delay() for _ in range(10)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10.0, 10.0, None]
    assert Retries.begin(10, 1).delay(httpx.Response(404)) is None
    assert Retries.begin(10, 1).delay(httpx.Response(503, headers={"Retry-After": "2"})) == 2.5


def test_retry_after_is_a_number_or_a_date() -> None:
    assert read_retry_after("3") == 3 and read_retry_after("-1") == 0
    assert read_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert read_retry_after("soon") is None and read_retry_after(None) is None


def test_lines_may_be_cut_anywhere() -> None:
    data = '{"a": "\u2028\x85 ä"}\n\n{"a": 2}'.encode()
    for step in (1, 2, 5, 100):
        lines = Lines()
        entries = [one for at in range(0, len(data), step) for one in lines.add(data[at : at + step])]
        assert [*entries, *lines.end()] == [{"a": "\u2028\x85 ä"}, {"a": 2}]
    with pytest.raises(ServerError, match="no result"):
        Lines().add(b"[]\n")
    with pytest.raises(ServerError, match="no result"):
        Lines().add(b"[" * 100_000 + b"\n")


@pytest.mark.parametrize(
    "body", [b"<html>Sign in</html>", b'{"data": 3}', b'{"data": [{}]}', b"[" * 100_000, b"3"]
)
def test_an_answer_of_another_server_is_named(body: bytes) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{server.server_address[1]}"
            with Client(url) as client, pytest.raises(ServerError, match=r"/v1/models: (.*)no result"):
                client.predict(file_of(3))
        finally:
            server.shutdown()


# -- results of JSON -------------------------------------------------------------------------------------------------


def test_results_are_made_of_their_json() -> None:
    box = Box("cell", 1, 0.5, (0.0, 1.0, 2.0, 3.0), 7, ((1.0, 2.0, 0.5),))
    detected = DetectionResult(source="a.png", width=4, height=5, boxes=(box,))
    assert make_result("detection", detected.to_dict(), "b.png") == DetectionResult(
        source="b.png", width=4, height=5, boxes=(box,)
    )
    texts: list[Any] = [
        TextLabels("t", (Label("a", 0, 0.5),), "p"),
        Similarity("t", "p", 0.25),
        Tagged("t", (Span("t", "W", 0, 1, 0.5),)),
        Translated("t", "u", -0.5),
    ]
    for text in texts:
        assert make_result("nlp", text.to_dict(), "") == text
    with pytest.raises(FormatError, match="no such result"):
        result_from_dict({"text": "t"})
    with pytest.raises(FormatError, match="no key 'boxes'"):
        DetectionResult.from_dict({"source": "", "width": 1, "height": 1})
    with pytest.raises(FormatError, match="label_map"):
        make_result("segmentation", {"source": ""}, "")


def test_importing_a_client_loads_no_model() -> None:
    code = "import sys; from framework.serving import Client; print({'jax', 'cv2', 'fastapi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
