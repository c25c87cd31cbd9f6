"""The schedule "one forward, one backward" of a pipeline: a micro batch goes back as soon as its loss is known.

Source: PipeDream-Flush, https://arxiv.org/abs/2006.09503, section 2.2. The devices idle as with GPipe, but one keeps
the inputs of at most 2 * devices - 1 micro batches, however many there are.

At tick t device s computes micro batch t - s forward and micro batch t - (2 (S - 1) - s) backward, where there are
such: the last device turns at once. The backward pass computes a stage's activations again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from framework.core.errors import ConfigError
from framework.core.types import PyTree
from framework.distributed.pipeline import AXIS, block_slots, cut, is_cut, make_stage, stack_parameters
from framework.nn.functional_core import GraphDef, graph_def
from framework.nn.layer import Layer
from framework.nn.mesh_scope import BlockPipeline

Arrays = dict[str, jax.Array]
Logged = tuple[
    PyTree, jax.Array
]  # any pytree of float scalars, and the weight of the micro batch, float32 []
MicroLoss = Callable[[Mapping[str, PyTree], Arrays, jax.Array, BlockPipeline], tuple[jax.Array, Logged]]
"""(parameters, micro batch, its number, what stands for the blocks) -> (loss, what is averaged besides)"""


class _Inputs(NamedTuple):
    graph: GraphDef
    x: jax.Array
    arguments: tuple


class _Captured(BaseException):
    """What the model gives its blocks. It ends the model's call, and is no error that a model could catch."""

    def __init__(self, inputs: _Inputs) -> None:
        super().__init__()
        self.inputs = inputs


def _capture(blocks: Sequence[Layer], x: jax.Array, arguments: tuple) -> jax.Array:
    raise _Captured(_Inputs(graph_def(blocks[0]), x, arguments))


class _Sums(NamedTuple):
    """What a device adds up over its ticks."""

    blocks: Arrays
    others: Arrays
    logged: PyTree


class _Carry(NamedTuple):
    x: jax.Array  # from the device before
    gradient: jax.Array  # from the device behind
    inputs: jax.Array  # of micro batches that have not gone back yet
    sums: _Sums


