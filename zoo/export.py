"""From a configuration and weights to an artifact: one way for every domain that trains one model."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import jax

from framework import nn
from framework.config import build, dump, load, parse, resolved
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import Experiment, bind_experiment
from framework.export import Artifact, TensorSpec
from framework.export.program import lower_layer
from framework.io.checkpoint import STATE, load_checkpoint
from zoo import hub
from zoo.layers.reparam import reparameterize
from zoo.loading import load_weights_into, resolve_weights


class _Inference(nn.Layer):
    """A model with its task's inference around it: what is exported."""

    def __init__(self, model: nn.Layer, task: Any, order: tuple[str, ...]) -> None:
        super().__init__()
        self.model, self.task, self.order = model, task, order

    def forward(self, *inputs: jax.Array) -> dict[str, jax.Array]:
        return self.task.infer(self.model, dict(zip(self.order, inputs)))


def plain(config: Any) -> Any:
    """A bound dataclass as the plain data that binds back to it, for an artifact's config."""
    return parse(dump(config), "artifact").plain()


def trained_model(experiment: Experiment, config: Path) -> tuple[nn.Layer, Path, tuple[str, ...]]:
    """The model of an experiment with its weights, where they come from, and the labels that came with them.

    Raises:
        ConfigError: the experiment names no weights and was not trained here.
    """
    experiment.require("model", "task")
    spec = experiment.weights or str(Path("output") / config.stem)
    if experiment.weights is None and not Path(spec).is_dir():
        raise ConfigError(
            "there are no weights",
            where=config,
            received=f"no `weights`, and no training run in {spec}",
            allowed="a name of the hub, a file, a checkpoint or an address",
            fix="-o weights=…, or train first: python tools/train.py -c " + config.as_posix(),
        )
    path = resolve_weights(spec, experiment.domain)
    model = load_weights_into(build(experiment.model), path)
    labels = load_checkpoint(path).meta.get("labels", []) if (path / STATE).is_file() else _published(spec)
    return model.eval(), path, tuple(labels)


def _published(spec: str) -> list[str]:
    """The labels that come with weights of the hub, one a line."""
    known = hub.entries()
    if spec not in known or "labels" not in known[spec].files:
        return []
    return hub.fetch(spec, "labels").read_text(encoding="utf-8").splitlines()


def labels_of(experiment: Experiment, kept: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the classes: those kept with the weights, else those of the data set, if it is here."""
    if kept:
        return kept
    for feed in (experiment.data.eval, experiment.data.train):
        with contextlib.suppress(InputError):  # the data need not be on the machine that exports
            if feed is not None:
                return tuple(getattr(feed.dataset, "class_names", ()))
    return ()


def export_experiment(config: Path, overrides: tuple[str, ...]) -> Artifact:
    """The artifact of a config file: program, weights, transforms, labels, provenance."""
    tree = load(config, overrides)
    experiment = bind_experiment(tree)
    model, path, kept = trained_model(experiment, config)
    task, options = experiment.task, experiment.export
    model = reparameterize(model)
    specs = {name: TensorSpec(spec.shape, spec.dtype) for name, spec in options.inputs.items()}
    if not specs:
        raise ConfigError(
            "nothing says what the exported program takes",
            where=config,
            received="no `export.inputs`",
            allowed="such as export: {inputs: {image: {shape: [n, 224, 224, 3], dtype: uint8}}}",
        )
    whole = _Inference(model, task, tuple(specs))
    programs: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for precision in options.precisions:
        programs[precision], weights = lower_layer(whole, specs, after=lambda out: out, precision=precision)
    transforms = experiment.infer.transforms
    if transforms is None:
        transforms = experiment.data.eval.transforms if experiment.data.eval else ()
    about = {
        "domain": experiment.domain,
        "name": config.stem,
        "model": plain(experiment.model),
        "task": plain(task),
        "inputs": {name: [list(spec.shape), spec.dtype] for name, spec in specs.items()},
        "transforms": [plain(transform) for transform in transforms],
        "batch_size": experiment.infer.batch_size,
        "labels": list(labels_of(experiment, kept)),
        "bfloat16_holds": options.bfloat16_holds,
        "provenance": {"weights": str(path), "config": resolved(tree)},
    }
    if path.is_file():
        about["provenance"]["sha256"] = hub.digest(path)
    return Artifact(about, programs, weights)
