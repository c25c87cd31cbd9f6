"""A server in this process, with a tiny model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from framework.serving.app import create_app
from framework.serving.settings import BatchSettings, Limits, ModelSettings, ServerSettings
from tests.unit.framework.serving.tiny import make_artifact

Start = Callable[..., TestClient]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny model."""
    return make_artifact(tmp_path_factory.mktemp("serving") / "tiny")


@pytest.fixture
def start(tiny: Path) -> Iterator[Start]:
    """Starts a server with the tiny model, of these limits and settings, and waits until it is ready."""
    with ExitStack() as stack:

        def start(
            *, limits: Limits | None = None, batch: BatchSettings | None = None, **settings: Any
        ) -> TestClient:
            model = ModelSettings(str(tiny), "tiny", batch=batch or BatchSettings(wait_ms=2))
            settings.setdefault("models", (model,))
            settings.setdefault("reload_seconds", 0.0)
            server = ServerSettings(limits=limits or Limits(), **settings)
            client = stack.enter_context(TestClient(create_app(server), raise_server_exceptions=False))
            wait_ready(client)
            return client

        yield start


def wait_ready(client: TestClient, seconds: float = 120) -> None:
    """Returns when all models are ready."""
    ends = time.monotonic() + seconds
    while client.get("/readyz").status_code != 200:
        assert time.monotonic() < ends, client.get("/readyz").text
        time.sleep(0.02)
