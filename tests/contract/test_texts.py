"""Every registered encoder, model, transform, data set, task and metric of texts: a row, and what holds for all."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import framework
from framework import nn
from framework.config import available, build
from framework.config.registry import find
from framework.core.compilation import quick_compile_options
from framework.export import TensorSpec, lower_layer
from framework.io.dataset import Dataset
from framework.nn import functional_core
from framework.text.hashing import HashFeatures
from framework.text.masking import MaskTokens
from framework.text.question_windows import QuestionWindows
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from framework.workflow.export.export import ExportedModel
from nlp.contracts import Tokens
from nlp.data.annotated import AnnotatedText
from nlp.data.chat import Chats
from nlp.data.classification import TextClassification
from nlp.data.corpora import TextRows, TokenRows
from nlp.data.parallel import ParallelText
from nlp.data.plain import TextLines
from nlp.data.preferences import LabelledAnswers, Preferences
from nlp.data.prompts import Prompts
from nlp.data.questions import QuestionAnswers
from nlp.data.tagged import TaggedText
from nlp.data.triples import TextTriples
from nlp.tasks import SequenceClassification, TokenClassification
from nlp.tasks.causal_lm import CausalLanguageModel
from nlp.tasks.embedding import TextEmbedding
from nlp.tasks.grpo import GRPO
from nlp.tasks.masked_lm import MaskedLanguageModelling
from nlp.tasks.matching import CrossEncoding, InBatchNegatives, PairwiseRanking, TextMatching
from nlp.tasks.preference import Preference
from nlp.tasks.span_extraction import SpanExtraction
from nlp.tasks.translation import Translation
from tests.contract.cases import contract_of, sized
from zoo.layers.text_encoder import encoder_families

PACKAGES = ("nlp", "zoo", "framework")
SMALL = {
    "vocab_size": 60,
    "hidden_size": 16,
    "num_layers": 2,
    "num_heads": 2,
    "intermediate_size": 24,
    "max_positions": 40,
}
SMALL_TOO = {**SMALL, "embedding_size": 8}  # some have embeddings of another width


def _small(kind: str, name: str, usual: Mapping[str, Any]) -> Any:
    """A config that is quick to compile, with what the model's contract says."""
    entry = find(kind, name, PACKAGES)
    contract = contract_of(entry)
    return sized(entry, "", **{**usual, **contract.fields, **contract.small})


ENCODERS: dict[str, Any] = {
    name: _small("backbone", name, SMALL_TOO)
    for name, module in available("backbone", PACKAGES).items()
    if module.startswith("zoo.text.")
}
ERNIE = ENCODERS["Ernie"]
# What makes a model quick to compile, where its config has such a field; its contract says what differs.
_FEW: dict[str, Any] = {
    **SMALL,
    "num_classes": 5,
    "embedding_dim": 8,
    "embedding_size": 8,
    "filters": 6,
    "fc_hidden_size": 8,
    "feed_forward": 24,
    "max_length": 40,
    "encoder": ERNIE,
}
MODELS = {
    name: _small("model", name, _FEW)
    for name, module in available("model", PACKAGES).items()
    if module.startswith("nlp.")
}
IDS = np.random.default_rng(0).integers(1, 60, (3, 7)).astype(np.int32)
MASK = np.arange(7) < np.array([[7], [4], [2]])


def of_texts(kind: str) -> set[str]:
    known: Mapping[str, str] = available(kind, PACKAGES)
    return {
        name for name, module in known.items() if module.startswith(("nlp.", "zoo.text.", "framework.text"))
    }


def test_every_registered_name_has_a_row() -> None:
    families = {family.encoder.__name__ for family in encoder_families().values()}
    assert of_texts("backbone") == set(ENCODERS) == families
    assert of_texts("model") == set(MODELS)
    assert of_texts("transform") == {
        HashFeatures.__name__,
        MaskTokens.__name__,
        QuestionWindows.__name__,
        Tokenize.__name__,
    }
    assert of_texts("dataset") == {
        AnnotatedText.__name__,
        Chats.__name__,
        LabelledAnswers.__name__,
        ParallelText.__name__,
        Preferences.__name__,
        Prompts.__name__,
        QuestionAnswers.__name__,
        TaggedText.__name__,
        TextClassification.__name__,
        TextLines.__name__,
        TextRows.__name__,
        TextTriples.__name__,
        TokenRows.__name__,
    }
    assert of_texts("task") == {
        CausalLanguageModel.__name__,
        CrossEncoding.__name__,
        GRPO.__name__,
        InBatchNegatives.__name__,
        MaskedLanguageModelling.__name__,
        PairwiseRanking.__name__,
        Preference.__name__,
        SequenceClassification.__name__,
        SpanExtraction.__name__,
        TextEmbedding.__name__,
        TextMatching.__name__,
        TokenClassification.__name__,
        Translation.__name__,
    }
    assert of_texts("metric") == {
        "AUC",
        "AnswerF1",
        "BLEU",
        "ChrF",
        "MaskedPerplexity",
        "Pearson",
        "Perplexity",
        "Spearman",
        "SpanF1",
        "TagAccuracy",
        "TextAccuracy",
        "TextF1",
    }


