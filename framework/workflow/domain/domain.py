"""What a domain adds to the workflow: one frozen object, announced by an entry point (framework/config/domains.py)."""

from __future__ import annotations

import functools
import importlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import framework
from framework.config.domains import domain_objects, packages_of_domain
from framework.core.errors import ConfigError, HubError, InputError, did_you_mean
from framework.export import Artifact
from framework.inference.runtime import Runtime
from framework.io.data_check import Observe, Report, validate_samples
from framework.io.dataset import Dataset
from framework.workflow.domain.predictor import Predictor

if TYPE_CHECKING:  # what runs artifacts loads no training code
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer
    from framework.workflow.data.lines import LineOptions
    from framework.workflow.domain.outputs import Report as FileReport
    from framework.workflow.files.documents import DocumentConverter

log = logging.getLogger("oar")
Model = str | os.PathLike[str]
"""A model by the name of its config, by a config file, or by an artifact's folder."""
ROOT = Path(framework.__file__).resolve().parents[1]
O = TypeVar("O")  # noqa: E741


@dataclass(frozen=True)
class NoOptions:
    """Of a domain whose predictor has none."""


class DefaultName(str):
    """The name of a model that nobody asked for by name: what a domain takes where none is given."""


class Domain(ABC, Generic[O]):
    """One object a package; it holds no state. What is not overridden is the same for every domain.

    Attributes:
        name: `domain:` of its configurations, which lie in configs/<name>.
        options: The frozen dataclass of its predictor's options; see framework/workflow/domain/options.py.
        document_options: That of `oar document`'s options, of a domain that reads documents.
    """

    name: ClassVar[str]
    options: ClassVar[type] = NoOptions
    document_options: ClassVar[type | None] = None

    @abstractmethod
    def open(self, artifact: Artifact, options: O, runtime: Runtime) -> Predictor[Any, Any, Any]:
        """The predictor of one of its artifacts.

        Raises:
            FormatError: the artifact is none of this domain's.
        """

    def open_documents(
        self, model: Model | None, options: Any, runtime: Runtime, overrides: Sequence[str] = ()
    ) -> DocumentConverter:
        """What reads documents with `model` (None: the domain's usual one), of a domain that has `document_options`.

        Raises:
            ConfigError: this domain reads none.
        """
        raise ConfigError("this domain reads no documents", where=self.name)

    def read_document_config(
        self, config: Model, settings: Sequence[str] = ()
    ) -> tuple[Model, Sequence[str], Mapping[str, Any]] | None:
        """The model, settings of it, and options of `document_options` that a configuration of documents stands for.
        None: this is one of another kind, or no configuration.

        Raises:
            ConfigError: it cannot be bound.
        """
        return None

    def score_documents(self, truth: Path, folder: Path) -> tuple[dict[str, float], list[dict[str, Any]]]:
        """Scores of documents that were read into a folder, against a file of truth; and a row for each page.

        Raises:
            ConfigError: this domain reads none.
        """
        raise ConfigError("this domain reads no documents", where=self.name)

    def write_lines(
        self,
        source: Path,
        output: Path,
        options: LineOptions,
        model: Model | None,
        runtime: Runtime,
        overrides: Sequence[str] = (),
    ) -> FileReport:
        """Cut lines of text of the pages in `source` into the empty folder `output`; see
        framework/workflow/data/lines.py.

        Args:
            model: What reads them; None: the domain's usual one.

        Raises:
            ConfigError: this domain reads no text.
        """
        raise ConfigError("this domain cuts no lines of text", where=self.name)

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, Any]:
        """What an artifact's config holds besides: palette, skeleton, …"""
        return {}

    def describe_for_paddle(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Keys that programs written for Paddle's infer_cfg.yml read, from those of an artifact."""
        return {"mode": "xla", "arch": config["model"]["type"], "label_list": config["labels"]}

    def companion_files(self, config: Mapping[str, Any]) -> Mapping[str, bytes]:
        """Files of an artifact that Paddle's toolkits write beside the program, by name."""
        return {}

    def prepare_export(self, experiment: Experiment) -> Experiment:
        """The experiment as its program is made; `predict.transforms` are settled then."""
        return experiment

    def find_alias(self, name: str, options: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        """The config's name that a task's name such as "ner" stands for, and the options that come with it."""
        return name, options

    def default_model(self, options: Mapping[str, Any]) -> str | None:
        """The config's name that options alone stand for, such as a language; None where they name no model."""
        return None

    def fallback_model(
        self, model: Model, settings: Sequence[str], options: Mapping[str, Any], error: HubError
    ) -> str | None:
        """The config's name that takes the place of a model whose weights cannot be had; the log warns of it. None:
        there is none, and the error stands.

        Args:
            model: As it was asked for: a `DefaultName` where nobody named one.
            settings: Overrides ("a.b=c") of the call.
        """
        return None

    def choose_settings(
        self, config: Path, plain: Mapping[str, Any], options: Mapping[str, Any]
    ) -> Sequence[str]:
        """More settings ("a.b=c") of a configuration that options of the predictor ask for.

        Args:
            config: Its file.
            plain: What it says, with the settings of the call.
        """
        return ()

    def import_folder(self, folder: Path) -> Artifact | None:
        """The artifact of a folder that another toolkit wrote, or None where this is no such folder."""
        return None

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        """What is wrong with a data set; `observe` is called with every sample.

        Raises:
            OarError: it cannot be read at all.
        """
        return validate_samples(dataset, observe)

    def split_settings(self, settings: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Overrides ("a.b=c") that change the programs, and those that `apply_settings` can change afterwards."""
        return tuple(settings), ()

    def apply_settings(self, artifact: Artifact, settings: Sequence[str]) -> Artifact:
        """The artifact with settings of `split_settings`' second kind."""
        return artifact

    @property
    def packages(self) -> tuple[str, ...]:
        """Where its components are."""
        return packages_of_domain(self.name)

    @property
    def configs(self) -> Path:
        """The folder of its configurations: configs/<name> of this clone or wheel, or `configs` in its own package."""
        for folder in (ROOT / "configs", ROOT / "framework" / "configs"):
            if (folder / self.name).is_dir():
                return folder / self.name
        module = importlib.import_module(type(self).__module__)
        return Path(str(module.__file__)).parent / "configs"


@functools.cache
def find_domain(name: str) -> Domain[Any]:
    """The domain of this name. Raises: ConfigError, where there is none."""
    packages_of_domain(name)
    module, _, attribute = domain_objects()[name].partition(":")
    found = getattr(importlib.import_module(module), attribute)
    if not isinstance(found, Domain) or found.name != name:
        raise ConfigError(
            "the entry point leads to no domain of this name",
            where=f"{module}:{attribute}",
            received=repr(found),
            allowed=f"a framework.workflow.Domain whose name is {name!r}",
        )
    return found


def all_domains() -> Iterator[Domain[Any]]:
    """Every domain, by name."""
    return (find_domain(name) for name in domain_objects())


def document_domain() -> Domain[Any]:
    """The domain that reads documents."""
    return next(found for found in all_domains() if found.document_options is not None)


def config_names(domain: str | None = None) -> dict[str, Path]:
    """The configurations of one domain, or of all, by name."""
    owners = all_domains() if domain is None else (find_domain(domain),)
    return {path.stem: path for owner in owners for path in sorted(owner.configs.rglob("*.yml"))}


def find_config(model: Model, domain: str | None = None) -> Path:
    """The configuration file of a name or a path.

    A path such as configs/dino/dino_r50_4scale_1x_coco.yml of PaddleDetection means the file of that name here, unless
    there is a file at the path itself.

    Raises: InputError with the known names.
    """
    path = Path(model)
    if path.suffix in (".yml", ".yaml"):
        if path.is_file() or path.parts[:1] != ("configs",):
            return path
        ours = config_names(domain).get(path.stem)
        if ours is not None:
            log.info("%s is %s here", path.as_posix(), ours)
        return ours or path
    known = config_names(domain)
    if str(model) not in known:
        raise InputError(
            "there is no such model",
            received=repr(str(model)),
            allowed=f"{', '.join(known)}; a configuration file (.yml); or an artifact's folder",
            fix=did_you_mean(str(model), known),
        )
    return known[str(model)]
