"""Decoders in few bits from files and into files: which layers, and what a folder says of them.

int8 is written as compressed-tensors' "int-quantized" with activations of 8 bits a token, int4 in GPTQ's form: both are
read by transformers, vLLM and `load_decoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from jax.typing import DTypeLike

from framework import nn
from framework.interop.weights.packed_integers import GroupedMatrix, pack_bits
from framework.nn.quantized import (
    QUANTIZED,
    Int4Linear,
    Int8Embedding,
    Int8Linear,
    WeightScheme,
    quantize_layer,
    replace_layer,
)
from zoo.layers.pretrained_model import PretrainedModel

HEAD = "lm_head"
"""The scores of the next token: a large share of the time of a small model, and kept in 8 bits in every scheme."""
Matrices = Mapping[str, Callable[[], GroupedMatrix]]


def tied_embedding(model: PretrainedModel) -> str | None:
    """The name of the embedding that scores the next token; None where another layer does."""
    if not model.size.tie_embeddings:
        return None
    for name, layer in model.named_sublayers():
        if type(layer) is nn.Embedding and layer.num_embeddings == model.size.vocab_size:
            return name
    return None


class LayerQuantizer:
    """Rounds the layers of a model as soon as their weights are there.

    Args:
        scheme: For the linear layers; the head has 8 bits.
        matrices: Whole numbers of the file, by names of layers: taken as they are where a layer can hold them.
        dtype: Of the rows of a tied embedding.
    """

    def __init__(
        self,
        model: PretrainedModel,
        scheme: WeightScheme,
        matrices: Matrices | None = None,
        dtype: DTypeLike = "float32",
    ) -> None:
        self.scheme, self.matrices, self.dtype = scheme, matrices or {}, dtype
        tied = tied_embedding(model)
        self.owners = {
            f"{path}.{name}" if path else name: (owner, name)
            for path, owner in model.named_sublayers(include_self=True)
            for name, layer in owner.named_children()
            if type(layer) is nn.Linear or (f"{path}.{name}" == tied)
        }

    def __call__(self, parameter: str) -> None:
        """Round the layer of which this is the last parameter."""
        path, _, leaf = parameter.rpartition(".")
        if path not in self.owners:
            return
        owner, name = self.owners[path]
        layer = owner._sub_layers[name]
        if leaf == list(layer._parameters)[-1]:
            replace_layer(owner, name, self._exact(path, layer) or self._rounded(name, layer))

    def _rounded(self, name: str, layer: nn.Layer) -> nn.Layer | None:
        return quantize_layer(layer, WeightScheme(8) if name == HEAD else self.scheme, self.dtype)

    def _exact(self, path: str, layer: nn.Layer) -> nn.Layer | None:
        """The layer with the whole numbers of the file; None where it cannot hold them."""
        if path not in self.matrices or type(layer) is not nn.Linear:
            return None
        matrix = self.matrices[path]()
        size, zero = matrix.group_size, matrix.zero
        if matrix.levels.dtype == np.int8:
            exact = self.scheme.bits == 8 and size == layer.in_features and not zero.any()
            return Int8Linear.from_levels(matrix.levels, matrix.scale[:, 0], layer.bias) if exact else None
        if self.scheme.bits != 4 or size is None or size % 2 or size < 16:
            return None
        if matrix.levels.max(initial=0) > 15 or zero.min() < 0 or zero.max() > 15:
            return None
        return Int4Linear.from_levels(matrix.levels, matrix.scale, zero, layer.bias, matrix.order)


def quantized_arrays(
    model: PretrainedModel, arrays: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], dict[str, object] | None]:
    """(arrays for a file, `quantization_config`) of a model whose arrays these are; None where no layer is of few bits.

    A tied embedding becomes floats again, and so do layers of 8 bits beside others of 4.
    """
    layers = {name: layer for name, layer in model.named_sublayers() if isinstance(layer, QUANTIZED)}
    if not layers:
        return dict(arrays), None
    four = {name: layer for name, layer in layers.items() if isinstance(layer, Int4Linear)}
    result = {}
    for name, array in arrays.items():
        owner, _, leaf = name.rpartition(".")
        layer = layers.get(owner)
        if layer is None or leaf == "bias":
            result[name] = array
        elif leaf == "weight" and isinstance(layer, Int4Linear):
            result |= {f"{owner}.{key}": value for key, value in _gptq(layer).items()}
        elif leaf == "weight" and isinstance(layer, Int8Linear) and not four:
            result[name] = array
            result[f"{owner}.weight_scale"] = np.asarray(layer.scale)[:, None]
        elif leaf == "weight":
            assert isinstance(layer, Int8Embedding | Int8Linear)
            result[name] = layer.dequantize().astype(np.float16)
    if not any(isinstance(layer, Int4Linear | Int8Linear) for layer in layers.values()):
        return result, None
    plain = [name for name, layer in model.named_sublayers() if type(layer) is nn.Linear]
    return result, _gptq_config(four) if four else _compressed_config(plain)


def _gptq(layer: Int4Linear) -> dict[str, np.ndarray]:
    zero = np.asarray(layer.zero).astype(np.int16)
    return {
        "qweight": np.ascontiguousarray(pack_bits(layer.levels(), 4).T),
        "qzeros": pack_bits(zero.astype(np.uint8), 4),
        "scales": np.asarray(layer.scale, np.float16),
        "g_idx": layer.groups(),
    }


def _gptq_config(layers: Mapping[str, Int4Linear]) -> dict[str, object]:
    symmetric = all(bool((np.asarray(layer.zero) == 8).all()) for layer in layers.values())
    return {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": next(iter(layers.values())).group,
        "sym": symmetric,
        "desc_act": any(layer.ordered for layer in layers.values()),
        "lm_head": False,
        "checkpoint_format": "gptq_v2",
    }


def _compressed_config(ignore: list[str]) -> dict[str, object]:
    form = {"num_bits": 8, "type": "int", "symmetric": True}
    weights = {**form, "strategy": "channel", "dynamic": False}
    inputs = {**form, "strategy": "token", "dynamic": True}
    group = {"targets": ["Linear"], "weights": weights, "input_activations": inputs}
    return {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "quantization_status": "compressed",
        "config_groups": {"group_0": group},
        "ignore": ignore,
    }
