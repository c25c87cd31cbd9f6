"""Segmentation by the tools as a user runs them, with a PP-LiteSeg whose weights are made from their names."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framework.config import build
from framework.interop import write_safetensors
from framework.interop.named_weights import named_weights
from framework.vision import image as vision_image
from framework.vision.video import VideoReader, VideoWriter
from segmentation.models.pp_liteseg import PPLiteSegConfig
from tests.e2e.tools import run_tool

REPO = Path(__file__).resolve().parents[2]
CONFIG = f"""\
_base_: {json.dumps((REPO / "configs/_base_/segmentation.yml").as_posix())}
model: {{type: PPLiteSeg, num_classes: 5}}
export: {{precisions: [float32]}}
"""


def succeeds(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with seg.yml, its weights seg.safetensors and images in images/."""
    folder = tmp_path_factory.mktemp("segmentation")
    model = build(PPLiteSegConfig(num_classes=5))
    write_safetensors(folder / "seg.safetensors", named_weights(model.state_shapes()))
    (folder / "seg.yml").write_text(CONFIG, encoding="utf-8")
    rng = np.random.default_rng(0)
    for name, size in (("a", (61, 90)), ("a_label", (64, 96)), ("b", (50, 70))):
        smooth = vision_image.resize(rng.integers(0, 256, (6, 8, 3), np.uint8), size)
        vision_image.write(folder / "images" / f"{name}.png", smooth)
    return folder


def mask(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        assert image.mode == "P"
        return np.asarray(image).copy()


SLIDE = "task.inference={slide: {crop_hw: [64, 64], stride_hw: [48, 48]}}"


@pytest.mark.parametrize("how", [(), (SLIDE,)], ids=["whole", "slide"])
def test_config_and_artifact_give_the_same_masks(place: Path, tmp_path: Path, how: tuple[str, ...]):
    options = ["--model_path", place / "seg.safetensors", *(("--opts", *how) if how else ())]
    source = ["--image_path", place / "images"]
    succeeds(run_tool("export_model", "-c", place / "seg.yml", *options, "--save_dir", tmp_path / "made"))
    succeeds(run_tool("infer", "-c", place / "seg.yml", *options, *source, "--save_dir", tmp_path / "config"))
    succeeds(
        run_tool(
            "infer",
            "--model_dir",
            tmp_path / "made",
            *source,
            "--output_dir",
            tmp_path / "x",
        )
    )
    names = sorted(path.name for path in (tmp_path / "x").iterdir())
    stems = ("a", "a_label_2", "b")
    assert names == sorted(f"{stem}{end}" for stem in stems for end in (".json", ".png", "_label.png"))
    sizes = {"a": (61, 90), "a_label_2": (64, 96), "b": (50, 70)}
    for stem, size in sizes.items():
        found = mask(tmp_path / "x" / f"{stem}_label.png")
        assert found.shape == size
        np.testing.assert_array_equal(found, mask(tmp_path / "config" / f"{stem}_label.png"))
        facts = json.loads((tmp_path / "x" / f"{stem}.json").read_text(encoding="utf-8"))
        assert (facts["height"], facts["width"]) == size and len(facts["classes"]) > 1
        counts = {name: one["pixels"] for name, one in facts["classes"].items()}
        assert counts == {str(k): int((found == k).sum()) for k in np.unique(found)}
        drawn = vision_image.read(tmp_path / "x" / f"{stem}.png")
        assert drawn.shape[1] >= size[1] and drawn.shape[0] > size[0]  # a legend below


def test_a_fixed_shape_takes_images_of_any_size_and_a_video(place: Path, tmp_path: Path):
    options = ["-o", f"weights={json.dumps(str(place / 'seg.safetensors'))}", "--output_dir", tmp_path]
    shape = ["--input_shape", 1, 3, 96, 64]
    succeeds(run_tool("export_model", "--config", place / "seg.yml", *options, *shape))
    text = (tmp_path / "seg" / "infer_cfg.yml").read_text(encoding="utf-8")
    assert "Resize" in text and "labels" in text
    with VideoWriter(tmp_path / "clip.mp4", 10.0, (48, 80)) as video:
        for step in range(5):
            video.write(np.full((48, 80, 3), 40 * step, np.uint8))
    out = tmp_path / "out"
    infer = ["infer", "--model_dir", tmp_path / "seg", "--output_dir", out]
    succeeds(run_tool(*infer, "--image_dir", place / "images", "--opacity", 0))
    assert mask(out / "a_label.png").shape == (61, 90)
    source = vision_image.read(place / "images" / "a.png")
    drawn = vision_image.read(out / "a.png")[: source.shape[0], : source.shape[1]]  # a legend below
    np.testing.assert_array_equal(drawn, source)  # colours of no opacity
    succeeds(run_tool(*infer, "--video_file", tmp_path / "clip.mp4", "--background", "blur"))
    with VideoReader(out / "clip.mp4") as video:
        assert len([frame for frame in video if frame.shape == (48, 80, 3)]) == 5
    lines = (out / "clip.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["frame"] for line in lines] == [0, 1, 2, 3, 4]


def test_what_is_wrong_is_said(place: Path, tmp_path: Path):
    weights = ["--model_path", place / "seg.safetensors"]
    infer = ["infer", "-c", place / "seg.yml", "--output_dir", tmp_path, *weights]
    done = run_tool(*infer, "--image_file", tmp_path / "no.png")
    assert done.returncode == 2 and "no.png: there is no such file" in done.stderr
    done = run_tool(*infer, "--image_dir", place / "images", "-o", "task.inferense.flip=true")
    assert done.returncode == 2 and "did you mean 'inference'" in done.stderr
    done = run_tool(*infer, "--image_dir", place / "images", "--threshold", 0.5)
    assert done.returncode == 2 and "allowed: opacity" in done.stderr
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "empty.png").write_bytes(b"")
    vision_image.write(tmp_path / "in" / "dot.png", np.zeros((1, 1, 3), np.uint8))
    done = run_tool(*infer, "--image_dir", tmp_path / "in")
    assert (
        done.returncode == 1
        and "empty.png" in done.stderr
        and mask(tmp_path / "dot_label.png").shape == (1, 1)
    )
    done = run_tool("export_model", "-c", place / "seg.yml", *weights, "--input_shape", 1, 4, 64, 64)
    assert done.returncode == 2 and "N 3 H W" in done.stderr
    done = run_tool(*infer, "--image_dir", place / "images", "--output_dir", place / "images")
    assert done.returncode == 2 and "would replace its source" in done.stderr
