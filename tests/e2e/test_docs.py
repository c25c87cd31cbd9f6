"""What README.md, CONTRIBUTING.md and docs/*.md say is true: commands and examples run, tables and links are right.

The blocks ```sh and ```python of a document run in their order, in one copy of the tree, so that nothing is written to
the repository. Lines that install something or start pytest are left out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.tools import run_tool
from tools.docs import render_receipt, render_result, tables

REPO = Path(__file__).resolve().parents[2]
ELSEWHERE = ("docs/own_data.md",)  # its commands need data: tests/e2e/test_own_data.py
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (REPO / "docs").glob("*.md")),
]
COPIED = ("framework", "zoo", "ocr", "detection", "segmentation", "nlp", "configs", "tools", "docs")
COMMANDS = (
    'pip install -e ".[ocr]" && python tools/infer.py -c configs/ocr/pp_ocrv6_small.yml '
    "--image_file docs/images/receipt.png",
    'pip install -e ".[test]" && python -m pytest',
)
# What must be there when a document has run.
WRITTEN = {
    "README.md": (
        "output/receipt.json",
        "output/receipt.png",
        "receipt.pdf",
        "output/receipt_page1.json",
        "inference_model/pp_ocrv6_small/infer_cfg.yml",
        "output/cells/cells.png",
        "output/shirt/shirt.json",
        "output/intent/results.jsonl",
        "layer.safetensors",
    ),
    "docs/extending.md": ("output/my_shapes/scores.txt", "inference_model/my_shapes/infer_cfg.yml"),
    "docs/documents.md": (
        "output/documents/receipt.md",
        "output/documents/receipt.html",
        "output/documents/receipt.json",
        "output/documents/receipt_fields.json",
        "output/documents/receipt_page1.png",
        "output/scores/pages.json",
    ),
    "docs/ocr.md": (
        "receipt.json",
        "receipt.md",
        "receipt.hocr",
        "receipt_drawn.png",
        "output/first/receipt.png",
        "output/folder/receipt.json",
        "output/pdf/receipt_page1.png",
        "output/fine/receipt.json",
        "output/german/receipt.json",
        "output/english/receipt.json",
        "inference_model/pp_ocrv6_small/infer_cfg.yml",
    ),
    "docs/ocr_options.md": ("output/video/clip.mp4", "output/video/clip.jsonl"),
}


@dataclass(frozen=True)
class Block:
    language: str
    line: int
    text: str

    @property
    def needs_weights(self) -> bool:
        """Whether a block runs OCR."""
        signs = (
            "configs/ocr",
            "inference_model",
            "from ocr",
            "oar ocr",
            "oar document",
            "pp_ocrv6",
            "infer --lang",
        )
        return any(sign in self.text for sign in signs)

    def commands(self) -> list[tuple[list[str], str | None]]:
        """(arguments, what is piped in) for each command of the block."""
        if self.language == "python":
            # Lines stand where the document has them, so that `inspect` finds the source of a function.
            return [([sys.executable, "-"], "\n" * self.line + self.text)]
        lines = [re.sub(r"^pip install .*?( && |$)", "", line) for line in self.text.splitlines()]
        lines = [re.sub(r"^oar ", "python -m framework ", line) for line in lines]
        wanted = [
            line for line in lines if line.startswith("python ") and not line.startswith("python -m pytest")
        ]
        return [([sys.executable, *shlex.split(line)[1:]], None) for line in wanted]


def blocks(document: str) -> list[Block]:
    text = (REPO / document).read_text(encoding="utf-8")
    found = re.finditer(r"^```(sh|python)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(match[1], text[: match.start()].count("\n") + 1, match[2]) for match in found]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what users run, where outputs may be written."""
    folder = tmp_path_factory.mktemp("docs") / "oar"
    for name in COPIED:
        shutil.copytree(REPO / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPO / "pyproject.toml", folder)  # it names the domains
    return folder


