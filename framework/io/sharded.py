"""Checkpoints of arrays that are divided among devices or processes: each writes its own part, through orbax.

One process that has all of a state writes safetensors (framework/io/checkpoint.py); this is for states that no single
host need hold whole.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp
from jax.experimental import multihost_utils

from framework.core.errors import FormatError, InputError

Tree = TypeVar("Tree")  # any pytree of arrays
_FIX = "resume from another checkpoint of the run"


class ShardedWriter:
    """Writes pytrees of arrays while the program goes on; one at a time. All processes call its methods alike.

    The arrays are copied before `start` returns, so they may be donated to the next step.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._busy = False
        self._checkpointer = ocp.AsyncCheckpointer(ocp.StandardCheckpointHandler())

    def start(self, folder: Path, tree: object, finish: Callable[[], None] | None = None) -> None:
        """Begin to write a pytree of arrays to a new folder, which appears whole or not at all.

        Args:
            finish: Called by process 0, in another thread, when all processes have written their parts.

        Raises:
            InputError: the tree holds no array, or one of no elements, which orbax cannot write.
        """
        self.wait()
        _check_sizes(folder, tree)
        self._busy = True
        self._checkpointer.save(folder.absolute(), args=ocp.args.StandardSave(tree))
        if finish is not None and jax.process_index() == 0:
            # Not the callback that orbax offers: it comes before the folder has its name.
            self._thread = threading.Thread(target=self._finish, args=(finish,), name="oar-checkpoint")
            self._thread.start()

    def wait(self) -> None:
        """Until everything is written and, in process 0, `finish` has returned. Raises: what they have raised.

        A process that has failed may call it alone: it waits for no step of the others, only for their writing.
        """
        if not self._busy:
            return
        self._busy = False
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        else:
            self._checkpointer.wait_until_finished()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _finish(self, finish: Callable[[], None]) -> None:
        try:
            self._checkpointer.wait_until_finished()
            finish()
        except Exception as error:  # raised by `wait`, in the thread that can do something about it
            self._error = error


def save_sharded(folder: str | Path, tree: object) -> Path:
    """Write a pytree of arrays to a new folder; it appears whole or not at all. All processes call it.

    Raises:
        InputError: the folder is there already, or the tree holds no array, or one of no elements.
    """
    folder = Path(folder).absolute()
    if folder.exists():
        raise InputError(
            "the folder of a sharded checkpoint is there already",
            where=folder,
            allowed="a new folder",
            fix="choose another one, or move it away",
        )
    writer = ShardedWriter()
    writer.start(folder, tree)
    writer.wait()
    return folder


def load_sharded(folder: str | Path, like: Tree) -> Tree:
    """Read a pytree of the structure of `like`, whose arrays (or ShapeDtypeStructs) say shape, dtype and sharding.

    The sharding may differ from that of the run that wrote it: each process reads the parts that it needs.

    Raises:
        FormatError: there is no such checkpoint, a file of it is damaged, or it holds another structure or other
            shapes.
    """
    folder = Path(folder).absolute()
    target = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=a.sharding), like)
    # Compared before anything is read: where orbax finds a wrong shape, its other reads outlive the error.
    _compare(folder, _stored(folder), target)
    return _restore(folder, target)


def load_arrays(folder: str | Path) -> dict[str, dict[str, np.ndarray]]:
    """A sharded checkpoint of dicts of arrays in the memory of this process alone, for files that hold all of it.

    Raises:
        FormatError: there is no such checkpoint, or a file of it is damaged.
    """
    folder = Path(folder).absolute()
    shapes = _stored(folder)
    one = jax.sharding.SingleDeviceSharding(jax.local_devices(backend="cpu")[0])
    target = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=one), shapes)
    return jax.tree.map(np.asarray, _restore(folder, target))


def stored_shapes(folder: str | Path) -> dict[str, dict[str, jax.ShapeDtypeStruct]]:
    """Shapes and types of a sharded checkpoint of dicts of arrays. Raises: FormatError, where there is none."""
    return jax.tree.map(
        lambda a: jax.ShapeDtypeStruct(tuple(a.shape), a.dtype), _stored(Path(folder).absolute())
    )


def meet(name: str) -> None:
    """Wait until all processes are here. `name` tells this meeting from others."""
    if jax.process_count() > 1:
        multihost_utils.sync_global_devices(name)


def list_files(folder: Path) -> dict[str, int]:
    """The files below a folder, by their paths in it, with their sizes in bytes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}


def check_files(folder: Path, sizes: Mapping[str, int]) -> None:
    """Raises: FormatError, where files that `list_files` listed are missing or were cut."""
    wrong = []
    for name, size in sizes.items():
        try:
            actual = (folder / name).stat().st_size
        except OSError:
            wrong.append(f"{name}: missing")
        else:
            if actual != size:
                wrong.append(f"{name}: {actual:,} of {size:,} bytes")
    if wrong:
        more = f" and {len(wrong) - 5} more" if len(wrong) > 5 else ""
        raise FormatError(
            "files of the sharded checkpoint are missing or cut",
            where=folder,
            received=", ".join(wrong[:5]) + more,
            allowed=f"the {len(sizes)} files that were written, in a folder that all processes see",
            fix=_FIX,
        )


def _stored(folder: Path) -> dict[str, dict[str, ocp.metadata.ArrayMetadata]]:
    """What a checkpoint says about its arrays. Raises: FormatError."""
    if not (folder / "_CHECKPOINT_METADATA").is_file():
        raise _unreadable(folder, "no such files")
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            stored = checkpointer.metadata(folder).item_metadata
    except Exception as error:  # orbax raises anything for damaged files: KeyError, AttributeError
        raise _unreadable(folder, error) from error
    if stored is None or not stored.tree:  # so orbax reads a description that was cut
        raise _unreadable(folder, "no arrays are described")
    others = [
        leaf for leaf in jax.tree.leaves(stored.tree) if not isinstance(leaf, ocp.metadata.ArrayMetadata)
    ]
    if others:
        raise _unreadable(folder, f"described as an array: {others[0]}")
    return stored.tree


def _restore(folder: Path, target: Tree) -> Tree:
    try:
        with ocp.StandardCheckpointer() as checkpointer:
            return checkpointer.restore(folder, target)
    except Exception as error:  # orbax raises bare Exceptions for damaged files
        raise _unreadable(folder, error) from error


def _unreadable(folder: Path, received: object) -> FormatError:
    return FormatError(
        "the sharded checkpoint cannot be read",
        where=folder,
        received=(str(received).splitlines() or [""])[0][:200],
        allowed="a folder that save_sharded wrote, whole",
        fix=_FIX,
    )


def _check_sizes(folder: Path, tree: object) -> None:
    """Raises: InputError, where orbax would refuse the tree when it has begun to write it."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    empty = [f"{jax.tree_util.keystr(path)}: {np.shape(leaf)}" for path, leaf in leaves if not np.size(leaf)]
    if empty or not leaves:
        more = f" and {len(empty) - 5} more" if len(empty) > 5 else ""
        raise InputError(
            "a sharded checkpoint cannot hold arrays of no elements"
            if empty
            else "there is no array to write",
            where=folder,
            received="; ".join(empty[:5]) + more if empty else "an empty tree",
            allowed="arrays with an element at least",
            fix="leave them out of the tree, and make them anew when it is read" if empty else None,
        )


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
