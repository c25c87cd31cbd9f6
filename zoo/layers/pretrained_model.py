"""Where the weights of language models stand in the files of other toolkits."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from framework import nn
from zoo.layers.decoder_config import DecoderConfig, DecoderSize

ConfigT = TypeVar("ConfigT", bound=DecoderConfig)


class WeightSource(NamedTuple):
    """Where a parameter stands in files of Hugging Face."""

    names: tuple[str, ...]
    """One array; or with `stacked` one for each row of ours, in this order"""
    transposed: bool = False
    """Whether the last two axes of each stand the other way round there"""
    stacked: bool = False


class PretrainedModel(nn.Model[ConfigT], Generic[ConfigT]):
    """Base of language models: what is said of files with their weights, and the scores of the vocabulary."""

    unused_weights: ClassVar[tuple[str, ...]] = (
        r"rotary_emb\.(inv_freq|cos_cached|sin_cached)$",
        r"\.attn\.(masked_)?bias$",
    )
    """Regular expressions of arrays in files that hold no weights of the model"""
    optional_weights: ClassVar[tuple[str, ...]] = ()
    """Regular expressions of arrays that files may lack: they keep the values that they start with"""
    file_renames: ClassVar[tuple[tuple[str, str], ...]] = (
        (r"^(?:[a-z0-9_]+\.)?(?=(?:embed_tokens|layers|norm)\.)", "model."),
    )
    """Regular expressions and replacements that turn other spellings in files into Hugging Face's: of PaddleNLP, whose
    names begin with that of the family, and of stacks that were saved without their head"""

    def __init__(self, config: ConfigT) -> None:
        super().__init__(config)
        self.size: DecoderSize = config.size()

    @property
    def embedding_name(self) -> str:
        """The path of the embedding's weight."""
        raise NotImplementedError

    def embedding_layer(self) -> nn.Embedding:
        """That of the tokens."""
        path = self.embedding_name.rpartition(".")[0]
        return functools.reduce(getattr, path.split("."), self)  # type: ignore[return-value]

    def embedding(self) -> jax.Array:
        """[vocab_size, hidden_size]"""
        return self.embedding_layer().table()

    def logits(self, hidden: jax.Array) -> jax.Array:
        """[..., hidden_size] -> [..., vocab_size] float32."""
        if self.size.tie_embeddings:
            return self.embedding_layer().attend(hidden).astype(jnp.float32)
        return self.lm_head(hidden).astype(jnp.float32)

    def is_unused(self, name: str) -> bool:
        """Whether an array of a file is none of the model's weights."""
        return any(re.search(pattern, name) for pattern in self.unused_weights)

    def weight_sources(self) -> dict[str, WeightSource]:
        """Where each entry of `state_dict()` stands in files of Hugging Face."""
        transposed = {
            f"{path}.{name}" for path, layer in self.named_sublayers() for name in layer.transposed_in_torch
        }
        return {name: WeightSource((name,), name in transposed) for name in self.state_shapes()}

    def file_aliases(self) -> Mapping[str, str]:
        """Second names in files: {theirs: the name of `weight_sources`}."""
        return {"lm_head.weight": self.embedding_name} if self.size.tie_embeddings else {}
