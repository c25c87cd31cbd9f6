"""YAML text to values that remember where they were written, and back.

The scalars are those of the YAML 1.2 core schema: `1e-4` is a float, only `true` and `false` are booleans (`on`, `off`,
`yes` and `no` are strings), `010` is ten, dates are strings. Mapping keys are always text, so `0: cat` has the key "0".
Anchors and aliases work; tags other than the core ones, and YAML 1.1's merge key `<<`, do not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import yaml

from framework.core.errors import ConfigError
from framework.core.yaml_text import YAMLLimitError, check_yaml, find_loader

MAX_VALUES = 1_000_000  # aliases of aliases can make a file of one kilobyte expand without end
_EXPLAINED = 1 << 16  # characters: Python's reader has the better messages, at a hundredth of libyaml's speed
_SHOWN = 120
INHERITED = "_inherited_"
TYPE = "type"

_TAG = "tag:yaml.org,2002:"
_SCALARS = (  # tag, pattern, characters that a match can start with
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
)


@dataclass(frozen=True)
class Where:
    """A place in a source: `file:line:column`, counted from 1; line 0 stands for a source without lines."""

    source: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


@dataclass(frozen=True)
class Tree:
    """One value of a configuration and its place.

    `value` is None, a bool, int, float or str, a list of Trees or a dict from str to Tree. An entry of a mapping
    has the place of its key, an item of a list its own. Equality looks at values only.

    Attributes:
        meant_for: The `type` that stood beside this entry in an earlier file, where a later one changed it.
    """

    value: Any
    where: Where = field(compare=False)
    meant_for: str | None = field(default=None, compare=False)

    def plain(self) -> Any:
        """The value as ordinary dicts, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value


def from_plain(value: object, source: str = "<dict>") -> Tree:
    """The Tree of ordinary dicts, lists (or tuples) and scalars, which messages say are of `source`."""
    if isinstance(value, Mapping):
        value = {str(key): from_plain(child, source) for key, child in value.items()}
    elif isinstance(value, list | tuple):
        value = [from_plain(child, source) for child in value]
    return Tree(value, Where(source))


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: ClassVar[dict] = {}  # pyright: ignore[reportIncompatibleVariableOverride]


class _FastLoader(find_loader()):
    yaml_implicit_resolvers: ClassVar[dict] = {}  # pyright: ignore[reportIncompatibleVariableOverride]


class _Dumper(yaml.SafeDumper):
    """Quotes a string exactly when `_Loader` would read it as something else."""

    yaml_implicit_resolvers: ClassVar[dict] = {}  # pyright: ignore[reportIncompatibleVariableOverride]

    def ignore_aliases(self, data: object) -> bool:
        return True


for _tag, _pattern, _first in _SCALARS:
    for _class in (_Loader, _FastLoader, _Dumper):
        _class.add_implicit_resolver(_TAG + _tag, re.compile(rf"(?:{_pattern})\Z"), _first)


def write(value: object, *, flow: bool = False) -> str:
    """YAML text of plain values, keys in their order; `flow` puts all of it on one line, without a line end."""
    style, width = (True, float("inf")) if flow else (None, 110)
    text = yaml.dump(
        value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=style, width=width
    )
    # PyYAML closes a bare scalar with an end-of-document line.
    text = text.removesuffix("...\n")
    return text.rstrip("\n") if flow else text


def parse(text: str, source: str, *, lines: bool = True, old_scalars: bool = False) -> Tree:
    """The Tree of one YAML document; an empty document is null.

    Args:
        source: Names the text in messages.
        lines: Without them (a command-line value) line and column are left out of messages.
        old_scalars: Scalars are those of YAML 1.1, as `yaml.safe_dump` writes them; dates stay text.

    Raises:
        ConfigError: wrong syntax, a duplicate key, a tag, an alias that contains itself, more than 100 levels, or more
            than a million values once aliases are expanded.
    """
    reader = _Reader(source, lines, old_scalars)
    try:
        node = _compose(text, old_scalars)
        return reader.tree(node) if node is not None else Tree(None, reader.where(None))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        tab = mark is not None and "\t" in _line(text, mark.line)
        raise ConfigError(
            f"not valid YAML: {error.problem or error.context}",
            where=reader.where(mark),
            received=repr(_line(text, mark.line)[:_SHOWN]) if mark is not None else None,
            fix="indent with spaces: YAML allows no tabs there" if tab else None,
        ) from error
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        column = error.position - (before.rfind("\n") + 1) + 1
        raise ConfigError(
            "not valid YAML: a character that text cannot hold",
            where=Where(source, before.count("\n") + 1, column) if lines else Where(source),
            received=repr(text[error.position : error.position + 1]),
            allowed="printable characters, spaces and line ends",
        ) from error


_QUOTED = ("[", "{", "'", '"')  # what begins with these is YAML, or a mistake in it
_MARKS = ("#", "&", "*", "|", ">")  # of comments, anchors, aliases and blocks


