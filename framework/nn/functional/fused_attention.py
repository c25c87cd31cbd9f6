"""Attention as one kernel of a GPU's library: cuDNN's, which never holds the scores [N, H, Tq, Tk] in memory.

Source: Dao et al. 2022, https://arxiv.org/abs/2205.14135. For 4,096 tokens of 32 heads the scores of one text are 2 GiB
in float32. The gradients that cuDNN sums change in their last digits from run to run, unless XLA is asked for
`--xla_gpu_deterministic_ops`.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

_SHORTEST = 128  # queries: below, as in the steps of generation, the scores are small
_WIDEST = 128  # channels of a head; kernels for more are those of the newest GPUs alone
_LOW = (jnp.bfloat16, jnp.float16)


def may_fuse(
    query: jax.Array, key: jax.Array, value: jax.Array, mask: jax.Array | None, is_causal: bool
) -> bool:
    """Whether the kernel computes this: 16 bits, many queries, no bias that a gradient may be asked of."""
    if query.dtype not in _LOW or not query.dtype == key.dtype == value.dtype:
        return False
    (_, queries, _, depth), keys = query.shape, key.shape[1]
    if mask is not None and (jnp.issubdtype(mask.dtype, jnp.floating) or queries % 2 or keys % 2):
        return False
    if is_causal and queries != keys:  # the kernel's first query sees the first key alone
        return False
    return (
        queries >= _SHORTEST
        and depth <= _WIDEST
        and depth % 8 == 0
        and value.shape == key.shape
        and _is_there()
    )


def fused_attention(
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    mask: jax.Array | None,
    is_causal: bool,
    scale: float | None,
) -> jax.Array:
    """softmax(q k' * scale + mask) v for arrays that `may_fuse`, with the arguments and the result of
    `functional.scaled_dot_product_attention`."""
    if mask is not None:
        queries, keys = query.shape[1], key.shape[1]
        mask = mask.astype(bool).reshape((1,) * (4 - mask.ndim) + mask.shape)
        mask = jnp.broadcast_to(mask, (*mask.shape[:2], queries, keys))
    return jax.nn.dot_product_attention(
        query, key, value, mask=mask, scale=scale, is_causal=is_causal, implementation="cudnn"
    )


@functools.cache
def _is_there() -> bool:
    """Whether this jax has cuDNN at hand, of which it asks the version."""
    some = jax.ShapeDtypeStruct((1, _SHORTEST, 1, 64), jnp.bfloat16)
    kernel = functools.partial(jax.nn.dot_product_attention, implementation="cudnn")
    try:
        jax.eval_shape(kernel, some, some, some)
    except (RuntimeError, NotImplementedError):
        return False
    return True
