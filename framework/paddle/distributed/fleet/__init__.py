"""paddle.distributed.fleet for a world of one process: `init`, `distributed_model`, `distributed_optimizer`.

Parameter servers have no counterpart; their names raise an error that says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.distributed import env
from framework.paddle.distributed.fleet import utils as utils
from framework.paddle.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy
from framework.paddle.distributed.fleet.topology import CommunicateTopology as CommunicateTopology
from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup as HybridCommunicateGroup
from framework.paddle.distributed.parallel import DataParallel
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle.amp.grad_scaler import GradScaler
    from framework.paddle.optimizer.base import Optimizer

log = logging.getLogger("oar")

_SERVERS = (
    *("MultiSlotDataGenerator", "MultiSlotStringDataGenerator", "check_save_pre_patch_done", "get_fl_client"),
    *("init_coordinator", "init_server", "init_worker", "load_inference_model", "load_model"),
    *("load_one_table", "make_fl_strategy", "minimize", "run_server", "save_cache_model", "save_cache_table"),
    *("save_dense_params", "save_inference_model", "save_one_table", "save_persistables", "shrink"),
    *("stop_worker", "collective_perf"),
)


class Role:
    """What a process does."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4
    COORDINATOR = 5


class PaddleCloudRoleMaker:
    """Reads roles from the environment; here the one process is a worker."""

    def __init__(self, is_collective: bool = False, **kwargs: object) -> None:
        self._is_collective = is_collective

    def to_string(self) -> str:
        return "role: WORKER, rank 0 of 1"


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """Roles that a program names."""

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, **kwargs: object) -> None:
        super().__init__(is_collective, **kwargs)


class UtilBase:
    """Helpers among workers."""

    def all_reduce(self, input: TensorLike, mode: str = "sum", comm_world: str = "worker") -> TensorLike:
        env.alone("fleet.util.all_reduce")
        return input

    def all_gather(self, input: TensorLike, comm_world: str = "worker") -> list[TensorLike]:
        env.alone("fleet.util.all_gather")
        return [input]

    def barrier(self, comm_world: str = "worker") -> None:
        env.alone("fleet.util.barrier")

    def get_file_shard(self, files: list[str]) -> list[str]:
        """The files that this worker reads: all."""
        env.alone("fleet.util.get_file_shard")
        return list(files)

    def print_on_rank(self, message: str, rank_id: int) -> None:
        if rank_id == env.get_rank():
            print(message)


class Fleet:
    """The state of `fleet.init`."""

    def __init__(self) -> None:
        self._strategy = DistributedStrategy()
        self._groups: HybridCommunicateGroup | None = None

    def init(
        self,
        role_maker: object = None,
        is_collective: bool = False,
        strategy: DistributedStrategy | None = None,
        log_level: int | str = "INFO",
    ) -> Fleet:
        """Begin. A strategy that wants more than one process is an error.

        Raises:
            DeviceError: as said.
        """
        env.init_parallel_env()
        self._strategy = strategy or DistributedStrategy()
        self._groups = HybridCommunicateGroup(CommunicateTopology.of(self._strategy.hybrid_configs))
        return self

    def distributed_model(self, model: Layer) -> Layer:
        """The model as DataParallel; a `PipelineLayer` or a model in parts is not there yet."""
        return model if isinstance(model, DataParallel) else DataParallel(model)

    def distributed_optimizer(self, optimizer: Optimizer, strategy: object = None) -> Optimizer:
        """The optimizer: with one process there is nothing to exchange."""
        return optimizer

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        if self._groups is None:
            raise RuntimeError("call fleet.init first")
        return self._groups

    def worker_index(self) -> int:
        return env.get_rank()

    def worker_num(self) -> int:
        return env.get_world_size()

    def is_first_worker(self) -> bool:
        return env.get_rank() == 0

    def is_worker(self) -> bool:
        return True

    def is_server(self) -> bool:
        return False

    def is_coordinator(self) -> bool:
        return False

    def barrier_worker(self) -> None:
        env.alone("fleet.barrier_worker")

    def all_reduce(self, input: TensorLike, mode: str = "sum") -> TensorLike:
        return util.all_reduce(input, mode)

    def worker_endpoints(self, to_string: bool = False) -> str | list[str]:
        return "" if to_string else []

    def server_endpoints(self, to_string: bool = False) -> str | list[str]:
        return "" if to_string else []

    def server_num(self) -> int:
        return 0

    def server_index(self) -> int:
        return 0

    def node_num(self) -> int:
        return 1

    def local_rank(self) -> int:
        return 0

    def local_device_ids(self) -> list[int]:
        return [env.ParallelEnv().device_id]

    def world_device_ids(self) -> list[list[int]]:
        return [self.local_device_ids()]


util = UtilBase()
fleet = Fleet()
init = fleet.init
distributed_model = fleet.distributed_model
distributed_optimizer = fleet.distributed_optimizer
get_hybrid_communicate_group = fleet.get_hybrid_communicate_group
worker_index = rank = fleet.worker_index
worker_num = nranks = world_size = fleet.worker_num
is_first_worker = fleet.is_first_worker
is_worker = fleet.is_worker
is_server = fleet.is_server
is_coordinator = fleet.is_coordinator
barrier_worker = fleet.barrier_worker
all_reduce = fleet.all_reduce
worker_endpoints = fleet.worker_endpoints
server_endpoints = fleet.server_endpoints
server_num = fleet.server_num
server_index = fleet.server_index
node_num = fleet.node_num
local_rank = rank_in_node = fleet.local_rank
local_device_ids = fleet.local_device_ids
world_device_ids = fleet.world_device_ids


def distributed_scaler(scaler: GradScaler) -> GradScaler:
    """The scaler as it is."""
    return scaler


def set_log_level(level: int | str) -> None:
    """Let the log show messages from this level on."""
    log.setLevel(level)


def get_log_level_code() -> int:
    """The number of the log's level."""
    return log.getEffectiveLevel()


def get_log_level_name() -> str:
    """The name of the log's level."""
    return logging.getLevelName(log.getEffectiveLevel())


def _refusing(name: str) -> Callable[..., NoReturn]:
    def call(*args: object, **kwargs: object) -> NoReturn:
        env.refuse(f"fleet.{name}", "there are no parameter servers; train with one process and its devices")

    return call


if not TYPE_CHECKING:
    _resolve = _resolver(__name__)

    def __getattr__(name: str) -> object:
        if name in _SERVERS:
            return _refusing(name)
        return _resolve(name)
