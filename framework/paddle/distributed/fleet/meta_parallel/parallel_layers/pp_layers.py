"""Models as a list of layers of which each process builds a part: the stages of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from framework.paddle._kernel.errors import ShapeError
from framework.paddle.autograd import recompute
from framework.paddle.distributed.collective import Group, broadcast, new_group
from framework.paddle.distributed.env import get_rank
from framework.paddle.distributed.fleet.topology import current_groups
from framework.paddle.distributed.gradients import average_gradients
from framework.paddle.nn import LayerDict
from framework.paddle.nn.layer import Layer

if TYPE_CHECKING:
    from framework.paddle._kernel.tensor import Parameter
    from framework.paddle.distributed.fleet.topology import CommunicateTopology

_WHERE = "fleet.meta_parallel.PipelineLayer"


class LayerDesc:
    """A layer that is not made yet: its class and arguments."""

    def __init__(self, layer_func: Callable[..., Layer], *inputs: Any, **kwargs: Any) -> None:
        if not (isinstance(layer_func, type) and issubclass(layer_func, Layer)):
            raise TypeError("The input(layer_func) should be a derived class of Layer.")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self) -> Layer:
        return self.layer_func(*self.inputs, **self.kwargs)

    def __repr__(self) -> str:
        return f"LayerDesc({self.layer_func.__name__})"


class SharedLayerDesc(LayerDesc):
    """A layer that several stages have, with one parameter: such as an embedding that is the last product too.

    Args:
        key: Its name; layers of one key share `shared_weight_attr`.
        forward_func: `(layer, input) -> output` in the place of the layer's own forward.
    """

    def __init__(
        self,
        key: str,
        layer_func: Callable[..., Layer],
        forward_func: Callable[..., Any] | None = None,
        shared_weight_attr: str = "weight",
        *inputs: Any,
        **kwargs: Any,
    ) -> None:
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func, self.shared_weight_attr = key, forward_func, shared_weight_attr


def _bounds(layers: Sequence[Any], stages: int, method: str | Sequence[int]) -> list[int]:
    """Where the stages begin and end: stages + 1 numbers of layers. Raises: ShapeError."""
    if not isinstance(method, str):
        return _listed_bounds(list(method), len(layers), stages)
    if method.startswith("layer:"):
        pattern = re.compile(method.removeprefix("layer:"), re.IGNORECASE)
        weights = [int(bool(pattern.search(_class_name(one)))) for one in layers]
    elif method == "uniform":
        weights = [1] * len(layers)
    else:
        raise ShapeError(
            "unknown way of cutting",
            where=_WHERE,
            received=method,
            allowed="uniform, layer:CLASS, or a list of the layers that stages begin with",
        )
    total = sum(weights)
    if total < stages:
        raise ShapeError(
            "there are fewer layers than stages",
            where=_WHERE,
            received=f"{total} layers for {stages} stages ({method})",
            allowed=f"{stages} layers or more",
        )
    small, more = divmod(total, stages)
    # As Paddle cuts: uniform gives the last stages one more, the other way the last ones too.
    counts = [small + (1 if stage >= stages - more else 0) for stage in range(stages)]
    bounds, count = [0], 0
    for index, weight in enumerate(weights):
        count += weight
        if weight and len(bounds) < stages and count == counts[len(bounds) - 1]:
            bounds.append(index + 1)
            count = 0
    return [*bounds, len(layers)]


def _listed_bounds(bounds: list[int], layers: int, stages: int) -> list[int]:
    """Bounds that a program lists, the last one of which it may leave out."""
    whole = [*bounds, layers] if len(bounds) == stages else bounds
    if len(whole) != stages + 1 or whole[0] != 0 or whole[-1] != layers or sorted(whole) != whole:
        raise ShapeError(
            "the layers that stages begin with are one for each stage, from 0 on",
            where=_WHERE,
            received=f"seg_method {bounds} for {layers} layers in {stages} stages",
            allowed=f"{stages} rising numbers from 0 to {layers}",
        )
    return whole


def _class_name(layer: Any) -> str:
    if isinstance(layer, LayerDesc):
        return layer.layer_func.__name__
    return type(layer).__name__ if isinstance(layer, Layer) else getattr(layer, "__name__", "")


class PipelineLayer(Layer):
    """A model of layers, descriptions of layers and functions that run one after the other, of which each process makes
    those of its stage.

    Args:
        layers: LayerDesc, SharedLayerDesc, Layers and functions.
        num_stages: Of the pipeline; by default that of `topology`, else of `fleet.init`.
        loss_fn: `(output, labels) -> loss`, on the last stage.
        seg_method: "uniform", or "layer:CLASS": stages have the same number of layers whose class has this name; or a
            list of the layers that stages begin with.
        recompute_interval: So many layers compute their activations again in the backward pass; 0: none do.

    Raises:
        ShapeError: there are fewer layers than stages.
    """

    def __init__(
        self,
        layers: Sequence[Any],
        num_stages: int | None = None,
        topology: CommunicateTopology | None = None,
        loss_fn: Callable[..., Any] | None = None,
        seg_method: str | Sequence[int] = "uniform",
        recompute_interval: int = 0,
        recompute_ctx: object = None,
        num_virtual_pipeline_stages: int | None = None,
    ) -> None:
        super().__init__()
        groups = current_groups()
        world = topology.get_dim("pipe") if topology is not None else None
        if world is None and groups is not None:
            world = groups.get_pipe_parallel_world_size()
        stages = num_stages or world or 1
        if world is not None and stages != world:
            raise ShapeError(
                "the stages are not those of the processes", where=_WHERE, received=stages, allowed=str(world)
            )
        self._loss_fn, self._recompute_interval = loss_fn, recompute_interval
        self._layers_desc, self._num_stages = list(layers), stages
        self._stage_id = 0 if groups is None else groups.get_stage_id()
        self.segment_parts = _bounds(self._layers_desc, stages, seg_method)
        self.shared_layers = LayerDict()
        self._shared_groups: dict[str, Group] = {}
        self.run_function: list[Any] = []
        self._build()
        self._tie()

    def get_num_items(self) -> int:
        return len(self.run_function)

    def get_stage_from_index(self, layer_idx: int) -> int:
        """The stage of a layer by its place in the whole model."""
        return next(s for s in range(self._num_stages) if layer_idx < self.segment_parts[s + 1])

    def _build(self) -> None:
        start, end = self.segment_parts[self._stage_id : self._stage_id + 2]
        for index in range(start, end):
            described = self._layers_desc[index]
            if isinstance(described, SharedLayerDesc):
                if described.layer_name not in self.shared_layers:
                    self.shared_layers[described.layer_name] = described.build_layer()
                shared = self.shared_layers[described.layer_name]
                run = shared if described.forward_func is None else _bound(described.forward_func, shared)
                self.run_function.append(run)
            elif isinstance(described, (LayerDesc, Layer)):
                layer = described.build_layer() if isinstance(described, LayerDesc) else described
                self.add_sublayer(str(index), layer)
                self.run_function.append(layer)
            else:
                self.run_function.append(described)

    def _tie(self) -> None:
        """One group of processes for each shared layer that several stages have, with the values of the first one."""
        groups = current_groups()
        if self._num_stages == 1 or groups is None:
            return
        holders: dict[str, set[int]] = {}
        for index, described in enumerate(self._layers_desc):
            if isinstance(described, SharedLayerDesc):
                holders.setdefault(described.layer_name, set()).add(self.get_stage_from_index(index))
        pipes = groups.topology().get_comm_list("pipe")
        for key, stages in holders.items():
            for ranks in pipes:  # all processes make all groups, in one order
                group = new_group([ranks[stage] for stage in sorted(stages)])
                if get_rank() in group.ranks:
                    self._shared_groups[key] = group
                    parameter = self._shared_parameter(key)
                    broadcast(parameter, group.ranks[0], group)
                    parameter.is_firstly_shared = group.ranks[0] == get_rank()

    def _shared_parameter(self, key: str) -> Parameter:
        described = next(
            one for one in self._layers_desc if isinstance(one, SharedLayerDesc) and one.layer_name == key
        )
        return getattr(self.shared_layers[key], described.shared_weight_attr)

    def allreduce_shared_weight_gradients(self) -> None:
        """Sum the gradients of parameters that several stages have."""
        for key, group in self._shared_groups.items():
            average_gradients([self._shared_parameter(key)], group, fill=True, average=False)

    def forward(self, input: Any, chunk_id: int | None = None) -> Any:
        """The output of this stage: of one Tensor or a tuple of them."""
        step = self._recompute_interval
        if not step or not self.training:
            return _chain(self.run_function, input)
        for start in range(0, len(self.run_function), step):
            functions = self.run_function[start : start + step]
            arguments: tuple[Any, ...] = input if isinstance(input, tuple) else (input,)
            input = recompute(_packed(functions), *arguments)
        return input


def _bound(function: Callable[..., Any], layer: Layer) -> Callable[..., Any]:
    return lambda *inputs: function(layer, *inputs)


def _packed(functions: Sequence[Any]) -> Callable[..., Any]:
    def run(first: Any, *others: Any) -> Any:
        return _chain(functions, (first, *others) if others else first)

    return run


def _chain(functions: Sequence[Any], value: Any) -> Any:
    """Paddle gives a layer one argument, which may be a tuple."""
    for function in functions:
        value = function(value)
    return value