ROWS = [*(("backbone", name) for name in sorted(ENCODERS)), *(("model", name) for name in sorted(MODELS))]
rows = pytest.mark.parametrize(("kind", "name"), ROWS, ids=[name for _, name in ROWS])


def made(kind: str, name: str) -> nn.Layer:
    framework.seed(0)
    config = {"backbone": ENCODERS, "model": MODELS}[kind][name]
    found = find(kind, name, PACKAGES)
    assert found.config is type(config)
    return build(config).eval()


def run(layer: Any, kind: str, ids: Any, mask: Any) -> list[jax.Array]:
    """The outputs, those of padding set to 0."""
    tokens = Tokens(ids, mask)
    if kind == "backbone":
        outputs = layer(ids, mask=mask)
    elif getattr(layer, "apart", False):
        outputs = layer(tokens, Tokens(59 - ids, mask))
    else:
        outputs = layer(tokens, tokens) if hasattr(layer, "start") else layer(tokens)
    found = [x for x in jax.tree.leaves(outputs) if x is not None]
    return [jnp.where(mask[..., None], x, 0) if x.ndim == 3 else x for x in found]


@rows
def test_eager_is_static_and_states_go_round(kind: str, name: str) -> None:
    layer = made(kind, name)
    eager = run(layer, kind, IDS, MASK)
    graphdef, params, buffers = functional_core.split(layer)
    static = jax.jit(lambda ids, mask: run(graphdef.bind(params, buffers), kind, ids, mask))(IDS, MASK)
    for a, b in zip(eager, static, strict=True):
        assert np.isfinite(a).all() and np.abs(np.asarray(a) - b).max() < 1e-5
    other = made(kind, name)
    other.set_state_dict({key: np.asarray(value) * 0 for key, value in layer.state_dict().items()})
    other.set_state_dict({key: np.asarray(value) for key, value in layer.state_dict().items()})
    for a, b in zip(eager, run(other, kind, IDS, MASK), strict=True):
        assert np.array_equal(a, b)


@rows
def test_gradients_are_finite_and_reach_the_parameters(kind: str, name: str) -> None:
    layer = made(kind, name)
    graphdef, params, buffers = functional_core.split(layer)
    weights = [np.random.default_rng(1).normal(size=x.shape) for x in run(layer, kind, IDS, MASK)]

    def loss(params: Any) -> jax.Array:
        bound = graphdef.bind(params, buffers)
        if hasattr(bound, "crf"):
            return bound.loss(Tokens(IDS, MASK), IDS % 5)
        return sum(((x * w).sum() for x, w in zip(run(bound, kind, IDS, MASK), weights)), jnp.zeros(()))

    gradients = (
        jax.jit(jax.grad(loss)).lower(params).compile(compiler_options=quick_compile_options())(params)
    )
    flat = [
        jax.tree_util.keystr(path)
        for path, g in jax.tree_util.tree_leaves_with_path(gradients)
        if not np.any(g)
    ]
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradients))
    # A key's bias adds the same to all scores of a query; embeddings of what does not occur here.
    known = ("k_proj.bias", "key.bias", "type", "pooler")
    contract = contract_of(find(kind, name, PACKAGES))
    own = [name for name in flat if contract.flat and re.search(contract.flat[0], name)]
    assert bool(own) == (contract.flat is not None)
    assert not [name for name in flat if name not in own and not any(part in name for part in known)], flat


@rows
def test_padding_and_companions_change_nothing(kind: str, name: str) -> None:
    layer = made(kind, name)
    together = run(layer, kind, IDS, MASK)
    wide = run(layer, kind, np.pad(IDS, ((0, 0), (0, 5)), constant_values=3), np.pad(MASK, ((0, 0), (0, 5))))
    for row, length in enumerate(MASK.sum(1)):
        alone = run(layer, kind, IDS[row : row + 1, :length], MASK[row : row + 1, :length])
        for a, b, c in zip(alone, together, wide, strict=True):
            tokens = a.ndim == 3 or a.shape[1:] == (length,)
            for other in (b, c):
                own = other[row, :length] if tokens else other[row]
                assert np.abs(np.asarray(a[0]) - own).max() < 1e-5


