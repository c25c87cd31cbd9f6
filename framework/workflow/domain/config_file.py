"""A configuration file that was read: what goes from a command to an experiment and an artifact, in one reading."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from framework.config import Tree, packages_of, resolved
from framework.config.load import merge, read
from framework.io.checkpoint import config_name
from framework.workflow.domain.domain import Model, config_names, find_config
from framework.workflow.domain.other_toolkits import refuse_foreign_config

if TYPE_CHECKING:  # what runs artifacts that were made before binds nothing
    from framework.engine.experiment import Experiment


@dataclass(frozen=True)
class ConfigFile:
    """A file as it was read once, and the overrides of the call.

    Attributes:
        path: Of the file.
        source: What it says with its bases, without the overrides.
        settings: Overrides, as `-o` of the tools.
    """

    path: Path
    source: Tree
    settings: tuple[str, ...] = ()

    def with_settings(self, settings: Sequence[str]) -> ConfigFile:
        """The same file with these overrides alone."""
        return (
            self if tuple(settings) == self.settings else dataclasses.replace(self, settings=tuple(settings))
        )

    @functools.cached_property
    def tree(self) -> Tree:
        """With the overrides. Raises: ConfigError, where one cannot be read."""
        return merge(self.source, self.settings)

    @functools.cached_property
    def plain(self) -> dict[str, Any]:
        """As plain mappings, lists and scalars."""
        return self.tree.plain()

    @functools.cached_property
    def text(self) -> str:
        """As YAML, resolved."""
        return resolved(self.tree)

    @functools.cached_property
    def experiment(self) -> Experiment:
        """As dataclasses. Raises: ConfigError with all that is wrong in it."""
        from framework.engine.experiment import bind_experiment

        return bind_experiment(self.tree)

    @property
    def name(self) -> str:
        """Of the config or run."""
        return config_name(self.path)

    @property
    def domain(self) -> str:
        """The domain that it names. Raises: ConfigError."""
        packages_of(self.tree)  # which knows what is wrong with the key
        return str(self.tree.value["domain"].value)


def open_config(
    config: Model | ConfigFile, settings: Sequence[str] = (), domain: str | None = None
) -> ConfigFile:
    """The configuration of a name or a path; one that was read already, with the further overrides.

    Raises:
        InputError: there is no such name, in this domain if one is given. ConfigError: the file cannot be read.
    """
    if isinstance(config, ConfigFile):
        return config.with_settings((*config.settings, *settings))
    path = find_config(config, domain)
    source = read(path)
    if "domain" not in source.value:
        refuse_foreign_config(source.value, path, config_names(domain))
    return ConfigFile(path, source, tuple(settings))
