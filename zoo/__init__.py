"""Architectures that the domains share, their weights, and classifiers of images.

from zoo import predictor

print(predictor("pp_lcnet_x0_25_clothing")("shirt.jpg").label)
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "predictor":
        from zoo.api import predictor

        return predictor
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")
