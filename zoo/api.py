"""`predictor(...)`: the short way in to classifiers of images.

from zoo import predictor

classify = predictor("pp_lcnet_x0_25_clothing")
print(classify("shirt.jpg").label)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from framework.config import Kind, bind
from framework.core.errors import FormatError, InputError, nearest
from framework.export import Artifact, load_artifact
from framework.export.artifact import CONFIG as ARTIFACT
from framework.inference import engine_of
from framework.inference.cache import ROOT
from framework.inference.image_predictor import ImagePredictor
from framework.vision.sample import Sample
from zoo.classification.results import Classification, interpret

CONFIGS = ROOT / "configs" / "zoo"
PACKAGES = ("zoo", "framework")
Export = Callable[[str, tuple[str, ...]], Artifact]


def predictor(
    model: str | os.PathLike[str],
    *,
    device: str | None = None,
    precision: str = "auto",
    top: int = 5,
    batch_size: int | None = None,
    overrides: Sequence[str] = (),
) -> ImagePredictor[Classification]:
    """An object that classifies images: `classify("a.jpg")` gives a Classification, a list of images a list.

    Args:
        model: The name of a config in configs/zoo, a config file, or an artifact folder.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16" or "auto".
        top: How many classes a result holds.
        batch_size: Images that run together.
        overrides: Settings of the config, as `-o` of the tools.

    Raises:
        InputError: no such model. HubError: weights are neither here nor reachable.
    """
    artifact = find_artifact(model, CONFIGS, tuple(overrides), "does not classify images", export_artifact)
    labels = tuple(artifact.config["labels"])

    def classified(outputs: dict[str, np.ndarray], sample: Sample, image: np.ndarray) -> Classification:
        classes = interpret(outputs["scores"], labels, top)
        return Classification(str(sample.id), image.shape[:2], classes, image)

    return image_predictor(artifact, classified, device, precision, batch_size=batch_size)


def image_predictor(
    artifact: Artifact,
    interpret: Any,
    device: str | None,
    precision: str,
    *,
    batch_size: int | None = None,
    packages: tuple[str, ...] = PACKAGES,
) -> ImagePredictor:
    """The predictor of an artifact that `zoo.export` made; its transforms are looked up in `packages`."""
    hint = tuple[Annotated[Any, Kind("transform")], ...]
    transforms = bind(artifact.config["transforms"], hint, packages)
    engine = engine_of(artifact, device, precision)
    size = artifact.config["batch_size"] if batch_size is None else batch_size
    return ImagePredictor(engine, transforms, interpret, size)


def find_artifact(
    model: str | os.PathLike[str],
    configs: Path,
    overrides: tuple[str, ...],
    misfit: str,
    export: Export,
    needs: str = "labels",
    foreign: Callable[[Path], Artifact] | None = None,
) -> Artifact:
    """The artifact of a folder, of a config file, or of the name of a config anywhere below `configs`.

    Args:
        configs: configs/<domain>: the artifact must be of this domain.
        misfit: What is said of one that is not: "this artifact <misfit>".
        export: Makes the artifact of a config file and overrides.
        needs: What the artifact's config has besides.
        foreign: Makes the artifact of a folder that is none, such as one with the model of another toolkit.

    Raises:
        InputError: no such model, or settings for a folder. FormatError: an artifact of another domain.
    """
    artifact = _artifact(model, configs, overrides, export, foreign)
    domain = artifact.config.get("domain")
    if domain != configs.name or needs not in artifact.config:
        raise FormatError(
            f"this artifact {misfit}",
            where=str(model),
            received=f"domain: {domain}",
            allowed=f"one that tools/export_model.py wrote from a config of configs/{configs.name}",
        )
    return artifact


def _artifact(
    model: str | os.PathLike[str],
    configs: Path,
    overrides: tuple[str, ...],
    export: Export,
    foreign: Callable[[Path], Artifact] | None,
) -> Artifact:
    path = Path(model)
    if path.is_dir():
        if overrides:
            raise InputError(
                "an artifact's program is made already",
                where=path,
                received=", ".join(overrides),
                fix="change the config and export again with tools/export_model.py",
            )
        if foreign is not None and not (path / ARTIFACT).is_file():
            return foreign(path)
        return load_artifact(path)
    return artifact_of(config_file(model, configs), overrides, export)


def config_file(model: str | os.PathLike[str], configs: Path) -> Path:
    """The config file of a name or a path. Raises: InputError with the known names."""
    if Path(model).suffix in (".yml", ".yaml"):
        return Path(model)
    known = {path.stem: path for path in sorted(configs.rglob("*.yml"))}
    if str(model) not in known:
        close = nearest(str(model), known)
        raise InputError(
            "there is no such model",
            received=repr(str(model)),
            allowed=f"{', '.join(known)}; a config file (.yml); or an artifact folder",
            fix=f"did you mean {close!r}?" if close else None,
        )
    return known[str(model)]


def artifact_of(config: Path, overrides: tuple[str, ...], export: Export) -> Artifact:
    """The artifact of a config: from OAR_HOME if it was made before, else exported now and kept there."""
    from framework.config import load, resolved
    from framework.inference.cache import kept_artifact

    def make() -> Artifact:
        return export(str(config), overrides)

    tree = load(config, overrides)
    plain = tree.plain()
    weights = Path(str(plain.get("weights") or Path("output") / config.stem)).expanduser()
    if weights.is_dir():
        from framework.io.checkpoint import find_checkpoint

        folder = find_checkpoint(weights, prefer="best")
        files = sorted(path for path in folder.iterdir() if path.is_file())
    else:
        files = [weights] if weights.is_file() else []
    files += _tokenizer_files(plain)
    return kept_artifact(config.stem, resolved(tree), files, (str(plain.get("domain", "zoo")),), make)


def _tokenizer_files(plain: Any) -> list[Path]:
    """The files behind every `tokenizer` and `target_tokenizer` of the settings."""
    if isinstance(plain, list):
        return [file for item in plain for file in _tokenizer_files(item)]
    if not isinstance(plain, dict):
        return []
    found = []
    for key, value in plain.items():
        found += _tokenizer_files(value)
        if key in ("tokenizer", "target_tokenizer") and isinstance(value, str) and not value.startswith("{"):
            path = Path(value).expanduser()
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            found += [file for file in files if file.is_file()]
    return found


def open_predictor(
    config: str | None,
    model_dir: str | None,
    device: str | None,
    precision: str,
    overrides: tuple[str, ...],
    *,
    batch_size: int | None = None,
) -> ImagePredictor[Classification]:
    """What tools/infer.py runs; the keyword is its option of the same name."""
    chosen = model_dir if model_dir is not None else str(config)
    return predictor(chosen, device=device, precision=precision, batch_size=batch_size, overrides=overrides)


def export_artifact(
    config: str, overrides: tuple[str, ...], *, input_shape: tuple[int, ...] | None = None
) -> Artifact:
    """What tools/export_model.py writes."""
    from zoo.export import export_experiment

    return export_experiment(Path(config), overrides, input_shape)
