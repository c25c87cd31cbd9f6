"""Attention over tokens that are divided among the devices of the axis `sequence`.

Each device keeps its queries; keys and values go round from device to device, and sums are kept as if the softmax had
seen all keys at once. No device has all scores, keys or values. Paper: ring attention, https://arxiv.org/abs/2310.01889
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import Mesh, PartitionSpec

from framework.core.dtypes import precision, wide_type
from framework.core.rng import next_key
from framework.distributed.mesh import BATCH_AXES
from framework.nn.functional.attention import HIDDEN, additive_mask
from framework.nn.functional.common import kept_share
from framework.nn.functional.products import product

AXIS = "sequence"
_Running = tuple[
    jax.Array, jax.Array, jax.Array, jax.Array, jax.Array
]  # keys, values, maximum, total, output


@dataclass(frozen=True)
class _Form:
    """What does not change from block to block of keys."""

    devices: int
    keys: int  # without those that only fill the last block
    queries: int
    causal: bool
    low: bool
    share: float  # of weights that dropout keeps


class RingAttention:
    """`functional.scaled_dot_product_attention` of [N, T, heads, D] whose tokens are divided over `mesh`.

    Samples stay divided over their axes and heads over `tensor`. Counts of tokens that the devices do not divide are
    filled up. Dropout leaves out the weights that it leaves out on one device.
    """

    def __init__(self, mesh: Mesh) -> None:
        self.mesh, self.calls = mesh, 0

    def __call__(
        self,
        query: jax.Array,
        key: jax.Array,
        value: jax.Array,
        attn_mask: jax.Array | None,
        dropout_p: float,
        is_causal: bool,
        training: bool,
    ) -> jax.Array:
        self.calls += 1
        sizes, devices = dict(self.mesh.shape), self.mesh.shape[AXIS]
        n, queries, heads, _ = query.shape
        keys = key.shape[1]
        batch = BATCH_AXES if n % math.prod(sizes[axis] for axis in BATCH_AXES) == 0 else None
        head = "tensor" if heads % sizes["tensor"] == 0 else None
        retained, share = None, 1.0
        if training and dropout_p > 0:
            retained, share = kept_share(next_key(), dropout_p, (n, heads, queries, keys))
        form = _Form(devices, keys, queries, is_causal, precision() == "bfloat16", share)
        more_queries, more_keys = -queries % devices, -keys % devices
        arrays = [_fill(query, 1, more_queries), _fill(key, 1, more_keys), _fill(value, 1, more_keys)]
        specs = [PartitionSpec(batch, AXIS, head)] * 3
        for scores in (None if attn_mask is None else additive_mask(attn_mask), retained):
            if scores is None:
                arrays.append(jnp.zeros((1, 1, 1, 1), bool))
            else:
                scores = scores.reshape((1,) * (4 - scores.ndim) + scores.shape)
                scores = _fill(scores, 2, more_queries if scores.shape[2] == queries else 0)
                arrays.append(_fill(scores, 3, more_keys if scores.shape[3] == keys else 0))
            sizes_of = arrays[-1].shape
            axes = (batch, head, AXIS)
            specs.append(PartitionSpec(*(axis if size > 1 else None for axis, size in zip(axes, sizes_of))))
        run = jax.shard_map(
            functools.partial(_attend, form, attn_mask is not None, retained is not None),
            mesh=self.mesh,
            in_specs=tuple(specs),
            out_specs=specs[0],
            check_vma=False,
        )
        return run(*arrays)[:, :queries].astype(value.dtype)


def _fill(x: jax.Array, axis: int, count: int) -> jax.Array:
    """`count` zeros behind the end of an axis."""
    return x if not count else jnp.pad(x, [(0, count if i == axis else 0) for i in range(x.ndim)])


def _attend(
    form: _Form,
    is_masked: bool,
    drops: bool,
    query: jax.Array,
    key: jax.Array,
    value: jax.Array,
    mask: jax.Array,
    retained: jax.Array,
) -> jax.Array:
    """What one device computes: its queries [N, Q, H, D] over all keys, of which it has a block [N, K, H, D]."""
    device, (n, rows, heads, _), columns = lax.axis_index(AXIS), query.shape, key.shape[1]
    wide = wide_type(query.dtype)
    query = query * (1 / math.sqrt(query.shape[-1]))
    row = device * rows + jnp.arange(rows) + (form.keys - form.queries)

    def visit(running: _Running, hop: jax.Array) -> tuple[_Running, None]:
        key, value, top, total, out = running
        start = (device + hop) % form.devices * columns
        column = start + jnp.arange(columns)
        scores = product("nqhd,nkhd->nhqk", query, key, form.low, wide)
        if is_masked:
            scores = scores + _columns(mask, start, columns).astype(wide)
        if form.causal:
            scores = jnp.where(row[:, None] >= column, scores, HIDDEN)
        exists = column < form.keys
        scores = jnp.where(exists, scores, jnp.finfo(wide).min)
        highest = jnp.maximum(top, scores.max(-1))
        weights = jnp.where(exists, jnp.exp(scores - highest[..., None]), 0)
        before = jnp.exp(top - highest)
        total = total * before + weights.sum(-1)
        if drops:
            weights = jnp.where(_columns(retained, start, columns), weights / form.share, 0)
        mixed = product("nhqk,nkhd->nhqd", weights.astype(value.dtype), value, form.low, wide)
        out = out * before[..., None] + mixed
        turn = [(i, (i - 1) % form.devices) for i in range(form.devices)]
        key, value = (lax.ppermute(x, AXIS, turn) for x in (key, value))
        return (key, value, highest, total, out), None

    empty = jnp.zeros((n, heads, rows), wide)
    out = jnp.zeros((n, heads, rows, value.shape[-1]), wide)
    first = key, value, empty + jnp.finfo(wide).min, empty, out
    running, _ = lax.scan(jax.checkpoint(visit), first, jnp.arange(form.devices))
    *_, total, out = running
    return jnp.swapaxes(out / total[..., None], 1, 2)


def _columns(scores: jax.Array, start: jax.Array, count: int) -> jax.Array:
    return scores if scores.shape[3] == 1 else lax.dynamic_slice_in_dim(scores, start, count, axis=3)
