"""Ranking models with nn.ShardedEmbedding: the names, the values and the losses of nn.Embedding, on any devices."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import available, bind, build, find
from framework.core.errors import ConfigError
from framework.nn.table_options import CountFilterEntry, ProbabilityEntry
from tests.unit.zoo.recommendation.test_domain import CONFIG, write_table
from tools.golden.recommendation import CASES, inputs
from zoo.recommendation.contracts import Features
from zoo.recommendation.data.features import EncodeFeatures
from zoo.recommendation.models.fm import FMConfig
from zoo.recommendation.tables import ShardedTable, TableConfig

PACKAGES = ("zoo.recommendation", "zoo", "framework")
WITH_TABLES = [
    name
    for name, case in CASES.items()
    if issubclass(find("model", case.model, PACKAGES).config, TableConfig)  # type: ignore[arg-type]
]
SMALL = FMConfig(sparse_feature_number=64, sparse_feature_dim=4, dense_input_dim=0, num_field=2)


def tables(model: nn.Layer, kind: type[nn.Layer]) -> set[str]:
    return {name for name, one in model.named_sublayers() if isinstance(one, kind)}


@pytest.mark.parametrize("paddlerec", [False, True])
@pytest.mark.parametrize("name", WITH_TABLES)
def test_a_model_with_divided_tables_is_the_same_model(name: str, paddlerec: bool) -> None:
    """Every table of every ranking model, by the names of nn.Embedding, and what it gives."""
    case = CASES[name]
    kind = find("model", case.model, PACKAGES).config
    settings = dict(case.settings)
    if "paddlerec" in kind.__dataclass_fields__:
        settings["paddlerec"] = paddlerec
    if name == "dlrm" and not paddlerec:
        settings["top_layer_sizes"] = (16, 1)
    models = []
    for embedding in ("dense", "sharded"):
        models.append(build(kind(**settings, embedding=embedding)).eval())
    dense, sharded = models
    assert tables(sharded, nn.ShardedEmbedding) == tables(dense, nn.Embedding) != set()
    assert not tables(sharded, nn.Embedding)
    assert sharded.state_shapes() == dense.state_shapes()
    sharded.set_state_dict(dense.state_dict())
    arrays = inputs(case.inputs)
    weight = None if "weight" not in arrays else jnp.asarray(arrays["weight"])
    features = Features(jnp.asarray(arrays["sparse"], jnp.int32), jnp.asarray(arrays["dense"]), weight)
    np.testing.assert_allclose(sharded(features), dense(features), rtol=1e-6, atol=1e-6)


def test_models_without_a_row_here_have_no_tables() -> None:
    ranked = {case.model for case in CASES.values()}
    others = {name for name in available("model", ("zoo.recommendation",)) if name not in ranked}
    assert not {
        name
        for name in others
        if issubclass(find("model", name, PACKAGES).config, TableConfig)  # type: ignore[arg-type]
    }
    assert len(WITH_TABLES) == len(CASES) - 3  # MMoE and PLE read numbers, DSSM bags


def embedding_of(value: object) -> str | ShardedTable:
    return bind({"embedding": value}, TableConfig).embedding


def test_settings_of_a_configuration() -> None:
    settings = embedding_of(
        {
            "ids": "hashed",
            "hashes": 2,
            "optimizer": "rowwise_adagrad",
            "learning_rate": 0.1,
            "entry": {"count_filter": 10},
        }
    )
    assert settings == ShardedTable("hashed", "rowwise_adagrad", 0.1, hashes=2, entry=CountFilterEntry(10))
    chance = embedding_of({"entry": {"probability": 0.25}})
    assert isinstance(chance, ShardedTable) and chance.entry == ProbabilityEntry(0.25)
    assert embedding_of("sharded") == "sharded"
    layer = build(dataclasses.replace(SMALL, embedding=settings)).fm.embedding
    assert (layer.ids, layer.hashes, layer.padding_idx) == ("hashed", 2, 0)
    assert layer.table_options.entry == CountFilterEntry(10) and layer.table_options.learning_rate == 0.1
    for wrong in (
        "other",
        {"ids": "modulo"},
        {"hashes": 2},
        {"learning_rate": -1.0},
        {"entry": {"count": 3}},
    ):
        with pytest.raises(ConfigError):
            embedding_of(wrong)


def test_hashed_ids_need_no_row_of_their_own() -> None:
    encode = EncodeFeatures(("user", "item"), size=1_000_000)
    with pytest.raises(ConfigError, match="does not fit the features"):
        encode.check(build(SMALL))
    hashed = build(dataclasses.replace(SMALL, embedding=ShardedTable("hashed"))).eval()
    encode.check(hashed)
    with pytest.raises(ConfigError, match="num_field"):
        EncodeFeatures(("user",), size=1_000_000).check(hashed)
    ids = jnp.array([[0, 999_999], [7, 123_456]])
    logits = np.asarray(hashed(Features(ids, jnp.zeros((2, 0)))))
    assert np.isfinite(logits).all() and logits.std() > 0


def oar(folder: Path, devices: int, *arguments: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"from framework.commands.main import main; raise SystemExit(main({arguments}))",
        ],
        cwd=folder,
        env={**os.environ, "JAX_NUM_CPU_DEVICES": str(devices), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_one_device_and_eight_train_alike_and_what_is_exported_serves(tmp_path: Path) -> None:
    for name, rows, seed in (("train_a.csv", 200, 0), ("train_b.csv", 120, 1), ("test.csv", 64, 2)):
        write_table(tmp_path / name, rows, seed)
    config = tmp_path / "clicks.yml"
    text = CONFIG.replace("FOLDER", tmp_path.as_posix()).replace("type: FM", "type: DeepFM, fc_sizes: [8]")
    config.write_text(text, encoding="utf-8")
    settings = ("-c", str(config), "-o", "model.embedding=sharded", "train.log_every=1")
    rows = {}
    for devices in (1, 8):
        folder = tmp_path / f"devices_{devices}"
        folder.mkdir()
        oar(folder, devices, "train", *settings)
        lines = (folder / "output/clicks/metrics.jsonl").read_text("utf-8").splitlines()
        rows[devices] = [json.loads(line) for line in lines]
    for key in ("loss", "auc"):
        one, many = ([row[key] for row in rows[devices] if key in row] for devices in (1, 8))
        assert len(one) > 1
        np.testing.assert_allclose(many, one, rtol=1e-4, err_msg=key)
    assert one[-1] > 0.95
    folder = tmp_path / "devices_8"
    (folder / "raw.csv").write_text("user,item,hour\nu1,i3,5\nu1,i2,5\n", encoding="utf-8")
    oar(folder, 1, "infer", "raw.csv", *settings[:4], "--output_dir", "checkpoint")
    oar(folder, 1, "export", *settings[:4], "--output_dir", "artifacts")
    oar(folder, 1, "infer", "--model_dir", "artifacts/clicks", "raw.csv", "--output_dir", "exported")
    scores = {}
    for name in ("checkpoint", "exported"):
        lines = (folder / name / "raw.jsonl").read_text("utf-8").splitlines()
        scores[name] = [json.loads(line)["scores"]["click"] for line in lines]
    np.testing.assert_allclose(scores["exported"], scores["checkpoint"], atol=1e-6)
    assert scores["exported"][0] > scores["exported"][1] + 0.1
