"""Every pipeline of configs/ocr: its networks take the sizes that its options ask for. Nothing is computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from framework import nn
from framework.config import available, build, load
from framework.engine.experiment import bind_experiment
from ocr.system import TextSystem
from tests.contract.cases import PACKAGES
from tests.contract.test_published_counts import PUBLISHED

REPO = Path(__file__).resolve().parents[2]
FILES = sorted((REPO / "configs" / "ocr").glob("*.yml"))


def outputs(config: Any, shape: tuple[int, ...], method: str = "__call__") -> list[Any]:
    graphdef, params, buffers = nn.abstract(build(config).eval())
    x = jax.ShapeDtypeStruct(shape, np.float32)
    out, _ = jax.eval_shape(
        lambda p, b, x: nn.apply(graphdef, p, b, None, x, method=method), params, buffers, x
    )
    return jax.tree.leaves(out)


def test_every_registered_pipeline_is_checked_here() -> None:
    assert set(available("pipeline", PACKAGES)) == {TextSystem.__name__}
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_networks_take_the_sizes_of_the_options(path: Path) -> None:
    pipeline = bind_experiment(load(path)).pipeline
    assert isinstance(pipeline, TextSystem)
    detector, recognizer, orientation = pipeline.detector, pipeline.recognizer, pipeline.orientation
    for sides in (detector.options.sides[:1] * 2, detector.options.sides[-2:]):
        (probability,) = outputs(detector.model, (1, *sides, 3))
        assert probability.shape == (1, *sides) and probability.dtype == np.float32
    assert all(side % 32 == 0 for side in detector.options.sides)

    height, widths = recognizer.options.height, recognizer.options.widths
    for width in (widths[0], widths[-1]):
        indices, scores = outputs(recognizer.model, (2, height, width, 3), "read")
        assert indices.shape == scores.shape == (2, width // 8)
        assert (indices.dtype, scores.dtype) == (np.int32, np.float32)
    assert list(widths) == sorted(set(widths)) and all(width % 8 == 0 for width in widths)

    assert orientation is not None
    (logits,) = outputs(orientation.model, (3, *orientation.options.size_hw, 3))
    assert logits.shape == (3, 2)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_networks_are_exported_in_deploy_form_at_the_published_size(path: Path) -> None:
    pipeline = bind_experiment(load(path)).pipeline
    assert isinstance(pipeline, TextSystem)
    for config in (pipeline.detector.model, pipeline.recognizer.model):
        assert config.deploy
        shapes = build(config).state_shapes()
        assert (True, sum(int(np.prod(shape)) for shape in shapes.values())) == PUBLISHED[config.variant]
