"""Configurations of document readers: files of configs/ocr/structure, and your own.

domain: ocr
pipeline: {type: DocumentPipeline, model: pp_ocrv5_server, layout_model: PP-DocLayout-S}
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from framework.config import register
from framework.core.errors import ConfigError
from framework.core.types import JSON
from framework.engine.task import Pipeline, Stage
from framework.workflow.domain.config_file import ConfigFile, open_config
from framework.workflow.domain.domain import Model, config_names
from ocr.documents.options import DocumentOptions
from ocr.pipeline.options import DEFAULT_MODEL


@register("pipeline")
@dataclass(frozen=True)
class DocumentPipeline(DocumentOptions, Pipeline):
    """Options of `ocr.document` and `oar document` under a name; those that a call gives go before.

    Attributes:
        model: What reads pages without a text layer: a config of configs/ocr, a file, or an artifact's folder.
        overrides: Settings of its config, as `-o` of the commands.
    """

    lang: str | tuple[str, ...] | None = None
    model: str = DEFAULT_MODEL
    overrides: tuple[str, ...] = ()

    @property
    def stage_names(self) -> tuple[str, ...]:
        return ()

    def stages(self) -> Mapping[str, Stage]:
        """Raises: ConfigError: each of its models is opened by itself."""
        raise ConfigError(
            "a document reader is no single model",
            where="pipeline",
            received="type: DocumentPipeline",
            allowed="a config of one model, or of a TextSystem",
            fix=f"oar document -c CONFIG, ocr.document(..., config=CONFIG); what it reads text with is {self.model}",
        )

    def describe(self) -> Mapping[str, JSON]:
        return {}


class DocumentConfig(NamedTuple):
    """What a configuration of documents says: the model that reads text, settings of it, and options by name."""

    model: Model
    overrides: tuple[str, ...]
    options: Mapping[str, object]


def open_ocr_config(config: Model) -> ConfigFile | None:
    """The configuration of a name of configs/ocr or of a file, as it stands; None of a folder and of other names.

    Raises: ConfigError: the file cannot be read.
    """
    path = Path(config)
    if path.is_dir() or (path.suffix not in (".yml", ".yaml") and str(config) not in config_names("ocr")):
        return None
    return open_config(config, domain="ocr")


def read_document_config(config: Model | ConfigFile, settings: Sequence[str] = ()) -> DocumentConfig | None:
    """The configuration of a name of configs/ocr/structure or of a file; None where it is one of another kind, an
    artifact's folder, or unknown.

    Args:
        config: Its name or path, or what `open_ocr_config` has read.
        settings: Changes such as "pipeline.layout_model=PP-DocLayout-S".

    Raises:
        ConfigError: it does not bind; file and line are named.
    """
    file = config if isinstance(config, ConfigFile) else open_ocr_config(config)
    if file is None or not _is_of_documents(
        file.plain
    ):  # settings of a recogniser are read where it is opened
        return None
    file = file.with_settings(settings)
    bound = file.experiment.pipeline
    if not isinstance(bound, DocumentPipeline):
        raise ConfigError(
            "settings leave no document reader",
            where="pipeline",
            received="no pipeline" if bound is None else type(bound).__name__,
            allowed=DocumentPipeline.__name__,
            fix="leave them out, or name another config",
        )
    if file.experiment.weights is not None:
        raise ConfigError(
            "a document reader has no weights of its own",
            where=file.path,
            received=f"weights: {file.experiment.weights}",
            fix="name the models that it opens: pipeline.model, pipeline.layout_model, …",
        )
    own = ("type", "model", "overrides")
    given = {name: value for name, value in file.plain["pipeline"].items() if name not in own}
    return DocumentConfig(bound.model, bound.overrides, {name: getattr(bound, name) for name in given})


def require_document_config(config: Model) -> DocumentConfig:
    """As `read_document_config`. Raises: ConfigError, where it is none of documents."""
    found = read_document_config(config)
    if found is None:
        known = sorted(path.stem for path in config_names("ocr").values() if path.parent.name == "structure")
        raise ConfigError(
            "this is no configuration of a document reader",
            where="config",
            received=os.fspath(config),
            allowed=f"{', '.join(known)}, or a file (.yml) with pipeline: {{type: DocumentPipeline, ...}}",
            fix="what reads text alone is named by `model`",
        )
    return found


def _is_of_documents(plain: Mapping[str, JSON]) -> bool:
    pipeline = plain.get("pipeline")
    return isinstance(pipeline, dict) and pipeline.get("type") == DocumentPipeline.__name__
