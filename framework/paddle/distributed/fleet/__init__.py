"""paddle.distributed.fleet: `init`, `distributed_model`, `distributed_optimizer` for the processes of `oar launch`.

Parameter servers have no counterpart: tables lie in the workers, and what is said to servers does nothing (servers.py).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, cast

import numpy as np

from framework.core.process_state import state
from framework.distributed import collectives
from framework.distributed.collectives import Reduction
from framework.paddle._kernel.arguments import TensorLike
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.x64 import x64
from framework.paddle.distributed import env
from framework.paddle.distributed.fleet import servers
from framework.paddle.distributed.fleet import utils as utils
from framework.paddle.distributed.fleet.data_generator import DataGenerator as DataGenerator
from framework.paddle.distributed.fleet.data_generator import MultiSlotDataGenerator as MultiSlotDataGenerator
from framework.paddle.distributed.fleet.data_generator import (
    MultiSlotStringDataGenerator as MultiSlotStringDataGenerator,
)
from framework.paddle.distributed.fleet.strategy import DistributedStrategy as DistributedStrategy
from framework.paddle.distributed.fleet.topology import CommunicateTopology as CommunicateTopology
from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup as HybridCommunicateGroup
from framework.paddle.distributed.fleet.topology import current_groups
from framework.paddle.distributed.parallel import DataParallel
from framework.paddle.nn.layer import Layer
from framework.paddle.static.program import default_main_program, in_dynamic_mode

if TYPE_CHECKING:
    from framework.paddle.amp.grad_scaler import GradScaler
    from framework.paddle.optimizer.base import Optimizer

log = logging.getLogger("oar")

_SERVERS = (
    *("check_save_pre_patch_done", "get_fl_client", "init_coordinator", "load_inference_model"),
    *("load_one_table", "make_fl_strategy", "minimize", "save_cache_model", "save_cache_table"),
    *("save_dense_params", "save_one_table", "collective_perf"),
)


class Role:
    """What a process does."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4
    COORDINATOR = 5


class PaddleCloudRoleMaker:
    """Reads roles from the environment; here each process is a worker."""

    def __init__(self, is_collective: bool = False, **kwargs: object) -> None:
        self._is_collective = is_collective

    def to_string(self) -> str:
        return f"role: WORKER, rank {env.get_rank()} of {env.get_world_size()}"


class UserDefinedRoleMaker(PaddleCloudRoleMaker):
    """Roles that a program names."""

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, **kwargs: object) -> None:
        super().__init__(is_collective, **kwargs)


class UtilBase:
    """Helpers among workers."""

    def all_reduce(self, input: TensorLike, mode: str = "sum", comm_world: str = "worker") -> TensorLike:
        """The sum, max or min over all workers: a number of a number, else an array.

        Raises:
            ShapeError: another mode.
        """
        if mode not in ("sum", "max", "min"):
            raise ShapeError(
                "unknown reduction",
                where="fleet.util.all_reduce",
                received=repr(mode),
                allowed="sum, max, min",
            )
        with x64():
            total = np.asarray(collectives.all_reduce(np.asarray(input), cast(Reduction, mode)))
        return total if np.ndim(input) else total.item()  # type: ignore[return-value]

    def all_gather(self, input: TensorLike, comm_world: str = "worker") -> list[TensorLike]:
        """What each worker has, in the order of ranks."""
        return cast("list[TensorLike]", collectives.all_gather_object(input))

    def barrier(self, comm_world: str = "worker") -> None:
        collectives.barrier()

    def get_file_shard(self, files: list[str]) -> list[str]:
        """The files that this worker reads: a run of them, the first workers one more where they do not divide."""
        rank, world = env.get_rank(), env.get_world_size()
        small, more = divmod(len(files), world)
        start = rank * small + min(rank, more)
        return list(files[start : start + small + (rank < more)])

    def print_on_rank(self, message: str, rank_id: int) -> None:
        if rank_id == env.get_rank():
            print(message)


class Fleet:
    """The state of `fleet.init`."""

    def __init__(self) -> None:
        self._strategy = DistributedStrategy()
        self._role_maker: object = None  # what `init` was given
        self._runtime_handle = None  # Paddle's connection to its servers, of which there are none
        self.serves = False  # whether the program is written for parameter servers

    def init(
        self,
        role_maker: object = None,
        is_collective: bool = False,
        strategy: DistributedStrategy | None = None,
        log_level: int | str = "INFO",
    ) -> Fleet:
        """Begin: lay the processes out as `hybrid_configs` of the strategy say.

        Raises:
            DeviceError: its degrees do not make up the processes that there are.
        """
        self._role_maker = role_maker or PaddleCloudRoleMaker(is_collective)
        self.serves = not (is_collective or getattr(role_maker, "_is_collective", False))
        if self.serves and servers.is_server():
            return self  # it ends when its program calls run_server
        env.init_parallel_env()
        self._strategy = strategy or DistributedStrategy()
        state.hybrid_groups = HybridCommunicateGroup(CommunicateTopology.of(self._strategy.hybrid_configs))
        return self

    def distributed_model(self, model: Layer) -> Layer:
        """The model in the wrapper that its kind of parallelism wants: PipelineParallel of a PipelineLayer,
        TensorParallel, or DataParallel."""
        from framework.paddle.distributed.fleet.meta_parallel.parallel_layers.pp_layers import PipelineLayer
        from framework.paddle.distributed.fleet.meta_parallel.pipeline_parallel import PipelineParallel
        from framework.paddle.distributed.fleet.meta_parallel.tensor_parallel import TensorParallel

        groups = current_groups()
        if isinstance(model, PipelineLayer) and groups is not None:
            return PipelineParallel(model, groups, self._strategy)
        if groups is not None and groups.get_parallel_mode() in (1, 3):
            return TensorParallel(model, groups)
        if isinstance(model, DataParallel):
            return model
        return DataParallel(model, find_unused_parameters=bool(self._strategy.find_unused_parameters))

    def distributed_optimizer(self, optimizer: Optimizer, strategy: object = None) -> Any:
        """The optimizer; of a divided model with the norm of all its parts, of a sharding group with divided state."""
        from framework.paddle.distributed.fleet.hybrid_optimizer import HybridParallelOptimizer

        if self.serves and not in_dynamic_mode():
            settings = cast("DistributedStrategy", strategy or self._strategy)
            default_main_program().server_run = servers.ServerRun(settings)
            return optimizer
        groups = current_groups()
        if groups is None or groups.get_parallel_mode() == 0:
            return optimizer
        return HybridParallelOptimizer(optimizer, groups)

    def get_hybrid_communicate_group(self) -> HybridCommunicateGroup:
        groups = current_groups()
        if groups is None:
            raise RuntimeError("call fleet.init first")
        return groups

    def worker_index(self) -> int:
        return env.get_rank()

    def worker_num(self) -> int:
        return env.get_world_size()

    def is_first_worker(self) -> bool:
        return env.get_rank() == 0

    def is_worker(self) -> bool:
        return not self.is_server()

    def is_server(self) -> bool:
        return servers.is_server()

    def is_coordinator(self) -> bool:
        return False

    def barrier_worker(self) -> None:
        collectives.barrier()

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
        return env.ParallelEnv().local_rank

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
run_server = servers.run_server
init_server = servers.init_server
save_persistables = servers.save_persistables
save_inference_model = servers.save_inference_model
load_model = servers.load_model
init_worker = stop_worker = shrink = print_table_stat = set_date = servers.do_nothing


def distributed_scaler(scaler: GradScaler) -> GradScaler:
    """The scaler as it is: gradients are averaged before it looks at them, so that all workers see the same."""
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
