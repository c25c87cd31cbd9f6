"""Weights from one form to another: what `oar convert` does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from framework.config import load
from framework.core.errors import ConfigError
from framework.engine.experiment import bind_experiment
from framework.io.state import load as load_state
from framework.io.state import save as save_state
from framework.workflow.domain.domain import Model, find_config
from framework.workflow.domain.weights import checkpoint_weights, load_model, resolve_weights


def convert_weights(
    weights: str | Path,
    output: str | Path,
    config: Model | None = None,
    settings: Sequence[str] = (),
    params: str | Path | None = None,
) -> int:
    """Write the weights of a file, a run or a name of the hub to `output`; returns how many arrays there are.

    Args:
        config: The model that they are of: they are written under its names, which are Paddle's, in Paddle's layouts.
            Without it names and layouts stay as they are.
        settings: Overrides of the config.
        params: The parameter file of a Paddle program; by default the one beside it.

    Raises:
        FormatError: the file cannot be read, or `output` is of another kind.
        WeightError: the weights do not fit the model. ConfigError: the config has no single model.
    """
    path = resolve_weights(weights)
    if config is None:
        state = checkpoint_weights(path) if path.is_dir() else load_state(path)
    else:
        experiment = bind_experiment(load(find_config(config), tuple(settings)))
        if experiment.model is None:
            raise ConfigError(
                "weights belong to one model",
                where=str(config),
                received="a pipeline of several" if experiment.pipeline else "no `model`",
                allowed="a config with a `model`",
            )
        state = load_model(experiment.model, path, params).state_dict()
    save_state(state, output)
    return len(state)
