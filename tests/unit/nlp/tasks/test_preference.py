"""The task of preferring: its losses on a model, references that are kept, and data that do not fit."""

import dataclasses
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import build
from framework.core.errors import ConfigError
from framework.nn.adapters import LoRA
from nlp.data.packing import TokenText
from nlp.data.preferences import AnswerPair, JudgedAnswer
from nlp.preference_losses import PreferenceOptions
from nlp.tasks.preference import Preference, reference_logs
from zoo.decoder.llama import LlamaConfig

CONFIG = LlamaConfig(
    vocab_size=23, hidden_size=16, num_layers=1, num_heads=2, intermediate_size=24, max_positions=32
)
RNG = np.random.default_rng(0)


def text(prompt: int, answer: int) -> TokenText:
    ids = RNG.integers(0, 23, prompt + answer).astype(np.int32)
    return TokenText(ids, np.arange(prompt + answer) >= prompt)


PAIRS = [AnswerPair(text(3, 4), text(3, 2), id=f"line {number}") for number in range(3)]


@pytest.fixture(scope="module")
def model():
    return build(CONFIG).eval()


def stacked(rows: list[dict[str, np.ndarray]]) -> dict[str, jax.Array]:
    return {name: jnp.stack([jnp.asarray(row[name]) for row in rows]) for name in rows[0]}


def test_the_logs_are_those_of_each_answer_alone(model) -> None:
    task = Preference("simpo")
    logs = task.infer(model, stacked([task.pack(pair) for pair in PAIRS]))["log_likelihood"]
    for row, pair in zip(logs, PAIRS):
        for found, answer in zip(row, (pair.chosen, pair.rejected)):
            chances = jax.nn.log_softmax(model(jnp.asarray(answer.ids)[None]))[0]
            expected = sum(
                chances[at, token] for at, token in enumerate(answer.ids[1:]) if answer.learned[at + 1]
            )
            np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_a_model_that_is_its_reference_has_the_loss_of_no_margin(model) -> None:
    task = Preference("dpo")
    pack = task.prepare_pack(model, PAIRS, True)
    assert pack is not None
    losses = task.loss(model, stacked([pack(pair) for pair in PAIRS]))
    np.testing.assert_allclose(losses.total, np.log(2), rtol=1e-5)
    np.testing.assert_allclose(losses.parts["margin"], 0, atol=1e-5)


def test_references_are_kept_and_are_of_the_model_without_adapters(model) -> None:
    task = Preference("dpo")
    packed = [task.pack(pair) for pair in PAIRS]
    table = reference_logs(model, packed, batch_size=2)
    adapted = build(dataclasses.replace(CONFIG, adapter=LoRA(rank=2)))
    ours = dict(adapted.named_parameters())
    for name, parameter in model.named_parameters():
        ours[name].set_value(parameter.value)
    for name, parameter in ours.items():
        if name.endswith("lora_B"):
            parameter.set_value(np.ones(parameter.shape, np.float32))
    np.testing.assert_array_equal(reference_logs(adapted, packed), table)  # from the disk: the same name
    other = build(CONFIG)
    other.model.norm.weight = np.full(16, 2.0, np.float32)
    assert np.abs(reference_logs(other, packed) - table).max() > 0.1


def test_one_step_makes_the_chosen_answer_more_probable(model) -> None:
    from framework import nn

    for loss_type, options in (("dpo", {}), ("orpo", {}), ("ipo", {}), ("simpo", {"beta": 2.0})):
        task = Preference(loss_type, PreferenceOptions(**options))
        pack = task.prepare_pack(model, PAIRS, True) or task.pack
        batch = stacked([pack(pair) for pair in PAIRS])
        graphdef, params, buffers = nn.split(model)

        def loss(params, task=task, batch=batch, graphdef=graphdef, buffers=buffers):
            losses = task.loss(graphdef.bind(params, buffers), batch)
            return losses.total, losses.parts["margin"]

        (_, before), grads = jax.value_and_grad(loss, has_aux=True)(params)
        moved = jax.tree.map(lambda p, g: p - 0.05 * g / (1e-6 + jnp.abs(g).max()), params, grads)
        assert loss(moved)[1] > before, loss_type


def test_kto_of_labelled_answers(model) -> None:
    task = Preference("kto")
    samples = [JudgedAnswer(text(3, 2), text(3, 4), bool(number % 2), id=number) for number in range(4)]
    pack = task.prepare_pack(model, samples, True)
    assert pack is not None
    losses = task.loss(model, stacked([pack(sample) for sample in samples]))
    np.testing.assert_allclose(losses.total, 0.5, rtol=1e-5)
    np.testing.assert_allclose(losses.parts["kl"], 0.0, atol=1e-5)


def test_data_and_settings_that_do_not_fit(model) -> None:
    with pytest.raises(ConfigError, match="LabelledAnswers for kto"):
        Preference("kto").pack(PAIRS[0])
    with pytest.raises(ConfigError, match="Preferences for dpo"):
        Preference("dpo").pack(JudgedAnswer(text(2, 2), text(2, 2), True))
    with pytest.raises(ConfigError, match="reference"):
        Preference("dpo").loss(model, stacked([Preference("dpo").pack(PAIRS[0])]))
    for settings in (
        {"loss_type": "ppo"},
        {"options": PreferenceOptions(beta=0)},
        {"options": PreferenceOptions(smoothing=0.5)},
    ):
        with pytest.raises(ConfigError, match="out of range"):
            Preference(**settings)


def test_home_holds_one_file_for_each_model_and_data(model, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("OAR_HOME", str(tmp_path))
    packed = [Preference("dpo").pack(pair) for pair in PAIRS]
    reference_logs(model, packed)
    reference_logs(model, packed)
    reference_logs(model, packed[:2])
    assert len(list((tmp_path / "references").iterdir())) == 2
