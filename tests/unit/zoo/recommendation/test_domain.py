"""The domain from a table to scores: train, check, predict raw rows, and the losses and metrics of its tasks."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.commands.main import main
from framework.core.errors import ConfigError, InputError
from zoo.recommendation import predictor
from zoo.recommendation.results import Item, Recommendations, RowScores, result_from_dict
from zoo.recommendation.sample import RowSample
from zoo.recommendation.tasks import ClickPrediction, ClickScores, MultiTaskPrediction, click_loss

CONFIG = """
domain: recommendation
model: {type: FM, sparse_feature_number: 64, sparse_feature_dim: 4, dense_input_dim: 1, num_field: 2, init_std: 0.1}
task: {type: ClickPrediction}
data:
  train:
    dataset: {type: RowStream, paths: ['FOLDER/train_*.csv'], window: 64}
    transforms: [{type: EncodeFeatures, sparse: [user, item], dense: [hour], dense_scale: log, size: 64, labels: [click]}]
    batch_size: 32
  eval:
    dataset: {type: Rows, paths: [FOLDER/test.csv]}
    transforms: [{type: EncodeFeatures, sparse: [user, item], dense: [hour], dense_scale: log, size: 64, labels: [click], group: user}]
    batch_size: 64
optim: {type: Adam, learning_rate: 0.05}
train: {epochs: 2}
export: {inputs: {sparse: {shape: [n, 2], dtype: int32}, dense: {shape: [n, 1], dtype: float32}}, precisions: [float32]}
"""  # noqa: E501


def write_table(path: Path, rows: int, seed: int) -> None:
    """A click is where user and item are of one kind."""
    rng = np.random.default_rng(seed)
    lines = ["user,item,hour,click"]
    for user, item, hour in zip(*(rng.integers(0, high, rows) for high in (6, 6, 24))):
        lines.append(f"u{user},i{item},{hour},{int(user % 2 == item % 2)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_table_is_learnt_from_a_stream_and_served_from_raw_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, rows, seed in (("train_a.csv", 200, 0), ("train_b.csv", 120, 1), ("test.csv", 100, 2)):
        write_table(tmp_path / name, rows, seed)
    config = tmp_path / "clicks.yml"
    config.write_text(CONFIG.replace("FOLDER", tmp_path.as_posix()), encoding="utf-8")
    assert main(["train", "-c", str(config)]) == 0
    rows = [
        json.loads(line)
        for line in (tmp_path / "output/clicks/metrics.jsonl").read_text("utf-8").splitlines()
    ]
    last = [row for row in rows if "auc" in row][-1]
    assert last["auc"] > 0.99 and last["gauc"] > 0.99 and last["ne"] < 0.8
    (tmp_path / "raw.csv").write_text("user,item,hour\nu1,i3,5\nu1,i2,5\nu1,i3,late\n", encoding="utf-8")
    assert main(["infer", "-c", str(config), "raw.csv", "--output_dir", "scores"]) == 1
    lines = [json.loads(line) for line in (tmp_path / "scores/raw.jsonl").read_text("utf-8").splitlines()]
    # What is served is the best checkpoint, which is the first one.
    assert lines[0]["scores"]["click"] > lines[1]["scores"]["click"] + 0.1
    assert "no number" in lines[2]["error"] and len(lines) == 3
    rank = predictor(str(config))
    assert rank({"user": "u1", "item": "i3", "hour": 5}).score == pytest.approx(
        lines[0]["scores"]["click"], abs=1e-6
    )
    odd, even = rank([{"user": "u0", "item": "i1"}, {"user": "u0", "item": "i2"}])
    assert odd.score + 0.1 < even.score
    assert rank({"user": "never met", "item": "i1", "hour": ""}).score > 0
    with pytest.raises(InputError, match="none of the columns"):
        rank({"other": 1})
    with pytest.raises(InputError, match="no row"):
        rank("u1,i3,5")
    capsys.readouterr()
    assert main(["check", "-c", str(config)]) == 0
    assert "320 rows, 4 columns" in capsys.readouterr().out


class Constant(nn.Layer):
    """Gives the same logits for all rows."""

    def __init__(self, *logits: float) -> None:
        super().__init__()
        self.logits = logits

    def forward(self, features: object) -> object:
        rows = [jnp.full(2, logit, jnp.float32) for logit in self.logits]
        return rows[0] if len(rows) == 1 else tuple(rows)


BATCH = {"sparse": jnp.zeros((2, 1), jnp.int32), "dense": jnp.zeros((2, 0)), "label": jnp.array([1.0, 0.0])}


def test_paddlerecs_loss_is_capped_and_ours_is_not() -> None:
    logits, label = jnp.array([-40.0]), jnp.array([1.0])
    assert float(click_loss(logits, label, "bce")) == pytest.approx(40.0)
    assert float(click_loss(logits, label, "log_loss")) == pytest.approx(9.21, abs=0.01)


def test_probabilities_of_sampled_negatives_are_brought_back() -> None:
    score = ClickPrediction(sampling_rate=0.1).infer(Constant(0.0), BATCH)["score"]
    np.testing.assert_allclose(score, 0.5 * 0.1 / (0.5 * 0.1 + 0.5), rtol=1e-6)  # p / (p + (1 - p) / w)
    with pytest.raises(ConfigError, match="out of range"):
        ClickPrediction(sampling_rate=0.0)


def test_a_chain_multiplies_probabilities() -> None:
    task = MultiTaskPrediction(chain=True)
    batch = {**BATCH, "label": jnp.array([[1.0, 1.0], [1.0, 0.0]])}
    losses = task.loss(Constant(0.0, 0.0), batch)
    click, both = -np.log(0.5), -(np.log(0.25) + np.log(0.75)) / 2
    assert float(losses.total) == pytest.approx(click + both, rel=1e-5)
    np.testing.assert_allclose(task.infer(Constant(0.0, 0.0), batch)["score"], [[0.5, 0.25]] * 2)
    apart = MultiTaskPrediction(weights=(1.0, 0.5)).loss(Constant(0.0, 0.0), batch)
    assert float(apart.total) == pytest.approx(1.5 * click, rel=1e-5)
    with pytest.raises(ConfigError, match="names of several tasks"):
        MultiTaskPrediction(("click",))


def test_rows_without_what_a_task_needs_are_named() -> None:
    with pytest.raises(InputError, match="not encoded"):
        ClickPrediction().pack(RowSample(values={"a": "1"}, id="t.csv, line 2"))
    arrays = {"sparse": np.zeros(1, np.int32), "dense": np.zeros(0, np.float32)}
    with pytest.raises(InputError, match=r"t\.csv, line 2.*the row has not the labels"):
        ClickPrediction().pack(RowSample(arrays=arrays, id="t.csv, line 2"))
    arrays["label"] = np.float32([2])
    with pytest.raises(InputError, match=r"t\.csv, line 2: a label is no probability(.|\n)*2(.|\n)*0 to 1"):
        ClickPrediction().pack(RowSample(arrays=arrays, id="t.csv, line 2"))


def test_scores_of_one_class_say_that_they_have_no_value(caplog: pytest.LogCaptureFixture) -> None:
    scores = ClickScores()
    scores.update({"score": np.float32([0.1, 0.2])}, {"label": np.zeros(2, np.float32)})
    assert np.isnan(scores.result()["auc"]) and "all 2 rows have the label 0" in caplog.text


def test_bins_and_exact_areas_agree() -> None:
    rng = np.random.default_rng(0)
    outputs = {"score": rng.random(4000).astype(np.float32)}
    batch = {"label": (rng.random(4000) < outputs["score"]).astype(np.float32)}
    areas = []
    for kind in ("exact", "probability", "logit"):
        metric = ClickScores(kind)
        metric.update(outputs, batch)
        areas.append(metric.result()["auc"])
    np.testing.assert_allclose(areas, areas[0], atol=2e-4)


def test_results_are_read_again() -> None:
    for result in (
        RowScores({"click": 0.25, "buy": 0.125}, warnings=("note",)),
        Recommendations((Item("242", 1.5), Item("7", 0.5))),
    ):
        assert result_from_dict(json.loads(json.dumps(result.to_dict()))) == result
