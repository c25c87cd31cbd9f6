"""Walks over the trees of tree-based deep models, whose leaves are items. Source: paddle/fluid/operators/tdm_*_op.h"""

from __future__ import annotations

import numpy as np

from framework.interop.weights.pdparams import DTYPES
from framework.paddle.legacy_operators.operands import Operands, Outputs, Table, registrar

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def _dtype(a: Operands) -> np.dtype:
    return np.dtype(DTYPES.get(a.attr("dtype", 2), np.int32))


@operator("tdm_child")
def _tdm_child(a: Operands) -> Outputs:
    """The children of nodes, and which of them are leaves. A row of TreeInfo has item, layer, parent and children."""
    nodes, tree, count = a.host("X"), a.host("TreeInfo"), a.attr("child_nums", 2)
    nodes = nodes[..., 0] if nodes.ndim > 1 and nodes.shape[-1] == 1 else nodes
    has_children = (nodes != 0) & (tree[nodes, 3] != 0)
    children = np.where(has_children[..., None], tree[nodes, 3 : 3 + count], 0)
    leaves = np.where(has_children[..., None], tree[children, 0] != 0, False)
    return {"Child": children.astype(_dtype(a)), "LeafMask": leaves.astype(_dtype(a))}


@operator("tdm_sampler")
def _tdm_sampler(a: Operands) -> Outputs:
    """Of each layer the node above an item and other nodes of the layer; the node 0 of short paths is padding."""
    paths, layers = a.host("Travel")[a.host("X").ravel()], a.host("Layer").ravel()
    offsets, counts = a.attr("layer_offset_lod", [0]), a.attr("neg_samples_num_list", [0])
    positive = a.attr("output_positive", True)
    random = np.random.default_rng(a.attr("seed", 0) or None)
    samples: list[np.ndarray] = []
    labels: list[np.ndarray] = []
    for layer, count in enumerate(counts):
        nodes, start = layers[offsets[layer] : offsets[layer + 1]], paths[:, layer]
        others = [random.permutation(nodes[nodes != node])[:count] for node in start]
        padded = np.array([np.where(node == 0, 0, row) for node, row in zip(start, others, strict=True)])
        samples += [start[:, None]] * positive + [padded.reshape(len(start), -1)]
        labels += [(start != 0)[:, None]] * positive + [np.zeros((len(start), count), bool)]
    nodes = np.concatenate(samples, 1)
    columns = {"Out": nodes, "Labels": np.concatenate(labels, 1), "Mask": nodes != 0}
    return {slot: array.astype(_dtype(a))[..., None] for slot, array in columns.items()}
