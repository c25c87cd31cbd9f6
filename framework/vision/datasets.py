"""paddle.vision.datasets by this path for one more release: they stand in `framework.paddle.vision.datasets`."""

import importlib


def __getattr__(name: str) -> object:
    return getattr(importlib.import_module("framework.paddle.vision.datasets"), name)
