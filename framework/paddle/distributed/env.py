"""Rank and world: the processes that `oar launch` started beside each other; without it there is one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

import jax

from framework import distributed as core
from framework.core.errors import ForeignNameError
from framework.core.process_state import state

if TYPE_CHECKING:
    from framework.paddle.distributed.collective import Group


def get_rank(group: Group | None = None) -> int:
    """The number of this process, in the group where one is given (-1: it is not in it)."""
    rank = jax.process_index()
    return rank if group is None else group.get_group_rank(rank)


def get_world_size(group: Group | None = None) -> int:
    """How many processes there are, in the group where one is given; one process may use many devices."""
    return jax.process_count() if group is None else group.nranks


def init_parallel_env() -> ParallelEnv:
    """Join the other processes; those that `oar launch` started have done so when `paddle` was imported."""
    core.init_parallel_env()
    state.parallel_started = True
    return ParallelEnv()


def is_initialized() -> bool:
    """Whether `init_parallel_env` was called."""
    return state.parallel_started


def is_available() -> bool:
    """True: the functions are there."""
    return True


def destroy_process_group(group: object = None) -> None:
    """Forget `init_parallel_env`."""
    state.parallel_started = False


class ParallelEnv:
    """Rank, world size and device of this process."""

    @property
    def rank(self) -> int:
        return get_rank()

    @property
    def world_size(self) -> int:
        return get_world_size()

    @property
    def local_rank(self) -> int:
        """The number of this process on its machine."""
        return int(os.environ.get("PADDLE_LOCAL_RANK") or get_rank())

    @property
    def device_id(self) -> int:
        return jax.local_devices()[0].id

    @property
    def device_type(self) -> str:
        return jax.local_devices()[0].platform

    @property
    def current_endpoint(self) -> str:
        return os.environ.get("PADDLE_CURRENT_ENDPOINT", "")

    @property
    def trainer_endpoints(self) -> list[str]:
        return os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",")

    @property
    def nrings(self) -> int:
        return 1

    @property
    def pg_timeout(self) -> int:
        return 1800

    nranks = world_size
    dev_id = device_id


def refuse(name: str, fix: str) -> NoReturn:
    """What has no counterpart here.

    Raises:
        ForeignNameError: always.
    """
    raise ForeignNameError(
        "this part of Paddle has no counterpart", where=f"paddle.distributed.{name}", fix=fix
    )
