"""A server as users start it, in a process of its own: load, reload, the end, hostile connections, memory."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from framework.serving.settings import Limits, load_settings
from framework.vision import image
from tests.unit.framework.serving.test_predict import pdf
from tests.unit.framework.serving.tiny import make_artifact, png, score_of

REPO = Path(__file__).resolve().parents[2]


@dataclass
class Process:
    """A server that runs."""

    process: subprocess.Popen[str]
    url: str
    lines: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    @property
    def predict(self) -> str:
        return f"{self.url}/v1/models/tiny:predict"

    def stop(self) -> int:
        """The exit status after SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


def is_ready(server: Process) -> bool:
    """Whether its models are; not either, where no worker takes connections yet."""
    try:
        return httpx.get(f"{server.url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


@contextlib.contextmanager
def run_server(folder: Path, *flags: str, wait: bool = True) -> Iterator[Process]:
    """`oar serve tiny=FOLDER --port 0 FLAGS`, once it is ready."""
    command = [sys.executable, "-m", "framework", "serve", f"tiny={folder}", "--port", "0", *flags]
    process = subprocess.Popen(command, cwd=REPO, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    reader: threading.Thread | None = None
    try:
        lines: list[str] = []
        for line in process.stderr:
            lines.append(line)
            if '"url"' in line:
                break
        else:
            pytest.fail("".join(lines))
        server = Process(process, json.loads(lines[-1])["url"], lines)
        reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()), daemon=True)
        reader.start()
        ends = time.monotonic() + 120
        while wait and not is_ready(server):
            assert process.poll() is None and time.monotonic() < ends, "".join(lines)
            time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait()
        if reader is not None:
            reader.join(30)
        process.stderr.close()


@dataclass
class Load:
    """Clients that ask until they are told to stop, each with a connection that it keeps; what they saw."""

    good: int = 0
    wrong: list[str] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    gone: int = 0


@contextlib.contextmanager
def load(url: str, clients: int, sizes: Callable[[], tuple[int, int]] = lambda: (16, 12)) -> Iterator[Load]:
    seen, stopped, lock = Load(), threading.Event(), threading.Lock()

    def ask() -> None:
        with httpx.Client(timeout=60) as client:
            while not stopped.is_set():
                value, name = random.randrange(256), uuid.uuid4().hex
                try:
                    answer = client.post(url, content=png(value, *sizes()), headers={"X-Request-Id": name})
                except httpx.ConnectError:  # nobody listens: nothing was sent
                    seen.gone += 1
                    return
                except httpx.HTTPError as error:
                    with lock:
                        seen.wrong.append(f"{name} {error!r}")
                    return
                with lock:
                    seen.statuses.add(answer.status_code)
                    if answer.status_code == 200:
                        facts = answer.json()
                        seen.labels |= {one["label"] for one in facts["classes"]}
                        if abs(facts["classes"][0]["score"] - max(value, 255 - value) / 255) > 1e-4:
                            seen.wrong.append(f"{value}: {facts}")
                        seen.good += 1
                    elif answer.status_code != 503:
                        seen.wrong.append(answer.text)

    threads = [threading.Thread(target=ask) for _ in range(clients)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_artifact(tmp_path_factory.mktemp("e2e") / "tiny")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Process]:
    """With small limits."""
    limits = ("limits.read_seconds=1", "limits.body_mb=4", "limits.pages=20")
    with run_server(folder, "-o", *limits) as running:
        yield running


def test_sixteen_clients_of_mixed_sizes(server: Process) -> None:
    def size() -> tuple[int, int]:
        return random.randrange(1, 200), random.randrange(1, 200)

    with load(server.predict, 16, size) as seen:
        time.sleep(2)
    assert not seen.wrong and seen.good > 50
    metrics = httpx.get(f"{server.url}/metrics").text
    batches = [line for line in metrics.splitlines() if line.startswith('oar_batch_items_bucket{le="1.0"')]
    count = [line for line in metrics.splitlines() if line.startswith("oar_batch_items_count")]
    assert float(batches[0].split()[-1]) < float(count[0].split()[-1])  # some ran together


