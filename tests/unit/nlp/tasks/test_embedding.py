"""Vectors of texts: pooling, and the way from a config over an artifact to results.jsonl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import framework
from framework.config import build
from framework.core.errors import ConfigError
from framework.interop import write_safetensors
from framework.text.tokenizer import Tokenizer
from framework.workflow.domain.weights import load_weights_into
from framework.workflow.export.export import write_artifact
from framework.workflow.files.predict_files import run_texts
from nlp import predictor
from nlp.contracts import Tokens
from nlp.models.masked_lm import MaskedLMConfig
from nlp.models.sentence_encoder import SentenceEncoderConfig
from nlp.tasks.embedding import TextEmbedding
from zoo.text.bert import BertConfig
from zoo.text.roberta import RobertaConfig

SIZE: dict[str, Any] = {
    "vocab_size": 30,
    "hidden_size": 8,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_size": 16,
    "max_positions": 40,
}
IDS = np.array([[2, 7, 8, 3], [2, 9, 3, 0]], np.int32)
TOKENS = Tokens(IDS, IDS > 0)  # type: ignore[arg-type]


@pytest.mark.parametrize("pooling", ["cls", "mean", "pooler"])
@pytest.mark.parametrize("normalized", [False, True])
def test_pooling(pooling: Literal["cls", "mean", "pooler"], normalized: bool) -> None:
    framework.seed(0)
    model = build(SentenceEncoderConfig(BertConfig(**SIZE), pooling, normalized)).eval()
    hidden, pooled = model.text_encoder(IDS, None, IDS > 0)
    hidden = np.asarray(hidden)
    want = {
        "cls": hidden[:, 0],
        "mean": np.stack([hidden[0].mean(axis=0), hidden[1, :3].mean(axis=0)]),
        "pooler": np.asarray(pooled),
    }[pooling]
    if normalized:
        want = want / np.linalg.norm(want, axis=1, keepdims=True)
    assert np.asarray(model.embed(TOKENS)) == pytest.approx(want, abs=1e-6)


def test_weights_of_an_encoder_and_of_models_on_it(tmp_path: Path) -> None:
    framework.seed(1)
    whole = build(MaskedLMConfig(BertConfig(**SIZE))).eval()
    encoder = {name: np.asarray(value) for name, value in whole.text_encoder.state_dict().items()}
    write_safetensors(tmp_path / "bare.safetensors", encoder)
    write_safetensors(
        tmp_path / "whole.safetensors",
        {name: np.asarray(value) for name, value in whole.state_dict().items()},
    )
    want = np.asarray(whole.text_encoder(IDS, None, IDS > 0).hidden)[:, 0]
    for pooler in (True, False):
        for file in ("bare", "whole"):
            model = build(SentenceEncoderConfig(BertConfig(**SIZE, pooler=pooler)))
            load_weights_into(model, tmp_path / f"{file}.safetensors")
            assert np.array_equal(model.eval().embed(TOKENS), want)


CONFIG = """
domain: nlp
model:
  type: SentenceEncoder
  pooling: mean
  encoder: {{type: Bert, vocab_size: 30, hidden_size: 8, num_layers: 2, num_heads: 2, intermediate_size: 16, max_positions: 40}}
task: {{type: TextEmbedding}}
weights: {folder}/bare.safetensors
predict: {{transforms: [{{type: Tokenize, tokenizer: {folder}/tokenizer.json, max_length: 32}}], batch_size: 4, buckets: [8, 32]}}
export:
  inputs: {{input_ids: {{shape: [n, t], dtype: int32}}, mask: {{shape: [n, t], dtype: bool}}}}
  precisions: [float32]
"""  # noqa: E501


def test_from_a_config_to_results(tmp_path: Path) -> None:
    framework.seed(1)
    letters = "abcdefghijklmnop"
    Tokenizer.train("characters", [letters], 30).save(tmp_path / "tokenizer.json")
    model = build(SentenceEncoderConfig(BertConfig(**SIZE), "mean")).eval()
    state = {name: np.asarray(value) for name, value in model.text_encoder.state_dict().items()}
    write_safetensors(tmp_path / "bare.safetensors", state)
    config = tmp_path / "vectors.yml"
    config.write_text(CONFIG.format(folder=tmp_path.as_posix()), encoding="utf-8")
    folder = write_artifact(config, tmp_path / "inference")
    (tmp_path / "tokenizer.json").unlink()
    embed = predictor(folder, device="cpu", precision="float32")
    texts = ["abc", "", "p", letters + "abc", "cba", ("abc", "cba")]
    together = embed(texts)
    assert [result.vector.shape for result in together] == [(8,)] * 6
    assert all(result.vector.dtype == np.float32 for result in together)
    for text, result in zip(texts, together):  # companions change nothing
        assert np.abs(embed(text).vector - result.vector).max() < 1e-5
    assert np.abs(together[0].vector - together[4].vector).max() > 1e-3
    assert together[5].to_dict()["pair"] == "cba"
    run_texts(embed, texts[:2], tmp_path / "out")
    lines = (tmp_path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    for line, result in zip(lines, together):
        found = json.loads(line)
        assert found["text"] == result.text
        assert np.asarray(found["vector"], np.float32) == pytest.approx(result.vector, rel=1e-6)


def test_errors() -> None:
    with pytest.raises(ConfigError, match="the encoder has no pooler"):
        build(SentenceEncoderConfig(BertConfig(**SIZE, pooler=False), "pooler"))
    with pytest.raises(ConfigError, match="the encoder has no pooler"):
        build(SentenceEncoderConfig(RobertaConfig(**SIZE), "pooler"))
    with pytest.raises(ConfigError, match="gives no embeddings of texts"):
        TextEmbedding().check(build(MaskedLMConfig(BertConfig(**SIZE))), ())
    with pytest.raises(ConfigError, match="trains nothing"):
        TextEmbedding().loss(build(MaskedLMConfig(BertConfig(**SIZE))), {})
