"""paddle.distributed.rpc: call functions of workers by name, in a world of one process.

Among several processes there are collectives (`paddle.distributed.all_gather_object`), not calls: a call would have to
wait for a collective that the other process runs.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

from framework.core.errors import DeviceError
from framework.core.process_state import state
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.distributed.env import get_rank, get_world_size

__all__ = [
    "get_all_worker_infos",
    "get_current_worker_info",
    "get_worker_info",
    "init_rpc",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]


@dataclass(frozen=True)
class WorkerInfo:
    """A worker: its name, its number and its address."""

    name: str
    rank: int
    ip: str
    port: int


@dataclass(frozen=True)
class _Worker:
    info: WorkerInfo
    threads: ThreadPoolExecutor


class FutureWrapper:
    """A call that runs; `wait` gives what it returns, or raises what it raised."""

    def __init__(self, future: Future[object], timeout: float | None) -> None:
        self._future, self._timeout = future, timeout

    def wait(self) -> object:
        return self._future.result(self._timeout)


def _worker() -> _Worker:
    """Raises: RuntimeError, before `init_rpc`."""
    if state.rpc_worker is None:
        raise RuntimeError("paddle.distributed.rpc: call init_rpc first")
    return cast(_Worker, state.rpc_worker)


def init_rpc(
    name: str, rank: int | None = None, world_size: int | None = None, master_endpoint: str | None = None
) -> None:
    """Let this process be called by this name.

    Raises:
        DeviceError: the world has more than one process.
    """
    size = get_world_size() if world_size is None else world_size
    if size != 1:
        raise DeviceError(
            "calls between processes have no counterpart",
            where="paddle.distributed.rpc.init_rpc",
            received=f"world_size {size}",
            allowed="1",
            fix="paddle.distributed.all_gather_object, broadcast_object_list or scatter_object_list in all processes",
        )
    address, _, port = (master_endpoint or "127.0.0.1:0").rpartition(":")
    info = WorkerInfo(name, get_rank() if rank is None else rank, address, int(port))
    state.rpc_worker = _Worker(info, ThreadPoolExecutor(8, "paddle.distributed.rpc"))


def rpc_async(
    to: str,
    fn: Callable[..., object],
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    timeout: float = -1,
) -> FutureWrapper:
    """Begin `fn(*args, **kwargs)` in the worker `to`, with copies of the arguments.

    Args:
        timeout: Seconds that `wait` waits, where above 0.

    Raises:
        RuntimeError: there is no such worker.
    """
    get_worker_info(to)
    arguments = copy.deepcopy((tuple(args or ()), dict(kwargs or {})))
    future = _worker().threads.submit(fn, *arguments[0], **arguments[1])
    return FutureWrapper(future, timeout if timeout > 0 else None)


def rpc_sync(
    to: str,
    fn: Callable[..., object],
    args: Sequence[object] | None = None,
    kwargs: Mapping[str, object] | None = None,
    timeout: float = -1,
) -> object:
    """What `fn(*args, **kwargs)` returns in the worker `to`. Raises: RuntimeError: there is no such worker."""
    return rpc_async(to, fn, args, kwargs, timeout).wait()


def shutdown() -> None:
    """Wait for all calls, and take no more. Raises: RuntimeError, before `init_rpc`."""
    _worker().threads.shutdown()
    state.rpc_worker = None


def get_worker_info(name: str) -> WorkerInfo:
    """The worker of this name. Raises: RuntimeError: there is none."""
    if (info := _worker().info).name != name:
        raise RuntimeError(f"paddle.distributed.rpc: there is no worker {name!r}, only {info.name!r}")
    return info


def get_all_worker_infos() -> list[WorkerInfo]:
    """All workers."""
    return [_worker().info]


def get_current_worker_info() -> WorkerInfo:
    """This worker."""
    return _worker().info


_complete(__name__)
