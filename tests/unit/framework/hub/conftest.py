"""A small file server on 127.0.0.1 that can misbehave, and an index of our own for the hub."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from framework.hub import store as hub
from framework.hub import transfer

REPO = Path(__file__).resolve().parents[4]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Server(http.server.ThreadingHTTPServer):
    """Serves `files`; `log` has (method, path, Range header or None) of every request.

    For one path each: `cuts` = list of byte counts, one request each, after which the connection is cut; `status` = an
    error to answer with; `redirects` = an address that it leads to; `lengthless` = no Content-Length; `rangeless` = the
    Range header is ignored; `tagless` = no ETag; `gates` = an event that a request waits for after half of the content.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.log: list[tuple[str, str, str | None]] = []
        self.cuts: dict[str, list[int]] = {}
        self.status: dict[str, int] = {}
        self.lengthless: set[str] = set()
        self.redirects: dict[str, str] = {}
        self.rangeless: set[str] = set()
        self.tagless: set[str] = set()
        self.gates: dict[str, threading.Event] = {}
        self.started = threading.Event()  # some request has sent its first half
        self.root = f"http://127.0.0.1:{self.server_address[1]}"

    def put(self, path: str, content: bytes) -> str:
        self.files[path] = content
        return self.root + path

    def source(self, path: str, content: bytes, **extra: object) -> dict:
        """Serves the content and returns its source, as an index has it."""
        return {"url": self.put(path, content), "sha256": sha256(content), **extra}

    def gets(self) -> list[str | None]:
        return [ranges for method, _, ranges in self.log if method == "GET"]

    def handle_error(self, request, client_address) -> None:  # clients that are killed are part of the tests
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        server, path = self.server, self.path
        server.log.append((self.command, path, self.headers.get("Range")))
        if path in server.status or path not in {**server.files, **server.redirects}:
            self.send_response(server.status.get(path, 404))
            self.send_header("X-Error-Code", "EntryNotFound")  # as Hugging Face says it
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if path in server.redirects:
            self.send_response(302)
            self.send_header("Location", server.redirects[path])
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content = server.files[path]
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and path not in server.rangeless:
            start = int(asked[1])
            if start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            self.send_response(200)
        if path not in server.lengthless:
            self.send_header("Content-Length", str(len(content) - start))
        if path not in server.tagless:
            self.send_header("ETag", f'"{sha256(content)}"')
        self.send_header("X-Repo-Commit", "c" * 40)
        self.end_headers()
        if self.command == "HEAD":
            return
        body = content[start:]
        if server.cuts.get(path):
            body = body[: server.cuts[path].pop(0)]
            self.close_connection = True
        half = len(body) // 2
        self.wfile.write(body[:half])
        if path in server.gates:
            self.wfile.flush()
            server.started.set()
            server.gates[path].wait(20)
        self.wfile.write(body[half:])

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        for gate in server.gates.values():
            gate.set()
        server.shutdown()
        thread.join(10)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, no offline variables, no proxy, and nothing shared with the user's Hugging Face cache."""
    for name in ("OAR_OFFLINE", "HF_HUB_OFFLINE", "HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf_home"))
    monkeypatch.setenv("HF_HUB_DISABLE_TELEMETRY", "1")
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


Catalogue = Callable[..., Path]


@pytest.fixture
def catalogue(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """`catalogue(source, …, dict=[…])` makes the hub know one entry, `net`, with these sources; returns its folder."""
    numbers = itertools.count()

    def make(*sources: dict, form: str = "deploy", domain: str = "ocr", **others: list[dict]) -> Path:
        files = {"weights": {"sources": list(sources)}} | {k: {"sources": v} for k, v in others.items()}
        family = {
            "family": "Nets",
            "domain": domain,
            "homepage": "https://example.org",
            "licence": "Apache-2.0",
            "entries": {"net": {"form": form, "files": files}},
        }
        folder = tmp_path / f"weights{next(numbers)}"
        folder.mkdir()
        (folder / "nets.yml").write_text(yaml.safe_dump(family, sort_keys=False), encoding="utf-8")
        monkeypatch.setattr(hub, "index_folders", lambda: (folder,))
        return folder

    return make


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose content was read to compute a hash."""
    read: list[Path] = []
    real = transfer.sha256_of

    def spy(path: Path) -> str:
        read.append(path)
        return real(path)

    monkeypatch.setattr(transfer, "sha256_of", spy)
    return read


@pytest.fixture
def no_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, making a socket or looking a name up fails the test."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture
def start_fetch(home: Path) -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """`start_fetch(folder)` fetches `net` of that index in another process, which prints `ready` and then the path."""
    processes: list[subprocess.Popen[str]] = []

    def start(folder: Path) -> subprocess.Popen[str]:
        code = (
            "import sys; from pathlib import Path; from framework.hub import store as hub; "
            "hub.index_folders = lambda: (Path(sys.argv[1]),); "
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code + "print('ready', flush=True); print(hub.fetch('net'))", str(folder)],
            env={**os.environ, "PYTHONPATH": str(REPO), "PYTHONUTF8": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        processes.append(process)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def hf(server: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The real huggingface-hub, speaking to our server."""
    huggingface_hub = pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    template = server.root + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "ENDPOINT", server.root)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield server
    close = getattr(huggingface_hub, "close_session", None)
    if close is not None:
        close()
