"""What a domain adds to the workflow: one frozen object, announced by an entry point (framework/config/domains.py)."""

from __future__ import annotations

import difflib
import functools
import importlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import framework
from framework.config.domains import domain_objects, packages_of_domain
from framework.core.errors import ConfigError, InputError, did_you_mean
from framework.core.types import JSON
from framework.export import Artifact
from framework.hub import plain_name
from framework.inference.runtime import Runtime
from framework.io.data_check import Observe, Report, validate_samples
from framework.io.dataset import Dataset
from framework.workflow.domain.predictor import AnyPredictor

if TYPE_CHECKING:  # what runs artifacts loads no training code
    from framework.engine.experiment import Experiment
    from framework.nn.layer import Layer

log = logging.getLogger("oar")
Model = str | os.PathLike[str]
"""A model by the name of its config, by a config file, or by an artifact's folder."""
ROOT = Path(framework.__file__).resolve().parents[1]
O = TypeVar("O")  # noqa: E741
C = TypeVar("C")


@dataclass(frozen=True)
class NoOptions:
    """Of a domain whose predictor has none."""


class DefaultName(str):
    """The name of a model that nobody asked for by name: what a domain takes where none is given."""


class Domain(ABC, Generic[O]):
    """One object a package; it holds no state. What is not overridden is the same for every domain.

    Verbs and flags that it adds to the command `oar` are announced apart: framework/config/command_line.py.

    Attributes:
        name: `domain:` of its configurations, which lie in configs/<name>.
        options: The frozen dataclass of its predictor's options; see framework/workflow/domain/options.py.
        suite: The suite of Paddle whose names its weights get in .pdparams; None stands for "paddleclas".
        program_modules: Modules, and packages with all below them, that decide about what its bundled programs compute.
        capabilities: What else it can do: objects of the classes of framework/workflow/domain/capabilities.py.
    """

    name: ClassVar[str]
    options: ClassVar[type] = NoOptions
    suite: ClassVar[str | None] = None
    program_modules: ClassVar[tuple[str, ...]] = ()
    capabilities: tuple[object, ...] = ()

    @abstractmethod
    def open(self, artifact: Artifact, options: O, runtime: Runtime) -> AnyPredictor:
        """The predictor of one of its artifacts.

        Raises:
            FormatError: the artifact is none of this domain's.
        """

    def describe(self, experiment: Experiment, model: Layer, labels: tuple[str, ...]) -> Mapping[str, JSON]:
        """What an artifact's config holds besides: palette, skeleton, …; and keys for Paddle's programs that differ."""
        return {}

    def check_dataset(self, dataset: Dataset, observe: Observe) -> Report:
        """What is wrong with a data set; `observe` is called with every sample.

        Raises:
            OarError: it cannot be read at all.
        """
        return validate_samples(dataset, observe)

    def capability(self, kind: type[C]) -> C | None:
        """Its capability of this class, if it has one."""
        return next((one for one in self.capabilities if isinstance(one, kind)), None)

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
    domain = getattr(importlib.import_module(module), attribute)
    if not isinstance(domain, Domain) or domain.name != name:
        raise ConfigError(
            "the entry point leads to no domain of this name",
            where=f"{module}:{attribute}",
            received=repr(domain),
            allowed=f"a framework.workflow.Domain whose name is {name!r}",
        )
    return domain


def all_domains() -> Iterator[Domain[Any]]:
    """Every domain, by name."""
    return (find_domain(name) for name in domain_objects())


def find_capabilities(kind: type[C]) -> Iterator[C]:
    """The capabilities of this class of all domains."""
    return (found for domain in all_domains() if (found := domain.capability(kind)) is not None)


def config_names(domain: str | None = None) -> dict[str, Path]:
    """The configurations of one domain, or of all, by name."""
    owners = all_domains() if domain is None else (find_domain(domain),)
    return {path.stem: path for owner in owners for path in sorted(owner.configs.rglob("*.yml"))}


def find_config(model: Model, domain: str | None = None) -> Path:
    """The configuration file of a name or a path.

    A path such as configs/dino/dino_r50_4scale_1x_coco.yml of PaddleDetection means the file of that name here, unless
    there is a file at the path itself. In a name the case of letters, `_`, `-` and `.` do not count.

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
    names = config_names(domain)
    if str(model) not in names:
        spelled = {plain_name(name): name for name in names}.get(plain_name(str(model)))
        if spelled is not None and not path.is_file():
            return names[spelled]
        near = difflib.get_close_matches(str(model), names, n=8, cutoff=0.4)
        some = f", such as {', '.join(near)}" if near else ""
        is_path = len(path.parts) > 1
        if path.is_file():
            problem = "this file is no model"
        else:
            problem = "unknown model: there is no such file or folder" if is_path else "unknown model"
        raise InputError(
            problem,
            received=repr(str(model)),
            allowed=f"one of {len(names)} names{some} (oar models names lists them); a configuration file (.yml); "
            "or an artifact's folder",
            fix="check the path" if is_path and not path.is_file() else did_you_mean(str(model), names),
        )
    return names[str(model)]
