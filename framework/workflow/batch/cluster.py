"""Ray: its modules, and a cluster to work on: one that runs, or one that is started here and ends with the work."""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import socket
from collections.abc import Iterator
from types import ModuleType

from framework.core.errors import ConfigError, MissingExtraError
from framework.core.process import cpu_count

log = logging.getLogger("oar")
EXTRA = "ray"
ADDRESS = "RAY_ADDRESS"
_ANSWERS = 10.0  # seconds in which a cluster takes a connection
_STARTS = 30  # seconds in which Ray gives its own processes up


def import_ray(module: str, purpose: str) -> ModuleType:
    """One of Ray's modules: "ray", "ray.serve", "ray.data". Raises: MissingExtraError."""
    # What Ray counts is sent to its makers unless somebody says no, or yes.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Replicas whose CPUs compute answer late how long their queue is: Ray's tenth of a second makes it ask again.
    os.environ.setdefault("RAY_SERVE_QUEUE_LENGTH_RESPONSE_DEADLINE_S", "1")
    # The proxy of a machine at work takes longer than five seconds to start, and is killed and started again.
    os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError("ray", EXTRA, purpose) from error


def _probe(address: str) -> None:
    """Raises: OSError, where nobody listens at HOST:PORT: Ray itself tries for five minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if colon and port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _ANSWERS).close()


@contextlib.contextmanager
def connect(address: str | None, purpose: str, cpus: float = 1.0) -> Iterator[ModuleType]:
    """The module `ray`, connected to a cluster until the block ends.

    Args:
        address: As `ray.init` takes it. None: RAY_ADDRESS of the environment, else a Ray is started here, which ends
            with the block.
        cpus: That the work reserves: a Ray that is started here has as many, whatever the machine has.

    Raises:
        MissingExtraError; ConfigError, where no cluster answers at the address, or none starts here.
    """
    ray = import_ray("ray", purpose)
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get(ADDRESS)
    is_local = address in (None, "", "local")
    try:
        if is_local:
            ray.init(
                "local",
                num_cpus=max(cpu_count(), -int(-cpus // 1)),
                include_dashboard=False,
                logging_level=logging.WARNING,
            )
        else:
            _probe(address)
            ray.init(address, logging_level=logging.WARNING)
    except Exception as error:  # a plain one where processes of Ray do not start in its time
        received = str(error).strip().splitlines()[0][:300] if str(error).strip() else type(error).__name__
        if is_local:
            raise ConfigError(
                "Ray does not start on this machine",
                received=received,
                allowed=f"a start within {_STARTS} s, which is no setting of Ray's",
                fix="try again with less at work here; the reasons are in /tmp/ray/session_latest/logs",
            ) from error
        raise ConfigError(
            "the cluster of Ray cannot be reached",
            where=address,
            received=received,
            allowed="auto, HOST:6379, ray://HOST:10001; or none, and Ray is started here",
            # Since 2.60 `ray start` asks for a token if the machine has one, and `ray.init` of an address sends none.
            fix="check the address, and that `ray start` ran there; RAY_AUTH_MODE=token in the environment where the "
            "cluster asks for the token of ~/.ray/auth_token",
        ) from error
    try:
        yield ray
    finally:
        ray.shutdown()