def parse_value(text: str, source: str) -> Tree:
    """The Tree of one value of a command line: YAML, or the text as it stands where YAML makes nothing of it.

    A mark alone (`,` `|` `#`), white space alone, what begins with the mark of a comment, an anchor or a block, and
    ` #` in a text are no YAML here. A backslash with a t is a tab.

    Raises:
        ConfigError: a list, a mapping or a quoted text is not valid YAML; others as `parse`.
    """
    plain = text.strip()
    as_text = Tree("\t" if plain == r"\t" else plain or text, Where(source))
    is_mark = len(plain) == 1 and not plain.isalnum() and plain not in ("~", *_QUOTED)
    if text and (not plain or is_mark or plain == r"\t"):
        return as_text
    try:
        tree = parse(text, source, lines=False)
    except ConfigError as error:
        if isinstance(error, YAMLLimitError) or not isinstance(error.__cause__, yaml.YAMLError):
            raise
        if not plain.startswith(_QUOTED) and "\n" not in plain:
            return as_text
        raise ConfigError(
            error.problem,
            where=error.where,
            received=error.received,
            allowed=error.allowed,
            fix=error.fix or "put texts with such marks in quotes, and the whole in others for the shell",
        ) from error
    is_text = isinstance(tree.value, str) and not plain.startswith(_QUOTED)
    lost = plain.startswith(_MARKS) and (is_text or tree.value is None)
    return as_text if lost or (is_text and " #" in plain) else tree


def _compose(text: str, old_scalars: bool) -> yaml.Node | None:
    try:
        check_yaml(text, MAX_VALUES)
        return yaml.compose(text, Loader=find_loader() if old_scalars else _FastLoader)
    except YAMLLimitError:
        raise
    except yaml.YAMLError:
        if len(text) > _EXPLAINED:
            raise
    # Python's reader calls itself for each level too; libyaml 0.2.6 ends at 1,000 levels with a message of its own.
    check_yaml(text, MAX_VALUES, loader=yaml.SafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader if old_scalars else _Loader)


def _line(text: str, index: int) -> str:
    lines = text.splitlines()
    return lines[index] if index < len(lines) else ""


_constructor = yaml.constructor.SafeConstructor()
_OLD_SCALARS = {
    "bool": _constructor.construct_yaml_bool,
    "int": _constructor.construct_yaml_int,
    "float": _constructor.construct_yaml_float,
}


class _Reader:
    """Turns PyYAML's nodes into Trees."""

    def __init__(self, source: str, lines: bool, old_scalars: bool = False) -> None:
        self.source, self.lines, self.old_scalars = source, lines, old_scalars
        self.open: set[int] = set()

    def where(self, mark: yaml.Mark | None) -> Where:
        if not self.lines:
            return Where(self.source)
        return (
            Where(self.source, mark.line + 1, mark.column + 1)
            if mark is not None
            else Where(self.source, 1, 1)
        )

    def tree(self, node: yaml.Node, where: Where | None = None) -> Tree:
        """`where` is the place of the key; without one (a list item, the top) the node's own place is taken."""
        where = where or self.where(node.start_mark)
        if isinstance(node, yaml.ScalarNode):
            return Tree(self.scalar(node, where), where)
        if id(node) in self.open:
            raise ConfigError("an alias stands inside the value that it names", where=where)
        kind = "map" if isinstance(node, yaml.MappingNode) else "seq"
        if node.tag != _TAG + kind:
            raise self.tag_error(node, where)
        self.open.add(id(node))
        value = self.mapping(node) if kind == "map" else [self.tree(item) for item in node.value]
        self.open.discard(id(node))
        return Tree(value, where)

    def mapping(self, node: yaml.Node) -> dict[str, Tree]:
        entries: dict[str, Tree] = {}
        for key_node, value_node in node.value:
            where = self.where(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                raise ConfigError(
                    "a key must be text", where=where, received="a list or a mapping", allowed="a scalar"
                )
            key = key_node.value
            if key in entries:
                raise ConfigError(
                    f"duplicate key {key!r}",
                    where=where,
                    received=f"{key!r}, already at {entries[key].where}",
                )
            entries[key] = self.tree(value_node, where)
            if key == INHERITED and entries[key].value is not False:
                raise ConfigError(
                    f"wrong value of {INHERITED!r}",
                    where=where,
                    received=repr(value_node.value),
                    allowed="false",
                )
        return entries

    def scalar(self, node: yaml.ScalarNode, where: Where) -> str | int | float | bool | None:
        text, kind = node.value, node.tag.removeprefix(_TAG)
        try:
            if kind == "str" or (self.old_scalars and kind in ("timestamp", "value", "merge")):
                return text
            if kind == "null":
                return None
            if self.old_scalars and kind in _OLD_SCALARS:
                return _OLD_SCALARS[kind](node)
            if kind == "bool":
                return {"true": True, "false": False}[text.lower()]
            if kind == "int":
                return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))
            if kind == "float":
                return float(re.sub(r"\.(?=inf|nan)", "", text.lower()))
        except (ValueError, KeyError):
            raise ConfigError(f"not a YAML {kind}", where=where, received=repr(text)) from None
        raise self.tag_error(node, where)

    def tag_error(self, node: yaml.Node, where: Where) -> ConfigError:
        return ConfigError(
            "tags are not allowed in a configuration",
            where=where,
            received=node.tag.replace(_TAG, "!!"),
            allowed="plain values; a class is asked for by its registered name, `type: Name`",
            fix="a file of PaddleDetection is for its own programs: oar run tools/train.py -c FILE in a checkout of it"
            if node.tag.startswith("!")
            else None,
        )
