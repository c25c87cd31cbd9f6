"""Every file under configs/: it loads, binds, names known weights and builds, and says what its golden text says.

A golden text is optional. After a change that is meant to change configs, write those there are, or with `--all` one
for every config, and read the diff:

    python tools/golden/configs.py [--all]
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framework import hub, nn
from framework.config import build, load, parse, resolved
from framework.config.registry import name_of
from framework.engine.experiment import Experiment, bind_experiment

REPO = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).parent / "golden"
CONFIGS = sorted(
    path.relative_to(REPO / "configs").as_posix()
    for path in (REPO / "configs").rglob("*.y*ml")
    if "_base_" not in path.parts
)
KEPT = [config for config in CONFIGS if (GOLDEN / config).with_suffix(".yml").is_file()]


@functools.cache
def bound(config: str) -> Experiment:
    """The file, bound with the packages of its domain."""
    return bind_experiment(load(REPO / "configs" / config))


def components(value: Any) -> Iterator[Any]:
    """Every dataclass in a bound configuration, outermost first."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in dataclasses.fields(value):
            yield from components(getattr(value, field.name))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from components(item)
    elif isinstance(value, dict):
        yield from components(list(value.values()))


def test_there_are_configs() -> None:
    assert "ocr/pp_ocrv6_small.yml" in CONFIGS


@pytest.mark.parametrize("config", CONFIGS)
def test_binds(config: str) -> None:
    experiment = bound(config)
    assert experiment.pipeline is not None or experiment.model is not None, f"{config} asks for nothing"


@pytest.mark.parametrize("config", CONFIGS)
def test_names_known_weights(config: str) -> None:
    tree = load(REPO / "configs" / config)
    entries = hub.entries(tree.value["domain"].value)
    named = [getattr(part, "weights", None) for part in components(bound(config))]
    # A loss has weights too, which are numbers; below data/ stands what the user put there.
    names = [name for name in named if isinstance(name, str) and not name.startswith("data/")]
    unknown = [name for name in names if name and name not in entries]
    assert not unknown, f"{config} names weights that are not in zoo/weights: {unknown}"


@pytest.mark.parametrize("config", CONFIGS)
def test_models_build(config: str) -> None:
    """Layers are lazy: a model of any size is built without making a value."""
    pipeline = bound(config).pipeline
    if pipeline is not None and not pipeline.stage_names:
        pytest.skip("it names models of other configs: tests/unit/ocr/documents/test_config.py")
    layers = [
        build(part.model)
        for part in components(bound(config))
        if name_of(type(getattr(part, "model", None))) is not None
    ]
    assert layers, f"{config} holds no model"
    for layer in layers:
        _, params, _ = nn.abstract(layer)
        assert params, f"{config}: {type(layer).__name__} has no parameters"


@pytest.mark.parametrize("config", KEPT)
def test_equals_golden(config: str) -> None:
    tree = load(REPO / "configs" / config)
    text = resolved(tree)
    assert text == (GOLDEN / config).with_suffix(".yml").read_text(encoding="utf-8"), (
        f"{config} resolves to another text; if that is meant, run `python tools/golden/configs.py` and read the diff"
    )
    assert parse(text, "golden").plain() == tree.plain()


def test_no_golden_without_a_config() -> None:
    kept = {path.relative_to(GOLDEN).as_posix() for path in GOLDEN.rglob("*.yml")}
    assert kept <= {Path(config).with_suffix(".yml").as_posix() for config in CONFIGS}, (
        "delete what has no config"
    )
