"""A language model as programs that run without its code: what reads tokens, and what scores the next one.

    decode.jaxexp        tokens and a cache in, hidden states and the cache out: a prompt, a chunk of it, or a step
    logits.jaxexp        hidden states in, scores of the vocabulary out
    model.safetensors    the weights of both
    programs.json        sizes, and the arrays of the cache
    config.json, tokenizer.json, chat template, generation_config.json

Sizes of batches, chunks and caches are free. Donation is lost by jax.export: the engine says it again around the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from framework.core import bounded
from framework.core.errors import FormatError
from framework.core.types import PyTree
from framework.export.artifact import read_exported
from framework.interop.weights.mapped import MappedWeights
from nlp.generation.settings import PROGRAMS

DECODE, LOGITS, WEIGHTS = "decode.jaxexp", "logits.jaxexp", "model.safetensors"
FORM = 1


@dataclass(frozen=True)
class CacheArray:
    """An array of a cache, [B, …]: its sizes, `None` where it is as long as the cache."""

    shape: tuple[int | None, ...]
    dtype: str


@dataclass(frozen=True)
class ProgramSizes:
    """What an engine has to know of the programs."""

    max_positions: int
    vocab_size: int
    eos_ids: tuple[int, ...]
    cache: tuple[CacheArray, ...]
    bos_id: int = -1
    """What an empty prompt begins with; -1: nothing"""

    @property
    def longest_text(self) -> int:
        return self.max_positions


class ExportedFunctions:
    """`DecoderFunctions` of a folder of programs.

    Raises: FormatError: a file is missing or damaged.
    """

    encodes = False
    regime: Callable[[int], int] | None = None

    def __init__(self, folder: str | Path) -> None:
        folder = Path(folder).expanduser()
        self.size = read_sizes(folder)
        origin = "a folder that oar export-programs wrote"
        self._decode, self._logits = (
            read_exported(bounded.read_bytes(folder / name), folder / name, origin)
            for name in (DECODE, LOGITS)
        )
        weights = MappedWeights(folder / WEIGHTS)
        self.params: PyTree = {name: jnp.asarray(np.asarray(weights[name])) for name in weights}

    def decode(
        self,
        params: PyTree,
        ids: jax.Array,
        positions: jax.Array,
        cache: PyTree,
        lengths: jax.Array | None = None,
    ) -> tuple[jax.Array, PyTree]:
        hidden, after = self._decode.call(params, ids, positions, cache)
        return hidden, after

    def logits(self, params: PyTree, hidden: jax.Array) -> jax.Array:
        if hidden.ndim == 2:  # beams score one token of each row
            return self._logits.call(params, hidden[:, None])[:, 0]
        return self._logits.call(params, hidden)

    def new_cache(self, batch: int, length: int) -> PyTree:
        return tuple(
            jnp.zeros((batch, *(length if one is None else one for one in array.shape)), array.dtype)
            for array in self.size.cache
        )


def read_sizes(folder: Path) -> ProgramSizes:
    """What programs.json says. Raises: FormatError."""
    path = folder / PROGRAMS
    content = bounded.check_mapping(bounded.read_json(path), path, "description")
    try:
        if content["form"] != FORM:
            raise ValueError(f"form {content['form']}")
        cache = tuple(
            CacheArray(
                tuple(None if one is None else int(one) for one in array["shape"]), str(array["dtype"])
            )
            for array in content["cache"]
        )
        ends = tuple(int(one) for one in content["eos_ids"])
        return ProgramSizes(
            int(content["max_positions"]),
            int(content["vocab_size"]),
            ends,
            cache,
            int(content.get("bos_id", -1)),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise FormatError(
            "the file does not describe programs of a language model",
            where=path,
            received=f"{type(error).__name__}: {error}"[:200],
            allowed=f"form {FORM}",
            fix="export the model again",
        ) from error
