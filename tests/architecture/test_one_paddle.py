"""What computes stands once: the core and `framework/paddle` write few classes of one name, and docs say which."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
# May get shorter, not longer. docs/architecture.md says of each why both are there.
PAIRS = {
    ("framework/autograd/py_layer.py", "framework/paddle/autograd/py_layer.py"),
    ("framework/engine/callbacks.py", "framework/paddle/hapi/callbacks.py"),
    ("framework/io/sampler.py", "framework/paddle/io/sampler.py"),
    ("framework/nn/common.py", "framework/paddle/nn/common.py"),
    ("framework/nn/conv.py", "framework/paddle/sparse/nn/layers.py"),
    ("framework/nn/norm.py", "framework/paddle/sparse/nn/layers.py"),
    ("framework/nn/containers.py", "framework/paddle/nn/containers.py"),
    ("framework/nn/loss.py", "framework/paddle/nn/common.py"),
    ("framework/nn/norm.py", "framework/paddle/nn/norm.py"),
    ("framework/nn/rnn.py", "framework/paddle/nn/layer/rnn.py"),
}


def _from_the_core(tree: ast.Module) -> Iterator[str]:
    """The names that a file of the Paddle room has from the core."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                if f"{node.module}.".startswith(
                    "framework."
                ) and not f"{node.module}.{alias.name}.".startswith("framework.paddle."):
                    yield alias.asname or alias.name


def _root(base: ast.expr) -> str:
    """The first name of a base class: `core` of `core.Metric`."""
    while isinstance(base, ast.Attribute | ast.Subscript):
        base = base.value
    return base.id if isinstance(base, ast.Name) else ""


def written_classes(source: str) -> set[str]:
    """The public classes that a file writes out; one that derives from a class of the core adds to it and is none."""
    tree = ast.parse(source)
    core = set(_from_the_core(tree))
    classes = (node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_"))
    return {node.name for node in classes if not core & {_root(base) for base in node.bases}}


def all_classes(source: str) -> set[str]:
    """The public classes of a file of the core."""
    return {node.name for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}


def pairs_of(files: dict[str, str]) -> set[tuple[str, str]]:
    """The files of the core and of the Paddle room that both write two classes or more of the same names."""
    room = {path: written_classes(text) for path, text in files.items() if "/paddle/" in path}
    core = {path: all_classes(text) for path, text in files.items() if "/paddle/" not in path}
    both = itertools.product(core.items(), room.items())
    return {(one, other) for (one, mine), (other, theirs) in both if len(mine & theirs) > 1}


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        ("class A: ...\nclass B: ...", 1),
        ("class A: ...\nclass C: ...", 0),
        ("from framework.nn import one\nclass A(one.A): ...\nclass B: ...", 0),
        ("from framework.paddle.nn import one\nclass A(one.A): ...\nclass B: ...", 1),
        ("from framework import paddle\nclass A(paddle.A): ...\nclass B: ...", 1),
        ("A = make('A')\nclass B: ...", 0),
    ],
)
def test_the_rule(room: str, expected: int) -> None:
    files = {"framework/nn/one.py": "class A: ...\nclass B: ...", "framework/paddle/nn/one.py": room}
    assert len(pairs_of(files)) == expected


def test_the_core_and_paddle_write_few_classes_twice() -> None:
    files = {
        path.relative_to(REPO).as_posix(): path.read_text(encoding="utf-8")
        for path in (REPO / "framework").rglob("*.py")
    }
    found = pairs_of(files)
    assert not found - PAIRS, (
        "take what computes from the core: derive from its class, or make the class of a row"
    )
    assert not PAIRS - found, "these are joined: take them out of PAIRS and of docs/architecture.md"
    lines = (REPO / "docs" / "architecture.md").read_text(encoding="utf-8").splitlines()
    for one, other in PAIRS:
        short = one.removeprefix("framework/"), other.removeprefix("framework/")
        assert any(all(f"`{name}`" in line for name in short) for line in lines), (
            f"{one}, {other}: not in the docs"
        )
