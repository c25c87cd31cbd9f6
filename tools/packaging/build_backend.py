"""Builds the wheel: setuptools, and configs/ as framework/configs, since setuptools takes data from packages alone."""

from __future__ import annotations

import shutil
from pathlib import Path

# The hooks of a build backend (PEP 517 and 660)
from setuptools.build_meta import build_editable as build_editable
from setuptools.build_meta import build_sdist as build_sdist
from setuptools.build_meta import build_wheel as build_wheel
from setuptools.build_meta import get_requires_for_build_editable as get_requires_for_build_editable
from setuptools.build_meta import get_requires_for_build_sdist as get_requires_for_build_sdist
from setuptools.build_meta import get_requires_for_build_wheel as get_requires_for_build_wheel
from setuptools.build_meta import prepare_metadata_for_build_editable as prepare_metadata_for_build_editable
from setuptools.build_meta import prepare_metadata_for_build_wheel as prepare_metadata_for_build_wheel
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

CONFIGS = "configs"


class BuildPy(build_py):
    """A clone reads its own configs/, so an editable installation has no copy."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            shutil.copytree(CONFIGS, Path(self.build_lib, "framework", CONFIGS), dirs_exist_ok=True)


class SourceDistribution(sdist):
    """Has what the wheel is made of."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        shutil.copytree(CONFIGS, Path(base_dir, CONFIGS), dirs_exist_ok=True)
        folder = Path(base_dir, "tools", "packaging")
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(__file__, folder)
