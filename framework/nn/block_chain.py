"""Chains of equal blocks: what a pipeline over devices divides, and a plain loop where there is none.

A model that runs its blocks by `run_blocks`, in a layer that is a `BlockChain`, can be trained with
`parallel.pipeline` as it is.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax

from framework.core.errors import ShapeError
from framework.core.types import PyTree
from framework.nn.containers import LayerList
from framework.nn.functional_core import graph_def
from framework.nn.layer import Layer
from framework.nn.mesh_scope import current_mesh


class BlockChain(Layer):
    """Base of layers that run blocks of one kind one after the other, each on what the one before gives."""

    def blocks(self) -> Sequence[Layer]:
        """In the order in which they run; by default those of `layers`."""
        return list(self.layers)


def run_blocks(blocks: Sequence[Layer], x: jax.Array, *arguments: PyTree) -> jax.Array:
    """`x = block(x, *arguments)` for each block. Among devices where the program is one of a pipeline.

    `x` and arrays among `arguments` whose first axis has as many entries as `x` are cut into micro batches there.
    """
    mesh = current_mesh()
    if mesh is not None and mesh.blocks is not None:
        return mesh.blocks(blocks, x, arguments)
    for block in blocks:
        x = block(x, *arguments)
    return x


class PipelineStages(BlockChain, LayerList):
    """A list of equal blocks that is called as one layer: `PipelineStages(Block(width) for _ in range(12))`.

    Each takes what the one before gives, and `arguments` besides, such as a mask.

    Raises:
        ShapeError: blocks that differ in more than the values of their parameters.
    """

    def __init__(self, blocks: Sequence[Layer]) -> None:
        super().__init__(blocks)
        if (odd := first_unequal(self.blocks())) is not None:
            raise ShapeError(
                "the blocks of a chain are equal",
                where="PipelineStages",
                received=f"block {odd} differs from block 0",
                allowed="one class with the same settings and shapes",
                fix="keep the others outside, before or after the chain",
            )

    def blocks(self) -> Sequence[Layer]:
        return list(self)

    def forward(self, x: jax.Array, *arguments: PyTree) -> jax.Array:
        """The last block's result."""
        return run_blocks(self.blocks(), x, *arguments)


def first_unequal(blocks: Sequence[Layer]) -> int | None:
    """The number of the first block that differs from the first one in more than values."""
    graphs = [graph_def(block) for block in blocks]
    return next((number for number, graph in enumerate(graphs) if graph != graphs[0]), None)
