"""State dicts of torch models in Paddle's conventions, for a Layer of ours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from framework import nn
from framework.core.errors import WeightError

_PARALLEL = "module."  # what DataParallel puts before every name
_LEAVES = {"running_mean": "_mean", "running_var": "_variance"}


def from_torch(state: Mapping[str, np.ndarray], layer: nn.Layer) -> dict[str, np.ndarray]:
    """What `layer.set_state_dict` takes, from the state dict of the same model in torch.

    Names lose a `module.` that all have, running statistics and the slopes of `nn.PReLU` get Paddle's names,
    `num_batches_tracked` is dropped, and other spellings become ours as in `set_state_dict`. Weights of `nn.Linear` are
    transposed, from [out, in] to [in, out]; everything else has the same layout in both. Names that the layer does not
    know are kept.

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
            "this is no state dict of torch",
            received=received,
            allowed="a mapping of names to arrays, statistics called running_mean and running_var",
            fix="read the file with load_weights, which unwraps checkpoints; Paddle's need no conversion",
        )
    prefix = _PARALLEL if all(name.startswith(_PARALLEL) for name in state) else ""
    named = {}
    for name, value in state.items():
        owner, dot, leaf = name.removeprefix(prefix).rpartition(".")
        if leaf != "num_batches_tracked":
            named[f"{owner}{dot}{_LEAVES.get(leaf, leaf)}"] = value
    subs = list(layer.named_sublayers(include_self=True))
    linear = {_weight(name) for name, sub in subs if isinstance(sub, nn.Linear)}
    slopes = {_weight(name): _weight(name, "_weight") for name, sub in subs if isinstance(sub, nn.PReLU)}
    return {
        slopes.get(name, name): value.T if name in linear and value.ndim == 2 else value
        for name, value in layer._without_aliases(named).items()
    }


def _weight(owner: str, leaf: str = "weight") -> str:
    return f"{owner}.{leaf}" if owner else leaf
