"""Processes that are killed (SIGKILL) at random moments: nothing is lost, half-written or left behind for ever.

python -m tests.kills --kills 34                   every kind, 34 kills each
python -m tests.kills export download --kills 5 --seed 7

Each kind runs a command once to its end, and then kills it again and again. What stands on the disk after a kill must
be whole; the same command, run once more, must succeed with the result of the run that nobody disturbed. At the end of
a kind what the kills left is made two hours older, the command runs once more, and no hidden copy may be there.
A line a kind is printed, as JSON, also of one that is interrupted (Ctrl+C, SIGTERM) or fails; the exit status is 1
where something went wrong, 130 after an interrupt.
"""

from __future__ import annotations

import argparse
import hashlib
import http.server
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from PIL import Image

from framework.core.whole_folder import STALE_SECONDS
from framework.export import load_artifact
from framework.interop import write_safetensors
from tests.unit.framework.workflow.test_imports import CONFIG, PARTS
from zoo.vision.lenet import LeNet, LeNetConfig

_OAR = [sys.executable, "-m", "framework"]
_DOCUMENTS, _IMAGES, _LINES = 6, 8, 30
_CHECKPOINT = ("model.safetensors", "train.safetensors", "state.json")
_PAYLOAD = random.Random(0).randbytes(4_000_000)
_LONGEST = 600.0  # seconds of a command that nobody kills
_REPO = Path(__file__).resolve().parents[2]
_GRAPH = _REPO / "tests/data/interop/network.onnx"
_NO_LEFTOVERS = (".lock", ".oar")  # hidden names that stay


@dataclass(frozen=True)
class Kind:
    """A command that is killed.

    Attributes:
        damage: What is half-written or lost, of a state at any moment; "" where nothing is.
        result: What the command made, to compare with that of another run.
        prepare: Run before each kill.
        again: The command after a kill, where that is another one.
        folders: Those that no hidden copy may stay in.
    """

    command: Sequence[str]
    damage: Callable[[], str]
    result: Callable[[], object]
    folders: Sequence[Path]
    prepare: Callable[[], object] = lambda: None
    again: Callable[[], Sequence[str]] | None = None


def run(command: Sequence[str], home: Path, seconds: float | None = None) -> tuple[int | None, str]:
    """Exit status and output; None where it was killed after these seconds."""
    environment = {**os.environ, "OAR_HOME": str(home), "JAX_PLATFORMS": "cpu"}
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds or _LONGEST)
    except subprocess.TimeoutExpired:
        _end(process)
        return None, ""
    except BaseException:  # interrupted
        _end(process)
        raise
    return process.returncode, output.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@dataclass
class Report:
    """What is known of a kind so far.

    Attributes:
        seconds: Of a run that nobody disturbs.
        hidden: How many hidden copies the next runs found, all together.
    """

    kills: int = 0
    seconds: float = 0.0
    hidden: int = 0
    problems: list[str] = field(default_factory=list)


def try_kind(kind: Kind, home: Path, kills: int, rng: random.Random, report: Report) -> None:
    """Kills the command again and again, and writes into `report` what it finds."""
    problems = report.problems
    kind.prepare()
    status, output = run(kind.command, home)
    expected = kind.result()
    if status or kind.damage():
        problems.append(f"not even undisturbed: {status} {output[-1500:]} {kind.damage()}")
        return
    kind.prepare()
    start = time.monotonic()
    run(kind.command, home)
    span = time.monotonic() - start
    report.seconds = round(span, 1)
    while report.kills < kills:
        kind.prepare()
        moment = rng.uniform(0.02, 1.0) * span
        status, _ = run(kind.command, home, moment)
        if status is not None:  # it was done before
            span = min(span, moment)
            continue
        report.kills += 1
        if damage := kind.damage():
            problems.append(f"kill {report.kills}, after {moment:.2f} s: {damage}")
        status, output = run(kind.again() if kind.again else kind.command, home)
        if status or kind.damage():
            problems.append(
                f"run after kill {report.kills} at {moment:.2f} s: {status} {output[-800:]} {kind.damage()}"
            )
        elif kind.result() != expected:
            problems.append(f"run after kill {report.kills} at {moment:.2f} s: another result")
        report.hidden += len(_hidden(kind.folders))
    for path in _hidden(kind.folders):
        _make_older(path)
    run(kind.command, home)
    problems += [f"{path} stays" for path in _hidden(kind.folders)]


def _hidden(folders: Sequence[Path]) -> list[Path]:
    return [
        path
        for folder in folders
        for path in sorted(folder.rglob(".*"))
        if path.name not in _NO_LEFTOVERS and not path.name.endswith(".lock")
    ]


