"""A layer written for Paddle as the `model:` of a config: trained by the Trainer, exported, and used."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from PIL import Image

from framework.inference import Config, create_predictor
from tests.e2e.tools import run_tool

REPO = Path(__file__).resolve().parents[2]

MODEL = '''
"""A model written for Paddle."""

from dataclasses import dataclass

from framework import paddle
from framework.config import register
from framework.paddle._kernel.bridges import CoreLayer


class Net(paddle.nn.Layer):
    def __init__(self, width, classes):
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(3, width, 3, stride=2, padding=1)
        self.norm = paddle.nn.BatchNorm2D(width)
        self.conv2 = paddle.nn.Conv2D(width, 2 * width, 3, stride=2, padding=1)
        self.fc = paddle.nn.Linear(2 * width, classes)

    def forward(self, x):
        x = paddle.nn.functional.relu(self.norm(self.conv1(x)))
        x = paddle.nn.functional.relu(self.conv2(x))
        return self.fc(paddle.nn.functional.dropout(x.max([2, 3]), 0.1, training=self.training))


@dataclass(frozen=True)
class PortedConfig:
    num_classes: int = 2
    width: int = 8


@register("model", config=PortedConfig)
class Ported(CoreLayer):
    def __init__(self, config: PortedConfig) -> None:
        super().__init__(Net(config.width, config.num_classes), channels_last=True)
        self.config = config
'''

CONFIG = """
_base_: {base}
imports: [ported.py]
model: {{type: Ported, num_classes: 2, width: 8}}
task: {{topk: [1]}}
data:
  train: {{dataset: {{type: ImageFolder, root: {data}, split: train}}, batch_size: 16, num_workers: 1}}
  eval: {{dataset: {{type: ImageFolder, root: {data}, split: val}}, batch_size: 16, num_workers: 1}}
optim: {{type: Adam, learning_rate: 0.02}}
train: {{epochs: 10, seed: 1}}
export: {{inputs: {{image: {{shape: [n, 32, 32, 3], dtype: uint8}}}}}}
"""


def draw_shapes(folder: Path, count: int) -> None:
    """Images [32, 32] of one vertical bar or one dot on grey, a folder of each."""
    random = np.random.default_rng(0)
    for name, height in (("bar", 12), ("dot", 4)):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = random.integers(30, 50, (32, 32, 3)).astype(np.uint8)
            top, left = random.integers(0, 20, 2)
            pixels[top : top + height, left : left + 4] = 220
            Image.fromarray(pixels).save(folder / name / f"{number}.png")


def test_a_model_written_for_paddle_is_trained_and_exported(tmp_path: Path) -> None:
    (tmp_path / "ported.py").write_text(MODEL, encoding="utf-8")
    draw_shapes(tmp_path / "shapes" / "train", 32)
    draw_shapes(tmp_path / "shapes" / "val", 16)
    base = (REPO / "configs" / "_base_" / "classification.yml").as_posix()
    config = tmp_path / "ported.yml"
    config.write_text(CONFIG.format(base=base, data=(tmp_path / "shapes").as_posix()), encoding="utf-8")
    run = tmp_path / "output" / "ported"
    done = run_tool("train", "-c", config, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    assert max(row.get("top1", 0) for row in rows) > 0.9
    done = run_tool("export_model", "-c", config, "--output_dir", tmp_path / "model", cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    folder = next(path.parent for path in (tmp_path / "model").rglob("infer_cfg.yml"))
    pixels = np.full((2, 32, 32, 3), 40, np.uint8)
    pixels[0, 8:20, 8:12] = 220  # a bar
    pixels[1, 8:12, 8:12] = 220  # a dot
    (scores,) = create_predictor(Config(folder)).run([pixels])
    assert scores.argmax(axis=1).tolist() == [0, 1]
