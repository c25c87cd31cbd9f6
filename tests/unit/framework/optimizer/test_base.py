"""What all optimizers share: which parameters are trained and how, the pure update, the state, Paddle's surface."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn, optimizer
from framework.config import available
from framework.core.errors import ConfigError, WeightError
from framework.io.checkpoint import flatten
from framework.optimizer import SGD, Adam, AdamW, Momentum, WeightDecay, lr

NAMES = list(available("optimizer", ("framework",)))


class Block(nn.Layer):
    def __init__(self) -> None:
        super().__init__()
        self.weight = self.create_parameter((2, 2), nn.initializer.Constant(1.0))


class Net(nn.Layer):
    """A stem, three numbered blocks, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Linear(2, 2)
        self.blocks = nn.LayerList([Block() for _ in range(3)])
        self.norm = nn.LayerNorm(2)


class Vector(nn.Layer):
    def __init__(self, dtype: str = "float32", **attr: Any) -> None:
        super().__init__()
        made = nn.ParamAttr(initializer=nn.initializer.Constant(1.0), **attr)
        self.v = self.create_parameter((2,), made, dtype)
        self.w = self.create_parameter((1, 2), nn.initializer.Constant(2.0), dtype)


def grads_like(layer: nn.Layer, value: float = 1.0) -> dict[str, jax.Array]:
    return {n: jnp.full(p.shape, value, p.dtype) for n, p in layer.named_parameters() if p.trainable}


# -- which parameters, and how -----------------------------------------------------------------------------------------


def test_rates_of_patterns_multiply() -> None:
    how = SGD(lr_multipliers={"blocks": 0.5, r"^blocks\.2": 0.1, "norm": 2}).param_groups(Net())
    rates = {name: group.rate for name, group in how.items()}
    assert rates["blocks.0.weight"] == 0.5 and rates["blocks.2.weight"] == pytest.approx(0.05)
    assert rates["stem.weight"] == 1.0 and rates["norm.bias"] == 2.0


def test_param_attr() -> None:
    layer = Vector(learning_rate=0.5, regularizer=optimizer.L1Decay(0.3), need_clip=False)
    how = SGD(weight_decay=0.1, lr_multipliers={"v": 0.5}).param_groups(layer)
    assert how["v"] == optimizer.ParamGroup(0.25, WeightDecay(l1=0.3), 0.0, False)
    assert how["w"] == optimizer.ParamGroup(1.0, WeightDecay(l2=0.1), 0.0, True)


def test_a_decoupled_decay_stays_beside_a_regularizer() -> None:
    how = AdamW(weight_decay=0.1).param_groups(Vector(regularizer=optimizer.L2Decay(0.3)))
    assert how["v"] == optimizer.ParamGroup(1.0, WeightDecay(l2=0.3), 0.1, True)
    assert how["w"] == optimizer.ParamGroup(1.0, WeightDecay(), 0.1, True)


def test_what_does_not_decay() -> None:
    how = SGD(weight_decay=0.1, no_decay=("^stem",), decay_norm_and_bias=False).param_groups(Net())
    assert {n for n, t in how.items() if t.coupled.l2} == {f"blocks.{i}.weight" for i in range(3)}
    how = AdamW(weight_decay=0.1, decay_norm_and_bias=False).param_groups(Net())
    assert {n for n, t in how.items() if not t.decoupled} == {"stem.bias", "norm.weight", "norm.bias"}


def test_what_is_not_trained() -> None:
    net = Net()
    net.freeze("norm")
    for pattern in ("^b", ["^b"]):  # a string is one pattern, not its letters
        assert SGD(frozen=pattern) == SGD(frozen=("^b",)) and SGD(no_decay=pattern).no_decay == ("^b",)
    how = SGD(frozen=("stem",), lr_multipliers={r"blocks\.0": 0}).param_groups(net)
    assert list(how) == ["blocks.1.weight", "blocks.2.weight"]


def test_layer_decay() -> None:
    how = SGD(layer_decay=0.5).param_groups(Net())
    rates = {name: group.rate for name, group in how.items()}
    assert rates == {
        "stem.weight": 0.0625,
        "stem.bias": 0.0625,
        "blocks.0.weight": 0.125,
        "blocks.1.weight": 0.25,
        "blocks.2.weight": 0.5,
        "norm.weight": 1.0,
        "norm.bias": 1.0,
    }


