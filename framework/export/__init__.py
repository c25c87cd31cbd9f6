"""Artifacts: a program, its weights and everything that inference needs to know, in one folder.

What lowers programs is loaded when it is first used: running an artifact needs no layers.
"""

import importlib
from typing import TYPE_CHECKING

from framework.export.artifact import CONFIG as CONFIG
from framework.export.artifact import Artifact as Artifact
from framework.export.artifact import load_artifact as load_artifact
from framework.export.sizes import size_fits as size_fits
from framework.export.specs import PLATFORMS as PLATFORMS
from framework.export.specs import TensorSpec as TensorSpec

if TYPE_CHECKING:
    from framework.export.program import lower_layer as lower_layer
    from framework.export.program import lower_program as lower_program

_LOWERING = ("lower_layer", "lower_program")


def __getattr__(name: str) -> object:
    if name in _LOWERING:
        return getattr(importlib.import_module("framework.export.program"), name)
    raise AttributeError(f"module 'framework.export' has no attribute {name!r}")
