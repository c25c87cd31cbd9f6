"""An artifact whose texts are tokenised runs after the tokenizer's own file is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

import nlp
from framework.config import build, plain
from framework.core.rng import seed
from framework.export import Artifact, TensorSpec, lower_layer
from framework.export.artifact import pack_assets
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from framework.workflow.export.export import ExportedModel
from nlp.models.text_cnn import TextCNNConfig
from nlp.tasks import SequenceClassification


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = Tokenizer.train("words", ["good film", "bad film"], 20).save(tmp_path / "tokenizer.json")
    seed(0)
    model, task = (
        build(TextCNNConfig(8, embedding_dim=4, filters=4, hidden_size=4)).eval(),
        SequenceClassification(),
    )
    specs = {"input_ids": TensorSpec(("n", "t"), "int32"), "mask": TensorSpec(("n", "t"), "bool")}
    program, weights = lower_layer(
        ExportedModel(model, task, tuple(specs)), specs, platforms=("cpu",), after=lambda x: x
    )
    transforms, files = pack_assets([Tokenize(str(path), max_length=8)])
    about = {
        "domain": "nlp",
        "task": plain(task),
        "inputs": {name: [list(spec.shape), spec.dtype] for name, spec in specs.items()},
        "transforms": [plain(transform) for transform in transforms],
        "buckets": [4, 8],
        "batch_size": 2,
        "labels": ["neg", "pos"],
    }
    Artifact(about, {"float32": program}, weights, files=files).save(tmp_path / "net")
    path.unlink()
    return tmp_path / "net"


def test_it_runs(folder: Path) -> None:
    classify = nlp.predictor(folder, device="cpu", precision="float32")
    texts = ["good film", "", "a bad film that goes on and on and on", ("good", "film")]
    results = classify(texts)
    assert [len(result.classes) for result in results] == [2, 0, 2, 2]
    assert results[0].score == pytest.approx(classify("good film").score, abs=1e-6)
    assert results[0].score != results[1].score