def test_layer_decay_counts_blocks_of_stages() -> None:
    net = nn.Layer()
    net.add_sublayer("layers", nn.LayerList([Net(), Net()]))
    rates = {n: t.rate for n, t in SGD(layer_decay=0.5).param_groups(net).items()}
    # in the order of registration: layers.0 (its stem), its three blocks, layers.1, its three blocks
    assert [rates[f"layers.0.{n}"] for n in ("stem.weight", "blocks.0.weight")] == [0.5**8, 0.5**7]
    assert [rates[f"layers.1.{n}"] for n in ("stem.weight", "blocks.2.weight")] == [0.5**4, 0.5]


def test_errors_of_patterns() -> None:
    with pytest.raises(ConfigError, match=r"no parameter has a name with this pattern[\s\S]*'bakbone'"):
        SGD(frozen=("bakbone",)).param_groups(Net())
    with pytest.raises(ConfigError, match="no parameter has a name with this pattern"):
        SGD(lr_multipliers={"bakbone": 0.1}).param_groups(Net())
    with pytest.raises(ConfigError, match="nothing is left to train"):
        SGD(frozen=("",)).param_groups(Net())
    with pytest.raises(ConfigError, match="layer_decay finds no numbered blocks"):
        SGD(layer_decay=0.5).param_groups(Vector())
    with pytest.raises(ConfigError, match="the weight decay must be a number or a regularizer"):
        SGD().param_groups(Vector(regularizer="l2"))
    with pytest.raises(NotImplementedError, match="Optimizer defines no rule"):
        optimizer.Optimizer(0.1).init({"v": jnp.ones(())}, {"v": SGD().param_groups(Vector())["v"]})


# -- the pure core -----------------------------------------------------------------------------------------------------


def test_update_and_info() -> None:
    layer, opt = Vector(need_clip=False), SGD(weight_decay=0.5, grad_clip=optimizer.ClipGradByValue(1.0))
    how, params = opt.param_groups(layer), nn.split(layer)[1]
    state = opt.init(params, how)
    grads = {"v": jnp.array([3.0, 0.0]), "w": jnp.array([[0.0, 4.0]])}
    params, state, info = opt.update(grads, state, params, 0.1, how)
    # v is not clipped: 1 - 0.1 * (3 + 0.5), 1 - 0.1 * 0.5; w is, before the decay: 2 - 0.1, 2 - 0.1 * (1 + 1)
    np.testing.assert_allclose(params["v"], [0.65, 0.95], rtol=1e-6)
    np.testing.assert_allclose(params["w"], [[1.9, 1.8]], rtol=1e-6)
    assert float(info["grad_norm"]) == 5.0 and bool(info["applied"]) and int(state["step"]) == 1


def test_names_are_checked() -> None:
    layer, opt = Vector(), SGD()
    how, params = opt.param_groups(layer), nn.split(layer)[1]
    state = opt.init(params, how)
    with pytest.raises(
        WeightError, match=r"names of grads are not[\s\S]*missing \['w'\], unexpected \['x'\]"
    ):
        opt.update({"v": params["v"], "x": params["v"]}, state, params, 0.1, how)
    with pytest.raises(WeightError, match="names of params are not"):
        opt.update(params, state, {"v": params["v"]}, 0.1, how)
    with pytest.raises(WeightError, match="names of params are not"):
        opt.init({}, how)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_state_keeps_its_structure(name: str, accumulate: int) -> None:
    layer, opt = (
        Vector("bfloat16"),
        getattr(optimizer, name)(0.1, multi_precision=True, accumulate=accumulate),
    )
    how, params = opt.param_groups(layer), nn.split(layer)[1]
    state = opt.init(params, how)
    grads = grads_like(layer)
    after = jax.eval_shape(lambda *args: opt.update(*args, how), grads, state, params, np.float32(0.1))
    signature = lambda tree: jax.tree.map(lambda x: (x.shape, jnp.dtype(x.dtype)), tree)  # noqa: E731
    assert signature(after[0]) == signature(params) and signature(after[1]) == signature(state)
    assert all(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(state))
    assert len(flatten(state)) == len(jax.tree.leaves(state))
    if accumulate > 1:  # compiled and run in the next test
        return
    donated = jax.jit(lambda *args: opt.update(*args, how), donate_argnums=(1, 2))
    for _ in range(2):
        params, state, info = donated(grads, state, params, np.float32(0.1))
    assert bool(info["applied"]) and int(state["step"]) == 2


