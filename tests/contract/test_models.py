"""What every registered model and backbone of images keeps to, whatever it computes. The cases are in cases.py.

One test holds all that is said of one model, so that each of its programs is compiled once; a message names the part
that fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from framework.core.compilation import quick_compile_options
from framework.core.dtypes import precision_scope
from framework.core.errors import WeightError
from framework.export import PLATFORMS, TensorSpec, lower_layer
from framework.inference import XLAEngine
from framework.interop.named_weights import named_weights
from framework.nn.functional.lowering import platform_scope
from framework.nn.reparam import deploy_state
from tests.contract.cases import (
    CASES,
    OF_TEXTS,
    WITH_DETECTORS,
    WITHOUT_FEATURES,
    Case,
    forms,
    has_features,
    is_classifier,
    maps,
    of_words,
    within_models,
)
from tests.contract.compiling import (
    check_close,
    check_state,
    compile_call,
    images,
    normalised_biases,
    part,
    run,
)
from zoo.contracts import build_backbone

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
    "callback",
)
GAINS = (1.0, 1.5, 1.9, 2.4, 3.0)

compiled = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=[pytest.mark.slow] if case.slow else [], id=str(case))
        for case in CASES
        if case.small is not None
    ],
)


# -- the registry is the test list -----------------------------------------------------------------------------------


def test_one_variant_of_every_model_and_form_is_compiled_by_default() -> None:
    """A backbone alone, or within a model of another domain."""
    known = {name for name, module in available("model", WITH_DETECTORS).items() if _is_of_images(module)}
    known = {name for name in known if not of_words(name)}
    backbones = {
        name
        for name, module in available("backbone", WITH_DETECTORS).items()
        if not module.startswith("zoo.text")
    }
    assert {name for name in backbones if not has_features(name)} == WITHOUT_FEATURES
    default = [case for case in CASES if case.small is not None and not case.slow]
    alone = {(type(case.full), getattr(case.full, "form", None)) for case in default}
    assert known - backbones == {case.name for case in default if case.name not in backbones}
    for name in backbones - WITHOUT_FEATURES:
        entry = find("backbone", name, WITH_DETECTORS)
        for form in forms(entry) or (None,):
            assert (entry.config, form) in alone | within_models(), (name, form)


def test_what_other_tests_hold_is_there() -> None:
    """A model that reads words says which tests hold what it keeps to."""
    root = Path(__file__).resolve().parents[2]
    for name in filter(of_words, available("model", WITH_DETECTORS)):
        layer = find("model", name, WITH_DETECTORS).layer
        for path in layer.contract.tested_in:  # type: ignore[union-attr]
            files = [root / path] if path.endswith(".py") else sorted((root / path).glob("test_*.py"))
            assert any(name in file.read_text(encoding="utf-8") for file in files), (name, path)


def _is_of_images(module: str) -> bool:
    """Detectors are in test_detectors.py, models of texts in test_texts.py and test_decoders.py."""
    return not module.startswith(("detection.", *OF_TEXTS))


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_component_is_without_a_contract(kind: str) -> None:
    assert kind in CHECKED_KINDS or not available(kind, WITH_DETECTORS), (
        f"a {kind} is registered: write its contract tests"
    )


# -- every size: nothing is computed ---------------------------------------------------------------------------------


def check_shapes(case: Case, mode: str, sizes: tuple[tuple[int, ...], ...]) -> None:
    layer = case.build(deploy=mode == "deploy", full=True).train(mode == "train")
    graphdef, params, buffers = nn.abstract(layer)
    key = jax.random.key(0)
    for n, h, w, _ in sizes:
        x = jax.ShapeDtypeStruct((n, h, w, 3), np.float32)
        out, after = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, key, x), params, buffers, x)
        leaves, wanted = jax.tree.leaves(out), case.shapes(layer, n, h, w)
        assert [leaf.shape for leaf in leaves] == (wanted or [(n, *leaf.shape[1:]) for leaf in leaves])
        assert {leaf.dtype for leaf in leaves} == {np.dtype(np.float32)}
        assert {name: b.shape for name, b in after.items()} == {name: b.shape for name, b in buffers.items()}


def _ends(cases: Sequence[Case]) -> Iterator[Any]:
    """Those that are compiled, and the last of each family; of the others the numbers of parameters are tested.

    `test_model` has the shapes of those that it compiles, but of classifiers without their classifier.
    """
    last = {(case.kind, case.name, getattr(case.full, "form", None)): case for case in cases}
    for case in cases:
        if case.small is not None and not case.slow and not is_classifier(case):
            continue
        default = case.small is not None or case in last.values()
        yield pytest.param(case, marks=[] if default else [pytest.mark.slow], id=str(case))


@pytest.mark.parametrize("case", _ends(CASES))
def test_shapes_at_the_published_size(case: Case) -> None:
    """In evaluation; a backbone gives the maps that it promises, finest first, without its classifier."""
    if not is_classifier(case):
        return check_shapes(case, "eval", (case.image,))
    backbone = build_backbone(case.full).eval()
    graphdef, params, buffers = nn.abstract(backbone)
    n, h, w, _ = case.image
    x = jax.ShapeDtypeStruct((n, h, w, 3), np.float32)
    found, _ = jax.eval_shape(lambda p, b, x: nn.apply(graphdef, p, b, None, x), params, buffers, x)
    assert [m.shape for m in found] == maps(backbone, n, h, w)
    strides = [f.stride if isinstance(f.stride, tuple) else (f.stride, f.stride) for f in backbone.features]
    assert strides == sorted(strides) or strides[-1] == (0, 0)
    assert find("backbone", case.name, WITH_DETECTORS).config is type(case.full)


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in CASES if case.small is None], ids=str)
def test_the_other_sizes_have_the_shapes_in_every_mode(case: Case) -> None:
    check_modes(case)
    check_missing(case)


def has_dots(model: nn.Layer) -> bool:
    """Whether a layer is a product of matrices, which bfloat16 changes on a CPU; larger kernels stay."""
    layers = model.sublayers()
    pointwise = any(isinstance(layer, nn.Conv2D) and layer.weight.shape[2:] == (1, 1) for layer in layers)
    return pointwise or any(isinstance(layer, nn.Linear) for layer in layers)


def check_modes(case: Case) -> None:
    for mode in ("eval", "train", "deploy")[: 3 if case.two_forms else 2]:
        with part(f"shapes and dtypes at the published size, {mode}"):
            check_shapes(case, mode, (case.image, case.other))


def check_missing(case: Case) -> None:
    layer = case.build(full=True)
    shapes = layer.state_shapes()
    state = {name: np.broadcast_to(np.float32(0), shape) for name, shape in shapes.items()}
    gone = next(reversed(state))
    del state[gone]
    with part("one missing entry is an error"):
        with pytest.raises(WeightError, match=rf"(?m)1 missing: {re.escape(gone)}$"):
            layer.set_state_dict(state)
        assert layer.set_state_dict(state, strict=False) == ([gone], [])


# -- the smallest size -----------------------------------------------------------------------------------------------


def set_weights(model: nn.Layer, x: np.ndarray) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Weights with which the outputs depend on the image; gives these outputs, and the buffers after the call."""
    # Residual blocks start with gamma 0: at initialisation little would be computed and few gradients flow.
    made, call = named_weights(model.state_shapes()), compile_call(model, x)
    with part("the outputs depend on the image, with some factor of the kernels"):
        for gain in GAINS:
            model.set_state_dict({k: gain * v if v.ndim == 4 else v for k, v in made.items()})
            _, params, buffers = nn.split(model)
            out, after = call(params, buffers, x)
            static = [np.asarray(leaf) for leaf in jax.tree.leaves(out)]
            if min(leaf.std() for leaf in static) > 1e-3:
                break
        check_close(static, static)
    return static, after


