"""The tables of docs/paddle_api.md: which public names of Paddle the core has, and what to write for the others."""

from __future__ import annotations

import importlib
from pathlib import Path

import yaml

from framework.core.errors import ForeignNameError
from framework.core.foreign_names import TABLES

NAMES = Path(__file__).with_name("paddle_names.yml")
# Where a module of Paddle stands in the core, if it is not framework.<name>.
ELSEWHERE = {"regularizer": "framework.optimizer"}


def paddle_names() -> dict[str, list[str]]:
    """{module: its public names} of paddle_names.yml."""
    return {module: names.split() for module, names in yaml.safe_load(NAMES.read_text("utf-8")).items()}


def missing_names(module: str, names: list[str]) -> dict[str, str]:
    """{name that the core has not: what to write instead, or why it is not there}.

    Raises:
        KeyError: a name neither exists nor has a hint.
    """
    owner = importlib.import_module(ELSEWHERE.get(module, f"framework.{module}"))
    hints = {}
    for name in names:
        try:
            getattr(owner, name)
        except ForeignNameError as error:
            hints[name] = str(error.fix)
        except AttributeError:
            raise KeyError(f"paddle.{module}.{name}") from None
    return hints


def names_table() -> str:
    """One row a module: how many names are there, and the others with what to write."""
    rows = ["| paddle | names | in the core | others: what to write |", "| --- | --- | --- | --- |"]
    for module, names in paddle_names().items():
        groups: dict[str, list[str]] = {}
        for name, hint in missing_names(module, names).items():
            groups.setdefault(_cell(hint), []).append(f"`{name}`")
        others = "<br>".join(f"{', '.join(missing)}: {hint}" for hint, missing in groups.items())
        there = len(names) - sum(map(len, groups.values()))
        rows.append(f"| `{module}` | {len(names)} | {there} | {others} |")
    return "\n".join(rows) + "\n"


def _words(title: str) -> list[str]:
    groups: dict[str, list[str]] = {}
    for name, hint in TABLES[title].items():
        groups.setdefault(_cell(hint), []).append(f"`{name}`")
    return [f"| {title} | {', '.join(names)} | {hint} |" for hint, names in groups.items()]


def words_table() -> str:
    """Names and arguments of other frameworks, each with what to write."""
    rows = ["| of | typed | write |", "| --- | --- | --- |"]
    for title in (
        "layer",
        "parameter",
        "optimizer",
        "array",
        "argument of a layer",
        "argument of an optimizer",
    ):
        rows += _words(title)
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
