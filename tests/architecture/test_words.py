"""Words that stand nowhere in the packages, tools, configs and tests, each with the field's word for it."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture import vague_names

REPO = Path(__file__).resolve().parents[2]
FOLDERS = ("framework", "zoo", "ocr", "detection", "segmentation", "nlp", "tools", "configs", "tests")
# Anywhere: in prose, and as a part of a name in snake_case or CamelCase.
WORDS = {
    **dict.fromkeys(("picture", "pictures"), "image"),
    **dict.fromkeys(("door", "doors"), "entry point, or nothing"),
    **dict.fromkeys(("house", "houses"), "project, convention, layout"),
    **dict.fromkeys(("treatment", "treatments"), "parameter group"),
    "joints": "keypoints",
    "crew": "worker group",
    "ledger": "score table",
    "orienter": "text-line orientation classifier",
}
PHRASES = {
    r"(a|the|short) way in(?! which)": "API",
    r"look(s|ed|ing)? over": "validate",
    r"trained and treated": "parameter groups",
}
# Names of classes, functions, fields, parameters and variables, apart from underscores around them.
NAMES = {
    "DividedDataset": "WindowedDataset",
    "Feed": "LoaderConfig",
    "Inference": "TestTimeAugmentation",
    "Named": "TaskAlias",
    "Part": "PreparedSample",
    "Pieces": "Encoding",
    "Saving": "ResultWriter",
    "Setting": "ProcessorContext",
    "Written": "DecodedSequences",
    "bfloat16_holds": "bf16_verified",
    "carried": "pack_assets",
    "further": "extra outputs",
    "look_over": "validate",
    "restored": "load_assets, resize_to_source",
    "write_further": "extra outputs",
}
FUNCTIONS = {"divide": "split_windows", "joined": "concat_outputs", "started": "build_metrics"}
MODULES = {
    "coding": "label_map",
    "frame": "affine_crop",
    "outlines": "contours",
    "own": "custom",
    "stored": "raw_images",
}
# Names in these folders are those of another library, whose programs use them. Words in prose are checked all the same.
THEIR_NAMES = {"framework/paddle/": "names of Paddle's functions and parameters"}
EXEMPT = {
    "framework/paddle/audio/datasets/": "names of the classes of data sets",
    "segmentation/data/classes.py": "names of the classes of data sets",
    "tests/architecture/test_words.py": "this list",
    "tools/golden/": "runs the references, which have names of their own",
}


@functools.cache
def texts() -> dict[str, str]:
    """path -> text of every .py and .yml file that is not exempt."""
    found = {}
    for folder in FOLDERS:
        for file in sorted((REPO / folder).rglob("*")):
            path = file.relative_to(REPO).as_posix()
            is_config = file.suffix == ".yml" and folder == "configs"  # others are data: sources, references
            if (file.suffix == ".py" or is_config) and not path.startswith(tuple(EXEMPT)):
                found[path] = file.read_text(encoding="utf-8")
    return found


def find_words(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, what stands there, what to write) of every word and phrase of the lists."""
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.replace("in-house", "")
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", plain):
            if word.lower() in WORDS:
                yield number, word.lower(), WORDS[word.lower()]
        for phrase, better in PHRASES.items():
            if re.search(rf"\b{phrase}\b", plain, re.IGNORECASE):
                yield number, phrase, better


def find_names(text: str) -> Iterator[tuple[int, str, str]]:
    """(line, name, what to write) of the names that a module defines."""
    for node in ast.walk(ast.parse(text)):
        name, listed = "", NAMES
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name, listed = node.name, NAMES | FUNCTIONS
        elif isinstance(node, ast.ClassDef):
            name = node.name
        elif isinstance(node, ast.arg):
            name = node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            name = node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            name = node.attr
        if (plain := name.strip("_")) in listed:
            yield getattr(node, "lineno", 1), plain, listed[plain]


def test_words_are_the_fields() -> None:
    broken = [
        f"{path}:{line} {word!r}; write: {better}"
        for path, text in texts().items()
        for line, word, better in find_words(text)
    ]
    assert not broken, "words that a stranger would have to translate:\n  " + "\n  ".join(broken)


def test_names_are_the_fields() -> None:
    broken = [
        f"{path}:{line} {name}; write: {better}"
        for path, text in texts().items()
        if path.endswith(".py") and not path.startswith(tuple(THEIR_NAMES))
        for line, name, better in find_names(text)
    ]
    broken += [
        f"{path}; write: {MODULES[stem]}.py"
        for path in texts()
        if (stem := Path(path).stem.removeprefix("test_")) in MODULES
    ]
    assert not broken, "names that a stranger would have to translate:\n  " + "\n  ".join(broken)


def test_the_lists_find_what_they_are_for() -> None:
    text = "class PictureLoader:\n    num_joints = 1  # at the door, in-house\n    # a short Way in, a way in which"
    short = next(iter(PHRASES))
    assert [word for _, word, _ in find_words(text)] == ["picture", "joints", "door", short]
    code = "class _Feed: pass\ndef _started(further): self.carried = 1\nstarted = Feed"
    assert [name for _, name, _ in find_names(code)] == ["Feed", "started", "further", "carried"]


def test_no_file_has_more_vague_names_than_it_had() -> None:
    counts, exceptions = vague_names.count_vague_names(), vague_names.read_exceptions()
    broken = []
    for path, count in counts.items():
        if count > exceptions.get(path, 0):
            tree = ast.parse((REPO / path).read_text(encoding="utf-8"))
            names = sorted({(line, name) for line, _, name in vague_names.find_vague_names(tree)})
            broken += [
                f"{path}:{line} {name}; write: {vague_names.WORDS[name.strip('_').lower()]}"
                for line, name in names
            ]
    assert not broken, (
        "names that say nothing (all of the files that have more than before):\n  " + "\n  ".join(broken)
    )


def test_the_exceptions_are_no_more_than_there_are() -> None:
    counts = vague_names.count_vague_names()
    stale = [path for path, count in vague_names.read_exceptions().items() if count > counts.get(path, 0)]
    assert not stale, f"run `python -m tests.architecture.vague_names`: fewer names are left in {stale}"


def test_vague_names_are_seen_where_a_name_is_bound() -> None:
    code = "class _Found: pass\ndef place(how):\n    own = [part for part in how]\n    self.kept = known_words = own\n"
    names = [name for _, _, name in vague_names.find_vague_names(ast.parse(code))]
    assert names == ["_Found", "place", "how", "own", "kept"]
