"""Requests that are too large, too many, too late, without a key or hostile: an error each, and the server goes on."""

from __future__ import annotations

import ipaddress
import json
import logging
import socket
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from framework.core.errors import ConfigError, OarError
from framework.serving import fetch as fetch_module
from framework.serving.errors import BadRequestError, ForbiddenError, TooLargeError
from framework.serving.fetch import check_address, fetch
from framework.serving.logs import server_logs
from framework.serving.server import serve
from framework.serving.settings import Limits, ModelSettings, ServerSettings, load_settings
from tests.unit.framework.serving.conftest import Start
from tests.unit.framework.serving.test_predict import pdf
from tests.unit.framework.serving.tiny import png, score_of

URL = "/v1/models/tiny:predict"


def bomb(side: int = 30_000) -> bytes:
    """A PNG of a few hundred bytes whose header says so many pixels a side."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 1000)), (b"IEND", b"")]
    body = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(body)


def test_pixels_and_pages_are_counted_before_they_are_decoded(start: Start) -> None:
    client = start(limits=Limits(pixels=10_000, pages=3))
    assert client.post(URL, content=png(1, 100, 100)).status_code == 200
    for data in (png(1, 101, 100), bomb(), pdf(4)):
        answer = client.post(URL, content=data)
        assert answer.status_code in (413, 422) and "at most" in answer.text, answer.text
    answer = client.post(URL, content=pdf(3, 300, 200))
    assert answer.text.count("too many pixels") == 3  # each page says so, and none is drawn


def test_long_strips_are_refused(start: Start) -> None:
    """A row of a million pixels is a few kilobytes, and was thousands of looks of a text detector."""
    client = start(limits=Limits(side=500))
    assert client.post(URL, content=png(1, 500, 1)).status_code == 200
    for size in ((501, 1), (1, 501)):
        answer = client.post(URL, content=png(1, *size))
        assert answer.status_code == 413 and "at most 500 a side" in answer.text
    answer = client.post(URL, content=pdf(2, 600, 10))
    assert answer.text.count("too long") == 2


def test_bodies_have_a_limit_whatever_they_say(start: Start) -> None:
    client = start(limits=Limits(body_mb=0.01))
    assert client.post(URL, content=b"x" * 20_000).status_code == 413

    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    assert client.post(URL, content=chunks()).status_code == 413
    assert client.post(URL, content=png(3)).status_code == 200


def test_bodies_of_all_requests_have_one_too(start: Start) -> None:
    client = start(limits=Limits(body_mb=1, bodies_mb=1))
    sizes = [900_000] * 3
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda n: client.post(URL, content=b"x" * n).status_code, sizes))
    assert set(answers) <= {422, 503}


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # starlette leaves half a file to gc
def test_malformed_bodies(start: Start) -> None:
    client = start()
    form = "multipart/form-data; boundary=b"
    for kind, body in (
        ("application/json", b"{"),
        ("application/json", b"[1]"),
        ("application/json", b"[" * 100_000),
        ("application/json", b'{"a":' * 5000 + b"1" + b"}" * 5000),
        ("application/json", b'"\xff"'),
        ("multipart/form-data", b"--b\r\n"),
        (form, b"nothing"),
        (form, b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhalf'),
        (form, b"--b\r\n" + b"x" * 100_000),
        (
            form,
            b"".join(
                b'--b\r\nContent-Disposition: form-data; name="f%d"\r\n\r\n1\r\n' % n for n in range(2000)
            ),
        ),
        ("text/plain", b"\xff\xfe"),
        ("application/xml", b"<a/>"),
    ):
        answer = client.post(URL, content=body, headers={"content-type": kind})
        assert 400 <= answer.status_code < 500, (kind, body[:40], answer.status_code, answer.text[:200])
        assert answer.json()["error"]["request_id"]
    answer = client.post(URL, content=b"\x1f\x8b", headers={"content-encoding": "zstd"})
    assert answer.status_code == 415
    assert client.post(URL, content=png(7)).status_code == 200


def test_damaged_files(start: Start) -> None:
    client = start()
    for data in (b"%PDF-1.7 nothing", png(1)[:40], b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\0" * 1000):
        assert client.post(URL, content=data).status_code == 422
    assert client.post(URL, content=png(7)).status_code == 200


def test_keys(start: Start, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("one\n\n two \n", encoding="utf-8")
    monkeypatch.setenv("OAR_API_KEYS", "three,")
    client = start(api_keys=("four",), api_key_file=tmp_path / "keys")
    for key in ("one", "two", "three", "four"):
        assert client.get("/v1/models", headers={"authorization": f"Bearer {key}"}).status_code == 200
        assert client.get("/v1/models", headers={"x-api-key": key}).status_code == 200
    for other in ("Bearer of-the-proxy", "Bearer ", "Basic five"):  # what a proxy needs is no key of ours
        headers = {"authorization": other, "x-api-key": "one"}
        assert client.get("/v1/models", headers=headers).status_code == 200
    both = {"authorization": "Bearer five", "x-api-key": "five"}
    for headers in (both, {}, {"x-api-key": "five"}, {"x-api-key": ""}, {"authorization": "Basic one"}):
        answer = client.post(URL, content=png(1), headers=headers)
        assert answer.status_code == 401 and answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/healthz").status_code == client.get("/readyz").status_code == 200
    assert client.get("/metrics").status_code == 401
    assert "four" not in repr(client.app.state.store.settings)


@pytest.mark.parametrize(
    "head", ["ENCRYPTED PRIVATE KEY-----", "RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED"]
)
def test_a_key_with_a_password_is_refused_and_nothing_asks_for_it(head: str, tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text(f"-----BEGIN {head}\n", encoding="ascii")
    with pytest.raises(ConfigError, match=r"key.pem: the key needs a password"):
        serve(ServerSettings(tls_cert=tmp_path / "cert.pem", tls_key=tmp_path / "key.pem"))


def test_loggers_are_given_back(capsys: pytest.CaptureFixture[str]) -> None:
    """A server may run in a process that goes on, whose own lines went to the server's stream as JSON."""

    def observe() -> list[object]:
        loggers = (logging.getLogger(name) for name in ("oar", "uvicorn", "uvicorn.error", "uvicorn.access"))
        states = [(one.name, one.handlers[:], one.level, one.propagate) for one in loggers]
        return [*states, logging.logThreads, logging.logProcesses, logging.logMultiprocessing]

    before = observe()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="the server cannot listen here"):
            serve(ServerSettings(host="127.0.0.1", port=port))
    assert observe() == before
    with server_logs("json"):
        assert observe() != before
        logging.getLogger("oar").info("one line")
    assert observe() == before
    assert json.loads(capsys.readouterr().err)["message"] == "one line"


