"""The process of a server: its socket, its signals, its workers, and an end that loses no request."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import multiprocessing
import multiprocessing.context
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType

import uvicorn
from prometheus_client import multiprocess

from framework.core.disk import scratch_folder
from framework.core.errors import ConfigError, OarError
from framework.core.lifeline import end_with_parent
from framework.inference import keep_memory
from framework.serving.app import create_app, read_keys
from framework.serving.connections import connection_class
from framework.serving.header_timer import HEADER_BYTES
from framework.serving.logs import server_logs, set_up_logs
from framework.serving.metrics import SHARED
from framework.serving.models import ModelStore
from framework.serving.settings import ServerSettings

log = logging.getLogger("oar.serving")
_BACKLOG = 2048
_FAILED = 2
_SWITCH = (
    0.0005  # seconds that a thread may hold Python while others wait: the one of the connections, above all
)
_TAKE = 0.15  # seconds for connections that were made before the socket is closed
_LOOK = 0.2  # seconds between two looks at the workers
_LONG, _LONGEST_PAUSE = 60.0, 30.0  # seconds that a worker ran before it failed; before it is started again


class Server(uvicorn.Server):
    """uvicorn's, which goes on for a moment after SIGTERM while it says that it is not ready: balancers and clients
    with open connections go elsewhere before the socket is closed. Not where a model cannot be opened: it never was
    ready then.

    Args:
        opens_first: Whether models are opened before a connection is taken: where other processes take them meanwhile.
    """

    def __init__(self, config: uvicorn.Config, store: ModelStore, opens_first: bool = False) -> None:
        super().__init__(config)
        self.store, self._opens_first = store, opens_first
        self.failures: list[Exception] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections."""
        if self._opens_first:
            try:
                await self.store.start()
            except Exception as error:
                self.fail(error)
            if self.should_exit:
                await self.store.close()
                return
        await super().startup(sockets)

    def fail(self, error: Exception) -> None:
        """A model cannot be opened: end."""
        self.failures.append(error)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take requests for `drain_seconds` more, then none; answer those that are under way."""
        self.store.draining = True
        ends = asyncio.get_running_loop().time() + self.store.settings.drain_seconds
        while not (self.force_exit or self.failures) and asyncio.get_running_loop().time() < ends:
            await asyncio.sleep(0.05)
        # Connections that are made but not taken yet would be reset: none come any more, and these are taken first.
        # Then those that were taken last have a moment to send their request.
        for sock in sockets or ():
            with contextlib.suppress(OSError):
                sock.listen(0)
        await asyncio.sleep(_TAKE)
        for server in self.servers:
            server.close()
        await asyncio.sleep(_TAKE)
        await super().shutdown(sockets)
        self._captured_signals.clear()  # the process ends as one that has done its work


def serve(settings: ServerSettings) -> int:
    """Serve until SIGTERM or Ctrl+C; returns the exit status: 2, where a model cannot be opened.

    Raises: ConfigError: the address is taken, or a file of keys or certificates cannot be read.
    """
    if settings.tls_key is not None:
        _check_key(settings.tls_key)
    with server_logs(settings.log_format):
        return _serve(settings)


def _serve(settings: ServerSettings) -> int:
    keys = read_keys(settings)
    sock = open_socket(settings.host, settings.port)
    scheme = "http" if settings.tls_cert is None else "https"
    host, port = sock.getsockname()[:2]
    url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
    names = ", ".join(model.name for model in settings.models)
    log.info("listening on %s", url, extra={"facts": {"url": url, "models": names, "pid": os.getpid()}})
    if not keys and host not in ("127.0.0.1", "::1"):
        log.warning(
            "everybody who reaches this address can use the models: name keys (api_key_file) to change that"
        )
    if settings.workers > 1:
        return _supervise(settings, sock)
    return run_server(settings, sock)


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; `::` takes clients of IPv6 and IPv4.

    Raises: ConfigError, where the address is taken or not of this machine.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = host == "::" and socket.has_dualstack_ipv6()  # clients of IPv4, too
        return socket.create_server((host, port), family=family, backlog=_BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigError(
            "the server cannot listen here",
            where=f"{host}:{port}",
            received=error.strerror or error,
            fix="choose another --port, or end what uses it",
        ) from None


def run_server(settings: ServerSettings, sock: socket.socket, opens_first: bool = False) -> int:
    """Serve in this process, see `Server`; returns the exit status."""
    keep_memory()
    sys.setswitchinterval(_SWITCH)
    app = create_app(settings, on_failure=lambda error: server.fail(error))
    config = uvicorn.Config(
        app,
        http=connection_class(settings.limits.read_seconds, app.state.admission.refuse_early),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=math.ceil(settings.limits.idle_seconds),
        limit_concurrency=settings.limits.connections,
        backlog=_BACKLOG,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    try:
        config.load()
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            "the certificate or its key cannot be read",
            where=f"{settings.tls_cert}, {settings.tls_key}",
            received=error,
            allowed="PEM files that belong together",
        ) from None
    server = Server(config, app.state.store, opens_first)
    server.run(sockets=[sock])
    for error in server.failures:
        if not isinstance(error, OarError):
            raise error
        log.error("a model cannot be opened: %s", error)
    return _FAILED if server.failures else 0


def _check_key(path: Path) -> None:
    """Raises: ConfigError, where the key needs a password: OpenSSL would ask a terminal, and containers have none."""
    with contextlib.suppress(OSError):  # which is said where it is loaded
        if b"ENCRYPTED" in path.read_bytes():
            raise ConfigError(
                "the key needs a password, which the server cannot ask for",
                where=path,
                allowed="a PEM file without one, which only the server's user may read",
                fix=f"openssl pkey -in {path} -out plain.pem",
            )


# -- several processes -------------------------------------------------------------------------------------------------


def _work(settings: ServerSettings, sock: socket.socket, opens_first: bool) -> None:
    end_with_parent()  # else it would keep the port
    set_up_logs(settings.log_format)
    raise SystemExit(run_server(settings, sock, opens_first))


@dataclass
class Restart:
    """When another worker may take the place of one: at once after a minute, else after a pause that grows from 1 to 30
    seconds, since what ended it may end the next one, too, such as a lack of memory.

    Attributes:
        began: When the worker was started, in seconds of `time.monotonic`.
        pause: After which it was started.
    """

    began: float
    pause: float = 0.0
    _due: float | None = None

    def is_early(self, now: float) -> bool:
        """Whether a worker that is seen to have ended is not to be started yet."""
        if self._due is None:
            self.pause = 0.0 if now - self.began >= _LONG else min(max(1.0, 2 * self.pause), _LONGEST_PAUSE)
            self._due = now + self.pause
        return now < self._due

    def note_start(self, now: float) -> None:
        """Another one was started."""
        self.began, self._due = now, None


def _supervise(settings: ServerSettings, sock: socket.socket) -> int:
    """Keep so many workers alive; one that cannot start ends all."""
    stopping = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    context = multiprocessing.get_context("spawn")
    start: Callable[[bool], BaseProcess] = functools.partial(_start, context, settings, sock)
    status = 0
    with scratch_folder("oar-metrics-") as folder:
        os.environ[SHARED] = str(folder)
        # The first one answers /healthz at once; others would refuse what it could answer already.
        workers = [start(number > 0) for number in range(settings.workers)]
        restarts = [Restart(time.monotonic()) for _ in workers]
        try:
            while not stopping.wait(_LOOK):
                for number, worker in enumerate(workers):
                    if worker.is_alive():
                        continue
                    multiprocess.mark_process_dead(worker.pid, str(folder))
                    if worker.exitcode == _FAILED:
                        status = _FAILED
                        stopping.set()
                        break
                    if not restarts[number].is_early(time.monotonic()):
                        log.error("a worker ended with status %s; another one begins", worker.exitcode)
                        workers[number] = start(True)
                        restarts[number].note_start(time.monotonic())
        finally:
            sock.close()
            for worker in workers:
                with contextlib.suppress(OSError):
                    worker.terminate()
            for worker in workers:
                worker.join()
            del os.environ[SHARED]
            for number, handler in before.items():
                signal.signal(number, handler)
    return status


def _start(
    context: multiprocessing.context.SpawnContext,
    settings: ServerSettings,
    sock: socket.socket,
    opens_first: bool,
) -> BaseProcess:
    worker = context.Process(target=_work, args=(settings, sock, opens_first), name="oar-worker")
    worker.start()
    return worker
