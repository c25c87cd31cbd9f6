"""From the name of a model, a configuration file or a folder to the artifact that runs it: the one way for all domains.

An artifact that was made before starts from OAR_HOME: no model code is imported, no network is asked.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framework.config.imports import announce_foreign_imports, announce_imports
from framework.core.errors import ConfigError, FormatError, HubError
from framework.core.types import JSON
from framework.export import Artifact, load_artifact
from framework.export.artifact import CONFIG
from framework.inference.runtime import Runtime
from framework.interop.source import find_paddle_program
from framework.io.checkpoint import CHECKPOINTS, find_checkpoint, run_folder
from framework.workflow.domain.capabilities import FallbackModel, FolderImporter, RuntimeSettings
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import Domain, Model, all_domains, find_domain
from framework.workflow.export.bundled import has_graphs
from framework.workflow.open.cache import keep_artifact

_NO_RUNTIME_SETTINGS = RuntimeSettings(
    choose=lambda config, plain, options: (),
    split=lambda settings: (tuple(settings), ()),
    apply=lambda artifact, settings: artifact,
)


@dataclass(frozen=True)
class DomainArtifact:
    """An artifact and the domain that runs it."""

    artifact: Artifact
    domain: Domain[Any]


def find_artifact(
    model: Model | ConfigFile,
    settings: Sequence[str] = (),
    domain: str | None = None,
    runtime: Runtime | None = None,
    options: Mapping[str, object] | None = None,
) -> DomainArtifact:
    """The artifact of a folder, of a configuration file, or of the name of a configuration.

    Args:
        model: An artifact's folder, one of another toolkit that a domain can import, a file (.yml), a name,
            or a configuration that was read.
        settings: Overrides of the configuration, as `-o` of the tools.
        domain: The artifact must be of this domain.
        runtime: Where the engine that it chooses runs ONNX files, that of a configuration has one. None: it has none.
            Its `trust` counts for folders.
        options: Of the domain's predictor; some choose among the weights of a configuration.

    Raises:
        InputError: there is no such model. ConfigError: settings that a finished artifact cannot take.
        FormatError: an artifact of another domain. HubError: weights are neither here nor reachable, and the domain has
        no model that takes the place of this one.
    """
    path = None if isinstance(model, ConfigFile) else Path(model).expanduser()
    if path is None or not path.is_dir():
        return _find_of_config(open_config(model, settings, domain), model, domain, runtime, options or {})
    opened = _from_folder(path, domain, trust=runtime is not None and runtime.trust)
    at_run_time = opened.domain.capability(RuntimeSettings) or _NO_RUNTIME_SETTINGS
    in_program, after = at_run_time.split(settings)
    if in_program:
        raise ConfigError(
            "an artifact's programs and weights are made, these settings cannot be changed any more",
            where=path,
            received=", ".join(in_program),
            fix="change the configuration and export again with `oar export`",
        )
    return DomainArtifact(at_run_time.apply(opened.artifact, after), opened.domain)


def _find_of_config(
    config: ConfigFile,
    model: Model | ConfigFile,
    domain: str | None,
    runtime: Runtime | None,
    options: Mapping[str, object],
) -> DomainArtifact:
    """`find_artifact` of a configuration; `model` is what it was asked for by."""
    _check_domain(config.domain, domain, config.path if isinstance(model, ConfigFile) else model)
    owner = find_domain(config.domain)
    at_run_time = owner.capability(RuntimeSettings) or _NO_RUNTIME_SETTINGS
    config = open_config(config, at_run_time.choose(config.path, config.plain, options))
    in_program, after = at_run_time.split(config.settings)  # the second leave no trace in what is kept
    try:
        artifact = _from_config(config.with_settings(in_program), owner, runtime)
    except HubError as error:
        fallback = owner.capability(FallbackModel)
        is_named = not isinstance(model, ConfigFile)
        other = fallback.choose(model, config.settings, options, error) if fallback and is_named else None
        if other is None:
            raise
        return find_artifact(other, config.settings, domain, runtime, options)
    return DomainArtifact(at_run_time.apply(artifact, after), owner)


def _check_domain(name: str, requested: str | None, model: Model) -> None:
    if requested is not None and name != requested:
        raise FormatError(
            f"this model is of another domain than {requested}",
            where=str(model),
            received=f"domain: {name}",
            allowed=f"a model from a configuration of configs/{requested}",
            fix=f"from framework.workflow import predictor opens models of every domain, {requested}.predictor its own",
        )


def _from_folder(path: Path, requested: str | None, trust: bool) -> DomainArtifact:
    if (path / CONFIG).is_file():
        artifact = load_artifact(path, trust=trust)
        _check_imports(artifact)
        name = artifact.config.get("domain")
        if name is None:
            raise FormatError(
                "no domain runs this artifact",
                where=path / CONFIG,
                received="no `domain` in it",
                allowed="an artifact that `oar export` wrote",
                fix="what jit.save wrote runs with framework.jit.load",
            )
        _check_domain(str(name), requested, path)
        try:
            return DomainArtifact(artifact, find_domain(str(name)))
        except ConfigError as error:
            raise ConfigError(
                error.problem,
                where=artifact.source,
                received=error.received,
                allowed=error.allowed,
                fix=error.fix,
            ) from None
    for owner in all_domains():
        if requested in (None, owner.name):
            importer = owner.capability(FolderImporter)
            artifact = importer and importer.read(path)
            if artifact is not None:
                return DomainArtifact(artifact, owner)
    raise FormatError(
        "the folder holds neither an artifact nor a model that can be imported",
        where=path,
        received=", ".join(sorted(file.name for file in path.iterdir())[:10]) or "an empty folder",
        allowed=f"an artifact as `oar export` writes it, with {CONFIG}; or a model as save_pretrained of "
        "transformers or PaddleNLP writes it, with config.json",
    )


def _check_imports(artifact: Artifact) -> None:
    """Say what code an artifact names; raises FormatError, where it was not said that this may run."""
    names = artifact.setting("imports", default=())
    if names and not artifact.trusted:
        raise FormatError(
            "the artifact names code to run, and runs none without your consent",
            where=artifact.source,
            received=f"imports: {', '.join(names)}",
            allowed="artifacts without `imports`, which are data",
            fix="where you trust whoever made it as you trust a program: --trust, or trust=True in Python",
        )
    if names:
        announce_imports(artifact.source, *names)
    for stage in artifact.stages.values():
        _check_imports(stage)


def _from_config(config: ConfigFile, owner: Domain[Any], runtime: Runtime | None) -> Artifact:
    """The artifact of a configuration: from OAR_HOME if it was made before, else exported now and kept there."""
    plain = config.plain
    announce_foreign_imports(
        str(config.path.resolve()), _imports(plain)
    )  # which an artifact that was kept runs silently
    table = (plain.get("export") or {}).get("engines") or {}
    kind = ""
    engine = "xla" if runtime is None else runtime.choose_engine(table)
    if runtime is not None and engine == "litert":
        kind = "-tflite"
    elif runtime is not None and engine != "xla":
        if all(map(importlib.util.find_spec, ("onnx", "onnxruntime"))):
            kind = "-onnx"
        elif runtime.engine != "auto" or has_graphs():
            kind = "-graph"  # what comes with the package is all that can be had

    def make() -> Artifact:
        from framework.workflow.export.export import export_config
        from framework.workflow.export.onnx import OnnxOptions

        if kind == "-tflite":
            from framework.workflow.export.mobile import export_tflite
            from framework.workflow.export.tflite import TfliteOptions

            return export_tflite(config, TfliteOptions())
        # An engine that is asked for by name says what is missing; "auto" does without.
        onnx = OnnxOptions(for_engine=True, optional=runtime is not None and runtime.engine == "auto")
        return export_config(config, onnx=onnx if kind else None)

    files = [*_weight_files(plain, config.path), *_named_files(plain), *_imported_files(plain)]
    return keep_artifact(f"{config.name}{kind}", config.text, files, owner.packages, make)


def _weight_files(plain: dict[str, JSON], config: Path) -> list[Path]:
    """The user's own weights: of a run, where the file names none. A pipeline has no run, its stages name theirs."""
    if plain.get("pipeline") is not None:
        return []
    weights = Path(str(plain.get("weights") or run_folder(config))).expanduser()
    if weights.is_dir() and find_paddle_program(weights) is None:
        folder = find_checkpoint(weights, prefer="best")
        return sorted(path for path in folder.iterdir() if path.is_file())
    return _with_siblings(weights)