def run(
    document: str, arguments: list[str], text: str | None, tree: Path, env: dict[str, str]
) -> subprocess.CompletedProcess[str]:
    """A command: a process of its own as in the README; tools and examples of other documents run in this one."""
    name = re.fullmatch(r"tools/(\w+)\.py", arguments[1])
    if name is not None and document != "README.md":
        return run_tool(name[1], *arguments[2:], cwd=tree)
    if arguments[1:3] == ["-m", "framework"] and document != "README.md":
        return run_tool(arguments[3], *arguments[4:], cwd=tree)
    if text is not None and document != "README.md":
        with contextlib.chdir(tree):
            exec(compile(text, document, "exec"), {"__name__": "__main__"})
        return subprocess.CompletedProcess(arguments, 0, "", "")
    return subprocess.run(
        arguments,
        input=text,
        cwd=tree,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=900,
        check=False,
    )


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if name not in ELSEWHERE and blocks(name)])
def test_examples_run(document: str, tree: Path) -> None:
    has_weights = importlib.util.find_spec("rapidocr") is not None
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"PYTHONUTF8": "1"}
    skipped = 0
    for block in blocks(document):
        if block.needs_weights and not has_weights:
            skipped += 1
            continue
        for arguments, text in block.commands():
            done = run(document, arguments, text, tree, env)
            shown = (text or "").strip() or shlex.join(arguments[1:])
            assert done.returncode == 0, (
                f"{document}:{block.line} fails:\n{shown}\n{done.stdout}\n{done.stderr}"
            )
    if skipped:
        pytest.skip(f"{skipped} blocks need the weights in the wheel of rapidocr: pip install -e '.[ocr]'")
    missing = [name for name in WRITTEN.get(document, ()) if not (tree / name).is_file()]
    assert not missing, f"{document} ran and did not write {missing}"
    if document == "README.md":
        page = json.loads((tree / "output" / "receipt.json").read_text(encoding="utf-8"))
        assert {"HARBOUR STREET GROCERS", "TOTAL EUR", "33.62"} <= {line["text"] for line in page["lines"]}
        cells = json.loads((tree / "output" / "cells" / "cells.json").read_text(encoding="utf-8"))
        assert {"RBC", "WBC"} <= {box["label"] for box in cells["boxes"]}
        shirt = json.loads((tree / "output" / "shirt" / "shirt.json").read_text(encoding="utf-8"))
        assert shirt["classes"][0]["label"] == "t-shirt"


def test_the_two_commands_stand_in_the_readme() -> None:
    text = (REPO / "README.md").read_text(encoding="utf-8")
    missing = [command for command in COMMANDS if f"\n{command}\n" not in text]
    assert not missing, f"README.md must hold these commands as they are: {missing}"


def test_blocks_are_found() -> None:
    found = blocks("README.md")
    assert {block.language for block in found} == {"sh", "python"}
    first = found[0].commands()
    assert [arguments[1:3] for arguments, _ in first] == [["tools/infer.py", "-c"]], (
        "the part behind pip runs"
    )
    assert ["-c", "import framework; framework.run_check()"] in [
        a[1:] for b in found for a, _ in b.commands()
    ]


def test_tables_are_up_to_date() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in tables.documents()}
    old = [path.name for path, text in texts.items() if tables.updated(text) != text]
    assert not old, f"run `python -m tools.docs`: out of date are the tables of {old}"
    assert sum(text.count("<!-- table: ") for text in texts.values()) == len(tables.TABLES)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_paths_lead_somewhere(document: str) -> None:
    text = (REPO / document).read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    folder = (REPO / document).parent
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)|src=\"([^\"]+)\"", prose)]
    targets = [folder / (a or b) for a, b in links if "://" not in (a or b)]
    named = re.findall(
        r"`((?:framework|zoo|ocr|detection|segmentation|nlp|configs|tools|tests|docs)/[\w./]+)`", prose
    )
    missing = [str(path) for path in (*targets, *(REPO / name for name in named)) if not path.exists()]
    assert not missing, f"{document} names what is not there: {missing}"


def test_the_image_is_what_the_script_draws(tmp_path: Path) -> None:
    drawn = np.asarray(render_receipt.photograph(render_receipt.slip()).convert("RGB"), np.int16)
    kept = np.asarray(Image.open(render_receipt.OUT).convert("RGB"), np.int16)
    assert drawn.shape == kept.shape == (1100, 700, 3)
    # Other versions of Pillow and FreeType place letters and colours a little differently.
    assert np.abs(drawn - kept).mean() < 4, "run `python -m tools.docs.render_receipt`"
    assert render_receipt.OUT.stat().st_size < 400_000


def test_the_result_image_is_small_and_as_wide_as_its_script_says() -> None:
    with Image.open(render_result.OUT) as drawn:
        assert drawn.width == render_result.WIDTH and drawn.height > 600
    assert render_result.OUT.stat().st_size < 120_000, "run `python -m tools.docs.render_result`"


def test_the_tutorial_of_ocr_stays_short() -> None:
    lines = (REPO / "docs" / "ocr.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150, "options belong in docs/ocr_options.md, training in docs/ocr_training.md"


def test_no_table_has_an_empty_score_or_a_question_mark() -> None:
    rows = re.findall(r"^\|.*\|$", (REPO / "docs" / "models.md").read_text(encoding="utf-8"), re.MULTILINE)
    cells = {cell.strip() for row in rows for cell in row.strip("|").split(" | ")}
    assert "–" in cells and not {"", "?"} & cells
