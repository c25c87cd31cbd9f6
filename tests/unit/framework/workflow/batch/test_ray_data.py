"""`oar infer --ray` as users start it, in a Ray of its own; without Ray what can be told without it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from framework.commands import infer, serve
from framework.core.errors import ConfigError
from framework.workflow.batch import cluster
from framework.workflow.batch.inputs import SourceRef
from framework.workflow.batch.parts import PartFolder, Shard
from framework.workflow.batch.ray_data import BatchModel, BatchOptions, RowWorker, plan_workers
from tests.unit.framework.serving.tiny import make_artifact, png, score_of

REPO = Path(__file__).resolve().parents[5]
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason='Ray is not installed: pip install "oar-toolkit[ray]"'
)


def test_flags_of_ray_alone(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert infer.main(["-c", "pp_lcnet_x0_25_clothing", "a.png", "--workers", "2"]) == 2
    assert "--workers" in capsys.readouterr().err
    assert infer.main(["--ray", "-c", "pp_lcnet_x0_25_clothing", "--text", "words"]) == 2
    assert "a batch on Ray is about files" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ray.data", None)
    assert infer.main(["--ray", "-c", "pp_lcnet_x0_25_clothing", "a.png"]) == 2
    assert 'pip install "oar-toolkit[ray]"' in capsys.readouterr().err
    assert infer.main(["--ray", "-c", "pp_lcnet_x0_25_clothing", "a.png", "--workers", "0"]) == 2
    assert "--workers is out of range" in capsys.readouterr().err


def test_workers_share_the_cpus_of_their_node() -> None:
    nodes = [{"Resources": {"CPU": 8.0}}, {"Resources": {"CPU": 4.0}}]
    assert plan_workers(BatchOptions(), nodes) == (2, 4.0)
    assert plan_workers(BatchOptions(workers=4), nodes) == (4, 2.0)
    assert plan_workers(BatchOptions(workers=3, cpus=1.5), nodes) == (3, 1.5)
    assert plan_workers(BatchOptions(workers=16), nodes[:1]) == (16, 0.5)


def document_lines(start: str) -> list[list[str]]:
    """The words of the commands of docs/serving.md that begin so."""
    text = (REPO / "docs" / "serving.md").read_text(encoding="utf-8")
    return [shlex.split(line.removesuffix(" &")) for line in text.splitlines() if line.startswith(start)]


def test_the_commands_of_the_document_are_understood() -> None:
    batches = document_lines("oar infer --ray")
    servers = [line for line in document_lines("oar serve") if "--ray" in line]
    assert len(batches) == 2 and len(servers) == 2
    for words in batches:
        args = infer.parser()[0].parse_args(words[2:])
        assert args.ray and args.files == ["photos", "list.txt"] and args.workers == 2
    for words in servers:
        assert serve.read_settings(serve.parser().parse_args(words[2:])).plain()["ray"]["replicas"] == 2


@needs_ray
def test_the_commands_of_the_document_run(tmp_path: Path) -> None:
    make_artifact(tmp_path / "inference_model" / "photos")
    (tmp_path / "photos").mkdir()
    for number in range(3):
        (tmp_path / "photos" / f"{number}.png").write_bytes(png(number))
    (tmp_path / "list.txt").write_text("photos/0.png\nother.png\n", encoding="utf-8")
    (tmp_path / "other.png").write_bytes(png(9))
    texts = []
    for words in document_lines("oar infer --ray"):
        done = subprocess.run(
            [sys.executable, "-m", "framework", *words[1:]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert "1 source is named more than once" in texts[0] and "4 rows written" in texts[0]
    assert "4 of 4 were done before" in texts[1]


def test_the_errors_of_a_worker_that_died_behind_its_file_are_told(tmp_path: Path) -> None:
    """The next worker has the shard again, and its answer is the only one that the driver gets."""
    model, broken = make_artifact(tmp_path / "tiny"), tmp_path / "broken.png"
    broken.write_bytes(b"no image")
    shard = Shard("s", (SourceRef(str(broken), str(broken)),))
    folder, task = PartFolder(tmp_path / "out", "jsonl"), {"shard": shard.to_json()}
    first, second = (RowWorker(BatchModel(str(model)), folder, "run", None)(task) for _ in range(2))
    assert first == second and second["errors"] == 1 and "not of a known format" in str(second["messages"])


@pytest.fixture(autouse=True)
def other_processes_may_use_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray ends workers where the memory of the machine is short, whoever uses it."""
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")


def test_a_ray_that_does_not_start_here_is_no_matter_of_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*arguments: object, **settings: object) -> None:
        raise Exception("The current node timed out during startup.")

    module = types.SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr(cluster, "import_ray", lambda *names: module)
    monkeypatch.delenv(cluster.ADDRESS, raising=False)
    with (
        pytest.raises(cluster.ConfigError, match="timed out during startup") as error,
        cluster.connect(None, "x"),
    ):
        pass
    assert "less at work" in str(error.value) and "token" not in str(error.value)


@needs_ray
def test_a_cluster_that_does_not_answer() -> None:
    with pytest.raises(cluster.ConfigError, match="cannot be reached"), cluster.connect("127.0.0.1:1", "x"):
        pass


@needs_ray
def test_a_worker_and_the_driver_are_killed(tmp_path: Path) -> None:
    """Each file has one row in the end, and those that cannot be read say so."""
    model, photos, out = make_artifact(tmp_path / "tiny"), tmp_path / "photos", tmp_path / "out"
    photos.mkdir()
    for number in range(400):
        data = png(number % 256) if number % 20 else b"no image"
        (photos / f"{number:04d}.png").write_bytes(data)
    command = [sys.executable, "-m", "framework", "infer", "--ray", "--model_dir", str(model), str(photos)]
    command += ["--output_dir", str(out), "--workers", "2", "--shard_size", "2", "--row_format", "jsonl"]

    def begin() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, cwd=REPO, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def wait_for(count: int, process: subprocess.Popen[bytes]) -> None:
        ends = time.monotonic() + 600
        while len(list(out.glob("part-*"))) < count:
            assert process.poll() is None and time.monotonic() < ends, process.communicate()[0].decode()
            time.sleep(0.02)

    process = begin()
    wait_for(20, process)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    process = begin()
    wait_for(60, process)
    workers = [
        one
        for one in psutil.Process(process.pid).children(recursive=True)
        if "MapWorker" in " ".join(one.cmdline())
    ]
    assert workers, "no worker of Ray Data is there to kill"
    for worker in workers[:1]:
        with contextlib.suppress(psutil.NoSuchProcess):
            worker.kill()
    text = process.communicate(timeout=900)[0].decode()
    assert process.returncode == 1 and "were done before" in text, text
    lines = [line for file in out.glob("part-*") for line in file.read_text(encoding="utf-8").splitlines()]
    rows = [json.loads(line) for line in lines]
    assert sorted(Path(row["source"]).name for row in rows) == [f"{number:04d}.png" for number in range(400)]
    for row in rows:
        number = int(Path(row["source"]).stem)
        if number % 20 == 0:
            assert row["result"] is None and "not of a known format" in row["error"]
        else:
            assert round(255 * score_of(row["result"])) == number % 256
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0 and "400 of 400 were done before" in done.stdout, done.stderr


def test_a_ray_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*arguments: object, **options: object) -> None:
        raise Exception("The current node timed out during startup.")  # as Ray raises it

    module = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr("framework.workflow.batch.cluster.import_ray", lambda name, purpose: module)
    with pytest.raises(ConfigError, match="timed out during startup"), cluster.connect(None, "work"):
        pass
