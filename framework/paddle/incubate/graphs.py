"""paddle.incubate: operations of graphs under their older names; see `paddle.geometric`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.paddle._kernel.errors import require
from framework.paddle._kernel.settings import reads_values
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.geometric import reindex_graph, sample_neighbors


def graph_reindex(
    x: Tensor,
    neighbors: Tensor,
    count: Tensor,
    value_buffer: Tensor | None = None,
    index_buffer: Tensor | None = None,
    flag_buffer_hashtable: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """`paddle.geometric.reindex_graph`; the buffers are not used."""
    holds = not flag_buffer_hashtable or (value_buffer is not None and index_buffer is not None)
    require(holds, "flag_buffer_hashtable goes with both buffers", "paddle.incubate.graph_reindex", "none")
    require(
        0 not in x.shape and 0 not in neighbors.shape,
        "nodes and neighbours",
        "paddle.incubate.graph_reindex",
        x.shape,
    )
    return reindex_graph(x, neighbors, count)


def graph_sample_neighbors(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    eids: Tensor | None = None,
    perm_buffer: Tensor | None = None,
    sample_size: int = -1,
    return_eids: bool = False,
    flag_perm_buffer: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """`paddle.geometric.sample_neighbors`; the buffer is not used."""
    where = "paddle.incubate.graph_sample_neighbors"
    require(
        not flag_perm_buffer or perm_buffer is not None, "flag_perm_buffer goes with perm_buffer", where, None
    )
    return sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)


@reads_values
def graph_khop_sampler(
    row: Tensor,
    colptr: Tensor,
    input_nodes: Tensor,
    sample_sizes: Sequence[int],
    sorted_eids: Tensor | None = None,
    return_eids: bool = False,
    name: str | None = None,
) -> tuple[Tensor, ...]:
    """Neighbours of the nodes, neighbours of these, and so on, so many for each node in each round.

    Returns:
        The sources and the destinations [E, 1] of the edges as positions among the nodes, these nodes, the positions of
        `input_nodes` among them, and with `return_eids` the ids of the edges.
    """
    require(
        not return_eids or sorted_eids is not None,
        "return_eids needs sorted_eids",
        "graph_khop_sampler",
        None,
    )
    starts = input_nodes.numpy().reshape(-1)
    nodes, seeds = np.unique(starts), np.unique(starts)
    sources: list[np.ndarray] = []
    targets: list[np.ndarray] = []
    ids: list[np.ndarray] = []
    for size in sample_sizes:
        sampled = sample_neighbors(row, colptr, Tensor(seeds), size, sorted_eids, return_eids)
        around, counts = sampled[0].numpy(), sampled[1].numpy()
        sources.append(around)
        targets.append(np.repeat(seeds, counts))
        ids += [sampled[2].numpy()] if return_eids else []
        seeds = np.setdiff1d(around, nodes)
        nodes = np.concatenate([nodes, seeds])
    order = np.argsort(nodes)

    def positions(values: np.ndarray) -> Tensor:
        return Tensor(order[np.searchsorted(nodes[order], values)].astype(starts.dtype))

    edges = [positions(np.concatenate(ends)).reshape([-1, 1]) for ends in (sources, targets)]
    results = (*edges, Tensor(nodes), positions(starts))
    return (*results, Tensor(np.concatenate(ids)).reshape([-1, 1])) if return_eids else results