def _with_siblings(path: Path) -> list[Path]:
    """A file with those beside it of the same stem: a program and its parameters. Of a folder those of its program."""
    path = find_paddle_program(path) or path
    if not path.is_file():
        return []
    return sorted(other for other in path.parent.iterdir() if other.stem == path.stem and other.is_file())


def _named_files(plain: object) -> list[Path]:
    """The files behind every key of a configuration that may name some: tokenizers, weights and dictionaries of
    stages."""
    if isinstance(plain, list):
        return [file for item in plain for file in _named_files(item)]
    if not isinstance(plain, dict):
        return []
    existing = []
    for key, value in plain.items():
        existing += _named_files(value)
        if not isinstance(value, str) or not value or value.startswith("{"):
            continue
        path = Path(value).expanduser()
        if (path / CHECKPOINTS).is_dir():  # a run, as weights or as the stage of a pipeline
            best = find_checkpoint(path, prefer="best")
            existing += sorted(file for file in best.iterdir() if file.is_file())
        elif key in ("tokenizer", "target_tokenizer"):
            files = sorted(path.iterdir()) if path.is_dir() else [path]
            existing += [file for file in files if file.is_file()]
        elif key in ("weights", "characters"):
            existing += _with_siblings(path)
    return existing


def _imports(plain: dict[str, Any]) -> list[str]:
    items = plain.get("imports") or []
    return [str(item) for item in (items if isinstance(items, list) else [items])]


def _imported_files(plain: dict[str, Any]) -> list[Path]:
    return [path for item in _imports(plain) if item.endswith(".py") and (path := Path(item)).is_file()]
