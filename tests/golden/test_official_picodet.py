"""The published PicoDet-S 320 through its config: its score with our own pre- and post-processing, and a predictor.

Needs the folder of shared weights and data (OAR_SHARED).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from detection import predictor
from framework.workflow.train.run import evaluate

CONFIG = Path(__file__).resolve().parents[2] / "configs/detection/picodet/picodet_s_320_coco.yml"


def weights(shared: Path) -> str:
    path = shared / "weights" / "picodet_s_320" / "picodet_s_320_coco_sim.onnx"
    if not path.is_file():
        pytest.skip(f"{path} is not there (OAR_SHARED)")
    return f"weights={path.as_posix()}"


def coco_mini(shared: Path) -> Path:
    folder = shared / "data" / "coco_mini"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there (OAR_SHARED)")
    return folder


def test_the_score_on_coco_mini(shared: Path) -> None:
    """AP .315 and AP50 .461 in the README of the weights, whose images are resized linearly.

    PaddleDetection's own cubic gives 0.3185 and 0.4752.
    """
    pytest.importorskip("faster_coco_eval")
    data = "data.eval.dataset."
    scores = evaluate(
        CONFIG,
        (
            weights(shared),
            f"{data}root={coco_mini(shared).as_posix()}",
            f"{data}annotations=instances_val.json",
            f"{data}images=images/val2017",
            "data.eval.transforms.0.interpolation=linear",
        ),
    )
    assert scores["AP"] == pytest.approx(0.315, abs=0.001)
    assert scores["AP50"] == pytest.approx(0.461, abs=0.001)


def test_a_predictor_by_name_knows_cocos_classes_without_its_files(shared: Path) -> None:
    """COCO's image 139: a room with a television, chairs and a table."""
    detect = predictor("picodet_s_320_coco", overrides=[weights(shared)], precision="float32")
    assert len(detect.labels) == 80 and detect.category_ids is not None
    assert (detect.labels[62], detect.category_ids[62]) == ("tv", 72)
    found = detect(coco_mini(shared) / "images" / "val2017" / "000000000139.jpg")
    assert (found.width, found.height) == (640, 426)
    assert {"tv", "chair"} <= {box.label for box in found.boxes}
    tv = max((box for box in found.boxes if box.label == "tv"), key=lambda box: box.score)
    # The annotation says 7.03 to 157.6 across and 167.76 to 262.63 down.
    assert tv.bbox == pytest.approx((7, 168, 157, 263), abs=12)
