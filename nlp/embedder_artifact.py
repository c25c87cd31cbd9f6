"""A folder with a model that embeds texts as an artifact: of sentence-transformers, or an encoder alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import jax.numpy as jnp
import numpy as np

from framework import hub
from framework.config import build, plain
from framework.core.errors import WeightError
from framework.core.types import JSON
from framework.export import Artifact, TensorSpec
from framework.interop import load_weights
from framework.interop.weights.model_folder import CONFIG, find_weights, is_paddles, read_settings
from framework.interop.weights.wrappers import remove_wrappers
from framework.text.tokenizer import Tokenizer
from framework.text.tokenizer_files import folder_settings
from framework.text.transforms import Tokenize
from framework.workflow.domain.weights import load_state_into
from framework.workflow.export.export import model_artifact
from nlp.layers.embedding_head import DenseConfig
from nlp.models.decoder_embedder import DecoderEmbedder
from nlp.models.sentence_encoder import SentenceEncoder, SentenceEncoderConfig
from nlp.pretrained import encoder_config, encoder_state
from nlp.sentence_folder import SentenceFolder, is_sentence_folder, read_sentence_folder
from nlp.tasks.embedding import TextEmbedding
from zoo.layers.decoder_config import decoder_families
from zoo.layers.decoder_weights import build_decoder, open_weights, read_into

BATCH = 8
_SHORTEST = 16  # tokens of the first bucket
_INPUTS = {
    "input_ids": TensorSpec(("n", "t"), "int32"),
    "mask": TensorSpec(("n", "t"), "bool"),
    "type_ids": TensorSpec(("n", "t"), "int32"),
}


def export_embedder(folder: str | Path) -> Artifact:
    """The artifact of a folder of sentence-transformers, or of one with an encoder alone, whose texts are pooled by the
    mean of their tokens as sentence-transformers does.

    Raises:
        FormatError, ConfigError, WeightError: a file is missing, damaged or not understood, or the weights do not fit.
        InputError: there is no tokenizer.
    """
    folder = Path(folder).expanduser()
    about = read_sentence_folder(folder) if is_sentence_folder(folder) else SentenceFolder(folder)
    settings, where = read_settings(about.transformer), str(about.transformer / CONFIG)
    weights = find_weights(about.transformer)
    is_decoder = settings.get("model_type") in decoder_families()
    dense = tuple(config for config, _ in about.dense)
    if is_decoder:
        model, spelled, width = _read_decoder(about, dense)
        most, inputs = model.max_tokens, {name: _INPUTS[name] for name in ("input_ids", "mask")}
    else:
        model, spelled, width = _read_encoder(about, dense, settings, where)
        most, inputs = model.max_tokens, _INPUTS
    for number, (_, arrays) in enumerate(about.dense):
        layer = model.dense[number]
        for name, array in arrays.items():
            parameter = getattr(layer, name)
            if tuple(parameter.shape) != array.shape:
                raise WeightError(
                    "a linear layer does not fit behind the one before it",
                    where=str(folder),
                    received=f"{list(array.shape)}",
                    allowed=f"{list(parameter.shape)}",
                )
            setattr(layer, name, jnp.asarray(array))
    settings_of_tokens = {"do_lower_case": True} if about.lower else {}
    tokenizer = Tokenizer.from_file(about.transformer, settings_of_tokens)
    length = _max_length(about, most)
    size = dense[-1].out_features if dense else width
    config: dict[str, JSON] = {
        "domain": "nlp",
        "name": folder.resolve().name,
        "model": cast(JSON, spelled),
        "batch_size": BATCH,
        "buckets": cast(JSON, buckets(length)),
        "labels": [],
        "bf16_verified": False,
        "embedding": {
            "size": size,
            "pooling": about.pooling,
            "normalized": about.normalized,
            "prompts": dict(about.prompts or {}),
            "default_prompt": about.default_prompt,
        },
        "provenance": {"weights": weights.name, "sha256": hub.digest(weights)},
    }
    transforms = (Tokenize(tokenizer.to_json(), length),)
    return model_artifact(model.eval(), TextEmbedding(), inputs, transforms, config, ("float32", "bfloat16"))


def is_embedder(folder: Path) -> bool:
    """Whether texts get embeddings of this folder: sentence-transformers wrote it, or it holds an encoder alone."""
    if is_sentence_folder(folder):
        return True
    names = read_settings(folder).get("architectures")
    return isinstance(names, list) and len(names) == 1 and str(names[0]).endswith("Model")


def buckets(length: int) -> list[int]:
    """Lengths that texts are padded to: powers of two up to the longest."""
    sizes, size = [], _SHORTEST
    while size < length:
        sizes.append(size)
        size *= 2
    return [*sizes, length]


def _max_length(about: SentenceFolder, positions: int) -> int:
    stated = folder_settings(about.transformer).get("model_max_length")
    usable = isinstance(stated, int | float) and not isinstance(stated, bool) and stated >= 1
    length = about.max_length or (stated if usable else positions)
    return int(min(cast(float, length), positions))


def _read_encoder(
    about: SentenceFolder, dense: tuple[DenseConfig, ...], settings: Mapping[str, object], where: str
) -> tuple[SentenceEncoder, object, int]:
    weights = find_weights(about.transformer)
    state = remove_wrappers(load_weights(weights))
    encoder = encoder_config(settings, where, paddle=is_paddles(weights))
    encoder = dataclasses.replace(encoder, pooler=False)
    config = SentenceEncoderConfig(encoder, about.pooling, about.normalized, dense)
    model: SentenceEncoder = build(config)
    inner = model.text_encoder
    of_encoder = encoder_state(state, type(inner), str(weights))
    load_state_into(
        inner, type(of_encoder)({k: v for k, v in of_encoder.items() if not k.startswith("pooler.")})
    )
    return model, plain(model.config), encoder.size().hidden_size


def _read_decoder(
    about: SentenceFolder, dense: tuple[DenseConfig, ...]
) -> tuple[DecoderEmbedder, object, int]:
    weights = find_weights(about.transformer)
    config = dataclasses.replace(build_decoder(about.transformer).config, tie_embeddings=True)
    causal = read_settings(about.transformer).get("is_causal") is not False
    model = DecoderEmbedder(config, about.pooling, dense, about.normalized, causal)
    arrays = _StackArrays(open_weights(weights), f"{model.decoder.stack_name}.")
    read_into(model.decoder, arrays, weights, "float32", is_paddles(weights))
    kind = {"type": "DecoderEmbedder", "decoder": plain(config), "dense": plain(dense)}
    return model, {**kind, "pooling": about.pooling, "causal": causal}, config.size().hidden_size


class _StackArrays(Mapping[str, np.ndarray]):
    """The arrays of a decoder without its scores of words, with the names that they have in a model with them."""

    def __init__(self, arrays: Mapping[str, np.ndarray], prefix: str) -> None:
        bare = not any(name.startswith(prefix) for name in arrays)
        self._arrays = arrays
        self._names = {
            f"{prefix}{name}" if bare else name: name for name in arrays if not name.startswith("lm_head.")
        }

    def __getitem__(self, name: str) -> np.ndarray:
        return self._arrays[self._names[name]]

    def __iter__(self):
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)
