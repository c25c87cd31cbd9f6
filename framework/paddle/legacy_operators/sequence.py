"""Operators of sequences of different lengths, which lie one after the other in one array.

Source: paddle/fluid/operators/sequence_ops
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import OarError
from framework.paddle.legacy_operators.operands import (
    Levels,
    Operands,
    Outputs,
    Ragged,
    Table,
    offsets_of,
    pad,
    positions_of,
    registrar,
    segments_of,
    slices_of,
    unpad,
)

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def pool_sequences(x: jax.Array, lengths: np.ndarray, kind: str, pad_value: float = 0.0) -> jax.Array:
    """One row for each sequence: its SUM, AVERAGE, SQRT (the sum by the root of the length), MAX, FIRST or LAST row;
    `pad_value` where it is empty.

    Raises:
        OarError: another kind.
    """
    count, segments = len(lengths), segments_of(lengths)
    shape = (count, *[1] * (x.ndim - 1))
    size = np.maximum(lengths, 1).reshape(shape)
    if kind in ("FIRST", "LAST"):
        offsets = offsets_of(lengths)
        rows = x[np.clip(offsets[:-1] if kind == "FIRST" else offsets[1:] - 1, 0, len(x) - 1)]
    elif kind == "MAX":
        rows = jax.ops.segment_max(x, segments, count)
    elif kind in ("SUM", "AVERAGE", "SQRT"):
        divisor = {"SUM": np.ones_like(size), "AVERAGE": size, "SQRT": np.sqrt(size)}[kind]
        rows = jax.ops.segment_sum(x, segments, count) / jnp.asarray(divisor, x.dtype)
    else:
        raise OarError(
            "an unknown kind of pooling",
            where="sequence_pool",
            received=kind,
            allowed="SUM, AVERAGE, SQRT, MAX, FIRST, LAST",
        )
    return jnp.where((lengths > 0).reshape(shape), rows, jnp.asarray(pad_value, x.dtype))


def _ragged(array: jax.Array, levels: Levels | None) -> jax.Array | Ragged:
    return Ragged(array, levels) if levels else array


@operator("sequence_pool")
def _sequence_pool(a: Operands) -> Outputs:
    x, lengths = a.array("X"), a.lengths("X")
    kind, value = a.attr("pooltype", "AVERAGE").upper(), a.attr("pad_value", 0.0)
    out: dict[str, jax.Array | Ragged] = {
        "Out": _ragged(pool_sequences(x, lengths, kind, value), (a.lod("X") or [])[:-1])
    }
    if kind == "MAX":
        rows = jnp.arange(len(x)).reshape(-1, *[1] * (x.ndim - 1))
        best = jax.ops.segment_max(x, segments_of(lengths), len(lengths))[segments_of(lengths)]
        index = jax.ops.segment_min(jnp.where(x == best, rows, len(x)), segments_of(lengths), len(lengths))
        out["MaxIndex"] = jnp.where(index < len(x), index, -1).astype(jnp.int32)
    return out


def context_rows(
    x: jax.Array, lengths: np.ndarray, start: int, size: int, padding: jax.Array | None = None
) -> jax.Array:
    """The rows `start` … `start + size - 1` beside each row of the same sequence, joined; beyond its ends zeros, or the
    rows of `padding`, of which the first max(0, -start) stand before a sequence."""
    before = max(0, -start)
    extended = jnp.concatenate([x, jnp.zeros_like(x[:1]) if padding is None else padding])
    position, length = positions_of(lengths), np.repeat(lengths, lengths)
    columns = []
    for shift in range(start, start + size):
        target = position + shift
        beyond = np.where(target < 0, before + target, before + target - length)
        outside = len(x) + (beyond if padding is not None else np.zeros_like(beyond))
        inside = (target >= 0) & (target < length)
        columns.append(extended[np.where(inside, np.arange(len(position)) + shift, outside)])
    return jnp.concatenate(columns, 1)


@operator("sequence_conv")
def _sequence_conv(a: Operands) -> Outputs:
    padding = a.get("PaddingData") if a.attr("paddingTrainable", False) else None
    columns = context_rows(
        a.array("X"), a.lengths("X"), a.attr("contextStart", 0), a.attr("contextLength", 1), padding
    )
    return {"Out": _ragged(columns @ a.array("Filter"), a.lod("X"))}


@operator("sequence_expand")
def _sequence_expand(a: Operands) -> Outputs:
    """Each sequence (or row) of X as often as level `ref_level` of Y says."""
    a.lengths("Y")  # that there are some
    x, levels, lod = a.array("X"), a.lod("Y") or [], a.lod("X")
    repeats = np.asarray(levels[a.attr("ref_level", -1)], np.int64)
    lengths = np.asarray(lod[0], np.int64) if lod else np.ones(len(x), np.int64)
    sizes = np.repeat(lengths, repeats)
    out = x[slices_of(np.repeat(offsets_of(lengths)[:-1], repeats), sizes)]
    return {"Out": _ragged(out, [sizes.tolist()] if lod else None)}


@operator("sequence_expand_as")
def _sequence_expand_as(a: Operands) -> Outputs:
    lengths = a.lengths("Y")
    return {"Out": Ragged(a.array("X")[segments_of(lengths)], [lengths.tolist()])}


@operator("sequence_pad")
def _sequence_pad(a: Operands) -> Outputs:
    lengths, size = a.lengths("X"), a.attr("padded_length", -1)
    size = int(lengths.max(initial=0)) if size < 0 else size
    out = pad(a.array("X"), lengths, size, a.array("PadValue"))
    return {"Out": out, "Length": lengths}


@operator("sequence_unpad")
def _sequence_unpad(a: Operands) -> Outputs:
    x, lengths = a.array("X"), a.host("Length").ravel()
    out = unpad(x, lengths)
    return {"Out": Ragged(out[:, None] if x.ndim == 2 else out, [lengths.tolist()])}


@operator("sequence_reshape")
def _sequence_reshape(a: Operands) -> Outputs:
    x, width = a.array("X"), a.attr("new_dim", 1)
    lengths = a.lengths("X") * x.shape[1] // width
    return {"Out": Ragged(x.reshape(-1, width), [lengths.tolist()])}


@operator("sequence_reverse")
def _sequence_reverse(a: Operands) -> Outputs:
    lengths = a.lengths("X")
    rows = np.repeat(offsets_of(lengths)[1:] - 1, lengths) - positions_of(lengths)
    return {"Y": _ragged(a.array("X")[rows], a.lod("X"))}


@operator("sequence_scatter")
def _sequence_scatter(a: Operands) -> Outputs:
    index = (segments_of(a.lengths("Ids")), a.array("Ids").ravel())
    return {"Out": a.array("X").at[index].add(a.array("Updates").ravel())}


@operator("sequence_slice")
def _sequence_slice(a: Operands) -> Outputs:
    sizes = a.host("Length").ravel()
    starts = offsets_of(a.lengths("X"))[:-1] + a.host("Offset").ravel()
    return {"Out": Ragged(a.array("X")[slices_of(starts, sizes)], [sizes.tolist()])}


@operator("sequence_softmax")
def _sequence_softmax(a: Operands) -> Outputs:
    x, lengths = a.array("X"), a.lengths("X")
    segments, count = segments_of(lengths), len(lengths)
    shifted = jnp.exp(x - jax.lax.stop_gradient(jax.ops.segment_max(x, segments, count)[segments]))
    return {"Out": _ragged(shifted / jax.ops.segment_sum(shifted, segments, count)[segments], a.lod("X"))}


@operator("sequence_concat")
def _sequence_concat(a: Operands) -> Outputs:
    """The first sequences of all inputs, then the second ones …"""
    arrays = a.all("X")
    lengths = np.stack([a.lengths("X", index) for index in range(len(arrays))], 1)
    starts = offsets_of([len(array) for array in arrays])[:-1] + np.cumsum(lengths, 0) - lengths
    out = jnp.concatenate(arrays)[slices_of(starts.ravel(), lengths.ravel())]
    return {"Out": Ragged(out, [lengths.sum(1).tolist()])}


@operator("sequence_erase")
def _sequence_erase(a: Operands) -> Outputs:
    x, lengths = a.host("X"), a.lengths("X")
    remaining = ~np.isin(x.reshape(len(x)), a.attr("tokens", []))
    counts = np.bincount(segments_of(lengths)[remaining], minlength=len(lengths))
    return {"Out": Ragged(jnp.asarray(x[remaining]), [*(a.lod("X") or [])[:-1], counts.tolist()])}


@operator("sequence_enumerate")
def _sequence_enumerate(a: Operands) -> Outputs:
    """The next `win_size` numbers of each place, `pad_value` behind the end of a sequence."""
    x, lengths, size = a.array("X").ravel(), a.lengths("X"), a.attr("win_size", 1)
    target = positions_of(lengths)[:, None] + np.arange(size)
    rows = np.minimum(np.arange(len(x))[:, None] + np.arange(size), len(x) - 1)
    inside = target < np.repeat(lengths, lengths)[:, None]
    return {"Out": _ragged(jnp.where(inside, x[rows], a.attr("pad_value", 0)), a.lod("X"))}


@operator("lod_reset")
def _lod_reset(a: Operands) -> Outputs:
    """X with the lengths of Y, or with offsets that Y or `target_lod` gives."""
    levels = a.lod("Y")
    if levels is None:
        offsets = a.host("Y").ravel() if a.get("Y") is not None else np.asarray(a.attr("target_lod", []))
        levels = [np.diff(offsets).tolist()]
    before = list(a.lod("X") or []) if a.attr("append", False) else []
    return {"Out": Ragged(a.array("X"), [*before, *levels])}
