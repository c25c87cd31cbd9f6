"""Checkpoints of arrays that are divided among devices or processes: each writes its own part, through orbax.

One process writes safetensors (framework/io/checkpoint.py); this is for states that no single host holds whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from framework.core.errors import FormatError, InputError


def save_sharded(folder: str | Path, tree: Any) -> Path:
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


def load_sharded(folder: str | Path, like: Any) -> Any:
    """Read a pytree of the structure of `like`, whose arrays (or ShapeDtypeStructs) say shape, dtype and sharding.

    The sharding may differ from that of the run that wrote it: each process reads the parts that it needs.

    Raises:
        FormatError: there is no such checkpoint, or it holds another structure or other shapes.
    """
    folder = Path(folder).absolute()
    wanted = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), like)
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            found = checkpointer.restore(folder, wanted)
    except (ValueError, KeyError, FileNotFoundError, TypeError) as error:
        raise FormatError(
            "the sharded checkpoint cannot be read",
            where=folder,
            received=str(error).splitlines()[0],
            allowed="a folder that save_sharded wrote, with the structure and shapes of `like`",
        ) from error
    wrong = [
        f"{jax.tree_util.keystr(path)}: {a.shape}, wanted {b.shape}"
        for (path, a), b in zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(wanted))
        if a.shape != b.shape
    ]
    if wrong:
        raise FormatError(
            "the sharded checkpoint has other shapes", where=folder, received=", ".join(wrong[:5])
        )
    return found
