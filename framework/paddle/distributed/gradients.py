"""What data-parallel training exchanges: the start values of parameters, and gradients after each backward."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

import jax
import jax.numpy as jnp

from framework.core.process_state import state
from framework.distributed import collectives
from framework.paddle._kernel.tape import BackwardWatcher
from framework.paddle._kernel.tensor import Parameter, Tensor, wrap
from framework.paddle._kernel.x64 import x64
from framework.paddle.distributed.collective import Group, broadcast, get_group
from framework.paddle.nn.layer import Layer


def watch_backward(watcher: BackwardWatcher) -> None:
    """Call `watcher.after_backward()` after each backward, as long as somebody holds the watcher."""
    state.backward_watchers.append(weakref.ref(watcher))


def is_shared(tensor: Tensor) -> bool:
    """Whether processes keep a parameter alike: `no_sync` marks those of experts, which each process has of its own."""
    return not getattr(tensor, "no_sync", False)


def synchronize_parameters(
    layer: Layer, group: Group | None = None, source: int | None = None, whole: bool = False
) -> None:
    """Give all processes the parameters and buffers of process `source`, by default the first of the group. With
    `whole` those that are divided over processes (`is_distributed`) keep their values."""
    if source is None:
        source = (group or get_group(0)).ranks[0]  # type: ignore[union-attr]
    for tensor in (*layer.parameters(), *layer.buffers()):
        if is_shared(tensor) and not (whole and getattr(tensor, "is_distributed", False)):
            broadcast(tensor, source, group)


@jax.jit
def _join(arrays: list[jax.Array]) -> jax.Array:
    return jnp.concatenate([array.ravel() for array in arrays])


def average_gradients(
    parameters: Iterable[Parameter], group: Group | None = None, fill: bool = False, average: bool = True
) -> None:
    """Replace the gradients of parameters by their means (or sums) over the processes.

    They travel as one vector of each type. Processes must have gradients of the same parameters, or `fill` those that
    are missing with zeros.
    """
    ranks = tuple((group or get_group(0)).ranks)  # type: ignore[union-attr]
    by_type: dict[str, list[Parameter]] = {}
    for parameter in parameters:
        if parameter.stop_gradient or (parameter._grad is None and not fill):
            continue
        if parameter._grad is None:
            parameter._grad = wrap(jnp.zeros_like(parameter._value))
        by_type.setdefault(str(parameter._grad._value.dtype), []).append(parameter)
    with x64():
        for _, group_of in sorted(by_type.items()):
            joined = _join([parameter._grad._value for parameter in group_of])  # type: ignore[union-attr]
            total = collectives.all_reduce(joined, "avg" if average else "sum", ranks)
            start = 0
            for parameter in group_of:
                gradient = parameter._grad
                assert gradient is not None
                size = gradient._value.size
                gradient._value = total[start : start + size].reshape(gradient._value.shape)
                start += size
