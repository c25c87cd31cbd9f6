"""A chain of equal blocks over the devices of the axis `pipeline`: each has some of the blocks, and micro batches go
from one to the next.

GPipe, https://arxiv.org/abs/1811.06965: all micro batches forward, then, by the derivative of the same program, all
back. With M micro batches and S devices a device idles for (S - 1) / (M + S - 1) of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from framework.core.errors import ConfigError
from framework.core.rng import next_key, rng_scope
from framework.core.types import PyTree
from framework.nn.functional_core import GraphDef, graph_def
from framework.nn.layer import Layer

AXIS = "pipeline"
_Stage = Callable[[dict[str, jax.Array], jax.Array, tuple, jax.Array, jax.Array], jax.Array]


def cut(x: jax.Array, count: int) -> jax.Array:
    """[N, …] -> [count, N / count, …]: sample n is in micro batch n % count, so that each has samples of every device
    that shares the batch."""
    return jnp.swapaxes(x.reshape(x.shape[0] // count, count, *x.shape[1:]), 0, 1)


def join(x: jax.Array) -> jax.Array:
    """What `cut` was given."""
    return jnp.swapaxes(x, 0, 1).reshape(-1, *x.shape[2:])


def block_slots(blocks: int, devices: int) -> list[int]:
    """The number of the block in each slot of the devices, which have equally many. Where devices do not divide the
    blocks, the first ones have one more, and the last slot of each other one repeats its last block and is not run."""
    each, more = divmod(blocks, devices)
    slots = []
    for device in range(devices):
        first = device * each + min(device, more)
        numbers = list(range(first, first + each + (device < more)))
        slots += numbers if len(numbers) == each + bool(more) else [*numbers, numbers[-1]]
    return slots


def stack_parameters(blocks: Sequence[Mapping[str, jax.Array]], mesh: Mesh) -> dict[str, jax.Array]:
    """Parameters of equal blocks by name, [slots, …] each, divided by slots."""
    divided = NamedSharding(mesh, PartitionSpec(AXIS))
    slots = block_slots(len(blocks), mesh.shape[AXIS])
    return {
        name: lax.with_sharding_constraint(jnp.stack([blocks[slot][name] for slot in slots]), divided)
        for name in blocks[0]
    }


def make_stage(graph: GraphDef, blocks: int, devices: int) -> _Stage:
    """(parameters [slots of a device, …], x, arguments, key, number of the micro batch) -> x after the blocks of one
    device.

    The random keys of a block depend on it and on the micro batch, not on the number of devices.
    """
    each, more = divmod(blocks, devices)

    def stage(
        params: dict[str, jax.Array], x: jax.Array, arguments: tuple, key: jax.Array, micro: jax.Array
    ) -> jax.Array:
        device = lax.axis_index(AXIS)
        first = device * each + jnp.minimum(device, more)

        def run_block(number: int, x: jax.Array) -> jax.Array:
            block = graph.bind({name: value[number] for name, value in params.items()}, {})
            with rng_scope(jax.random.fold_in(jax.random.fold_in(key, first + number), micro)):
                return block(x, *arguments)

        for number in range(each):
            x = run_block(number, x)
        if more:
            x = lax.cond(device < more, lambda x: run_block(each, x), lambda x: x, x)
        return x

    return stage


def is_cut(array: object, samples: int) -> bool:
    """Whether an argument of a block has an entry for each of so many samples."""
    return isinstance(array, jax.Array) and array.ndim > 0 and array.shape[0] == samples


@dataclass(frozen=True)
class GPipe:
    """`nn.run_blocks` over `mesh`, with a batch cut into `micro_batches`."""

    mesh: Mesh
    micro_batches: int

    def __call__(self, blocks: Sequence[Layer], x: jax.Array, arguments: tuple) -> jax.Array:
        """Raises: ConfigError, where the batch or the blocks cannot be divided."""
        devices, count, samples = self.mesh.shape[AXIS], self.micro_batches, x.shape[0]
        if samples % count:
            raise ConfigError(
                "the batch cannot be cut into micro batches",
                where="parallel.micro_batches",
                received=f"{samples} samples, {count} micro batches",
                allowed="a divisor of the batch size",
            )
        leaves, structure = jax.tree.flatten(arguments)
        per_sample = [is_cut(leaf, samples) for leaf in leaves]
        micro = [cut(leaf, count) if one else leaf for leaf, one in zip(leaves, per_sample)]
        stage = jax.checkpoint(make_stage(graph_def(blocks[0]), len(blocks), devices))
        key = jax.random.key_data(next_key() if blocks[0].training else jax.random.key(0))

        def run(
            params: dict[str, jax.Array], xs: jax.Array, leaves: list[PyTree], key: jax.Array
        ) -> jax.Array:
            device = lax.axis_index(AXIS)

            def tick(received: jax.Array, time: jax.Array) -> tuple[jax.Array, jax.Array]:
                number = jnp.clip(time - device, 0, count - 1)
                now = [leaf[number] if one else leaf for leaf, one in zip(leaves, per_sample)]
                x = jnp.where(device == 0, xs[number], received)
                y = stage(
                    params, x, jax.tree.unflatten(structure, now), jax.random.wrap_key_data(key), number
                )
                return lax.ppermute(y, AXIS, [(i, (i + 1) % devices) for i in range(devices)]), y

            # What stands for no micro batch yet is a real one: zeros could give numbers that are none.
            _, ys = lax.scan(tick, xs[0], jnp.arange(count + devices - 1))
            return ys[devices - 1 :][None]  # those of the last device

        whole = PartitionSpec()
        divide = jax.shard_map(
            run,
            mesh=self.mesh,
            in_specs=(PartitionSpec(AXIS), whole, whole, whole),
            out_specs=PartitionSpec(AXIS),
            axis_names={AXIS},
            check_vma=False,
        )
        params = [{name: p.value for name, p in block.named_parameters()} for block in blocks]
        return join(divide(stack_parameters(params, self.mesh), cut(x, count), micro, key)[-1])