def deploy_form(case: Case, model: nn.Layer) -> nn.Layer:
    """With the weights of the model; the model itself where it has one form only."""
    if not case.two_forms:
        return model
    deployed = case.build(deploy=True).eval()
    deployed.set_state_dict(deploy_state(model))
    kept = [name for name in deployed.state_shapes() if name.endswith("_variance")]
    assert not kept, "a normalisation is left"
    return deployed


def export(case: Case, layer: nn.Layer) -> XLAEngine:
    """One program for every platform and every size that the case names."""
    program, arrays = lower_layer(
        layer,
        {"image": TensorSpec(case.symbolic)},
        after=lambda out: {f"{i:02}": leaf for i, leaf in enumerate(jax.tree.leaves(out))},
        platforms=PLATFORMS,
        constraints=case.constraints,
    )
    assert set(program.platforms) == set(PLATFORMS) == {"cpu", "cuda", "rocm", "tpu"}
    return XLAEngine(program, arrays, options=quick_compile_options())


def check_engine(engine: XLAEngine, x: np.ndarray, want: list[np.ndarray]) -> None:
    out = engine({"image": x})
    check_close([out[name] for name in sorted(out)], want)


@compiled
def test_model(case: Case, tmp_path: Path) -> None:
    """Three programs: the model as it is, its deploy form exported, and a training step."""
    check_modes(case)
    check_missing(case)
    model, x = case.build().eval(), images(case.image)
    static, after = set_weights(model, x)
    graphdef, params, buffers = nn.split(model)
    with part("in evaluation no buffer changes"):
        assert all(np.array_equal(after[name], value) for name, value in buffers.items())
    with part("dots are those of bfloat16 where they are asked for, and the outputs stay float32"):
        with precision_scope("bfloat16"):
            jaxpr, shapes = jax.make_jaxpr(
                lambda p, b, x: nn.apply(graphdef, p, b, None, x)[0], return_shape=True
            )(params, buffers, x)
        assert {leaf.dtype for leaf in jax.tree.leaves(shapes)} == {np.dtype(np.float32)}
        assert "bf16" in str(jaxpr) or not has_dots(model)
    with part("the state survives a file"):
        framework.save(model.state_dict(), tmp_path / "model.safetensors")
        other = case.build()
        other.set_state_dict(framework.load(tmp_path / "model.safetensors"))
        check_state(model, other)
    with part("the exported deploy form equals the trainable form"):
        check_engine(export(case, deploy_form(case, model)), x, static)
    check_gradients(case, model.train(), x, model_in_eval=params.keys() | buffers.keys())


