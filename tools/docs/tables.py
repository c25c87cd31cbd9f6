"""Write the tables of README.md and docs/*.md anew, from configs/, the registry and the rows of the hub.

    python -m tools.docs            tests/e2e/test_docs.py fails while they are out of date

A table stands between `<!-- table: NAME -->` and `<!-- end of table -->`, as does a listing of a file of docs/examples.
"""

from __future__ import annotations

import dataclasses
import importlib
import re
from pathlib import Path
from typing import Any

from framework.config import available, build, find
from framework.interop.graph import onnx
from framework.interop.graph import paddle as paddle_graphs
from framework.interop.graph.paddle import algebra, older
from framework.interop.graph.paddle.pir import FORMS
from framework.workflow.domain.domain import all_domains
from tools.bench.__main__ import BENCHES
from tools.docs import api_names, models, ocr_options, paddle_table

REPO = Path(__file__).resolve().parents[2]
_TABLE = re.compile(r"(<!-- table: (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def documents() -> list[Path]:
    return [REPO / "README.md", REPO / "CONTRIBUTING.md", *sorted((REPO / "docs").rglob("*.md"))]


def updated(text: str) -> str:
    """`text` with every table of it written anew."""
    return _TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)


def backbones() -> str:
    """Every image backbone with a classifier: its variants and the number of their parameters."""
    rows = []
    modules = available("backbone", ("zoo",))
    for name, module in modules.items():
        source, config = importlib.import_module(module), find("backbone", name, ("zoo",)).config
        if "num_classes" not in {field.name for field in dataclasses.fields(config)}:
            continue
        counts = [_parameters(config(variant=variant, num_classes=1000)) for variant in source.VARIANTS]
        size = f"{min(counts) / 1e6:.1f} to {max(counts) / 1e6:.1f} M"
        rows.append((f"`{name}`", ", ".join(source.VARIANTS), size))
    return models.markdown(("type", "variants", "parameters"), rows)


def domains() -> str:
    """Every domain: its options, which are keywords of `predictor` and flags of tools/infer.py."""
    rows = []
    for domain in all_domains():
        options = [field for field in dataclasses.fields(domain.options) if field.init]
        package = type(domain).__module__.rpartition(".")[0]
        names = ", ".join(f"`{field.name}`" for field in options)
        rows.append((f"`{domain.name}`", f"`{package}.predictor`", names))
    return models.markdown(("domain", "function", "options"), rows)


def onnx_operators() -> str:
    """Every ONNX operator of the importer by theme, and the versions of its operator set."""
    rows = []
    for module in onnx.MODULES:
        theme = (module.__doc__ or "").partition(".")[0].partition(":")[0].removeprefix("ONNX ")
        names = sorted(module.OPERATORS)
        rows.append((theme[0].upper() + theme[1:], str(len(names)), ", ".join(f"`{name}`" for name in names)))
    return models.markdown(("theme", "", "operators"), rows)


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
    return models.markdown(("operator set", "newest version", "operators"), rows)


def paddle_operators() -> str:
    """Every operator of Paddle's programs by theme, and how many of PIR's lead to them."""
    rows = []
    themes = {
        "Element by element": paddle_graphs.elementwise.OPERATORS,
        "Moving, joining, cutting, looking up, reducing": paddle_graphs.shapes.OPERATORS,
        "Layers": paddle_graphs.network.OPERATORS,
        "Linear algebra, special functions, diagonals": algebra.OPERATORS,
        "Writing at indices, choosing by masks": paddle_graphs.indexed.OPERATORS,
        "Decoding and suppressing boxes": paddle_graphs.detection.OPERATORS,
        "Control flow and arrays of tensors": paddle_graphs.control.OPERATORS,
        "Of older programs": older.OPERATORS,
    }
    for theme, operators in themes.items():
        rows.append((theme, str(len(operators)), ", ".join(f"`{name}`" for name in sorted(operators))))
    rows.append(("PIR", str(len(FORMS)), ", ".join(f"`pd_op.{name}`" for name in sorted(FORMS))))
    return models.markdown(("theme", "", "operators"), rows)


def example_code() -> str:
    return _listing("py", "my_shapes.py")


def example_config() -> str:
    return _listing("yaml", "my_shapes.yml")


def _listing(language: str, name: str) -> str:
    text = (REPO / "docs" / "examples" / name).read_text(encoding="utf-8")
    return f"\n```{language}\n{text}```\n\n"


def _parameters(config: Any) -> int:
    return sum(parameter.size for _, parameter in build(config).named_parameters())


def benchmarks() -> str:
    """Every measurement of tools/bench, with its command."""
    rows = []
    for name, (_, what, peer, needs) in BENCHES.items():
        rows.append((f"`python -m tools.bench {' '.join((name, needs)).strip()}`", what, peer))
    return models.markdown(("command", "what", "compared with"), rows)


TABLES = {
    "benchmarks": benchmarks,
    "pipelines": models.pipelines,
    "trained": models.trained,
    "weights_ocr": models.weights_of("ocr"),
    "weights_detection": models.weights_of("detection"),
    "weights_segmentation": models.weights_of("segmentation"),
    "weights_nlp": models.weights_of("nlp"),
    "weights_images": models.weights_of("zoo", "classification"),
    "ocr_options": ocr_options.options_table,
    "ocr_settings": ocr_options.settings_table,
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
    "paddle_refused": paddle_table.refused_table,
    "paddle_differences": paddle_table.differences_table,
}


def main() -> None:
    for path in documents():
        old = path.read_text(encoding="utf-8")
        new = updated(old)
        if new != old:
            path.write_text(new, encoding="utf-8", newline="\n")
            print(f"updated {path.relative_to(REPO)}")