def test_checkpoints_have_the_names_they_always_had() -> None:
    """Those of optax where the core used its transformations: runs that were begun with them go on."""
    names = {
        "Adadelta": {"e_g/v", "e_x/v"},
        "Adagrad": {"moment/v"},
        "Adam": {"count", "moment1/v", "moment2/v"},
        "Adamax": {"count", "moment/v", "inf_norm/v"},
        "ASGD": {"count", "sum/v", "past/v"},
        "Lion": {"count", "mu/v"},
        "Momentum": {"trace/v"},
        "NAdam": {"count", "product", "moment1/v", "moment2/v"},
        "RMSProp": {"scale/nu/v", "momentum/v"},
        "Rprop": {"before/v", "scale/v"},
        "SGD": set(),
    }
    names |= {"AdamW": names["Adam"], "Lamb": names["Adam"], "RAdam": names["Adam"]}
    layer = Vector()
    for name in NAMES:
        state = getattr(optimizer, name)(0.1, frozen="w").state_dict(layer)
        assert set(state) == {"step"} | {f"rule/{entry}" for entry in names[name]}, name
    state = optimizer.RMSProp(0.1, centered=True, frozen="w").state_dict(layer)
    assert set(state) == {"step", "rule/scale/nu/v", "rule/scale/mu/v", "rule/momentum/v"}


def test_accumulate_is_the_mean_gradient() -> None:
    grads = [0.1, 0.5, 0.9, 0.3, 0.2, 0.1]
    three, one = Vector(), Vector()
    collecting, plain = Adam(0.1, accumulate=3), Adam(0.1)
    norms, applied = [], []
    for value in grads:
        info = collecting.step(three, grads_like(three, value))
        norms.append(float(info["grad_norm"]) / 2)  # of four equal elements
        applied.append(bool(info["applied"]))
    for value in (0.5, 0.2):
        plain.step(one, grads_like(one, value))
    np.testing.assert_allclose(three.v, one.v, rtol=1e-6)
    np.testing.assert_allclose(norms, [0.1, 0.3, 0.5, 0.3, 0.25, 0.2], rtol=1e-5)
    assert applied == [False, False, True] * 2
    assert three.v.tolist() != [1.0, 1.0]


def test_master_weights() -> None:
    """1 - 0.001 is 1 in bfloat16: ten small steps are lost without a master copy."""
    lost, kept = Vector("bfloat16"), Vector("bfloat16")
    without, opt = SGD(0.001), SGD(0.001, multi_precision=True)
    for _ in range(10):
        without.step(lost, grads_like(lost))
        opt.step(kept, grads_like(kept))
    assert lost.v.dtype == kept.v.dtype == jnp.bfloat16
    assert float(lost.v[0]) == 1.0 and float(kept.v[0]) == pytest.approx(0.99, abs=0.003)
    np.testing.assert_allclose(opt.state_dict(kept)["master/v"], [0.99, 0.99], rtol=1e-6)
    assert not any(name.startswith("master") for name in without.state_dict(lost))


def test_runs_are_reproducible() -> None:
    def run() -> bytes:
        layer, opt = Net(), Adam(0.01, grad_clip=optimizer.GradClip(global_norm=1.0))
        rng = np.random.default_rng(0)
        for _ in range(3):
            opt.step(
                layer,
                {n: jnp.asarray(rng.standard_normal(p.shape), p.dtype) for n, p in layer.named_parameters()},
            )
        return b"".join(np.asarray(layer.state_dict()[n]).tobytes() for n in ("stem.bias", "blocks.1.weight"))

    assert run() == run()


# -- Paddle's surface --------------------------------------------------------------------------------------------------


def test_step_with_value_and_grad() -> None:
    layer = nn.Linear(2, 1)
    layer.weight = jnp.array([[1.0], [2.0]])
    loss, grads = nn.value_and_grad(layer, lambda model, x: model(x).sum())(jnp.array([[3.0, 4.0]]))
    opt = SGD(0.1)
    info = opt.step(layer, grads)
    np.testing.assert_allclose(layer.weight, [[0.7], [1.6]], rtol=1e-6)
    assert float(loss) == 11.0 and float(info["grad_norm"]) == pytest.approx(26**0.5)


