"""YAML of files from outside: read fast, and refused where it is nested so deeply that the reader would crash."""

from __future__ import annotations

import yaml

_DEPTH = 100
"""No settings are as deep. libyaml's reader for Python calls itself for every level, and ends the process at some
thousands of them."""
_OPENING = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def load_yaml(text: str, *, scalars: bool = True) -> object:
    """The value of one YAML document.

    Args:
        scalars: Numbers, booleans and nulls are such; else every scalar stays text.

    Raises:
        yaml.YAMLError: the text is not YAML, has a tag that is no plain value, or is nested too deeply.
    """
    names = ("CSafeLoader", "SafeLoader") if scalars else ("CBaseLoader", "BaseLoader")
    loader = getattr(yaml, names[0], None) or getattr(yaml, names[1])
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > _DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"nested more than {_DEPTH} levels deep", problem_mark=event.start_mark
            )
    return yaml.load(text, Loader=loader)
