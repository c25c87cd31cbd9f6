"""From a configuration and weights to an artifact: one way for every domain that trains one model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax

from framework import nn
from framework.config import build, dump, load, parse, resolved
from framework.core.dtypes import Precision
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import Experiment, bind_experiment
from framework.engine.task import check_transforms
from framework.export import Artifact, TensorSpec
from framework.export.artifact import pack_assets
from framework.export.program import lower_layer
from framework.io.checkpoint import STATE, load_checkpoint
from framework.vision.transforms.resize import Resize
from zoo import hub
from zoo.layers.conv_bn import fold_norms
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
            fix="-o weights=… (`overrides` of a predictor), or train first: python tools/train.py -c "
            + config.as_posix(),
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


def with_input_shape(experiment: Experiment, input_shape: tuple[int, ...]) -> Experiment:
    """The experiment with a program for images of `input_shape` (N, C, H, W); -1 leaves a number free.

    A fixed height and width take the place of those in the transforms that made the program's size. Where none did,
    images are scaled to it last of all, and results are brought back as from every transform.

    Raises:
        ConfigError: the shape does not fit, or the program's input is no image.
    """
    spec = experiment.export.inputs.get("image")
    if spec is None or len(spec.shape) != 4:
        raise ConfigError(
            "this model has no shape of images",
            where="--input_shape",
            received="inputs "
            + (
                ", ".join(f"{name} {list(one.shape)}" for name, one in experiment.export.inputs.items())
                or "none"
            ),
            fix="leave --input_shape out",
        )
    count, channels, height, width = input_shape if len(input_shape) == 4 else (0, 0, 0, 0)
    if (
        min(input_shape) < -1
        or 0 in (count, height, width)
        or (height == -1) != (width == -1)
        or (channels not in (-1, spec.shape[3]))
    ):
        raise ConfigError(
            "this is no shape of the program's images",
            where="--input_shape",
            received=" ".join(map(str, input_shape)),
            allowed=f"N {spec.shape[3]} H W, each 1 or more, or -1 where it stays free (H and W together)",
        )
    options, transforms = experiment.predict, tuple(experiment.predict.transforms or ())
    n, old_hw = spec.shape[0] if count == -1 else count, spec.shape[1:3]
    size_hw = old_hw if height == -1 else (height, width)
    if size_hw != old_hw:
        makers = [getattr(transform, "size_hw", None) == old_hw for transform in transforms]
        if any(makers):
            transforms = tuple(
                replace(transform, size_hw=size_hw) if makes else transform
                for transform, makes in zip(transforms, makers)
            )
        else:
            transforms = (*transforms, Resize(size_hw=(height, width)))
    export = replace(experiment.export, inputs={"image": replace(spec, shape=(n, *size_hw, spec.shape[3]))})
    batch_size = options.batch_size if count == -1 else count
    return replace(
        experiment, export=export, predict=replace(options, transforms=transforms, batch_size=batch_size)
    )


def export_experiment(
    config: Path,
    overrides: tuple[str, ...],
    input_shape: tuple[int, ...] | None = None,
    change: Callable[[Experiment], Experiment] | None = None,
) -> Artifact:
    """The artifact of a config file: program, weights, transforms, labels, provenance.

    Args:
        input_shape: See `with_input_shape`.
        change: What a domain does to the experiment before its program is made; `predict.transforms` are settled then.

    Raises:
        ConfigError: the config names no weights or no inputs, or the model has another number of classes than labels.
    """
    tree = load(config, overrides)
    experiment = bind_experiment(tree)
    if experiment.predict.transforms is None:
        transforms = experiment.data.eval.transforms if experiment.data.eval else ()
        experiment = replace(experiment, predict=replace(experiment.predict, transforms=transforms))
    if experiment.predict.buckets is None and experiment.data.eval is not None:
        experiment = replace(
            experiment, predict=replace(experiment.predict, buckets=experiment.data.eval.buckets)
        )
    if input_shape is not None:
        experiment = with_input_shape(experiment, input_shape)
    if change is not None:
        experiment = change(experiment)
    model, path, kept = trained_model(experiment, config)
    task: Any = experiment.task
    options, labels = experiment.export, labels_of(experiment, kept)
    task.check(model, labels)
    specs = {name: TensorSpec(spec.shape, spec.dtype) for name, spec in options.inputs.items()}
    if not specs:
        raise ConfigError(
            "nothing says what the exported program takes",
            where=config,
            received="no `export.inputs`",
            allowed="such as export: {inputs: {image: {shape: [n, 224, 224, 3], dtype: uint8}}}",
        )
    about = {
        "domain": experiment.domain,
        "name": config.stem,
        "model": plain(experiment.model),
        "batch_size": experiment.predict.batch_size,
        **({} if experiment.predict.buckets is None else {"buckets": list(experiment.predict.buckets)}),
        "labels": list(labels),
        "bf16_verified": options.bf16_verified,
        "provenance": {"weights": str(path), "config": resolved(tree)},
    }
    if path.is_file():
        about["provenance"]["sha256"] = hub.digest(path)
    return model_artifact(model, task, specs, experiment.predict.transforms or (), about, options.precisions)


def model_artifact(
    model: nn.Layer,
    task: Any,
    specs: Mapping[str, TensorSpec],
    transforms: Iterable[Any],
    about: Mapping[str, Any],
    precisions: Sequence[Precision],
) -> Artifact:
    """The artifact of a model with its weights, whose program is the task's inference.

    Args:
        specs: The program's inputs, by name.
        transforms: What is done to a sample before the program.
        about: The rest of the artifact's config, such as domain, labels and provenance.

    Raises:
        ConfigError: the model and the transforms do not fit.
    """
    transforms = tuple(transforms)
    check_transforms(model, transforms)
    whole = _Inference(fold_norms(reparameterize(model)), task, tuple(specs))
    programs: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for precision in precisions:
        programs[precision], weights = lower_layer(whole, specs, after=lambda out: out, precision=precision)
    transforms, files = pack_assets(transforms)
    config = {
        **about,
        "task": plain(task),
        "inputs": {name: [list(spec.shape), spec.dtype] for name, spec in specs.items()},
        "transforms": [plain(transform) for transform in transforms],
    }
    return Artifact(config, programs, weights, files=files)