def _make_older(path: Path) -> None:
    past = time.time() - 2 * STALE_SECONDS
    for one in (path, *(path.rglob("*") if path.is_dir() else ())):
        os.utime(one, (past, past), follow_symlinks=False)


def make_kinds(root: Path) -> Mapping[str, Kind]:
    """The kinds of commands, with their inputs in `root`."""
    home = root / "home"
    config = _write_inputs(root)
    trained, artifact = root / "trained", root / "models/own"
    train = [*_OAR, "train", "-c", config, "--output_dir"]
    for command in (
        [*train, str(trained)],
        [*_OAR, "export", "-c", config, "-o", f"weights={trained}", "--output_dir", str(artifact.parent)],
    ):
        status, output = run(command, home)
        if status:
            raise SystemExit(output)
    fresh = root / "run"
    url = _serve()
    fetch = f"from framework import hub; print(hub.resolve({url!r}))"
    first = [*_OAR, "infer", "-c", config, "-o", f"weights={trained}", "-i", str(root / "images/0.png")]
    infer = [*_OAR, "infer", "--model_dir", str(artifact), "--trust", str(root / "images"), "--output_dir"]
    converted = root / "converted/net"
    quantized = root / "int8/net"
    quantize = [
        *_OAR,
        "quantize",
        "-c",
        _write_lenet(root),
        "--data",
        str(root / "images"),
        "--examples",
        "2",
    ]
    document = [*_OAR, "document", "-i", str(root / "pages"), "--format", "md", "--output_dir"]

    def resume() -> Sequence[str]:
        started = any(not path.name.startswith(".") for path in fresh.rglob("step_*"))
        return [*train, str(fresh), *(["--resume"] if started else [])]

    return {
        "train": Kind(
            [*train, str(fresh)],
            lambda: _half_checkpoint(fresh),
            lambda: _digest(fresh.rglob("step_40/model.safetensors")),
            [fresh, home],
            lambda: shutil.rmtree(fresh, ignore_errors=True),
            resume,
        ),
        "export": Kind(
            [*_OAR, "export", "-c", config, "-o", f"weights={trained}", "--output_dir", str(artifact.parent)],
            lambda: _artifact_fault(artifact),
            lambda: _digest(artifact.glob("*.safetensors")),
            [artifact.parent, home],
        ),
        "infer": Kind(
            [*infer, str(root / "named")],
            lambda: _half_result(root / "named"),
            lambda: _read_results(root / "named", "*.json"),
            [root / "named", home],
        ),
        "document": Kind(
            [*document, str(root / "read")],
            lambda: _half_document(root / "read"),
            lambda: _read_results(root / "read", "*.md"),
            [root / "read", home],
            lambda: shutil.rmtree(root / "read", ignore_errors=True),
        ),
        "first start": Kind(
            [*first, "--output_dir", str(root / "first")],
            lambda: _half_result(root / "first"),
            lambda: _read_results(root / "first", "*.json"),
            [root / "first", home],
            lambda: shutil.rmtree(home, ignore_errors=True),
        ),
        "download": Kind(
            [sys.executable, "-c", fetch],
            lambda: _wrong_download(home),
            lambda: _digest(home.rglob("*.pdparams")),
            [home],
            lambda: shutil.rmtree(home, ignore_errors=True),
        ),
        "quantize": Kind(
            [*quantize, "--max_loss", "0.9", "--output_dir", str(quantized)],
            lambda: _artifact_fault(quantized),
            lambda: _digest(quantized.glob("*.onnx")),
            [quantized.parent, home],
        ),
        "convert": Kind(
            [*_OAR, "convert", str(_GRAPH), str(converted)],
            lambda: _artifact_fault(converted),
            lambda: _digest(converted.glob("*.safetensors")),
            [converted.parent, home],
        ),
    }


def _write_inputs(root: Path) -> str:
    """A network of eight numbers, images and documents. Returns: the config's path."""
    (root / "my_own_parts.py").write_text(PARTS, encoding="utf-8")
    text = CONFIG.format(module="my_own_parts", steps=(root / "steps.txt").as_posix(), iters=40)
    text = text.replace("num_workers: 1", "num_workers: 0").replace(
        "worker_mode: process", "worker_mode: thread"
    )
    (root / "own.yml").write_text(text, encoding="utf-8")
    for name in ("images", "pages"):
        (root / name).mkdir()
    for number in range(_IMAGES):
        color = (200, 10, 10) if number % 2 else (10, 10, 200)
        Image.fromarray(np.full((64, 64, 3), color, np.uint8)).save(root / f"images/{number}.png")
    for number in range(_DOCUMENTS):
        (root / f"pages/{number}.pdf").write_bytes(_pdf(number))
    return str(root / "own.yml")


