"""YAML configurations, bound to frozen dataclasses once, where they are read. Imports no jax.

    tree = load("resnet.yml", ["data.train.batch_size=8"])
    experiment = bind(tree, Experiment, packages_of(tree))

A file is read by `load` (bases, overrides), its values are bound by `bind` (types, components by name), components are
made known by `register`, and `dump`, `resolved` and `schema` write text. The sections of a file are the fields of
`framework.engine.experiment.Experiment`.
"""

from framework.config.bind import bind as bind
from framework.config.bind import packages_of as packages_of
from framework.config.domains import domain_objects as domain_objects
from framework.config.domains import domain_packages as domain_packages
from framework.config.domains import packages_of_domain as packages_of_domain
from framework.config.dump import dump as dump
from framework.config.dump import plain as plain
from framework.config.dump import schema as schema
from framework.config.load import load as load
from framework.config.load import override as override
from framework.config.load import resolved as resolved
from framework.config.registry import KINDS as KINDS
from framework.config.registry import Entry as Entry
from framework.config.registry import Kind as Kind
from framework.config.registry import available as available
from framework.config.registry import build as build
from framework.config.registry import find as find
from framework.config.registry import register as register
from framework.config.tree import Tree as Tree
from framework.config.tree import Where as Where
from framework.config.tree import from_plain as from_plain
from framework.config.tree import parse as parse
