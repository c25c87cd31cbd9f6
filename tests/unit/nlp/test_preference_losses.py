"""Losses of preferences against the values of papers' formulas, which trl and PaddleNLP give too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nlp import preference_losses as L
from nlp.preference_losses import PAIR_LOSSES, PairLogs, PreferenceOptions

LOGS = PairLogs(*(jnp.array([value], jnp.float32) for value in (-12, -20, -14, -19, 10, 12)))


@pytest.mark.parametrize(
    ("name", "options", "value"),
    [
        ("dpo", {}, 0.5543552),
        ("dpo", {"smoothing": 0.1}, 0.5843552),
        ("robust", {"smoothing": 0.1}, 0.5168552),
        ("hinge", {}, 0.7),
        ("ipo", {}, 4.0),
        ("ipo_mean", {}, 22.2469444),
        ("nca", {}, 1.3194066),
        ("sppo", {}, 25.0),
        ("simpo", {"beta": 2.0, "gamma": 0.5}, 0.4997714),
        ("orpo", {"odds_weight": 0.1}, 1.2431948),
        ("dpop", {"penalty": 50.0}, 0.5543552),  # the chosen answer gained
    ],
)
def test_losses_of_a_pair(name: str, options: dict[str, float], value: float) -> None:
    np.testing.assert_allclose(PAIR_LOSSES[name](LOGS, PreferenceOptions(**options)), [value], rtol=1e-6)


def test_log_odds_of_a_pair_and_of_a_certain_answer() -> None:
    np.testing.assert_allclose(L.log_odds(LOGS), [0.6157152], rtol=1e-6)
    certain = LOGS._replace(preferred=jnp.zeros(1))
    grad = jax.grad(lambda x: PAIR_LOSSES["orpo"](certain._replace(preferred=x), PreferenceOptions()).sum())(
        certain.preferred
    )
    assert np.isfinite(L.log_odds(certain)).all() and np.isfinite(grad).all()


def test_dpop_costs_where_the_chosen_answer_lost() -> None:
    lost = LOGS._replace(preferred=jnp.array([-15.0]))
    expected = -jax.nn.log_sigmoid(0.1 * (0.0 - 50.0 * 1.0))
    np.testing.assert_allclose(PAIR_LOSSES["dpop"](lost, PreferenceOptions()), [expected], rtol=1e-6)


def test_kto_of_both_kinds_of_answers() -> None:
    ratio = jnp.array([2.0, -1.0])
    loss = L.kto(ratio, jnp.array([True, False]), jnp.float32(0.5), PreferenceOptions())
    np.testing.assert_allclose(loss, [0.4625702, 0.4625702], rtol=1e-6)


def test_advantages_within_a_group() -> None:
    rewards = jnp.array([[1, 0, 0, 1, 0.5], [1, 1, 1, 1, 1]])
    advantages = L.group_advantages(rewards)
    np.testing.assert_allclose(advantages[0], [0.9998, -0.9998, -0.9998, 0.9998, 0.0], atol=1e-5)
    np.testing.assert_allclose(advantages[1], 0.0)
    np.testing.assert_allclose(L.group_advantages(rewards, scaled=False)[0], [0.5, -0.5, -0.5, 0.5, 0.0])


def test_the_policy_loss_stops_at_its_bounds() -> None:
    old = jnp.zeros((1, 3))
    policy = jnp.log(jnp.array([[1.5, 0.5, 1.0]]))
    loss = L.policy_loss(policy, old, jnp.array([[2.0, -1.0, 1.0]]), 0.2, 0.3)
    np.testing.assert_allclose(loss, [[-2.6, 0.8, -1.0]], rtol=1e-6)
    grad = jax.grad(lambda p: L.policy_loss(p, old, jnp.array([[2.0, -1.0, 1.0]]), 0.2, 0.3).sum())(policy)
    np.testing.assert_allclose(grad, [[0.0, 0.0, -1.0]], atol=1e-6)
    np.testing.assert_allclose(L.k3(jnp.float32(-1.0), jnp.float32(-1.5)), np.exp(-0.5) + 0.5 - 1, rtol=1e-6)


@pytest.mark.parametrize("reward", [0.1, 0.35, 1000.1, -1e6 / 7])
@pytest.mark.parametrize("answers", [3, 7, 11])
def test_answers_of_one_reward_have_no_advantage(reward: float, answers: int) -> None:
    """The mean of equal numbers is another number in float32, which the deviation would make a large advantage."""
    rewards = jnp.full((1, answers), reward, jnp.float32)
    assert not np.asarray(L.group_advantages(rewards)).any()
