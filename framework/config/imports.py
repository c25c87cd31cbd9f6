"""The `imports:` of a configuration: users' own files and packages whose components it names.

    imports: [my_models.py, my_package]

A file is imported by its stem, with its folder on `sys.path`: processes that the DataLoader starts get the same path,
so they find the classes too. What it registers is found as everything else is.

Importing runs the file, so a configuration with `imports` is a program of whoever wrote it. One line of the log says so
where the configuration lies outside of the current folder; the `imports` of an artifact wait for the user's consent
(`framework.workflow.open`).
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterable
from pathlib import Path

from framework.config.tree import Tree
from framework.core.errors import ConfigError

IMPORTS = "imports"
_log = logging.getLogger("oar")


def import_components(tree: Tree, *, announced: bool = False) -> tuple[str, ...]:
    """Import what the key `imports` of a configuration lists; gives the names of the modules.

    Args:
        announced: The user was told, or asked, what runs.

    Raises:
        ConfigError: the key is no list of texts, there is no such file or module, or importing it fails.
    """
    node = tree.value.get(IMPORTS) if isinstance(tree.value, dict) else None
    if node is None or node.value is None:
        return ()
    items = node.value if isinstance(node.value, list) else [node]
    if not announced:
        for item in items:
            announce_foreign_imports(item.where.source, [str(item.value)])
    return tuple(_import(item) for item in items)


def announce_foreign_imports(source: str, names: Iterable[str]) -> None:
    """`announce_imports` of a configuration's file that lies outside of the current folder."""
    if Path(source).is_absolute() and not Path(source).is_relative_to(Path.cwd()):
        for name in names:
            announce_imports(source, name)


@functools.cache  # once a process for each
def announce_imports(source: str, *names: str) -> None:
    """One line of the log: `source`, a configuration or an artifact, makes this process run these files or modules."""
    what = ", ".join(
        str(Path(name).resolve()) if name.endswith(".py") else f"module {name}" for name in names
    )
    _log.warning("%s runs code by its `imports`: %s", source, what)


def _import(item: Tree) -> str:
    if not isinstance(item.value, str) or not item.value:
        raise ConfigError(
            "imports: wrong type",
            where=item.where,
            received=repr(item.plain()),
            allowed="a list of files (.py) and modules, such as [my_models.py, my_package]",
        )
    name = _file_module(item, Path(item.value)) if item.value.endswith(".py") else item.value
    try:
        importlib.import_module(name)
    except Exception as error:  # whatever the user's own code raises
        raise ConfigError(
            "imports: the module cannot be imported",
            where=item.where,
            received=f"{item.value}: {type(error).__name__}: {error}",
            allowed="a file (.py), relative to the configuration file, or a module that `import` finds",
        ) from error
    return name


def _file_module(item: Tree, path: Path) -> str:
    """The module name of a file, which `import` then finds first of all."""
    if not path.is_file():
        raise ConfigError("imports: there is no such file", where=item.where, received=str(path))
    name, folder = path.stem, str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
        importlib.invalidate_caches()
    loaded = getattr(sys.modules.get(name), "__file__", None) if name in sys.modules else None
    if name not in sys.modules:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
        loaded = spec.origin if spec else None
    if loaded is None or Path(loaded).resolve() != path.resolve():
        raise ConfigError(
            "imports: another module has the name of this file",
            where=item.where,
            received=f"{path}, and {loaded or 'a name that is no identifier'}",
            fix="rename the file",
        )
    return name
