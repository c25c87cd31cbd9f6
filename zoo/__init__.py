"""Architectures that the domains share, their weights, and the smaller domains, each a folder.

import zoo

net = zoo.create_model("resnet50", pretrained=True, num_classes=3)
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from framework.workflow.open.models import create_model as create_model
    from framework.workflow.open.models import list_models as list_models


def __getattr__(name: str) -> object:
    if name in ("create_model", "list_models"):
        from framework.workflow.open import models

        return getattr(models, name)
    if name == "predictor":  # its name of before, for one release
        from zoo.classification import predictor

        return predictor
    raise AttributeError(f"module 'zoo' has no attribute {name!r}")
