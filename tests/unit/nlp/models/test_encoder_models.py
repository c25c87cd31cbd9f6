"""The models on text encoders: contracts, padding, learning, and names that files may use."""

from __future__ import annotations

import re
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import Kind, bind, build
from framework.core.errors import ConfigError, WeightError
from framework.nn import functional as F
from framework.workflow.domain.weights import load_state_into
from nlp.contracts import Tokens
from nlp.models.masked_lm import MaskedLMConfig
from nlp.models.question_answering import QuestionAnsweringConfig
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.models.token_classification import TokenClassifierConfig
from zoo.contracts import Contract
from zoo.layers.text_encoder import encoder_families
from zoo.text.albert import AlbertConfig
from zoo.text.bert import BertConfig
from zoo.text.electra import ElectraConfig
from zoo.text.ernie import ErnieConfig
from zoo.text.roberta import RobertaConfig

TINY: dict[str, Any] = {
    "vocab_size": 50,
    "hidden_size": 16,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 32,
    "max_positions": 20,
}
ENCODERS = [
    BertConfig(**TINY),
    ErnieConfig(**TINY),
    RobertaConfig(**TINY),
    AlbertConfig(**TINY, embedding_size=8),
]


def _small(encoder: type) -> dict[str, Any]:
    return dict(getattr(encoder, "contract", Contract()).small)


EVERY = [
    family.config(
        **TINY,
        **({"embedding_size": 8} if hasattr(family.config, "embedding_size") else {}),
        **_small(family.encoder),
    )
    for family in encoder_families().values()
]
every = pytest.mark.parametrize("encoder", EVERY, ids=lambda config: type(config).__name__)
IDS = np.random.default_rng(0).integers(2, 50, (3, 6))
MASK = np.arange(6) < np.array([[6], [3], [1]])
TOKENS = Tokens(IDS, MASK, np.zeros_like(IDS))


def made(config: Any) -> Any:
    framework.seed(1)
    return build(config).eval()


def heads(encoder: Any) -> list[Any]:
    return [
        SequenceClassifierConfig(encoder, 4),
        TokenClassifierConfig(encoder, 4),
        QuestionAnsweringConfig(encoder),
        MaskedLMConfig(encoder),
    ]