def raw(server: Process, data: bytes, seconds: float = 15) -> bytes:
    """What comes back for bytes on a socket, until it is closed."""
    with socket.create_connection(("127.0.0.1", server.port), seconds) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while block := client.recv(1 << 16):
                answer += block
        return answer


HEAD = b"POST /v1/models/tiny:predict HTTP/1.1\r\nHost: a\r\nContent-Type: image/png\r\n"


def test_hostile_connections(server: Process) -> None:
    length = b"Content-Length: %d\r\n\r\n"
    assert raw(server, HEAD + length % (1 << 30) + b"x" * 1000)[9:12] == b"413"  # it says one gigabyte
    assert raw(server, HEAD + b"A: " + b"x" * (1 << 20) + b"\r\n\r\n")[9:12] in (b"400", b"431", b"")
    assert raw(server, b"GET / HTTP/9\r\n\r\n")[9:12] == b"400"
    assert raw(server, HEAD + b"Content-Length: -5\r\n\r\n")[9:12] == b"400"
    assert raw(server, HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")[9:12] in (
        b"400",
        b"",
    )
    assert raw(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n")[9:12] == b"400"
    assert raw(server, b"POST /v1/models/../../etc/passwd:predict HTTP/1.0\r\n\r\n")[9:12] == b"404"
    assert raw(server, HEAD + length % 100 + b"x")[9:12] == b"408"  # the rest never comes
    assert raw(server, b"POST /v1/mod") == b""  # nor the rest of a header
    assert httpx.post(server.predict, content=pdf(21)).status_code == 413

    def endless() -> Iterator[bytes]:
        for _ in range(1 << 14):
            yield b"x" * (1 << 16)

    with contextlib.suppress(httpx.WriteError, httpx.ReadError):
        assert httpx.post(server.predict, content=endless()).status_code == 413
    assert psutil.Process(server.process.pid).memory_info().rss < 2 << 30
    assert round(255 * score_of(httpx.post(server.predict, content=png(9)).content)) == 9


def test_slow_clients_do_not_hold_up_others(server: Process) -> None:
    """Slow loris: connections that send a byte of a header every now and then."""
    sockets = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    ends, closed = time.monotonic() + 10, 0
    while sockets and time.monotonic() < ends:
        for one in list(sockets):
            try:
                one.send(b"P")
            except OSError:
                one.close()
                sockets.remove(one)
                closed += 1
        assert httpx.post(server.predict, content=png(9)).status_code == 200
        time.sleep(0.2)
    assert closed == 100


def test_pages_come_one_by_one(server: Process) -> None:
    with httpx.stream("POST", server.predict, content=pdf(10)) as answer:
        assert answer.headers["transfer-encoding"] == "chunked"
        assert len([json.loads(line)["width"] for line in answer.iter_lines()]) == 10
    with httpx.stream("POST", server.predict, content=pdf(20)) as answer:
        next(answer.iter_lines())  # and then the client goes away
    ends = time.monotonic() + 30
    while 'under_way{model="tiny"} 0.0' not in httpx.get(f"{server.url}/metrics").text:
        assert time.monotonic() < ends
        time.sleep(0.1)


def test_the_end_under_load_loses_no_request(folder: Path) -> None:
    with run_server(folder) as running, load(running.predict, 12) as seen:
        time.sleep(1.5)
        status = running.stop()
        time.sleep(0.1)
    assert status == 0, "".join(running.lines)
    # A connection that the system had made and the server not taken yet breaks: such a request has no line.
    told = "".join(running.lines)
    wrong = [one for one in seen.wrong if "Error(" not in one or one.split()[0] in told]
    assert not wrong and len(seen.wrong) < 3 and seen.good > 20 and seen.gone


def test_reload_under_load_loses_no_request(folder: Path, tmp_path: Path) -> None:
    here = tmp_path / "tiny"
    shutil.copytree(folder, here)
    with run_server(here, "-o", "reload_seconds=0.2") as running, load(running.predict, 8) as seen:

        def wait(condition: Callable[[], bool]) -> None:
            ends = time.monotonic() + 60
            while not condition():
                assert time.monotonic() < ends, "".join(running.lines)
                time.sleep(0.1)

        wait(lambda: seen.labels == {"bright", "dark"})
        make_artifact(here, ("light", "night"))
        wait(lambda: "light" in seen.labels)
        (here / "model.jaxexp").write_bytes(b"broken")  # which is not taken
        wait(lambda: "cannot be opened" in "".join(running.lines))
        seen.labels.clear()
        wait(lambda: len(seen.labels) == 2)
        assert seen.labels == {"light", "night"}
    assert not seen.wrong


def test_several_workers(folder: Path) -> None:
    with run_server(folder, "--workers", "2") as running:
        children = psutil.Process(running.process.pid).children(recursive=True)
        with load(running.predict, 6) as seen:
            time.sleep(1)
        assert not seen.wrong and seen.good > 20
        assert "oar_requests_total" in httpx.get(f"{running.url}/metrics").text
        assert running.stop() == 0
    assert not psutil.wait_procs(children, timeout=30)[1]


def test_a_model_that_cannot_be_opened_ends_the_server(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    with run_server(tmp_path / "net", wait=False) as running:
        assert running.process.wait(60) == 2
        time.sleep(0.1)
    said = "".join(running.lines)
    assert "neither an artifact" in said and "Traceback" not in said and said.count('"level": "error"') == 1


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_curl_lines_of_the_document(server: Process, tmp_path: Path) -> None:
    (tmp_path / "shirt.png").write_bytes(png(80))
    (tmp_path / "scan.pdf").write_bytes(pdf(2))
    text = (REPO / "docs" / "serving.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("curl")]
    assert len(lines) >= 8
    for line in lines:
        command = line.replace("http://127.0.0.1:8000", server.url).replace("/shirts", "/tiny")
        done = subprocess.run(
            shlex.split(command), cwd=tmp_path, capture_output=True, timeout=60, check=False
        )
        assert done.returncode == 0, (line, done.stderr, done.stdout)
    assert (tmp_path / "drawn.png").read_bytes().startswith(b"\x89PNG")


def document_block(heading: str, language: str) -> str:
    """The first block of docs/serving.md behind a heading."""
    text = (REPO / "docs" / "serving.md").read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2]
    return text.partition(f"```{language}\n")[2].partition("```\n")[0]


def test_the_settings_of_the_document_are_settings(tmp_path: Path) -> None:
    (tmp_path / "models.yml").write_text(document_block("Settings", "yaml"), encoding="utf-8")
    written = load_settings(tmp_path / "models.yml")
    assert [(one.source, one.name) for one in written.models][1] == ("inference_model/photos", "shirts")
    assert written.limits == Limits() and written.models[1].batch.size == 8


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_way_from_photos_to_a_served_model(tmp_path: Path) -> None:
    """The commands of the document, pasted into a shell as they are, but for the port and what pip installs."""
    rng = np.random.default_rng(0)
    for name, level in (("shirts", 40), ("shoes", 200)):
        for number in range(12):
            pixels = rng.integers(level - 40, level + 40, (140, 150, 3)).astype(np.uint8)
            image.write(tmp_path / "photos" / name / f"{number}.png", pixels)
    shutil.copy(tmp_path / "photos" / "shoes" / "3.png", tmp_path / "shirt.png")
    command = tmp_path / "bin" / "oar"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m framework "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    lines = document_block("From your own data to a served model", "console").splitlines()
    script = "\n".join(line for line in lines if not line.startswith("pip install"))
    done = subprocess.run(
        ["bash", "-e", "-c", script.replace("8000", port) + "\nwait"],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    _, found, answer = done.stdout.rpartition('{"source"')  # behind that of /readyz, which ends no line
    assert json.loads((found + answer).splitlines()[0])["classes"][0]["label"] == "shoes"


@pytest.mark.parametrize("requests", [2000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_memory_stays_flat(folder: Path, requests: int) -> None:
    def size() -> tuple[int, int]:
        return random.randrange(8, 900), random.randrange(8, 900)

    with run_server(folder) as running:
        process, counts = psutil.Process(running.process.pid), []
        with load(running.predict, 8, size) as seen:
            while seen.good < requests:
                if seen.good >= len(counts) * requests / 8:
                    counts.append(process.memory_info().rss)
                time.sleep(0.01)
                assert not seen.wrong
        assert process.memory_info().rss < 1.1 * max(counts[2:4])
