"""Upstream's names of weights in ours: the key `names` of `weights/*.yml`, data that a layer's `state_renames` reads.

names:
  SwinTransformer:                  # the class of the layer whose names these are
    '^head\\.fc\\.': head.          # a regular expression, and what takes its place: in this order, as re.sub does
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import yaml

from framework.core.bounded import SETTINGS, read_text
from framework.core.errors import ConfigError, did_you_mean
from framework.core.yaml_text import load_yaml

Rules = tuple[tuple[str, str], ...]


class Names(Sequence[tuple[str, str]]):
    """`state_renames = Names("zoo/weights/swin.yml", "SwinTransformer")`: read when a state dict has other names.

    Args:
        file: From the folder that holds the package, with forward slashes.
        layer: The key below `names`.
    """

    def __init__(self, file: str, layer: str) -> None:
        self.file, self.layer = file, layer

    @cached_property
    def rules(self) -> Rules:
        """Patterns and replacements. Raises: ConfigError: the file has none for the layer, or wrong ones."""
        package, _, rest = self.file.partition("/")
        spec = importlib.util.find_spec(package)
        folders = list((spec and spec.submodule_search_locations) or [])
        path = next((file for folder in folders if (file := Path(folder, rest)).is_file()), None)
        if path is None:
            raise ConfigError(
                "there is no such file of weights",
                where=f"names of {self.layer}",
                received=self.file,
                allowed="a package and a file in it, such as zoo/weights/swin.yml",
            )
        document = read_document(path)
        known = check_names(document.get("names", {}) if isinstance(document, dict) else {}, f"{path}: names")
        if self.layer not in known:
            raise ConfigError(
                "no names for this layer",
                where=f"{path}: names",
                received=self.layer,
                allowed=", ".join(known) or "none: the file has no `names`",
                fix=did_you_mean(self.layer, known),
            )
        return known[self.layer]

    @overload
    def __getitem__(self, index: int) -> tuple[str, str]: ...

    @overload
    def __getitem__(self, index: slice) -> Rules: ...

    def __getitem__(self, index: int | slice) -> tuple[str, str] | Rules:
        return self.rules[index]

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.rules)


def read_document(path: Path) -> Any:
    """What a file of the index says. Raises: ConfigError: it is no text, or no YAML."""
    try:
        return load_yaml(read_text(path, SETTINGS, "index of weights", ConfigError))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(
            "not well-formed YAML",
            where=f"{path}:{mark.line + 1}" if mark else path,
            received=getattr(error, "problem", None) or error,
        ) from None


def check_names(value: Any, where: str) -> dict[str, Rules]:
    """Rules by layer. Raises: ConfigError: not mappings of texts, a wrong expression, a group that it does not have."""
    if not isinstance(value, Mapping):
        raise ConfigError("a mapping is needed here", where=where, received=repr(value))
    return {str(layer): tuple(_rules(body, f"{where}.{layer}")) for layer, body in value.items()}


def _rules(body: Any, where: str) -> Iterator[tuple[str, str]]:
    if not isinstance(body, Mapping) or not body:
        raise ConfigError(
            "a mapping is needed here",
            where=where,
            received=repr(body),
            allowed="regular expressions of upstream's names, and what takes their place",
        )
    for pattern, replacement in body.items():
        if not isinstance(pattern, str) or not isinstance(replacement, str):
            raise ConfigError(
                "wrong type",
                where=where,
                received=f"{pattern!r}: {replacement!r}",
                allowed="two texts, in single quotes",
            )
        try:
            # With an alternative that fits nothing, so that the replacement is read as well.
            re.sub(f"(?:{pattern})|", replacement, "")
        except (re.error, IndexError) as error:
            raise ConfigError(
                "not a rule for names",
                where=where,
                received=f"{pattern!r}: {replacement!r}",
                allowed=r"a regular expression, and a text with its groups as \1, \2 …",
                fix=str(error),
            ) from None
        yield pattern, replacement
