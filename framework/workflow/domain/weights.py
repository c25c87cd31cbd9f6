"""Weights into models, whatever form either has."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np

from framework import hub, nn
from framework.config import build
from framework.core.errors import InputError, WeightError
from framework.core.model_config import setting_of
from framework.core.torch_state import TorchState
from framework.interop import load_program, load_weights, weighted_ops
from framework.interop.detect import detect
from framework.interop.paddle_runs import name_of_checkpoint
from framework.interop.source import Source, find_paddle_program, read_source
from framework.interop.weights.match import from_torch, match_weights
from framework.interop.weights.model_folder import find_weights, is_model_folder
from framework.interop.weights.weighted import WeightedOp
from framework.interop.weights.wrappers import find_model
from framework.io.checkpoint import CHECKPOINTS, STATE, find_checkpoint, load_checkpoint
from framework.nn.model import rebuild
from framework.nn.reparam import deploy_state

_PROGRAMS = ("onnx", "pdmodel", "pir")
_Model = TypeVar("_Model", bound=nn.Layer)
_Config = TypeVar("_Config")


@runtime_checkable
class RegroupsProgram(Protocol):
    """A model whose layers are other groups of operations than those of upstream's exported program."""

    def program_ops(self, ops: list[WeightedOp]) -> list[WeightedOp]:
        """The operations as this model's layers have them."""
        ...


@runtime_checkable
class FitsWeights(Protocol):
    """A layer with a part that some of its published weights have and others do not."""

    def fit_weights(self, names: Collection[str]) -> None:
        """Take the form, in place, that has arrays of these names, in our spelling and relative to the layer."""
        ...


def resolve_weights(spec: str | Path, domain: str | None = None) -> Path:
    """The file, or the folder of a checkpoint, that `spec` means: the folder of a run (its best checkpoint), that of a
    model of transformers or PaddleNLP, or of one that Paddle exported, a path, a name of the hub or an address, which
    are fetched. Names that Paddle's toolkits give the checkpoints of a run, such as output/best_model/model.pdparams,
    mean those of the run here.

    Raises:
        HubError: it is none of these, or cannot be reached.
        FormatError: the folder of a model has no weights.
    """
    path = Path(spec).expanduser()
    if is_model_folder(path):
        return find_weights(path)
    if (program := find_paddle_program(path)) is not None:
        return program
    named = None if path.exists() else name_of_checkpoint(path)
    if path.is_dir() or (named is not None and (named[0] / CHECKPOINTS).is_dir()):
        return find_checkpoint(path, prefer="best")
    return hub.resolve(spec, domain)


def _open(path: str | Path | Source) -> Source | Path:
    """A file of weights, read once for all that is asked of it; of a checkpoint its folder. Raises: FormatError."""
    return Path(path) if not isinstance(path, Source) and Path(path).is_dir() else read_source(path)


def _is_program(weights: Source | Path) -> bool:
    return isinstance(weights, Source) and detect(weights) in _PROGRAMS


def load_model(config: object, path: str | Path, params: str | Path | None = None) -> nn.Layer:
    """The model of a bound config with weights from a file or a checkpoint folder, in evaluation mode.

    An exported program is of the deploy form, so the config and those in it are given `deploy=True` where they have it:
    nobody has to say what the file says.

    Raises:
        FormatError: the file cannot be read. WeightError: the weights do not fit the model.
    """
    weights = _open(path)
    if _is_program(weights):
        config = deploy_config(config)
    model: nn.Layer = build(config)
    return load_weights_into(model, weights, params).eval()


def deploy_config(config: _Config) -> _Config:
    """A config dataclass whose field `deploy`, and that of every config in it, is True."""
    if not dataclasses.is_dataclass(config) or isinstance(config, type):
        return config
    changes: dict[str, object] = {}
    for field in dataclasses.fields(config):
        if not field.init:
            continue
        value = getattr(config, field.name)
        new = True if field.name == "deploy" else deploy_config(value)
        if new is not value:
            changes[field.name] = new
    return dataclasses.replace(config, **changes) if changes else config