@every
def test_a_text_does_not_depend_on_its_batch(encoder: Any) -> None:
    for config in heads(encoder):
        model = made(config)

        def results(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
            out = model(Tokens(ids, mask))  # noqa: B023
            return np.stack(out, -1) if isinstance(out, tuple) else np.asarray(out)

        together = results(IDS, MASK)
        wide = results(np.pad(IDS, ((0, 0), (0, 4)), constant_values=9), np.pad(MASK, ((0, 0), (0, 4))))
        for row, length in enumerate(MASK.sum(1)):
            alone = results(IDS[row : row + 1, :length], MASK[row : row + 1, :length])[0]
            cut = slice(None) if alone.ndim == 1 else slice(length)
            assert np.abs(together[row][cut] - alone).max() < 1e-5
            assert np.abs(wide[row][cut] - alone).max() < 1e-5


@every
def test_shapes_and_contracts(encoder: Any) -> None:
    logits = made(SequenceClassifierConfig(encoder, 4))(TOKENS)
    assert (logits.shape, logits.dtype) == ((3, 4), jnp.float32)
    tagger = made(TokenClassifierConfig(encoder, 4))
    tags, scores = tagger.tag(TOKENS)
    probabilities = np.exp(np.asarray(tagger(TOKENS), np.float64))
    probabilities /= probabilities.sum(-1, keepdims=True)
    assert tags.dtype == jnp.int32 and (tags == probabilities.argmax(-1)).all()
    np.testing.assert_allclose(scores, probabilities.max(-1), atol=1e-6)
    answers = made(QuestionAnsweringConfig(encoder))(TOKENS)
    assert answers.start.shape == answers.end.shape == (3, 6)
    assert (np.asarray(answers.start)[~MASK] == -1e9).all() and (np.asarray(answers.end)[MASK] > -1e3).all()
    assert made(MaskedLMConfig(encoder))(TOKENS).shape == (3, 6, 50)


def test_losses_by_hand() -> None:
    tagger = made(TokenClassifierConfig(ENCODERS[0], 4))
    logp = np.asarray(tagger(TOKENS), np.float64)
    logp -= np.log(np.exp(logp).sum(-1, keepdims=True))
    tags = np.full((3, 6), -1)
    tags[0, 2], tags[1, 0] = 3, 1
    assert float(tagger.loss(TOKENS, tags)) == pytest.approx(-(logp[0, 2, 3] + logp[1, 0, 1]) / 2, rel=1e-5)
    assert float(tagger.loss(TOKENS, np.full((3, 6), -1))) == 0

    question_answering = made(QuestionAnsweringConfig(ENCODERS[0]))
    start, end = (np.asarray(part, np.float64) for part in question_answering(TOKENS))
    costs = [np.log(np.exp(part).sum(-1)) - part[:, 0] for part in (start, end)]
    zeros = np.zeros(3, np.int32)
    assert float(question_answering.loss(TOKENS, zeros, zeros)) == pytest.approx(np.mean(costs), rel=1e-5)
    assert costs[0][2] == pytest.approx(0)  # the third text has one token

    model = made(MaskedLMConfig(ENCODERS[0]))
    words = np.full((3, 6), -1)
    words[0, 4] = 7
    logits = np.asarray(model(TOKENS), np.float64)[0, 4]
    assert float(model.loss(TOKENS, words)) == pytest.approx(
        np.log(np.exp(logits).sum()) - logits[7], rel=1e-5
    )


@every
def test_words_at_places(encoder: Any) -> None:
    model = made(MaskedLMConfig(encoder))
    places = np.array([[4, 0], [2, 2], [0, 0]])
    some, all_of_them = model(TOKENS, places), np.asarray(model(TOKENS))
    np.testing.assert_allclose(some, np.take_along_axis(all_of_them, places[..., None], 1), atol=1e-5)
    words = np.array([[5, -1], [6, 7], [-1, -1]])
    scattered = np.full((3, 6), -1)
    scattered[0, 4] = 5
    both = np.array([[5, -1], [-1, -1], [-1, -1]])
    assert float(model.loss(TOKENS, both, places)) == pytest.approx(
        float(model.loss(TOKENS, scattered)), rel=1e-5
    )
    assert float(model.loss(TOKENS, words, places)) > 0


@every
def test_the_decoder_is_the_word_embedding(encoder: Any) -> None:
    model = made(MaskedLMConfig(encoder))
    assert not any("decoder.weight" in name for name in model.state_shapes())
    prefix = model.prefix
    key = f"{prefix}.embeddings.word_embeddings.weight"
    gradients = nn.value_and_grad(model, lambda m: m.loss(TOKENS, np.full((3, 6), 7)))()[1]
    # Word 7 is in no text; only the decoder reads its row.
    assert 7 not in IDS[MASK] and np.abs(gradients[key][7]).max() > 1e-3


@pytest.mark.parametrize("place", range(4))
def test_every_head_learns(place: int) -> None:
    tags = np.where(MASK, IDS % 4, -1)
    losses = (
        lambda m: F.cross_entropy(m(TOKENS), np.array([0, 1, 2])),
        lambda m: m.loss(TOKENS, tags),
        lambda m: m.loss(TOKENS, np.array([2, 1, 0]), np.array([3, 2, 0])),
        lambda m: m.loss(TOKENS, np.where(MASK, IDS, -1)),
    )
    model, loss = made(heads(ENCODERS[place])[place]), losses[place]
    before, gradients = nn.value_and_grad(model, loss)()
    for name, parameter in model.named_parameters():
        parameter.set_value(parameter.value - 0.05 * gradients[name])
    assert float(loss(model)) < float(before) - 1e-3
    # A softmax over tokens does not see what all of them have in common, and only the first head reads the pooler.
    idle = r"(k_proj|key|norm2|full_layer_layer_norm)\.bias$|pooler"
    unused = {name for name, gradient in gradients.items() if np.abs(gradient).max() < 1e-9}
    assert all(re.search(idle, name) for name in unused), unused
    assert place or not any("pooler" in name for name in unused)


def test_names_of_roberta() -> None:
    names = made(SequenceClassifierConfig(RobertaConfig(**TINY), 4)).state_shapes()
    assert names["classifier.dense.weight"] == (16, 16) and names["classifier.out_proj.weight"] == (16, 4)
    assert not any("pooler" in name for name in names)


def test_heads_of_electra_as_hugging_face_spells_them() -> None:
    """With the weights of the decoder a second time, and the discriminator's head in a file of it."""
    encoder = ElectraConfig(**TINY, embedding_size=8)
    model = made(MaskedLMConfig(encoder))
    ours = {name: np.asarray(value) + 0.5 for name, value in model.state_dict().items()}
    assert {name for name in ours if not name.startswith("electra.")} == {
        "generator_lm_head_bias",
        *(
            f"generator_predictions.{layer}.{leaf}"
            for layer in ("dense", "layer_norm")
            for leaf in ("weight", "bias")
        ),
    }
    theirs = {
        name.replace("layer_norm", "LayerNorm"): value.T
        if value.ndim == 2 and "embeddings." not in name
        else value
        for name, value in ours.items()
    }
    theirs["generator_lm_head.bias"] = theirs.pop("generator_lm_head_bias")
    theirs["generator_lm_head.weight"] = ours["electra.embeddings.word_embeddings.weight"]
    theirs["discriminator_predictions.dense.weight"] = np.zeros((16, 16), np.float32)
    loaded = load_state_into(build(model.config), theirs)
    assert all((np.asarray(value) == ours[name]).all() for name, value in loaded.state_dict().items())
    classifier = made(SequenceClassifierConfig(encoder, 4))
    first = np.asarray(classifier.encode(TOKENS).hidden[:, 0])
    head = classifier.classifier
    expected = head.out_proj(F.gelu(head.dense(first)))
    np.testing.assert_allclose(classifier(TOKENS), expected, atol=1e-6)


def test_second_names_of_the_word_head() -> None:
    """As transformers and PaddleNLP spell them, with the second head of pre-training."""
    model = made(MaskedLMConfig(ErnieConfig(**TINY)))
    ours = {name: np.asarray(value) + 0.5 for name, value in model.state_dict().items()}
    words = ours["ernie.embeddings.word_embeddings.weight"]
    rest = {name: value for name, value in ours.items() if "decoder_bias" not in name}
    bias = ours["cls.predictions.decoder_bias"]
    for extra in (
        {"cls.predictions.decoder.bias": bias, "cls.predictions.decoder.weight": words},
        {"cls.predictions.decoder_bias": bias, "cls.predictions.decoder_weight": words},
        {"cls.predictions.bias": bias, "cls.seq_relationship.weight": np.zeros((16, 2), np.float32)},
    ):
        loaded = load_state_into(build(model.config), {**rest, **extra})
        assert all((np.asarray(value) == ours[name]).all() for name, value in loaded.state_dict().items())
    del rest["ernie.embeddings.word_embeddings.weight"]
    tied = {**rest, "cls.predictions.decoder_bias": bias, "cls.predictions.decoder.weight": words}
    loaded = load_state_into(build(model.config), tied)
    assert (np.asarray(loaded.text_encoder.embeddings.word_embeddings.weight) == words).all()
    with pytest.raises(WeightError, match=r"1 unexpected: classifier.weight"):
        load_state_into(build(model.config), {**ours, "classifier.weight": words})


def test_configs() -> None:
    tree = {
        "type": "SequenceClassifier",
        "num_classes": 3,
        "encoder": {"type": "Ernie", "variant": "ernie-3.0-nano-zh"},
    }
    config = bind(tree, Annotated[Any, Kind("model")], ("nlp", "zoo", "framework"))
    assert config == SequenceClassifierConfig(ErnieConfig("ernie-3.0-nano-zh"), 3)
    for made_of in (SequenceClassifierConfig, TokenClassifierConfig):
        for classes, dropout in ((0, None), (2, 1.0)):
            with pytest.raises(ConfigError, match=f"received: num_classes {classes}, dropout {dropout}"):
                made_of(ENCODERS[0], classes, dropout)
    with pytest.raises(ConfigError, match=r"SequenceClassifier.encoder.pooler"):
        build(SequenceClassifierConfig(BertConfig(**TINY, pooler=False)))
    assert made(TokenClassifierConfig(ENCODERS[0], 2, dropout=0.3)).dropout.p == 0.3
    assert made(TokenClassifierConfig(ENCODERS[0], 2)).dropout.p == 0.1
