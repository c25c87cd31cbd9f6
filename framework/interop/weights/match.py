"""Weights of an exported program for a Layer of ours, matched by the order of operations; and those of torch, by name.

An exported program has lost the names of the training code, but it runs the same operations in the same order as our
forward. So the layers that carry weights are recorded in the order in which forward calls them, and compared one by one
with the operations of the program; kinds and shapes must agree one by one. No table of names is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jax
import numpy as np

from framework import nn
from framework.core.errors import WeightError
from framework.interop.weights.weighted import WeightedOp
from framework.interop.weights.wrappers import find_model
from framework.nn.functional_core import abstract, apply
from framework.nn.reparam import fold_batch_norm

_KINDS: tuple[tuple[tuple[type[nn.Layer], ...], str], ...] = (
    ((nn.Conv1DTranspose, nn.Conv2DTranspose), "conv_transpose"),
    ((nn.Conv1D, nn.Conv2D, nn.Conv3D), "conv"),
    ((nn.Linear,), "linear"),
    ((nn.BatchNorm,), "batch_norm"),
    ((nn.LayerNorm,), "layer_norm"),
    ((nn.InstanceNorm2D,), "instance_norm"),
    ((nn.GroupNorm,), "group_norm"),
    ((nn.Embedding,), "embedding"),
    ((nn.PReLU,), "prelu"),
)
# Names of ours that differ from WeightedOp's.
_LOCAL: dict[str, dict[str, str]] = {"instance_norm": {"weight": "scale"}, "prelu": {"weight": "_weight"}}
_OUT_AXIS = {"conv": 0, "conv_transpose": 1, "linear": 1}

Example = Sequence[int] | jax.Array | np.ndarray | jax.ShapeDtypeStruct
"""An input of a layer: a shape of float32, or something with shape and dtype."""


@dataclass(frozen=True)
class WeightedCall:
    """One call of a layer with weights: its dotted name, its kind as in WeightedOp, and shapes by WeightedOp's keys."""

    name: str
    kind: str
    shapes: dict[str, tuple[int, ...]]

    def local(self, key: str) -> str:
        return _LOCAL.get(self.kind, {}).get(key, key)


def weighted_calls(layer: nn.Layer, *examples: Example) -> list[WeightedCall]:
    """The calls of layers with weights in the order in which `layer` makes them in eval mode, traced without computing.

    `examples` are the shapes of its inputs, float32, or jax.ShapeDtypeStructs.
    """
    names: list[str] = []
    owners = {name: sub for name, sub in layer.named_sublayers(include_self=True) if sub._parameters}
    modes = [(sub, sub.training) for sub in layer.sublayers(include_self=True)]
    handles = [
        sub.register_forward_pre_hook(lambda _, args, name=name: names.append(name))
        for name, sub in owners.items()
    ]
    try:
        graphdef, params, buffers = abstract(layer.eval())
        inputs = [
            jax.ShapeDtypeStruct(x, np.float32) if isinstance(x, (tuple, list)) else x for x in examples
        ]
        jax.eval_shape(lambda p, b, *xs: apply(graphdef, p, b, None, *xs), params, buffers, *inputs)
    finally:
        for handle in handles:
            handle.remove()
        for sub, mode in modes:
            sub.__dict__["training"] = mode
    return [_call(name, owners[name]) for name in names]


def _call(name: str, layer: nn.Layer) -> WeightedCall:
    default = "affine" if set(layer._parameters) <= {"scale", "bias"} else type(layer).__name__.lower()
    kind = next((kind for classes, kind in _KINDS if isinstance(layer, classes)), default)
    theirs = {ours: key for key, ours in _LOCAL.get(kind, {}).items()}
    shapes: dict[str, tuple[int, ...]] = {}
    for local, parameter in layer._parameters.items():
        shapes[str(theirs.get(local, local))] = parameter.shape
    for local, buffer in layer._buffers.items():
        if local not in layer._non_persistable:
            shapes[local] = tuple(buffer.shape)
    return WeightedCall(name, kind, shapes)


def match_weights(
    layer: nn.Layer, ops: Sequence[WeightedOp], *examples: Example, epsilon: float = 1e-5
) -> dict[str, np.ndarray]:
    """The entries of `layer.state_dict()` that a program carries, from its `weighted_ops`.

    Where the layer has no batch normalisation behind a convolution and the program has, it is folded into the
    convolution with `epsilon`. A layer that is called twice must get the same weights twice.

    Args:
        examples: Shapes of the inputs, float32, or jax.ShapeDtypeStructs.

    Raises:
        WeightError: the operations differ; says at which one, and shows ours and theirs.
    """
    calls = weighted_calls(layer, *examples)
    state: dict[str, np.ndarray] = {}
    rest = list(ops)[::-1]
    for index, call in enumerate(calls):
        op = rest.pop() if rest else None
        follows = calls[index + 1].kind if index + 1 < len(calls) else ""
        if op is not None and rest and rest[-1].kind == "batch_norm" != follows and op.kind in _OUT_AXIS:
            op = _fold_norm(op, rest.pop(), epsilon)
        arrays = None if op is None else _fit(call, op)
        if arrays is None:
            raise _mismatch_error(layer, index, calls, op, len(ops))
        for key, array in arrays.items():
            if key in state and not np.array_equal(state[key], array):
                raise WeightError(
                    "a layer that is called twice has two different weights in the program",
                    where=key,
                    received=f"the operation {op.node!r}" if op else None,
                    allowed="the weights of its first call",
                )
            state[key] = array
    if rest:
        raise _mismatch_error(layer, len(calls), calls, rest[-1], len(ops))
    return state


