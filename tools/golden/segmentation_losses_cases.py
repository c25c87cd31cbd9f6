"""The cases that PaddleSeg's losses and metrics and ours are compared on; imports numpy alone.

A loss is named by ours with its settings; `paddleseg` has upstream's name and those settings that it spells otherwise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

CLASSES, SIZE_NHW = 5, (2, 12, 17)
IGNORED = 255
WEIGHT = (0.5, 2.0, 1.0, 0.25, 1.5)


class Case(NamedTuple):
    loss: str
    options: dict[str, Any]
    labels: str = "usual"
    scale: float = 2.0  # of the logits: the larger, the surer
    classes: int = CLASSES


CASES = {
    "ce": Case("CrossEntropy", {}),
    "ce_weight": Case("CrossEntropy", {"weight": WEIGHT}),
    "ce_hardest": Case("CrossEntropy", {"hardest": 0.25}),
    "ce_hardest_weight": Case("CrossEntropy", {"hardest": 0.25, "weight": WEIGHT}),
    "ce_none_valid": Case("CrossEntropy", {}, "none"),
    "ce_ignore_0": Case("CrossEntropy", {"ignore_index": 0}, "all"),
    "ohem_thresh": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 50}),
    "ohem_min_kept": Case("OhemCrossEntropy", {"thresh": 0.05, "min_kept": 120}),
    "ohem_few_valid": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 50}, "few"),
    "ohem_none_valid": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 50}, "none"),
    "ohem_sure": Case("OhemCrossEntropy", {"thresh": 0.7, "min_kept": 300}, scale=0.2),
    "focal": Case("Focal", {"alpha": 0.5, "gamma": 1.5}),
    "focal_none_valid": Case("Focal", {}, "none"),
    "dice": Case("Dice", {}),
    "dice_weight": Case("Dice", {"weight": WEIGHT, "smooth": 0.5}),
    "dice_none_valid": Case("Dice", {}, "none"),
    "dice_absent": Case("Dice", {}, "absent"),
    "lovasz": Case("LovaszSoftmax", {}),
    "lovasz_absent": Case("LovaszSoftmax", {}, "absent"),
    "lovasz_sure": Case("LovaszSoftmax", {}, scale=30.0),
    "lovasz_two": Case("LovaszSoftmax", {}, "binary", classes=2),
    "ce_two": Case("CrossEntropy", {}, "binary", classes=2),
}

PADDLESEG = {
    "CrossEntropy": "CrossEntropyLoss",
    "OhemCrossEntropy": "OhemCrossEntropyLoss",
    "Focal": "MultiClassFocalLoss",
    "Dice": "DiceLoss",
    "LovaszSoftmax": "LovaszSoftmaxLoss",
}


def logits(case: Case) -> np.ndarray:
    """[N, H, W, C] float32."""
    drawn = np.random.RandomState(7).standard_normal((*SIZE_NHW, case.classes))
    return (case.scale * drawn).astype(np.float32)


def labels(kind: str) -> np.ndarray:
    """[N, H, W] int32; about a tenth is ignored but in "all", all but 20 in "few"."""
    state = np.random.RandomState(8)
    drawn = state.randint(0, CLASSES, SIZE_NHW).astype(np.int32)
    ignored = state.uniform(size=SIZE_NHW) < 0.1
    if kind == "none":
        ignored[...] = True
    elif kind == "few":
        ignored.reshape(-1)[20:] = True
    elif kind == "all":
        ignored[...] = False
    elif kind == "absent":
        drawn[drawn == 3] = 1
    elif kind == "binary":
        drawn %= 2
    drawn[ignored] = IGNORED
    return drawn


def predictions() -> np.ndarray:
    """[N, H, W] int32, mostly right; class 3 stands in neither these nor the labels "absent"."""
    state = np.random.RandomState(9)
    found = np.where(state.uniform(size=SIZE_NHW) < 0.7, labels("absent"), state.randint(0, 3, SIZE_NHW))
    return np.where(found == IGNORED, 4, found).astype(np.int32)
