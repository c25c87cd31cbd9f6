"""Checkpoints of a training run: a folder each, that is there whole or not at all.

    <root>/step_00001200/
      model.safetensors     parameters and buffers by name: what `framework.load` reads and export takes
      train.safetensors     everything else that training needs to go on: optimizer, averages, scaler
      state.json            step, position in the data, scores, settings, and the SHA-256 of the other files
    <root>/best.json        the name of the best one; it is never deleted

Where the state is divided among devices, `arrays/` takes the place of the two files of arrays: each process writes its
own part of them (framework/io/sharded.py), and state.json lists the files with their sizes.

A folder is written under a hidden name, flushed, and moved into place in one step, and one that is deleted is moved
away first: a run that is killed leaves whole checkpoints, and what is hidden goes at the next save.
"""

from __future__ import annotations

import contextlib
import copy
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from framework.core.disk import DiskError, disk_errors, free_bytes, sha256_of, write_file
from framework.core.errors import FormatError, InputError, WeightError
from framework.core.lazy import LazyModule
from framework.core.types import JSON
from framework.core.whole_folder import put_in_place
from framework.interop.paddle_runs import name_of_checkpoint
from framework.interop.weights.safetensors_io import read_safetensors, write_safetensors

if TYPE_CHECKING:
    import jax
    from jax.typing import ArrayLike

    from framework.io import sharded
else:
    jax = LazyModule("jax")
    sharded = LazyModule("framework.io.sharded")  # orbax takes a second to import

MODEL, TRAIN, STATE, BEST = "model.safetensors", "train.safetensors", "state.json", "best.json"
ARRAYS = "arrays"
"""The folder of a checkpoint that several processes, or devices, have written."""
CHECKPOINTS, RUN_CONFIG = "checkpoints", "config.yml"
"""What a run has in its folder: its checkpoints, and its config as it was resolved."""
Tree = TypeVar("Tree")  # any pytree
_FOLDER = re.compile(r"step_(\d{8,})")
_META: dict[str, tuple[type, ...]] = {
    "settings": (dict,),
    "total_steps": (int,),
    "best_score": (int, float, NoneType),
    "since_best": (int,),
    "sums": (dict,),
    "plateau": (dict, NoneType),
    "owes_evaluation": (bool,),
    "callbacks": (dict,),
    "labels": (list,),
    "config": (str,),
    "files": (dict,),
    "sha256": (dict,),
}
"""Types of what a Trainer keeps in state.json."""
_NEW = "new"  # as `put_in_place` takes it
_HASHED_AT_ONCE = 4  # files; a thread hashes about 1 GB/s
_RESUME_FROM_ANOTHER = "resume from another one of output/<config>/checkpoints"


@dataclass(frozen=True)
class Checkpoint:
    """What was saved: `model` and `train` hold arrays by name, `meta` is plain data, `sha256` is of the files."""

    folder: Path
    step: int
    model: dict[str, np.ndarray]
    train: dict[str, np.ndarray]
    meta: dict[str, Any]
    sha256: Mapping[str, str] = field(default_factory=dict)


