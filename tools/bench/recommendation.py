"""Training steps of models of clicks and of SASRec, against DeepCTR-Torch and a plain SASRec in torch, in turns.

recommendation   CPU milliseconds a step, of the same sizes and batches, both on what they make of one thread
next_items       what counts of a log alone recommend (item cosine, EASE), ranked as SASRec is: the bar of its scores
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from framework import nn
from framework.config import build
from framework.core.compilation import compile_options
from framework.core.rng import rng_scope
from framework.engine.task import Task
from framework.optimizer import Adam
from zoo.recommendation.data.interactions import Interactions
from zoo.recommendation.models.dcn import DCNv2Config
from zoo.recommendation.models.deepfm import DeepFMConfig
from zoo.recommendation.models.sasrec import SASRecConfig
from zoo.recommendation.sequence_tasks import NextItem, RankingScores, pack_target
from zoo.recommendation.tasks import ClickPrediction

# As in recommendation_peer.py, which another interpreter runs.
FIELDS, ROWS_A_FIELD, BATCH, ITEMS, LENGTH, USERS = 39, 927, 256, 1671, 50, 128
_SIZES = {"sparse_feature_number": FIELDS * ROWS_A_FIELD, "sparse_feature_dim": 8, "dense_input_dim": 0}
_SIZES |= {"num_field": FIELDS, "fc_sizes": (128, 128)}
CLICKS = ClickPrediction()
MODELS = {
    "deepfm": (DeepFMConfig(**_SIZES), CLICKS),
    "dcn_v2": (DCNv2Config(**_SIZES, use_low_rank_mixture=False, is_Stacked=False, dropout=0.0), CLICKS),
    "dcn_mix": (DCNv2Config(**_SIZES, low_rank=32, is_Stacked=False, dropout=0.0), CLICKS),
    "sasrec": (SASRecConfig(ITEMS), NextItem(ITEMS)),
}
PEER = Path(__file__).with_name("recommendation_peer.py")


def make_step(model: nn.Layer, task: Task) -> Callable[[], None]:
    """One step of Adam on a batch of drawn rows."""
    rng = np.random.default_rng(0)
    optimizer = Adam(1e-3)
    graphdef, params, buffers = nn.split(model.train())
    groups = optimizer.param_groups(model)
    state = [params, optimizer.init(params, groups)]
    if isinstance(task, NextItem):
        batch = {"items": jnp.asarray(rng.integers(1, ITEMS + 1, (USERS, LENGTH + 1)), jnp.int32)}
    else:
        ids = rng.integers(0, ROWS_A_FIELD, (BATCH, FIELDS)) + ROWS_A_FIELD * np.arange(FIELDS)
        label = jnp.asarray(rng.random(BATCH) < 0.25, jnp.float32)
        batch = {"sparse": jnp.asarray(ids, jnp.int32), "dense": jnp.zeros((BATCH, 0)), "label": label}

    def update(params: dict, rule: dict, batch: dict, key: jax.Array) -> tuple[dict, dict]:
        def loss(params: dict) -> jax.Array:
            with rng_scope(key):
                return task.loss(graphdef.bind(params, buffers), batch).total

        return optimizer.update(jax.grad(loss)(params), rule, params, 1e-3, groups)[:2]

    options = compile_options(jax.local_devices()[0])
    compiled = jax.jit(update, donate_argnums=(0, 1), compiler_options=options)
    key = jax.random.key(0)

    def step() -> None:
        state[:] = compiled(*state, batch, key)
        jax.block_until_ready(state)

    return step


def recommendation(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", help="an interpreter with torch and deepctr-torch; without it ours alone")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--steps", type=int, default=30, help="steps of each of two rounds")
    options = parser.parse_args(argv)
    for name in options.models:
        config, task = MODELS[name]
        step = make_step(build(config), task)
        for _ in range(3):
            step()
        ours: list[float] = []
        theirs: list[float] = []
        for _ in range(2):
            for _ in range(options.steps):
                start = time.process_time()
                step()
                ours.append(1000 * (time.process_time() - start))
            if options.python:
                command = [options.python, str(PEER), name, str(options.steps)]
                printed = subprocess.run(command, capture_output=True, check=True, text=True).stdout
                theirs += json.loads(printed.splitlines()[-1])  # behind what the library prints
        line = f"{name:8} ours {statistics.median(ours):7.2f} ms CPU a step"
        if theirs:
            ratio = statistics.median(ours) / statistics.median(theirs)
            line += f"   torch {statistics.median(theirs):7.2f} ms   ours / torch {ratio:.2f}"
        print(line, flush=True)


def cosine_scores(log: np.ndarray, histories: list[np.ndarray], last: int | None) -> np.ndarray:
    """[N, V + 1]: the sum of the cosines of each item with those of a history. `log` [users, V + 1] is 0 and 1."""
    norms = np.maximum(np.sqrt(log.sum(axis=0)), 1e-12)
    cosines = (log.T @ log) / np.outer(norms, norms)
    np.fill_diagonal(cosines, 0)
    return np.stack([cosines[rows if last is None else rows[-last:]].sum(axis=0) for rows in histories])


def ease_scores(log: np.ndarray, histories: list[np.ndarray], decay: float) -> np.ndarray:
    """[N, V + 1] of a linear model of items without itself. Source: Steck 2019, https://arxiv.org/abs/1905.03375"""
    inverse = np.linalg.inv(log.T @ log + decay * np.eye(log.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    return np.stack([weights[rows].sum(axis=0) for rows in histories])


def next_items(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", help="a log such as data/ml_100k/ml-100k.inter")
    options = parser.parse_args(argv)
    test = Interactions(tuple(options.paths), "test")
    samples = [test[index] for index in range(len(test))]
    histories = [sample.arrays["history"] for sample in samples]
    log = np.zeros((len(samples), len(test.class_names) + 1))
    for user, rows in enumerate(histories):
        log[user, rows] = 1
    packed = [pack_target(sample, len(test.class_names), exclude_seen=True) for sample in samples]
    batch = {name: np.stack([one[name] for one in packed]) for name in ("seen", "target")}
    scorers = {
        "popularity": np.repeat(log.sum(axis=0)[None], len(samples), axis=0),
        "item cosine, all": cosine_scores(log, histories, None),
        "item cosine, last 10": cosine_scores(log, histories, 10),
        "EASE, lambda 300": ease_scores(log, histories, 300.0),
    }
    for name, scores in scorers.items():
        metric = RankingScores((10,))
        metric.update({"scores": scores}, batch)
        result = metric.result()
        print(f"{name:22} HR@10 {result['hr@10']:.4f}   NDCG@10 {result['ndcg@10']:.4f}")


if __name__ == "__main__":
    recommendation(sys.argv[1:])
