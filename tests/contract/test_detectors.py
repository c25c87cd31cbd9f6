"""What every detector and pose model keeps to (detection/contracts.py). The rows are in detector_cases.py."""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import available
from framework.config.registry import find
from framework.core.compilation import quick_compile_options
from framework.core.dtypes import precision_scope
from framework.export import Artifact, TensorSpec, load_artifact, lower_layer
from framework.inference import XLAEngine
from framework.interop.named_weights import named_weights
from framework.nn.functional.lowering import platform_scope
from tests.contract.compiling import check_close, check_state, images, normalised_biases, part, run
from tests.contract.detector_cases import PACKAGES, ROW, ROWS, SMALL_ROWS, Row

_DTYPES = {"labels": np.int32}

every = pytest.mark.parametrize("row", ROWS, ids=str)
compiled = pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, marks=[pytest.mark.slow] if row.slow else [], id=str(row))
        for row in ROWS
        if row.small is not None
    ],
)


@pytest.fixture(autouse=True)
def _small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    for table, row in SMALL_ROWS:
        monkeypatch.setitem(table, ROW, row)


def test_every_registered_detector_and_variant_has_a_row() -> None:
    for name in {row.name for row in ROWS} | set(available("model", ("detection",))):
        rows = [row for row in ROWS if row.name == name]
        module = sys.modules[find("model", name, PACKAGES).module]
        assert {row.variant for row in rows} == set(module.VARIANTS) - {ROW}, name
        assert any(row.small is not None for row in rows), f"{name}: no row is compiled"


# -- values, compiled once for each row ----------------------------------------------------------------------


@functools.cache
def weights(row: Row) -> dict[str, np.ndarray]:
    layer = row.build()
    made = named_weights(layer.state_shapes())
    # Buffers that are no statistics are constants: what a bin of a distribution stands for.
    fixed = {
        name: np.asarray(value)
        for name, value in nn.split(layer)[2].items()
        if not name.endswith(("._mean", "._variance"))
    }
    scaled = {name: row.gain * value if value.ndim == 4 else value for name, value in made.items()}
    scaled |= {name: np.ones_like(value) for name, value in made.items() if name.endswith(".alpha")}
    return {**scaled, **{name: value for name, value in fixed.items() if name in made}}


def model(row: Row) -> Any:
    layer = row.build()
    layer.set_state_dict(weights(row))
    return layer.eval()