def _fold_norm(op: WeightedOp, norm: WeightedOp, epsilon: float) -> WeightedOp:
    if norm.arrays["weight"].shape != (op.arrays["weight"].shape[_OUT_AXIS[op.kind]],):
        return op
    stats = (norm.arrays[key] for key in ("weight", "bias", "_mean", "_variance"))
    weight, bias = fold_batch_norm(
        op.arrays["weight"], op.arrays.get("bias"), *stats, epsilon=epsilon, out_axis=_OUT_AXIS[op.kind]
    )
    return WeightedOp(op.kind, {"weight": weight, "bias": bias}, op.source, op.node)


def _fit(call: WeightedCall, op: WeightedOp) -> dict[str, np.ndarray] | None:
    """The arrays of `op` under the names of ours, or None when kind, keys or shapes differ."""
    if op.kind != call.kind or set(op.arrays) != set(call.shapes):
        return None
    if not all(_same(op.arrays[key].shape, shape) for key, shape in call.shapes.items()):
        return None
    prefix = f"{call.name}." if call.name else ""
    return {
        prefix + call.local(key): np.asarray(op.arrays[key], np.float32).reshape(shape)
        for key, shape in call.shapes.items()
    }


def _same(theirs: tuple[int, ...], ours: tuple[int, ...]) -> bool:
    """Equal, or equal but for axes of size 1 behind the second: a 1-D convolution is exported as a 2-D one.

    A scalar may have one axis or none.
    """
    if len(ours) < 2:
        return theirs == ours or math.prod(theirs) == math.prod(ours) == 1
    return theirs[:2] == ours[:2] and [n for n in theirs[2:] if n > 1] == [n for n in ours[2:] if n > 1]


def _mismatch_error(
    layer: nn.Layer, index: int, calls: Sequence[WeightedCall], op: WeightedOp | None, total: int
) -> WeightError:
    ours = _spell(calls[index].name, calls[index].kind, calls[index].shapes) if index < len(calls) else "none"
    if op is None:
        theirs = "none"
    else:
        names = ", ".join(op.source.values())
        theirs = _spell(names, op.kind, {key: array.shape for key, array in op.arrays.items()})
    return WeightError(
        f"the program is not a {type(layer).__name__} of this configuration",
        where=f"operation {index + 1} of {len(calls)} (the program has {total})",
        received=theirs,
        allowed=ours,
        fix="check variant and num_classes; exported programs are mostly in deploy form (deploy=True)",
    )


def _spell(name: str, kind: str, shapes: dict[str, tuple[int, ...]]) -> str:
    return f"{kind} {name}: " + ", ".join(f"{key} {shape}" for key, shape in shapes.items())


# -- state dicts of torch ------------------------------------------------------------------------------------------

_LEAVES = {"running_mean": "_mean", "running_var": "_variance"}


def from_torch(state: Mapping[str, np.ndarray], layer: nn.Layer) -> dict[str, np.ndarray]:
    """What `layer.set_state_dict` takes, from the state dict of the same model in torch.

    Names lose what wrappers put into them (`wrappers.py`), running statistics and the slopes of `nn.PReLU` get Paddle's
    names, `num_batches_tracked` is dropped, and other spellings become ours as in `set_state_dict`. What a layer has in
    `transposed_in_torch` is turned: weights of `nn.Linear`, square ones too, from [out, in] to [in, out]. Everything
    else has the same layout in both. Names that the layer does not know are kept.

    Raises:
        WeightError: `state` is empty, holds something other than arrays, or has Paddle's names already.
    """
    wrong = [name for name, value in state.items() if not isinstance(value, np.ndarray)]
    paddle = [name for name in state if name.rpartition(".")[2] in _LEAVES.values()]
    if not state or wrong or paddle:
        received = (
            f"no array under {wrong[:3]}"
            if wrong
            else f"Paddle's names {paddle[:3]}"
            if paddle
            else "nothing"
        )
        raise WeightError(
            "the state dict must be torch's",
            received=received,
            allowed="a mapping of names to arrays, statistics called running_mean and running_var",
            fix="read the file with load_weights, which unwraps checkpoints; Paddle's need no conversion",
        )
    named = {}
    for name, value in find_model(state, layer).items():
        owner, dot, leaf = name.rpartition(".")
        if leaf != "num_batches_tracked":
            named[f"{owner}{dot}{_LEAVES.get(leaf, leaf)}"] = value
    subs = list(layer.named_sublayers(include_self=True))
    transposed = {_weight(name, leaf) for name, sub in subs for leaf in sub.transposed_in_torch}
    slopes = {_weight(name): _weight(name, "_weight") for name, sub in subs if isinstance(sub, nn.PReLU)}
    return {
        slopes.get(name, name): value.T if name in transposed and value.ndim == 2 else value
        for name, value in layer._without_aliases(named).items()
    }


def _weight(owner: str, leaf: str = "weight") -> str:
    return f"{owner}.{leaf}" if owner else leaf
