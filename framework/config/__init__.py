"""YAML configurations, bound to frozen dataclasses once, at the door. Imports no jax.

    tree = load("configs/segmentation/pp_liteseg/x.yml", ["data.train.batch_size=8"])
    model = build(bind_section(tree, "model", Annotated[Any, Kind("model")]))

A file is read by `load` (bases, overrides), its values are bound by `bind` and `bind_section` (types, components by
name), components are made known by `register`, and `dump`, `resolved` and `schema` write text.
"""

from framework.config.bind import Domain, bind, bind_section, packages_of
from framework.config.dump import dump, schema
from framework.config.load import load, override, resolved
from framework.config.registry import KINDS, Entry, Kind, available, build, find, register
from framework.config.tree import Tree, Where, from_plain, parse

__all__ = [
    "KINDS",
    "Domain",
    "Entry",
    "Kind",
    "Tree",
    "Where",
    "available",
    "bind",
    "bind_section",
    "build",
    "dump",
    "find",
    "from_plain",
    "load",
    "override",
    "packages_of",
    "parse",
    "register",
    "resolved",
    "schema",
]
