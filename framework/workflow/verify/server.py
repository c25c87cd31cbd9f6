"""The server as a runtime: `oar serve` in a process of its own, asked over HTTP as a client asks it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from framework.core.disk import find_scratch_parent
from framework.core.errors import InputError
from framework.core.process import find_free_port
from framework.workflow.domain.result import Json, Result

_NAME = "model"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # a proxy does not reach this machine
_SECONDS_TO_START = 300


@dataclass(frozen=True)
class JsonResult(Result):
    """A result as a server gives it."""

    content: dict[str, Json]

    def to_dict(self) -> dict[str, Json]:
        return self.content


class ServedModel:
    """An artifact behind a server on this machine, in float32 by XLA; ended by `close`.

    Raises:
        InputError: the server does not start, as where its packages are not installed.
    """

    def __init__(self, folder: Path) -> None:
        port = str(find_free_port())
        self._url = f"http://127.0.0.1:{port}"
        model = f"{_NAME}={folder.resolve()}"
        options = ("--port", port, "--engine", "xla", "--precision", "float32")
        # A pipe that nobody reads would be full after some hundred lines.
        self._log = tempfile.TemporaryFile(dir=find_scratch_parent())  # noqa: SIM115  `close` closes it
        self._process = subprocess.Popen(
            [sys.executable, "-m", "framework", "serve", model, *options],
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )
        end = time.monotonic() + _SECONDS_TO_START
        while not self._is_ready():
            if self._process.poll() is not None:
                raise InputError("the server does not start", received=self._end())
            if time.monotonic() > end:
                raise InputError(f"the server is not ready in {_SECONDS_TO_START} s", received=self._end())
            time.sleep(0.2)

    def __call__(self, file: Path) -> JsonResult:
        """The result of an image file. Raises: InputError, where the server refuses it."""
        request = urllib.request.Request(
            f"{self._url}/v1/models/{_NAME}:predict",
            file.read_bytes(),
            {"Content-Type": "application/octet-stream"},
        )
        try:
            with _OPENER.open(request, timeout=_SECONDS_TO_START) as answer:
                return JsonResult(json.load(answer))
        except urllib.error.URLError as error:
            raise InputError("the server refuses an image", where=file, received=str(error)) from error

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def _is_ready(self) -> bool:
        try:
            with _OPENER.open(f"{self._url}/readyz", timeout=2) as answer:
                return answer.status == 200
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    def _end(self) -> str:
        """End the server; -> the last line that it wrote before."""
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        self.close()
        return lines[-1][:300] if lines else f"exit status {self._process.returncode}"