@dataclass(frozen=True)
class OneForwardOneBackward:
    """Losses and gradients of a model whose `blocks`, named by their paths, are divided over `mesh`."""

    mesh: Mesh
    micro_batches: int
    blocks: tuple[str, ...]

    def __call__(
        self, loss: MicroLoss, params: Mapping[str, jax.Array], batch: Arrays, key: jax.Array
    ) -> tuple[Arrays, PyTree]:
        """(gradients of all parameters by name, what `loss` gives besides), each a mean over the micro batches by their
        weights.

        Raises:
            ConfigError: the model does not run its blocks once for a loss.
        """
        count, devices = self.micro_batches, self.mesh.shape[AXIS]
        samples = max(array.shape[0] for array in batch.values() if array.ndim)
        micro = {name: cut(a, count) for name, a in batch.items() if is_cut(a, samples)}
        rest = {name: a for name, a in batch.items() if name not in micro}
        prefixes = tuple(f"{path}." for path in self.blocks)
        others = {name: value for name, value in params.items() if not name.startswith(prefixes)}
        names = [name.removeprefix(prefixes[0]) for name in params if name.startswith(prefixes[0])]
        stacked = stack_parameters(
            [{name: params[path + name] for name in names} for path in prefixes], self.mesh
        )
        unread = {
            name: jax.ShapeDtypeStruct(value.shape, value.dtype)
            for name, value in params.items()
            if name.startswith(prefixes)
        }

        def before(others: Arrays, data: Arrays, number: jax.Array) -> _Inputs:
            try:
                loss({**others, **unread}, data, number, _capture)
            except _Captured as captured:
                return captured.inputs
            raise _refuse(0)

        def behind(others: Arrays, data: Arrays, number: jax.Array, y: jax.Array) -> tuple[jax.Array, Logged]:
            calls = []

            def give(blocks: Sequence[Layer], x: jax.Array, arguments: tuple) -> jax.Array:
                calls.append(len(blocks))
                return y

            value, (logged, weight) = loss({**others, **unread}, data, number, give)
            if len(calls) != 1:
                raise _refuse(len(calls))
            return value * weight, (jax.tree.map(lambda one: jnp.float32(one) * weight, logged), weight)

        def run(stacked: Arrays, others: Arrays, micro: Arrays, rest: Arrays, key: jax.Array) -> tuple:
            device, last = lax.axis_index(AXIS), devices - 1

            def pick(number: jax.Array) -> Arrays:
                return {**rest, **{name: array[number] for name, array in micro.items()}}

            def forward(number: jax.Array, stacked: Arrays, others: Arrays, received: jax.Array) -> jax.Array:
                graph, x, arguments = before(others, pick(number), number)
                x = lax.cond(device == 0, lambda: x, lambda: received)
                stage = make_stage(graph, len(self.blocks), devices)
                return stage(stacked, x, arguments, jax.random.wrap_key_data(key), number)

            def turn(y: jax.Array, number: jax.Array) -> tuple[jax.Array, Arrays, PyTree]:
                """The loss of the last device: gradients of `y` and of the parameters, and what is logged."""
                (_, logged), (d_others, d_y) = jax.value_and_grad(behind, (0, 3), has_aux=True)(
                    others, pick(number), number, y
                )
                return d_y, d_others, logged

            def backward(received: jax.Array, d_y: jax.Array, number: jax.Array) -> tuple[jax.Array, _Sums]:
                y, pull = jax.vjp(functools.partial(forward, number), stacked, others, received)
                d_y, d_behind, logged = lax.cond(
                    device == last, lambda: turn(y, number), lambda: (d_y, zero.others, zero.logged)
                )
                d_stacked, d_others, d_x = pull(d_y)
                return d_x, _Sums(d_stacked, jax.tree.map(jnp.add, d_others, d_behind), logged)

            first = jnp.zeros((), jnp.int32)
            x = before(others, pick(first), first).x
            shapes = jax.eval_shape(turn, x, first)
            zero = _Sums(*(jax.tree.map(_zeros, tree) for tree in (stacked, others, shapes[2])))

            def tick(carry: _Carry, time: jax.Array) -> tuple[_Carry, None]:
                ahead, back = time - device, time - (2 * last - device)
                number, room = jnp.clip(ahead, 0, count - 1), carry.inputs.shape[0]
                comes = (ahead >= 0) & (ahead < count)
                inputs = carry.inputs.at[jnp.where(comes, number % room, room)].set(carry.x, mode="drop")
                y = lax.cond(
                    comes & (device < last),
                    lambda: forward(number, stacked, others, carry.x),
                    lambda: carry.x,
                )
                number = jnp.clip(back, 0, count - 1)
                d_x, more = lax.cond(
                    (back >= 0) & (back < count),
                    lambda: backward(inputs[number % room], carry.gradient, number),
                    lambda: (carry.gradient, zero),
                )
                return _Carry(
                    lax.ppermute(y, AXIS, [(i, (i + 1) % devices) for i in range(devices)]),
                    lax.ppermute(d_x, AXIS, [(i, (i - 1) % devices) for i in range(devices)]),
                    inputs,
                    jax.tree.map(jnp.add, carry.sums, more),
                ), None

            start = _Carry(x, jnp.zeros_like(x), jnp.zeros((2 * devices - 1, *x.shape), x.dtype), zero)
            carry, _ = lax.scan(tick, start, jnp.arange(count + 2 * last))
            d_stacked, d_others, logged = carry.sums
            return (d_stacked, *lax.psum((d_others, logged), AXIS))

        divided, whole = PartitionSpec(AXIS), PartitionSpec()
        divide = jax.shard_map(
            run,
            mesh=self.mesh,
            in_specs=(divided, whole, whole, whole, whole),
            out_specs=(divided, whole, whole),
            axis_names={AXIS},
            check_vma=False,
        )
        d_stacked, d_others, logged = divide(stacked, others, micro, rest, jax.random.key_data(key))
        logged, weight = logged
        gradients, slots = dict(d_others), block_slots(len(prefixes), devices)
        for number, path in enumerate(prefixes):
            slot = slots.index(number)  # a slot that repeats a block is behind the block's own
            gradients |= {path + name: value[slot] for name, value in d_stacked.items()}
        total = jnp.maximum(weight, jnp.finfo(jnp.float32).tiny)
        return jax.tree.map(lambda value: value / total, (gradients, logged))


def _refuse(calls: int) -> ConfigError:
    return ConfigError(
        "the model cannot be a pipeline with this schedule",
        where="parallel.schedule",
        received=f"1f1b for a model that runs its blocks {calls} times for a loss",
        allowed="once",
        fix="schedule: gpipe takes such models",
    )


def _zeros(leaf: jax.Array | jax.ShapeDtypeStruct) -> jax.Array:
    return jnp.zeros(leaf.shape, leaf.dtype)
