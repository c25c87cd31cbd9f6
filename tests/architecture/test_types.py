"""How often the packages say `Any`, which a type checker takes for everything: a number for each that only shrinks.

A value of many types has a type variable or a protocol, parsed JSON is `JSON`, a tree of arrays `PyTree`
(`framework/core/types.py`), the config of a model `ModelConfig` (`framework/core/model_config.py`). `Any` is for what
has no type of its own: files whose every entry is checked where it is read, packages without types, Paddle's arguments
of many forms, and the attributes of a Layer.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PACKAGES = ("framework", "zoo", "ocr", "detection", "segmentation", "nlp")
MOST = {
    "detection": 3,
    "detection/data": 1,
    "framework/config": 8,
    "framework/core": 9,
    "framework/engine": 8,
    "framework/export": 13,
    "framework/hub": 5,
    "framework/inference": 10,
    "framework/interop": 23,
    "framework/io": 14,
    "framework/jit": 1,
    "framework/metric": 5,
    "framework/nn": 19,
    "framework/optimizer": 2,
    "framework/paddle": 617,
    "framework/text": 9,
    "framework/vision": 13,
    "framework/workflow": 16,
    "nlp": 12,
    "ocr/commands": 1,
    "ocr/data": 3,
    "ocr/documents": 6,
    "ocr/exporters": 5,
    "ocr/formulas": 2,
    "ocr/losses": 1,
    "ocr/pipeline": 3,
    "ocr/results": 11,
    "ocr/text": 2,
    "segmentation": 1,
    "segmentation/data": 2,
    "zoo/layers": 1,
}
# Files that give Any another name. PyTree stays: jax names no type of its trees.
ALIASES = {
    "framework/core/device.py",
    "framework/core/types.py",
    "framework/export/formats/onnx/graph.py",
    "framework/interop/graph/values.py",
    "framework/paddle/distribution/distribution.py",
    "framework/paddle/nn/layer/rnn.py",
}


@functools.cache
def trees() -> dict[str, ast.Module]:
    """The packages' modules by their paths."""
    files = [file for package in PACKAGES for file in sorted((REPO / package).rglob("*.py"))]
    return {file.relative_to(REPO).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def count_any(tree: ast.AST) -> int:
    """The uses of the name; its imports do not count."""
    return sum(
        (isinstance(node, ast.Name) and node.id == "Any")
        or (isinstance(node, ast.Attribute) and node.attr == "Any")
        for node in ast.walk(tree)
    )


def group_of(path: str) -> str:
    """The package that a file counts for: framework/io, ocr/tasks; files that stand beside those count for ocr."""
    return "/".join(path.split("/")[:-1][:2])


def find_aliases(tree: ast.AST) -> list[str]:
    """Assignments of Any to another name."""
    return [
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign | ast.AnnAssign) and ast.unparse(node).endswith(" = Any")
    ]


def test_any_becomes_rarer() -> None:
    counts = Counter[str]()
    for path, tree in trees().items():
        counts[group_of(path)] += count_any(tree)
    wrong = [
        f"{name}: {counts[name]}, in the table {MOST.get(name, 0)}"
        for name in sorted({*counts, *MOST})
        if counts[name] != MOST.get(name, 0)
    ]
    message = (
        "more: say what the value is (see the top of this file); fewer: put the number into the table MOST"
    )
    assert not wrong, f"{message}\n  " + "\n  ".join(wrong)


def test_any_gets_no_new_name() -> None:
    """An alias that is another word for Any tells neither a reader nor a type checker more."""
    assert {path for path, tree in trees().items() if find_aliases(tree)} == ALIASES


def test_the_counts_find_any() -> None:
    text = "from typing import Any\nimport typing as t\ndef f(x: Any, **rest: t.Any) -> dict[str, 'int']: ..."
    assert count_any(ast.parse(text)) == 2
    assert find_aliases(ast.parse("from typing import Any\nSize = Any\nShape: TypeAlias = Any\nx = 1")) == [
        "Size = Any",
        "Shape: TypeAlias = Any",
    ]
    assert group_of("framework/core/types.py") == "framework/core"
    assert group_of("framework/export/formats/onnx/graph.py") == "framework/export"
    assert group_of("ocr/domain.py") == "ocr"