def _write_lenet(root: Path) -> str:
    """A network with layers that can be in int8. Returns: the config's path."""
    weights = {name: np.asarray(value) for name, value in LeNet(LeNetConfig(2)).state_dict().items()}
    write_safetensors(root / "lenet.safetensors", weights)
    text = f"""
_base_: {(_REPO / "configs/_base_/classification.yml").as_posix()}
model: {{type: LeNet, num_classes: 2}}
weights: {(root / "lenet.safetensors").as_posix()}
task: {{type: ImageClassification, topk: [1]}}
data: {{train: {{dataset: {{type: ImageFolder, root: {root.as_posix()}/images}}, batch_size: 2}}, eval: null}}
predict: {{transforms: [{{type: Resize, size_hw: [28, 28]}}]}}
export: {{precisions: [float32], inputs: {{image: {{shape: [n, 28, 28, 3], dtype: uint8}}}}}}
"""
    (root / "lenet.yml").write_text(text, encoding="utf-8")
    return str(root / "lenet.yml")


def _pdf(number: int) -> bytes:
    lines = b"".join(
        b"BT /F 12 Tf 50 %d Td (Line %d of a page of text, number %d.) Tj ET\n"
        % (750 - 20 * line, line, number)
        for line in range(_LINES)
    )
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        b"<</Length %d>>\nstream\n" % len(lines) + lines + b"\nendstream",
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % entry for entry in enumerate(objects, start=1))
    return b"%PDF-1.7\n" + body + b"trailer\n<</Size 6/Root 1 0 R>>\n%%EOF"


class _Slow(http.server.BaseHTTPRequestHandler):
    """Sends the payload in half a second or so, and the rest of it to whoever has a part."""

    def do_GET(self) -> None:
        begin = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0]
        start = int(begin)
        self.send_response(206 if "Range" in self.headers else 200)
        if "Range" in self.headers:
            self.send_header("Content-Range", f"bytes {start}-{len(_PAYLOAD) - 1}/{len(_PAYLOAD)}")
        self.send_header("Content-Length", str(len(_PAYLOAD) - start))
        self.end_headers()
        try:
            for offset in range(start, len(_PAYLOAD), 100_000):
                self.wfile.write(_PAYLOAD[offset : offset + 100_000])
                time.sleep(0.02)
        except OSError:
            return

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


def _serve() -> str:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Slow)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}/net.pdparams"


def _half_checkpoint(folder: Path) -> str:
    for path in folder.rglob("step_*"):
        missing = [name for name in _CHECKPOINT if not (path / name).is_file()]
        if missing and not any(one.startswith(".") for one in path.relative_to(folder).parts):
            return f"{path} lacks {missing}"
    return ""


def _artifact_fault(folder: Path) -> str:
    try:
        load_artifact(folder)
    except Exception as error:
        return str(error)[:300]
    return ""


def _half_result(folder: Path) -> str:
    for path in folder.glob("[!.]*"):
        try:
            if path.suffix == ".json":
                json.loads(path.read_text(encoding="utf-8"))
            elif path.suffix in (".png", ".jpg"):
                Image.open(path).load()
        except Exception as error:
            return f"{path}: {error}"
    return ""


def _half_document(folder: Path) -> str:
    for path in folder.glob("[!.]*.md"):
        if f"Line {_LINES - 1}" not in path.read_text(encoding="utf-8"):
            return f"{path} ends early"
    return ""


def _wrong_download(home: Path) -> str:
    for path in home.rglob("[!.]*.pdparams"):
        if path.read_bytes() != _PAYLOAD:
            return f"{path} has {path.stat().st_size} bytes"
    return ""


def _digest(paths: Iterable[Path]) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(paths)]


def _read_results(folder: Path, pattern: str) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob(pattern))}


def main() -> int:
    """Exit status 1 where something went wrong."""
    names = ("train", "export", "infer", "document", "first start", "download", "quantize", "convert")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kinds", nargs="*", help=f"default: all of {', '.join(names)}")
    parser.add_argument("--kills", type=int, default=34, help="of each kind")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    wrong = 0
    signal.signal(signal.SIGTERM, _interrupt)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        kinds = make_kinds(root)
        for name in args.kinds or names:
            report = Report()
            try:
                try_kind(kinds[name], root / "home", args.kills, random.Random(f"{name} {args.seed}"), report)
            except KeyboardInterrupt:
                report.problems.append("interrupted")
                return 130
            except Exception as error:
                report.problems.append(f"{type(error).__name__}: {error}")
            finally:
                wrong += bool(report.problems)
                print(json.dumps({"kind": name, **asdict(report)}), flush=True)
    return 1 if wrong else 0


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
