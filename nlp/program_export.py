"""Writes a language model as programs that run without its code: see nlp/generation/exported.py."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from framework.core.disk import write_file
from framework.core.errors import ConfigError, InputError
from framework.core.types import PyTree
from framework.export.program import file_names_alone
from framework.export.specs import PLATFORMS
from framework.interop import write_safetensors
from framework.interop.weights.model_folder import CONFIG
from framework.nn.functional.lowering import platform_scope
from nlp import llm
from nlp.generation.exported import DECODE, FORM, LOGITS, WEIGHTS, CacheArray, ProgramSizes
from nlp.generation.programs import LayerFunctions
from nlp.generation.settings import PROGRAMS

_BATCH, _LENGTH = 3, 19  # by which the axes of a cache are told


def export_programs(model: llm.LanguageModel, folder: str | Path) -> Path:
    """Writes the programs, the weights and the files of the tokenizer; returns the folder.

    Raises:
        InputError: the model was read from no folder. ConfigError: the folder holds something else, or the model cannot
        be written as programs of free sizes.
    """
    folder = Path(folder)
    if model.folder is None:
        raise InputError("the model was read from no folder of transformers", where="export_programs")
    if folder.exists() and any(folder.iterdir()) and not (folder / PROGRAMS).is_file():
        raise ConfigError(
            "the folder holds something else", where=folder, fix="name a folder that is not there"
        )
    functions = LayerFunctions(model.model)
    if functions.encodes:
        raise ConfigError("encoder-decoders are not written as programs", where=str(model.folder))
    leaves, weights_tree = jax.tree.flatten(functions.params)
    names = [f"{number:05d}" for number in range(len(leaves))]
    short, long = (
        jax.tree.leaves(jax.eval_shape(lambda n=n: functions.new_cache(_BATCH, n)))
        for n in (_LENGTH, _LENGTH + 1)
    )
    cache_tree = jax.tree.structure(jax.eval_shape(lambda: functions.new_cache(_BATCH, _LENGTH)))
    cache = tuple(
        CacheArray(
            tuple(one if one == other else None for one, other in zip(a.shape, b.shape))[1:], a.dtype.name
        )
        for a, b in zip(short, long, strict=True)
    )

    def unpack(weights: Mapping[str, jax.Array]) -> PyTree:
        return jax.tree.unflatten(weights_tree, [weights[name] for name in names])

    def decode(
        weights: Mapping[str, jax.Array], ids: jax.Array, positions: jax.Array, arrays: tuple[jax.Array, ...]
    ) -> tuple[jax.Array, tuple[jax.Array, ...]]:
        hidden, after = functions.decode(
            unpack(weights), ids, positions, jax.tree.unflatten(cache_tree, arrays)
        )
        return hidden, tuple(jax.tree.leaves(after))

    def logits(weights: Mapping[str, jax.Array], hidden: jax.Array) -> jax.Array:
        return functions.logits(unpack(weights), hidden)

    shapes = {name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for name, leaf in zip(names, leaves)}
    b, t, s = export.symbolic_shape("b, t, s")
    tokens = jax.ShapeDtypeStruct((b, t), jnp.int32)
    arrays = tuple(
        jax.ShapeDtypeStruct((b, *(s if one is None else one for one in array.shape)), array.dtype)
        for array in cache
    )
    hidden = jax.eval_shape(decode, shapes, tokens, tokens, arrays)[0]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / DECODE, decode, shapes, tokens, tokens, arrays)
    _write(folder / LOGITS, logits, shapes, hidden)
    write_safetensors(folder / WEIGHTS, {name: np.asarray(leaf) for name, leaf in zip(names, leaves)})
    if (model.folder / CONFIG).is_file():
        shutil.copyfile(model.folder / CONFIG, folder / CONFIG)
    llm.copy_tokenizer(model.folder, folder)
    size = model.model.size
    sizes = ProgramSizes(size.longest_text, size.vocab_size, size.eos_ids, cache, size.bos_id)
    write_file(folder / PROGRAMS, json.dumps({"form": FORM, **asdict(sizes)}, indent=1).encode("utf-8"))
    return folder


def _write(file: Path, function: Callable[..., object], *arguments: object) -> None:
    with platform_scope("any"), file_names_alone():
        exported = export.export(jax.jit(function), platforms=PLATFORMS)(*arguments)
    write_file(file, bytes(exported.serialize()))
