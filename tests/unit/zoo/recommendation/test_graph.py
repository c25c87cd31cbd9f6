"""LightGCN and its task: the graph of users and items, what is drawn, training, and users as rows of a table."""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework.commands.main import main
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.core.rng import rng_scope
from zoo.recommendation.data.interactions import EncodeUser, InteractionPairs, Interactions
from zoo.recommendation.graph_task import CollaborativeFiltering
from zoo.recommendation.models.lightgcn import LightGCN, LightGCNConfig
from zoo.recommendation.sample import RowSample

RNG = np.random.default_rng(0)
EDGES = np.array([[2, 5], [0, 1], [0, 3], [2, 1], [1, 3], [4, 2], [0, 5]])  # user 3 and item 4 have none


def write_log(folder: Path) -> str:
    """Thirty users, each of whom takes seven of the ten items of one of two kinds."""
    rng = np.random.default_rng(0)
    lines = ["user_id:token\titem_id:token\ttimestamp:float"]
    for user in range(30):
        for time, item in enumerate(rng.permutation(10)[:7]):
            lines.append(f"u{user}\ti{item + 10 * (user % 2)}\t{time}")
    path = folder / "log.inter"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path.as_posix()


def small_model(num_layers: int = 3) -> LightGCN:
    model = build(LightGCNConfig(5, 5, len(EDGES), 4, num_layers))
    model.set_edges(EDGES)
    return model


@pytest.mark.parametrize("num_layers", [1, 3])
def test_vectors_are_the_mean_of_products_with_the_normalised_adjacency(num_layers: int) -> None:
    model = small_model(num_layers)
    tables = [np.asarray(layer.weight, np.float64) for layer in (model.user_embedding, model.item_embedding)]
    adjacency = np.zeros((11, 11))
    for user, item in EDGES:
        adjacency[user, 5 + item] = adjacency[5 + item, user] = 1
    degrees = np.maximum(adjacency.sum(axis=1), 1)
    spread = adjacency / np.sqrt(np.outer(degrees, degrees))
    layers = [np.concatenate(tables)]
    for _ in range(num_layers):
        layers.append(spread @ layers[-1])
    users, items = model()
    np.testing.assert_allclose(np.concatenate([users, items]), np.mean(layers, axis=0), atol=1e-6)


def test_the_graph_is_searched_and_listed() -> None:
    model, pairs = small_model(), {tuple(pair) for pair in EDGES.tolist()}
    users, items = np.mgrid[0:5, 0:6].astype(np.int32)
    expected = np.array([[(user, item) in pairs for item in range(6)] for user in range(5)])
    np.testing.assert_array_equal(model.is_edge(jnp.asarray(users), jnp.asarray(items)), expected)
    rows = np.array([2, 3, 2, 0], np.int32)  # one user twice, and one without items
    np.testing.assert_array_equal(model.seen_items(jnp.asarray(rows)), expected[rows])


def test_the_loss_is_of_items_that_the_user_did_not_take() -> None:
    model = small_model()
    users, items = model()
    task = CollaborativeFiltering(5, neg_num=1, reg_weight=0.5)
    batch = {"user": jnp.asarray([0]), "target": jnp.asarray([1])}
    expected = set()
    for other in (2, 4):  # user 0 has items 1, 3 and 5
        score = float(users[0] @ (items[other] - items[1]))
        tables = [model.user_embedding.weight[0], *model.item_embedding.weight[jnp.asarray([1, other])]]
        squares = sum(float((table**2).sum()) for table in tables)
        expected.add(round(float(np.logaddexp(0, score)) + 0.5 * squares / 2, 4))
    drawn = set()
    for seed in range(20):
        with rng_scope(jax.random.key(seed)):
            drawn.add(round(float(task.loss(model, batch).total), 4))
    assert {min(abs(one - other) for other in expected) < 2e-4 for one in drawn} == {True} and len(drawn) == 2


def test_users_of_whom_nothing_is_known_get_what_an_average_user_gets() -> None:
    model = small_model()
    users, items = (np.asarray(table) for table in model())
    rows = jnp.asarray([3, -1, 2], jnp.int32)  # one without items, one that is in no table
    outputs = CollaborativeFiltering(5).infer(model, {"user": rows})
    average = users[[0, 1, 2, 4]].mean(axis=0)
    np.testing.assert_allclose(outputs["vector"], [average, average, users[2]], atol=1e-6)
    np.testing.assert_allclose(outputs["scores"], np.asarray(outputs["vector"]) @ items.T, atol=1e-6)
    assert np.asarray(outputs["seen"]).sum(axis=1).tolist() == [0, 0, 2]


