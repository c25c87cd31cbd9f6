"""Rank and world. A program here is one process that uses all its devices; jax tells of others."""

from __future__ import annotations

import os
from typing import NoReturn

import jax

from framework.core.errors import DeviceError, ForeignNameError
from framework.core.process_state import state


def get_rank(group: object = None) -> int:
    """The number of this process."""
    return jax.process_index()


def get_world_size(group: object = None) -> int:
    """How many processes there are; one process may use many devices."""
    return jax.process_count()


def init_parallel_env() -> ParallelEnv:
    """Accepted: a program of one process needs nothing started."""
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

    local_rank = rank
    nranks = world_size
    dev_id = device_id


def alone(where: str) -> None:
    """Raise where the world has more than this process.

    Raises:
        DeviceError: with what to do instead.
    """
    if get_world_size() > 1:
        raise DeviceError(
            "Paddle's collectives work within one process so far",
            where=f"paddle.distributed.{where}",
            received=f"{get_world_size()} processes",
            fix="train with `oar train` on many processes; docs/paddle.md says what works where",
        )


def refuse(name: str, fix: str) -> NoReturn:
    """What has no counterpart here.

    Raises:
        ForeignNameError: always.
    """
    raise ForeignNameError(
        "this part of Paddle has no counterpart", where=f"paddle.distributed.{name}", fix=fix
    )
