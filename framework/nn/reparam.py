"""Re-parameterisation: a model of several training branches becomes one of single biased convolutions.

A block that has two forms takes `deploy` in its constructor and defines `deploy_state()`: the arrays of its deploy form
by name relative to itself. A layer without that method keeps its own arrays and asks its children. So the conversion
is data: build the deploy form from the same config, and load what `deploy_state` returns.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeVar

import numpy as np
from jax.typing import ArrayLike

from framework import nn
from framework.nn.model import rebuild

Arrays = dict[str, np.ndarray]
_Model = TypeVar("_Model", bound=nn.Layer)


class FoldableLayer(nn.Layer):
    """Base of blocks that hold a convolution and its normalisation."""

    def fold(self) -> None:
        """Folds the normalisation into the convolution, in place: what eval mode computes stays the same."""
        raise NotImplementedError


def fold_batch_norm(
    weight: ArrayLike,
    bias: ArrayLike | None,
    gamma: ArrayLike,
    beta: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    *,
    epsilon: float = 1e-5,
    out_axis: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """(weight, bias) float32 of the one convolution that equals convolution and normalisation in eval mode.

    `out_axis` is the axis of the output channels in `weight`: 0 for OIHW, 1 for IOHW and for Linear's [in, out].
    """
    gamma, beta, mean, variance = (np.asarray(a, np.float64) for a in (gamma, beta, mean, variance))
    scale = gamma / np.sqrt(variance + epsilon)
    weight = np.asarray(weight, np.float64)
    per_output = [1] * weight.ndim
    per_output[out_axis] = -1
    shift = -mean if bias is None else np.asarray(bias, np.float64) - mean
    return (weight * scale.reshape(per_output)).astype(np.float32), (beta + shift * scale).astype(np.float32)


def fuse_conv_bn(
    weight: ArrayLike, bias: ArrayLike | None, bn: nn.BatchNorm, out_axis: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """(weight, bias) of a convolution with the normalisation behind it folded in; `out_axis=1` for a transposed one."""
    return fold_batch_norm(
        weight, bias, bn.weight, bn.bias, bn._mean, bn._variance, epsilon=bn.epsilon, out_axis=out_axis
    )


def centred(kernel: np.ndarray, size: int, dilation: int = 1) -> np.ndarray:
    """An odd kernel [out, in, k, k], dilated, in the middle of zeros [out, in, size, size]."""
    reach = dilation * (kernel.shape[2] - 1) + 1
    start = size // 2 - reach // 2
    out = np.zeros((*kernel.shape[:2], size, size), kernel.dtype)
    out[:, :, start : start + reach : dilation, start : start + reach : dilation] = kernel
    return out


def deploy_state(layer: nn.Layer) -> Arrays:
    """The `state_dict()` of the deploy form of `layer`, computed from its training form."""
    own = getattr(type(layer), "deploy_state", None)
    return own(layer) if own is not None else own_state(layer)


def own_state(layer: nn.Layer) -> Arrays:
    """`deploy_state` of a layer whose own arrays are the same in both forms: those, and its children's deploy form."""
    state = {name: np.asarray(parameter.value) for name, parameter in layer._parameters.items()}
    kept = (name for name in layer._buffers if name not in layer._non_persistable)
    state.update({name: np.asarray(layer._buffers[name]) for name in kept})
    for name, child in layer.named_children():
        state.update(prefixed(name, deploy_state(child)))
    return state


def prefixed(name: str, state: Arrays) -> Arrays:
    """`state` with the keys that a parent has for its child `name`."""
    return {f"{name}.{key}": value for key, value in state.items()}


def reparameterize(model: _Model) -> _Model:
    """The deploy form of a model in eval mode, with equal outputs; a model that has one form only is returned.

    Training-only branches (threshold maps, auxiliary heads, attention guidance) are not in it. A model says that it has
    two forms by a field `deploy` of its config.
    """
    deployed = rebuild(model, deploy=True)
    if deployed is None:
        return model
    if deployed.state_shapes() == model.state_shapes():
        return model
    deployed.set_state_dict(deploy_state(model))
    deployed.eval()
    return deployed


def fold_norms(model: nn.Layer) -> nn.Layer:
    """Folds, in place, every normalisation of a FoldableLayer and of a Sequential into the convolution before it.

    For inference: a convolution with a bias is one operation where normalising is another pass over its result.
    """
    for layer in model.sublayers(include_self=True):
        if isinstance(layer, FoldableLayer):
            layer.fold()
        elif isinstance(layer, nn.Sequential):
            for (_, conv), (name, norm) in pairwise(list(layer.named_children())):
                if type(conv) is nn.Conv2D and type(norm) is nn.BatchNorm2D:
                    fold_norm(conv, norm)
                    setattr(layer, name, nn.Identity())
    return model


def fold_norm(conv: nn.Conv2D, norm: nn.BatchNorm) -> None:
    """Gives `conv` the weight and bias that it has with `norm` behind it, in place."""
    weight, bias = fuse_conv_bn(conv.weight, conv.bias, norm)
    conv.weight = weight
    conv.bias = conv.create_parameter(bias.shape, is_bias=True)
    conv.bias = bias
