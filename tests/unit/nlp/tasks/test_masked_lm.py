from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import framework
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.text.sample import TextSample
from nlp.metrics import MaskedPerplexity
from nlp.models.masked_lm import MaskedLMConfig
from nlp.packing import tokens_of
from nlp.tasks.masked_lm import MaskedLanguageModelling
from zoo.text.bert import BertConfig

IDS = np.array([2, 4, 7, 9, 3], np.int32)
SAMPLE = TextSample("a b c", ids=IDS, positions=np.array([1, 3]), target_ids=np.array([8, 9]))
BERT = BertConfig(
    vocab_size=12,
    hidden_size=8,
    num_layers=1,
    num_heads=2,
    intermediate_size=16,
    max_positions=8,
    pooler=False,
)


def test_arrays() -> None:
    packed = MaskedLanguageModelling(max_positions=3).pack(SAMPLE)
    assert packed["positions"].tolist() == [1, 3, 0] and packed["words"].tolist() == [8, 9, -1]
    assert packed["positions"].dtype == packed["words"].dtype == np.int32


def test_losses_and_outputs_agree_with_the_logits() -> None:
    framework.seed(0)
    task = MaskedLanguageModelling(max_positions=3, candidates=4, scores=(MaskedPerplexity(),))
    model = build(MaskedLMConfig(BERT)).eval()
    none = SAMPLE.replace(positions=np.empty(0, np.int32), target_ids=np.empty(0, np.int32))
    packs = [task.pack(SAMPLE), task.pack(none)]
    batch: Any = {name: np.stack([pack[name] for pack in packs]) for name in packs[0]}
    logits = model(tokens_of(batch))
    chances = np.asarray(jax.nn.log_softmax(logits))
    wanted = [chances[0, 1, 8], chances[0, 3, 9]]
    losses = task.loss(model, batch)
    assert losses.total == pytest.approx(-np.mean(wanted), abs=1e-5)
    outputs = {name: np.asarray(value) for name, value in task.infer(model, batch).items()}
    assert outputs["candidates"].shape == (2, 3, 4)
    assert outputs["candidates"][0, 1].tolist() == np.argsort(-chances[0, 3])[:4].tolist()
    assert outputs["scores"][0, 1] == pytest.approx(np.sort(np.exp(chances[0, 3]))[::-1][:4], abs=1e-6)
    assert "log_likelihood" not in task.infer(model, {k: v for k, v in batch.items() if k != "words"})
    (metric,) = task.metrics(()).values()
    metric.update(outputs, batch)
    scores = metric.result()
    assert list(scores) == ["perplexity", "masked_accuracy"] and not metric.higher_is_better
    assert scores["perplexity"] == pytest.approx(np.exp(-np.mean(wanted)), rel=1e-5)
    hits = [chances[0, 1].argmax() == 8, chances[0, 3].argmax() == 9]
    assert scores["masked_accuracy"] == np.mean(hits)
    assert losses.parts["accuracy"] == pytest.approx(np.mean(hits))


def test_the_perplexity_weighs_tokens_and_not_batches() -> None:
    metric = MaskedPerplexity().start(())
    for chances, words in (([0.5, 0.5, 0.5], [1, 2, 3]), ([0.125, 1.0, 1.0], [1, -1, -1])):
        metric.update(
            {"log_likelihood": np.log([chances]), "candidates": np.array([[[1], [9], [3]]])},
            {"words": np.array([words])},
        )
    # Three tokens with 1/2 and one with 1/8: the mean of -log2 p is 6 / 4.
    assert metric.result() == {"perplexity": pytest.approx(2**1.5), "masked_accuracy": 0.75}
    assert MaskedPerplexity().start(()).result() == {"perplexity": 1.0, "masked_accuracy": 0.0}


def test_errors() -> None:
    with pytest.raises(InputError, match="no token of the text is hidden"):
        MaskedLanguageModelling().pack(TextSample("a", ids=IDS))
    with pytest.raises(InputError, match="more tokens are hidden"):
        MaskedLanguageModelling(max_positions=1).pack(SAMPLE)
    with pytest.raises(ConfigError, match="nothing is predicted"):
        MaskedLanguageModelling(candidates=0)
