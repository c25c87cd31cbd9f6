"""Write the tables of README.md and docs/*.md anew, from configs/, the registry and the rows of the hub.

    python -m tools.docs            tests/e2e/test_docs.py fails while they are out of date

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`, as does a listing of a file of docs/examples.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from framework import hub
from framework.config import available, build, find, load
from framework.interop.graph import onnx
from framework.interop.graph import paddle as paddle_graphs
from framework.interop.graph.paddle.pir import FORMS
from framework.workflow.domain.domain import all_domains
from tools.bench.__main__ import BENCHES
from tools.docs import api_names, paddle_table

REPO = Path(__file__).resolve().parents[2]
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def documents() -> list[Path]:
    return [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").rglob("*.md"))]


def updated(text: str) -> str:
    """`text` with every table of it written anew."""
    return _TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)


def pipelines() -> str:
    """The pipelines of OCR: one row for each config of configs/ocr."""
    rows = []
    for path in sorted((REPO / "configs" / "ocr").glob("*.yml")):
        stages = load(path).plain()["pipeline"]
        entries = [hub.entry(stages[stage]["weights"]) for stage in ("detector", "recognizer")]
        sizes = [_megabytes(entry) for entry in entries]
        about = _first_sentence(path.read_text(encoding="utf-8"))
        here = all(any(s.kind == "package" for s in entry.files["weights"].sources) for entry in entries)
        place = "in the `ocr` extra" if here else "downloaded at first use"
        size = f"{sum(sizes):.0f} MB" if None not in sizes else ""  # type: ignore[arg-type]
        rows.append((f"`{path.stem}`", about, *map(_score, entries), size, place))
    return _markdown(("name", "languages and size", "detector", "recogniser", "file size", "weights"), rows)


def _first_sentence(text: str) -> str:
    """Of the comment at the head of a config."""
    head = itertools.takewhile(lambda line: line.startswith("#"), text.splitlines())
    return re.split(r"\.(?: |$)", " ".join(line.lstrip("# ") for line in head), maxsplit=1)[0]


def weights() -> str:
    """Every entry of the hub that is ready to run, and the training checkpoint beside it."""
    known = hub.entries()
    rows = []
    for name, entry in known.items():
        if entry.domain == "ocr" and entry.form == "deploy":
            size = _megabytes(entry)
            trainable = "yes" if f"{name}_pretrained" in known else ""
            rows.append((f"`{name}`", entry.family, f"{size:.1f}" if size else "", _score(entry), trainable))
    return _markdown(("name", "family", "MB", "published score", "checkpoint"), rows)


def backbones() -> str:
    """Every image backbone with a classifier: its variants and the number of their parameters."""
    rows = []
    found = available("backbone", ("zoo",))
    for name, module in found.items():
        source, config = importlib.import_module(module), find("backbone", name, ("zoo",)).config
        if "num_classes" not in {field.name for field in dataclasses.fields(config)}:
            continue
        counts = [_parameters(config(variant=variant, num_classes=1000)) for variant in source.VARIANTS]
        size = f"{min(counts) / 1e6:.1f} to {max(counts) / 1e6:.1f} M"
        rows.append((f"`{name}`", ", ".join(source.VARIANTS), size))
    return _markdown(("type", "variants", "parameters"), rows)


def domains() -> str:
    """Every domain: its options, which are keywords of `predictor` and flags of tools/infer.py."""
    rows = []
    for domain in all_domains():
        options = [field for field in dataclasses.fields(domain.options) if field.init]
        package = type(domain).__module__.rpartition(".")[0]
        names = ", ".join(f"`{field.name}`" for field in options)
        rows.append((f"`{domain.name}`", f"`{package}.predictor`", names))
    return _markdown(("domain", "function", "options"), rows)


def onnx_operators() -> str:
    """Every ONNX operator of the importer by theme, and the versions of its operator set."""
    rows = []
    for module in onnx.MODULES:
        theme = (module.__doc__ or "").partition(".")[0].partition(":")[0].removeprefix("ONNX ")
        names = sorted(module.OPERATORS)
        rows.append((theme[0].upper() + theme[1:], str(len(names)), ", ".join(f"`{name}`" for name in names)))
    return _markdown(("theme", "", "operators"), rows)


def onnx_opsets() -> str:
    """The operator sets and their newest versions."""
    rows = [
        (
            f"`{domain or 'ai.onnx'}`",
            str(newest),
            str(sum(name.rpartition(".")[0] == domain for name in onnx.OPERATORS)),
        )
        for domain, newest in onnx.NEWEST.items()
    ]
    return _markdown(("operator set", "newest version", "operators"), rows)


def paddle_operators() -> str:
    """Every operator of Paddle's programs by theme, and how many of PIR's lead to them."""
    rows = []
    themes = {
        "Element by element": paddle_graphs.elementwise.OPERATORS,
        "Moving, joining, cutting, looking up, reducing": paddle_graphs.shapes.OPERATORS,
        "Layers": paddle_graphs.network.OPERATORS,
        "Writing at indices, choosing by masks": paddle_graphs.indexed.OPERATORS,
        "Decoding and suppressing boxes": paddle_graphs.detection.OPERATORS,
        "Control flow and arrays of tensors": paddle_graphs.control.OPERATORS,
    }
    for theme, operators in themes.items():
        rows.append((theme, str(len(operators)), ", ".join(f"`{name}`" for name in sorted(operators))))
    rows.append(("PIR", str(len(FORMS)), ", ".join(f"`pd_op.{name}`" for name in sorted(FORMS))))
    return _markdown(("theme", "", "operators"), rows)


def example_code() -> str:
    return _listing("py", "my_shapes.py")


def example_config() -> str:
    return _listing("yaml", "my_shapes.yml")


def _listing(language: str, name: str) -> str:
    text = (REPO / "docs" / "examples" / name).read_text(encoding="utf-8")
    return f"\n```{language}\n{text}```\n\n"


def _parameters(config: Any) -> int:
    return sum(parameter.size for _, parameter in build(config).named_parameters())


def _megabytes(entry: hub.Entry) -> float | None:
    return next((source.size / 1e6 for source in entry.files["weights"].sources if source.size), None)


def _score(entry: hub.Entry) -> str:
    return ", ".join(f"{score['metric'].removesuffix(' %')} {score['value']} %" for score in entry.scores)


def _markdown(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def benchmarks() -> str:
    """Every measurement of tools/bench, with its command."""
    rows = []
    for name, (_, what, peer, needs) in BENCHES.items():
        rows.append((f"`python -m tools.bench {' '.join((name, needs)).strip()}`", what, peer))
    return _markdown(("command", "what", "compared with"), rows)


TABLES = {
    "benchmarks": benchmarks,
    "pipelines": pipelines,
    "weights": weights,
    "backbones": backbones,
    "domains": domains,
    "onnx_operators": onnx_operators,
    "onnx_opsets": onnx_opsets,
    "paddle_operators": paddle_operators,
    "example_code": example_code,
    "example_config": example_config,
    "api_names": api_names.names_table,
    "api_words": api_names.words_table,
    "paddle_counts": paddle_table.counts_table,
    "paddle_missing": paddle_table.missing_table,
    "paddle_differences": paddle_table.differences_table,
}


def main() -> None:
    for path in documents():
        old = path.read_text(encoding="utf-8")
        new = updated(old)
        if new != old:
            path.write_text(new, encoding="utf-8", newline="\n")
            print(f"updated {path.relative_to(REPO)}")
