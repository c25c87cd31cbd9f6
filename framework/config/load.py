"""Configuration files: YAML with bases and command-line overrides.

One order settles every question: the files named by `_base_` in their order (each after its own bases), then the file
itself, then the overrides. What comes later wins: mappings merge key by key, lists and scalars are replaced, and
`_inherited_: false` inside a mapping drops whatever earlier files put there. Where a later file or an override changes
the `type` of a component, the keys that fit the new type stay, and one line of the log names those that do not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from framework.config.bind import find_misfits, packages_of
from framework.config.imports import IMPORTS
from framework.config.tree import INHERITED, TYPE, Tree, Where, parse, parse_value, write
from framework.core.bounded import SETTINGS, read_bytes
from framework.core.errors import ConfigError, nearest

BASE = "_base_"
_COMMAND_LINE = "command line"
_log = logging.getLogger("oar")


def load(path: str | Path, overrides: Sequence[str] = ()) -> Tree:
    """Read a file, its bases and the overrides into one Tree.

    `_base_` is a path or a list of paths, relative to the file that names them. An override is `a.b.c=value`, the
    value in YAML, or a text where it is none (nothing after the `=` is null; see `parse_value`); it merges like a file,
    but for `a.b={}`, which empties a mapping as `a.b=[]` empties a list. Mappings that are missing on the way are made.
    A list item is reached by its index, from 0, or from -1 counted from the end (`data.train.transforms.-1.scale=[0.5,
    1.0]`); an override changes items and never adds one.

    Raises:
        ConfigError: with `file:line:column`, or with the override, for everything that cannot be read.
    """
    return merge(read(path), overrides)


def read(path: str | Path) -> Tree:
    """A file and its bases as they are written, for `merge`. Raises: ConfigError, as `load`."""
    return _load_file(Path(path).resolve(), ())


def merge(tree: Tree, overrides: Sequence[str]) -> Tree:
    """What `read` gave with the overrides, as `load` gives it. Raises: ConfigError, as `load`."""
    for text in overrides:
        tree = override(tree, text)
    return _without_misfits(_without_markers(tree))


def resolved(tree: Tree) -> str:
    """YAML text of the merged tree: what is written beside a checkpoint. `load` reads it back to an equal tree."""
    return write(tree.plain())


def _load_file(path: Path, chain: tuple[Path, ...], asked_at: Where | None = None) -> Tree:
    """`chain` holds the files that are being read, outermost first; `asked_at` is the `_base_` that named this one."""
    if path in chain:
        links = " -> ".join(_shown(link) for link in (*chain[chain.index(path) :], path))
        raise ConfigError(f"{BASE!r} goes in a circle", where=asked_at, received=links)
    tree = parse(_read(path, asked_at), _shown(path))
    if tree.value is None:
        raise ConfigError("the file is empty", where=tree.where, allowed="a mapping of sections")
    if not isinstance(tree.value, dict):
        raise ConfigError(
            "the top level is not a mapping",
            where=tree.where,
            received=f"a {'list' if isinstance(tree.value, list) else 'single value'}",
            allowed="a mapping of sections, such as `model: {...}`",
        )
    bases = _bases(tree.value.get(BASE))
    own = Tree({key: child for key, child in tree.value.items() if key != BASE}, tree.where)
    if IMPORTS in own.value:
        own.value[IMPORTS] = _absolute_files(own.value[IMPORTS], path.parent)
    merged: Tree | None = None
    for base in bases:
        loaded = _load_file(_resolve(path.parent / base.value, base), (*chain, path), base.where)
        merged = loaded if merged is None else _merge(merged, loaded)
    return own if merged is None else _merge(merged, own)


def _resolve(path: Path, base: Tree) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError) as error:  # zero bytes, links in a circle
        raise ConfigError(
            f"{BASE!r} does not name a file", where=base.where, received=f"{base.value[:80]!r}: {error}"[:200]
        ) from None


def _bases(tree: Tree | None) -> list[Tree]:
    if tree is None:
        return []
    items = tree.value if isinstance(tree.value, list) else [tree]
    for item in items:
        if not isinstance(item.value, str) or not item.value:
            raise ConfigError(
                f"{BASE!r} does not name a file",
                where=item.where,
                received=repr(item.plain()),
                allowed="a path or a list of paths, relative to this file",
            )
    return items


def _absolute_files(tree: Tree, folder: Path) -> Tree:
    """The `imports` of a file in `folder`, with whole paths: the resolved text is read from other folders."""
    if isinstance(tree.value, list):
        return Tree([_absolute_files(item, folder) for item in tree.value], tree.where)
    is_file = isinstance(tree.value, str) and tree.value.endswith(".py")
    return Tree((folder / tree.value).resolve().as_posix(), tree.where) if is_file else tree


def _read(path: Path, asked_at: Where | None) -> str:
    what = "base file" if asked_at else "configuration"
    try:
        data = read_bytes(path, SETTINGS, what, ConfigError)
    except ConfigError as error:
        near = None
        with contextlib.suppress(OSError):  # a name that is too long, a folder that may not be read
            near = (
                None if path.exists() else nearest(path.name, [entry.name for entry in path.parent.iterdir()])
            )
        raise ConfigError(
            error.problem,
            where=asked_at,
            received=_shown(path)[:300] + (f": {error.received}" if error.received else ""),
            allowed=error.allowed,
            fix=f"did you mean {_shown(path.with_name(near))}?" if near and near != path.name else error.fix,
        ) from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise ConfigError(
            "the file is not UTF-8",
            where=Where(_shown(path), line, column),
            received=f"the byte 0x{data[error.start]:02x}",
            fix="save it as UTF-8",
        ) from error


def _shown(path: Path) -> str:
    """The path as messages print it: from the working directory when it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _merge(earlier: Tree, later: Tree) -> Tree:
    if not (isinstance(earlier.value, dict) and isinstance(later.value, dict)) or INHERITED in later.value:
        return later
    merged = _mark_type_change(earlier.value, later.value.get(TYPE))
    for key, child in later.value.items():
        merged[key] = _merge(merged[key], child) if key in merged else child
    return Tree(merged, later.where)


