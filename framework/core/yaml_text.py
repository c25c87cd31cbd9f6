"""YAML of files from outside: read fast, and refused where it is nested so deeply that the reader would crash, or where
aliases of aliases make a short text stand for millions of values."""

from __future__ import annotations

import re

import yaml

from framework.core.bounded import DEPTH

MAX_VALUES = 1_000_000
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_LONG_NUMBER = re.compile(r"[-+0-9_.:]{4300,}")  # 1:1:1… is a number of YAML, which takes minutes to compute


class YAMLLimitError(yaml.MarkedYAMLError):
    """YAML that is nested too deeply, or stands for too many values."""


def find_loader(*, scalars: bool = True) -> type[yaml.SafeLoader]:
    """libyaml's loader where it is there, else Python's; without `scalars` every scalar stays text."""
    names = ("CSafeLoader", "SafeLoader") if scalars else ("CBaseLoader", "BaseLoader")
    return getattr(yaml, names[0], None) or getattr(yaml, names[1])


def check_yaml(
    text: str, max_values: int = MAX_VALUES, *, loader: type[yaml.SafeLoader] | None = None
) -> None:
    """Find out whether one YAML document can be built, without building it.

    libyaml's reader for Python calls itself for every level, and ends the process at some thousands of them.

    Args:
        loader: Reads the text; libyaml's where it is there by default.

    Raises:
        yaml.YAMLError: the text is not YAML, nested more than 100 levels deep, has more than `max_values` values once
            its aliases are expanded, or a number of thousands of digits.
    """
    sizes: dict[str, int] = {}  # values below each anchor, itself included
    open_nodes: list[tuple[str | None, int]] = []  # anchor, values before it
    total = 0
    for event in yaml.parse(text, Loader=loader or find_loader()):
        if isinstance(event, _CLOSING):
            anchor, before = open_nodes.pop()
            if anchor is not None:
                sizes[anchor] = total - before
        elif isinstance(event, yaml.AliasEvent):
            total += sizes.get(event.anchor, 1)
        elif isinstance(event, yaml.ScalarEvent):
            total += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        elif isinstance(event, _OPENING):
            open_nodes.append((event.anchor, total))
            total += 1
        problem = None
        if len(open_nodes) > DEPTH:
            problem = f"nested more than {DEPTH} levels deep"
        elif total > max_values:
            problem = f"more than {max_values:,} values once its aliases are expanded"
        elif isinstance(event, yaml.ScalarEvent) and _LONG_NUMBER.match(event.value):
            problem = f"a number of {len(event.value):,} characters"
        if problem is not None:
            raise YAMLLimitError(problem=problem, problem_mark=event.start_mark)


def load_yaml(text: str, *, scalars: bool = True) -> object:
    """The value of one YAML document.

    Args:
        scalars: Numbers, booleans and nulls are such; else every scalar stays text.

    Raises:
        yaml.YAMLError: as `check_yaml`, or a tag that is no plain value.
    """
    check_yaml(text)
    try:
        return yaml.load(text, Loader=find_loader(scalars=scalars))
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
    ) as error:  # of a wrong `!!int`, date, …
        raise yaml.YAMLError(f"a value that cannot be made: {error}") from None
