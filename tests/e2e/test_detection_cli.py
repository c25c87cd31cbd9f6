"""The shipped detector as a user runs it on the images that it was evaluated on, and a killed training run of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from detection import predictor
from framework.config import load
from framework.engine.experiment import bind_experiment
from framework.nn import functional_core
from framework.workflow.export.export import trained_model

REPO = Path(__file__).resolve().parents[2]
CONFIG = REPO / "configs" / "detection" / "picodet" / "picodet_s_320_bccd.yml"
DATA = Path(os.environ.get("OAR_SHARED", REPO.parent / "shared")) / "data" / "bccd"
ROOTS = (f"data.train.dataset.root={DATA.as_posix()}", f"data.eval.dataset.root={DATA.as_posix()}")
TIMES = ("samples_per_second", "wait_share", "seconds")

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason=f"the blood cells are not here: {DATA}")


def test_the_tool_finds_the_boxes_that_evaluation_scored() -> None:
    experiment = bind_experiment(load(CONFIG, ROOTS))
    feed = experiment.data.eval
    assert feed is not None and experiment.task is not None
    task = experiment.task
    model, _, _ = trained_model(experiment, CONFIG)
    graphdef, params, buffers = functional_core.split(model)
    infer = jax.jit(lambda images: task.infer(graphdef.bind(params, buffers), {"image": images}))
    detect = predictor("picodet_s_320_bccd", threshold=0.05, precision="float32")
    for index in range(3):
        sample = feed.dataset[index]
        result = detect(sample.image)
        for transform in feed.transforms:
            sample = transform(sample, np.random.default_rng(0))
        packed = task.pack(sample)
        scored = {name: np.asarray(value)[0] for name, value in infer(packed["image"][None]).items()}
        kept = scored["scores"] >= 0.05
        height, width = packed["size"]
        corners = scored["boxes"][kept].reshape(-1, 2, 2)
        boxes = corners * packed["matrix"][[0, 1], [0, 1]] + packed["matrix"][:2, 2]
        boxes = boxes.reshape(-1, 4).clip(0, [width, height, width, height])
        assert len(result.boxes) > 10
        # The exported program folds normalisations, so the last digits differ, and with them the order of equal ones.
        ours, theirs = (
            np.argsort(-result.scores, kind="stable"),
            np.argsort(-scored["scores"][kept], kind="stable"),
        )
        assert len(ours) == len(theirs)
        assert np.abs(result.scores[ours] - scored["scores"][kept][theirs]).max() < 1e-4
        same = np.abs(result.xyxy[ours] - boxes[theirs]).max(axis=1) < 0.05
        assert same.mean() > 0.95 and same[:10].all()


def tool(name: str, *arguments: object) -> list[str]:
    return [sys.executable, str(REPO / "tools" / f"{name}.py"), *map(str, arguments)]


def rows(folder: Path) -> list[dict]:
    lines = (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return [{k: v for k, v in json.loads(line).items() if k not in TIMES} for line in lines]


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_bit(tmp_path: Path) -> None:
    settings = (
        "train.epochs=null",
        "train.iters=8",
        "train.log_every=1",
        "train.save_every=3",
        "train.eval_every=8",
    )
    settings = (*settings, "optim.learning_rate.warmup_steps=2")
    given = ("-c", CONFIG, "-o", *ROOTS, *settings)
    environment = {**os.environ, "OAR_HOME": str(tmp_path / "home"), "OAR_OFFLINE": "1", "PYTHONUTF8": "1"}
    straight, folder = tmp_path / "straight", tmp_path / "killed"
    subprocess.run(tool("train", *given, "--output_dir", straight), env=environment, check=True, timeout=900)
    process = subprocess.Popen(tool("train", *given, "--output_dir", folder), env=environment)
    until, log = time.monotonic() + 900, folder / "metrics.jsonl"
    while process.poll() is None and time.monotonic() < until:
        if log.is_file() and '"step": 5,' in log.read_text(encoding="utf-8"):
            break
        time.sleep(0.05)
    assert process.poll() is None, "the run ended before it could be killed"
    process.kill()
    process.wait()
    command = tool("train", *given, "--output_dir", folder, "--resume")
    done = subprocess.run(
        command, env=environment, check=True, timeout=900, capture_output=True, encoding="utf-8"
    )
    assert "going on from step 3" in done.stdout
    assert rows(folder) == rows(straight)
