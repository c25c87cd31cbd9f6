"""Advantage actor-critic balances a pole."""

import math

import numpy as np
import paddle
import paddle.nn as nn
import paddle.nn.functional as F
from exchange import STEPS, report, start
from paddle.distribution import Categorical

GAMMA, HORIZON = 0.98, 16


class Pole:
    """A cart pushed left or right below a pole; angles in radians."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)
        self.reset()

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4)
        return self.state.astype("float32")

    def step(self, action):
        _x, speed, angle, turn = self.state
        force, sin, cos = (10.0 if action else -10.0), math.sin(angle), math.cos(angle)
        push = (force + 0.05 * turn**2 * sin) / 1.1
        angular = (9.8 * sin - cos * push) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        linear = push - 0.05 * angular * cos / 1.1
        self.state = self.state + 0.02 * np.array([speed, linear, turn, angular])
        done = abs(self.state[0]) > 2.4 or abs(self.state[2]) > 0.21
        return self.state.astype("float32"), 1.0, bool(done)


class ActorCritic(nn.Layer):
    def __init__(self, hidden=32):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.actor = nn.Linear(hidden, 2)
        self.critic = nn.Linear(hidden, 1)

    def forward(self, x):
        x = self.body(x)
        return self.actor(x), self.critic(x)


env, rng = Pole(0), np.random.RandomState(1)
model = start(ActorCritic())
optimizer = paddle.optimizer.Adam(parameters=model.parameters(), learning_rate=3e-3)
state = env.reset()
for _step in range(STEPS):
    log_probs, values, rewards, masks, entropies = [], [], [], [], []
    for _ in range(HORIZON):
        logits, value = model(paddle.to_tensor(state).unsqueeze(0))
        policy = Categorical(logits)
        action = int(rng.rand() < float(F.softmax(logits)[0, 1]))
        log_probs.append(F.log_softmax(logits)[0, action])
        entropies.append(policy.entropy())
        values.append(value[0, 0])
        state, reward, done = env.step(action)
        rewards.append(reward)
        masks.append(1.0 - done)
        if done:
            state = env.reset()
    with paddle.no_grad():
        following = float(model(paddle.to_tensor(state).unsqueeze(0))[1])
    returns = []
    for reward, mask in zip(reversed(rewards), reversed(masks)):
        following = reward + GAMMA * following * mask
        returns.insert(0, following)
    returns = paddle.to_tensor(returns, dtype="float32")
    values, log_probs = paddle.stack(values), paddle.stack(log_probs)
    advantage = returns - values
    policy_loss = -(log_probs * advantage.detach()).mean()
    value_loss = advantage.pow(2).mean()
    loss = policy_loss + 0.5 * value_loss - 0.01 * paddle.concat([e.reshape([1]) for e in entropies]).mean()
    optimizer.clear_grad()
    loss.backward()
    optimizer.step()
    report("loss", loss)
print("loss", float(loss), "mean return", float(returns.mean()))
