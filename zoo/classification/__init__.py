"""Image classification: one class an image.

from zoo.classification import predictor

classify = predictor("pp_lcnet_x0_25_clothing")
print(classify("shirt.jpg").label)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoo.classification.domain import ImageClassifier

    predictor: Callable[..., ImageClassifier]


def __getattr__(name: str) -> object:
    if name == "predictor":
        from zoo.classification.domain import predictor

        return predictor
    raise AttributeError(f"module 'zoo.classification' has no attribute {name!r}")
