"""paddle.incubate.layers.nn: layers of static programs that Paddle keeps for models of recommendation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import jax

from framework.paddle._kernel.dispatch import Array, Key, operation
from framework.paddle._kernel.modules import resolver as _resolver
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.base.layer_helper import LayerHelper
from framework.paddle.nn import functional as F
from framework.paddle.ops.creation import full_like
from framework.paddle.optimizer.lr.counted import _decay_step_counter
from framework.paddle.static.nn import batch_norm

if TYPE_CHECKING:
    from framework.paddle.nn.param_attr import AttrLike

log = logging.getLogger("oar")


def _appended(op_type: str, inputs: Sequence[Tensor], attrs: dict[str, object]) -> Tensor:
    helper = LayerHelper(op_type)
    out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op(type=op_type, inputs={"X": list(inputs)}, outputs={"Out": out}, attrs=attrs)
    return out


def partial_concat(input: Sequence[Tensor] | Tensor, start_index: int = 0, length: int = -1) -> Tensor:
    """The same columns of each input [N, C], side by side; length -1 means to the end."""
    inputs = [input] if isinstance(input, Tensor) else input
    return _appended("partial_concat", inputs, {"start_index": start_index, "length": length})


def partial_sum(input: Sequence[Tensor] | Tensor, start_index: int = 0, length: int = -1) -> Tensor:
    """The sum of the same columns of each input [N, C]; length -1 means to the end."""
    inputs = [input] if isinstance(input, Tensor) else input
    return _appended("partial_sum", inputs, {"start_index": start_index, "length": length})


def batch_fc(
    input: Tensor,
    param_size: Sequence[int],
    param_attr: AttrLike,
    bias_size: Sequence[int],
    bias_attr: AttrLike,
    act: str | None = None,
) -> Tensor:
    """A linear layer of its own for each slot: [S, N, in] to [S, N, out], weights [S, in, out], biases [S, out]."""
    slots, _, width = input.shape
    assert param_size[0] == bias_size[0] == slots, f"batch_fc: {slots} slots, parameters of {param_size[0]}"
    assert param_size[1] == width and param_size[2] == bias_size[1], "batch_fc: sizes do not fit"
    helper = LayerHelper("batch_fc")
    weight = helper.create_parameter(param_attr, param_size, input.dtype)
    bias = helper.create_parameter(bias_attr, bias_size, input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(
        type="batch_fc", inputs={"Input": input, "W": weight, "Bias": bias}, outputs={"Out": out}
    )
    return _activated(out, act)


@operation(name="shuffle_batch")
def _shuffled(x: Array, key: Key) -> Array:
    rows = x.reshape(-1, x.shape[-1])
    return jax.random.permutation(key, rows).reshape(x.shape)


def shuffle_batch(x: Tensor, seed: int | Tensor | None = None) -> Tensor:
    """The rows of `x` in a random order, drawn from the stream of `paddle.seed`; a warning says that a `seed` is not
    used."""
    if seed is not None:
        log.warning("shuffle_batch: seed is not used, the order comes from the stream of paddle.seed")
    return _shuffled(x)


def fused_bn_add_act(
    x: Tensor,
    y: Tensor,
    momentum: float = 0.9,
    epsilon: float = 1e-05,
    param_attr: AttrLike = None,
    bias_attr: AttrLike = None,
    moving_mean_name: str | None = None,
    moving_variance_name: str | None = None,
    act: str | None = None,
    name: str | None = None,
) -> Tensor:
    """act(batch_norm(x) + y) of images with channels last."""
    normal = batch_norm(
        x,
        momentum=momentum,
        epsilon=epsilon,
        param_attr=param_attr,
        bias_attr=bias_attr,
        data_layout="NHWC",
        moving_mean_name=moving_mean_name,
        moving_variance_name=moving_variance_name,
    )
    return _activated(normal + y, act)


def pow2_decay_with_linear_warmup(
    warmup_steps: int,
    total_steps: int,
    base_lr: float,
    end_lr: float,
    dtype: str = "float32",
    name: str | None = None,
) -> Tensor:
    """A rate that rises in a line to `base_lr` and falls in a parabola to `end_lr`, a step each run of the program."""
    assert dtype == "float32", f"pow2_decay_with_linear_warmup: float32 is the type, received {dtype}"
    step = _decay_step_counter(1)
    rest = ((float(total_steps) - step) / float(total_steps - warmup_steps)).clip(0.0, 1.0)
    falling = rest * rest * (base_lr - end_lr) + end_lr
    rising = step * (base_lr / warmup_steps)
    early = (step < full_like(step, float(warmup_steps))).astype(dtype)
    return early * rising + (1.0 - early) * falling


def _activated(x: Tensor, act: str | None) -> Tensor:
    function: Callable[[Tensor], Tensor] | None = None if act is None else getattr(F, act)
    return x if function is None else function(x)


if not TYPE_CHECKING:
    __getattr__ = _resolver(__name__)
