"""GRPO: what is drawn, how it is judged, and what is learned from it."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.text.tokenizer import Tokenizer
from nlp.data.prompts import PromptSample
from nlp.rewards import Matches, SameNumber, SameText, add_rewards
from nlp.rollouts import draw_answers
from nlp.tasks.grpo import GRPO
from zoo.decoder.llama import LlamaConfig

CONFIG = LlamaConfig(
    vocab_size=18,
    hidden_size=16,
    num_layers=1,
    num_heads=2,
    intermediate_size=24,
    max_positions=32,
    init_std=0.5,
)
END = 3


@pytest.fixture(scope="module")
def model():
    return build(CONFIG).eval()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    Tokenizer.train("spaced_characters", ["0123456789+="], 18).save(path)
    return str(path)


IDS = jnp.asarray([[5, 6, 7, 0], [8, 9, 0, 0]], jnp.int32)
LENGTHS = jnp.asarray([3, 2], jnp.int32)


def test_greedy_answers_are_those_of_the_whole_text(model) -> None:
    answers = draw_answers(
        model, IDS, LENGTHS, jax.random.key(0), max_new_tokens=5, end_ids=(END,), temperature=0
    )
    for row in range(2):
        ids = IDS[row, : LENGTHS[row]].tolist()
        for step in range(int(answers.lengths[row])):
            logs = jax.nn.log_softmax(model(jnp.asarray([ids]))[0, -1])
            assert int(answers.ids[row, step]) == int(logs.argmax())
            np.testing.assert_allclose(answers.log_likelihood[row, step], logs.max(), atol=1e-5)
            ids.append(int(answers.ids[row, step]))
    behind = np.arange(5) >= np.asarray(answers.lengths)[:, None]
    np.testing.assert_array_equal(np.asarray(answers.ids)[behind], 0)


def test_draws_have_the_probabilities_of_the_model(model) -> None:
    count = 4000
    answers = draw_answers(
        model,
        IDS[:1],
        LENGTHS[:1],
        jax.random.key(1),
        group=count,
        max_new_tokens=1,
        end_ids=(),
        temperature=0.7,
    )
    chances = np.asarray(jax.nn.softmax(model(IDS[:1, :3])[0, -1] / 0.7))
    counts = np.bincount(np.asarray(answers.ids[:, 0]), minlength=18)
    keep = chances * count > 5
    chi = ((counts - chances * count) ** 2 / (chances * count))[keep].sum()
    assert chi < 60  # 17 degrees of freedom: beyond it one draw in a million


def test_the_end_token_belongs_to_the_answer(model) -> None:
    answers = draw_answers(
        model, IDS, LENGTHS, jax.random.key(0), group=8, max_new_tokens=6, end_ids=(END, 4)
    )
    ids, lengths = np.asarray(answers.ids), np.asarray(answers.lengths)
    for row, size in zip(ids, lengths):
        assert not np.isin(row[: size - 1], (END, 4)).any()
        assert size == 6 or row[size - 1] in (END, 4)
    assert lengths.min() < 6


@dataclass(frozen=True)
class Evens:
    def __call__(self, prompt: str, answer: str, expected: str) -> float:
        return sum(letter in "02468" for letter in answer) / 4


def experience(model, tokenizer: str, step: int, **settings):
    task = GRPO(tokenizer, (Evens(),), group=4, max_new_tokens=4, max_prompt_length=4, **settings)
    samples = [
        PromptSample("1+1=", np.array([5, 6, 7], np.int32)),
        PromptSample("2=", np.array([8, 9], np.int32)),
    ]
    packed = [task.pack(sample) for sample in samples]
    batch = {name: np.stack([row[name] for row in packed]) for name in packed[0]}
    graphdef, params, buffers = nn.split(model)
    act = task.experience(graphdef, None, 5)
    return task, act(params, buffers, batch, step)


def test_the_same_step_draws_the_same(model, tokenizer: str) -> None:
    _, first = experience(model, tokenizer, 3)
    _, again = experience(model, tokenizer, 3)
    _, other = experience(model, tokenizer, 4)
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert (first["input_ids"] != other["input_ids"]).any()
    assert first["input_ids"].shape == (8, 8) and first["rewards"].shape == (8,)


def test_what_was_drawn_is_what_is_learned(model, tokenizer: str) -> None:
    task, batch = experience(model, tokenizer, 0, temperature=1.3)
    arrays = {name: jnp.asarray(value) for name, value in batch.items()}
    drawn = batch["targets"] >= 0
    np.testing.assert_array_equal(
        batch["input_ids"][:, 1:][drawn[:, :-1]], batch["targets"][:, :-1][drawn[:, :-1]]
    )
    np.testing.assert_allclose(np.asarray(task._logs(model, arrays))[drawn], batch["old"][drawn], atol=1e-5)


def test_a_step_makes_better_answers_more_probable(model, tokenizer: str) -> None:
    for normalize in ("answer", "length", "tokens"):
        task, batch = experience(model, tokenizer, 0, normalize=normalize)
        arrays = {name: jnp.asarray(value) for name, value in batch.items()}
        graphdef, params, buffers = nn.split(model)

        def loss(params, task=task, arrays=arrays, graphdef=graphdef, buffers=buffers):
            return task.loss(graphdef.bind(params, buffers), arrays).total

        def expected(params, task=task, arrays=arrays, graphdef=graphdef, buffers=buffers):
            logs = task._logs(graphdef.bind(params, buffers), arrays)
            return (logs * arrays["advantages"][:, None]).sum()

        grads = jax.grad(loss)(params)
        moved = jax.tree.map(lambda p, g: p - 0.01 * g / (1e-6 + jnp.abs(g).max()), params, grads)
        assert expected(moved) > expected(params), normalize


def test_rewards() -> None:
    assert SameText()("", " Paris\n", "Paris") == 1 and SameText()("", "paris", "Paris") == 0
    assert SameText(case=False)("", "paris", "Paris") == 1
    number = SameNumber(other=0.1)
    assert number("", "so it is 1,072.", "#### 1072") == 1
    assert number("", "so it is 73", "#### 72") == 0.1 and number("", "none", "72") == 0
    assert Matches(r"<a>.*</a>$")("", "<a>\nx</a>", "") == 1


def test_a_reward_that_is_no_number_is_named() -> None:
    rewards = [lambda *texts: None, lambda *texts: np.float32(0.5), lambda *texts: True]
    assert add_rewards(rewards, "p", "a", "") == 1.5
    for value in (float("nan"), float("inf"), "good", [1, 2]):
        with pytest.raises(InputError, match=r"answer 'a': a reward is no number(.|\n)*or None"):
            add_rewards([lambda *texts, value=value: value], "p", "a", "")


def test_settings_that_do_not_fit(model, tokenizer: str) -> None:
    for settings in ({"group": 1}, {"rewards": ()}, {"temperature": 0}, {"low": 1.0}):
        with pytest.raises(ConfigError, match="out of range"):
            GRPO(**{"tokenizer": tokenizer, "rewards": (Evens(),), **settings})
    with pytest.raises(ConfigError, match="no reference"):
        GRPO(tokenizer, (Evens(),), beta=0.1).check(model, ())
    with pytest.raises(ConfigError, match="longer than"):
        GRPO(tokenizer, (Evens(),), max_prompt_length=2).pack(PromptSample("x", np.arange(3)))
