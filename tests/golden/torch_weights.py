"""Weights drawn from names for a state dict of torch. It needs numpy alone: a reference's environment has no jax."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import numpy as np

_LEAVES = {"running_mean": "_mean", "running_var": "_variance"}
_CONSTANTS = ("num_batches_tracked", "relative_position_index")

Draw = Callable[[Mapping[str, tuple[int, ...]]], Mapping[str, np.ndarray]]


def torch_weights(
    shapes: Mapping[str, tuple[int, ...]], linear: Collection[str], draw: Draw
) -> dict[str, np.ndarray]:
    """An array for each entry but constants, as torch has it: `draw` (named_weights) gets Paddle's spelling of the
    leaves, and the matrices in `linear` the other way round."""
    paddle = {name: shape[::-1] if name in linear else shape for name, shape in shapes.items()}
    spelled = {name: _spell(name) for name in shapes if not name.endswith(_CONSTANTS)}
    drawn = draw({theirs: paddle[name] for name, theirs in spelled.items()})
    return {
        name: np.ascontiguousarray(drawn[theirs].T if name in linear else drawn[theirs])
        for name, theirs in spelled.items()
    }


def _spell(name: str) -> str:
    owner, dot, leaf = name.rpartition(".")
    return f"{owner}{dot}{_LEAVES.get(leaf, leaf)}"
