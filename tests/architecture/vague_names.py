"""Names that say nothing: bare participles, and `place`, `part`, `piece`, `how`. Each has a field's word to replace it.

`vague_names.yml` says how many of them each file still has; it may only shrink. After some went:

    python -m tests.architecture.vague_names        writes the lower numbers
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import yaml

REPO = Path(__file__).resolve().parents[2]
FOLDERS = ("framework", "zoo", "ocr", "detection", "segmentation", "nlp", "tools")
EXCEPTIONS = Path(__file__).with_suffix(".yml")
WORDS = {
    **dict.fromkeys(("found", "seen"), "detections, matches, hits, entries; what was found"),
    **dict.fromkeys(("wanted", "asked"), "requested, expected, required; what is wanted"),
    **dict.fromkeys(("kept", "taken"), "retained, remaining, used; what is kept"),
    **dict.fromkeys(("given", "told"), "settings, options, arguments; what is given"),
    **dict.fromkeys(("chosen", "turned", "ended", "judged"), "selection, upright, rotated, finished, scores"),
    **dict.fromkeys(("made", "shown", "said", "known"), "result, text, message, vocabulary, cache"),
    **dict.fromkeys(("place", "places"), "box, position, offset, index, location"),
    **dict.fromkeys(("part", "parts", "piece", "pieces"), "field, span, token, chunk, segment, prefix"),
    **dict.fromkeys(("how", "own", "thing"), "options, mode, method, custom"),
}
# A place is a device in Paddle's API.
THEIR_NAMES = {"framework/paddle/": {"place", "places"}}
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def find_vague_names(tree: ast.AST) -> Iterator[tuple[int, str, str]]:
    """(line, function or class that it is in, name) of the names that a module binds, apart from comprehensions'."""
    yield from _find(tree, "")


def _find(node: ast.AST, scope: str) -> Iterator[tuple[int, str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.comprehension):  # its target is a name of one line
            yield from _find(ast.Tuple([child.iter, *child.ifs], ast.Load()), scope)
            continue
        name = _bound_name(child)
        if name.strip("_").lower() in WORDS:
            yield getattr(child, "lineno", 1), scope, name
        yield from _find(child, f"{scope}.{child.name}" if isinstance(child, Scope) else scope)


def _bound_name(node: ast.AST) -> str:
    """The name that a node binds, or ""."""
    if isinstance(node, Scope):
        return node.name
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.ExceptHandler | ast.MatchAs):
        return node.name or ""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        return node.attr
    return ""


def count_vague_names() -> dict[str, int]:
    """{file: how many names it has, each once in a function}, of files that have some."""
    counts = {}
    for folder in FOLDERS:
        for file in sorted((REPO / folder).rglob("*.py")):
            path = file.relative_to(REPO).as_posix()
            theirs = {
                name for start, names in THEIR_NAMES.items() if path.startswith(start) for name in names
            }
            bindings = find_vague_names(ast.parse(file.read_text(encoding="utf-8")))
            names = {(scope, name) for _, scope, name in bindings if name.strip("_") not in theirs}
            if names:
                counts[path] = len(names)
    return counts


def read_exceptions() -> dict[str, int]:
    """The numbers of vague_names.yml."""
    return yaml.safe_load(EXCEPTIONS.read_text(encoding="utf-8"))


def main() -> None:
    """Lowers the numbers of vague_names.yml; raises none and adds no file."""
    counts, exceptions = count_vague_names(), read_exceptions()
    lowered = {file: min(count, counts.get(file, 0)) for file, count in exceptions.items()}
    _write({file: count for file, count in lowered.items() if count})
    print(f"{sum(exceptions.values())} names before, {sum(lowered.values())} now")


def _write(counts: dict[str, int]) -> None:
    head = "# How many vague names each file has; numbers may only fall: python -m tests.architecture.vague_names\n"
    EXCEPTIONS.write_text(head + yaml.safe_dump(counts), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