def test_request_ids_and_logs(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    client = start()
    with caplog.at_level("INFO", "oar.serving"):
        assert client.get("/v1/models", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
        for wrong in ("a b\t", "x" * 200):
            chosen = client.get("/nothing", headers={"x-request-id": wrong})
            assert len(chosen.headers["x-request-id"]) == 32
            assert chosen.json()["error"]["request_id"] == chosen.headers["x-request-id"]
    facts = [record.facts for record in caplog.records if hasattr(record, "facts")]
    assert {"abc-1"} < {one["request_id"] for one in facts}
    assert facts[0]["status"] == 200 and facts[0]["path"] == "/v1/models"


def slow_model(client, seconds: float) -> threading.Event:
    """Lets each batch of the tiny model take so long; the event lets it go on at once."""
    version, free = client.app.state.store.get("tiny").version, threading.Event()
    run = version._run

    def slow(predictor, items):  # type: ignore[no-untyped-def]
        free.wait(seconds)
        return run(predictor, items)

    version._run = slow
    return free


def test_overload_is_refused_and_the_rest_is_answered(start: Start) -> None:
    client = start(limits=Limits(queue=8))
    free = slow_model(client, 1.0)
    with ThreadPoolExecutor(40) as pool:
        futures = [pool.submit(client.post, URL, content=png(n)) for n in range(40)]
        time.sleep(0.3)
        free.set()
        answers = [future.result() for future in futures]
    refused = [one for one in answers if one.status_code == 503]
    assert refused and all(int(one.headers["retry-after"]) >= 1 for one in refused)
    for number, answer in enumerate(answers):
        if answer.status_code == 200:
            assert round(255 * score_of(answer.content)) == number
    assert {one.status_code for one in answers} == {200, 503}
    assert client.app.state.store.get("tiny").batcher.admitted == 0
    assert client.post(URL, content=png(5)).status_code == 200


def test_what_waits_too_long_under_overload_is_not_decoded(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = start()
    load = client.app.state.store.get("tiny").batcher.load
    decoded: list[bytes] = []
    predictor = client.app.state.store.get("tiny").predictor
    read_all = predictor.read_all
    monkeypatch.setattr(predictor, "read_all", lambda data: (decoded.append(data), read_all(data))[1])
    load.seconds_alone, load.seconds_per_item = 1e-12, 1e-12
    # Nothing else refuses: there is no other request under way, so that the overload is not asked for.
    load.is_overloaded = True
    answer = client.post(URL, content=png(5))
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
    assert not decoded
    several = client.post(URL, files=[("file", png(5)), ("file", png(6))])  # one of several is not left out
    assert several.status_code == 200 and len(decoded) == 2
    load.is_overloaded = False
    assert client.post(URL, content=png(5)).status_code == 200 and len(decoded) == 3


def test_late_requests(start: Start) -> None:
    client = start(limits=Limits(deadline=0.2))
    free = slow_model(client, 1.0)
    started = time.monotonic()
    assert client.post(URL, content=png(5)).status_code == 504
    assert client.post(f"{URL}?timeout=0.05", content=png(5)).status_code == 504
    assert time.monotonic() - started < 30
    free.set()
    while client.app.state.store.get("tiny").batcher.waiting:
        time.sleep(0.01)
    time.sleep(0.05)
    assert client.post(URL, content=png(5)).status_code == 200
    assert client.app.state.store.pixels.left == client.app.state.store.pixels.total  # nothing leaks


# -- addresses ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.9.9", "169.254.169.254", "0.0.0.0", "100.64.0.1"),
        *("::1", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1"),
        *("2002:7f00:1::", "224.0.0.1", "ff02::1", "255.255.255.255", "::"),
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    with pytest.raises(ForbiddenError):
        check_address(address)


def test_public_addresses() -> None:
    for address in ("8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"):
        check_address(address)
        assert ipaddress.ip_address(address)


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """A web server on this machine: /image, /loop, /inside (a redirect to itself), /file, /slow and /large."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            targets = {"/loop": "/loop", "/inside": f"{address}/image", "/file": "file:///etc/passwd"}
            if self.path in targets:
                self.send_response(302)
                self.send_header("Location", targets[self.path])
                self.end_headers()
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(png(77) if self.path == "/image" else b"x" * 3_000_000)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    address = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield address
    server.shutdown()
    server.server_close()


def test_addresses_are_fetched_where_that_is_allowed(start: Start, web: str) -> None:
    client = start(allow_url=True)
    for url in (
        f"{web}/image",
        web.replace("127.0.0.1", "localhost") + "/image",
        "http://[::1]/",
    ):
        assert client.post(URL, json={"url": url}).status_code == 403, url
    for url in (
        "file:///etc/passwd",
        "ftp://8.8.8.8/",
        "http://",
        "http://user@8.8.8.8/",
        "gopher://x",
        "http://[::1",
    ):
        assert client.post(URL, json={"url": url}).status_code == 400, url
    client = start(allow_url=True, allow_private_url=True)
    answer = client.post(URL, json={"url": f"{web}/inside"})
    assert round(255 * score_of(answer.content)) == 77 and answer.json()["source"] == "inside"
    for path in ("/loop", "/file"):
        assert client.post(URL, json={"url": web + path}).status_code == 400


def test_redirects_and_names_that_change_lead_nowhere(web: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of an attacker stands for a public address when it is looked at, and for this machine a moment later."""
    port, looked = int(web.rpartition(":")[2]), []

    def lookup(host: str, *args: object, **kwargs: object) -> list[object]:
        looked.append(host)
        public = len(looked) == 1
        address = "93.184.216.34" if public else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    connected = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        connected.append(address)
        opened = socket.socket()
        opened.settimeout(timeout)
        opened.connect(("127.0.0.1", port))
        return opened

    monkeypatch.setattr(fetch_module.socket, "getaddrinfo", lookup)
    monkeypatch.setattr(fetch_module.socket, "create_connection", connect)
    assert fetch(f"http://evil.example:{port}/image", 10_000) == png(77)
    assert connected == [("93.184.216.34", port)] and looked == [
        "evil.example"
    ]  # looked up once, and connected there
    with pytest.raises(ForbiddenError):
        fetch(f"http://evil.example:{port}/image", 10_000)
    looked.clear()
    with pytest.raises((ForbiddenError, BadRequestError)):
        fetch(f"http://evil.example:{port}/inside", 10_000)  # a redirect to 127.0.0.1
    assert len(connected) == 2


def test_what_an_address_gives_has_a_limit(web: str) -> None:
    with pytest.raises(TooLargeError):
        fetch(f"{web}/large", 1_000_000, allow_private=True)
    with pytest.raises(BadRequestError):
        fetch("http://127.0.0.1:9/", 10, allow_private=True)


# -- settings ----------------------------------------------------------------------------------------------------------


def test_settings_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "models.yml"
    file.write_text(
        "port: 9000\nmodels:\n  - {source: inference_model/shirts/, options: {top: 2}}\n"
        "  - {source: a.yml, name: b, engine: xla, batch: {size: 1}}\nlimits: {queue: 5}\n",
        encoding="utf-8",
    )
    settings = load_settings(file, ["limits.deadline=3"])
    assert [model.name for model in settings.models] == ["shirts", "b"] and settings.host == "127.0.0.1"
    assert (
        settings.limits.queue == 5
        and settings.limits.deadline == 3
        and settings.models[0].options == {"top": 2}
    )
    file.write_text("limits: {quue: 5}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="did you mean 'queue'"):
        load_settings(file)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: ModelSettings("a", "../b"), "cannot stand in an address"),
        (lambda: ModelSettings("a", engine="tensorrt"), "unknown engine"),
        (lambda: ServerSettings((ModelSettings("x/a"), ModelSettings("y/a"))), "two models have one name"),
        (lambda: ServerSettings(port=70000), "no such port"),
        (lambda: ServerSettings(tls_cert=Path("a")), "certificate and its key"),
        (lambda: Limits(queue=0), "limits.queue"),
        (lambda: Limits(deadline=float("nan")), "limits.deadline"),
    ],
)
def test_settings_that_cannot_be(make, problem: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(OarError, match=problem):
        make()
