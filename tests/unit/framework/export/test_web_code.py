"""The code of the page that `oar export --format web` writes is what tools/web builds, and computes as Python does."""

from __future__ import annotations

import filecmp
import os
import re
import subprocess
from pathlib import Path

import pytest

from framework.workflow.export.web.folder import SITE
from framework.workflow.export.web.runtime_files import NAME, VERSION
from tests.e2e.web_pages import MODULES, TOOLS, need_node, need_packages
from tools.web.vectors import write_vectors

_COMPILER = MODULES / "typescript" / "bin" / "tsc"
_LINTER = MODULES / "@biomejs" / "biome" / "bin" / "biome"


def _run(*command: str | Path, **environment: str) -> None:
    done = subprocess.run(
        list(map(str, command)),
        cwd=TOOLS,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


@pytest.mark.parametrize("seed", [0, 1])
def test_it_computes_what_python_does(tmp_path: Path, seed: int) -> None:
    node = need_node()
    folder = write_vectors(tmp_path / "vectors", seed)
    _run(node, "--test", "test/", OAR_WEB_VECTORS=str(folder))


def test_it_is_what_the_sources_build(tmp_path: Path) -> None:
    node = need_node()
    need_packages("typescript")
    _run(node, _COMPILER, "-p", "tsconfig.json", "--outDir", tmp_path)
    built = {path.name for path in tmp_path.iterdir()}
    own = {path.name for path in (TOOLS / "public").iterdir()}
    assert {path.name for path in SITE.iterdir()} == built | own
    for folder, names in ((tmp_path, built), (TOOLS / "public", own)):
        _, different, missing = filecmp.cmpfiles(folder, SITE, sorted(names), shallow=False)
        assert not different and not missing, "cd tools/web && npm run build"


def test_its_sources_are_linted() -> None:
    node = need_node()
    need_packages("@biomejs/biome")
    _run(node, _LINTER, "check", "src", "test", "build.mjs", "drive.mjs")


def test_the_service_worker_keeps_every_file_of_the_page() -> None:
    text = (SITE / "sw.js").read_text(encoding="utf-8")
    listed = text[text.index("const CODE") : text.index('addEventListener("install"')]
    names = set(re.findall(r'"([\w./]+)"', listed))
    for path in SITE.iterdir():
        if path.name not in ("sw.js", "index.html"):
            assert path.name in names or path.stem in names, path.name
    assert "./" in names


def test_the_runtime_is_the_one_of_the_lock_file() -> None:
    lock = (TOOLS / "package-lock.json").read_text(encoding="utf-8")
    assert f'"node_modules/{NAME}": {{\n      "version": "{VERSION}"' in lock


def test_no_file_of_the_page_asks_another_server() -> None:
    for path in SITE.iterdir():
        addresses = re.findall(r"https?://[^\s\"'`)]+", path.read_text(encoding="utf-8"))
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, (path.name, addresses)
