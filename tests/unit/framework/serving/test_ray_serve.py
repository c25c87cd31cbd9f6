"""`oar serve --ray`: its settings and its engine of stages without Ray, and a server with a replica that is killed."""

from __future__ import annotations

import importlib.util
import pickle
import signal
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest

from framework.commands import serve as command
from framework.config import bind
from framework.core.errors import ConfigError, InputError, MissingExtraError
from framework.export import Artifact, load_artifact
from framework.inference import Runtime
from framework.serving import Client
from framework.serving.errors import DeadlineError
from framework.serving.exchange import Retries
from framework.serving.ray_engine import EngineFacts, RemoteEngine, StageRuntime
from framework.serving.settings import ModelSettings, RaySettings, ServerSettings
from tests.unit.framework.serving.conftest import Start
from tests.unit.framework.serving.tiny import make_artifact, png, score_of

REPO = Path(__file__).resolve().parents[4]
needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason='Ray is not installed: pip install "oar-toolkit[ray]"'
)


def settings(*argv: str) -> ServerSettings:
    return bind(command.read_settings(command.parser().parse_args(argv)), ServerSettings)


def test_flags() -> None:
    plain = settings("net", "--ray")
    assert plain.ray == RaySettings() and settings("net").ray is None
    flags = ("--replicas", "auto", "--max_replicas", "8", "--address", "auto", "--stages", "a=1", "b=2")
    full = settings("net", "--ray", *flags, "-o", "ray.cpus=0.5")
    assert full.ray == RaySettings("auto", "auto", max_replicas=8, cpus=0.5)
    assert full.models[0].stages == {"a": 1, "b": 2}
    assert settings("net", "--ray", "--replicas", "3").ray == RaySettings(replicas=3)


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("net", "--replicas", "2"), "of a server on Ray"),
        (("net", "--stages", "a=1"), "of a server on Ray"),
        (("net", "--ray", "--stages", "a=x"), "STAGE=REPLICAS"),
        (("net", "--ray", "--stages", "a=0"), "too small"),
        (("net", "--ray", "--replicas", "0"), "too small"),
        (("net", "--ray", "--replicas", "many"), "replicas"),
        (("net", "--ray", "--min_replicas", "5"), "ray.max_replicas"),
        (("net", "--ray", "-o", "ray.downscale_seconds=-1"), "ray.downscale_seconds"),
        (("net", "--ray", "--workers", "2"), "are its replicas"),
    ],
)
def test_settings_that_are_refused(argv: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        settings(*argv)


def test_stages_need_ray() -> None:
    with pytest.raises(ConfigError, match="stages are deployments of Ray"):
        ServerSettings((ModelSettings("net", stages={"a": 1}),))


def test_without_ray_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert command.main(["net", "--ray", "--log_format", "text"]) == 2
    assert 'pip install "oar-toolkit[ray]"' in capsys.readouterr().err


def test_errors_come_whole_from_another_process() -> None:
    for error in (
        InputError("a problem", where="here", received=3, allowed="4", fix="do"),
        MissingExtraError("x", "y", "z"),
    ):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error) and vars(copy) == vars(error)


class Method:
    """A method of a handle, whose answers are made in turn by functions."""

    def __init__(self, *answers: Callable[..., object]) -> None:
        self.answers, self.calls = list(answers), list[tuple[object, ...]]()

    def remote(self, *arguments: object) -> Method:
        self.calls.append(arguments)
        return self

    def result(self, *, timeout_s: float | None = None) -> object:
        assert timeout_s is not None and timeout_s > 0
        return self.answers.pop(0)(*self.calls[-1])


class Handle:
    def __init__(self, engine: object, *answers: Callable[..., object]) -> None:
        facts = EngineFacts(engine.inputs, engine.outputs, engine.takes_any_shape)  # type: ignore[attr-defined]
        self.describe, self.run, self.prepare = Method(lambda: facts), Method(*answers), Method()