class CheckpointStore:
    """The checkpoints of one run. The last `keep` stay, and the best."""

    def __init__(self, root: str | Path, keep: int = 2) -> None:
        self.root, self.keep = Path(root), max(1, keep)
        self._writer: sharded.ShardedWriter | None = None

    def steps(self) -> dict[int, Path]:
        """Step to folder, oldest first."""
        if not self.root.is_dir():
            return {}
        steps = {
            int(match[1]): path
            for path in self.root.iterdir()
            if (match := _FOLDER.fullmatch(path.name)) and (path / STATE).is_file()
        }
        return dict(sorted(steps.items()))

    def last(self) -> Path | None:
        return next(reversed(self.steps().values()), None)

    def best(self) -> Path | None:
        """Raises: FormatError where best.json is damaged."""
        marker = self.root / BEST
        if not marker.is_file():
            return None
        fix = "delete the file: then no checkpoint counts as the best until the next evaluation"
        name = _read_json(marker, fix).get("folder")
        if not isinstance(name, str) or not _FOLDER.fullmatch(name):
            raise _damaged(marker, f"folder {name!r}", '{"folder": "step_..."}', fix)
        folder = self.root / name
        return folder if (folder / STATE).is_file() else None

    def save(
        self,
        step: int,
        model: Mapping[str, ArrayLike],
        train: Mapping[str, ArrayLike],
        meta: Mapping[str, JSON],
        best: bool = False,
        write_more: Callable[[Path], None] | None = None,
    ) -> Path:
        """Write one checkpoint, mark it as the best if it is, and delete what need not be kept.

        Args:
            write_more: Writes files of its own into the folder that it is given, before the checkpoint counts as whole.

        Raises:
            InputError: the disk is full or the folder cannot be written; earlier checkpoints are as they were.
        """
        folder, work = self._folders(step)
        needed = sum(np.asarray(a).nbytes for a in (*model.values(), *train.values()))
        with self._explain_errors(folder, work, needed):
            fresh = self._make(work)
            write_safetensors(fresh / MODEL, {name: np.asarray(a) for name, a in model.items()})
            write_safetensors(fresh / TRAIN, {name: np.asarray(a) for name, a in train.items()})
            if write_more is not None:
                write_more(fresh)
            self._publish(folder, work, {"step": step, **meta}, best)
        return folder

    def save_sharded(
        self,
        step: int,
        model: Mapping[str, jax.Array],
        train: Mapping[str, jax.Array],
        meta: Mapping[str, JSON],
        best: bool = False,
    ) -> Path:
        """As `save`, of arrays that are divided among devices: each process writes its own part while training goes
        on, and `wait` waits for the end. All processes call it, over a folder that all of them see.

        Raises:
            InputError: as `save`; also what came of the writing of the checkpoint before.
        """
        self.wait()
        folder, work = self._folders(step)
        arrays = {"model": dict(model), "train": dict(train)}
        meta = copy.deepcopy(dict(meta))  # it is written when training has gone on
        needed = sum(leaf.nbytes for leaf in jax.tree.leaves(arrays))
        self._writer = self._writer or sharded.ShardedWriter()

        def finish() -> None:  # in process 0
            with self._explain_errors(folder, work, needed):
                files = sharded.list_files(work / _NEW / ARRAYS)
                self._publish(folder, work, {"step": step, **meta, "files": files}, best)

        with self._explain_errors(folder, work, needed):
            if jax.process_index() == 0:
                self._make(work)
            # Before that, what a killed run has left might be there under this checkpoint's name.
            sharded.meet(f"oar-checkpoint-{step}")
            self._writer.start(work / _NEW / ARRAYS, arrays, finish)
        return folder

    def wait(self) -> None:
        """Until a checkpoint of `save_sharded` is written. Raises: InputError, where it could not be."""
        if self._writer is not None:
            with self._explain_errors(self.root, None, None):
                self._writer.wait()

    def _folders(self, step: int) -> tuple[Path, Path]:
        """That of a checkpoint, and that in which it is written."""
        folder = self.root / f"step_{step:08d}"
        return folder, self.root / f".writing-{folder.name}"

    def _make(self, work: Path) -> Path:
        """The folder for the files of a checkpoint, below `work`."""
        self.root.mkdir(parents=True, exist_ok=True)
        for left in self.root.glob(".writing-*"):  # what a killed run left behind
            shutil.rmtree(left, ignore_errors=True)
        (work / _NEW).mkdir(parents=True)
        return work / _NEW

    def _publish(self, folder: Path, work: Path, meta: Mapping[str, JSON], best: bool) -> None:
        """Put a written checkpoint in its place, mark it, and delete what need not be kept."""
        _write_json(work / _NEW / STATE, {**meta, "sha256": _hash_files(work / _NEW)})
        put_in_place(work, folder)  # which may be there: the same step again, after a resume
        shutil.rmtree(work, ignore_errors=True)
        if best:
            _write_json(self.root / BEST, {"folder": folder.name})
        self._prune()

    @contextlib.contextmanager
    def _explain_errors(self, folder: Path, work: Path | None, needed: int | None) -> Iterator[None]:
        """Raises: InputError, in place of an error of the disk."""
        try:
            with disk_errors(folder, needed):
                yield
        except DiskError as error:
            if work is not None:
                shutil.rmtree(work, ignore_errors=True)
            last = self.last()
            bytes_needed = "" if needed is None else f"; {needed:,} bytes to write"
            raise InputError(
                "the checkpoint could not be written",
                where=folder,
                received=f"{error.problem}{bytes_needed}, {free_bytes(folder) or 0:,} bytes left",
                allowed="a folder with enough space that may be written to",
                fix=f"make space and resume; the last whole checkpoint is {last}"
                if last
                else "make space and start again; there is no earlier checkpoint",
            ) from error

    def mark_best(self, folder: Path) -> None:
        """Make a checkpoint that is there the best one."""
        _write_json(self.root / BEST, {"folder": folder.name})
        self._prune()

    def _prune(self) -> None:
        best = self.best()
        for folder in list(self.steps().values())[: -self.keep]:
            if folder != best:
                work = self.root / f".writing-{folder.name}-old"
                with contextlib.suppress(OSError):  # of a folder that may not be changed
                    os.replace(folder, work)
                    shutil.rmtree(work, ignore_errors=True)


