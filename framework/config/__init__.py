"""YAML configurations, bound to frozen dataclasses once, where they are read. Imports no jax.

    tree = load("configs/segmentation/pp_liteseg/x.yml", ["data.train.batch_size=8"])
    experiment = bind(tree, Experiment, packages_of(tree))

A file is read by `load` (bases, overrides), its values are bound by `bind` (types, components by name), components are
made known by `register`, and `dump`, `resolved` and `schema` write text. The sections of a file are the fields of
`framework.engine.experiment.Experiment`.
"""

from framework.config.bind import bind, packages_of
from framework.config.domains import domain_objects, domain_packages, packages_of_domain
from framework.config.dump import dump, plain, schema
from framework.config.load import load, override, resolved
from framework.config.registry import KINDS, Entry, Kind, available, build, find, register
from framework.config.tree import Tree, Where, from_plain, parse

__all__ = [
    "KINDS",
    "Entry",
    "Kind",
    "Tree",
    "Where",
    "available",
    "bind",
    "build",
    "domain_objects",
    "domain_packages",
    "dump",
    "find",
    "from_plain",
    "load",
    "override",
    "packages_of",
    "packages_of_domain",
    "parse",
    "plain",
    "register",
    "resolved",
    "schema",
]
