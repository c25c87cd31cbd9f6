"""Clients of a server in a process of their own, for `tools.bench.serving`: they take a small part of one CPU.

`python -m tools.bench.load URL FOLDER [--clients N] [--seconds S] [--rate R]` prints one line of JSON. All clients are
connections of one event loop, whose requests are made before. With `--rate` so many requests are sent a second in all,
whether the ones before were answered or not, as far as there are connections; without it each client sends its next
request when it has its answer, a moment later after 503. Each answer must carry the id of its request and, of status
200, what the server said of the same file before the load.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from framework.vision.image_formats import SUFFIXES

_PAUSE = 0.05  # seconds after 503
_SETTLED = 2.0  # seconds after which the load is no news to a server
_TOLERANCE = 0.02  # of numbers of an answer, or a fiftieth: batches of other sizes round another way


@dataclass
class Load:
    """What the clients saw.

    Attributes:
        seconds: Of each answer of status 200.
        times: When its request was sent, in seconds since the load began.
    """

    seconds: list[float] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    refused_seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    sent: int = 0
    skipped: int = 0
    began: float = 0.0

    def settled_seconds(self) -> list[float]:
        """Of answers whose requests were sent behind the first moment, in which the server learns of the load."""
        return [seconds for sent, seconds in zip(self.times, self.seconds) if sent >= _SETTLED]


@dataclass(frozen=True)
class File:
    """A request without its id, and what its answer has to be."""

    head: bytes
    body: bytes
    expected: object


class Client(asyncio.Protocol):
    """One connection; connects anew where the server closes it."""

    def __init__(self, load: Load, done: asyncio.Queue[Client]) -> None:
        self.load, self._done = load, done
        self.transport: asyncio.WriteTransport | None = None
        self._data = b""
        self._file: File | None = None
        self._id = b""
        self._began = 0.0
        self._is_ending = False
        self.pause = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)  # uvloop's is none by class

    def send(self, file: File) -> None:
        assert self.transport is not None
        self._file, self._began, self._data = file, time.perf_counter(), b""
        self.load.sent += 1
        self._id = b"r%d" % self.load.sent
        self.transport.write(b"%bX-Request-Id: %b\r\n\r\n" % (file.head, self._id) + file.body)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, separator, body = self._data.partition(b"\r\n\r\n")
        if not separator or self._file is None:
            return
        lines = head.lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        if len(body) < length:
            return
        self._note(int(head[9:12]), lines, body)
        self._file = None
        if b"connection: close" in lines and self.transport is not None:
            self._is_ending = True
            self.transport.close()
        else:
            self._done.put_nowait(self)

    def _note(self, status: int, lines: list[bytes], body: bytes) -> None:
        assert self._file is not None
        seconds = time.perf_counter() - self._began
        self.load.statuses[status] += 1
        named = [line for line in lines if line.startswith(b"x-request-id:")]  # other servers say none
        if named and named != [b"x-request-id: " + self._id]:
            self.load.wrong.append(f"{self._id.decode()} has the answer of another")
        self.pause = 0.0
        if status == 200:
            self.load.seconds.append(seconds)
            self.load.times.append(self._began - self.load.began)
            if text := difference(json.loads(body), self._file.expected):
                self.load.wrong.append(f"{self._id.decode()} {text}")
        else:
            self.load.refused_seconds.append(seconds)
            self.pause = _PAUSE
            if status != 503:
                self.load.wrong.append(f"{status}: {body[:200]!r}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self._file is not None:
            self.load.statuses[0] += 1
            self._file, self.pause = None, _PAUSE
        elif not self._is_ending:
            return  # one that waits for nothing: the server keeps it for some seconds only
        self._is_ending = False
        self._done.put_nowait(self)


def difference(one: object, other: object, where: str = "") -> str:
    """Where two JSON values differ by more than rounding, but for times; "" where they do not."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        keys = (key for key in one if key != "seconds")
        return next(filter(None, (difference(one[key], other[key], f"{where}.{key}") for key in keys)), "")
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other))
        return next(filter(None, (difference(a, b, f"{where}.{n}") for n, (a, b) in pairs)), "")
    if isinstance(one, int | float) and isinstance(other, int | float):
        same = math.isclose(one, other, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    else:
        same = one == other
    return "" if same else f"{where}: {str(one)[:80]!r} for {str(other)[:80]!r}"


def read_files(url: str, folder: Path, field_name: str) -> list[File]:
    """A request for each image of a folder, which was asked for once.

    Args:
        field_name: Of a form; empty: the body is the file.
    """
    address, files = urlsplit(url), []
    for path in sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)[:64]:
        body, kind = path.read_bytes(), "application/octet-stream"
        if field_name:
            boundary = "oar-bench-boundary"
            name = f'--{boundary}\r\nContent-Disposition: form-data; name="{field_name}"; filename="a{path.suffix}"'
            body = (
                f"{name}\r\nContent-Type: {kind}\r\n\r\n".encode() + body + f"\r\n--{boundary}--\r\n".encode()
            )
            kind = f"multipart/form-data; boundary={boundary}"
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=120)
        connection.request("POST", address.path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {text[:300]!r}")
        connection.close()
        head = (
            f"POST {address.path} HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(body)}\r\n"
        )
        files.append(File(head.encode(), body, json.loads(text)))
    return files


async def run(url: str, files: Sequence[File], clients: int, seconds: float, rate: float) -> Load:
    """Send until the time is over; wait for the answers that are still to come."""
    address, load = urlsplit(url), Load(began=time.perf_counter())
    loop, done = asyncio.get_running_loop(), asyncio.Queue[Client]()
    everyone = [Client(load, done) for _ in range(clients)]
    for client in everyone:
        done.put_nowait(client)
    began, number = loop.time(), 0
    free: deque[Client] = deque()

    async def send(client: Client) -> None:
        nonlocal number
        if client.transport is None:
            with contextlib.suppress(OSError):
                await loop.create_connection(lambda: client, address.hostname, address.port)
        if client.transport is None:
            load.statuses[0] += 1
            done.put_nowait(client)
            return
        number += 1
        client.send(files[number % len(files)])

    tasks: set[asyncio.Task[None]] = set()

    async def collect() -> None:
        """A connection is free: it asks again, at once or at its time."""
        while True:
            client = await done.get()
            if rate:
                free.append(client)
            elif loop.time() - began < seconds:
                if client.pause:
                    loop.call_later(client.pause, start, client)
                else:
                    await send(client)
            else:
                free.append(client)

    def start(client: Client) -> None:
        task = asyncio.ensure_future(send(client))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    collector = asyncio.create_task(collect())
    planned = 0
    while loop.time() - began < seconds:
        await asyncio.sleep(0.002 if rate else 0.05)
        due = int((loop.time() - began) * rate)
        while planned < due:
            planned += 1
            if free:
                start(free.popleft())
            else:
                load.skipped += 1
    ends = loop.time() + 60
    while len(free) < clients and loop.time() < ends:
        await asyncio.sleep(0.02)
    collector.cancel()
    for client in everyone:
        client.close()
    await asyncio.sleep(0.05)
    lost = clients - len(free)
    if lost:
        load.wrong.append(f"{lost} requests have no answer after a minute")
    return load


def percentile(times: Sequence[float], share: float) -> float:
    """Of times; 0 where there are none."""
    return round(sorted(times)[int(share * (len(times) - 1))], 4) if times else 0.0


def main(argv: Sequence[str] | None = None) -> int:
    """Print one line of JSON; status 1, where an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second; 0: as they are answered")
    parser.add_argument("--field", default="", help="of a form; none: the body is the file")
    args = parser.parse_args(argv)
    with contextlib.suppress(ImportError):
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    files = read_files(args.url, args.folder, args.field)
    began, cpu = time.perf_counter(), time.process_time()
    load = asyncio.run(run(args.url, files, args.clients, args.seconds, args.rate))
    wall = time.perf_counter() - began
    line = {
        "requests": load.sent,
        "statuses": dict(load.statuses),
        "accepted_per_second": round(len(load.seconds) / wall, 2),
        "p50": percentile(load.seconds, 0.5),
        "p99": percentile(load.seconds, 0.99),
        "p99_settled": percentile(load.settled_seconds(), 0.99),
        "p99_refused": percentile(load.refused_seconds, 0.99),
        "skipped": load.skipped,
        "cpu_share": round((time.process_time() - cpu) / wall, 3),
        "wrong": load.wrong[:5],
        "wrong_count": len(load.wrong),
    }
    print(json.dumps(line))
    return 1 if load.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
