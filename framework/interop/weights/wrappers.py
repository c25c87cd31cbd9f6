"""Names of a state dict without what wrappers and trainers put before those of the model.

`torch.compile`, DataParallel, FSDP and activation checkpoints put a component into the names, wherever the wrapped
module stands; trainers keep a model as a part of something (`model.`, `net.`), or two of them side by side (`student.`
and `teacher.`, `model.` and `ema.`).
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

import numpy as np

from framework import nn

_log = logging.getLogger("oar")
Arrays = TypeVar("Arrays", bound=Mapping[str, np.ndarray])

_COMPONENTS = frozenset(
    (
        "_orig_mod",
        "module",
        "_fsdp_wrapped_module",
        "_checkpoint_wrapped_module",
        "_forward_module",
        "_layers",
    )
)
"""What torch.compile, DataParallel, FSDP, activation checkpoints, Lightning and Paddle's DataParallel put in."""
_AVERAGES = ("ema", "teacher", "average", "momentum", "target", "swa")
"""Of two models side by side the averaged one is what their programs evaluate."""
_DEPTH = 3  # components of a prefix
_LEAST = 4  # names behind it: a layer of two arrays is found behind many
_LEAVES = {"running_mean": "_mean", "running_var": "_variance"}
_COPIES = ("ema_", "ema.", "model_ema.")
_COUNTERS = ("num_batches_tracked", "n_averaged")


def remove_wrappers(state: Arrays, own_components: frozenset[str] = frozenset()) -> Arrays:
    """The same arrays with names that lose the components of wrappers, but for those that are `own_components` of the
    model. Names stay as they are where two would become one."""
    names = unwrapped_names(state, own_components)
    if all(name == short for name, short in names.items()):
        return state
    return type(state)({names[name]: value for name, value in state.items()})  # type: ignore[call-arg]


def unwrapped_names(names: Iterable[str], own_components: frozenset[str] = frozenset()) -> dict[str, str]:
    """For each name the one that `remove_wrappers` gives."""
    dropped = _COMPONENTS - own_components
    short = {name: ".".join(one for one in name.split(".") if one not in dropped) for name in names}
    return {name: name for name in short} if len(set(short.values())) < len(short) else short


def find_model(state: Arrays, layer: nn.Layer, announce: bool = True) -> Arrays:
    """The arrays of `state` that are of `layer`, under its own names where a prefix stands before them.

    The prefix is the one behind which most names of the layer stand; of several with all of them, that of an average
    (`ema.`, `teacher.`). Where all of the layer is there, what stands beside it is left out, and with `announce` the
    log says so in one line.
    """
    shapes = layer.state_shapes()
    components = frozenset(component for name in shapes for component in name.split("."))
    state = remove_wrappers(state, components)
    best = _matches(state, layer)
    if best >= len(shapes):
        return _without_copies(state, shapes, announce)
    prefixes = Counter(
        ".".join(parts[:depth]) + "."
        for parts in (name.split(".") for name in state)
        for depth in range(1, min(_DEPTH, len(parts) - 1) + 1)
    )
    least = max(best + 1, _LEAST, len(shapes) // 2)
    candidates = {
        prefix: _matches(_below(state, prefix), layer) for prefix, count in prefixes.items() if count >= least
    }
    most = max(candidates.values(), default=0)
    if most < least:
        return state
    equal = [name for name, count in candidates.items() if count == most]
    prefix = min(equal, key=lambda prefix: (_rank(prefix), len(prefix)))
    inner = _below(state, prefix)
    others = [name for name in state if not name.startswith(prefix) and not name.endswith(_COUNTERS)]
    if most < len(shapes):  # what is missing is said with the names that the file has
        inner = type(state)({**inner, **{name: state[name] for name in others}})  # type: ignore[call-arg]
    elif others and announce:
        _log.info(
            f"the weights are those below {prefix!r}; {len(others)} others are left out, such as {others[0]}"
        )
    return inner


def _without_copies(state: Arrays, shapes: Mapping[str, tuple[int, ...]], announce: bool) -> Arrays:
    """Without the averages that stand beside the arrays of a model, as `ema_backbone_conv_weight` does."""
    copies = [name for name in state if name.startswith(_COPIES) and name not in shapes]
    if not copies:
        return state
    if announce:
        _log.info(f"{len(copies)} averages beside the weights are left out, such as {copies[0]}")
    return type(state)({name: value for name, value in state.items() if name not in copies})  # type: ignore[call-arg]


def _below(state: Arrays, prefix: str) -> Arrays:
    below = {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
    return type(state)(below)  # type: ignore[call-arg]


def _rank(prefix: str) -> bool:
    return not any(word in prefix.lower() for word in _AVERAGES)


def _matches(state: Mapping[str, np.ndarray], layer: nn.Layer) -> int:
    """How many arrays of the layer there are: by name, in its spelling or torch's, and by their sizes."""
    slopes = {f"{name}.weight" for name, one in layer.named_sublayers() if isinstance(one, nn.PReLU)}
    spelled = {}
    for name, value in state.items():
        owner, dot, leaf = name.rpartition(".")
        ours = f"{owner}._weight" if name in slopes else f"{owner}{dot}{_LEAVES.get(leaf, leaf)}"
        spelled[ours] = value
    shapes, ours = layer.state_shapes(), layer._without_aliases(spelled)
    return sum(name in ours and sorted(ours[name].shape) == sorted(shape) for name, shape in shapes.items())
