"""Training of a PipelineLayer: micro batches through the stages and their gradients back (GPipe, arXiv 1811.06965)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import jax.numpy as jnp

from framework.distributed import collectives
from framework.paddle._kernel.errors import ShapeError
from framework.paddle._kernel.tape import backward, no_grad
from framework.paddle._kernel.tensor import Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.distributed.collective import broadcast
from framework.paddle.distributed.env import get_rank
from framework.paddle.distributed.fleet.meta_parallel.parallel_layers.pp_layers import PipelineLayer
from framework.paddle.distributed.fleet.meta_parallel.tensor_parallel import (
    data_groups,
    synchronize_whole_parameters,
)
from framework.paddle.distributed.gradients import average_gradients
from framework.paddle.distributed.parallel import WrappedLayer

if TYPE_CHECKING:
    from framework.paddle.distributed.fleet.strategy import DistributedStrategy
    from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup

_WHERE = "fleet.meta_parallel.PipelineParallel"
_Message = tuple[
    list[tuple[tuple[int, ...], str, bool]], bool
]  # shape, type, whether it has a gradient; whether many


class PipelineParallel(WrappedLayer):
    """Runs a PipelineLayer on the processes of its stages.

    A batch is cut into `accumulate_steps` micro batches (`pipeline_configs` of the strategy). All go forward through
    the stages, then their gradients back, in one order on both sides of each link; gradients are the means over the
    micro batches. The first stage reads the inputs of `data`, the last one its labels.
    """

    def __init__(
        self, layers: PipelineLayer, hcg: HybridCommunicateGroup, strategy: DistributedStrategy
    ) -> None:
        super().__init__(f"{layers.full_name()}_pipeline_parallel")
        self._layers = layers
        self._stage, self._hcg = layers, hcg
        configs = strategy.pipeline_configs
        self.accumulate_steps = int(configs.get("accumulate_steps", 1))
        self.micro_batch_size = configs.get("micro_batch_size")
        self.num_stages, self.stage_id = hcg.get_pipe_parallel_world_size(), hcg.get_stage_id()
        self._ranks = hcg.get_pipe_parallel_group().ranks
        synchronize_whole_parameters(layers, hcg)

    def is_pipeline_first_stage(self) -> bool:
        return self.stage_id == 0

    def is_pipeline_last_stage(self) -> bool:
        return self.stage_id == self.num_stages - 1

    # -- training ---------------------------------------------------------------------------------------------------

    def train_batch(self, data: Any, optimizer: Any, lr_scheduler: Any = None, scaler: Any = None) -> Tensor:
        """One step with a batch (inputs, labels); the mean loss, on every process."""
        self._layers.train()
        loss = self.forward_backward_pipeline(data, scaler)
        if scaler is not None:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()
        optimizer.clear_grad()
        if lr_scheduler is not None:
            lr_scheduler.step()
        return loss

    def forward_backward_pipeline(self, data: Any, scaler: Any = None) -> Tensor:
        """The gradients of a batch in `grad` of the parameters; the mean loss."""
        received: list[Any] = []
        outputs: list[Any] = []
        total = None
        for micro in self._micro_batches(data):
            inputs, output = self._forward(micro, train=True)
            received.append(inputs)
            outputs.append(output)
            if self.is_pipeline_last_stage():
                total = output.detach() if total is None else total + output.detach()
        for inputs, output in zip(received, outputs, strict=True):
            if self.is_pipeline_last_stage():
                share = output / self.accumulate_steps
                (share if scaler is None else scaler.scale(share)).backward()
            else:
                self._backward(output)
            if not self.is_pipeline_first_stage():
                self._send([one.grad for one in _list(inputs) if _differentiable(one)], -1, many=True)
        self._stage.allreduce_shared_weight_gradients()
        for group in data_groups(self._hcg):
            average_gradients(self._layers.parameters(), group)
        return self._share_loss(total)

    def eval_batch(self, data: Any, compute_loss: bool = False) -> Any:
        """The mean loss of a batch, or the outputs of the last stage (None on the others), without gradients."""
        self._layers.eval()
        outputs = []
        with no_grad():
            for micro in self._micro_batches(data):
                outputs.append(self._forward(micro, train=compute_loss)[1])
        if not compute_loss:
            return outputs if self.is_pipeline_last_stage() else None
        total = sum(outputs[1:], outputs[0]) if self.is_pipeline_last_stage() else None
        return self._share_loss(total)

    def _share_loss(self, total: Tensor | None) -> Tensor:
        loss = wrap(jnp.zeros((), jnp.float32)) if total is None else total / self.accumulate_steps
        loss = wrap(loss._value.astype(jnp.float32).reshape(()))
        if self.num_stages > 1:
            broadcast(loss, self._ranks[-1], self._hcg.get_pipe_parallel_group())
        return loss

    # -- micro batches ------------------------------------------------------------------------------------------------

    def _micro_batches(self, data: Any) -> list[tuple[Any, Any]]:
        """(inputs, labels) of each micro batch; what a stage does not read may be None."""
        inputs, labels = data
        first, last = self.is_pipeline_first_stage(), self.is_pipeline_last_stage()
        left = self._cut(inputs) if first else [None] * self.accumulate_steps
        right = self._cut(labels) if last else [None] * self.accumulate_steps
        return list(zip(left, right, strict=True))

    def _cut(self, data: Any) -> list[Any]:
        """A Tensor, or a tuple of them, in `accumulate_steps` parts; lists are of parts already."""
        steps = self.accumulate_steps
        if isinstance(data, list) and len(data) == steps:
            return data
        if isinstance(data, (tuple, list)):
            return [tuple(parts) for parts in zip(*(self._cut(one) for one in data), strict=True)]
        if data.shape[0] % steps:
            raise ShapeError(
                "the batch cannot be cut into the micro batches",
                where=_WHERE,
                received=f"{data.shape[0]} samples, accumulate_steps {steps}",
                allowed=f"a multiple of {steps}",
            )
        size = data.shape[0] // steps
        return [data[start : start + size] for start in range(0, data.shape[0], size)]

    def _forward(self, micro: tuple[Any, Any], train: bool) -> tuple[Any, Any]:
        """(what came from the stage before, what goes to the next one; on the last stage the loss in training)."""
        inputs = micro[0] if self.is_pipeline_first_stage() else self._receive(-1)
        output = self._run_stage(inputs, micro[1], train)
        if not self.is_pipeline_last_stage():
            self._send(_list(output), 1, many=isinstance(output, tuple))
        return inputs, output

    def _run_stage(self, inputs: object, labels: object, train: bool) -> object:
        """The outputs of this stage; on the last one the loss in training."""
        output = self._layers(inputs)
        if self.is_pipeline_last_stage() and train:
            if self._stage._loss_fn is None:
                raise ShapeError(
                    "training needs a loss", where=_WHERE, received="loss_fn None", allowed="a function"
                )
            output = self._stage._loss_fn(output, labels)
            output = output if not output.shape else output.mean()
        return output

    def _forward_step(
        self,
        input_tensor: object,
        micro_dataset: Iterator[tuple[object, object]],
        chunk_id: int | None = None,
    ) -> object:
        """The outputs of this stage for the next micro batch, on the last one its loss. The first stage takes its input
        from `micro_dataset`, others are given it."""
        micro = next(micro_dataset)
        return self._run_stage(
            micro[0] if self.is_pipeline_first_stage() else input_tensor, micro[1], train=True
        )

    def _backward(self, output: Any) -> None:
        targets = [one for one in _list(output) if _differentiable(one)]
        gradients = self._receive(1)
        backward(targets, _list(gradients))

    # -- links ---------------------------------------------------------------------------------------------------------

    def _link(self, step: int) -> tuple[int, tuple[int, ...]]:
        other = self._ranks[self.stage_id + step]
        return other, tuple(sorted((other, get_rank())))

    def _send(self, tensors: list[Any], step: int, many: bool = False) -> None:
        """To the stage before (-1) or behind (1), with their shapes, which the last batch of an epoch may change."""
        _, pair = self._link(step)
        described = [(tuple(one.shape), str(one._value.dtype), _differentiable(one)) for one in tensors]
        collectives.all_gather_object((described, many), pair)
        with x64():
            for tensor in tensors:
                collectives.broadcast(tensor._value, get_rank(), pair)

    def _receive(self, step: int) -> Any:
        """What `_send` of that stage sends: a Tensor, or a tuple of them."""
        other, pair = self._link(step)
        described, many = cast(_Message, collectives.all_gather_object(None, pair)[pair.index(other)])
        tensors = []
        with x64():
            for shape, dtype, differentiable in described:
                tensor = wrap(collectives.broadcast(jnp.zeros(shape, dtype), other, pair))
                tensor.stop_gradient = not differentiable
                tensors.append(tensor)
        return tuple(tensors) if many else tensors[0]

    def forward(self, *inputs: object, **kwargs: object) -> Any:
        """Raises: RuntimeError: a batch is run by `train_batch` or `eval_batch`."""
        raise RuntimeError(
            "a pipeline runs batches: model.train_batch(data, optimizer), model.eval_batch(data)"
        )


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def _differentiable(tensor: Any) -> bool:
    return not tensor.stop_gradient