def test_pairs_of_a_log(tmp_path: Path) -> None:
    paths = (write_log(tmp_path),)
    train, users = InteractionPairs(paths), Interactions(paths, "valid")
    assert len(train) == 30 * 5 and train.num_users == 30 and train.user_names[1] == "u1"
    pairs = {
        (int(one.arrays["user"]), int(one.arrays["target"])) for one in (train[k] for k in range(len(train)))
    }
    for k in range(len(users)):
        sample = users[k]
        assert {(int(sample.arrays["user"]), row) for row in sample.arrays["history"].tolist()} < pairs
        assert (int(sample.arrays["user"]), int(sample.arrays["target"])) not in pairs
    with pytest.raises(ConfigError, match="pairs are trained on"):
        InteractionPairs(paths, "test")
    task = CollaborativeFiltering(20)
    model = build(LightGCNConfig(30, 20, 149))
    with pytest.raises(ConfigError, match=r"(?s)different numbers of pairs.*model\.num_edges=150"):
        task.prepare_model(model, train)
    with pytest.raises(ConfigError, match=r"(?s)different numbers of users.*model\.num_users=30"):
        task.prepare_model(build(LightGCNConfig(29, 20, 150)), train)
    with pytest.raises(ConfigError, match="who took what"):
        task.prepare_model(model, [1])
    with pytest.raises(InputError, match="no pair"):
        task.pack(RowSample(arrays={"history": np.ones(3)}))
    with pytest.raises(ConfigError, match="out of range"):
        CollaborativeFiltering(5, topk=())
    with pytest.raises(ConfigError, match="out of range"):
        LightGCNConfig(1, 1, 0)


def test_users_of_raw_rows() -> None:
    encode = EncodeUser("user").with_names(("a", "7"), ("x", "y"))
    assert encode(RowSample(values={"user": 7}), RNG).arrays["user"] == 1
    row = encode(RowSample(values={"user": "a", "history": ["y", "q"]}), RNG)
    assert row.arrays["history"].tolist() == [2] and "unknown to the model: q" in row.warnings[0]
    row = encode(RowSample(values={"user": "b"}), RNG)
    assert row.arrays["user"] == -1 and "the user b is unknown" in row.warnings[0]
    with pytest.raises(InputError, match=r"(?s)the row has no user.*the column user"):
        encode(RowSample(values={"name": "b"}), RNG)


def test_a_graph_is_trained_evaluated_and_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    log = write_log(tmp_path)
    config = tmp_path / "graph.yml"
    config.write_text(
        f"""
domain: recommendation
model: {{type: LightGCN, num_users: 30, num_items: 20, num_edges: 150, emb_size: 8, num_layers: 2}}
task: {{type: CollaborativeFiltering, num_items: 20, topk: [3]}}
data:
  train: {{dataset: {{type: InteractionPairs, paths: [{log}]}}, batch_size: 50}}
  eval:
    dataset: {{type: Interactions, paths: [{log}], split: valid}}
    transforms: [{{type: EncodeUser}}]
    batch_size: 10
optim: {{type: Adam, learning_rate: 0.05}}
train: {{epochs: 10, eval_every: 30}}
export: {{inputs: {{user: {{shape: [n], dtype: int32}}}}, precisions: [float32]}}
""",
        encoding="utf-8",
    )
    assert main(["train", "-c", str(config)]) == 0
    rows = (tmp_path / "output/graph/metrics.jsonl").read_text("utf-8").splitlines()
    assert [row for row in map(json.loads, rows) if "hr@3" in row][-1]["hr@3"] >= 0.4  # by chance 3 of 15
    text = '{"user_id": "u3"}\n{"user_id": "u4", "history": "i0 i1"}\n{"user_id": "u99"}\n'
    (tmp_path / "users.jsonl").write_text(text, "utf-8")
    assert main(["infer", "users.jsonl", "-c", str(config), "--top", "3", "--output_dir", "best"]) == 0
    lines = [json.loads(one) for one in (tmp_path / "best/users.jsonl").read_text("utf-8").splitlines()]
    train = InteractionPairs((log,))
    taken = {(train.user_names[user], train.class_names[item - 1]) for user, item in train.edges.tolist()}
    for user, line in zip(("u3", "u4"), lines):
        items = [one["item"] for one in line["items"]]
        assert len(items) == 3 and not {(user, item) for item in items} & taken
        assert all((int(item[1:]) >= 10) == (user == "u3") for item in items), items
    assert not {"i0", "i1"} & {one["item"] for one in lines[1]["items"]}
    assert len(lines[2]["items"]) == 3 and "the user u99 is unknown" in lines[2]["warnings"][0]