@pytest.mark.slow
@compiled
def test_other_ways_to_run_a_model(case: Case) -> None:
    model, x, another = case.build().eval(), images(case.image), images(case.other)
    static, _ = set_weights(model, x)
    with part("eager equals static"):
        check_close(model(x), static)
    with part("bfloat16 dots stay within the bound"):
        with precision_scope("bfloat16"):
            rough, _ = run(model, x)
        for a, b in zip(rough, static, strict=True):
            error = np.sqrt(np.mean((a - b) ** 2))
            assert error < case.bfloat16 * b.std()
            assert error > 0 or not has_dots(model)
    deployed = deploy_form(case, model)
    with part("the deploy form equals the trainable form"):
        check_close(run(deployed, x)[0], static)
    engine = export(case, deployed)
    for inputs, expected in ((x, static), (another, run(deployed, another)[0])):
        with part(f"the exported program at {inputs.shape}"):
            check_engine(engine, inputs, expected)
    assert engine.compile_count == 2


def check_gradients(case: Case, layer: nn.Layer, x: np.ndarray, model_in_eval: set[str]) -> None:
    """In training every parameter is reached and every running statistic moves."""
    graphdef, params, buffers = nn.split(layer)
    assert params.keys() | buffers.keys() == model_in_eval
    with part("`training` gives two programs"):
        assert graphdef != nn.split(layer.eval())[0]
    trained = {name for name, p in layer.train().named_parameters() if p.trainable}

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
    # In plain operations, which compile in half of the time; golden tests have the CPU's.
    with platform_scope("other"):
        lowered = jax.jit(jax.value_and_grad(loss, has_aux=True)).lower(*args)
    step = lowered.compile(compiler_options=quick_compile_options())
    (value, after), grads = step(*args)
    with part("gradients"):
        assert np.isfinite(value) and set(grads) == trained
        sizes = {name: float(np.abs(grad).max()) for name, grad in grads.items()}
        assert all(np.isfinite(size) for size in sizes.values())
        opted_out = {name for name in sizes if case.flat and re.fullmatch(case.flat[0], name)}
        assert bool(opted_out) == (case.flat is not None)
        flat = opted_out | (normalised_biases(layer) & trained)
        noise = 1e-5 * max(sizes.values())
        still_0 = [name for name in sizes if name not in flat and sizes[name] == 0]
        if still_0 or flat:
            # A gradient that rounding alone gives can be exactly 0 for one image: a normalisation takes it out.
            others = step(*args[:-1], x[:, ::-1])[1]
            sizes |= {name: max(sizes[name], float(np.abs(others[name]).max())) for name in {*still_0, *flat}}
        assert not [name for name in still_0 if sizes[name] == 0], "no gradient arrives here"
        assert not [name for name in flat if sizes[name] > noise], f"not flat any more: {case.flat}"
    with part("running statistics"):
        statistics = {name for name in buffers if name.endswith(("._mean", "._variance"))}
        assert bool(statistics) == any(isinstance(m, nn.BatchNorm) for m in layer.sublayers())
        assert all(np.isfinite(after[name]).all() for name in after)
        still = {name for name in statistics if np.array_equal(after[name], buffers[name])}
        assert still == {name for name in statistics if case.flat and re.fullmatch(case.flat[0], name)}
