"""paddle.distributed for the processes that `oar launch` started; alone, for one that uses all its devices.

Groups and collectives work among processes, shard_tensor over the devices of all of them. There are no parameter
servers: tables lie in the workers (fleet/servers.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle.distributed import fleet as fleet
from framework.paddle.distributed import sharding as sharding
from framework.paddle.distributed.collective import Group as Group
from framework.paddle.distributed.collective import ReduceOp as ReduceOp
from framework.paddle.distributed.collective import all_gather as all_gather
from framework.paddle.distributed.collective import all_gather_object as all_gather_object
from framework.paddle.distributed.collective import all_reduce as all_reduce
from framework.paddle.distributed.collective import alltoall as alltoall
from framework.paddle.distributed.collective import alltoall_single as alltoall_single
from framework.paddle.distributed.collective import barrier as barrier
from framework.paddle.distributed.collective import broadcast as broadcast
from framework.paddle.distributed.collective import broadcast_object_list as broadcast_object_list
from framework.paddle.distributed.collective import gather as gather
from framework.paddle.distributed.collective import get_backend as get_backend
from framework.paddle.distributed.collective import get_group as get_group
from framework.paddle.distributed.collective import gloo_barrier as gloo_barrier
from framework.paddle.distributed.collective import gloo_init_parallel_env as gloo_init_parallel_env
from framework.paddle.distributed.collective import gloo_release as gloo_release
from framework.paddle.distributed.collective import irecv as irecv
from framework.paddle.distributed.collective import isend as isend
from framework.paddle.distributed.collective import new_group as new_group
from framework.paddle.distributed.collective import recv as recv
from framework.paddle.distributed.collective import reduce as reduce
from framework.paddle.distributed.collective import reduce_scatter as reduce_scatter
from framework.paddle.distributed.collective import scatter as scatter
from framework.paddle.distributed.collective import scatter_object_list as scatter_object_list
from framework.paddle.distributed.collective import send as send
from framework.paddle.distributed.collective import wait as wait
from framework.paddle.distributed.data_sets import InMemoryDataset as InMemoryDataset
from framework.paddle.distributed.data_sets import QueueDataset as QueueDataset
from framework.paddle.distributed.entry_attr import CountFilterEntry as CountFilterEntry
from framework.paddle.distributed.entry_attr import ProbabilityEntry as ProbabilityEntry
from framework.paddle.distributed.entry_attr import ShowClickEntry as ShowClickEntry
from framework.paddle.distributed.env import ParallelEnv as ParallelEnv
from framework.paddle.distributed.env import destroy_process_group as destroy_process_group
from framework.paddle.distributed.env import get_rank as get_rank
from framework.paddle.distributed.env import get_world_size as get_world_size
from framework.paddle.distributed.env import init_parallel_env as init_parallel_env
from framework.paddle.distributed.env import is_available as is_available
from framework.paddle.distributed.env import is_initialized as is_initialized
from framework.paddle.distributed.env import refuse
from framework.paddle.distributed.launch.main import launch as launch
from framework.paddle.distributed.mesh import Partial as Partial
from framework.paddle.distributed.mesh import Placement as Placement
from framework.paddle.distributed.mesh import ProcessMesh as ProcessMesh
from framework.paddle.distributed.mesh import ReduceType as ReduceType
from framework.paddle.distributed.mesh import Replicate as Replicate
from framework.paddle.distributed.mesh import Shard as Shard
from framework.paddle.distributed.mesh import dtensor_from_fn as dtensor_from_fn
from framework.paddle.distributed.mesh import reshard as reshard
from framework.paddle.distributed.mesh import shard_layer as shard_layer
from framework.paddle.distributed.mesh import shard_optimizer as shard_optimizer
from framework.paddle.distributed.mesh import shard_tensor as shard_tensor
from framework.paddle.distributed.parallel import DataParallel as DataParallel
from framework.paddle.distributed.parallel import ParallelMode as ParallelMode
from framework.paddle.distributed.parallel import spawn as spawn
from framework.paddle.distributed.point_to_point import P2POp as P2POp
from framework.paddle.distributed.point_to_point import batch_isend_irecv as batch_isend_irecv

_STATE_FILE = "0_0.distcp.pdparams"
_PROGRAMS = ("DistAttr", "Strategy", "to_static", "split")


def save_state_dict(
    state_dict: dict[str, object], path: str, process_group: Group | None = None, coordinator_rank: int = 0
) -> None:
    """Write a state into a folder, whole: what is sharded is brought together."""
    from framework import paddle

    folder = Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    paddle.save(state_dict, str(folder / _STATE_FILE))


def load_state_dict(
    state_dict: dict[str, Any], path: str, process_group: Group | None = None, coordinator_rank: int = 0
) -> None:
    """Fill the Tensors of `state_dict` from what `save_state_dict` wrote; they stay sharded as they are."""
    import jax

    from framework import paddle

    saved = paddle.load(str(Path(path) / _STATE_FILE))
    for name, tensor in state_dict.items():
        tensor._value = jax.device_put(paddle.to_tensor(saved[name])._value, tensor._value.sharding)


def _refusing(name: str) -> Callable[..., NoReturn]:
    def call(*args: object, **kwargs: object) -> NoReturn:
        refuse(name, "shard_tensor and shard_layer place what paddle.jit.to_static compiles")

    return call


if not TYPE_CHECKING:
    _resolve = _resolver(__name__)

    def __getattr__(name: str) -> object:
        if name in _PROGRAMS:
            return _refusing(name)
        return _resolve(name)