@functools.cache
def detected(row: Row) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Detections by name, and the buffers after the call."""
    found, after = run(model(row), images(row.image), "detect")
    return dict(zip(row.outputs(1), found, strict=True)), after


# -- shapes and state ----------------------------------------------------------------------------------------


@every
def test_detections_at_the_published_size(row: Row) -> None:
    graphdef, params, buffers = nn.abstract(row.build(full=True).eval())
    x = jax.ShapeDtypeStruct((2, *row.size_hw, 3), np.float32)
    out, after = jax.eval_shape(
        lambda p, b, x: nn.apply(graphdef, p, b, None, x, method="detect"), params, buffers, x
    )
    found = out._asdict()
    assert {name: leaf.shape for name, leaf in found.items()} == row.outputs(2)
    assert {n: leaf.dtype for n, leaf in found.items()} == {n: _DTYPES.get(n, np.float32) for n in found}
    assert {name: value.shape for name, value in after.items()} == {n: b.shape for n, b in buffers.items()}


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=[] if row.small else [pytest.mark.slow], id=str(row)) for row in ROWS],
)
def test_losses_at_the_published_size(row: Row) -> None:
    graphdef, params, buffers = nn.abstract(row.build(full=True).train())
    x = jax.ShapeDtypeStruct((2, *row.size_hw, 3), np.float32)
    losses, _ = jax.eval_shape(
        lambda p, b, x, t: nn.apply(graphdef, p, b, jax.random.key(0), x, t, method="loss"),
        params,
        buffers,
        x,
        row.targets(2, full=True),
    )
    found = [losses.total, *losses.parts.values()]
    assert all(leaf.shape == () and leaf.dtype == np.float32 for leaf in found)


@compiled
def test_detector(row: Row, tmp_path: Path) -> None:
    """All that is said of one model, so that each of its programs is compiled once; a message names the part."""
    with part("the state survives a file"):
        check_file(row, tmp_path)
    with part("detections are sorted and padded"):
        check_detections(row)
    with part("gradients and buffers"):
        check_gradients(row)
    with part("an artifact detects the same in any batch"):
        check_artifact(row, tmp_path)


@pytest.mark.slow
@compiled
def test_raw_outputs(row: Row) -> None:
    static = run(model(row), images(row.image))[0]
    with part("eager equals static"):
        check_close(model(row)(images(row.image)), static, spread=1e-4)
    with part("bfloat16 dots stay within the bound"):
        check_bfloat16(row, static)


def check_file(row: Row, tmp_path: Path) -> None:
    layer = model(row)
    framework.save(layer.state_dict(), tmp_path / "model.safetensors")
    other = row.build()
    other.set_state_dict(framework.load(tmp_path / "model.safetensors"))
    check_state(layer, other)


# -- what is computed ----------------------------------------------------------------------------------------


def check_bfloat16(row: Row, static: list[np.ndarray]) -> None:
    with precision_scope("bfloat16"):
        rough, _ = run(model(row), images(row.image))
    for a, b in zip(rough, static, strict=True):
        assert a.dtype == np.float32
        if row.selects:  # [layers, N, queries, C]
            a, b = np.sort(a, axis=2), np.sort(b, axis=2)
        assert 0 < np.sqrt(np.mean((a - b) ** 2)) < row.bfloat16 * b.std()


def check_detections(row: Row) -> None:
    found, after = detected(row)
    assert all(np.array_equal(after[name], value) for name, value in nn.split(model(row))[2].items())
    scores, boxes = found["scores"], found.get("boxes")
    assert (np.diff(scores, axis=1) <= 0).all() and ((scores >= 0) & (scores <= 1)).all()
    assert (scores > 0).any() and all(np.isfinite(value).all() for value in found.values())
    if boxes is not None:
        assert ((found["labels"] >= 0) & (found["labels"] < row.small.num_classes)).all()  # type: ignore[union-attr]
        assert (boxes[..., 2:] >= boxes[..., :2]).all()


def check_gradients(row: Row) -> None:
    """Every trained parameter is reached, and every running statistic moves."""
    layer, x = model(row), images(row.image)
    graphdef, params, buffers = nn.split(layer.train())
    trained = {name for name, p in layer.named_parameters() if p.trainable}

    def loss(train: dict, fixed: dict, buffers: dict, x: jax.Array, targets: Any) -> Any:
        key = jax.random.key(0)
        losses, after = nn.apply(graphdef, {**train, **fixed}, buffers, key, x, targets, method="loss")
        return losses.total, (losses.parts, after)

    args = (
        {name: params[name] for name in params if name in trained},
        {name: params[name] for name in params if name not in trained},
        buffers,
        x,
        row.targets(len(x)),
    )
    # In plain operations, which compile in half of the time; golden tests have the CPU's.
    with platform_scope("other"):
        step = jax.jit(jax.value_and_grad(loss, has_aux=True)).lower(*args)
    (total, (parts, after)), grads = step.compile(compiler_options=quick_compile_options())(*args)

    assert np.isfinite(total) and all(np.isfinite(part) and part >= 0 for part in parts.values())
    sizes = {name: float(np.abs(grad).max()) for name, grad in grads.items()}
    assert set(sizes) == trained and all(np.isfinite(size) for size in sizes.values())
    opted_out = {name for name in sizes if row.flat and re.fullmatch(row.flat[0], name)}
    flat = opted_out | (normalised_biases(layer) & trained)
    noise = 1e-5 * max(sizes.values())
    assert not [name for name in sizes if name not in flat and sizes[name] == 0], "no gradient arrives here"
    assert not [name for name in flat if sizes[name] > noise], f"not flat any more: {row.flat}"
    assert bool(opted_out) == (row.flat is not None)

    moving = {
        f"{name}.{entry}"
        for name, m in layer.named_sublayers()
        if isinstance(m, nn.BatchNorm) and not m.use_global_stats
        for entry in ("_mean", "_variance")
    }
    assert all(np.isfinite(after[name]).all() for name in after)
    assert {name for name in buffers if not np.array_equal(after[name], buffers[name])} == moving


# -- export --------------------------------------------------------------------------------------------------


def check_artifact(row: Row, tmp_path: Path) -> None:
    """One program for every platform, written, read back, and run with another size of the batch."""
    spec = {"image": TensorSpec(("n", *row.image[1:]))}
    program, arrays = lower_layer(model(row), spec, after=lambda out: out._asdict(), method="detect")
    assert {"cpu", "cuda", "tpu"} <= set(program.platforms)
    folder = tmp_path / "artifact"
    Artifact({"domain": "detection"}, {"float32": program}, arrays).save(folder)
    again = load_artifact(folder)
    engine = XLAEngine(again.programs["float32"], again.weights, options=quick_compile_options())
    alone = engine({"image": images(row.image)[:1]})
    for name, value in detected(row)[0].items():
        # Scores of heatmaps of drawn weights are in the ten thousands: float32 has six digits of them.
        np.testing.assert_allclose(alone[name], value[:1], rtol=2e-6, atol=1e-3, err_msg=name)