class Whole(nn.Layer):
    """A model as it is exported: real outputs alone."""

    def __init__(self, layer: nn.Layer, kind: str) -> None:
        super().__init__()
        self.layer, self.kind = layer, kind

    def forward(self, ids: jax.Array, mask: jax.Array) -> tuple[jax.Array, ...]:
        return tuple(run(self.layer, self.kind, ids, mask))


@rows
def test_the_exported_program_is_the_model(kind: str, name: str) -> None:
    layer = made(kind, name)
    specs = {"ids": TensorSpec(("n", "t"), "int32"), "mask": TensorSpec(("n", "t"), "bool")}
    program, weights = lower_layer(Whole(layer, kind), specs, after=lambda out: out, precision="float32")
    for count, length in ((3, 7), (1, 4)):
        ids, mask = IDS[:count, :length], MASK[:count, :length]
        exported = jax.tree.leaves(program.call(weights, {"ids": ids, "mask": mask}))
        for a, b in zip(run(layer, kind, ids, mask), exported, strict=True):
            assert np.abs(np.asarray(a) - b).max() < 1e-5


def test_the_exported_search_is_the_search() -> None:
    task, model = Translation(beam_size=2, max_length=9), made("model", "Transformer")
    graphdef, params, buffers = functional_core.split(model)
    run = jax.jit(lambda inputs: task.infer(graphdef.bind(params, buffers), inputs))
    specs = {"input_ids": TensorSpec(("n", "t"), "int32"), "mask": TensorSpec(("n", "t"), "bool")}
    whole = ExportedModel(model, task, tuple(specs))
    program, weights = lower_layer(whole, specs, after=lambda out: out, precision="float32")
    for count, length in ((3, 7), (1, 4)):
        inputs: Any = {"input_ids": IDS[:count, :length], "mask": MASK[:count, :length]}
        found, exported = run(inputs), program.call(weights, inputs)
        assert found.keys() == exported.keys() == {"ids", "scores"}
        assert np.array_equal(found["ids"], exported["ids"]) and found["ids"].shape == (count, 9)
        assert np.abs(np.asarray(found["scores"]) - exported["scores"]).max() < 1e-4


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_transforms_keep_a_sample_whole(unit: Any, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    Tokenizer.train("characters", ["天气很好 good"], 40).save(path)
    sample = TextSample("天气 good", label=1, id="a")
    for transform in (HashFeatures(unit=unit), Tokenize(str(path), unit=unit)):
        found = transform(sample, np.random.default_rng(0))
        assert (
            dataclasses.replace(found, words=None, ids=None, offsets=None, word_ids=None, type_ids=None)
            is not None
        )
        assert found.text == sample.text and found.label == 1 and found.id == "a"
        assert found.ids is not None and found.word_ids is not None and found.offsets is not None
        assert len(found.ids) == len(found.word_ids) == len(found.offsets)
        real = found.word_ids >= 0
        assert all(sample.text[start:end] for start, end in found.offsets[real])
        again = transform(sample, np.random.default_rng(1))
        assert np.array_equal(found.ids, again.ids)


def test_data_sets_are_data_sets(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("one\tx\ntwo\ty\n", encoding="utf-8")
    (tmp_path / "b.txt").write_text("one X\ntwo Y\n", encoding="utf-8")
    squad = (
        '{"data": [{"paragraphs": [{"context": "a b", "qas": [{"id": 1, "question": "?", "answers": []}]}]}]}'
    )
    (tmp_path / "c.json").write_text(squad, encoding="utf-8")
    (tmp_path / "d.json").write_text('[["one two", {"entities": [[0, 3, "X"]]}]]', encoding="utf-8")
    sets = (
        TextClassification(tmp_path / "a.tsv"),
        TaggedText(tmp_path / "b.txt"),
        ParallelText(tmp_path / "a.tsv", tmp_path / "b.txt"),
        TextLines(tmp_path / "a.tsv"),
        QuestionAnswers(tmp_path / "c.json"),
        TextTriples(tmp_path / "a.tsv", negative=0),
        AnnotatedText(tmp_path / "d.json"),
    )
    for data in sets:
        assert isinstance(data, Dataset) and isinstance(data[0], TextSample) and len(data) == len(list(data))
        with pytest.raises(IndexError):
            data[len(data)]
