"""The axes sequence, expert and pipeline: layers compute what they compute on one device."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.core.errors import ConfigError, ShapeError
from framework.core.rng import rng_scope
from framework.distributed import ParallelOptions, Partitioner
from framework.distributed.scope import StepScope
from framework.nn import functional as F
from framework.nn.mesh_scope import mesh_scope
from tests.unit.framework.distributed import axes_run

RNG = np.random.default_rng(0)


def scope_of(model: nn.Layer, training: bool = True, **options: Any) -> StepScope:
    partitioner = Partitioner(jax.devices()[:2], ParallelOptions(**options))
    partitioner.set_model(model)
    scope = partitioner.scope(training)
    assert scope is not None
    return scope


def normal(*shape: int) -> jax.Array:
    return jnp.asarray(RNG.standard_normal(shape).astype(np.float32))


def compare(run: Callable[..., jax.Array], scope: StepScope, *arrays: jax.Array, atol: float = 5e-6) -> None:
    """Values and gradients of `run` with and without the scope."""

    def loss(*arrays: jax.Array) -> tuple[jax.Array, jax.Array]:
        with rng_scope(jax.random.key(1)):
            out = run(*arrays)
        return jnp.sin(out).sum(), out

    def within(*arrays: jax.Array) -> tuple[jax.Array, jax.Array]:
        with mesh_scope(scope):
            return loss(*arrays)

    numbers = tuple(i for i, leaf in enumerate(arrays) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating))
    plain, divided = (jax.jit(jax.grad(one, numbers, has_aux=True))(*arrays) for one in (loss, within))
    for ours, theirs in zip(jax.tree.leaves(divided), jax.tree.leaves(plain)):
        np.testing.assert_allclose(ours, theirs, atol=atol, rtol=1e-5)


MASKS = {
    "none": lambda n, h, q, k: None,
    "keys": lambda n, h, q, k: jnp.asarray(RNG.random((n, 1, 1, k)) > 0.3),
    "pairs": lambda n, h, q, k: jnp.asarray(RNG.random((q, k)) > 0.5),
    "bias": lambda n, h, q, k: normal(1, h, q, k),
    "nothing seen": lambda n, h, q, k: jnp.zeros((n, 1, 1, k), bool),
}


@pytest.mark.parametrize(
    "mask, queries, keys, causal, dropout",
    [
        ("none", 8, 8, False, 0.0),
        ("none", 8, 8, True, 0.0),
        ("keys", 7, 7, True, 0.0),  # filled up to 8
        ("bias", 5, 12, False, 0.2),
        ("pairs", 7, 9, True, 0.1),
        ("nothing seen", 6, 6, False, 0.0),
    ],
)
def test_ring_attention_is_attention(
    mask: str, queries: int, keys: int, causal: bool, dropout: float
) -> None:
    q, k, v = normal(2, queries, 2, 4), normal(2, keys, 2, 4), normal(2, keys, 2, 4)
    visible = MASKS[mask](2, 2, queries, keys)
    scope = scope_of(nn.Linear(2, 2), sequence=2)

    def attend(q: jax.Array, k: jax.Array, v: jax.Array, *masks: jax.Array) -> jax.Array:
        return F.scaled_dot_product_attention(q, k, v, masks[0] if masks else None, dropout, causal)

    compare(attend, scope, q, k, v, *(() if visible is None else (visible,)))
    assert scope.attention is not None and scope.attention.calls


def dense_moe(layer: nn.MoE, x: jax.Array) -> jax.Array:
    """Every expert for every token, weighted."""
    weights, chosen = jax.lax.top_k(jax.nn.softmax(x @ layer.gate.weight), layer.top_k)
    weights, out = weights / weights.sum(-1, keepdims=True), jnp.zeros_like(x)
    for number in range(layer.num_experts):
        matrices = {name: value[number] for name, value in layer.experts.weights().items()}
        hidden = x @ matrices["up_proj"]
        if layer.experts.gated:
            hidden = F.silu(x @ matrices["gate_proj"]) * hidden
        else:
            hidden = F.gelu(hidden)
        out += jnp.where(chosen == number, weights, 0).sum(-1, keepdims=True) * (
            hidden @ matrices["down_proj"]
        )
    return out


@pytest.mark.parametrize("gated", [False, True])
def test_experts(gated: bool) -> None:
    framework.seed(0)
    layer = nn.MoE(8, 16, 4, activation="silu" if gated else "gelu", gated=gated)
    graph, params, buffers = nn.split(layer)
    x = normal(4, 5, 8)
    np.testing.assert_allclose(layer(x), dense_moe(layer, x), atol=1e-5)
    names = list(params)

    def run(x: jax.Array, *values: jax.Array) -> jax.Array:
        bound = graph.bind(dict(zip(names, values)), buffers)
        out = bound(x)
        return out + bound.auxiliary_loss

    compare(run, scope_of(layer, expert=2), x, *params.values())
    layer.dropped = jnp.ones(())
    layer.set_state_dict(
        {**layer.state_dict(), "dropped": layer.dropped}
    )  # as a checkpoint of training has it


def test_what_experts_cannot_take_is_counted_and_padding_takes_no_room() -> None:
    framework.seed(0)
    layer = nn.MoE(8, 16, 4, top_k=1, capacity_factor=0.5)
    x = jnp.tile(normal(1, 1, 8), (1, 8, 1))  # all tokens choose one expert, which has room for one
    y = layer(x)
    assert float(layer.dropped) == pytest.approx(7 / 8)
    assert np.abs(y[0, 0]).max() > 0 and np.abs(y[0, 1:]).max() == 0
    mask = jnp.arange(8)[None] >= 7
    assert np.abs(layer(x, mask)[0, 7]).max() > 0 and float(layer.dropped) == 0
    balanced = nn.MoE(4, 4, 4, top_k=1, balance_weight=1.0)
    balanced.gate.weight = 100 * jnp.eye(4)
    balanced(jnp.eye(4)[None])
    assert float(balanced.auxiliary_loss) == pytest.approx(1.0)
    assert float(layer.auxiliary_loss) > 0.01  # out of balance: above balance_weight
    settings: list[dict[str, Any]] = [{"top_k": 5}, {"capacity_factor": 0.0}, {"activation": "sine"}]
    for wrong in settings:
        with pytest.raises(ShapeError):
            nn.MoE(4, 4, 4, **wrong)


class Block(nn.Layer):
    def __init__(self, width: int = 8, dropout: float = 0.0) -> None:
        super().__init__()
        self.linear, self.norm, self.dropout = (
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.Dropout(dropout),
        )

    def forward(self, x: jax.Array, mask: jax.Array) -> jax.Array:
        return self.norm(x + self.dropout(F.gelu(self.linear(x))) * mask.astype(x.dtype))


@pytest.mark.parametrize(("blocks", "counts"), [(4, (1, 2, 8)), (5, (4,)), (3, (2,))])
def test_a_chain_of_blocks_is_a_pipeline(blocks: int, counts: tuple[int, ...]) -> None:
    """The devices need not divide the blocks."""
    framework.seed(0)
    chain = nn.PipelineStages([Block() for _ in range(blocks)])
    graph, params, buffers = nn.split(chain)
    names = list(params)

    def run(x: jax.Array, mask: jax.Array, *values: jax.Array) -> jax.Array:
        return graph.bind(dict(zip(names, values)), buffers)(x, mask)

    arrays = normal(8, 3, 8), jnp.asarray(RNG.random((8, 1, 1)) > 0.4), *params.values()
    for micro_batches in counts:
        compare(run, scope_of(chain, pipeline=2, micro_batches=micro_batches), *arrays)
    with pytest.raises(ShapeError, match="block 1 differs"):
        nn.PipelineStages([Block(8), Block(4)])


@pytest.mark.parametrize("blocks", [2, 3])
def test_one_forward_one_backward_weighs_its_micro_batches(blocks: int) -> None:
    """A mean over what counts is that of the whole batch, however unequal the micro batches are."""
    framework.seed(0)
    chain = nn.PipelineStages([Block() for _ in range(blocks)])
    graph, params, _ = nn.split(chain)
    batch = {"x": normal(8, 8), "valid": jnp.asarray([1, 0, 0, 0, 1, 1, 0, 1], jnp.float32)}
    scope = scope_of(chain, pipeline=2, micro_batches=4, schedule="1f1b")
    schedule, calls = scope.schedule, [1]
    assert schedule is not None

    def loss(params: Any, data: Any, number: Any, blocks: Any) -> Any:
        with mesh_scope(dataclasses.replace(scope, blocks=blocks)):
            *_, y = [graph.bind(params, {})(data["x"], jnp.ones(())) for _ in calls]
        count = data["valid"].sum()
        mean = ((y**2).sum(-1) * data["valid"]).sum() / jnp.maximum(count, 1)
        return mean, ({"mean": mean, "largest": jnp.int32(3)}, count)

    value, expected = jax.value_and_grad(lambda p: loss(p, batch, 0, None)[0])(params)
    run = jax.jit(lambda p, b: schedule(loss, p, b, jax.random.key(0)))
    gradients, logged = run(params, batch)
    np.testing.assert_allclose(logged["mean"], value, rtol=1e-6)
    assert float(logged["largest"]) == pytest.approx(3)
    for name, gradient in expected.items():
        np.testing.assert_allclose(gradients[name], gradient, atol=1e-6, err_msg=name)
    calls.append(1)
    with pytest.raises(ConfigError, match="1f1b for a model that runs its blocks 2 times"):
        jax.jit(lambda p, b: schedule(loss, p, b, jax.random.key(1)))(params, batch)


def scan_lengths(jaxpr: Any) -> list[int]:
    """How often the loops of a program run."""
    lengths = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            lengths.append(equation.params["length"])
        for value in equation.params.values():
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                lengths += scan_lengths(inner)
    return lengths


@pytest.mark.parametrize("micro_batches", [2, 6])
def test_stages_idle_as_long_as_the_schedule_says(micro_batches: int) -> None:
    """A device computes at each of the ticks, `micro_batches` of which are of use."""
    chain = nn.PipelineStages([Block() for _ in range(2)])
    graph, params, buffers = nn.split(chain)
    scope = scope_of(chain, pipeline=2, micro_batches=micro_batches)

    def run(x: jax.Array) -> jax.Array:
        with mesh_scope(scope), rng_scope(jax.random.key(0)):
            return graph.bind(params, buffers)(x, jnp.ones(()))

    (ticks,) = scan_lengths(jax.make_jaxpr(run)(normal(12, 8)).jaxpr)
    assert 1 - micro_batches / ticks == pytest.approx(1 / (micro_batches + 1))


def test_what_an_axis_cannot_divide_is_told() -> None:
    linear, moe = nn.Linear(8, 8), nn.MoE(8, 8, 3)
    chain = nn.PipelineStages([Block() for _ in range(3)])
    cases: list[tuple[nn.Layer, dict[str, Any], str]] = [
        (linear, {"expert": 2}, "no experts to divide"),
        (moe, {"expert": 2}, "2 devices, 3 experts in experts"),
        (linear, {"pipeline": 2}, "Linear with 0 chains"),
        (nn.Sequential(chain, nn.PipelineStages([Block(4)] * 1)), {"pipeline": 2}, "2 chains"),
        (nn.PipelineStages([Block()]), {"pipeline": 2}, "2 devices for the 1 blocks"),
        (
            nn.Sequential(nn.PipelineStages([Block() for _ in range(2)]), nn.BatchNorm1D(8)),
            {"pipeline": 2, "schedule": "1f1b"},
            "with buffers",
        ),
    ]
    for model, options, message in cases:
        with pytest.raises(ConfigError, match=message):
            scope_of(model, **options)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"pipeline": 2, "sequence": 2}, "not divided by tokens"),
        ({"pipeline": 2, "expert": 2}, "not divided by tokens"),
        ({"micro_batches": 4}, "are those of a pipeline"),
        ({"sequence": 0}, "has devices"),
    ]
    for options, message in refused:
        with pytest.raises(ConfigError, match=message):
            ParallelOptions(**options)
    with pytest.raises(ConfigError, match="sequence 3, 2 devices"):
        Partitioner(jax.devices()[:2], ParallelOptions(sequence=3))
    pipeline = Partitioner(jax.devices()[:2], ParallelOptions(pipeline=2))
    with pytest.raises(ConfigError, match="6 samples for 1 devices and 4 micro batches"):
        pipeline.check_batch_size(6)
    with pytest.raises(ConfigError, match="no tokens to divide"):
        scope_of(linear, sequence=2).check_use()


def losses_of(*cases: str) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "tests.unit.framework.distributed.axes_run", *cases]
    done = subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, timeout=1800
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["case"]: row for row in rows}


def check_losses(rows: dict[str, dict[str, Any]]) -> None:
    for name, row in rows.items():
        first, _, kind = name.rpartition(" ")
        alone = f"one {kind}" if kind in ("dropout", "experts") and first else "one"
        alone = "one experts" if "experts" in name else alone
        np.testing.assert_allclose(row["losses"], rows[alone]["losses"], rtol=5e-6, err_msg=name)


def test_a_trainer_has_the_losses_of_one_device() -> None:
    rows = losses_of("one", "sequence", "gpipe", "1f1b", "one experts", "experts")
    check_losses(rows)
    assert rows["gpipe"]["share"] < 0.75  # blocks and their moments are on one of four devices each


@pytest.mark.slow
def test_a_trainer_has_the_losses_of_one_device_on_all_meshes() -> None:
    check_losses(losses_of(*axes_run.CASES))
