"""What training and loading say where data, classes or weights of a detector are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework
from detection.models.picodet import PicoDetConfig
from framework.config import build, load
from framework.core.errors import ConfigError, InputError, ShapeError, WeightError
from framework.engine.experiment import Experiment, bind_experiment
from framework.vision import image
from framework.workflow.domain.weights import load_weights_into
from framework.workflow.train.run import evaluate, make_loader, make_trainer

REPO = Path(__file__).resolve().parents[3]
CONFIG = REPO / "configs/detection/picodet/picodet_xs_320_coco_lcnet.yml"


def experiment(folder: Path, classes: int = 2, *overrides: str) -> Experiment:
    """Three images with an object of each of two classes; one box reaches beyond its image."""
    images = [{"id": i, "file_name": f"{i}.png", "height": 40, "width": 60} for i in range(3)]
    boxes = [[5, 5, 20, 20], [50, 30, 25, 25]]
    objects = [
        {"id": 2 * i + k, "image_id": i, "category_id": k, "bbox": boxes[k], "area": 400, "iscrowd": 0}
        for i in range(3)
        for k in range(2)
    ]
    data = {
        "images": images,
        "annotations": objects,
        "categories": [{"id": k, "name": "ab"[k]} for k in (0, 1)],
    }
    (folder / "a.json").write_text(json.dumps(data), encoding="utf-8")
    for i in range(3):
        image.write(folder / f"{i}.png", np.full((40, 60, 3), 60 * i, np.uint8))
    feeds = [
        f"data.{feed}.{key}={value}"
        for feed in ("train", "eval")
        for key, value in {
            "dataset": f"{{_inherited_: false, type: CocoDetection, root: '{folder.as_posix()}', annotations: a.json}}",
            "batch_size": 1,
            "num_workers": 0,
        }.items()
    ]
    small = (
        "data.train.transforms.-1.sizes=[64]",
        "data.eval.transforms.0.size_hw=[64, 64]",
        "pretrained=null",
    )
    return bind_experiment(load(CONFIG, (*feeds, *small, f"model.num_classes={classes}", *overrides)))


def batches(known: Experiment, train: bool) -> list[Any]:
    feed = known.data.train if train else known.data.eval
    assert feed is not None
    return list(make_loader(feed, known.task, 0, train=train).batches(0))


def test_boxes_beyond_the_image_are_cut(tmp_path: Path) -> None:
    known = experiment(tmp_path)
    for train in (True, False):
        for batch in batches(known, train):
            assert ((batch.data["boxes"] >= 0) & (batch.data["boxes"] <= 64)).all()
    judged = batches(known, train=False)[0].data  # 64 / 60 times as wide and 64 / 40 times as high
    np.testing.assert_allclose(judged["boxes"][0, 1], [50 * 64 / 60, 48, 64, 64], rtol=1e-5)


def test_a_missing_image(tmp_path: Path) -> None:
    known = experiment(tmp_path)
    (tmp_path / "1.png").unlink()
    with pytest.raises(InputError, match=r"1 of 3 images are not there[\s\S]*1\.png"):
        batches(known, train=True)


@pytest.mark.parametrize("train", [True, False])
def test_a_corrupt_image_is_named(tmp_path: Path, train: bool) -> None:
    known = experiment(tmp_path)
    (tmp_path / "2.png").write_bytes((tmp_path / "2.png").read_bytes()[:40])
    with pytest.raises(InputError, match=r"2\.png[\s\S]*take it out of the annotations"):
        batches(known, train=train)


def test_a_corrupt_image_is_left_out_on_request(tmp_path: Path) -> None:
    settings = [f"data.{part}.skip_bad_samples=true" for part in ("train", "eval")]
    known = experiment(tmp_path, 2, *settings)
    (tmp_path / "2.png").write_bytes(b"\x89PNG")
    for part, train in ((known.data.train, True), (known.data.eval, False)):
        assert part is not None
        run = tmp_path / f"run_{train}"
        run.mkdir()
        found = list(make_loader(part, known.task, 0, train, folder=run).batches(0))  # pyright: ignore[reportArgumentType]
        assert len(found) == 3 and all(batch.ids[0] in (0, 1) for batch in found)
        if not train:
            assert [batch.data["valid"].tolist() for batch in found] == [[True], [True], [False]]
        (row,) = map(json.loads, (run / "skipped_samples.jsonl").read_text(encoding="utf-8").splitlines())
        assert row["where"].endswith("2.png") and "cannot be read" in row["reason"]


def test_samples_are_drawn_by_their_classes(tmp_path: Path) -> None:
    chosen = ("data.train.sampler={type: WeightedRandom, weights: {a: 0.0, b: 0.0}}",)
    with pytest.raises(ShapeError, match="the weights of samples must be"):
        batches(experiment(tmp_path, 2, *chosen), train=True)
    known = experiment(tmp_path, 2, "data.train.sampler={type: ClassBalanced, num_samples: 7}")
    first = [batch.ids for batch in batches(known, train=True)]
    assert len(first) == 7 and first == [batch.ids for batch in batches(known, train=True)]
    with pytest.raises(ConfigError, match="one order of samples"):
        experiment(tmp_path, 2, "data.train.sampler.type=ClassBalanced", "data.train.buckets=[8]")


def test_another_number_of_classes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="different numbers of classes") as caught:
        make_trainer(experiment(tmp_path, classes=80), None)
    assert "80 for the 2 classes a, b" in str(caught.value)
    assert "-o model.num_classes=2" in str(caught.value)


def test_another_number_of_classes_in_evaluation(tmp_path: Path) -> None:
    experiment(tmp_path)
    framework.save(dict(build(PicoDetConfig("picodet_xs", 3)).state_dict()), tmp_path / "w.safetensors")
    data = f"{{_inherited_: false, type: CocoDetection, root: '{tmp_path.as_posix()}', annotations: a.json}}"
    with pytest.raises(ConfigError, match="different numbers of classes"):
        evaluate(
            CONFIG,
            (
                f"data.eval.dataset={data}",
                f"weights={tmp_path.as_posix()}/w.safetensors",
                "model.num_classes=3",
            ),
        )


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (PicoDetConfig("picodet_xs", 80), "head.head_cls0.weight: ours"),
        (PicoDetConfig("picodet_m", 3), "missing"),
    ],
    ids=["classes", "variant"],
)
def test_weights_of_another_model(tmp_path: Path, config: PicoDetConfig, message: str) -> None:
    framework.save(dict(build(PicoDetConfig("picodet_xs", 3)).state_dict()), tmp_path / "w.safetensors")
    with pytest.raises(WeightError, match="do not fit PicoDet") as caught:
        load_weights_into(build(config), tmp_path / "w.safetensors")
    assert message in str(caught.value) and "check variant and num_classes" in str(caught.value)
