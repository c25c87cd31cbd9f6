"""Paddle's functions of Tensors, by kind: every module of this folder puts its `__all__` into `paddle`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any


def discover() -> dict[str, Callable[..., Any]]:
    """The public functions of all modules here, by name.

    Raises:
        RuntimeError: two modules define the same name.
    """
    found: dict[str, Callable[..., Any]] = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        for name in getattr(module, "__all__", ()):
            if name in found:
                raise RuntimeError(f"{name} is defined in {module.__name__} and in {found[name].__module__}")
            found[name] = getattr(module, name)
    return found
