"""Which domains there are: their names, and the packages that hold their components.

A domain is announced by an entry point of the group `oar.domains`, so a package outside of this repository adds one
without a change here:

    [project.entry-points."oar.domains"]
    name = "package.domain:DOMAIN"

Components of a package that is no domain (models, data sets, … for existing domains) are announced by an entry point of
the group `oar.components`, whose value is the package. A clone that is not installed is read from its pyproject.toml.
"""

from __future__ import annotations

import functools
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

from framework.core.errors import ConfigError, did_you_mean

DOMAINS, COMPONENTS, COMMANDS = "oar.domains", "oar.components", "oar.commands"
_PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


@functools.cache
def _announced(group: str) -> dict[str, str]:
    """Entry points by name; those of this clone's pyproject.toml win over those of an installation."""
    found = {point.name: point.value for point in entry_points(group=group)}
    if _PYPROJECT.is_file():
        project = tomllib.loads(_PYPROJECT.read_text(encoding="utf-8")).get("project", {})
        found |= project.get("entry-points", {}).get(group, {})
    return dict(sorted(found.items()))


def domain_objects() -> dict[str, str]:
    """Name of each domain to the place of its object, such as "package.domain:DOMAIN"."""
    return _announced(DOMAINS)


def command_objects() -> dict[str, str]:
    """Name of each domain that adds to the command line to the place of what it adds."""
    return _announced(COMMANDS)


def domain_packages() -> dict[str, str]:
    """Name of each domain to its package: that of the module which holds its object."""
    return {
        name: place.partition(":")[0].rpartition(".")[0] or place.partition(":")[0]
        for name, place in domain_objects().items()
    }


def component_packages() -> tuple[str, ...]:
    """Packages of other distributions whose components every domain can use."""
    return tuple(_announced(COMPONENTS).values())


def packages_of_domain(name: str) -> tuple[str, ...]:
    """The packages that a domain's configurations see: its own, the zoo, the framework, and those of other
    distributions.

    Raises:
        ConfigError: there is no such domain.
    """
    known = domain_packages()
    if name not in known:
        raise ConfigError(
            "unknown domain",
            received=repr(name),
            allowed=", ".join(known) or "none: run `pip install -e .` in the clone",
            fix=did_you_mean(name, known),
        )
    return tuple(dict.fromkeys((known[name], "zoo", "framework", *component_packages())))