def load_weights_into(model: _Model, path: str | Path | Source, params: str | Path | None = None) -> _Model:
    """Load a file of weights, or a checkpoint folder, into `model`, which is returned.

    An exported program (ONNX, .pdmodel, PIR .json) is matched by the order of its operations; it fits the deploy form.
    A state dict (.pdparams, .safetensors, .pth) goes by name; a training checkpoint is re-parameterised on its way
    into a deploy form. Entries that begin with one of `model.training_only` may be left over, and no others.

    Args:
        params: The parameter file of a Paddle program; by default the one beside it.

    Raises:
        FormatError: the file cannot be read.
        WeightError: the weights do not fit the model.
    """
    weights = _open(path)
    if isinstance(weights, Source) and _is_program(weights):
        ops = weighted_ops(load_program(weights, params))
        # A model whose upstream cuts its layers otherwise says how they correspond.
        ops = model.program_ops(ops) if isinstance(model, RegroupsProgram) else ops
        model.set_state_dict(match_weights(model, ops, model.example_shape))
        return model
    return load_state_into(model, read_state(weights))


def checkpoint_weights(folder: Path) -> dict[str, np.ndarray]:
    """What a checkpoint is evaluated with: its model, averaged where the run kept an average."""
    if not (folder / STATE).is_file():
        folder = find_checkpoint(folder, prefer="best")
    saved = load_checkpoint(folder)
    share = saved.train.get("ema/weight", np.float32(0))
    average = {
        name.removeprefix("ema/average/"): value / share
        for name, value in saved.train.items()
        if share > 0 and name.startswith("ema/average/")
    }
    return {**saved.model, **average}


def load_state_into(model: _Model, state: dict[str, np.ndarray]) -> _Model:
    """As `load_weights_into`, from named arrays in the training form or in the form of the model."""
    other = _training_form(model)
    state = find_model(state, model if other is None else other)
    if other is not None and len(state.keys() & other.state_shapes().keys()) > len(
        state.keys() & model.state_shapes().keys()
    ):
        state = deploy_state(load_state_into(other, state))
    state = spell_as_ours(state, model)
    ours, only = model.state_shapes(), getattr(model, "training_only", ())
    model.set_state_dict({k: v for k, v in state.items() if k in ours or not k.startswith(only)})
    return model


def spell_as_ours(
    state: dict[str, np.ndarray], model: nn.Layer, announce: bool = True
) -> dict[str, np.ndarray]:
    """A state dict of any spelling in the names and layouts of `model`, whose layers take the form of the weights. With
    `announce` the log says what is left out beside them."""
    state = find_model(state, model, announce)
    if is_torch(state, model):
        state = from_torch(state, model)
    state = dict(model._without_aliases(state))
    for name, layer in model.named_sublayers(include_self=True):
        if isinstance(layer, FitsWeights):
            dot = f"{name}." if name else ""
            layer.fit_weights({key.removeprefix(dot) for key in state if key.startswith(dot)})
    return state


def _training_form(model: _Model) -> _Model | None:
    """The same model with its training branches, where `model` is in deploy form."""
    return rebuild(model, deploy=False) if setting_of(model, "deploy", bool) else None


def is_torch(state: dict[str, np.ndarray], model: nn.Layer) -> bool:
    """Whether a state dict has torch's conventions: its file says so, it has names that only torch's models have, or
    weights of `nn.Linear` fit `model` the other way round."""
    if isinstance(state, TorchState):
        return True
    our_shapes = model.state_shapes()
    if any(
        name.endswith((".running_mean", ".num_batches_tracked"))
        or (".LayerNorm." in name and name not in our_shapes)
        for name in state
    ):
        return True  # LayerNorm: the transformers library's, where a square matrix does not say which way round it is
    linear = {name: m for name, m in model.named_sublayers() if isinstance(m, nn.Linear)}
    official = model._without_aliases(state)
    shapes = [
        (official[f"{name}.weight"].shape, tuple(m._parameters["weight"].shape))
        for name, m in linear.items()
        if f"{name}.weight" in official
    ]
    return any(theirs != ours and theirs == ours[::-1] for theirs, ours in shapes)


