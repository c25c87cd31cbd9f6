"""paddle.incubate.asp.supported_layer_list: which layers are pruned, and by which function."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from framework.paddle.incubate.asp.utils import CheckMethod, MaskAlgo, check_sparsity, create_mask
from framework.paddle.nn.layer import Layer, _snake_case

_log = logging.getLogger("oar")
# (weight, m, n, algorithm, name of the parameter) -> the pruned weight and its mask.
Pruning = Callable[[np.ndarray, int, int, MaskAlgo, str], tuple[np.ndarray, np.ndarray]]
supported_layers_and_prune_func_map: dict[str, Pruning] = {}


def _default_pruning(
    weight_nparray: np.ndarray, m: int, n: int, func_name: MaskAlgo, param_name: str
) -> tuple[np.ndarray, np.ndarray]:
    """Mask along the inputs of a layer; a weight of fewer than m inputs stays."""
    shape = weight_nparray.shape
    axis = {2: 0, 4: 1}.get(len(shape))
    if axis is not None and shape[axis] < m:
        _log.warning("%s is not pruned: axis %d of %s is smaller than %d", param_name, axis, shape, m)
        return weight_nparray.copy(), np.ones_like(weight_nparray)
    mask = create_mask(weight_nparray.T, func_name, n, m).T
    pruned = weight_nparray * mask
    assert check_sparsity(pruned.T, CheckMethod.get_checking_method(func_name), n, m), (
        f"Pruning {param_name} weight matrix failure!!!"
    )
    return pruned, mask


def add_supported_layer(layer: str | Layer | type[Layer], pruning_func: Pruning | None = None) -> None:
    """Prune parameters of this layer, too.

    Args:
        layer: The beginning of the names of its parameters, the layer or its class.
        pruning_func: What prunes them; None: the mask of `prune_model`, along the inputs.
    """
    if not isinstance(layer, str):
        layer = _snake_case((layer if isinstance(layer, type) else type(layer)).__name__)
    supported_layers_and_prune_func_map[layer] = pruning_func or _default_pruning


for _layer in ("fc", "linear", "conv2d"):
    add_supported_layer(_layer)
