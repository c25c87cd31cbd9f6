"""Tasks on two texts: what they pack, their losses by hand, what they learn, and what they refuse."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import build
from framework.core.errors import ConfigError, InputError
from framework.nn import functional_core
from framework.text.hashing import HashFeatures
from framework.text.sample import TextSample
from nlp.contracts import Tokens
from nlp.data.triples import TextTriples
from nlp.models.bow import BOWConfig
from nlp.models.pairwise_matching import PairwiseMatchingConfig
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.models.simcse import SimCSEConfig
from nlp.models.simnet import SimNetConfig
from nlp.pair_metrics import AUC
from nlp.tasks import SequenceClassification
from nlp.tasks.matching import InBatchNegatives, PairwiseRanking, TextMatching
from zoo.text.ernie import ErnieConfig

ENCODER = ErnieConfig(
    vocab_size=30, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=12, max_positions=16
)
IDS, PAIR = np.array([5, 6, 7], np.int32), np.array([8, 9], np.int32)
APART = TextSample("a", pair="b", label=1, ids=IDS, pair_ids=PAIR)
JOINED = APART.replace(pair_ids=None, type_ids=np.array([0, 0, 1], np.int32))
RNG = np.random.default_rng(0)


def loss(task: Any, model: nn.Layer, batch: Any) -> Any:
    return compiled(task.loss, model, batch)


def infer(task: Any, model: nn.Layer, batch: Any) -> Any:
    return compiled(task.infer, model, batch)


def compiled(function: Any, model: nn.Layer, *inputs: Any) -> Any:
    """One program is made faster than those of all operations."""
    graphdef, params, buffers = functional_core.split(model)
    return jax.jit(lambda params, inputs: function(graphdef.bind(params, buffers), *inputs))(params, inputs)


def made(config: Any) -> Any:
    framework.seed(0)
    return build(config).eval()


def batch_of(*packs: dict[str, np.ndarray]) -> dict[str, Any]:
    return {name: np.stack([pack[name] for pack in packs]) for name in packs[0]}


def test_texts_are_packed_apart_or_in_one_row() -> None:
    task = TextMatching()
    apart = task.pack(APART.replace(type_ids=np.zeros(3, np.int32)))
    assert list(apart) == ["input_ids", "mask", "pair_ids", "pair_mask", "label"]
    assert apart["pair_ids"].tolist() == [8, 9] and apart["pair_mask"].all() and task.length(APART) == 3
    joined = task.pack(JOINED)
    assert list(joined) == ["input_ids", "mask", "type_ids", "label"]
    ranked = PairwiseRanking().pack(JOINED.replace(negative=JOINED.replace(ids=IDS + 1)))
    assert ranked["negative_input_ids"].tolist() == [6, 7, 8] and "label" not in ranked
    assert PairwiseRanking().pack(JOINED)["label"] == 1
    names = {*apart, *joined, *ranked} - {"label"}
    assert names <= set(TextMatching.padding)


def test_a_text_without_a_pair_is_its_own() -> None:
    packed = InBatchNegatives().pack(TextSample("a", label=0, ids=IDS))
    assert packed["pair_ids"].tolist() == IDS.tolist() and packed["label"] == 1
    assert InBatchNegatives().length(TextSample("a", ids=IDS)) == 3


@pytest.mark.parametrize("row", [JOINED, APART], ids=["one row", "apart"])
def test_matching(row: TextSample) -> None:
    config = SimNetConfig(30) if row is APART else SequenceClassifierConfig(ENCODER)
    model, task = made(config), TextMatching((AUC(),))
    batch = batch_of(task.pack(row), task.pack(row.replace(label=0)))
    found = infer(task, model, batch)
    assert found["similarity"].shape == (2,) and np.array_equal(found["similarity"], found["scores"][:, 1])
    losses = loss(task, model, batch)
    scores = found["scores"][0]
    assert losses.total == pytest.approx(-float(np.log(scores).mean()), abs=1e-5)
    assert losses.parts["accuracy"] == 0.5 and list(task.metrics(())) == ["0"]
    task.check(model, ("0", "1"))


def test_ranking_is_a_margin_between_scores() -> None:
    model, task = made(PairwiseMatchingConfig(ENCODER)), PairwiseRanking(margin=0.5)
    sample = JOINED.replace(negative=JOINED.replace(ids=IDS + 9))
    batch = batch_of(task.pack(sample))
    better = infer(task, model, batch)["similarity"]
    worse = infer(task, model, {**batch_of(task.pack(JOINED)), "input_ids": IDS[None] + 9})["similarity"]
    losses = loss(task, model, batch)
    assert losses.total == pytest.approx(float(0.5 - better[0] + worse[0]), abs=1e-6)
    assert losses.parts["accuracy"] == float(better[0] > worse[0])
    task.check(model, ("0", "1"))


def test_in_batch_negatives_by_hand() -> None:
    model, task = made(SimCSEConfig(ENCODER, embedding_size=4)), InBatchNegatives(scale=3.0, margin=0.1)
    samples = [APART, APART.replace(ids=IDS + 5, pair_ids=PAIR + 4), APART.replace(ids=IDS + 9, label=0)]
    batch = batch_of(*map(task.pack, samples))
    texts = np.asarray(compiled(type(model).embed, model, Tokens(batch["input_ids"], batch["mask"])))
    pairs = np.asarray(compiled(type(model).embed, model, Tokens(batch["pair_ids"], batch["pair_mask"])))
    assert np.linalg.norm(texts, axis=1) == pytest.approx(np.ones(3))
    logits = 3 * (texts @ pairs.T - 0.1 * np.eye(3))
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    # The third pair does not match: it is only told from.
    assert loss(task, model, batch).total == pytest.approx(-np.log(np.diag(chances)[:2]).mean(), abs=1e-5)
    assert np.asarray(infer(task, model, batch)["similarity"]) == pytest.approx(
        (texts * pairs).sum(1), abs=1e-6
    )
    none = loss(task, model, {**batch, "label": np.zeros(3, np.int32)})
    assert none.total == 0 and none.parts["accuracy"] == 0


def trained(task: Any, model: nn.Layer, batch: Any, steps: int, rate: float) -> tuple[float, Any]:
    graphdef, params, buffers = functional_core.split(model)

    def loss(params: Any) -> jax.Array:
        return task.loss(graphdef.bind(params, buffers), batch).total

    step = jax.jit(jax.value_and_grad(loss))
    value = jnp.zeros(())
    for _ in range(steps):
        value, grads = step(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    return float(value), graphdef.bind(params, buffers)


@pytest.mark.parametrize("network", ["bow", "cnn", "gru", "lstm"])
@pytest.mark.parametrize("compare", ["concat", "difference"])
def test_simnet_learns_which_texts_are_one(network: Any, compare: Any) -> None:
    hashed = HashFeatures("characters", 64, ngrams=(1,))
    rows = [("abc", "abc", 1), ("cab", "dog", 0), ("dog", "dog", 1), ("elf", "abc", 0)]
    task = TextMatching()
    packs = [task.pack(hashed(TextSample(a, pair=b, label=y), RNG)) for a, b, y in rows]
    model = made(SimNetConfig(64, network, embedding_dim=8, hidden_size=8, fc_hidden_size=8, compare=compare))
    value, learnt = trained(task, model, batch_of(*packs), 150, 1.0)
    assert value < 0.2
    batch = batch_of(*packs)
    scores = np.asarray(infer(task, learnt, batch)["similarity"])
    assert (scores > 0.5).tolist() == [y == 1 for *_, y in rows]
    turned = {"input_ids": batch["pair_ids"], "pair_ids": batch["input_ids"]}
    same = np.abs(infer(task, learnt, {**batch, **turned})["similarity"] - scores).max() < 1e-5
    assert same == (compare == "difference")


def test_an_empty_text_has_finite_gradients() -> None:
    batch = {
        "input_ids": np.zeros((2, 2, 1), np.int32),
        "mask": np.array([[False, False], [True, True]]),
        "pair_ids": np.ones((2, 2, 1), np.int32),
        "pair_mask": np.ones((2, 2), bool),
        "label": np.array([1, 0]),
    }
    for network in ("bow", "cnn", "gru"):
        model = made(SimNetConfig(9, network, compare="difference"))  # type: ignore[arg-type]
        value, learnt = trained(TextMatching(), model, batch, 1, 0.1)
        assert np.isfinite(value) and all(np.isfinite(v).all() for v in learnt.state_dict().values())


def test_names_are_paddlenlps() -> None:
    pairwise = made(PairwiseMatchingConfig(ENCODER))
    state = {name: np.asarray(value) for name, value in pairwise.state_dict().items()}
    assert {"similarity.weight", "similarity.bias", "ernie.pooler.dense.weight"} <= set(state)
    pairwise.set_state_dict({name.replace("ernie.", "ptm.", 1): value for name, value in state.items()})
    gru = made(SimNetConfig(30, "gru"))
    names = gru.state_dict()
    assert {"embedder.weight", "fc.weight", "output_layer.bias", "rnn.weight_ih_l0"} <= set(names)
    theirs = {f"model.{n}".replace("rnn.", "gru_encoder.gru_layer."): np.asarray(v) for n, v in names.items()}
    gru.set_state_dict(theirs)
    assert "encoder.convs.0.weight" in made(SimNetConfig(30, "cnn")).state_dict()
    assert "emb_reduce_linear.weight" in made(SimCSEConfig(ENCODER, 4)).state_dict()
    assert "emb_reduce_linear.weight" not in made(SimCSEConfig(ENCODER)).state_dict()


def test_what_is_missing_is_said() -> None:
    alone = TextSample("a", label=1, ids=IDS)
    with pytest.raises(InputError, match=r"(?s)there is one text, and matching takes two.*'a'.*--pair"):
        TextMatching().inputs(alone)
    with pytest.raises(InputError, match="a pair has no class"):
        TextMatching().pack(APART.replace(label=None))
    with pytest.raises(InputError, match="neither a text that fits less nor a class"):
        PairwiseRanking().pack(APART.replace(label=None))
    with pytest.raises(InputError, match=r"(?s)stand in one row of tokens.*apart: true"):
        InBatchNegatives().pack(JOINED)
    with pytest.raises(InputError, match=r"(?s)reads one row of tokens.*apart: false"):
        SequenceClassification().pack(APART)
    with pytest.raises(ConfigError, match=r"(?s)ranking learns from triples.*TextTriples"):
        PairwiseRanking().loss(made(PairwiseMatchingConfig(ENCODER)), batch_of(TextMatching().pack(JOINED)))
    with pytest.raises(ConfigError, match=r"(?s)scale must be above 0.*received: 0"):
        InBatchNegatives(scale=0.0)


def test_models_that_do_not_fit_the_task_or_the_tokens() -> None:
    pairwise, simnet = made(PairwiseMatchingConfig(ENCODER)), made(SimNetConfig(30))
    with pytest.raises(ConfigError, match=r"(?s)texts match or they do not.*received: 3"):
        TextMatching().check(made(SimNetConfig(30, num_classes=3)), ())
    with pytest.raises(ConfigError, match=r"(?s)texts match or they do not.*PairwiseRanking"):
        TextMatching().check(pairwise, ())
    with pytest.raises(ConfigError, match="different numbers of classes"):
        TextMatching().check(simnet, ("a", "b", "c"))
    with pytest.raises(ConfigError, match=r"(?s)one number a pair.*received: SimNet"):
        PairwiseRanking().check(simnet, ())
    with pytest.raises(ConfigError, match=r"(?s)no embeddings of texts.*received: BOW"):
        InBatchNegatives().check(made(BOWConfig(30)), ())
    joined, apart = batch_of(TextMatching().pack(JOINED)), batch_of(TextMatching().pack(APART))
    with pytest.raises(ConfigError, match=r"(?s)both texts in one row.*SimNet needs.*apart: true"):
        TextMatching().loss(simnet, joined)
    with pytest.raises(
        ConfigError, match=r"(?s)a row of tokens for each text.*PairwiseMatching needs.*false"
    ):
        PairwiseRanking().infer(pairwise, apart)
    for make in (lambda: SimNetConfig(0), lambda: SimNetConfig(30, dropout=1.0)):
        with pytest.raises(ConfigError, match="a setting of the network is out of range"):
            make()
    for make in (lambda: SimCSEConfig(ENCODER, 0), lambda: PairwiseMatchingConfig(ENCODER, dropout=1.0)):
        with pytest.raises(ConfigError, match="a setting of the head is out of range"):
            make()


def test_triples(tmp_path: Any) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("q\ta\tb\nr\tc\td\n", encoding="utf-8")
    first, second = TextTriples(path)
    assert (first.text, first.pair) == ("q", "a") and first.negative is not None
    assert (first.negative.text, first.negative.pair) == ("q", "b") and str(second.id).endswith("line 2")
    found = HashFeatures(buckets=50)(first, RNG)
    packed = PairwiseRanking().pack(found)
    assert not np.array_equal(packed["pair_ids"], packed["negative_pair_ids"])
    assert np.array_equal(packed["input_ids"], packed["negative_input_ids"])
