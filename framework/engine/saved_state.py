"""The state of a training run in a checkpoint: whether it fits a run, and onto its devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import jax
import numpy as np

from framework.core.errors import FormatError, WeightError
from framework.core.lazy import LazyModule
from framework.core.types import JSON, PyTree
from framework.distributed import Partitioner
from framework.engine.step import TrainState
from framework.io.checkpoint import (
    ARRAYS,
    STATE,
    Checkpoint,
    check_names,
    flatten,
    is_sharded,
    load_checkpoint,
    read_meta,
    unflatten,
    verify_files,
)

if TYPE_CHECKING:
    from framework.io import sharded
else:
    sharded = LazyModule("framework.io.sharded")  # orbax takes a second to import

_FIELDS = ("step", "optimizer", "ema", "scaler", "lr_factor", "tables")
_META = {"settings", "best_score", "since_best", "sums", "plateau"}


def state_besides(state: TrainState) -> dict[str, PyTree]:
    """All of a state but the arrays of the model."""
    return {name: getattr(state, name) for name in _FIELDS}


def read_saved(folder: Path, state: PyTree, settings: Mapping[str, JSON]) -> Checkpoint:
    """A checkpoint that fits a run of this state; without its arrays where devices have written each its own.

    Args:
        state: Its shapes, as `Partitioner.whole_shapes` gives them.
        settings: What must not change between a run and its resumption.

    Raises:
        FormatError: a file is missing or damaged.
        WeightError: it is of another model, or of a run with other settings.
    """
    model: Mapping[str, np.ndarray | jax.ShapeDtypeStruct]
    train: Mapping[str, np.ndarray | jax.ShapeDtypeStruct]
    if is_sharded(folder):
        saved, shapes = read_meta(folder), sharded.stored_shapes(folder / ARRAYS)
        model, train = shapes.get("model", {}), shapes.get("train", {})
    else:
        saved = load_checkpoint(folder)
        model, train = saved.model, saved.train
    if missing := _META - saved.meta.keys():
        raise FormatError(
            "the checkpoint does not say where the run was",
            where=folder / STATE,
            received=f"no {', '.join(sorted(missing))}",
            fix="resume from another checkpoint, or start from its weights with `pretrained`",
        )
    _check_model({**state.params, **state.buffers}, model, folder)
    for name, value in settings.items():
        if saved.meta["settings"].get(name) != value:
            raise WeightError(
                f"the run cannot go on with another {name.replace('_', ' ')}",
                where=folder,
                received=f"{name}: {value}, saved {saved.meta['settings'].get(name)}",
                allowed="the data and settings of the run, so that its order of samples goes on",
                fix="set it back, or start anew from the checkpoint's weights with `pretrained`",
            )
    if not is_sharded(folder):
        saved = replace(saved, train=_complete_average(saved.train, saved.model, state))
        train = saved.train
    check_names(state_besides(state), train, where=folder)
    return saved


def _complete_average(
    train: Mapping[str, np.ndarray], model: Mapping[str, np.ndarray], state: TrainState
) -> dict[str, np.ndarray]:
    """The saved arrays beside a model. Runs of earlier releases averaged no running statistics: those of the model
    stand for them, as they did there."""
    weight = train.get("ema/weight")
    missing = state.buffers.keys() & state.ema.get("average", {}).keys() if weight is not None else set()
    names = {name: f"ema/average/{name}" for name in missing}
    return {
        **{key: (model[name] * weight).astype(np.float32) for name, key in names.items()},
        **train,
    }


def _check_model(
    ours: Mapping[str, jax.ShapeDtypeStruct],
    saved: Mapping[str, np.ndarray | jax.ShapeDtypeStruct],
    folder: Path,
) -> None:
    shapes = {name: tuple(a.shape) for name, a in ours.items()}
    theirs = {name: tuple(a.shape) for name, a in saved.items()}
    if shapes == theirs:
        return
    differ = sorted(name for name in shapes.keys() | theirs.keys() if shapes.get(name) != theirs.get(name))
    raise WeightError(
        "the checkpoint is of another model",
        where=folder,
        received=", ".join(f"{n}: {theirs.get(n, 'missing')}" for n in differ[:5])
        + f" ({len(differ)} differ)",
        allowed=f"the {len(shapes)} arrays of this config's model",
        fix="resume with the config beside the checkpoint, or start from its weights with `pretrained`",
    )


def load_state(saved: Checkpoint, state: TrainState, partitioner: Partitioner) -> TrainState:
    """The state of a checkpoint, laid out as `state`, whose arrays are given up. Each process reads what its devices
    hold, whatever devices have written it.

    Raises:
        FormatError: a file is damaged.
    """
    if not is_sharded(saved.folder):
        rest = unflatten(state_besides(partitioner.whole_shapes(state)), saved.train, where=saved.folder)
        return partitioner.place(_join(state, saved.model, rest))
    verify_files(saved, jax.process_index(), jax.process_count())
    structs = partitioner.structs(state)
    besides = state_besides(structs)
    like = {"model": {**structs.params, **structs.buffers}, "train": flatten(besides)}
    for leaf in jax.tree.leaves(state):
        leaf.delete()  # no device need hold both
    arrays = sharded.load_sharded(saved.folder / ARRAYS, like)
    leaves = [arrays["train"][name] for name in like["train"]]
    return _join(structs, arrays["model"], jax.tree.unflatten(jax.tree.structure(besides), leaves))


def _join(like: TrainState, model: Mapping[str, PyTree], rest: dict[str, PyTree]) -> TrainState:
    params = {name: model[name] for name in like.params}
    return TrainState(params=params, buffers={name: model[name] for name in like.buffers}, **rest)
