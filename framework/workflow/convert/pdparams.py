"""Trained weights back to Paddle: a `.pdparams` file with the names of the official network."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from framework import nn
from framework.core.errors import ConfigError, WeightError, did_you_mean
from framework.core.model_config import setting_of
from framework.interop import load_weights
from framework.io.state import save
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import find_domain
from framework.workflow.export.export import trained_model

SUITES = ("paddle.vision", "paddleclas", "paddledet", "paddleseg", "paddlenlp", "paddleocr")


@runtime_checkable
class HasOfficialNames(Protocol):
    """A layer with entries that a suite of Paddle calls otherwise than we do."""

    def official_names(self, suite: str) -> Mapping[str, str]:
        """Names in the suite's state dict to own ones, relative to the layer, for the entries that differ."""
        ...


def official_state(model: nn.Layer, names: str | Collection[str]) -> dict[str, np.ndarray]:
    """The state dict of a model in its training form as Paddle's network has it; integers are of 64 bits, its default.

    Args, Raises: as `official_names`.
    """
    ours = {name: np.asarray(value) for name, value in model.state_dict().items()}
    ours = {name: a.astype(np.int64) if a.dtype == np.int32 else a for name, a in ours.items()}
    return {theirs: ours[own] for theirs, own in official_names(model, names).items()}


def official_names(model: nn.Layer, names: str | Collection[str]) -> dict[str, str]:
    """The names of the official network's state dict, and the name of each entry in that of `model`.

    Args:
        names: The suite whose network is meant, one of SUITES. Or the names of an official state dict, such as those of
            `framework.load("official.pdparams")`: exactly these are given, each with what our model loads from it.

    Raises:
        ConfigError: the model is in its deploy form, or there is no such suite.
        WeightError: the names are not those of this model.
    """
    if setting_of(model, "deploy", bool):
        raise ConfigError(
            "a model in its deploy form has no training weights any more",
            where=type(model).__name__,
            received="branches and normalisations that are folded into convolutions",
            allowed="a model with deploy=False, and weights of its training form",
        )
    if isinstance(names, str):
        return _names_of_suite(model, names)
    official, ours = _find_own_names(model, names), model.state_shapes().keys()
    absent, unknown = ours - official.values(), official.values() - ours
    if absent or unknown:
        raise WeightError(
            f"the names do not fit {type(model).__name__}",
            received=f"without {len(absent)} entries: {', '.join(sorted(absent)[:5]) or 'none'}; "
            f"{len(unknown)} more: {', '.join(sorted(unknown)[:5]) or 'none'}",
            allowed=f"names for all {len(ours)} entries",
            fix="take the official file of the same variant",
        )
    return official


def export_pdparams(
    config: str | Path | ConfigFile,
    output_dir: str | Path,
    changes: Sequence[str] = (),
    names: str | Path | None = None,
) -> Path:
    """Write `<name>.pdparams` of a configuration's weights, and the resolved `<name>.yml` beside it.

    Args:
        changes: Overrides, as `-o` of the tools.
        names: Whose names, see `official_names`; or an official file (.pdparams) to take them from. By default those of
            the suite that the domain follows, such as PaddleDetection.

    Raises:
        ConfigError: the file describes a pipeline, there are no weights, or they are in deploy form. Others: as
            `official_names` and `framework.save`.
    """
    config = open_config(config, changes)
    experiment = config.experiment
    if experiment.pipeline is not None:
        raise ConfigError(
            "a pipeline has no weights of its own",
            where=config.path,
            fix="export its stages' configurations one by one",
        )
    model, _, _ = trained_model(experiment, config.path)
    if names is None:
        names = find_domain(experiment.domain).suite or "paddleclas"
    official = list(load_weights(names)) if isinstance(names, Path) else names
    path = Path(output_dir) / f"{config.name}.pdparams"
    save(official_state(model, official), path)
    path.with_suffix(".yml").write_text(config.text, encoding="utf-8")
    return path


def _names_of_suite(model: nn.Layer, suite: str) -> dict[str, str]:
    """Official name to ours, in the order of ours."""
    if suite not in SUITES:
        raise ConfigError(
            "unknown suite of Paddle",
            received=repr(suite),
            allowed=", ".join(SUITES),
            fix=did_you_mean(suite, SUITES),
        )
    official: dict[str, list[str]] = {}
    for path, layer in model.named_sublayers(include_self=True):
        dot = f"{path}." if path else ""
        if isinstance(layer, HasOfficialNames):
            pairs = list(layer.official_names(suite).items())
        else:  # second names of the same file
            aliases = layer.state_aliases()
            pairs = [*((ours, ours) for ours in aliases.values()), *aliases.items()]
        for theirs, ours in pairs:
            official.setdefault(dot + ours, []).append(dot + theirs)
    return {theirs: ours for ours in model.state_shapes() for theirs in official.get(ours, [ours])}


def _find_own_names(model: nn.Layer, names: Collection[str]) -> dict[str, str]:
    """Official name to ours. Several may lead to one entry: files of Paddle hold shared arrays under each name."""
    our_names, only = model.state_shapes().keys(), tuple(getattr(model, "training_only", ()))
    official: dict[str, str] = {}
    rest = list(names)
    while rest:  # of the names of one entry each round finds one
        official |= {
            theirs: ours for ours, theirs in model._without_aliases({name: name for name in rest}).items()
        }
        rest = [name for name in rest if name not in official]
    return {
        key: official[key]
        for key in names
        if official[key] in our_names or not official[key].startswith(only)
    }
