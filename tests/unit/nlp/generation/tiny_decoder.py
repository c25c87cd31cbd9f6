"""A decoder of two layers of attention as pure functions, and tokenizers, for tests of the engine."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.types import PyTree
from framework.text.tokenizer import Tokenizer

_LONGEST = 2048


class TinyDecoder:
    """Its texts depend on all tokens before: any fault of a cache, a position or a row changes them."""

    encodes = False
    regime = None

    def __init__(self, vocab_size: int = 97, seed: int = 0, width: int = 32, layers: int = 2) -> None:
        rng = np.random.default_rng(seed)

        def draw(*shape: int, scale: float = 1.0) -> jax.Array:
            return jnp.asarray(rng.normal(size=shape).astype(np.float32) * np.float32(scale))

        self.width, self.layers = width, layers
        self.params: PyTree = {
            "embedding": draw(vocab_size, width),
            "position": draw(_LONGEST, width, scale=0.5),
            "head": draw(width, vocab_size),
            **{f"{name}{n}": draw(width, width, scale=width**-0.5) for name in "qkvo" for n in range(layers)},
        }

    def new_cache(self, batch: int, length: int) -> PyTree:
        empty = jnp.zeros((batch, length, self.width), jnp.float32)
        return tuple((empty, empty + 0.0) for _ in range(self.layers))

    def decode(
        self, params: PyTree, ids: jax.Array, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        rows, length = jnp.arange(ids.shape[0])[:, None], cache[0][0].shape[1]
        x = params["embedding"][ids] + params["position"][jnp.minimum(positions, _LONGEST - 1)]
        layers = []
        for n, (k, v) in enumerate(cache):
            k = k.at[rows, positions].set(x @ params[f"k{n}"], mode="drop")
            v = v.at[rows, positions].set(x @ params[f"v{n}"], mode="drop")
            scores = jnp.einsum("btc,bsc->bts", x @ params[f"q{n}"], k) / np.float32(self.width**0.5)
            scores = jnp.where(jnp.arange(length) <= positions[..., None], scores, -1e9)
            x = x + jnp.einsum("bts,bsc->btc", jax.nn.softmax(scores, -1), v) @ params[f"o{n}"]
            x = x / jnp.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)
            layers.append((k, v))
        return x, tuple(layers)

    def logits(self, params: PyTree, hidden: jax.Array) -> jax.Array:
        return hidden @ params["head"]

    def greedy(self, prompt: list[int], count: int) -> list[int]:
        """Without a cache: every token from the whole text before."""
        size = 1 << (len(prompt) + count).bit_length()
        ids = np.zeros((1, size), np.int32)
        ids[0, : len(prompt)] = prompt
        for at in range(len(prompt), len(prompt) + count):
            ids[0, at] = self._next(ids, at)
        return ids[0, len(prompt) : len(prompt) + count].tolist()

    @functools.partial(jax.jit, static_argnums=0)
    def _next(self, ids: jax.Array, at: jax.Array) -> jax.Array:
        cache = self.new_cache(1, ids.shape[1])
        hidden, _ = self.decode(self.params, ids, jnp.arange(ids.shape[1])[None], cache)
        return self.logits(self.params, hidden[0, at - 1]).argmax()


class TinyEncoderDecoder(TinyDecoder):
    """The same, where the mean of the encoder's embeddings is added to each token."""

    encodes = True
    regime = None

    def encode(self, params: PyTree, ids: jax.Array, mask: jax.Array) -> jax.Array:
        return jnp.where(mask[..., None], params["embedding"][ids], 0.0)

    def start_cache(self, params: PyTree, memory: jax.Array, mask: jax.Array, length: int) -> PyTree:
        return (*self.new_cache(memory.shape[0], length), (memory, mask))

    def decode(
        self, params: PyTree, ids: jax.Array, positions: jax.Array, cache: PyTree
    ) -> tuple[jax.Array, PyTree]:
        memory, mask = cache[-1]
        mean = memory.sum(1) / jnp.maximum(mask.sum(1), 1).astype(jnp.float32)[:, None]
        shifted = {**params, "head": params["head"]}
        x, layers = super().decode(shifted, ids, positions, cache[:-1])
        return x + mean[:, None], (*layers, cache[-1])


def byte_tokenizer() -> Tokenizer:
    """A token for each byte and some words, as byte-level BPE has them; "</s>" and "<|im_end|>" are special."""
    from tokenizers import AddedToken, decoders, models, pre_tokenizers
    from tokenizers import Tokenizer as Core

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    core = Core(models.BPE({letter: n for n, letter in enumerate(letters)}, []))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(text, special=True) for text in ("</s>", "<|im_end|>")])
    return Tokenizer.from_json(core.to_str())


def fallback_tokenizer() -> Tokenizer:
    """As LLaMA's of SentencePiece: spaces are "▁", what is no word is bytes, and a first space is dropped."""
    from tokenizers import Tokenizer as Core
    from tokenizers import decoders, models, normalizers

    words = ["▁", "a", "b", "▁a", "▁b", "中", "▁中"]
    vocabulary = ["<unk>", "<s>", "</s>", *(f"<0x{n:02X}>" for n in range(256)), *words]
    core = Core(
        models.BPE(
            {token: n for n, token in enumerate(vocabulary)},
            [("▁", "a"), ("▁", "b"), ("▁", "中")],
            unk_token="<unk>",
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    core.add_special_tokens(["<s>", "</s>"])
    return Tokenizer.from_json(core.to_str())
