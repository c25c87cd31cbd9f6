"""Steps by which Python reads a page have twins in the browser's code, with the same numbers, or are listed here."""

from __future__ import annotations

import ast
import importlib
import re
from collections import Counter
from pathlib import Path

import pytest

_REPO = Path(__file__).resolve().parents[2]
_SOURCES = _REPO / "tools" / "web" / "src"
_PIPELINE = _REPO / "ocr" / "pipeline" / "text_pipeline.py"
_STEPS = ("ocr.pipeline.", "ocr.text.")

TWINS = {
    "are_among": "closerlook.areAmong",
    "are_low": "closerlook.areLow",
    "are_narrow": "closerlook.areNarrow",
    "badly_read": "closerlook.badlyRead",
    "closer_scale": "closerlook.closerScale",
    "merge_looks": "closerlook.mergeLooks",
    "add_missed": "lettergaps.addMissed",
    "add_missed_below": "letters.addMissedBelow",
    "as_letters": "letters.asLetters",
    "find_stacks": "letters.findStacks",
    "join_stack": "letters.joinStack",
    "letters_in_a_row": "letters.lettersInARow",
    "split_long": "lettergaps.splitLong",
    "detect_in_grid": "tiles.detectInGrid",
    "detect_in_tiles": "tiles.detectInTiles",
    "crop_lines": "crops.cutQuad",
    "turned_lines": "regions.turnedLines",
    "read_directed": "directions.readDirected",
    "reading_order": "order.readingOrder",
}
ONLY_PYTHON = {
    "upright_boxes": "called by letters.findStacks",
    "char_spans": "boxes of characters, which the page does not draw",
    "text_quads": "boxes of characters, which the page does not draw",
    "upright_quads": "boxes of characters, which the page does not draw",
    "reading_indices": "boxes of characters, which the page does not draw",
    "words_from_chars": "boxes of characters, which the page does not draw",
    "quad_of": "curved lines, which are not exported",
}
NUMBERS = {
    "ocr.pipeline.small_letters": ("closerlook",),
    "ocr.text.tiles": ("tiles", "lettergaps"),
    "ocr.text.directions": ("directions",),
    "ocr.text.letters_apart": ("lettergaps", "letters"),
    "ocr.text.stacked_letters": ("letters",),
}


def _imported_steps() -> set[str]:
    """Functions of reading that the pipeline uses."""
    tree = ast.parse(_PIPELINE.read_text(encoding="utf-8"))
    names = {
        (node.module, name.name)
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_STEPS)
        for name in node.names
    }
    return {
        name
        for module, name in names
        if name.islower() and callable(getattr(importlib.import_module(module), name))
    }


def _source(name: str) -> str:
    return (_SOURCES / f"{name}.ts").read_text(encoding="utf-8")


def _numbers_of_module(name: str) -> Counter[float]:
    """Constants of a Python module; of a sequence each."""
    tree = ast.parse(Path(str(importlib.import_module(name).__file__)).read_text(encoding="utf-8"))
    values = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    nodes = [one for value in values for one in ast.walk(value)]
    return Counter(
        float(node.value)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float)
    )


def _numbers_of_source(name: str) -> Counter[float]:
    """Constants in capitals of a TypeScript file."""
    declared = re.findall(r"^(?:export )?const (?:\[[A-Z_, ]+\]|[A-Z_]+) = ([^;]*);", _source(name), re.M)
    return Counter(float(one) for value in declared for one in re.findall(r"(?<![\w\"])\d+(?:\.\d+)?", value))


def test_each_step_has_a_twin_or_is_listed() -> None:
    steps = _imported_steps()
    assert steps == set(TWINS) | set(ONLY_PYTHON), "write its twin in tools/web/src, or say why there is none"


@pytest.mark.parametrize("twin", TWINS.values())
def test_the_page_runs_each_twin(twin: str) -> None:
    file, name = twin.split(".")
    assert re.search(rf"^export (?:async )?function {name}\b", _source(file), re.M)
    assert re.search(rf"\b{name}\(", _source("lines"))


@pytest.mark.parametrize("module", NUMBERS)
def test_both_have_the_same_numbers(module: str) -> None:
    there: Counter[float] = sum(map(_numbers_of_source, NUMBERS[module]), Counter())
    assert not _numbers_of_module(module) - there
