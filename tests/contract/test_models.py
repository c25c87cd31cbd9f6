"""What every registered model and backbone keeps to, whatever it computes. The rows are in cases.py."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import available
from framework.config.registry import KINDS, find
from framework.core.dtypes import precision_scope
from framework.core.errors import WeightError
from framework.export import PLATFORMS, TensorSpec, lower_layer
from framework.inference import XLAEngine
from framework.io.named_weights import named_weights
from framework.nn.reparam import deploy_state
from tests.contract.cases import CASES, CLASSIFIERS, PACKAGES, PUBLISHED, VARIANTS, Case, Shape
from zoo.contracts import build_backbone

# Fast to compile: these tests compare values and measure nothing.
QUICK = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
CHECKED_KINDS = (
    "model",
    "backbone",
    "pipeline",
    "transform",
    "dataset",
    "optimizer",
    "schedule",
    "task",
    "metric",
    "loss",
)

# The other sizes of a classifier differ in numbers alone; `test_features` builds them all.
every = pytest.mark.parametrize(
    "case", [case for case in CASES if case not in CLASSIFIERS or case.small is not None], ids=str
)
compiled = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if case.slow else [], id=str(case))
        for case in CASES
        if case.small is not None
    ],
)


# -- the registry is the test list ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["model", "backbone"])
def test_every_registered_name_and_variant_has_a_row(kind: str) -> None:
    rows = [case for case in CASES if case.kind == kind]
    known = available(kind, PACKAGES)  # those of texts are in test_texts.py
    names = {name for name, module in known.items() if not module.startswith("zoo.text")}
    if kind == "backbone":  # a classifier without its head: checked with `test_features`
        names -= {case.name for case in CLASSIFIERS}
    assert {case.name for case in rows} == names
    for name in names:
        found = {case.variant for case in rows if case.name == name}
        assert VARIANTS.get(name, found) == found, f"{name}: a variant has no row in cases.py"
        assert all(type(case.full) is find(kind, name, PACKAGES).config for case in rows if case.name == name)
        assert any(case.small is not None and not case.slow for case in rows if case.name == name), (
            f"{name}: no row is compiled in the default run"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_component_is_without_a_contract(kind: str) -> None:
    assert kind in CHECKED_KINDS or not available(kind, PACKAGES), (
        f"a {kind} is registered: write its contract tests"
    )


# -- what is compiled, once for each row ---------------------------------------------------------------------


def images(shape: Shape) -> np.ndarray:
    return np.random.RandomState(0).standard_normal(shape).astype(np.float32)


@functools.cache
def weights(case: Case) -> dict[str, np.ndarray]:
    # Residual blocks start with gamma 0: at initialisation little would be computed and few gradients flow.
    made = named_weights(case.build().state_shapes())
    return {name: case.gain * value if value.ndim == 4 else value for name, value in made.items()}


def model(case: Case) -> nn.Layer:
    layer = case.build()
    layer.set_state_dict(weights(case))
    return layer.eval()


def deploy_form(case: Case) -> nn.Layer:
    if not case.two_forms:
        return model(case)
    layer = case.build(deploy=True).eval()
    layer.set_state_dict(deploy_state(model(case)))
    return layer


def run(layer: nn.Layer, x: np.ndarray) -> tuple[list[np.ndarray], dict[str, jax.Array]]:
    """(outputs, buffers after the call) of one compiled call."""
    graphdef, params, buffers = nn.split(layer)
    call = jax.jit(lambda p, b, x: nn.apply(graphdef, p, b, None, x))
    out, after = call.lower(params, buffers, x).compile(compiler_options=QUICK)(params, buffers, x)
    return [np.asarray(leaf) for leaf in jax.tree.leaves(out)], after


@functools.cache
def static(case: Case) -> tuple[list[np.ndarray], dict[str, jax.Array]]:
    return run(model(case), images(case.image))


@functools.cache
def deployed_outputs(case: Case) -> list[np.ndarray]:
    return run(deploy_form(case), images(case.image))[0] if case.two_forms else static(case)[0]


def check_close(ours: Any, want: list[np.ndarray], tolerance: float = 1e-5) -> None:
    for a, b in zip(jax.tree.leaves(ours), want, strict=True):
        assert b.std() > 1e-3, "the outputs hardly depend on the image: choose another gain"
        np.testing.assert_allclose(
            np.asarray(a), b, rtol=0, atol=tolerance * max(1.0, float(np.abs(b).max()))
        )


# -- shapes, sizes, names ------------------------------------------------------------------------------------


@every
@pytest.mark.parametrize("mode", ["eval", "train", "deploy"])
def test_shapes_and_dtypes_at_the_published_size(case: Case, mode: str) -> None:
    if mode == "deploy" and not case.two_forms:
        pytest.skip("it has one form")
    layer = case.build(deploy=mode == "deploy", full=True).train(mode == "train")
    graphdef, params, buffers = nn.abstract(layer)
    key = jax.random.key(0)
    for n, h, w, _ in (case.image, case.other):
        x = jax.ShapeDtypeStruct((n, h, w, 3), np.float32)
        out, after = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, key, x), params, buffers, x)
        leaves = jax.tree.leaves(out)
        assert [leaf.shape for leaf in leaves] == case.shapes(layer, n, h, w)
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}
        assert {name: b.shape for name, b in after.items()} == {name: b.shape for name, b in buffers.items()}


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if case.kind == "model" and (case.variant or case.name) in PUBLISHED],
    ids=str,
)
def test_published_size(case: Case) -> None:
    deploy, values = PUBLISHED[case.variant or case.name]
    shapes = case.build(deploy=deploy, full=True).state_shapes()
    assert sum(int(np.prod(shape)) for shape in shapes.values()) == values


@pytest.mark.parametrize("case", CLASSIFIERS, ids=str)
def test_features(case: Case) -> None:
    """Without its classifier a backbone gives the maps that it promises, finest first."""
    backbone = build_backbone(case.full).eval()
    graphdef, params, buffers = nn.abstract(backbone)
    n, h, w, _ = case.image
    x = jax.ShapeDtypeStruct((n, h, w, 3), np.float32)
    maps, _ = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x), params, buffers, x)
    assert [m.shape for m in maps] == [
        (n, -(-h // f.stride), -(-w // f.stride), f.channels) for f in backbone.features
    ]
    assert [f.stride for f in backbone.features] == sorted(f.stride for f in backbone.features)
    assert find("backbone", case.name, PACKAGES).config is type(case.full)


@every
def test_one_missing_entry_is_an_error(case: Case) -> None:
    layer = case.build(full=True)
    shapes = layer.state_shapes()
    state = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    gone = next(reversed(state))
    del state[gone]
    with pytest.raises(WeightError, match=rf"(?m)1 missing: {re.escape(gone)}$"):
        layer.set_state_dict(state)
    assert layer.set_state_dict(state, strict=False) == ([gone], [])


@compiled
def test_state_survives_a_file(case: Case, tmp_path: Path) -> None:
    layer = model(case)
    framework.save(layer.state_dict(), tmp_path / "model.safetensors")
    other = case.build()
    other.set_state_dict(framework.load(tmp_path / "model.safetensors"))
    ours, theirs = layer.state_dict(), other.state_dict()
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        assert value.dtype == theirs[name].dtype and np.array_equal(value, theirs[name]), name


# -- values --------------------------------------------------------------------------------------------------


@compiled
def test_eager_equals_static(case: Case) -> None:
    eager = model(case)(images(case.image))
    check_close(eager, static(case)[0])


@compiled
def test_deploy_form_equals_trainable_form(case: Case) -> None:
    if not case.two_forms:
        pytest.skip("it has one form")
    deployed = deploy_form(case)
    assert not any(name.endswith("_variance") for name in deployed.state_shapes()), "a normalisation is left"
    check_close(deployed_outputs(case), static(case)[0])


@compiled
def test_bfloat16_dots_stay_within_the_bound(case: Case) -> None:
    with precision_scope("bfloat16"):
        rough, _ = run(model(case), images(case.image))
    for a, b in zip(rough, static(case)[0], strict=True):
        assert a.dtype == np.float32
        assert 0 < np.sqrt(np.mean((a - b) ** 2)) < case.bfloat16 * b.std()


# -- training ------------------------------------------------------------------------------------------------


@compiled
def test_gradients_and_buffers(case: Case) -> None:
    """In training every parameter is reached and every running statistic moves; in eval no buffer changes."""
    layer, x = model(case), images(case.image)
    eval_graphdef = nn.split(layer)[0]
    graphdef, params, buffers = nn.split(layer.train())
    assert graphdef != eval_graphdef, "`training` must give two programs"
    trained = {name for name, p in layer.named_parameters() if p.trainable}

    def loss(train: dict, fixed: dict, buffers: dict, x: jax.Array) -> Any:
        out, after = nn.apply(graphdef, {**train, **fixed}, buffers, jax.random.key(0), x)
        # Weights that differ from value to value: normalisations make plain sums constant.
        total = sum(
            (leaf * jnp.sin(jnp.arange(leaf.size, dtype=jnp.float32)).reshape(leaf.shape)).sum()
            for leaf in jax.tree.leaves(out)
        )
        return total, after

    args = (
        {name: params[name] for name in params if name in trained},
        {name: params[name] for name in params if name not in trained},
        buffers,
        x,
    )
    step = jax.jit(jax.value_and_grad(loss, has_aux=True)).lower(*args).compile(compiler_options=QUICK)
    (value, after), grads = step(*args)
    # A gradient that rounding alone gives can be exactly 0 for one image: a normalisation behind it takes it out.
    others = step(*args[:-1], x[:, ::-1])[1]

    assert np.isfinite(value) and set(grads) == trained
    sizes = {name: float(max(np.abs(grad).max(), np.abs(others[name]).max())) for name, grad in grads.items()}
    assert all(np.isfinite(size) for size in sizes.values())
    flat = {name for name in sizes if case.flat and re.fullmatch(case.flat[0], name)}
    noise = 1e-5 * max(sizes.values())
    assert not [name for name in sizes if name not in flat and sizes[name] == 0], "no gradient arrives here"
    assert not [name for name in flat if sizes[name] > noise], f"not flat any more: {case.flat}"
    assert bool(flat) == (case.flat is not None)

    statistics = {name for name in buffers if name.endswith(("._mean", "._variance"))}
    assert bool(statistics) == any(isinstance(m, nn.BatchNorm) for m in layer.sublayers())
    assert all(np.isfinite(after[name]).all() for name in after)
    still = {name for name in statistics if np.array_equal(after[name], buffers[name])}
    assert still == {name for name in statistics if case.flat and re.fullmatch(case.flat[0], name)}
    in_eval = static(case)[1]
    assert all(np.array_equal(in_eval[name], value) for name, value in nn.split(model(case))[2].items())


# -- export --------------------------------------------------------------------------------------------------


def lowered(case: Case, platforms: tuple[str, ...]) -> tuple[Any, dict[str, np.ndarray]]:
    """The deploy form, which is what the configs export."""
    return lower_layer(
        deploy_form(case),
        {"image": TensorSpec(case.symbolic)},
        after=lambda out: {f"{i:02}": leaf for i, leaf in enumerate(jax.tree.leaves(out))},
        platforms=platforms,
        constraints=case.constraints,
    )


@compiled
def test_one_exported_program_gives_the_values_at_two_sizes(case: Case) -> None:
    program, arrays = lowered(case, ("cpu",))
    engine = XLAEngine(program, arrays, options=QUICK)
    for shape in (case.image, case.other):
        x = images(shape)
        want = deployed_outputs(case) if shape == case.image else run(deploy_form(case), x)[0]
        out = engine({"image": x})
        check_close([out[name] for name in sorted(out)], want)
    assert engine.compile_count == 2


@compiled
def test_one_artifact_holds_every_platform(case: Case) -> None:
    program, _ = lowered(case, PLATFORMS)
    assert set(program.platforms) == set(PLATFORMS) == {"cpu", "cuda", "rocm", "tpu"}
