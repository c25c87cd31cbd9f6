"""The optimizer of a model that is divided among processes: clipping by a norm that all of them make up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax.numpy as jnp

from framework.distributed import collectives
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle.distributed.sharding import ShardedOptimizer
from framework.paddle.nn.clip import ClipGradByGlobalNorm

if TYPE_CHECKING:
    from framework.paddle.distributed.fleet.topology import HybridCommunicateGroup
    from framework.paddle.optimizer.base import Optimizer


class HybridParallelOptimizer:
    """An optimizer whose ClipGradByGlobalNorm takes the norm of all parts of the model; with a sharding group its state
    is divided among that. All else is the optimizer's."""

    def __init__(self, optimizer: Optimizer, hcg: HybridCommunicateGroup, strategy: object = None) -> None:
        self._groups = groups = hcg
        sharding = groups.get_sharding_parallel_group()
        self._inner_opt: Any = optimizer
        self._sharded = ShardedOptimizer(optimizer, sharding) if sharding.nranks > 1 else None
        axes = (groups.get_model_parallel_group(), groups.get_pipe_parallel_group())
        self._divided = any(axis.nranks > 1 for axis in axes)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner_opt, name)

    def step(self) -> None:
        """Clip by the norm of the whole model, then update."""
        if not self._divided:
            (self._sharded or self._inner_opt).step()
            return
        groups, clipped = self._inner_opt._groups(), []
        for group in groups:
            pairs = [(one, one.grad) for one in group["params"] if one.grad is not None]
            clip = group["grad_clip"]
            if isinstance(clip, ClipGradByGlobalNorm):
                pairs, clip = self._clip(pairs, clip.clip_norm), None
            clipped.append(({**group, "grad_clip": clip}, pairs))
        self._inner_opt._apply(clipped)

    def _clip(self, pairs: list[tuple[Parameter, Tensor]], limit: float) -> list[tuple[Parameter, Tensor]]:
        """Gradients scaled so that their norm over all processes that hold parts is at most `limit`."""
        model, pipe = self._groups.get_model_parallel_group(), self._groups.get_pipe_parallel_group()
        divided, whole = jnp.zeros(()), jnp.zeros(())
        for parameter, gradient in pairs:
            square = (gradient._value.astype(jnp.float32) ** 2).sum()
            if getattr(parameter, "is_distributed", False):
                divided += square
            elif parameter.is_firstly_shared:  # tied to a parameter of another stage
                whole += square
        if model.nranks > 1:  # what is not divided is the same on all of them
            divided = collectives.all_reduce(divided, "sum", tuple(model.ranks))
        total = divided + whole
        if pipe.nranks > 1:
            total = collectives.all_reduce(total, "sum", tuple(pipe.ranks))
        factor = limit / jnp.maximum(jnp.sqrt(total), limit)
        return [
            (parameter, wrap((gradient._value * factor).astype(gradient._value.dtype)))
            for parameter, gradient in pairs
        ]

    def minimize(self, loss: Tensor, *args: object, **kwargs: object) -> tuple[list, list]:
        """`backward`, `step`."""
        loss.backward()
        self.step()
        return [], []
