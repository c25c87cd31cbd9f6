"""What every registered decoder of texts keeps to, from the registry: one test of each, so that it compiles once."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import available, build
from framework.config.registry import find
from framework.core.compilation import quick_compile_options
from framework.core.dtypes import precision_scope
from framework.core.errors import ConfigError, ShapeError
from framework.interop.named_weights import named_weights
from tests.contract.compiling import part
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_config import decoder_families
from zoo.layers.decoder_moe import MixtureConfig
from zoo.layers.encoder_decoder import EncoderDecoder

SMALL: dict[str, Any] = {
    "vocab_size": 61,
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "num_kv_heads": 2,
    "head_dim": 8,
    "intermediate_size": 40,
    "max_positions": 64,
}
EXPERTS: dict[str, Any] = {"num_experts": 4, "top_k": 2, "expert_size": 24, "groups": 1, "top_groups": 1}
LATENT: dict[str, Any] = {
    "query_rank": 16,
    "latent_rank": 12,
    "plain_dim": 8,
    "rotary_dim": 8,
    "value_dim": 8,
}
DECODERS = {
    name: find("model", name, ("zoo",))
    for name, module in available("model", ("zoo",)).items()
    if module.startswith("zoo.decoder.")
}
ROWS, LENGTH, ROOM = 3, 9, 16
VALID = np.arange(LENGTH) < np.array([[9], [5], [1]])
IDS = np.where(VALID, np.random.default_rng(0).integers(1, 61, (ROWS, LENGTH)), 0).astype(np.int32)


def small(name: str) -> Any:
    config = DECODERS[name].config
    fields = {field.name for field in dataclasses.fields(config)}
    own = {key: value for key, value in {**SMALL, **EXPERTS, **LATENT}.items() if key in fields}
    if name in ("GPT2", "T5", "Bart"):
        own.pop("num_kv_heads")
    if name.startswith("Gemma"):
        own |= {"window": 4, "windowed": (True, False), "query_scale": 8.0}
    return config(**own)


def test_each_is_of_a_family() -> None:
    families = decoder_families()
    assert {family.config for family in families.values()} == {entry.config for entry in DECODERS.values()}
    for entry in DECODERS.values():
        assert all(families[name].config is entry.config for name in entry.config.model_types)


def close(found: Any, want: Any) -> None:
    want = np.asarray(want)
    np.testing.assert_allclose(found, want, rtol=0, atol=2e-5 * max(1.0, float(np.abs(want).max())))


def compiled(function: Any, *args: Any) -> Any:
    return jax.jit(function).lower(*args).compile(compiler_options=quick_compile_options())


def inputs(model: nn.Layer) -> tuple[Any, ...]:
    return (IDS, IDS[:, ::-1].copy(), VALID) if isinstance(model, EncoderDecoder) else (IDS,)


def check_decode(model: Any, logits: np.ndarray) -> None:
    """Prefill of a ragged batch, then tokens one by one, give what `forward` gives."""
    graphdef, params, buffers = nn.split(model)
    if isinstance(model, EncoderDecoder):
        target, valid = IDS[:, ::-1].copy(), np.ones_like(VALID)
        cache = model.start_cache(
            model.encode(jnp.asarray(IDS), jnp.asarray(VALID)), jnp.asarray(VALID), ROOM
        )
    else:
        target, valid, cache = IDS, VALID, model.new_cache(ROWS, ROOM)
    assert all(leaf.shape[0] == ROWS for leaf in jax.tree.leaves(cache))

    def step(ids: jax.Array, positions: jax.Array, cache: Any) -> Any:
        layer = graphdef.bind(params, buffers)
        hidden, cache = layer.decode(ids, positions, cache)
        return layer.logits(hidden), cache

    first = 4
    head = np.where(valid[:, :first], np.arange(first), ROOM).astype(np.int32)
    found, after = compiled(step, target[:, :first], head, cache)(target[:, :first], head, cache)
    assert jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), after) == jax.tree.map(
        lambda leaf: (leaf.shape, leaf.dtype), cache
    )
    pieces, cache = [np.asarray(found)], after
    single = compiled(step, target[:, :1], head[:, :1], cache)
    for place in range(first, LENGTH):
        positions = np.where(valid[:, place : place + 1], place, ROOM).astype(np.int32)
        found, cache = single(target[:, place : place + 1], positions, cache)
        pieces.append(np.asarray(found))
    close(np.concatenate(pieces, 1)[valid], logits[valid])


@pytest.mark.parametrize("name", DECODERS)
def test_decoder(name: str, tmp_path: Path) -> None:
    model = build(small(name)).eval()
    shapes = model.state_shapes()
    model.set_state_dict(named_weights(shapes))
    graphdef, params, buffers = nn.split(model)
    args = inputs(model)
    run = compiled(lambda p, b, *a: nn.apply(graphdef, p, b, None, *a), params, buffers, *args)
    out, after = run(params, buffers, *args)
    with part("shapes and dtypes"):
        assert out.shape == (ROWS, LENGTH, 61) and out.dtype == np.float32 and np.isfinite(out).all()
        assert np.asarray(out).std() > 1e-3
        assert model.embedding().shape == (61, 32)
        assert all(np.array_equal(after[key], buffers[key]) for key in buffers)
    with part("no token sees what follows it"):
        changed = list(args)
        place = 1 if isinstance(model, EncoderDecoder) else 0
        changed[place] = args[place].copy()
        changed[place][:, 6:] = 7
        other, _ = run(params, buffers, *changed)
        np.testing.assert_array_equal(other[:, :6], out[:, :6])
    with part("decode is forward"):
        check_decode(model, np.asarray(out))
    with part("eager is static"):
        close(model(*map(jnp.asarray, args)), out)
    with part("the state survives a file"):
        framework.save(model.state_dict(), tmp_path / "model.safetensors")
        other_model = build(small(name)).eval()
        other_model.set_state_dict(framework.load(tmp_path / "model.safetensors"))
        state = other_model.state_dict()
        assert all(np.array_equal(state[key], value) for key, value in model.state_dict().items())
    with part("its file has every entry once"):
        sources = model.weight_sources()
        names = [one for source in sources.values() for one in source.names]
        assert sources.keys() == shapes.keys() and len(names) == len(set(names))
    with part("config.json comes back"):
        again = type(model.config).from_pretrained_config(model.config.to_pretrained_config())
        assert again.to_pretrained_config() == model.config.to_pretrained_config()
    with part("dots of bfloat16, and logits of float32"), precision_scope("bfloat16"):
        jaxpr, kinds = jax.make_jaxpr(
            lambda p, b, *a: nn.apply(graphdef, p, b, None, *a)[0], return_shape=True
        )(params, buffers, *args)
        assert kinds.dtype == np.float32 and "bf16" in str(jaxpr)
    check_gradients(model, args)


def check_gradients(model: Any, args: tuple[Any, ...]) -> None:
    """Finite, and none is zero but those of a bias of the keys, which moves no weight of the attention, and of experts
    that no token selects."""
    graphdef, params, buffers = nn.split(model.train())
    trained = {name for name, parameter in model.named_parameters() if parameter.trainable}
    fixed = {name: params[name] for name in params.keys() - trained}

    def loss(train: dict[str, jax.Array], buffers: Any, *args: Any) -> jax.Array:
        logits, after = nn.apply(graphdef, {**fixed, **train}, buffers, jax.random.key(0), *args)
        balance = sum(after[key] for key in after if key.endswith("auxiliary_loss"))
        return (
            logits * jnp.sin(jnp.arange(logits.size, dtype=jnp.float32)).reshape(logits.shape)
        ).sum() + balance

    train = {name: params[name] for name in trained}
    grads = compiled(jax.grad(loss), train, buffers, *args)(train, buffers, *args)
    with part("gradients"):
        assert all(np.isfinite(grad).all() for grad in grads.values())
        still = {name for name, grad in grads.items() if not np.any(grad)}
        assert not still, still


@pytest.mark.parametrize("name", ["Qwen3Moe", "DeepseekV3"])
def test_experts_that_do_not_fit_are_refused(name: str) -> None:
    config = small(name)
    assert isinstance(config, MixtureConfig)
    for change, where in (
        ({"top_k": 5}, "top_k"),
        ({"groups": 3}, "groups"),
        ({"groups": 2, "top_groups": 3}, "top_groups"),
        ({"sparse": (True,)}, "sparse"),
        ({"num_experts": 0}, "num_experts"),
        ({"capacity_factor": 0.0}, "capacity_factor"),
    ):
        with pytest.raises(ConfigError, match=where):
            dataclasses.replace(config, **change).size()


def test_ids_of_another_rank_are_refused() -> None:
    for name in ("Llama", "T5"):
        model = build(small(name)).eval()
        with pytest.raises(ShapeError, match=r"\[N, "):
            model(jnp.zeros(3, jnp.int32), *([jnp.zeros(3, jnp.int32)] if name == "T5" else []))
    assert isinstance(build(small("Llama")), Decoder)
