"""Decoders from folders of Hugging Face and PaddleNLP, one array at a time, and back."""

from __future__ import annotations

import dataclasses
import json
import logging
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import build
from framework.core.disk import write_file
from framework.core.errors import ConfigError, WeightError
from framework.interop import load_weights, write_safetensors
from framework.interop.weights.gguf import read_gguf
from framework.interop.weights.gguf_models import gguf_settings, gguf_state
from framework.interop.weights.mapped import MappedWeights
from framework.interop.weights.model_folder import (
    CONFIG,
    INDEX,
    find_weights,
    is_index,
    is_paddles,
    read_settings,
)
from framework.interop.weights.quantized_state import (
    KEY,
    dequantized_state,
    grouped_matrices,
    parse_quantization,
    read_quantization,
)
from framework.interop.weights.wrappers import unwrapped_names
from framework.nn.quantized import WeightScheme, weight_scheme
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_config import decoder_family
from zoo.layers.encoder_decoder import EncoderDecoder
from zoo.layers.fused_weights import split_fused
from zoo.layers.pretrained_model import PretrainedModel, WeightSource
from zoo.layers.quantized_weights import LayerQuantizer, quantized_arrays

_log = logging.getLogger("oar")

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16, "float16": jnp.float16}
"""What weights are kept in."""
AnyDecoder = Decoder | EncoderDecoder

SHARD_BYTES = 5 * 10**9
"""The size of a file beyond which weights are written into several."""


_CLASSIFIERS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")


def build_decoder(folder: str | Path) -> AnyDecoder:
    """The model that the config.json of a folder, or a GGUF file, describes, without values.

    Raises:
        FormatError, ConfigError: there is no config.json, or it describes no decoder of zoo.decoder.
    """
    folder = Path(folder).expanduser()
    if is_gguf(folder):
        return _build(gguf_settings(read_gguf(folder)), str(folder))
    return _build(read_settings(folder), str(folder / CONFIG))


def _build(settings: Mapping[str, object], where: str) -> AnyDecoder:
    names = settings.get("architectures")
    classifier = (
        next((one for one in names if str(one).endswith(_CLASSIFIERS)), None)
        if isinstance(names, list)
        else None
    )
    if classifier is not None:
        raise ConfigError(
            "the folder holds a classifier, which writes no text",
            where=f"{where}: architectures",
            received=classifier,
            allowed="a model of language, such as LlamaForCausalLM",
            fix="take the model that it was made of; nlp.decoder_reranker ranks by the words yes and no of one",
        )
    return build(decoder_family(settings, where).config.from_pretrained_config(settings, where)).eval()


def is_gguf(path: Path) -> bool:
    """Whether this is a file of llama.cpp, by its name."""
    return path.suffix.lower() == ".gguf" and path.is_file()


def load_decoder(
    folder: str | Path, dtype: str | None = None, weights: str | WeightScheme | None = None
) -> AnyDecoder:
    """The model of a folder or of a GGUF file with its weights, in evaluation mode. Nothing is fetched.

    The folder holds `config.json` and `model.safetensors`, or an index of several, or a file of torch or Paddle. Its
    weights may be those of GPTQ, AWQ, FP8, bitsandbytes or compressed-tensors, as `quantization_config` says.

    Args:
        dtype: A key of DTYPES; None: that of the file; float32 where `weights` are of few bits on a CPU.
        weights: "int8", "int4" or a scheme: each matrix is rounded as soon as it is read, so that no more than one is
            in floats. Whole numbers of 4 bits in the file are kept as they are with "int4". None: floats, but for files
            that say themselves that activations are of 8 bits.

    Raises:
        FormatError, ConfigError: a file is missing or damaged, or config.json describes no decoder.
        WeightError: the weights do not fit: names the arrays that are missing, left over or of another shape.
    """
    folder = Path(folder).expanduser()
    model, matrices, paddle, path = build_decoder(folder), {}, False, folder
    if is_gguf(folder):
        arrays: Mapping[str, np.ndarray] = gguf_state(read_gguf(folder))
        dtype = dtype or "float32"
    else:
        path = find_weights(folder)
        arrays, paddle = open_weights(path), is_paddles(path)
        quantization = read_quantization(folder, read_settings(folder))
        if quantization is not None:
            quantized = parse_quantization(quantization, str(folder / CONFIG))
            matrices = grouped_matrices(arrays, quantized)
            weights = "int8" if weights is None and quantized.int8_activations else weights
            arrays = dequantized_state(arrays, quantized)
    if isinstance(model, Decoder) and not paddle and has_own_head(model, arrays):
        _log.warning(
            "%s: the embedding is tied by %s, but lm_head.weight is another: it is kept", path, CONFIG
        )
        model = build(dataclasses.replace(model.config, tie_embeddings=False)).eval()
    if weights is None:
        read_into(model, arrays, path, dtype, paddle)
        return model
    dtype = dtype or ("float32" if jax.default_backend() == "cpu" else "bfloat16")
    done = LayerQuantizer(model, weight_scheme(weights), matrices, DTYPES.get(dtype, jnp.float32))
    read_into(model, arrays, path, dtype, paddle, done)
    return model


