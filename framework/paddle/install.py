"""`import paddle` means Oar, for packages and scripts that cannot be changed: import this module before them.

    import framework.paddle.install
    import paddle, paddle.nn.functional as F

`oar run script.py` and `python -m framework.paddle script.py` do so before the script, `pytest -p
framework.paddle.install` before the tests. Modules are shared: `paddle.nn is framework.paddle.nn`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

from framework.core.errors import OarError

_ROOT = "framework."
SHIM = Path(__file__).with_name("shim")  # on PYTHONPATH it gives child processes the same `paddle`


class AliasFinder:
    """Finds `paddle` and what is below it as the modules of framework.paddle."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of a module of paddle; None: another package, or no such module."""
        if name == "pip" and "setuptools" not in sys.modules:
            # Paddle has loaded setuptools by then. Once pip is loaded, setuptools asserts that its own distutils is
            # in place and finds Python's: PaddleNLP imports the two in this order.
            with contextlib.suppress(ImportError):
                importlib.import_module("setuptools")
        if name.partition(".")[0] != "paddle":
            return None
        try:
            real = importlib.util.find_spec(_ROOT + name)
        except ModuleNotFoundError as error:  # a package above it is not there
            if error.name and error.name.startswith(_ROOT + "paddle"):
                return None
            raise
        if real is None:
            return None
        return ModuleSpec(name, self, is_package=real.submodule_search_locations is not None)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module of framework.paddle itself; its own spec is given back by `exec_module`."""
        module = importlib.import_module(_ROOT + spec.name)
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run already; the import system put the alias's spec into it."""
        spec = module.__spec__
        if spec is not None and isinstance(spec.loader, AliasFinder):
            module.__spec__ = spec.loader_state
            module.__loader__ = module.__spec__.loader if module.__spec__ else None

    def get_code(self, name: str) -> CodeType | None:
        """The code of a module, for `python -m paddle.distributed.launch`."""
        spec = importlib.util.find_spec(_ROOT + name)
        return spec.loader.get_code(_ROOT + name) if spec and isinstance(spec.loader, InspectLoader) else None


def install() -> None:
    """Let `paddle` mean framework.paddle in this process. Called again, it changes nothing.

    Raises:
        OarError: the real Paddle was imported before.
    """
    import framework.paddle

    present = sys.modules.get("paddle")
    if present is framework.paddle:
        return
    origin = getattr(present, "__file__", None) or ""
    if present is not None and Path(origin).parent != SHIM / "paddle":
        raise OarError(
            "paddle is imported already, and it is not Oar",
            received=origin or repr(present),
            fix="import framework.paddle.install before anything that imports paddle, or start with `oar run`",
        )
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, AliasFinder())  # type: ignore[arg-type]
    sys.modules["paddle"] = framework.paddle


install()
