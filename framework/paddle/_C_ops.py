"""paddle._C_ops: operations by the names and argument orders of Paddle's kernels, as toolkits call them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from framework.paddle import ops
from framework.paddle._kernel.dispatch import Array, operation
from framework.paddle._kernel.kernels import find_kernel
from framework.paddle._kernel.modules import resolver
from framework.paddle._kernel.operators import run_operator
from framework.paddle._kernel.tensor import Tensor
from framework.paddle.nn import functional as F
from framework.paddle.nn.functional.flash_attention import flash_attention
from framework.paddle.vision import ops as vision

_operations: dict[str, Any] = ops.discover()


def argsort(x: Tensor, axis: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    """(the values in order, their indices)."""
    order = _operations["argsort"](x, axis, descending)
    return _operations["take_along_axis"](x, order, axis), order


def batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor,
    bias: Tensor,
    is_test: bool,
    momentum: float,
    epsilon: float,
    data_layout: str,
    use_global_stats: bool,
    trainable_statistics: bool,
) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
    """(y, mean, variance, …): `mean` and `variance` are updated in place where batch statistics are used."""
    training = (not is_test or trainable_statistics) and not use_global_stats
    y = F.batch_norm(
        x, mean, variance, scale, bias, training, momentum, epsilon, data_layout, use_global_stats or None
    )
    return y, mean, variance, None, None, None


def layer_norm(
    x: Tensor, scale: Tensor | None, bias: Tensor | None, epsilon: float, begin_norm_axis: int
) -> Tensor:
    """`x` with the mean 0 and the variance 1 over its axes from `begin_norm_axis` on, which `scale` and `bias` have
    flat."""
    shape = x.shape[begin_norm_axis:]
    flat = [one if one is None else one.reshape(shape) for one in (scale, bias)]
    return F.layer_norm(x, shape, flat[0], flat[1], epsilon)


def box_coder(
    prior_box: Tensor,
    prior_box_var: Tensor | None,
    target_box: Tensor,
    code_type: str,
    box_normalized: bool,
    axis: int,
    variance: Sequence[float],
) -> Tensor:
    """Boxes relative to priors, or back; `variance` where there is no `prior_box_var`."""
    variances = list(variance) or None if prior_box_var is None else prior_box_var
    return vision.box_coder(prior_box, variances, target_box, code_type, box_normalized, axis=axis)


def distribute_fpn_proposals(
    fpn_rois: Tensor,
    rois_num: Tensor | None,
    min_level: int,
    max_level: int,
    refer_level: int,
    refer_scale: int,
    pixel_offset: bool,
) -> tuple[list[Tensor | None], list[Tensor | None] | None, Tensor | None]:
    """(rois of each level, their numbers in each image, where each row went)."""
    levels, restore, counts = vision.distribute_fpn_proposals(
        fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset, rois_num
    )
    return levels, counts, restore


def matrix_nms(
    bboxes: Tensor,
    scores: Tensor,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    post_threshold: float,
    use_gaussian: bool,
    gaussian_sigma: float,
    background_label: int,
    normalized: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """(rows label, score, box; indices; rows of each image)."""
    rows, counts, index = vision.matrix_nms(
        bboxes,
        scores,
        score_threshold,
        post_threshold,
        nms_top_k,
        keep_top_k,
        use_gaussian,
        gaussian_sigma,
        background_label,
        normalized,
        return_index=True,
        return_rois_num=True,
    )
    return rows, index, counts


def multiclass_nms3(
    bboxes: Tensor,
    scores: Tensor,
    rois_num: Tensor | None,
    score_threshold: float,
    nms_top_k: int,
    keep_top_k: int,
    nms_threshold: float = 0.3,
    normalized: bool = True,
    nms_eta: float = 1.0,
    background_label: int = 0,
) -> tuple[Tensor, Tensor, Tensor]:
    """(rows [R, 6] of class, score and box; their indices [R, 1] among the boxes of all images; rows of each image).

    In a compiled program there are as many rows as could stay, and those of -1 come last.

    Args:
        bboxes: [N, M, 4], or [M, classes, 4] of the images that `rois_num` divides them into.
        scores: [N, classes, M], or [M, classes].
    """
    inputs = {"BBoxes": bboxes, "Scores": scores, "RoisNum": rois_num}
    slots = {slot: [tensor.detach()] for slot, tensor in inputs.items() if tensor is not None}
    settings = {
        "score_threshold": score_threshold,
        "nms_top_k": nms_top_k,
        "keep_top_k": keep_top_k,
        "nms_threshold": nms_threshold,
        "normalized": normalized,
        "nms_eta": nms_eta,
        "background_label": background_label,
    }
    results = run_operator("multiclass_nms3", slots, settings, {"Out": 1, "Index": 1, "NmsRoisNum": 1})
    return results["Out"][0], results["Index"][0], results["NmsRoisNum"][0]


@operation(name="fused_linear_param_grad_add", differentiable=False)
def _linear_gradients(
    x: Array, dout: Array, dweight: Array | None, dbias: Array | None, wide: bool, has_bias: bool
) -> tuple[Array, Array]:
    rows, grads = x.reshape(-1, x.shape[-1]), dout.reshape(-1, dout.shape[-1])
    kind = jnp.promote_types(x.dtype, jnp.float32) if wide else x.dtype
    weight = jnp.matmul(rows.T, grads, preferred_element_type=kind)
    bias = grads.astype(kind).sum(0)
    return weight if dweight is None else weight + dweight, bias if dbias is None else bias + dbias


def fused_linear_param_grad_add(
    x: Tensor,
    dout: Tensor,
    dweight: Tensor | None = None,
    dbias: Tensor | None = None,
    multi_precision: bool = True,
    has_bias: bool = True,
) -> tuple[Tensor, Tensor | None]:
    """(dweight + x' dout, dbias + the sum of dout) of a linear layer, over all axes but the last; without a bias the
    second is None. With `multi_precision` gradients of 16 bits are added in float32."""
    weight, bias = _linear_gradients(x, dout, dweight, dbias, multi_precision, has_bias)
    return weight, bias if has_bias else None


@operation(name="flash_attn_lse", differentiable=False)
def _log_sums(query: Array, key: Array, mask: Array | None, causal: bool) -> Array:
    scores = jnp.einsum("nqhd,nkhd->nhqk", query.astype(jnp.float32), key.astype(jnp.float32))
    scores = scores / math.sqrt(query.shape[-1])
    scores = scores if mask is None else scores + mask.astype(jnp.float32)
    if causal:
        scores = jnp.where(jnp.tri(*scores.shape[-2:], dtype=bool), scores, -jnp.inf)
    return jax.nn.logsumexp(scores, -1)


def flash_attn(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    fixed_seed_offset: Tensor | None = None,
    attn_mask: Tensor | None = None,
    dropout: float = 0.0,
    causal: bool = False,
    return_softmax: bool = False,
    is_test: bool = False,
    rng_name: str = "",
) -> tuple[Tensor, Tensor | None, Tensor, None]:
    """(attention [N, T, heads, D], its weights, the logarithms [N, heads, T] of the sums that they are divided by,
    None) of [N, T, heads, D]. Dropout draws from the stream of `paddle.seed`."""
    if attn_mask is None:
        out, weights = flash_attention(
            query, key, value, dropout, causal, return_softmax, training=not is_test
        )
    else:
        out = F.scaled_dot_product_attention(query, key, value, attn_mask, dropout, causal, not is_test)
        weights = None
    return out, weights, _log_sums(query, key, attn_mask, causal), None


def __getattr__(name: str) -> Any:
    """Kernels that a public function runs, or an operator of saved programs."""
    kernel = None if name.startswith("__") else find_kernel(name)
    return _elsewhere(name) if kernel is None else kernel


_elsewhere = resolver(__name__)
