"""Checkpoints of arrays that are divided among devices or processes: each writes its own part, through orbax.

One process writes safetensors (framework/io/checkpoint.py); this is for states that no single host holds whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import jax
import orbax.checkpoint as ocp

from framework.core.errors import FormatError, InputError

Tree = TypeVar("Tree")  # any pytree of arrays


def save_sharded(folder: str | Path, tree: object) -> Path:
    """Write a pytree of arrays to a new folder; it appears whole or not at all. All processes call it.

    Raises:
        InputError: the folder is there already.
    """
    folder = Path(folder).absolute()
    if folder.exists():
        raise InputError(
            "the folder of a sharded checkpoint is there already",
            where=folder,
            allowed="a new folder",
            fix="choose another one, or move it away",
        )
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(folder, tree)
        checkpointer.wait_until_finished()
    return folder


def load_sharded(folder: str | Path, like: Tree) -> Tree:
    """Read a pytree of the structure of `like`, whose arrays (or ShapeDtypeStructs) say shape, dtype and sharding.

    The sharding may differ from that of the run that wrote it: each process reads the parts that it needs.

    Raises:
        FormatError: there is no such checkpoint, or it holds another structure or other shapes.
    """
    folder = Path(folder).absolute()
    target = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), like)
    if not (folder / "_CHECKPOINT_METADATA").is_file():
        raise FormatError(
            "the sharded checkpoint cannot be read", where=folder, allowed="a folder that save_sharded wrote"
        )
    with ocp.StandardCheckpointer() as checkpointer:
        # Compared before anything is read: where orbax finds a wrong shape, its other reads outlive the error.
        stored = checkpointer.metadata(folder).item_metadata
        _compare(folder, stored.tree if stored is not None else {}, target)
        return checkpointer.restore(folder, target)


def _compare(folder: Path, stored: object, target: object) -> None:
    """Raises: FormatError, where arrays are missing, too many, or of another shape."""
    there, expected = (
        {
            jax.tree_util.keystr(path): tuple(leaf.shape)
            for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
        }
        for tree in (stored, target)
    )
    wrong = [
        f"{name}: {there.get(name, 'nothing')}, wanted {expected.get(name, 'nothing')}"
        for name in sorted(there | expected)
        if there.get(name) != expected.get(name)
    ]
    if wrong:
        raise FormatError(
            "the sharded checkpoint holds other arrays",
            where=folder,
            received="; ".join(wrong[:5]),
            allowed="the structure and shapes of `like`",
        )
