"""Experts that are divided among the devices of the axis `expert`: tokens go to them and come back by all-to-all.

Source: GShard, https://arxiv.org/abs/2006.16668, section 3.2
"""

from __future__ import annotations

import functools
import math

import jax
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from framework.distributed.mesh import BATCH_AXES
from framework.nn.moe import Experts, dispatch, gather_tokens, scatter_tokens

AXIS = "expert"


class ExpertParallel:
    """`Experts.forward` over `mesh`: each device has some of the experts, and some of the tokens.

    Capacities count the tokens of one device, so what is dropped with a `capacity_factor` depends on the mesh.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh

    def __call__(
        self, experts: Experts, x: jax.Array, selected: jax.Array, weights: jax.Array
    ) -> tuple[jax.Array, jax.Array]:
        sizes = dict(self.mesh.shape)
        matrices = experts.weights()
        hidden = matrices["up_proj"].shape[-1]
        split = "tensor" if sizes["tensor"] > 1 and hidden % sizes["tensor"] == 0 else None
        specs = {
            name: PartitionSpec(AXIS, split, None)
            if name == "down_proj"
            else PartitionSpec(AXIS, None, split)
            for name in matrices
        }
        batch = BATCH_AXES if len(x) % math.prod(sizes[axis] for axis in BATCH_AXES) == 0 else None
        tokens = "sequence" if x.shape[1] % sizes["sequence"] == 0 else None
        spread = PartitionSpec(batch, tokens, None)
        groups = (*(batch or ()), *((tokens,) if tokens else ()))
        run = jax.shard_map(
            functools.partial(_exchange, experts, sizes[AXIS], split),
            mesh=self.mesh,
            in_specs=(specs, spread, spread, spread),
            out_specs=(spread, PartitionSpec(groups)),
            check_vma=False,
        )
        out, dropped = run(matrices, x, selected, weights)
        return out, dropped.mean()


def _exchange(
    experts: Experts,
    devices: int,
    split: str | None,
    matrices: dict[str, jax.Array],
    x: jax.Array,
    selected: jax.Array,
    weights: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """What one device computes: its experts for the tokens of all, then its own tokens from what all send back."""
    top_k, flat, count = selected.shape[-1], x.reshape(-1, x.shape[-1]), experts.num_experts
    to = dispatch(selected.reshape(-1, top_k), count, experts.capacity(len(flat), top_k))
    sent = gather_tokens(flat, to, count)  # [experts, capacity, width]
    arrived = lax.all_to_all(sent, AXIS, split_axis=0, concat_axis=1, tiled=True)
    y = experts.compute(matrices, arrived)  # [experts here, devices * capacity, width]
    if split is not None:
        y = lax.psum(y, split)
    returned = lax.all_to_all(y, AXIS, split_axis=1, concat_axis=0, tiled=True)
    out = scatter_tokens(returned, to, weights.reshape(-1, top_k))
    return out.reshape(x.shape), to.dropped[None]
