"""Logs of interactions, models of sequences (SASRec, BERT4Rec, GRU4Rec), ranking and retrieval."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from framework import nn
from framework.commands.main import main
from framework.config import build
from framework.core.errors import ConfigError, InputError, MissingExtraError
from framework.core.rng import rng_scope
from framework.optimizer import Adam
from zoo.recommendation.data.interactions import EncodeHistory, Interactions
from zoo.recommendation.models.dssm import DSSMConfig
from zoo.recommendation.models.gru4rec import GRU4RecConfig
from zoo.recommendation.models.sasrec import BERT4RecConfig, SASRecConfig
from zoo.recommendation.retrieval import ItemIndex, best_items
from zoo.recommendation.sample import RowSample
from zoo.recommendation.sequence_tasks import NextItem, RankingScores

SASREC = SASRecConfig(12, hidden_size=8, inner_size=16, max_length=6)
BERT = BERT4RecConfig(12, hidden_size=8, inner_size=16, max_length=6)
GRU = GRU4RecConfig(12, embedding_size=8, hidden_size=8)
DSSM = DSSMConfig(12, (8, 6), ("relu", "none"))
RNG = np.random.default_rng(0)


CONFIG = """
domain: recommendation
data:
  train:
    dataset: {type: Interactions, paths: [FOLDER/log.inter]}
    transforms: [{type: EncodeHistory, length: 6, crop: true}]
    batch_size: 10
  eval:
    dataset: {type: Interactions, paths: [FOLDER/log.inter], split: valid}
    transforms: [{type: EncodeHistory, length: 6}]
    batch_size: 10
