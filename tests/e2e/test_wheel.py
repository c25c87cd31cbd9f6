"""The wheel holds all that a predictor needs: configs, weights and the index of weights, away from a clone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.e2e.test_docs import COPIED, REPO

BUILD = "import build_backend as build; build.build_wheel({out!r}); build.build_sdist({out!r})"
USE = """
from pathlib import Path
import framework
assert Path(framework.__file__).is_relative_to({site!r}), framework.__file__
from framework.workflow import predictor
from framework.workflow.domain.domain import config_names
assert len(config_names()) == {configs}, len(config_names())
print(predictor("bigru_crf_pos_en")("the red car"))
print(predictor("picodet_s_320_bccd")("image.png"))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what the backend of pyproject.toml builds from a copy of the tree: a wheel, a source archive."""
    tree, out = tmp_path_factory.mktemp("wheel") / "oar", tmp_path_factory.mktemp("dist")
    for name in COPIED:
        shutil.copytree(REPO / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPO / name, tree)
    done = subprocess.run(
        [sys.executable, "-c", BUILD.format(out=str(out))],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree / "tools" / "packaging")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


def test_it_holds_every_config_and_every_file_beside_the_code(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    configs = {path.relative_to(REPO).as_posix() for path in (REPO / "configs").rglob("*.yml")}
    assert configs and {f"framework/{name}" for name in configs} <= names
    assert not any(name.startswith("configs/") for name in names)
    packages = [name for name in COPIED if name not in ("configs", "tools", "docs")]
    data = {
        path.relative_to(REPO).as_posix()
        for package in packages
        for path in (REPO / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".md"
    }
    assert not data - names
    entry = next(name for name in names if name.endswith("entry_points.txt"))
    assert "oar = framework.__main__:run" in zipfile.ZipFile(wheel).read(entry).decode()


def test_the_source_archive_holds_what_the_wheel_is_made_of(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz")), encoding="utf-8") as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    configs = {path.relative_to(REPO).as_posix() for path in (REPO / "configs").rglob("*.yml")}
    assert {"pyproject.toml", "tools/packaging/build_backend.py", "framework/__init__.py", *configs} <= names


@pytest.mark.slow
def test_predictors_answer_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    site, folder = tmp_path / "site", tmp_path / "empty"
    zipfile.ZipFile(wheel).extractall(site)
    folder.mkdir()
    shutil.copy(REPO / "docs" / "images" / "receipt.png", folder / "image.png")
    configs = sum("_base_" not in path.parts for path in (REPO / "configs").rglob("*.yml"))
    done = subprocess.run(
        [sys.executable, "-c", USE.format(site=str(site), configs=configs)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(site), "OAR_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "DET" in done.stdout
