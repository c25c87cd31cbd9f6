"""Every pipeline of configs/ocr: its networks take the sizes that its options ask for. Nothing is computed."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from safetensors import safe_open

from framework import nn
from framework.config import available, build, load
from framework.engine.experiment import bind_experiment
from ocr.pipeline.config import TextSystem
from tests.contract.cases import PACKAGES
from tests.contract.test_published_counts import PUBLISHED

OWN = "oar_latin"  # what this project trained: its files stand in the package, with the normalisations
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
    # DocumentPipeline holds settings; tests/unit/ocr/documents/test_config.py reads its files.
    assert set(available("pipeline", PACKAGES)) == {TextSystem.__name__, "DocumentPipeline"}
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
    stride = 4 if getattr(recognizer.model.backbone, "fine", False) else 8
    for width in (widths[0], widths[-1]):
        indices, scores = outputs(recognizer.model, (2, height, width, 3), "read")
        assert indices.shape == scores.shape == (2, width // stride)
        assert (indices.dtype, scores.dtype) == (np.int32, np.float32)
    assert list(widths) == sorted(set(widths)) and all(width % 8 == 0 for width in widths)

    if orientation is None:
        assert path.stem == OWN
        return
    (logits,) = outputs(orientation.model, (3, *orientation.options.size_hw, 3))
    assert logits.shape == (3, 2)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_networks_are_exported_in_deploy_form_at_the_published_size(path: Path) -> None:
    pipeline = bind_experiment(load(path)).pipeline
    assert isinstance(pipeline, TextSystem)
    for config in (pipeline.detector.model, pipeline.recognizer.model):
        assert config.deploy
        if path.stem != OWN:
            shapes = build(config).state_shapes()
            assert (True, sum(int(np.prod(shape)) for shape in shapes.values())) == PUBLISHED[config.variant]


def test_the_networks_of_our_pair_are_those_of_the_files_in_the_package() -> None:
    pipeline = bind_experiment(load(REPO / "configs" / "ocr" / f"{OWN}.yml")).pipeline
    assert isinstance(pipeline, TextSystem)
    folder = REPO / "ocr" / "weights"
    characters = (folder / f"{OWN}_dict.txt").read_text(encoding="utf-8").splitlines()
    classes = len(characters) + 2  # with the blank and the space
    recognizer = dataclasses.replace(pipeline.recognizer.model, num_classes=classes)
    for config, name in ((pipeline.detector.model, "det"), (recognizer, "rec")):
        with safe_open(folder / f"{OWN}_{name}.safetensors", "np") as file:
            found = {key: tuple(file.get_slice(key).get_shape()) for key in file.keys()}  # noqa: SIM118
        assert build(dataclasses.replace(config, deploy=False)).state_shapes() == found
