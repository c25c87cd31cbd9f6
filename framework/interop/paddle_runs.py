"""The names under which Paddle's toolkits keep the checkpoints of a run, for the runs that are written here.

| name in a run's folder | toolkit | checkpoint |
|---|---|---|
| best_model/model.pdparams, best_model.pdparams | PaddleSeg, PaddleDetection | the best |
| best_accuracy, best_accuracy.pdparams | PaddleOCR | the best |
| model_final, model_final.pdparams, latest | PaddleDetection, PaddleOCR | the last |
| iter_500, iter_500/model.pdparams | PaddleSeg | that of step 500 |
"""

from __future__ import annotations

import re
from pathlib import Path

_BEST = ("best_model", "best_accuracy")
_LAST = ("model_final", "latest")


def name_of_checkpoint(path: Path) -> tuple[Path, str | int] | None:
    """A run's folder, and "best", "last" or a step, of a path that such a toolkit would have; None of any other."""
    if path.name == "model.pdparams":
        path = path.parent
    name = path.name.removesuffix(".pdparams")
    if name in _BEST:
        return path.parent, "best"
    if name in _LAST:
        return path.parent, "last"
    step = re.fullmatch(r"iter_(\d+)", name)
    return (path.parent, int(step.group(1))) if step else None