@pytest.fixture
def ray_errors(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """Ray's exceptions, as the engine knows them."""
    module = types.ModuleType("ray.exceptions")

    class RayTaskError(Exception):
        def __init__(self, cause: Exception) -> None:
            self.cause = cause

    module.RayTaskError = RayTaskError  # type: ignore[attr-defined]
    module.RayActorError = type("RayActorError", (Exception,), {})  # type: ignore[attr-defined]
    monkeypatch.setattr("framework.serving.ray_engine.import_ray", lambda name, purpose: module)
    monkeypatch.setattr("framework.serving.ray_engine._PAUSE", 0.0)
    return module


def raising(error: Exception) -> Callable[..., object]:
    def answer(*arguments: object) -> object:
        raise error

    return answer


def test_the_engine_of_a_stage(tiny: Path, ray_errors: types.ModuleType) -> None:
    engine = Runtime(engine="xla").open(load_artifact(tiny))
    inputs = {"image": np.full((2, 8, 8, 3), 51, np.uint8)}
    dies = raising(ray_errors.RayActorError())
    handle = Handle(
        engine, engine, dies, dies, engine, raising(ray_errors.RayTaskError(InputError("no image")))
    )
    remote = RemoteEngine(handle, 30)
    assert remote.inputs == engine.inputs and remote.outputs == engine.outputs and not remote.takes_any_shape
    assert np.array_equal(remote(inputs)["scores"], engine(inputs)["scores"])
    later = remote.start(inputs)
    assert list(later) == ["scores"] and len(handle.run.calls) == 2
    assert np.allclose(np.asarray(later["scores"]), [[0.2, 0.8]] * 2) and len(handle.run.calls) == 4
    assert later["scores"] is later["scores"] and len(handle.run.calls) == 4
    with pytest.raises(InputError, match="no image"):
        remote(inputs)
    remote.prepare([{"image": (1, 8, 8, 3)}])
    remote.prepare([])
    assert handle.prepare.calls == [([{"image": (1, 8, 8, 3)}],)]
    handle.run.answers = [raising(TimeoutError())]
    with pytest.raises(DeadlineError):
        remote(inputs)
    handle.run.answers = [dies] * 9
    with pytest.raises(ray_errors.RayActorError):
        remote(inputs)


def test_stages_without_a_deployment_run_here(
    tiny: Path, ray_errors: types.ModuleType, tmp_path: Path
) -> None:
    artifact = load_artifact(tiny)
    pipeline = Artifact({"domain": "x"}, stages={"first": artifact, "second": load_artifact(tiny)})
    pipeline.save(tmp_path / "net")
    handle = Handle(Runtime(engine="xla").open(artifact))
    runtime = StageRuntime.of(ModelSettings("net", engine="xla"), {"first": handle}, 5)
    stages = load_artifact(tmp_path / "net").stages
    assert isinstance(runtime.open(stages["first"]), RemoteEngine)
    assert not isinstance(runtime.open(stages["second"]), RemoteEngine)


@pytest.mark.parametrize("ray", [None, RaySettings()])
def test_a_request_has_one_id(start: Start, ray: RaySettings | None) -> None:
    client = start(ray=ray)  # Ray's proxy says the id itself
    batcher = client.app.state.store.get("tiny").batcher  # type: ignore[attr-defined]
    for capacity in (32, 0):
        batcher.load.capacity = capacity
        answer = client.post("/v1/models/tiny:predict", content=png(1), headers={"x-request-id": "mine"})
        assert answer.status_code == (200 if capacity else 503)
        assert answer.headers.get_list("x-request-id") == ([] if ray else ["mine"])


def test_a_client_asks_again_where_a_replica_has_gone() -> None:
    def delay(status: int, content_type: str) -> float | None:
        return Retries.begin(10, 3).delay(httpx.Response(status, headers={"content-type": content_type}))

    assert delay(500, "text/plain") is not None and delay(500, "application/json") is None
    assert delay(404, "text/plain") is None


@needs_ray
def test_a_server_on_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two replicas, one of which is killed under load; the end; and a model that cannot be opened."""
    # Ray ends workers where the memory of the machine is short, whoever uses it.
    monkeypatch.setenv("RAY_memory_monitor_refresh_ms", "0")
    folder = make_artifact(tmp_path / "tiny")
    start = [sys.executable, "-m", "framework", "serve", "--ray", "--port", "8765", "-o", "reload_seconds=0"]
    process = subprocess.Popen(
        [*start, "ray.cpus=0.5", "--replicas", "2", f"tiny={folder}"], cwd=REPO, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    lines: list[bytes] = []
    reader = threading.Thread(target=lambda: lines.extend(process.stderr or ()))
    reader.start()
    stopped = threading.Event()
    try:
        ends = time.monotonic() + 600
        while not any(b'"status": "running"' in line for line in lines):
            assert process.poll() is None and time.monotonic() < ends, b"".join(lines).decode()
            time.sleep(0.1)
        wrong: list[object] = []

        def ask(value: int) -> None:
            with Client("http://127.0.0.1:8765", "tiny") as client:
                while not stopped.is_set():
                    answer = client.predict_json(png(value))
                    assert isinstance(answer, dict)
                    if round(255 * score_of(answer)) != value:
                        wrong.append(answer)

        threads = [threading.Thread(target=ask, args=(value,)) for value in range(0, 240, 40)]
        for thread in threads:
            thread.start()
        time.sleep(2)
        children = psutil.Process(process.pid).children(recursive=True)
        # What a replica is doing stands behind its name.
        replicas = [one for one in children if one.name().startswith("ray::ServeReplica:oar:server")]
        assert len(replicas) == 2
        replicas[0].kill()
        time.sleep(3)
        stopped.set()
        for thread in threads:
            thread.join()
        assert not wrong
        facts = httpx.get("http://127.0.0.1:8765/v1/models/tiny").json()
        assert facts["ready"] and facts["takes"] == "image"
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 0
        assert not psutil.wait_procs(children, timeout=30)[1]
    finally:
        stopped.set()
        process.kill()
        process.wait()
        reader.join(30)
        process.stderr.close()
    (tmp_path / "net").mkdir()
    done = subprocess.run(
        [*start, "--log_format=json", str(tmp_path / "net")], cwd=REPO, capture_output=True, check=False
    )
    assert done.returncode == 2 and b"neither an artifact" in done.stderr
