"""The rules, by kind; importing this package fills the tables of registry.py."""

from framework.export.formats.onnx.rules import (
    contraction,
    control,
    elementwise,
    functionals,
    indexing,
    recurrent,
    reduction,
    scattering,
    shapes,
    suppression,
    windows,
)

__all__ = [
    "contraction",
    "control",
    "elementwise",
    "functionals",
    "indexing",
    "recurrent",
    "reduction",
    "scattering",
    "shapes",
    "suppression",
    "windows",
]