def test_get_lr_follows_each_layer() -> None:
    opt, a, b = SGD(lr.StepDecay(1.0, 2, 0.5)), Vector(), Vector()
    assert opt.get_lr() == 1.0 and SGD(0.25).get_lr() == 0.25
    for expected in (1.0, 1.0, 0.5):
        assert opt.get_lr(a) == expected
        opt.step(a, grads_like(a))
    assert opt.get_lr() == 0.5 and opt.get_lr(b) == 1.0
    np.testing.assert_allclose(a.v, [1 - 2.5] * 2)
    opt.step(b, grads_like(b))
    with pytest.raises(ConfigError, match="get_lr needs a layer"):
        opt.get_lr()


def test_a_schedule_with_open_ends() -> None:
    opt, layer = SGD(lr.CosineAnnealingDecay(1.0)), Vector()
    with pytest.raises(ConfigError, match="the schedule has open ends"):
        opt.step(layer, grads_like(layer))
    closed = opt.resolve(4)
    closed.step(layer, grads_like(layer))
    assert closed.get_lr() == pytest.approx(0.5 + 0.5**1.5)  # a quarter of half a cosine
    assert closed.learning_rate == lr.CosineAnnealingDecay(1.0, 4)


def test_one_compilation() -> None:
    traces = []

    class Counting(SGD):
        def rule(self, group: optimizer.ParamGroup) -> Any:
            traces.append(1)
            return super().rule(group)

    opt, layer = Counting(lr.StepDecay(1.0, 1, 0.5)), Vector()
    opt.step(layer, grads_like(layer))
    first = len(traces)
    for _ in range(3):
        opt.step(layer, grads_like(layer))
    assert len(traces) == first


def test_state_dict_continues() -> None:
    one, two = Vector(), Vector()
    opt, other = Adam(0.1), Adam(0.1)
    opt.step(one, grads_like(one))
    state = {name: np.asarray(value) for name, value in opt.state_dict(one).items()}
    assert set(state) == {
        "step", "rule/count", "rule/moment1/v", "rule/moment1/w", "rule/moment2/v", "rule/moment2/w"
    }  # fmt: skip
    two.set_state_dict(one.state_dict())
    other.set_state_dict(two, state)
    for opt_, layer in ((opt, one), (other, two)):
        opt_.step(layer, grads_like(layer, 0.3))
    assert one.v.tolist() == two.v.tolist()
    with pytest.raises(WeightError, match="rule/moment1/w: missing"):
        other.set_state_dict(two, {n: v for n, v in state.items() if n != "rule/moment1/w"})


def test_freezing_later_keeps_the_state_of_the_rest() -> None:
    layer, opt = Vector(), Momentum(0.1, 0.5)
    opt.step(layer, grads_like(layer))
    layer.freeze("w")
    opt.step(layer, grads_like(layer))
    np.testing.assert_allclose(layer.v, [1 - 0.1 - 0.15] * 2, rtol=1e-6)  # the velocity went on: 1, then 1.5
    assert layer.w.tolist() == [[pytest.approx(1.9)] * 2]
    assert set(opt.state_dict(layer)) == {"step", "rule/trace/v"} and opt.state_dict(layer)["step"] == 2


def test_gradients_of_frozen_parameters_are_ignored() -> None:
    layer, opt = Vector(), SGD(0.1, frozen=("v",))
    info = opt.step(layer, grads_like(layer, 3.0))
    assert layer.v.tolist() == [1.0, 1.0] and float(layer.w[0, 0]) == pytest.approx(1.7)
    assert float(info["grad_norm"]) == pytest.approx(3 * 2**0.5)


def test_errors_of_step() -> None:
    layer, opt = Net(), SGD(0.1)
    with pytest.raises(
        WeightError, match=r"parameters that the layer has not[\s\S]*did you mean 'stem.weight'\?"
    ):
        opt.step(layer, {**grads_like(layer), "stem.weigth": jnp.ones((2, 2))})
    with pytest.raises(WeightError, match=r"use what nn.value_and_grad"):
        opt.step(layer, {**grads_like(layer), "zzzz": jnp.ones((2, 2))})
    with pytest.raises(WeightError, match=r"missing \['stem.bias'\]"):
        opt.step(layer, {n: g for n, g in grads_like(layer).items() if n != "stem.bias"})


def test_layers_are_not_kept_alive() -> None:
    layer, opt = Vector(), Momentum(0.1)
    opt.step(layer, grads_like(layer))
    gone = weakref.ref(layer)
    del layer
    gc.collect()
    assert gone() is None and opt.get_lr() == 0.1