def run_folder(config: Path) -> Path:
    """The folder of a config's run: the one in which the config lies, where the run wrote it there; else
    output/<name of the config>."""
    written = config.name == RUN_CONFIG and (config.parent / CHECKPOINTS).is_dir()
    return config.parent if written else Path("output") / config.stem


def config_name(config: Path) -> str:
    """The name of a config, or of the run that wrote it; its artifact is called so."""
    return run_folder(config).resolve().name


def find_checkpoint(path: str | Path, prefer: str = "last") -> Path:
    """The checkpoint that a path means: one itself, the folder of them, or that of a run (`output/<config>`).

    Where nothing is at the path, it may be the name that Paddle's toolkits have for a checkpoint of a run that is
    there, such as output/best_model/model.pdparams; see framework/interop/paddle_runs.py.

    Args:
        prefer: "last", or "best", which falls back to the last where nothing was evaluated.

    Raises:
        InputError: there is none.
    """
    path = Path(path)
    if (path / STATE).is_file():
        return path
    if not path.exists() and (named := name_of_checkpoint(path)) is not None:
        run, which = named
        steps = CheckpointStore(run / CHECKPOINTS).steps()
        if which in steps:
            return steps[int(which)]
        if steps and isinstance(which, str):
            path, prefer = run, which
    for root in (path, path / CHECKPOINTS):
        store = CheckpointStore(root)
        checkpoint = (store.best() if prefer == "best" else None) or store.last()
        if checkpoint is not None:
            return checkpoint
    raise InputError(
        "there is no checkpoint",
        where=path,
        received="nothing at this path" if not path.exists() else "a folder without a whole checkpoint",
        allowed="output/<config>, its folder checkpoints, or one step_… of it",
    )


def load_checkpoint(folder: str | Path) -> Checkpoint:
    """Read one checkpoint folder, also one that several processes have written, into the memory of this one.

    Raises:
        FormatError: a file is missing or damaged; the message names it.
    """
    saved = read_meta(Path(folder))
    verify_files(saved)
    if is_sharded(saved.folder):
        return replace(saved, **sharded.load_arrays(saved.folder / ARRAYS))
    model, train = (read_safetensors(saved.folder / name) for name in (MODEL, TRAIN))
    return replace(saved, model=model, train=train)


