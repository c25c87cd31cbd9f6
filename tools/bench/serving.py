"""A server under load against one predictor in a loop: images/s, batching, and what overload does to it.

`python -m tools.bench serving MODEL FOLDER [--clients 16] [--seconds 10] [--rounds 3] [--overload 160]`

Clients are connections of one other process beside the server, on the same CPUs (`tools.bench.load`), which takes a
twentieth of one. The loop reads the same files one by one. With `--overload` so many clients ask at once, and those of
status 503 come again after a moment; then `--rate` requests a second, whether there are answers or not. The lines say
what was accepted, its 99th percentile against that of one client before and after, the server's memory, and its CPU
time a request that was answered with 200, which other processes of the machine change little.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from framework.core.process import find_free_port
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
began, cpu, count = time.perf_counter(), time.process_time(), 0
while time.perf_counter() - began < float(sys.argv[2]):
    predict.predict(files[count % len(files)])
    count += 1
print(count / (time.perf_counter() - began), (time.process_time() - cpu) / count * 1000)
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
    parser.add_argument("--rate", type=float, default=0.0, help="requests a second of the overload, too")
    parser.add_argument(
        "-o", dest="settings", nargs="+", default=[], help="of the overloaded server: limits.wait=0.01"
    )
    args = parser.parse_args(argv)
    files = sorted(path for path in args.folder.rglob("*") if path.suffix.lower() in SUFFIXES)[:64]
    rows = []
    for _ in range(args.rounds):
        loop, cpu_ms = _loop(args.model, args.seconds, files)
        row = {"loop": loop, "loop_cpu_ms": cpu_ms}
        for name, size in (("batches", None), ("alone", 1)):
            with running_server(args.model, **({} if size is None else {"batch": {"size": size}})) as port:
                line = _load(port, args.folder, args.clients, args.seconds)
                row |= {name: line["accepted_per_second"], f"{name}_cpu_ms": line["cpu_ms"]}
        row |= {"against_loop": row["batches"] / loop, "against_alone": row["batches"] / row["alone"]}
        print({name: round(value, 3) for name, value in row.items()}, flush=True)
        rows.append(row)
    if rows:
        print("median", {name: round(statistics.median(row[name] for row in rows), 3) for name in rows[0]})
    if args.overload:
        with running_server(args.model, args.settings) as port:
            for name, clients, rate in (
                ("alone", 1, 0.0),
                ("usual", args.clients, 0.0),
                ("overload", args.overload, 0.0),
                *([("rate", args.overload, args.rate)] if args.rate else []),
                ("afterwards", 1, 0.0),
            ):
                seconds = args.seconds if name in ("overload", "rate") else min(args.seconds, 10)
                line = _load(port, args.folder, clients, seconds, rate)
                print(name, json.dumps({**line, "memory_mb": _memory(port)}), flush=True)
    return 0


def _loop(model: str, seconds: float, files: list[Path]) -> tuple[float, float]:
    """Images a second, and milliseconds of CPU time an image."""
    command = [sys.executable, "-c", LOOP, model, str(seconds), *map(str, files)]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True)
    rate, cpu_ms = map(float, done.stdout.split()[-2:])
    return rate, cpu_ms


_processes: dict[int, int] = {}  # of servers, by port


@contextmanager
def running_server(model: str, settings: Sequence[str] = (), **about: object) -> Iterator[int]:
    """The port of a server that is ready.

    Args:
        settings: Of the server, as `-o` takes them.
        about: Of the model, beside its name and source.
    """
    port = find_free_port()
    config = Path(tempfile.mkdtemp()) / "models.yml"
    config.write_text(json.dumps({"models": [{"name": "model", "source": model, **about}]}), encoding="utf-8")
    command = [sys.executable, "-m", "framework", "serve", "-c", str(config), "--port", str(port)]
    command += ["-o", *settings] if settings else []
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


def server_cpu_seconds(port: int) -> float:
    """CPU time of the server so far."""
    fields = Path(f"/proc/{_processes[port]}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _load(port: int, folder: Path, clients: int, seconds: float, rate: float = 0.0) -> dict[str, float]:
    """The line of `tools.bench.load`, and the server's CPU time of an accepted request in milliseconds."""
    command = [
        sys.executable,
        "-m",
        "tools.bench.load",
        f"http://127.0.0.1:{port}/v1/models/model:predict",
        str(folder),
    ]
    command += ["--clients", str(clients), "--seconds", str(seconds), "--rate", str(rate)]
    before = server_cpu_seconds(port)
    done = subprocess.run(command, cwd=REPO, stdout=subprocess.PIPE, text=True, check=False)
    line = json.loads(done.stdout.splitlines()[-1])
    accepted = line["statuses"].get("200", 0)
    return {**line, "cpu_ms": round((server_cpu_seconds(port) - before) / max(accepted, 1) * 1000, 3)}
