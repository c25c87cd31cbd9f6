"""The rows that say what references are run on: YAML files of this folder, and tables REFERENCES of golden tests."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
DEFAULTS = {"eval": "eval.{}", "save": ["count"]}  # of a table REFERENCES


@functools.cache
def load(name: str) -> Any:
    """What a YAML file of this folder holds."""
    return yaml.safe_load(Path(__file__).with_name(f"{name}.yml").read_text(encoding="utf-8"))


def networks() -> dict[str, dict[str, dict[str, Any]]]:
    """{name: {case: row}} of references.yml and of the tables of tests."""
    found = {name: network_table(name) for name in load("references") if not name.startswith("_")}
    for path in sorted(GOLDEN.glob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
            if isinstance(target, ast.Name) and target.id == "REFERENCES":
                rows = ast.literal_eval(node.value)  # type: ignore[union-attr]
                name = path.stem.removeprefix("test_")
                found[name] = {case: {**DEFAULTS, **row} for case, row in rows.items()}
    return found


def network_table(name: str) -> dict[str, dict[str, Any]]:
    """{case: row} of a table of references.yml."""
    table = load("references")[name]
    return {case: {**table.get("all", {}), **row} for case, row in table["cases"].items()}
