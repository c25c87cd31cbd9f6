"""DataParallel, spawn and launch."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from framework.core.errors import DeviceError
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.distributed import parallel_helper as parallel_helper
from framework.paddle.distributed.collective import Group
from framework.paddle.distributed.env import get_world_size, init_parallel_env
from framework.paddle.distributed.gradients import (
    average_gradients,
    is_shared,
    synchronize_parameters,
    watch_backward,
)
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from collections import OrderedDict


class ParallelMode:
    """Ways of splitting work."""

    DATA_PARALLEL = 0
    TENSOR_PARALLEL = 1
    PIPELINE_PARALLEL = 2
    SHARDING_PARALLEL = 3
    SEGMENT_PARALLEL = 4


class WrappedLayer(Layer):
    """A layer in `_layers` that is run on several processes; state and parameters are those of the layer, without a
    prefix of their own."""

    _layers: Layer

    def forward(self, *inputs: object, **kwargs: object) -> Any:
        return self._layers(*inputs, **kwargs)

    def state_dict(
        self,
        destination: Any = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
        use_hook: bool = True,
    ) -> OrderedDict[str, Tensor]:
        return self._layers.state_dict(destination, include_sublayers, structured_name_prefix, use_hook)

    def set_state_dict(
        self, state_dict: Mapping[str, object], use_structured_name: bool = True
    ) -> tuple[list[str], list[str]]:
        return self._layers.set_state_dict(state_dict, use_structured_name)

    set_dict = load_dict = set_state_dict


class DataParallel(WrappedLayer):
    """A layer whose gradients are averaged over all processes in `backward`; it starts with the values of process 0.

    `comm_buffer_size` and `last_comm_buffer_size` steer buffers of the exchange and change nothing here: gradients are
    exchanged together when all of them are known. With `find_unused_parameters` those that a process has not used count
    as zeros.
    """

    def __init__(
        self,
        layers: Layer,
        strategy: object = None,
        comm_buffer_size: int = 25,
        last_comm_buffer_size: int = 1,
        find_unused_parameters: bool = False,
        group: Group | None = None,
    ) -> None:
        super().__init__(f"{layers.full_name()}_data_parallel")
        self._layers = layers
        self.find_unused_parameters, self.group = find_unused_parameters, group
        self._exchanges = True
        if get_world_size(group) > 1:
            synchronize_parameters(layers, group)
            watch_backward(self)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block gradients are not exchanged; the next backward outside of it exchanges what they have come
        to."""
        before, self._exchanges = self._exchanges, False
        try:
            yield
        finally:
            self._exchanges = before

    def after_backward(self, leaves: Sequence[Tensor]) -> None:
        """Exchange gradients, where a backward has reached parameters of this layer."""
        reached = {id(leaf) for leaf in leaves}
        if self._exchanges and any(id(parameter) in reached for parameter in self._layers.parameters()):
            self.apply_collective_grads()

    def scale_loss(self, loss: Tensor) -> Tensor:
        """The loss as it is."""
        return loss

    def apply_collective_grads(self) -> None:
        """Average the gradients of all parameters over the processes."""
        if get_world_size(self.group) > 1:
            parameters = filter(is_shared, self._layers.parameters())
            average_gradients(parameters, self.group, fill=self.find_unused_parameters)

    def init_reducer(self) -> None:
        """Nothing to set up."""


def sync_params_buffers(
    model: Layer,
    comm_group: Group | None = None,
    src_rank: int = 0,
    is_model_parallel: bool = False,
    fuse_params: bool = True,
) -> None:
    """Give all processes the parameters and buffers of process `src_rank`, but for those that `no_sync` marks and, with
    `is_model_parallel`, those that are divided over processes. `fuse_params` steers buffers of the exchange and changes
    nothing here."""
    if get_world_size(comm_group) > 1:
        synchronize_parameters(model, comm_group, src_rank, whole=is_model_parallel)


_SPAWN_OPTIONS = frozenset(
    (
        *("start_method", "ips", "gpus", "xpus", "print_config", "backend"),
        *("selected_devices", "started_port", "cluster_node_ips", "node_ip", "use_paddlecloud"),
    )
)
_BACKENDS = ("nccl", "gloo", "bkcl", "auto", "heter", "xccl")


def spawn(
    func: Callable[..., object],
    args: tuple[object, ...] = (),
    nprocs: int = -1,
    join: bool = True,
    daemon: bool = False,
    **options: object,
) -> None:
    """Run `func(*args)` in this process, which uses all devices.

    Raises:
        ValueError: there is no such option or backend.
        DeviceError: more than one process is asked for.
    """
    if unknown := sorted(set(options) - _SPAWN_OPTIONS):
        raise ValueError(
            f"The config option ({unknown[0]}) of `paddle.distributed.spawn` is not supported. Allowed: "
            f"{', '.join(sorted(_SPAWN_OPTIONS))}."
        )
    if (backend := options.get("backend", "auto")) not in _BACKENDS:
        raise ValueError(
            f"paddle.distributed initialize error, backend argument can only be one of {_BACKENDS}, but got {backend}"
        )
    if nprocs > 1:
        raise DeviceError(
            "processes are started beside each other by the launcher",
            where="paddle.distributed.spawn",
            received=f"nprocs {nprocs}",
            allowed="-1, 0 or 1",
            fix=f"oar launch --nproc_per_node {nprocs} SCRIPT.py, in which spawn(func) runs func in each process",
        )
    init_parallel_env()
    func(*args)


_complete(__name__)