def load_pretrained(
    model: nn.Layer,
    weights: str | Path,
    skip: str | None = None,
    into: str | None = None,
    partial: bool = False,
) -> list[str]:
    """Start from weights: all must fit but the parameters whose names match `skip`; returns the names of those.

    With `into` they are those of this sublayer, and its names count; entries that it does not have are left out. With
    `partial`, as in PaddleDetection, what fits by name and shape is taken, into the whole model or into the one of its
    parts that most of it is of, and the names of all other entries of the model are returned.

    Args:
        weights: What `resolve_weights` takes: a file of Paddle, torch or safetensors, a checkpoint or run, a name of
            the hub such as "resnet50_imagenet", an address.

    Raises:
        InputError: `weights` is no text and no path.
        HubError, FormatError: there are no such weights, or they cannot be read.
        WeightError: entries that are not skipped are missing, left over or of another shape; there is no such sublayer.
    """
    if not isinstance(weights, str | os.PathLike):
        raise InputError(
            "weights must be a path, a name or an address",
            where="load_pretrained",
            received=f"a {type(weights).__name__}",
            allowed="a path, a name that `oar models list` shows, or an address",
            fix="net.set_state_dict(state) loads a mapping of names to arrays",
        )
    opened = _open(resolve_weights(weights))
    if not (partial or skip or into) and _is_program(opened):
        load_weights_into(model, opened)
        return []
    read = read_state(opened)
    if partial:
        return _load_what_fits(model, read, weights)
    target = model if into is None else _sublayer(model, into)
    state = spell_as_ours(read, target)
    values = {name: np.asarray(value) for name, value in target.state_dict().items()} if skip else {}
    if into is not None:
        state = {name: value for name, value in state.items() if name in target.state_shapes()}
    skipped = [name for name in values if re.search(skip, name)] if skip else []
    if skip and not skipped:
        raise WeightError(
            "no parameter is skipped",
            where="pretrained.skip",
            received=repr(skip),
            allowed=f"a regular expression found in one of {len(values)} names such as {list(values)[-2:]}",
        )
    fitting = {name: value for name, value in state.items() if name not in skipped}
    load_state_into(target, {**fitting, **{name: values[name] for name in skipped}})
    return skipped


def _load_what_fits(model: nn.Layer, state: dict[str, np.ndarray], weights: str | Path) -> list[str]:
    def find_fitting(layer: nn.Layer, announce: bool = False) -> dict[str, np.ndarray]:
        shapes = layer.state_shapes()
        ours = spell_as_ours(state, layer, announce)
        return {name: a for name, a in ours.items() if name in shapes and a.shape == tuple(shapes[name])}

    layers = {"": model, **dict(model.named_children())}
    name, fitting = max(
        ((name, find_fitting(part)) for name, part in layers.items()), key=lambda one: len(one[1])
    )
    if not fitting:
        raise WeightError(
            "nothing of these weights fits the model",
            where=str(weights),
            received=f"{len(state)} entries such as {', '.join(list(state)[:3])}",
            allowed=f"names and shapes such as {', '.join(list(model.state_shapes())[:3])}",
        )
    fitting = find_fitting(layers[name], announce=True)
    values = {key: np.asarray(value) for key, value in layers[name].state_dict().items()}
    load_state_into(layers[name], {**values, **fitting})
    prefix = f"{name}." if name else ""
    fitted = {prefix + key for key in fitting}
    return [key for key in model.state_shapes() if key not in fitted]


def read_state(path: Path | Source) -> dict[str, np.ndarray]:
    """The named arrays of a file of weights or of a checkpoint. Raises: FormatError."""
    weights = _open(path)
    return load_weights(weights) if isinstance(weights, Source) else checkpoint_weights(weights)


def _sublayer(model: nn.Layer, name: str) -> nn.Layer:
    layers = dict(model.named_sublayers())
    if name not in layers:
        raise WeightError(
            "the model has no such part",
            where="pretrained.into",
            received=repr(name),
            allowed=", ".join(name for name, _ in model.named_children()),
        )
    return layers[name]
