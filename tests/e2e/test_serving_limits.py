"""A server in a process of its own: TLS and keys, documents of thousands of pages, very many requests."""

from __future__ import annotations

import asyncio
import io
import shutil
import ssl
import subprocess
import time
from pathlib import Path

import httpx
import psutil
import pytest
from PIL import Image

from framework.serving import Client
from framework.serving.exchange import ServerError
from tests.e2e.test_serving import run_server
from tests.unit.framework.serving.tiny import make_artifact, png, score_of
from tools.bench.load import read_files, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_artifact(tmp_path_factory.mktemp("limits") / "tiny")


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=oar"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True)
    return cert, key


def test_a_server_with_tls_and_keys(folder: Path, tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path)
    keys = tmp_path / "keys.txt"
    keys.write_text("first\nsecond\n", encoding="utf-8")
    flags = ("--api_key_file", str(keys), "-o", f"tls_cert={cert}", f"tls_key={key}")
    context = ssl.create_default_context(cafile=str(cert))
    with run_server(folder, *flags, wait=False) as server:
        assert server.url.startswith("https://127.0.0.1:")
        ends = time.monotonic() + 120
        while True:
            try:
                if httpx.get(f"{server.url}/readyz", verify=context).is_success:
                    break
            except httpx.TransportError:
                pass
            assert server.process.poll() is None and time.monotonic() < ends, "".join(server.lines)
            time.sleep(0.1)
        with Client(server.url, api_key="second", verify=context) as client:
            assert client.predict(png(51)).label == "dark"  # type: ignore[attr-defined]
        assert httpx.post(server.predict, content=png(1), verify=context).status_code == 401
        with (
            Client(server.url, api_key="third", verify=context) as client,
            pytest.raises(Exception, match="key"),
        ):
            client.predict(png(51))
        with pytest.raises(httpx.ConnectError, match=r"CERTIFICATE|certificate"):
            httpx.get(f"{server.url}/readyz")
        with pytest.raises(httpx.TransportError):  # HTTP to a port of HTTPS
            httpx.get(f"http://127.0.0.1:{server.port}/readyz")
        with Client(server.url, api_key="first", retries=0) as client, pytest.raises(ServerError):
            client.predict(png(51))
        assert httpx.get(f"{server.url}/healthz", verify=context).is_success


def make_document(pages: int) -> bytes:
    """A PDF of one grey image on so many pages, written page by page: Pillow would hold all of them."""
    out = io.BytesIO()
    Image.new("L", (32, 24), 90).save(out, "JPEG")
    image = out.getvalue()
    kids = " ".join(f"{4 + n} 0 R" for n in range(pages))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {pages}/Kids[{kids}]/MediaBox[0 0 32 24]>>".encode(),
        b"<</Type/XObject/Subtype/Image/Width 32/Height 24/ColorSpace/DeviceGray/BitsPerComponent 8"
        b"/Filter/DCTDecode/Length %d>>stream\n%b\nendstream" % (len(image), image),
        *[b"<</Type/Page/Parent 2 0 R/Resources<</XObject<</I 3 0 R>>>>/Contents %d 0 R>>" % (4 + pages)]
        * pages,
        b"<</Length 24>>stream\nq 32 0 0 24 0 0 cm /I Do\nendstream",
    ]
    data, places = bytearray(b"%PDF-1.4\n"), []
    for number, content in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj%b\nendobj\n" % (number, content)
    table = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    return bytes(data + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table))


def test_a_document_of_ten_thousand_pages(folder: Path) -> None:
    document = make_document(10_000)
    with run_server(folder) as server:
        process = psutil.Process(server.process.pid)
        before = process.memory_info().rss
        answer = httpx.post(server.predict, content=document, timeout=60)
        assert answer.status_code == 413 and "10000 pages" in answer.text and "500" in answer.text
        assert process.memory_info().rss - before < 300 << 20
        assert round(255 * score_of(httpx.post(server.predict, content=png(9)).content)) == 9
    with run_server(folder, "-o", "limits.pages=10000") as server:
        with httpx.stream("POST", server.predict, content=document, timeout=60) as answer:
            lines = answer.iter_lines()
            first = [next(lines) for _ in range(50)]  # and then the client goes away
        assert all(score_of(line) == pytest.approx(90 / 255, abs=0.01) for line in first)
        ends = time.monotonic() + 30
        while 'under_way{model="tiny"} 0.0' not in httpx.get(f"{server.url}/metrics").text:
            assert time.monotonic() < ends
            time.sleep(0.1)
        assert round(255 * score_of(httpx.post(server.predict, content=png(9)).content)) == 9


@pytest.mark.parametrize("count", [3000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_very_many_small_requests(folder: Path, tmp_path: Path, count: int) -> None:
    """More clients than the server takes: each request has an answer, its own, and memory does not grow."""
    for value in (10, 100, 200, 250):
        (tmp_path / f"{value}.png").write_bytes(png(value))
    with run_server(folder, "-o", "limits.queue=8") as server:
        files = read_files(server.predict, tmp_path, "")
        process = psutil.Process(server.process.pid)
        asyncio.run(run(server.predict, files, 64, 2.0, 0.0))
        before, answers = process.memory_info().rss, 0
        while answers < count:
            load = asyncio.run(run(server.predict, files, 64, 5.0, 0.0))
            assert not load.wrong
            assert set(load.statuses) <= {200, 503} and load.statuses[200]
            assert sum(load.statuses.values()) == load.sent
            answers += load.sent
        assert process.memory_info().rss < 1.05 * before + (8 << 20)
        assert httpx.post(server.predict, content=png(9)).status_code == 200
        assert server.stop() == 0
