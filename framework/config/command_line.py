"""What domains add to the command `oar`: verbs of their own, and flags of the verbs that all domains share.

A package announces its `CommandLine` by an entry point of the group `oar.commands`, apart from the domain itself, whose
module loads what runs models and is too slow for `oar --help`:

    [project.entry-points."oar.commands"]
    name = "package.commands:COMMANDS"
"""

from __future__ import annotations

import argparse
import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from framework.config.domains import command_objects


@dataclass(frozen=True)
class Verb:
    """A command: the module with its `main(argv) -> exit status`, imported when it is called, and what it does."""

    module: str
    help: str
    aliases: tuple[str, ...] = ()
    """Names of Paddle's tools for the same."""


@dataclass(frozen=True)
class Flags:
    """Flags of a command that all domains share.

    Attributes:
        add: Adds them to the parser, or to the group of it that says which model is meant.
        changes: The overrides ("a.b=c") of the config that the parsed flags stand for. Raises: ConfigError.
        run: Does what the flags ask for in place of the command; returns the exit status, or None where they do not.
        select: Of a command that lists entries by name: those that the flags ask for.
    """

    add: Callable[[argparse.ArgumentParser, Any], None]
    changes: Callable[[argparse.Namespace], tuple[str, ...]] = lambda args: ()
    run: Callable[[argparse.Namespace], int | None] = lambda args: None
    select: Callable[[argparse.Namespace, Mapping[str, Any]], Mapping[str, Any]] = lambda args, entries: (
        entries
    )


@dataclass(frozen=True)
class CommandLine:
    """What one domain adds. A verb "data lines" is a command of `oar data`; flags stand under the command's name."""

    verbs: Mapping[str, Verb] = field(default_factory=dict)
    flags: Mapping[str, Flags] = field(default_factory=dict)


@functools.cache
def _command_lines() -> tuple[CommandLine, ...]:
    objects = (where.partition(":") for where in command_objects().values())
    return tuple(getattr(importlib.import_module(module), attribute) for module, _, attribute in objects)


def find_verbs(command: str = "") -> dict[str, Verb]:
    """The domains' verbs by name: those of `oar`, or those of one of its commands."""
    prefix = f"{command} " if command else ""
    return {
        name.removeprefix(prefix): verb
        for line in _command_lines()
        for name, verb in line.verbs.items()
        if name.startswith(prefix) and " " not in name.removeprefix(prefix)
    }


def find_flags(command: str) -> list[Flags]:
    """The domains' flags of a command."""
    return [line.flags[command] for line in _command_lines() if command in line.flags]
