"""From a name, a configuration or a folder to a predictor; options, and a domain that lives outside of the packages."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import framework
from framework.commands import main
from framework.commands.infer import parser
from framework.config import Tree, Where, build
from framework.core.errors import ConfigError, FormatError, InputError
from framework.export import Artifact
from framework.vision import image as vision_image
from framework.workflow import open_predictor
from framework.workflow.domain.config_file import open_config
from framework.workflow.domain.domain import all_domains, find_config, find_domain
from framework.workflow.domain.options import make_options
from framework.workflow.export.export import write_artifact
from framework.workflow.open.artifacts import find_artifact

REPO = Path(__file__).resolve().parents[5]


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "mine.yml"
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("domain: detektion\n", r"unknown domain\n  received: 'detektion'\n  allowed: .*\n.*'detection'"),
        ("a: 1\n", r"domain: missing key"),
        ("domain: [ocr]\n", r"domain: unknown domain"),
    ],
)
def test_domains_that_are_none(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_predictor(config(tmp_path, text))
    with pytest.raises(ConfigError, match=message):
        write_artifact(config(tmp_path, text), tmp_path / "out")


def test_an_artifact_without_a_domain(tmp_path: Path) -> None:
    folder = Artifact({"kind": "jit"}).save(tmp_path / "net")
    with pytest.raises(
        FormatError, match=r"infer_cfg\.yml: no domain runs this(.*\n)+.*framework\.jit\.load"
    ):
        open_predictor(folder)


def test_a_folder_that_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a", encoding="utf-8")
    with pytest.raises(FormatError, match=r"neither an artifact nor a model(.*\n)+  received: a\.txt"):
        open_predictor(tmp_path)


def test_an_artifact_of_another_domain(tmp_path: Path) -> None:
    folder = Artifact({"domain": "nlp"}).save(tmp_path / "net")
    with pytest.raises(FormatError, match=r"another domain than ocr\n  received: domain: nlp"):
        open_predictor(folder, domain="ocr")


def test_names_are_found_in_every_domain_or_in_one() -> None:
    assert find_config("text_cnn_snips").name == "text_cnn_snips.yml"
    assert find_config("a/b.yml") == Path("a/b.yml")
    assert find_config("pp_ocrv6_small_rec").name == "PP-OCRv6_small_rec.yml"
    assert find_config("PP-OCRv6_small").name == "pp_ocrv6_small.yml"
    # As PaddleDetection's guides write it
    dino = find_config("configs/dino/dino_r50_4scale_1x_coco.yml")
    assert dino.is_file() and dino.parts[-3:] == ("detection", "dino", "dino_r50_4scale_1x_coco.yml")
    for missing in ("configs/dino/dino_r51.yml", "mine/dino_r50_4scale_1x_coco.yml"):
        assert find_config(missing) == Path(missing)
    with pytest.raises(InputError, match=r"did you mean 'text_cnn_snips'"):
        find_config("text_cnn_snip")
    with pytest.raises(InputError, match="unknown model"):
        find_config("text_cnn_snips", "ocr")
    with pytest.raises(
        InputError, match=r"no such file or folder\n.*\n  allowed: one of \d+ names \(oar models"
    ):
        find_config("/##/##")
    with pytest.raises(InputError, match="this file is no model"):
        find_config(__file__)


def test_settings_of_a_finished_artifact(tmp_path: Path) -> None:
    folder = Artifact({"domain": "detection", "labels": []}).save(tmp_path / "net")
    with pytest.raises(ConfigError, match=r"cannot be changed any more\n  received: model\.variant=s"):
        find_artifact(folder, ["model.variant=s"])


def test_options_of_a_domain() -> None:
    options = find_domain("ocr").options
    assert make_options(options, {"threshold": 0.25, "max_side": None}, "ocr") == options(drop_score=0.25)
    with pytest.raises(ConfigError, match=r"ocr: unknown option\n  received: tracker(.*\n)+"):
        make_options(options, {"tracker": "bytetrack"}, "ocr")
    with pytest.raises(ConfigError, match=r"did you mean 'drop_score'"):
        make_options(options, {"drop_scores": 0.2}, "ocr")
    with pytest.raises(InputError, match="drop_score is out of range"):
        make_options(options, {"drop_score": 2.0}, "ocr")


@pytest.mark.parametrize("name", [domain.name for domain in all_domains()])
def test_options_are_keywords_and_flags(name: str) -> None:
    domain = find_domain(name)
    made, flags = parser()
    given = vars(made.parse_args(["-c", "a.yml", "--image_file", "a.png"]))
    assert set(flags) <= given.keys()
    assert make_options(domain.options, {flag: given[flag] for flag in flags}, name) == domain.options()
    package = importlib.import_module(type(domain).__module__.rpartition(".")[0])
    keywords = inspect.signature(package.predictor).parameters
    assert {"model", "device", "precision", "overrides", "batch_size"} <= keywords.keys()
    assert package.predictor.__doc__ and "batch_size" in package.predictor.__doc__


def test_a_pipeline_has_no_one_shape_and_no_one_file_of_weights(tmp_path: Path) -> None:
    path = REPO / "configs" / "ocr" / "pp_ocrv6_small.yml"
    with pytest.raises(ConfigError, match=r"a pipeline has several models[\s\S]*--input_shape"):
        write_artifact(path, tmp_path, (), (1, 3, 32, 32))
    with pytest.raises(ConfigError, match=r"pipeline\.detector\.weights=…, pipeline\.recognizer\.weights=…"):
        write_artifact(path, tmp_path, ("weights=a.onnx",))
    assert not list(tmp_path.iterdir())


def test_a_config_is_read_once_from_the_command_to_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    read: list[Path] = []
    config_load = importlib.import_module("framework.config.load")  # the package has a function of this name
    read_file = config_load._load_file

    def count(path: Path, chain: tuple[Path, ...], asked_at: Where | None = None) -> Tree:
        read.append(path)
        return read_file(path, chain, asked_at)

    weights = tmp_path / "lenet.safetensors"
    framework.save(build(open_config("lenet_mnist").experiment.model).state_dict(), weights)
    vision_image.write(tmp_path / "a.png", np.zeros((28, 28, 3), np.uint8))
    monkeypatch.setattr(config_load, "_load_file", count)
    for _ in ("made now", "made before"):
        asked = ["infer", "-c", "lenet_mnist", "-o", f"weights={weights}", "-i", str(tmp_path / "a.png")]
        assert main([*asked, "--output_dir", str(tmp_path / "out")]) == 0
        assert read[0] == find_config("lenet_mnist") and len(set(read)) == len(read)
        read.clear()


# -- a domain of another distribution ----------------------------------------------------------------------------------

TOY_DOMAIN = '''
"""A domain of one file: says how bright an image is."""

from dataclasses import dataclass
from typing import Any

from framework.config import register
from framework.engine.task import Losses, Task
from framework.io import Dataset
from framework.nn import Linear, Layer
from framework.vision.sample import Sample
from framework.workflow import Domain, ImageResult, VisionPredictor, option
from framework.workflow.runners.image_runner import open_runner
import numpy as np
import jax.numpy as jnp


@dataclass(frozen=True)
class ToyOptions:
    scale: float = option(1.0, "what brightness is multiplied by")
    batch_size: int | None = option(None, "how many run together")


@dataclass(frozen=True)
class Brightness(ImageResult):
    value: float

    def _content(self):
        return {"value": round(self.value, 3)}

    def overlay(self):
        return self.pixels


class Meter(VisionPredictor[Brightness]):
    """Says how bright an image is."""

    def __init__(self, runner):
        self.runner = runner

    def predict_stream(self, items):
        return self.runner.predict(items)


class ToyDomain(Domain[ToyOptions]):
    name = "toy"
    options = ToyOptions

    def open(self, artifact, options, runtime):
        def interpret(outputs, sample, image):
            value = float(outputs["brightness"]) * options.scale
            return Brightness(value, source=str(sample.id), width=image.shape[1], height=image.shape[0], image=image)

        return Meter(open_runner(artifact, interpret, runtime, self.packages, options.batch_size))


@dataclass(frozen=True)
class ToyNetConfig:
    start: float = 1.0


@register("model", config=ToyNetConfig)
class ToyNet(Layer):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.fc = Linear(1, 1)

    def forward(self, x):
        return self.fc(x)


@register("task")
@dataclass(frozen=True)
class MeasureBrightness(Task):
    def pack(self, sample):
        return {"image": sample.image, "target": np.float32(sample.image.mean() / 255)}

    def loss(self, model, batch):
        found = self.infer(model, batch)["brightness"]
        return Losses(((found - batch["target"]) ** 2).mean())

    def infer(self, model, inputs):
        mean = inputs["image"].astype(jnp.float32).mean(axis=(1, 2, 3)) / 255
        return {"brightness": model(mean[:, None])[:, 0]}


@register("dataset")
@dataclass(frozen=True)
class Greys(Dataset):
    count: int = 16

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return Sample(np.full((8, 8, 3), 16 * (index % 16), np.uint8), id=str(index))


DOMAIN = ToyDomain()
'''

TOY_CONFIG = """
domain: toy
model: {type: ToyNet}
task: {type: MeasureBrightness}
data: {train: {dataset: {type: Greys, count: 160}, batch_size: 8, num_workers: 1, worker_mode: process}}
optim: {type: Adam, learning_rate: 0.3}
train: {epochs: 4, log_every: 40, save_every: 1000}
export: {inputs: {image: {shape: [n, h, w, 3], dtype: uint8}}}
"""


@pytest.fixture
def toy(tmp_path: Path) -> dict[str, str]:
    """The environment of processes that see an installed distribution with the domain `toy`."""
    site = tmp_path / "site"
    (site / "toy" / "configs").mkdir(parents=True)
    (site / "toy" / "__init__.py").write_text('"""A domain."""', encoding="utf-8")
    (site / "toy" / "domain.py").write_text(TOY_DOMAIN, encoding="utf-8")
    (site / "toy" / "configs" / "toy_meter.yml").write_text(TOY_CONFIG, encoding="utf-8")
    info = site / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[oar.domains]\ntoy = toy.domain:DOMAIN\n", encoding="utf-8")
    path = os.pathsep.join([str(site), str(REPO)])
    return {**os.environ, "PYTHONPATH": path, "OAR_HOME": str(tmp_path / "home"), "PYTHONUTF8": "1"}


def run(env: dict[str, str], folder: Path, *argv: str) -> str:
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_domain_outside_of_the_packages_trains_exports_and_predicts(
    toy: dict[str, str], tmp_path: Path
) -> None:
    from framework.vision import image as vision_image

    path = str(tmp_path / "site" / "toy" / "configs" / "toy_meter.yml")
    tools = REPO / "tools"
    run(toy, tmp_path, str(tools / "train.py"), "-c", path, "--output_dir", "run")
    run(
        toy,
        tmp_path,
        str(tools / "export_model.py"),
        "-c",
        path,
        "-o",
        "weights=run",
        "--output_dir",
        "models",
    )
    vision_image.write(tmp_path / "a.png", np.full((8, 8, 3), 128, np.uint8))
    flags = [
        "--model_dir",
        "models/toy_meter",
        "--image_file",
        "a.png",
        "--scale",
        "2",
        "--output_dir",
        "out",
    ]
    run(toy, tmp_path, str(tools / "infer.py"), *flags)
    result = json.loads((tmp_path / "out" / "a.json").read_text(encoding="utf-8"))
    assert (result["source"], result["width"], result["height"]) == ("a.png", 8, 8)
    assert abs(result["value"] - 2 * 128 / 255) < 0.1
