"""Pose models as a user runs them: train, evaluate, export, find keypoints on images with and without a detector."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from framework.config import build, load
from framework.engine.experiment import bind_experiment
from framework.interop.named_weights import named_weights
from framework.interop.weights.safetensors_io import write_safetensors
from framework.vision import image

REPO = Path(__file__).resolve().parents[2]
SHARED = Path(os.environ.get("OAR_SHARED", REPO.parent / "shared"))
KEYPOINT = REPO / "configs" / "detection" / "keypoint"
HRNET = KEYPOINT / "hrnet" / "hrnet_w32_256x192.yml"
HIGHER = KEYPOINT / "higherhrnet" / "higherhrnet_hrnet_w32_512.yml"
PICODET = SHARED / "weights" / "picodet_s_320" / "picodet_s_320_coco_sim.onnx"
NAMES = ("nose", "left_eye", "right_eye")

pytestmark = pytest.mark.slow


def run(tool: str, *arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, str(REPO / "tools" / f"{tool}.py"), *map(str, arguments)],
        cwd=REPO,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def exported(config: Path, folder: Path) -> Path:
    """An artifact with weights from the names of its parameters, whose people are nobody's."""
    model = build(bind_experiment(load(config)).model)
    weights = folder / f"{config.stem}.safetensors"
    write_safetensors(weights, named_weights(model.state_shapes()))
    run(
        "export_model",
        "-c",
        config,
        "--output_dir",
        folder,
        "-o",
        f"weights={weights}",
        "export.precisions=[float32]",
    )
    return folder / config.stem


def source_image() -> np.ndarray:
    file = SHARED / "data" / "keypoints_samples" / "coco" / "000000197388.jpg"
    if file.is_file():
        return image.read(file)
    return np.random.default_rng(0).integers(0, 255, (426, 640, 3)).astype(np.uint8)


def checked(folder: Path, shown: np.ndarray) -> list[dict]:
    found = json.loads((folder / "a.json").read_text(encoding="utf-8"))
    assert (found["height"], found["width"]) == shown.shape[:2] and image.read(
        folder / "a.png"
    ).shape == shown.shape
    for box in found["boxes"]:
        assert box["label"] == "person" and np.isfinite(box["keypoints"]).all()
        assert np.shape(box["keypoints"]) == (17, 3) and 0 <= box["score"] <= 1
    saved = json.loads((folder / "keypoint.json").read_text(encoding="utf-8"))
    assert [one["category_id"] for one in saved] == [1] * len(found["boxes"])
    return found["boxes"]


def test_higher_hrnet(tmp_path: Path):
    artifact, shown = exported(HIGHER, tmp_path), source_image()
    image.write(tmp_path / "a.png", shown)
    given = (
        "--image_file",
        tmp_path / "a.png",
        "--output_dir",
        tmp_path / "out",
        "--save_results",
        "--threshold",
        0,
    )
    run("infer", "--model_dir", artifact, *given)
    checked(tmp_path / "out", shown)


@pytest.mark.skipif(not PICODET.is_file(), reason="no weights of PicoDet in the shared data")
def test_hrnet_with_a_detector(tmp_path: Path):
    artifact, shown = exported(HRNET, tmp_path), source_image()
    config = REPO / "configs" / "detection" / "picodet" / "picodet_s_320_coco.yml"
    run("export_model", "-c", config, "--output_dir", tmp_path, "-o", f"weights={PICODET}")
    image.write(tmp_path / "a.png", shown)
    given = (
        "--image_file",
        tmp_path / "a.png",
        "--output_dir",
        tmp_path / "out",
        "--save_results",
        "--threshold",
        0,
    )
    run("infer", "--model_dir", artifact, "--det_model_dir", tmp_path / config.stem, *given)
    assert len(checked(tmp_path / "out", shown)) >= 3


def test_top_down_hrnet_learns_a_few_people(tmp_path: Path):
    """Six images, each with three dots as keypoints; after a few epochs the dots are found."""
    rng = np.random.default_rng(0)
    data: dict = {"images": [], "annotations": []}
    data["categories"] = [{"id": 1, "name": "person", "keypoints": list(NAMES), "skeleton": [[1, 2], [1, 3]]}]
    for number in range(1, 7):
        x, y = (int(value) for value in rng.integers(24, 40, 2))
        places = [(x, y), (x - 10, y + 14), (x + 10, y + 14)]
        pixels = np.full((64, 64, 3), 40, np.uint8)
        for channel, (i, j) in enumerate(places):
            pixels[j - 2 : j + 3, i - 2 : i + 3, channel] = 255
        image.write(tmp_path / f"{number}.png", pixels)
        data["images"].append({"id": number, "file_name": f"{number}.png"})
        flat = [value for place in places for value in (*place, 2)]
        box = {"bbox": [x - 14, y - 6, 28, 26], "area": 700, "keypoints": flat}
        data["annotations"].append({"id": number, "image_id": number, "category_id": 1, **box})
    (tmp_path / "people.json").write_text(json.dumps(data), encoding="utf-8")
    dataset = f"{{type: CocoPose, root: {tmp_path.as_posix()}, annotations: people.json, per_person: true}}"
    crop = "{type: CropToObject, size_hw: [64, 64]}"
    config = tmp_path / "dots.yml"
    config.write_text(
        f"""
domain: detection
model: {{type: TopDownHRNet, num_keypoints: 3}}
task: {{type: PoseEstimation, max_people: 1, metric: {{type: CocoKeypoints, sigmas: [0.05, 0.05, 0.05]}}}}
data:
  train: {{dataset: {dataset}, transforms: [{crop}], batch_size: 6}}
  eval: {{dataset: {dataset}, transforms: [{crop}], batch_size: 6}}
optim: {{type: Adam, learning_rate: 0.001}}
train: {{epochs: 60, log_every: 5, eval_every: 60}}
export: {{inputs: {{image: {{shape: [n, 64, 64, 3], dtype: uint8}}}}}}
""",
        encoding="utf-8",
    )
    run("train", "-c", config, "--output_dir", tmp_path / "run")
    lines = [
        json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
    ]
    losses = [line["loss"] for line in lines if "loss" in line]
    scores = [line["AP50"] for line in lines if "AP50" in line]
    assert losses[-1] < 0.1 * losses[0] and scores[-1] > 0.9