def _mark_type_change(entries: dict[str, Tree], later: Tree | None) -> dict[str, Tree]:
    """A copy of a mapping's entries; where `later` is another type, those of files say which type they were for."""
    earlier = entries.get(TYPE)
    if earlier is None or later is None or not isinstance(earlier.value, str) or earlier == later:
        return dict(entries)
    return {
        key: child
        if key == TYPE or child.where.source.startswith(_COMMAND_LINE)
        else dataclasses.replace(child, meant_for=child.meant_for or earlier.value)
        for key, child in entries.items()
    }


def _without_misfits(tree: Tree) -> Tree:
    """Without the keys that were meant for another type and do not fit the one that is there now."""
    if not any(_changed_types(tree)):
        return tree
    try:
        packages = packages_of(tree)
    except ConfigError:  # binding says the same at its own place
        return tree
    return _drop_misfits(tree, "", packages)


def _changed_types(tree: Tree) -> Iterator[bool]:
    children = tree.value.values() if isinstance(tree.value, dict) else tree.value
    for child in children if isinstance(tree.value, dict | list) else ():
        yield child.meant_for is not None
        yield from _changed_types(child)


def _drop_misfits(tree: Tree, key: str, packages: tuple[str, ...]) -> Tree:
    if isinstance(tree.value, list):
        items = [_drop_misfits(item, f"{key}.{n}", packages) for n, item in enumerate(tree.value)]
        return dataclasses.replace(tree, value=items)
    if not isinstance(tree.value, dict):
        return tree
    entries, named = tree.value, tree.value.get(TYPE)
    if named is not None and isinstance(named.value, str):
        inherited = {name: child for name, child in entries.items() if child.meant_for is not None}
        if misfits := find_misfits(named.value, inherited, packages):
            _log.warning(
                f"{key}: the type is {named.value} ({named.where}); left out, as they were meant for "
                f"{inherited[misfits[0]].meant_for}: "
                + ", ".join(f"{name} ({entries[name].where})" for name in misfits)
            )
            entries = {name: child for name, child in entries.items() if name not in misfits}
    prefix = f"{key}." if key else ""
    kept = {name: _drop_misfits(child, prefix + name, packages) for name, child in entries.items()}
    return dataclasses.replace(tree, value=kept)


def _without_markers(tree: Tree) -> Tree:
    if isinstance(tree.value, dict):
        children = {key: _without_markers(child) for key, child in tree.value.items() if key != INHERITED}
        return dataclasses.replace(tree, value=children)
    if isinstance(tree.value, list):
        return dataclasses.replace(tree, value=[_without_markers(child) for child in tree.value])
    return tree


def override(tree: Tree, text: str) -> Tree:
    """`tree` with one override `a.b.c=value` merged in."""
    source = f"{_COMMAND_LINE} -o {text}"
    path, equals, value = text.partition("=")
    keys = path.strip().split(".")
    if not equals or not all(keys):
        raise ConfigError("not an override", where=source, received=repr(text), allowed="a.b.c=value")
    return _assign(tree, keys, 0, parse_value(value, source))


def _assign(tree: Tree | None, keys: list[str], depth: int, leaf: Tree) -> Tree:
    """`tree` with `leaf` merged in at `keys[depth:]`; only the leaf and the mappings made for it get its place."""
    if depth == len(keys):
        return leaf if tree is None or leaf.value == {} else _merge(tree, leaf)
    if tree is None or tree.value is None:
        tree = Tree({}, leaf.where)
    key, holder = keys[depth], ".".join(keys[:depth])
    if isinstance(tree.value, dict):
        children = _mark_type_change(tree.value, leaf if keys[depth:] == [TYPE] else None)
        children[key] = _assign(children.get(key), keys, depth + 1, leaf)
        return Tree(children, tree.where)
    if isinstance(tree.value, list):
        items, index = list(tree.value), _index(key, len(tree.value), holder, leaf.where)
        items[index] = _assign(items[index], keys, depth + 1, leaf)
        return Tree(items, tree.where)
    raise ConfigError(
        f"{holder} has no key {key!r}",
        where=leaf.where,
        received=f"{holder}: {tree.value!r}, a single value from {tree.where}",
        allowed="a mapping or a list",
        fix=f"replace it as a whole: -o {holder}=...",
    )


def _index(key: str, length: int, holder: str, where: Where) -> int:
    digits = key.removeprefix("-")
    if digits.isascii() and digits.isdigit() and -length <= int(key) < length:
        return int(key)
    raise ConfigError(
        f"{holder} is a list of {length} items and has no item {key!r}",
        where=where,
        received=key,
        allowed=f"0 to {length - 1}, or -1 to -{length} counted from the end"
        if length
        else "no index: it is empty",
    )
