"""paddle.vision.datasets by this path for one more release: they stand in `framework.paddle.vision.datasets`."""

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("framework.paddle.vision.datasets"), name)
