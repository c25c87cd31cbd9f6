"""Low-rank adapters: what they compute, what is trained, and that merging changes nothing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.core.errors import ConfigError, WeightError
from framework.nn.adapters import (
    LoRA,
    adapted_layers,
    adapter_state,
    add_adapters,
    merge_adapters,
    without_adapters,
)


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.q_proj, self.v_proj, self.out = (
            nn.Linear(6, 6),
            nn.Linear(6, 4, bias_attr=False),
            nn.Linear(4, 3),
        )
        self.norm = nn.LayerNorm(6)

    def forward(self, x: jax.Array) -> jax.Array:
        return self.out(self.v_proj(self.norm(self.q_proj(x))))


X = jnp.asarray(np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32))


def adapted(adapter: LoRA, seed: int = 1) -> Block:
    model = Block()
    add_adapters(model, adapter)
    rng = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        if name.endswith("lora_B"):
            parameter.set_value(rng.normal(size=parameter.shape).astype(np.float32))
    return model


def test_a_fresh_adapter_changes_nothing() -> None:
    model = Block()
    before = model(X)
    names = add_adapters(model, LoRA(rank=2, targets="(q|v)_proj", dora=True))
    assert names == ["q_proj", "v_proj"]
    np.testing.assert_allclose(model(X), before, atol=1e-6)
    trained = {name for name, parameter in model.named_parameters() if parameter.trainable}
    leaves = ("lora_A", "lora_B", "lora_magnitude")
    assert trained == {f"{layer}.{leaf}" for layer in names for leaf in leaves} == set(adapter_state(model))


def test_the_scale_and_its_patterns() -> None:
    model = adapted(
        LoRA(
            rank=4,
            alpha=8,
            targets="q_proj|out",
            rslora=True,
            rank_pattern={"out": 1},
            alpha_pattern={"out": 3},
        )
    )
    layer = model.out
    assert layer.lora_A.shape == (4, 1) and layer.adapter_scale == 3.0
    assert model.q_proj.adapter_scale == 4.0  # 8 / sqrt(4)
    x = X[:, :4]
    expected = x @ layer.weight + layer.bias + 3.0 * (x @ layer.lora_A) @ layer.lora_B
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


@pytest.mark.parametrize("settings", [{}, {"dora": True}, {"rslora": True}, {"dora": True, "targets": "all"}])
def test_merged_is_unmerged(settings: dict) -> None:
    model = adapted(LoRA(rank=3, **settings))
    unmerged, plain = model(X), None
    with without_adapters():
        plain = model(X)
    assert np.abs(np.asarray(unmerged - plain)).max() > 1e-2
    merge_adapters(model)
    np.testing.assert_allclose(model(X), unmerged, atol=1e-5)
    assert not adapted_layers(model) and all(parameter.trainable for parameter in model.parameters())
    assert type(model.q_proj) is nn.Linear
    with pytest.raises(WeightError, match="no adapters"):
        merge_adapters(model)


def test_dora_takes_its_length_as_a_constant() -> None:
    layer = nn.Linear(3, 2, bias_attr=False)
    holder = nn.Sequential(layer)
    add_adapters(holder, LoRA(rank=1, alpha=1, targets="0", dora=True))
    layer.lora_B = jnp.ones((1, 2))
    graphdef, params, buffers = nn.split(holder)
    x = X[:, :3]

    def ours(a: jax.Array) -> jax.Array:
        return graphdef.bind({**params, "0.lora_A": a}, buffers)(x).sum()

    length = jnp.linalg.norm(params["0.weight"] + params["0.lora_A"] @ params["0.lora_B"], axis=0)
    constant = params["0.lora_magnitude"] / length

    def theirs(a: jax.Array) -> jax.Array:
        return ((x @ (params["0.weight"] + a @ params["0.lora_B"])) * constant).sum()

    np.testing.assert_allclose(
        jax.grad(ours)(params["0.lora_A"]), jax.grad(theirs)(params["0.lora_A"]), atol=1e-5
    )


def test_biases_and_whole_layers_beside_adapters() -> None:
    def trained(**settings: object) -> set[str]:
        model = adapted(LoRA(rank=1, targets="q_proj", **settings))
        return {name for name, one in model.named_parameters() if one.trainable and "lora" not in name}

    assert trained() == set()
    assert trained(bias="lora_only") == {"q_proj.bias"}
    assert trained(bias="all") == {"q_proj.bias", "out.bias", "norm.bias"}
    assert trained(modules_to_save=("norm",)) == {"norm.weight", "norm.bias"}


def test_dropout_is_in_training_alone() -> None:
    model = adapted(LoRA(rank=2, dropout=0.5))
    graphdef, params, buffers = nn.split(model.train())
    one, _ = nn.apply(graphdef, params, buffers, jax.random.key(0), X)
    other, _ = nn.apply(graphdef, params, buffers, jax.random.key(1), X)
    assert not np.allclose(one, other)
    np.testing.assert_array_equal(model.eval()(X), model(X))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"targets": "lm_head"}, "out, q_proj"),
        ({"modules_to_save": ("lm_head",)}, "tied"),
    ],
)
def test_names_that_no_layer_has(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        add_adapters(Block(), LoRA(**settings))


@pytest.mark.parametrize(
    "settings", [{"rank": 0}, {"dropout": 1.0}, {"targets": "("}, {"rank_pattern": {"q": 0}}]
)
def test_settings_out_of_range(settings: dict) -> None:
    with pytest.raises(ConfigError, match="out of range"):
        LoRA(**settings)


def test_a_named_layer_is_never_left_out() -> None:
    for targets in ("q_proj|lm_head", "q_proj|norm"):
        with pytest.raises(ConfigError, match="linear layers of the model"):
            add_adapters(Block(), LoRA(targets=targets))


@pytest.mark.parametrize(("weights", "far"), [("int8", 0.05), ("int4", 0.4)])
def test_weights_of_few_bits_below_adapters(weights: str, far: float) -> None:
    plain, small = nn.Sequential(nn.Linear(32, 16)), nn.Sequential(nn.Linear(32, 16))
    add_adapters(small, LoRA(rank=2, targets="0", weights=weights))
    rounded = nn.Sequential(nn.Linear(32, 16))
    rounded.set_state_dict(plain.state_dict())
    nn.quantize_linears(rounded, weights)
    for name, parameter in rounded.named_parameters():
        dict(small.named_parameters())[name].set_value(parameter.value)
    x = jnp.asarray(np.random.default_rng(1).normal(size=(4, 32)).astype(np.float32))
    np.testing.assert_allclose(small(x), plain(x), atol=far)
    assert {name for name, one in small.named_parameters() if one.trainable} == {"0.lora_A", "0.lora_B"}
    dict(small.named_parameters())["0.lora_B"].set_value(np.ones((2, 16), np.float32))
    unmerged = small(x)
    merge_adapters(small)
    assert type(small[0]) is nn.Linear
    np.testing.assert_allclose(small(x), unmerged, atol=0.05)  # products of int8 rows before, of floats now
