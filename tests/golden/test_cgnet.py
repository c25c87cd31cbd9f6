"""The authors' CGNet in our model: its names, and the score that its weights have on 20 images of CamVid.

Needs the folder of shared weights and data (OAR_SHARED). Their page says 65.6 for all 233 images.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from framework.config import build
from framework.interop import load_weights
from segmentation.models.cgnet import CGNetConfig

REPO = Path(__file__).resolve().parents[2]
CONFIG = "configs/segmentation/cgnet/cgnet_camvid_480x360.yml"


def found(shared: Path, name: str) -> Path:
    path = shared / name
    if not path.exists():
        pytest.skip(f"{path} is not there (OAR_SHARED)")
    return path


def test_the_names_and_the_number_of_values_are_the_authors(shared: Path) -> None:
    theirs = load_weights(found(shared, "weights/cgnet_camvid/model_800.pth"))
    assert sum(value.size for value in theirs.values()) == 504_564
    theirs = {name: value for name, value in theirs.items() if not name.endswith("num_batches_tracked")}
    model = build(CGNetConfig(num_classes=11))
    spelled = {
        name.replace("_mean", "running_mean")
        .replace("_variance", "running_var")
        .replace("._weight", ".weight")
        for name in model.state_shapes()
    }
    assert spelled == set(theirs)
    assert sum(math.prod(shape) for shape in model.state_shapes().values()) == 504_564 - 54


def test_the_score_on_camvid(shared: Path) -> None:
    """The mean IoU .638 and pixel accuracy .905 that the README of the weights says."""
    weights, data = found(shared, "weights/cgnet_camvid/model_800.pth"), found(shared, "data/camvid")
    done = subprocess.run(
        [
            sys.executable,
            *("tools/eval.py", "-c", CONFIG, "--device", "cpu"),
            *("-o", f"weights={weights}", f"data.eval.dataset.root={data}"),
        ],
        cwd=REPO,
        env=os.environ | {"PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores["mIoU"] == pytest.approx(0.638, abs=0.003)
    assert scores["accuracy"] == pytest.approx(0.905, abs=0.003)
