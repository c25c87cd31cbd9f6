"""Semantic segmentation: a class for every pixel.

from segmentation import predictor

segment = predictor("pp_liteseg_stdc1_membrane")
mask = segment("slice.png")
mask.save("output")
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segmentation.api import predictor as predictor


def __getattr__(name: str) -> Any:
    if name == "predictor":
        from segmentation.api import predictor

        return predictor
    raise AttributeError(f"module 'segmentation' has no attribute {name!r}")