def _hash_files(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file below a folder, by its path in it."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        return dict(zip(names, pool.map(lambda name: sha256_of(folder / name), names)))


def verify_files(saved: Checkpoint, rank: int = 0, count: int = 1) -> None:
    """Compare the files of a checkpoint with what was written, bit by bit. A checkpoint of an earlier release, which
    does not say what was written, is taken as it is.

    Args:
        rank, count: Of the processes that each compare some of the files of a checkpoint that all of them read.

    Raises:
        FormatError: a file is missing, or another one than was written.
    """
    names = sorted(saved.sha256)[rank::count]
    if missing := next((name for name in names if not (saved.folder / name).is_file()), None):
        raise _damaged(saved.folder / missing, "no such file", "what was written", _RESUME_FROM_ANOTHER)
    with ThreadPoolExecutor(_HASHED_AT_ONCE) as pool:
        actual = pool.map(lambda name: sha256_of(saved.folder / name), names)
        for name, sha256 in zip(names, actual):
            if sha256 != saved.sha256[name]:
                raise _damaged(
                    saved.folder / name,
                    f"SHA-256 {sha256}",
                    f"SHA-256 {saved.sha256[name]}, as {STATE} says",
                    f"{_RESUME_FROM_ANOTHER}; if the file was changed on purpose, delete `sha256` from {STATE}",
                )


def is_sharded(folder: Path) -> bool:
    """Whether a checkpoint holds the parts that processes or devices have written."""
    return (folder / ARRAYS).is_dir() and not (folder / MODEL).exists()


def read_meta(folder: Path) -> Checkpoint:
    """A checkpoint without its arrays. Raises: FormatError, where a file is damaged, or one of arrays is missing."""
    fix = _RESUME_FROM_ANOTHER
    meta = _read_json(folder / STATE, fix)
    step = meta.pop("step", None)
    wrong = [name for name, types in _META.items() if name in meta and not isinstance(meta[name], types)]
    if not all(isinstance(label, str) for label in meta.get("labels", ())):
        wrong.append("labels")
    files = meta.pop("files", None)
    if isinstance(files, dict) and not all(isinstance(size, int) for size in files.values()):
        wrong.append("files")
    sha256 = meta.pop("sha256", {})
    if isinstance(sha256, dict) and not all(isinstance(one, str) for one in sha256.values()):
        wrong.append("sha256")
    if not isinstance(step, int) or step < 0 or wrong:
        name = "step" if not wrong else wrong[0]
        received = f"{name}: {str(meta.get(name, step))[:80]}"
        raise _damaged(folder / STATE, received, "what a training run writes", fix)
    if files is not None:
        sharded.check_files(folder / ARRAYS, files)
    return Checkpoint(folder, step, {}, {}, meta, sha256)


def flatten(tree: object, prefix: str = "") -> dict[str, jax.Array]:
    """The leaves of a pytree by path, such as "optimizer/momentum/conv.weight"."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {_name(prefix, path): leaf for path, leaf in leaves}


def unflatten(like: Tree, arrays: Mapping[str, ArrayLike], prefix: str = "", where: object = None) -> Tree:
    """A pytree of the structure of `like`, with the arrays that `flatten` gave.

    Raises:
        WeightError: entries are missing or of another shape: the settings of the run were others.
    """
    leaves, structure = jax.tree_util.tree_flatten_with_path(like)
    check_names(like, arrays, prefix, where)
    values = [arrays[_name(prefix, path)] for path, _ in leaves]
    loaded = [np.asarray(value).astype(leaf.dtype) for value, (_, leaf) in zip(values, leaves)]
    return jax.tree_util.tree_unflatten(structure, loaded)


def check_names(
    like: object,
    arrays: Mapping[str, ArrayLike | jax.ShapeDtypeStruct],
    prefix: str = "",
    where: object = None,
) -> None:
    """Raises: WeightError, where `arrays` are not those that `flatten` gives of `like`, by names and shapes."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(like)
    names = [_name(prefix, path) for path, _ in leaves]
    wrong = [
        f"{name}: {'missing' if name not in arrays else tuple(np.shape(arrays[name]))}"
        for name, (_, leaf) in zip(names, leaves)
        if name not in arrays or np.shape(arrays[name]) != np.shape(leaf)
    ]
    below = {name for name in arrays if name.startswith(f"{prefix}/")} if prefix else set(arrays)
    wrong += [f"{name}: unexpected" for name in sorted(below - set(names))]
    if wrong:
        raise WeightError(
            "the checkpoint was made with other settings",
            where=where,
            received=", ".join(wrong[:10]) + (f" and {len(wrong) - 10} more" if len(wrong) > 10 else ""),
            allowed=f"the {len(names)} arrays of this run's {prefix or 'state'}",
            fix="resume with the config beside the checkpoint, or start again from its model.safetensors",
        )


def _name(prefix: str, path: tuple) -> str:
    keys = [str(getattr(key, "key", getattr(key, "name", getattr(key, "idx", key)))) for key in path]
    return "/".join(part for part in (prefix, *keys) if part)


def _damaged(path: Path, received: object, allowed: str, fix: str) -> FormatError:
    return FormatError("the file is damaged", where=path, received=received, allowed=allowed, fix=fix)


def _read_json(path: Path, fix: str) -> dict[str, Any]:
    """Raises: FormatError, where the file is no JSON mapping."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(path, error, "a mapping in JSON", fix) from error
    if not isinstance(data, dict):
        raise _damaged(path, f"{type(data).__name__}", "a mapping in JSON", fix)
    return data


def _write_json(path: Path, data: Mapping[str, JSON]) -> None:
    write_file(path, json.dumps(data, ensure_ascii=False, indent=1).encode("utf-8"), flush=True)