optim: {type: Adam, learning_rate: 0.05}
train: {epochs: 40, eval_every: 40}
"""


def write_log(folder: Path) -> str:
    """Twenty users, each of whom takes five of the six items of one of two kinds."""
    rng = np.random.default_rng(0)
    lines = ["user_id:token\titem_id:token\ttimestamp:float"]
    for user in range(20):
        for time, item in enumerate(rng.permutation(6)[:5]):
            lines.append(f"u{user}\ti{item + 6 * (user % 2)}\t{time}")
    path = folder / "log.inter"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path.as_posix()


def log(folder: Path) -> tuple[str, ...]:
    """User 1 takes a, b, c, d, of which c and d at one time; user 2 takes d, a; user 3 b, a, d."""
    lines = ["user_id:token\titem_id:token\trating:float\ttimestamp:float"]
    for user, item, rating, time in (
        ("1", "b", 5, 2), ("1", "a", 4, 1), ("1", "c", 1, 3), ("1", "d", 5, 3), ("2", "d", 5, 1), ("2", "a", 5, 2),
        ("3", "b", 3, 5), ("3", "a", 4, 6), ("3", "d", 5, 7),
    ):  # fmt: skip
        lines.append(f"{user}\t{item}\t{rating}\t{time}")
    path = folder / "log.inter"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return (str(path),)


def test_splits_by_time_leave_one_out(tmp_path: Path) -> None:
    paths = log(tmp_path)
    train, valid, test = (Interactions(paths, split) for split in ("train", "valid", "test"))
    assert train.class_names == ("b", "a", "c", "d")
    names = ("", *train.class_names)

    def items(rows: np.ndarray) -> str:
        return "".join(names[row] for row in rows)

    assert [items(one.arrays["history"]) for one in (train[0], valid[0], test[0])] == ["ab", "ab", "abc"]
    assert [names[one.arrays["target"]] for one in (valid[0], test[0])] == [
        "c",
        "d",
    ]  # equal times: as in the file
    assert len(train) == 2 and len(Interactions(paths, "all")) == 3  # user 2 is too short for a split
    assert Interactions(paths, min_rating=4.0, split="all").class_names == ("b", "a", "d")
    assert Interactions(paths, min_count=2, split="all").class_names == ("b", "a", "d")
    with pytest.raises(InputError, match="no interaction is left"):
        len(Interactions(paths, min_count=9))
    with pytest.raises(InputError, match="a row lacks columns"):
        len(Interactions(paths, time="when"))


def test_logs_as_people_export_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """With dates, and rows without a user."""
    path = tmp_path / "log.csv"
    rows = ["1,a,2024-05-01 10:00:00", "1,b,2024-05-01T09:00:00Z", ",c,2024-05-01", "1,d,2024-05-01"]
    path.write_text("\n".join(["user_id,item_id,timestamp", *rows]), encoding="utf-8")
    whole = Interactions((str(path),), "all")
    assert whole[0].arrays["history"].tolist() == [3, 2, 1] and whole.class_names == ("a", "b", "d")
    assert len(whole) == 1 and "1 rows have no user_id or no item_id" in caplog.text
    path.write_text("user_id,item_id,timestamp\n1,a,yesterday\n", encoding="utf-8")
    with pytest.raises(
        InputError, match=r"log\.csv, line 2, column timestamp: this is no time(.|\n)*time: null"
    ):
        len(Interactions((str(path),)))
    with pytest.raises(InputError, match=r"lacks columns(.|\n)*rating"):
        len(Interactions((str(path),), min_rating=3))


def test_histories_of_data_and_of_raw_rows() -> None:
    sample = RowSample(arrays={"history": np.arange(1, 9, dtype=np.int32)})
    assert EncodeHistory(5)(sample, RNG).arrays["items"].tolist() == [4, 5, 6, 7, 8]
    assert EncodeHistory(10)(sample, RNG).arrays["items"].tolist() == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
    starts = {int(EncodeHistory(3, crop=True)(sample, RNG).arrays["items"][0]) for _ in range(60)}
    assert starts == {1, 2, 3, 4, 5}
    encode = EncodeHistory(4).with_items(("x", "y", "z"))
    for value in ("z q x", ["z", "q", "x"], "z,q,x"):
        row = encode(RowSample(values={"history": value}), RNG)
        assert row.arrays["items"].tolist() == [0, 0, 3, 1]
        assert row.warnings == ("1 items of the history are unknown to the model: q",)
    with pytest.raises(InputError, match="no history"):
        encode(RowSample(values={"user": "1"}), RNG)


@pytest.mark.parametrize("config", [SASREC, BERT, GRU, DSSM], ids=["SASRec", "BERT4Rec", "GRU4Rec", "DSSM"])
def test_padding_in_front_changes_nothing_and_gradients_reach_all(
    config: SASRecConfig | GRU4RecConfig | DSSMConfig,
) -> None:
    model = build(config).eval()
    short, padded = (jnp.asarray([row], jnp.int32) for row in ([3, 5, 7], [0, 0, 0, 3, 5, 7]))
    np.testing.assert_allclose(model(short)[:, -1], model(padded)[:, -1], atol=2e-6)
    task = NextItem(12, masked=0.4 if config is BERT else 0.0)
    graphdef, params, buffers = nn.split(model.train())
    items = jnp.asarray(RNG.integers(1, 13, (4, 6)), jnp.int32)

    def loss(params: dict, key: jax.Array) -> jax.Array:
        with rng_scope(key):
            return task.loss(graphdef.bind(params, buffers), {"items": items}).total

    grads = jax.jit(jax.grad(loss))(params, jax.random.key(0))
    still = {name for name, value in grads.items() if not np.abs(value).max() > 0}
    # softmax: keys may all be moved by one vector, and nothing changes
    assert all("key.bias" in name for name in still), still


def test_sasrec_does_not_look_ahead_and_bert4rec_does() -> None:
    rows = np.array([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 9]], np.int32)
    for config, ahead in ((SASREC, False), (BERT, True), (GRU, False), (DSSM, False)):
        first, second = np.asarray(build(config).eval()(jnp.asarray(rows)))[:, :5]
        assert (np.abs(first - second).max() > 1e-6) == ahead


def test_a_sequence_is_learnt() -> None:
    """Items follow one another in a ring: after some steps the next one is first."""
    config = SASRecConfig(12, 16, 32, 1, 2, max_length=5, dropout=0.0, attention_dropout=0.0)
    model, task = build(config).train(), NextItem(12, topk=(1,))
    graphdef, params, buffers = nn.split(model)
    optimizer = Adam(0.02)
    groups = optimizer.param_groups(model)
    state = optimizer.init(params, groups)
    data = jnp.asarray((np.arange(6)[None] + np.arange(12)[:, None]) % 12 + 1, jnp.int32)

    @jax.jit
    def step(params: dict, state: dict) -> tuple[dict, dict]:
        def loss(params: dict) -> jax.Array:
            with rng_scope(jax.random.key(0)):
                return task.loss(graphdef.bind(params, buffers), {"items": data}).total

        return optimizer.update(jax.grad(loss)(params), state, params, 0.02, groups)[:2]

    for _ in range(40):
        params, state = step(params, state)
    nn.update(model, params, buffers)
    outputs = task.infer(model.eval(), {"items": data[:, :5]})
    metric = RankingScores((1,))
    seen = np.zeros((12, 13), bool)
    seen[:, 0] = True
    metric.update({"scores": np.asarray(outputs["scores"])}, {"seen": seen, "target": np.asarray(data[:, 5])})
    assert metric.result()["hr@1"] == 1.0


def test_negatives_of_the_batch_are_corrected_by_their_chance() -> None:
    """Each sequence has one position, so that its item is the candidate that is drawn."""
    rows, chance = np.array([3, 5, 3]), np.array([0.5, 0.1, 0.5], np.float32)
    items, chances = np.zeros((3, 4), np.int32), np.zeros((3, 4), np.float32)
    items[:, 2:] = np.stack([[1, 2, 4], rows], axis=1)
    chances[:, 2:] = np.stack([[0.2] * 3, chance], axis=1)
    model = build(DSSM).eval()
    logits = np.asarray(model(jnp.asarray(items[:, :-1])))[:, -1] @ np.asarray(model.item_vectors()).T
    expected = []
    for row, others in enumerate(([1], [0, 2], [1])):  # the same item is no negative
        names = [row, *others]
        corrected = logits[row, rows[names]] - np.log(chance[names])
        expected.append(np.log(np.exp(corrected).sum()) - corrected[0])
    with rng_scope(jax.random.key(0)):
        batch = {"items": jnp.asarray(items), "chance": jnp.asarray(chances)}
        loss = NextItem(12, loss_name="in_batch").loss(model, batch).total
    assert float(loss) == pytest.approx(float(np.mean(expected)), rel=1e-5)


def test_two_towers_are_trained_and_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path)
    text = CONFIG.replace("FOLDER", tmp_path.as_posix())
    lines = [line for line in text.splitlines() if not line.startswith(("model:", "task:", "export:"))]
    lines += [
        "model: {type: DSSM, num_items: 12, fc_sizes: [8, 8], fc_acts: [relu, none]}",
        "task: {type: NextItem, num_items: 12, loss_name: in_batch, topk: [2]}",
        "export: {inputs: {items: {shape: [n, 6], dtype: int32}}, precisions: [float32]}",
    ]
    config = tmp_path / "towers.yml"
    config.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert main(["train", "-c", str(config)]) == 0
    (tmp_path / "histories.jsonl").write_text('{"history": "i7 i8"}\n{"history": ["i0", "i1"]}\n', "utf-8")
    assert main(["infer", "histories.jsonl", "-c", str(config), "--top", "3", "--output_dir", "best"]) == 0
    for line, seen in zip((tmp_path / "best/histories.jsonl").read_text("utf-8").splitlines(), ("78", "01")):
        numbers = [int(one["item"][1:]) for one in json.loads(line)["items"]]
        assert len(numbers) == 3 and not {str(number) for number in numbers} & set(seen)
        assert all((number >= 6) == (seen == "78") for number in numbers[:2]), numbers


def test_the_data_say_how_frequent_items_are(tmp_path: Path) -> None:
    train = Interactions(log(tmp_path), "train")  # two users: a, b and b
    shares = {
        int(row): float(share)
        for one in train
        for row, share in zip(one.arrays["history"], one.arrays["chance"])
    }
    assert shares == {1: 0.75, 2: 0.25}
    encoded = EncodeHistory(3, crop=True)(train[0], RNG).arrays
    assert encoded["items"].tolist() == [0, 0, 2, 1] and encoded["chance"].tolist() == [0, 0, 0.25, 0.75]
    task = NextItem(4, loss_name="in_batch")
    assert set(task.pack(EncodeHistory(3)(train[0], RNG))) == {"items", "chance"}
    with pytest.raises(InputError, match="how frequent"):
        task.pack(RowSample(arrays={"items": encoded["items"]}))


def test_items_are_found_by_products() -> None:
    vectors, queries = (
        RNG.normal(size=(300, 8)).astype(np.float32),
        RNG.normal(size=(150, 8)).astype(np.float32),
    )
    index = ItemIndex(vectors)
    scores, rows = index.search(queries, 5)
    best = np.argsort(-(queries @ vectors.T), axis=1)[:, :5]
    assert np.array_equal(rows, best) and scores.shape == (150, 5)
    _, others = index.search(queries[:2], 5, exclude=[best[0, :2].tolist(), []])
    assert others[0].tolist()[:3] == best[0, 2:].tolist() and others[1].tolist() == best[1].tolist()
    few = ItemIndex(vectors[:3]).search(queries[:1], 5, exclude=[[0]])
    assert few[1][0].tolist()[2:] == [-1, -1, -1] and np.isneginf(few[0][0][2:]).all()
    assert best_items(np.array([9.0, 1.0, 3.0, 2.0]), 2, np.array([2])) == ([2, 0], [2.0, 1.0])
    if importlib.util.find_spec("faiss") is None:
        with pytest.raises(MissingExtraError, match="faiss"):
            ItemIndex(vectors, "faiss")
    with pytest.raises(ConfigError, match="masked items"):
        NextItem(5, masked=0.2, loss_name="bpr")
