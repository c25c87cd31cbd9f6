"""A server under load against one predictor in a loop: images/s, batching, and what overload does to it.

`python -m tools.bench serving MODEL FOLDER [--clients 16] [--seconds 10] [--rounds 3] [--overload 160]`

Clients are threads of one process beside the server, on the same CPUs, each with one connection: what they take counts
against the server. The loop reads the same files one by one. With `--overload` so many clients ask at once, and answers
of status 503 come again after a moment; the line has what was accepted, and its 99th percentile against that of one
client.
"""

from __future__ import annotations

import http.client
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from framework.vision.image_formats import SUFFIXES
from tools.bench.peers import REPO, arguments

LOOP = """
import sys, time, logging
from pathlib import Path
from framework.workflow import open_predictor
predict = open_predictor(sys.argv[1])
files = [Path(name).read_bytes() for name in sys.argv[3:]]
for file in files[:4]:
    predict.predict(file)
began, count = time.perf_counter(), 0
while time.perf_counter() - began < float(sys.argv[2]):
    predict.predict(files[count % len(files)])
    count += 1
print(count / (time.perf_counter() - began))
"""


def serving(argv: Sequence[str]) -> int:
    """Print one line for each round, then medians."""
    parser = arguments(__doc__)
    parser.add_argument("model")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--overload", type=int, default=0, help="clients at once")
    args = parser.parse_args(argv)
    files = sorted(path for path in args.folder.rglob("*") if path.suffix.lower() in SUFFIXES)[:64]
    bodies = [path.read_bytes() for path in files]
    rows = []
    for _ in range(args.rounds):
        loop = _loop(args.model, args.seconds, files)
        row = {"loop": loop}
        for name, size in (("batches", None), ("alone", 1)):
            with _server(args.model, size) as port:
                row[name] = _load(port, bodies, args.clients, args.seconds)[0]
        row |= {"against_loop": row["batches"] / loop, "against_alone": row["batches"] / row["alone"]}
        print({name: round(value, 3) for name, value in row.items()}, flush=True)
        rows.append(row)
    print("median", {name: round(statistics.median(row[name] for row in rows), 3) for name in rows[0]})
    if args.overload:
        with _server(args.model, None) as port:
            alone = _load(port, bodies, 1, args.seconds)
            before, (rate, times, answers) = _memory(port), _load(port, bodies, args.overload, args.seconds)
            after = _load(port, bodies, 1, args.seconds)
            line = {
                "clients": args.overload,
                "accepted_per_second": rate,
                "answers": dict(answers),
                "p99_alone": _percentile(alone[1]),
                "p99_accepted": _percentile(times),
                "p99_afterwards": _percentile(after[1]),
                "memory_mb": (before, _memory(port)),
            }
        print("overload", json.dumps(line))
    return 0


def _percentile(times: list[float]) -> float:
    return round(sorted(times)[int(0.99 * (len(times) - 1))], 4)


def _loop(model: str, seconds: float, files: list[Path]) -> float:
    command = [sys.executable, "-c", LOOP, model, str(seconds), *map(str, files)]
    return float(
        subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True).stdout.split()[-1]
    )


_processes: dict[int, int] = {}  # of servers, by port


@contextmanager
def _server(model: str, batch: int | None) -> Iterator[int]:
    """The port of a server that is ready."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    size = {} if batch is None else {"batch": {"size": batch}}
    config = Path(tempfile.mkdtemp()) / "models.yml"
    config.write_text(json.dumps({"models": [{"name": "model", "source": model, **size}]}), encoding="utf-8")
    command = [sys.executable, "-m", "framework", "serve", "-c", str(config), "--port", str(port)]
    process = subprocess.Popen(command, cwd=REPO, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _processes[port] = process.pid
    try:
        while True:
            if process.poll() is not None:
                raise SystemExit(f"the server ended with status {process.returncode}: {' '.join(command)}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/readyz")
                if connection.getresponse().status == 200:
                    break
            except OSError:
                pass
            time.sleep(0.2)
        yield port
    finally:
        process.terminate()
        process.wait()


def _memory(port: int) -> int:
    """Resident megabytes of the server."""
    text = Path(f"/proc/{_processes[port]}/status").read_text(encoding="utf-8")
    return int(text.split("VmRSS:")[1].split()[0]) // 1024


def _load(
    port: int, bodies: list[bytes], clients: int, seconds: float
) -> tuple[float, list[float], Counter[int]]:
    """Accepted requests a second, their times, and how many answers had which status."""
    times: list[float] = []
    answers: Counter[int] = Counter()
    ends = time.perf_counter() + seconds

    def ask(number: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        while time.perf_counter() < ends:
            began = time.perf_counter()
            body = bodies[number % len(bodies)]
            headers = {"Content-Type": "application/octet-stream"}
            try:
                connection.request("POST", "/v1/models/model:predict", body, headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                answers[0] += 1
                connection.close()
                continue
            answers[answer.status] += 1
            if answer.status == 200:
                times.append(time.perf_counter() - began)
            else:
                time.sleep(0.05)
            number += clients
        connection.close()

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(clients)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / (time.perf_counter() - began), times, answers
