"""Paddle's functions of Tensors, by kind: every module of this folder puts its `__all__` into `paddle`.

`METHODS_ONLY` of a module are functions that Paddle has as methods of Tensor alone.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


def discover(listed: str = "__all__") -> dict[str, Callable[..., object]]:
    """The functions that the modules here list under this name.

    Raises:
        RuntimeError: two modules define the same name.
    """
    found: dict[str, Callable[..., Any]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name in getattr(module, listed, ()):
            if name in found:
                raise RuntimeError(f"{name} is defined in {module.__name__} and in {found[name].__module__}")
            found[name] = getattr(module, name)
    return found
