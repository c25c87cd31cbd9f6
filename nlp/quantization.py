"""Decoders in few bits by examples: block after block, each with the inputs that the rounded blocks before it give.

Papers: as framework/compress/rounding.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.compress.rounding import (
    InputMoments,
    RoundedMatrix,
    awq_scale,
    output_error,
    round_gptq,
    round_nearest,
)
from framework.core.errors import InputError
from framework.core.types import PyTree
from framework.nn.quantized import (
    Int4Linear,
    Int8Linear,
    WeightScheme,
    linears,
    quantize_linears,
    replace_layer,
)
from zoo.layers.decoder import Decoder
from zoo.layers.quantized_weights import HEAD, tied_embedding

Method = Literal["rtn", "awq", "gptq"]
METHODS: tuple[Method, ...] = ("rtn", "awq", "gptq")
# What stands before linear layers that share an input, and can take the reciprocal of its scales: Hugging Face's names.
_PRODUCERS = (
    ("input_layernorm", ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")),
    ("post_attention_layernorm", ("mlp.gate_proj", "mlp.up_proj")),
    ("mlp.up_proj", ("mlp.down_proj",)),
)


@dataclass(frozen=True)
class LayerReport:
    """What rounding cost a layer: the error of its outputs on the examples, as a share of their squares; NaN without
    examples."""

    name: str
    error: float


def quantize_decoder(
    model: Decoder,
    scheme: WeightScheme,
    method: Method = "rtn",
    examples: Sequence[np.ndarray] = (),
) -> list[LayerReport]:
    """Put layers in few bits in the place of the linear layers of a model; the head, or a tied embedding, in 8 bits.

    Args:
        method: "rtn": the nearest step. "awq": with scales of the inputs that the layers before take. "gptq": with the
            errors spread over the inputs that are still to be rounded.
        examples: Rows of ids [T] of equal length; not for "rtn".

    Raises:
        InputError: no examples for a method that needs some.
    """
    if method != "rtn" and not examples:
        raise InputError(
            "this method rounds weights by examples",
            where=f"method {method}",
            received="no examples",
            allowed="texts as those that the model will see; or the method rtn, which needs none",
        )
    tied = tied_embedding(model)
    reports = []
    if method != "rtn":
        for path, block, arguments, xs in _blocks_with_inputs(model, examples):
            reports += [
                LayerReport(f"{path}.{name}", error)
                for name, error in _round_block(block, scheme, method, arguments, xs)
            ]
    dtype = model.embedding().dtype
    quantize_linears(model, WeightScheme(8), [n for *_, n in linears(model) if n.rpartition(".")[2] != HEAD])
    names = quantize_linears(model, scheme, (), (tied,) if tied else (), dtype)
    return reports + [LayerReport(name, float("nan")) for name in names]


class _FirstBlock(Exception):
    """Ends a run of the model where its blocks begin."""


def _blocks_with_inputs(
    model: Decoder, examples: Sequence[np.ndarray]
) -> Iterator[tuple[str, nn.Layer, PyTree, list[jax.Array]]]:
    """(name, block, what it is called with besides, its inputs): after each, what the block as it is then gives becomes
    the input of the next."""
    blocks = list(model.stack.blocks())
    names = {id(layer): name for name, layer in model.named_sublayers()}
    calls: list[tuple] = []

    def note(layer: nn.Layer, args: tuple) -> None:
        calls.append(args)
        raise _FirstBlock

    handle = blocks[0].register_forward_pre_hook(note)
    try:
        for ids in examples:
            try:
                model.hidden(jnp.asarray(ids, jnp.int32)[None])
            except _FirstBlock:
                continue
    finally:
        handle.remove()
    xs, arguments = [args[0] for args in calls], calls[0][1:]
    for block in blocks:
        yield names[id(block)], block, arguments, xs
        graph, params, buffers = nn.split(block)
        xs = [_run(graph, params, buffers, x, arguments) for x in xs]


@jax.jit(static_argnums=0)
def _run(graph: nn.GraphDef, params: PyTree, buffers: PyTree, x: jax.Array, arguments: tuple) -> jax.Array:
    return nn.apply(graph, params, buffers, None, x, *arguments)[0]


@jax.jit(static_argnums=0)
def _moments(
    graph: nn.GraphDef, params: PyTree, buffers: PyTree, x: jax.Array, arguments: tuple
) -> dict[str, tuple[jax.Array, jax.Array]]:
    """Of the inputs of each Linear of a block, by its name: (sum of x x', sum of |x|)."""
    block = graph.bind(params, buffers)
    moments: dict[str, tuple[jax.Array, jax.Array]] = {}
    handles = []
    for owner, leaf, name in linears(block):

        def note(layer: nn.Layer, args: tuple, name: str = name) -> None:
            rows = args[0].reshape(-1, args[0].shape[-1]).astype(jnp.float32)
            moments[name] = rows.T @ rows, jnp.abs(rows).sum(0)

        handles.append(owner._sub_layers[leaf].register_forward_pre_hook(note))
    try:
        block(x, *arguments)
    finally:
        for handle in handles:
            handle.remove()
    return moments


def _collect(block: nn.Layer, arguments: tuple, xs: Sequence[jax.Array]) -> dict[str, InputMoments]:
    graph, params, buffers = nn.split(block)
    total: dict[str, InputMoments] = {}
    for x in xs:
        for name, (products, magnitude) in _moments(graph, params, buffers, x, arguments).items():
            one = InputMoments(
                np.asarray(products, np.float64), np.asarray(magnitude, np.float64), x.shape[0] * x.shape[1]
            )
            total[name] = total[name] + one if name in total else one
    return total


def _matrix(layer: nn.Layer) -> np.ndarray:
    """[out, in] float32 of a Linear."""
    return np.asarray(layer.weight, np.float32).T


def _round_block(
    block: nn.Layer, scheme: WeightScheme, method: Method, arguments: tuple, xs: Sequence[jax.Array]
) -> list[tuple[str, float]]:
    """(name, error) of the Linears of a block, which are replaced."""
    moments = _collect(block, arguments, xs)
    if method == "awq":
        for producer, targets in _PRODUCERS:
            _scale_inputs(block, producer, targets, scheme, moments)
    reports = []
    for owner, leaf, name in list(linears(block)):
        layer = owner._sub_layers[leaf]
        if name not in moments:  # it did not run
            continue
        weight = _matrix(layer)
        rounded = (
            round_gptq(weight, moments[name], scheme) if method == "gptq" else round_nearest(weight, scheme)
        )
        reports.append((name, output_error(weight, rounded.dequantize(), moments[name])))
        replace_layer(owner, leaf, _layer_of(rounded, layer.bias))
    return reports


def _layer_of(rounded: RoundedMatrix, bias: jax.Array | None) -> nn.Layer:
    if rounded.zero is None:
        return Int8Linear.from_levels(rounded.levels, rounded.scale, bias)
    return Int4Linear.from_levels(rounded.levels, rounded.scale, rounded.zero, bias)


def _scale_inputs(
    block: nn.Layer,
    producer: str,
    targets: Sequence[str],
    scheme: WeightScheme,
    moments: dict[str, InputMoments],
) -> None:
    """Divide what `producer` gives by AWQ's scales and multiply the columns of `targets` with them."""
    layers = dict(block.named_sublayers())
    source = layers.get(producer)
    linears = [layers.get(name) for name in targets]
    plain_norm = type(source) is nn.RMSNorm and not source.unit_offset
    if not (plain_norm or type(source) is nn.Linear) or any(type(one) is not nn.Linear for one in linears):
        return
    assert source is not None
    matrices = [_matrix(one) for one in linears if one is not None]
    scale = awq_scale(matrices, moments[targets[0]], scheme)
    if source._parameters["weight"].shape[-1] != len(scale):
        return
    for name in ("weight", "bias") if type(source) is nn.Linear else ("weight",):
        if (old := source._parameters.get(name)) is not None:
            old.set_value((old.value.astype(jnp.float32) / scale).astype(old.dtype))
    for layer, matrix in zip(linears, matrices, strict=True):
        assert layer is not None
        parameter = layer._parameters["weight"]
        parameter.set_value(jnp.asarray((matrix * scale).T, parameter.dtype))
    for name in targets:
        old_moments = moments[name]
        moments[name] = InputMoments(
            old_moments.products / np.outer(scale, scale), old_moments.magnitude / scale, old_moments.rows
        )
