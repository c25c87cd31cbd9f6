"""Modules that are imported when they are first used."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """A module by its name, imported at the first look at one of its attributes: `jax = LazyModule("jax")`.

    jax takes a third of a second of a process that never needs it where another engine runs the model.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)
