"""Semantic segmentation: a class for every pixel.

from segmentation import predictor

segment = predictor("pp_liteseg_stdc1_membrane")
mask = segment("slice.png")
mask.save("output")
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from segmentation.segmenter import Segmenter

    predictor: Callable[..., Segmenter]


def __getattr__(name: str) -> object:
    if name == "predictor":
        from segmentation.domain import predictor

        return predictor
    raise AttributeError(f"module 'segmentation' has no attribute {name!r}")
