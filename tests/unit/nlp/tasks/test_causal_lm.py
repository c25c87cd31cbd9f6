"""The task of writing on: its loss, its independence of packing and chunks, its scores, and how it starts."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError
from framework.nn.adapters import LoRA
from nlp.data.packing import row_of, whole_text
from nlp.language_metrics import LanguageScores
from nlp.tasks.causal_lm import CausalLanguageModel
from nlp.tasks.decoder_task import load_decoder_weights
from zoo.decoder.llama import LlamaConfig
from zoo.layers.decoder_weights import save_decoder

CONFIG = LlamaConfig(
    vocab_size=23, hidden_size=16, num_layers=2, num_heads=2, intermediate_size=24, max_positions=32
)
RNG = np.random.default_rng(0)
TEXTS = [whole_text(RNG.integers(0, 23, size).astype(np.int32)) for size in (5, 7, 3)]


@pytest.fixture(scope="module")
def model():
    return build(CONFIG).eval()


def batch_of(task: CausalLanguageModel, rows) -> dict[str, jax.Array]:
    packed = [task.pack(row) for row in rows]
    return {name: jnp.stack([jnp.asarray(one[name]) for one in packed]) for name in packed[0]}


def test_packed_texts_do_not_see_each_other(model) -> None:
    task = CausalLanguageModel()
    together = task.loss(model, batch_of(task, [row_of(TEXTS, 16)]))
    alone = [task.loss(model, batch_of(task, [row_of([text], len(text.ids))])) for text in TEXTS]
    weights = np.array([float(one.weight) for one in alone])
    np.testing.assert_array_equal(weights, [4, 6, 2])
    assert float(together.weight) == 12
    mean = sum(float(one.total) * weight for one, weight in zip(alone, weights)) / 12
    np.testing.assert_allclose(together.total, mean, rtol=1e-5)


def test_chunks_and_padding_change_nothing(model) -> None:
    losses = []
    for chunks, length in ((1, 16), (3, 16), (5, 24)):
        task = CausalLanguageModel(chunks)
        losses.append(task.loss(model, batch_of(task, [row_of(TEXTS, length)])).total)
    np.testing.assert_allclose(losses, losses[0], rtol=1e-6)


def test_the_loss_is_that_of_the_logits(model) -> None:
    task = CausalLanguageModel()
    row = row_of(TEXTS[1:2], 7)
    logs = jax.nn.log_softmax(model(jnp.asarray(row.ids)[None]))[0, :-1]
    expected = -np.mean([logs[place, token] for place, token in enumerate(row.ids[1:])])
    np.testing.assert_allclose(task.loss(model, batch_of(task, [row])).total, expected, rtol=1e-5)


def test_a_batch_without_targets_costs_nothing(model) -> None:
    task = CausalLanguageModel()
    losses = task.loss(model, batch_of(task, [row_of([whole_text(np.array([4], np.int32))], 4)]))
    assert float(losses.total) == 0.0 and float(losses.weight) == 0.0


def test_scores_are_over_all_tokens(model) -> None:
    task = CausalLanguageModel()
    row = row_of(TEXTS, 16).replace(text_bytes=24)
    metric = LanguageScores()
    for _ in range(2):
        outputs = jax.tree.map(np.asarray, task.infer(model, batch_of(task, [row])))
        metric.update(
            outputs, {name: np.asarray(value)[None] for name, value in task.pack_evaluated(row).items()}
        )
    scores = metric.result()
    loss = float(task.loss(model, batch_of(task, [row])).total)
    np.testing.assert_allclose(scores["nats"], loss, rtol=1e-6)
    np.testing.assert_allclose(scores["perplexity"], np.exp(loss), rtol=1e-5)
    np.testing.assert_allclose(scores["bits_per_byte"], loss * 12 / (np.log(2) * 24), rtol=1e-6)
    assert "bits_per_byte" not in LanguageScores().result()


def test_adapters_start_from_a_folder_and_from_a_checkpoint(tmp_path: Path, model) -> None:
    save_decoder(model, tmp_path)
    ids = jnp.arange(6)[None]
    adapted = build(dataclasses.replace(CONFIG, adapter=LoRA(rank=2, dora=True)))
    load_decoder_weights(adapted, tmp_path / "model.safetensors")
    np.testing.assert_allclose(adapted.eval()(ids), model(ids), atol=1e-5)
    plain = build(CONFIG)
    load_decoder_weights(plain, tmp_path / "model.safetensors")
    assert all(one.dtype == np.float32 for one in plain.state_dict().values())


def test_only_adapters_have_gradients_and_optimizer_state() -> None:
    from framework.optimizer import AdamW

    adapted = build(dataclasses.replace(CONFIG, adapter=LoRA(rank=2)))
    groups = AdamW(0.1).param_groups(adapted)
    assert len(groups) == 8 and all("lora_" in name for name in groups)


def test_settings_and_models_that_do_not_fit(model) -> None:
    with pytest.raises(ConfigError, match="chunks"):
        CausalLanguageModel(0)
    with pytest.raises(ConfigError, match="trains a decoder"):
        CausalLanguageModel().check(nn.Linear(2, 2), ())  # pyright: ignore[reportArgumentType]