def has_own_head(model: Decoder, arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether a file has another matrix for the scores of the vocabulary than the embedding, though its config ties
    them. transformers keeps both then, too."""
    names = (model.embedding_name, "lm_head.weight")
    if not model.size.tie_embeddings or any(name not in arrays for name in names):
        return False
    embedding, head = (arrays[name] for name in names)
    rows = range(0, len(embedding), 4096)
    return embedding.shape == head.shape and any(
        not np.array_equal(embedding[row : row + 4096], head[row : row + 4096]) for row in rows
    )


def open_weights(path: Path) -> Mapping[str, np.ndarray]:
    """The arrays of a file of weights or of an index: mapped, where they are of safetensors."""
    if path.suffix == ".safetensors" or (is_index(path.name) and ".safetensors." in path.name):
        return MappedWeights(path)
    return load_weights(path)


def read_into(
    model: PretrainedModel,
    arrays: Mapping[str, np.ndarray],
    where: object,
    dtype: str | None = None,
    paddle: bool = False,
    done: Callable[[str], object] | None = None,
) -> None:
    """Set all parameters of a model from arrays with the names of Hugging Face; the matrices of linear layers are
    [in, out] with `paddle`. `done` is called with the name of each parameter that was set.

    Raises:
        ConfigError: an unknown dtype. WeightError: the arrays do not fit.
    """
    if dtype is not None and dtype not in DTYPES:
        raise ConfigError(
            "weights are not kept in this type",
            where="dtype",
            received=repr(dtype),
            allowed=", ".join(DTYPES),
        )
    sources, shapes = model.weight_sources(), model.state_shapes()
    if paddle:
        arrays = split_fused(arrays, model.size)
    names = _match_names(model, sources, arrays, where)
    owners = {full: (layer, leaf) for full, layer, leaf in model._slots("_parameters")}
    buffers = {}
    wrong = []
    for name, source in sources.items():
        if any(one not in names for one in source.names):  # optional_weights
            continue
        arrays_of_name = [arrays[names[one]] for one in source.names]
        transposed = source.transposed and not paddle
        arrays_of_name = [array.swapaxes(-1, -2) if transposed else array for array in arrays_of_name]
        shape = (len(arrays_of_name), *arrays_of_name[0].shape) if source.stacked else arrays_of_name[0].shape
        if shape != shapes[name] or any(array.shape != arrays_of_name[0].shape for array in arrays_of_name):
            wrong.append(f"{name}: ours {shapes[name]}, theirs {shape}")
            continue
        if name not in owners:
            buffers[name] = _to_device(arrays_of_name, shape, np.dtype(np.float32))
            continue
        kind = jnp.dtype(DTYPES[dtype]) if dtype is not None else arrays_of_name[0].dtype
        if dtype is None and kind.itemsize > 4:
            kind = jnp.dtype(jnp.float32)
        layer, leaf = owners[name]
        value = _to_device(arrays_of_name, shape, np.dtype(kind))
        layer._parameters[leaf].dtype = np.dtype(kind)
        layer._parameters[leaf].set_value(value)
        if done is not None:
            done(name)
    if wrong:
        raise WeightError(
            f"{len(wrong)} arrays have another shape than {CONFIG} says",
            where=where,
            received="\n".join(wrong[:10]),
            fix=f"{CONFIG} must be that of these weights",
        )
    nn.update(model, buffers=buffers)


def _to_device(arrays_of_name: list[np.ndarray], shape: tuple[int, ...], kind: np.dtype) -> jax.Array:
    """One array, or the stack of several, in a type; one at a time, so that no second copy of a stack is made."""
    if len(shape) == arrays_of_name[0].ndim:
        return jnp.asarray(np.ascontiguousarray(arrays_of_name[0]).astype(kind, copy=False))
    whole = np.empty(shape, kind)
    for number, array in enumerate(arrays_of_name):
        whole[number] = array
    return jnp.asarray(whole)


def _match_names(
    model: PretrainedModel,
    sources: Mapping[str, WeightSource],
    arrays: Mapping[str, np.ndarray],
    where: object,
) -> dict[str, str]:
    """Names of the file by those of `weight_sources`. Raises: WeightError."""
    needed = {one for source in sources.values() for one in source.names}
    names: dict[str, str] = {}
    left_over = []
    skipped = []
    aliases = model.file_aliases()
    for key, name in unwrapped_names(arrays).items():
        if name not in needed:
            for pattern, replacement in model.file_renames:
                name = re.sub(pattern, replacement, name)
        if name in needed:
            names[name] = key
        elif name not in aliases and not model.is_unused(name):
            left_over.append(key)
        elif name not in aliases and not any(re.search(one, name) for one in model.unused_weights):
            skipped.append(key)
    if skipped:
        _log.warning(
            "%s: %d arrays are not used by %s, such as %s",
            where,
            len(skipped),
            type(model).__name__,
            skipped[0],
        )
    for alias, name in aliases.items():
        if name not in names and alias in arrays:
            names[name] = alias
    missing = sorted(
        name
        for name in needed - names.keys()
        if not any(re.search(one, name) for one in model.optional_weights)
    )
    if missing or left_over:
        raise WeightError(
            f"the weights do not fit {type(model).__name__}",
            where=where,
            received="; ".join(
                f"{len(keys)} {label}: " + ", ".join(keys[:8]) + (" …" if len(keys) > 8 else "")
                for label, keys in (("missing", missing), ("left over", left_over))
                if keys
            ),
            allowed=f"the {len(needed)} arrays of {type(model).__name__}",
            fix=f"{CONFIG} must be that of these weights (layers, experts, tie_word_embeddings)",
        )
    return names


def state_for_files(model: PretrainedModel) -> dict[str, np.ndarray]:
    """The arrays of a model with the names and layouts of Hugging Face."""
    state = model.state_dict()
    arrays = {}
    for name, source in model.weight_sources().items():
        value = np.asarray(state[name])
        arrays_of_name = list(value) if source.stacked else [value]
        for one, array in zip(source.names, arrays_of_name, strict=True):
            arrays[one] = array.swapaxes(-1, -2) if source.transposed else array
    return arrays


def save_decoder(model: PretrainedModel, folder: str | Path, shard_bytes: int = SHARD_BYTES) -> list[Path]:
    """Write config.json and the weights as transformers does: one file, or shards with an index. Returns the files."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    arrays, quantization = quantized_arrays(model, state_for_files(model))
    kinds = {array.dtype.name for array in arrays.values()}
    dtype = kinds.pop() if len(kinds) == 1 else "float32"
    shards: list[dict[str, np.ndarray]] = [{}]
    size = 0
    for name, array in arrays.items():
        if shards[-1] and size + array.nbytes > shard_bytes:
            shards.append({})
            size = 0
        shards[-1][name] = array
        size += array.nbytes
    files = []
    weight_map = {}
    for number, shard in enumerate(shards, 1):
        one = (
            "model.safetensors"
            if len(shards) == 1
            else f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        )
        write_safetensors(folder / one, shard, {"format": "pt"})
        weight_map |= dict.fromkeys(shard, one)
        files.append(folder / one)
    if len(shards) > 1:
        total = sum(array.nbytes for array in arrays.values())
        index = {"metadata": {"total_size": total}, "weight_map": weight_map}
        files.append(folder / ("model.safetensors" + INDEX))
        write_file(files[-1], json.dumps(index, indent=2).encode())
    settings = model.config.to_pretrained_config(dtype) | ({KEY: quantization} if quantization else {})
    write_file(folder / CONFIG, json.dumps(settings, indent=2).encode())
    return [*files, folder / CONFIG]
