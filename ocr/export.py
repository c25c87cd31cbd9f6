"""From a config to an artifact: build the models, load official weights, lower the programs.

This is the only place of the OCR package that imports model code at run time.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, cast

import jax
import jax.numpy as jnp

from framework.config import Kind, build, load, register, resolved
from framework.core.errors import ConfigError
from framework.engine.experiment import bind_experiment
from framework.export import PLATFORMS, Artifact, TensorSpec, lower_layer
from framework.io.interop import load_program
from framework.nn import Layer
from ocr.characters import CharacterSet
from ocr.pipeline import ReadOptions
from ocr.preprocess import Normalize
from ocr.stages import DetectOptions, OrientOptions, RecognizeOptions
from zoo import hub
from zoo.export import plain
from zoo.loading import load_weights_into

PRECISIONS = ("float32", "bfloat16")


@dataclass(frozen=True)
class DetectorConfig:
    """A text detector: its model, where its weights are (a name of the hub, a path or an address), its options."""

    model: Annotated[Any, Kind("model")]
    weights: str
    options: DetectOptions
    bf16_verified: bool = False


@dataclass(frozen=True)
class RecognizerConfig:
    """A text recogniser. `characters` is a dictionary file, or empty where the weights carry their dictionary."""

    model: Annotated[Any, Kind("model")]
    weights: str
    options: RecognizeOptions
    characters: str = ""
    use_space_char: bool = True
    right_to_left: bool = False
    bf16_verified: bool = False


@dataclass(frozen=True)
class OrienterConfig:
    """A classifier of lines that stand on their heads."""

    model: Annotated[Any, Kind("model")]
    weights: str
    options: OrientOptions
    bf16_verified: bool = False


@register("pipeline")
@dataclass(frozen=True)
class ReadingPipeline:
    """Detector, recogniser and, if wanted, an orienter. `bf16_verified` records the score table: the score in
    bfloat16 was
    measured and holds, so `precision: auto` may take it."""

    detector: DetectorConfig
    recognizer: RecognizerConfig
    orienter: OrienterConfig | None = None
    options: ReadOptions = field(default_factory=ReadOptions)


def load_pipeline(path: str | Path, overrides: tuple[str, ...] = ()) -> tuple[ReadingPipeline, str]:
    """The pipeline of a config file and its resolved text.

    `-o weights=…` of the tools is ambiguous for several networks, so it is an error that names the keys to set.
    """
    for override in overrides:
        if override.startswith("weights="):
            raise ConfigError(
                "a reading pipeline has several networks",
                where=f"-o {override}",
                received="weights without the network that they are for",
                allowed="pipeline.detector.weights=…, pipeline.recognizer.weights=…, pipeline.orienter.weights=…",
                fix="write the whole key",
            )
    tree = load(path, overrides)
    experiment = bind_experiment(tree)
    experiment.require("pipeline")
    return cast(ReadingPipeline, experiment.pipeline), resolved(tree)


def export_pipeline(
    config: ReadingPipeline,
    name: str,
    resolved_text: str = "",
    platforms: tuple[str, ...] = PLATFORMS,
    precisions: tuple[str, ...] = PRECISIONS,
) -> Artifact:
    """The artifact of a reading pipeline: one stage for each network."""
    stages = {
        "detector": _detector(config.detector, platforms, precisions),
        "recognizer": _recognizer(config.recognizer, platforms, precisions),
    }
    if config.orienter is not None:
        stages["orienter"] = _orienter(config.orienter, platforms, precisions)
    head = {"domain": "ocr", "kind": "pipeline", "name": name, "options": plain(config.options)}
    return Artifact({**head, "config": resolved_text}, stages=stages)


def _detector(config: DetectorConfig, platforms: tuple[str, ...], precisions: tuple[str, ...]) -> Artifact:
    model, path = _model(config.model, config.weights)

    def before(inputs: dict[str, Any]) -> tuple:
        image, size = inputs["image"], inputs["size"]
        rows = jnp.arange(image.shape[1])[None, :, None] < size[:, 0, None, None]
        columns = jnp.arange(image.shape[2])[None, None, :] < size[:, 1, None, None]
        return (normalized(image, config.options.normalize, (rows & columns)[..., None]),)

    inputs = {
        "image": TensorSpec(("n", "32*h", "32*w", 3), "uint8"),
        "size": TensorSpec(("n", 2), "int32"),
    }
    return _stage(
        config,
        model,
        path,
        inputs,
        before,
        lambda out: {"probability": out.probability},
        platforms,
        precisions,
    )


def _recognizer(
    config: RecognizerConfig, platforms: tuple[str, ...], precisions: tuple[str, ...]
) -> Artifact:
    path = hub.resolve(config.weights, "ocr")
    if config.characters:
        characters = CharacterSet.from_file(
            hub.resolve(config.characters, "ocr"),
            use_space_char=config.use_space_char,
            right_to_left=config.right_to_left,
        )
    else:
        characters = _own_characters(config, path)
    model_config = dataclasses.replace(config.model, num_classes=characters.num_classes)
    model, path = _model(model_config, config.weights)

    def before(inputs: dict[str, Any]) -> tuple:
        return (normalized(inputs["image"], config.options.normalize, _columns(inputs)),)

    def after(out: Any) -> dict[str, Any]:
        indices, probabilities = out
        return {"indices": indices, "probabilities": probabilities}

    listed = characters.symbols[1 : -1 if config.use_space_char else None]
    artifact = _stage(
        config,
        model,
        path,
        {
            "image": TensorSpec(("n", config.options.height, "w", 3), "uint8"),
            "width": TensorSpec(("n",), "int32"),
        },
        before,
        after,
        platforms,
        precisions,
        method="read",
        constraints=("w >= 16",),
    )
    artifact.config.update(
        characters=list(listed), space=config.use_space_char, right_to_left=config.right_to_left
    )
    return artifact


def _own_characters(config: RecognizerConfig, path: Path) -> CharacterSet:
    """The dictionary that comes with the weights: inside an ONNX file, or beside them in the hub."""
    how = {"use_space_char": config.use_space_char, "right_to_left": config.right_to_left}
    text = load_program(path).metadata.get("character", "") if path.suffix == ".onnx" else ""
    if text:
        return CharacterSet.from_text(text, source=str(path), **how)
    known = hub.entries("ocr")
    if config.weights in known and "dict" in known[config.weights].files:
        return CharacterSet.from_file(hub.fetch(config.weights, "dict"), **how)
    raise ConfigError(
        "the recogniser has no dictionary",
        where=path,
        received="weights that carry none",
        allowed="an ONNX file with its dictionary, weights of the hub, or a dictionary file",
        fix="-o pipeline.recognizer.characters=FILE, one symbol a line",
    )


def _orienter(config: OrienterConfig, platforms: tuple[str, ...], precisions: tuple[str, ...]) -> Artifact:
    model, path = _model(config.model, config.weights)
    height, width = config.options.size_hw
    inputs = {"image": TensorSpec(("n", height, width, 3), "uint8"), "width": TensorSpec(("n",), "int32")}

    def before(inputs: dict[str, Any]) -> tuple:
        return (normalized(inputs["image"], config.options.normalize, _columns(inputs)),)

    def after(out: Any) -> dict[str, Any]:
        return {"probability": jax.nn.softmax(out, axis=-1)}

    return _stage(config, model, path, inputs, before, after, platforms, precisions)


def _columns(inputs: dict[str, Any]) -> jax.Array:
    """[n, 1, W, 1]: which columns are line and not padding."""
    columns = jnp.arange(inputs["image"].shape[2])[None, :] < inputs["width"][:, None]
    return columns[:, None, :, None]


def normalized(image: jax.Array, how: Normalize, valid: jax.Array) -> jax.Array:
    """uint8 RGB to the network's float32, 0 where `valid` is false, as upstream pads after normalisation."""
    x = image[..., ::-1] if how.bgr else image
    scale = 1 / (255 * jnp.asarray(how.std, jnp.float32))
    shift = -jnp.asarray(how.mean, jnp.float32) / jnp.asarray(how.std, jnp.float32)
    return jnp.where(valid, x.astype(jnp.float32) * scale + shift, 0.0)


def _model(config: Any, weights: str) -> tuple[Layer, Path]:
    path = hub.resolve(weights, "ocr")
    model = build(config)
    load_weights_into(model, path)
    return model.eval(), path


def _stage(
    config: Any,
    model: Layer,
    path: Path,
    inputs: dict[str, TensorSpec],
    before: Any,
    after: Any,
    platforms: tuple[str, ...],
    precisions: tuple[str, ...],
    method: str = "__call__",
    constraints: tuple[str, ...] = (),
) -> Artifact:
    programs, weights = {}, {}
    for precision in precisions:
        programs[precision], weights = lower_layer(
            model,
            inputs,
            before,
            after,
            platforms,
            precision,  # type: ignore[arg-type]
            method,
            constraints,
        )
    about = {
        "domain": "ocr",
        "kind": type(config).__name__.removesuffix("Config").lower(),
        "name": config.weights,
        "model": plain(config.model),
        "inputs": {name: [list(spec.shape), spec.dtype] for name, spec in inputs.items()},
        "options": plain(config.options),
        "bf16_verified": config.bf16_verified,
        "provenance": {"weights": config.weights, "file": path.name, "sha256": hub.digest(path)},
    }
    return Artifact(about, programs, weights)
