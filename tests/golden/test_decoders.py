"""Parity of the decoders with transformers: files of weights with its names, its config.json, the logits of texts of
different lengths in one batch, and the tokens that greedy search adds to each, with a cache.

The references are written by `tools.golden decoders`, without a cache and each text alone. Weights are drawn from the
names of the reference's files.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from tests.golden.thinning import thin
from tools.golden.decoders import CASES, KEPT_ROW, LENGTHS, NEW_TOKENS, drawn, tokens
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_config import decoder_families, decoder_family
from zoo.layers.decoder_moe import MixtureMLP
from zoo.layers.decoder_weights import read_into, save_decoder, state_for_files
from zoo.layers.encoder_decoder import EncoderDecoder

DATA = Path(__file__).parent / "data" / "decoders"
ROOM = 96
"""Places of the cache"""


@functools.cache
def load(name: str) -> dict[str, np.ndarray]:
    with np.load(DATA / f"{name}.npz") as data:
        return dict(data)


def settings(name: str) -> dict[str, Any]:
    return json.loads(bytes(load(name)["config"].item()))


@functools.cache
def weights(name: str) -> Mapping[str, np.ndarray]:
    lines = bytes(load(name)["keys"].item()).decode().splitlines()
    return drawn(
        {key: tuple(int(n) for n in shape.split("x")) for key, shape in (line.split(" ") for line in lines)}
    )


def filled(name: str) -> Any:
    config = decoder_family(settings(name)).config.from_pretrained_config(settings(name))
    model = build(config).eval()
    read_into(model, weights(name), name)
    return model


def test_every_family_has_a_reference() -> None:
    assert {settings(name)["model_type"] for name in CASES} == set(decoder_families())


@pytest.mark.parametrize("name", CASES)
def test_parity(name: str) -> None:
    reference, model, x = load(name), filled(name), tokens()
    graphdef, params, buffers = nn.split(model)

    @jax.jit
    def step(ids: jax.Array, positions: jax.Array, cache: Any) -> Any:
        layer = graphdef.bind(params, buffers)
        hidden, cache = layer.decode(ids, positions, cache)
        return layer.logits(hidden), cache

    if isinstance(model, EncoderDecoder):
        memory = model.encode(jnp.asarray(x.ids), jnp.asarray(x.valid))
        cache = model.start_cache(memory, jnp.asarray(x.valid), ROOM)
        lengths = np.full(len(LENGTHS), x.target.shape[1])
        logits, _ = step(
            x.target, np.broadcast_to(np.arange(x.target.shape[1], dtype=np.int32), x.target.shape), cache
        )
    else:
        lengths = np.array(LENGTHS)
        positions = np.where(x.valid, np.arange(x.ids.shape[1]), ROOM).astype(np.int32)
        logits, cache = step(x.ids, positions, model.new_cache(len(LENGTHS), ROOM))
    for number, length in enumerate(lengths):
        want = reference[f"logits.{number}"]
        limit = 1e-4 * max(1.0, float(np.abs(want).max()))
        np.testing.assert_allclose(
            thin(np.asarray(logits[number, :length]), KEPT_ROW),
            want,
            rtol=0,
            atol=limit,
            err_msg=f"text {number}",
        )
    if isinstance(model, EncoderDecoder):
        latest, places = np.full(len(LENGTHS), model.size.start_id), np.zeros(len(LENGTHS), int)  # type: ignore[attr-defined]
        written = []
    else:
        latest = np.asarray(logits)[np.arange(len(LENGTHS)), lengths - 1].argmax(-1)
        places, written = lengths, [latest]
    while len(written) < NEW_TOKENS:
        logits, cache = step(latest[:, None].astype(np.int32), places[:, None].astype(np.int32), cache)
        latest, places = np.asarray(logits)[:, 0].argmax(-1), places + 1
        written.append(latest)
    for number, row in enumerate(np.stack(written, 1)):
        assert row.tolist() == reference[f"greedy.{number}"].tolist(), f"text {number}"


@pytest.mark.parametrize("name", CASES)
def test_files_come_back(name: str, tmp_path: Path) -> None:
    """Byte for byte, by name, and their config.json is understood as the first one was."""
    model = filled(name)
    arrays = state_for_files(model)
    assert arrays.keys() == weights(name).keys()
    for key, want in weights(name).items():
        assert arrays[key].dtype == want.dtype and np.array_equal(arrays[key], want), key
    files = save_decoder(model, tmp_path, shard_bytes=20_000)
    assert len([file for file in files if file.suffix == ".safetensors"]) > 1
    written = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    again = type(model.config).from_pretrained_config(written)
    sizes = [config.size() for config in (again, model.config)]
    assert len({dataclasses.replace(size, head_dim=size.head_width) for size in sizes}) == 1
    theirs = settings(name)
    assert (
        written["model_type"] == theirs["model_type"] and written["architectures"] == theirs["architectures"]
    )
    for key in written.keys() & theirs.keys():
        if key not in ("rope_parameters", "transformers_version", "dtype", "tie_word_embeddings"):
            assert theirs[key] is None or (written[key] or 0) == (theirs[key] or 0), key


def test_the_loss_that_balances_experts() -> None:
    """Of one layer it is upstream's, whose coefficient is in it."""
    model = filled("mixtral").train()
    assert isinstance(model, Decoder)
    model(jnp.asarray(tokens().ids[:1]))
    (experts,) = [layer for layer in model.sublayers() if isinstance(layer, MixtureMLP)]
    want = load("mixtral")["balance"] * settings("mixtral")["router_aux_loss_coef"]
    np.testing.assert_allclose(experts.auxiliary_loss, want, rtol=1e-5)
