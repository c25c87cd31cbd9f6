"""`imports:` of a configuration: a user's own model, data set, transform, task, metric and callback, in one file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from framework.config import load, packages_of
from framework.core.errors import ConfigError
from framework.workflow.export.export import export_config
from framework.workflow.train.run import evaluate, train
from zoo.classification import predictor

PARTS = '''
"""Parts of a user's own."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.config import register
from framework.core.transform import Transform
from framework.engine.callbacks import Callback
from framework.io import Dataset
from framework.nn import Layer, Linear
from framework.vision.sample import Sample
from zoo.classification.tasks import ImageClassification


@dataclass(frozen=True)
class OwnNetConfig:
    num_classes: int = 2


@register("model", config=OwnNetConfig)
class OwnNet(Layer):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc = Linear(3, config.num_classes)

    def forward(self, x):  # [N, H, W, 3] -> [N, num_classes]
        return self.fc(x.mean(axis=(1, 2)))


@register("dataset")
@dataclass(frozen=True)
class RedOrBlue(Dataset):
    count: int = 32
    class_names = ("blue", "red")

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image = np.zeros((8, 8, 3), np.uint8)
        image[..., 0 if index % 2 else 2] = 100 + index
        return Sample(image, labels=np.asarray(index % 2), id=str(index))


@register("transform")
@dataclass(frozen=True)
class Brighten(Transform[Sample]):
    by: int = 10

    def __call__(self, sample, rng):
        return sample.replace(image=np.minimum(sample.image.astype(int) + self.by, 255).astype(np.uint8))


class Reds:
    """The share of images that were called red."""

    higher_is_better = True

    def __init__(self):
        self.reds, self.count = 0, 0

    def update(self, outputs, batch):
        self.reds += int((outputs["scores"].argmax(axis=1) == 1).sum())
        self.count += len(outputs["scores"])

    def result(self):
        return {"reds": self.reds / self.count}


@register("task")
@dataclass(frozen=True)
class OwnTask(ImageClassification):
    def metrics(self, labels):
        return {**super().metrics(labels), "reds": Reds()}


@register("callback")
@dataclass(frozen=True)
class WriteSteps(Callback):
    file: Path

    def on_step(self, trainer, step):
        with Path(self.file).open("a", encoding="utf-8") as out:
            out.write(f"{step}\\n")
'''

CONFIG = """
domain: classification
imports: [{module}.py]
model: {{type: OwnNet}}
task: {{type: OwnTask, topk: [1]}}
data:
  train:
    dataset: {{type: RedOrBlue}}
    transforms: [{{type: Brighten, by: 5}}]
    batch_size: 8
    num_workers: 1
    worker_mode: process
  eval: {{dataset: {{type: RedOrBlue, count: 8}}, transforms: [{{type: Brighten}}], batch_size: 8, num_workers: 0}}
optim: {{type: Adam, learning_rate: 0.5}}
train: {{iters: {iters}, save_every: 4, eval_every: 100, callbacks: [{{type: WriteSteps, file: '{steps}'}}]}}
export: {{inputs: {{image: {{shape: [n, h, w, 3], dtype: uint8}}}}}}
"""


def test_components_of_a_user(tmp_path: Path) -> None:
    (tmp_path / "my_own_parts.py").write_text(PARTS, encoding="utf-8")
    steps, path = tmp_path / "steps.txt", tmp_path / "own.yml"

    def write(iters: int) -> None:
        text = CONFIG.format(module="my_own_parts", steps=steps.as_posix(), iters=iters)
        path.write_text(text, encoding="utf-8")

    write(4)
    train(path, (), tmp_path / "run")
    write(8)
    scores = train(path, (), tmp_path / "run", resume=True)
    assert steps.read_text(encoding="utf-8").split() == [str(step) for step in range(8)]
    assert scores == {"top1": 1.0, "reds": 0.5}
    resolved = tmp_path / "run" / "config.yml"  # in another folder, it still finds the file
    assert evaluate(resolved, (f"weights={(tmp_path / 'run').as_posix()}",)) == scores
    folder = export_config(resolved, (f"weights={(tmp_path / 'run').as_posix()}",)).save(tmp_path / "net")
    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 120
    assert predictor(folder, trust=True)(red).label == "red"
    assert json.dumps(predictor(folder, trust=True)([red])[0].to_dict()).count("red") == 1


@pytest.mark.parametrize(
    ("imports", "message"),
    [
        ("[nowhere.py]", r"imports: there is no such file\n  received: .*nowhere\.py"),
        (
            "[no_such_module]",
            r"imports: the module cannot be imported\n  received: no_such_module: ModuleNotFoundError",
        ),
        ("[json.py]", r"another module has the name of this file"),
        ("[3]", r"imports: wrong type"),
        ("[broken_parts.py]", r"cannot be imported\n  received: .*broken_parts\.py: ZeroDivisionError"),
    ],
)
def test_imports_that_cannot_be(tmp_path: Path, imports: str, message: str) -> None:
    (tmp_path / "json.py").write_text("", encoding="utf-8")
    if "broken" in imports:
        (tmp_path / "broken_parts.py").write_text("1 / 0\n", encoding="utf-8")
    path = tmp_path / "own.yml"
    path.write_text(f"domain: classification\nimports: {imports}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        packages_of(load(path))
