"""Folders of sentence-transformers: pooling, linear layers, prompts, decoders, rerankers, and search in texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import framework
from framework.config import build
from framework.core.errors import ConfigError, FormatError, InputError, OarError
from framework.interop import write_safetensors
from framework.nn import functional as F
from framework.workflow.domain.capabilities import TextEmbedding, TextReranking
from nlp import llm, predictor
from nlp.analyzer import TextAnalyzer
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.pretrained import encoder_config
from nlp.sentence_folder import read_sentence_folder, reranker_activation
from nlp.text_index import TextIndex
from tests.transformers_names import transformers_name
from tests.unit.nlp.tiny_decoder import write_folder

WORDS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "dog",
    "query",
    ":",
    "sat",
    "on",
    "mat",
    "##s",
]
SETTINGS: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": len(WORDS),
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "max_position_embeddings": 16,
}
TEXTS = ["the cat sat", "dogs", "the dog sat on the mat", ""]
OLD = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens", "lasttoken": "lasttoken"}


def write(folder: Path, name: str, data: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(data), encoding="utf-8")


def torch_arrays(model: Any) -> dict[str, np.ndarray]:
    arrays = {name: np.asarray(value) for name, value in model.state_dict().items()}
    return {
        transformers_name(name): np.ascontiguousarray(value.T)
        if value.ndim == 2 and "embeddings" not in name
        else value
        for name, value in arrays.items()
    }


def make_bert(folder: Path, **changes: Any) -> Any:
    """A folder with BERT, and its encoder."""
    framework.seed(5)
    encoder = build(encoder_config(SETTINGS)).eval()
    write(folder, "config.json", {**SETTINGS, **changes})
    write_safetensors(folder / "model.safetensors", torch_arrays(encoder), {"format": "pt"})
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    write(folder, "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "do_lower_case": True})
    return encoder


def add_modules(folder: Path, pooling: dict[str, Any], *more: str, **about: Any) -> None:
    kinds = ["sentence_transformers.models.Transformer", "x.y.Pooling", *(f"z.{one}" for one in more)]
    paths = ["", *(f"{place}_{kind.rpartition('.')[2]}" for place, kind in enumerate(kinds) if place)]
    write(folder, "modules.json", [{"path": path, "type": kind} for path, kind in zip(paths, kinds)])
    write(folder / "1_Pooling", "config.json", pooling)
    write(folder, "config_sentence_transformers.json", about)


def ids_of(text: str) -> list[int]:
    names = {"dogs": ["dog", "##s"]}
    words = [piece for word in text.replace(":", " :").split() for piece in names.get(word, [word])]
    return [2, *(WORDS.index(word) for word in words), 3]


def hidden_of(encoder: Any, text: str) -> np.ndarray:
    ids = np.array([ids_of(text)], np.int32)
    return np.asarray(encoder(ids, None, ids >= 0).hidden)[0]


POOLED = {
    "cls": lambda x: x[0],
    "mean": lambda x: x.mean(axis=0),
    "max": lambda x: x.max(axis=0),
    "lasttoken": lambda x: x[-1],
    "mean_sqrt_len_tokens": lambda x: x.sum(axis=0) / np.sqrt(len(x)),
    "weightedmean": lambda x: (x * np.arange(1, len(x) + 1)[:, None]).sum(0) / np.arange(1, len(x) + 1).sum(),
}


@pytest.mark.parametrize("mode", POOLED)
def test_pooling_in_old_and_new_files(tmp_path: Path, mode: str) -> None:
    encoder = make_bert(tmp_path / "new")
    add_modules(tmp_path / "new", {"pooling_mode": mode}, "Normalize")
    model = predictor(tmp_path / "new")
    assert isinstance(model, TextEmbedding) and model.embedding_size == 8
    found = model.embed(TEXTS)
    expected = np.stack([POOLED[mode](hidden_of(encoder, text)) for text in TEXTS])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert found.vectors == pytest.approx(expected, abs=1e-5)
    assert found.token_counts.tolist() == [len(ids_of(text)) for text in TEXTS]
    if mode in OLD:
        make_bert(tmp_path / "old" / "0_Transformer")
        modes = {f"pooling_mode_{name}": name == OLD[mode] for name in OLD.values()}
        add_modules(tmp_path / "old", modes)
        rows = json.loads((tmp_path / "old" / "modules.json").read_text())
        write(tmp_path / "old", "modules.json", [{**rows[0], "path": "0_Transformer"}, rows[1]])
        plain = predictor(tmp_path / "old").embed(TEXTS[:2]).vectors
        assert plain / np.linalg.norm(plain, axis=1, keepdims=True) == pytest.approx(expected[:2], abs=1e-5)


def test_linear_layers_and_dimensions(tmp_path: Path) -> None:
    encoder = make_bert(tmp_path)
    add_modules(tmp_path, {"pooling_mode": "mean"}, "Dense", "Normalize")
    weight = np.random.default_rng(0).normal(size=(6, 8)).astype(np.float32)
    bias = np.arange(6, dtype=np.float32)
    said = {
        "in_features": 8,
        "out_features": 6,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    write(tmp_path / "2_Dense", "config.json", said)
    write_safetensors(
        tmp_path / "2_Dense" / "model.safetensors",
        {"linear.weight": weight, "linear.bias": bias},
        {"format": "pt"},
    )
    model = predictor(tmp_path)
    expected = np.tanh(hidden_of(encoder, TEXTS[0]).mean(axis=0) @ weight.T + bias)
    expected /= np.linalg.norm(expected)
    assert model.embed(TEXTS[:1]).vectors[0] == pytest.approx(expected, abs=1e-5)
    few = model.embed(TEXTS[:1], dimensions=3).vectors[0]
    assert few == pytest.approx(expected[:3] / np.linalg.norm(expected[:3]), abs=1e-5)
    with pytest.raises(InputError, match="not so many dimensions"):
        model.embed(TEXTS, dimensions=7)
    write(tmp_path / "2_Dense", "config.json", {**said, "in_features": 9})
    with pytest.raises(FormatError, match="do not fit"):
        read_sentence_folder(tmp_path)


def test_prompts(tmp_path: Path) -> None:
    make_bert(tmp_path)
    prompts = {"query": "query: ", "document": ""}
    add_modules(tmp_path, {"pooling_mode": "mean"}, prompts=prompts, default_prompt_name="query")
    model = predictor(tmp_path)
    bare = model.embed(["query: the cat", "the cat"], prompt="").vectors
    assert model.embed(["the cat"]).vectors[0] == pytest.approx(bare[0], abs=1e-6)
    assert model.embed(["the cat"], prompt_name="document").vectors[0] == pytest.approx(bare[1], abs=1e-6)
    result = model("the cat")
    assert result.text == "the cat" and result.vector == pytest.approx(bare[0], abs=1e-6)
    named = predictor(tmp_path, prompt="document")("the cat").vector
    literal = predictor(tmp_path, prompt="query: ")("the cat").vector
    assert named == pytest.approx(bare[1], abs=1e-6) and literal == pytest.approx(bare[0], abs=1e-6)
    with pytest.raises(InputError, match=r"no prompt of this name[\s\S]*query, document"):
        model.embed(["a"], prompt_name="passage")
    with pytest.raises(InputError, match="come in a list"):
        model.embed("the cat")
    assert model.embed([]).vectors.shape == (0, 8)


def test_an_encoder_alone_is_pooled_by_the_mean(tmp_path: Path) -> None:
    encoder = make_bert(tmp_path)
    found = predictor(tmp_path).embed(TEXTS).vectors
    assert found == pytest.approx(
        np.stack([hidden_of(encoder, text).mean(axis=0) for text in TEXTS]), abs=1e-5
    )


@pytest.mark.parametrize("causal", [True, False])
def test_a_decoder_embeds_by_its_last_token(tmp_path: Path, causal: bool) -> None:
    folder = write_folder(tmp_path / "decoder")
    add_modules(folder, {"pooling_mode": "lasttoken"}, "Normalize")
    decoder = llm.load(folder)
    assert decoder.tokenizer is not None
    if not causal:
        said = json.loads((folder / "config.json").read_text())
        write(folder, "config.json", {**said, "is_causal": False})
    texts = ["the fox", "the quick brown fox jumps over the lazy dog"]
    found = predictor(folder).embed(texts).vectors
    for text, vector in zip(texts, found):
        ids = decoder.tokenizer.encode(text).ids[None]
        last = np.asarray(F.normalize(decoder.model.hidden(ids)[:, -1], axis=-1))[0]
        assert (vector == pytest.approx(last, abs=1e-5)) == causal
        assert predictor(folder).embed([text]).vectors[0] == pytest.approx(vector, abs=1e-6)


def make_reranker(folder: Path, **changes: Any) -> Any:
    framework.seed(6)
    model = build(SequenceClassifierConfig(encoder_config(SETTINGS), 1)).eval()
    make_bert(folder, architectures=["BertForSequenceClassification"], id2label={"0": "LABEL_0"}, **changes)
    write_safetensors(folder / "model.safetensors", torch_arrays(model), {"format": "pt"})
    return model


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"}},
        {
            "sbert_ce_default_activation_function": "torch.nn.modules.activation.Sigmoid",
            "problem_type": "regression",
        },
    ],
)
def test_a_reranker_scores_pairs(tmp_path: Path, changes: dict[str, Any]) -> None:
    from nlp.contracts import Tokens

    model = make_reranker(tmp_path, **changes)
    ranker = predictor(tmp_path)
    assert isinstance(ranker, TextReranking) and ranker.reranks and ranker.embedding_size is None
    documents = ["the cat sat", "dogs"]
    found = ranker.rerank("the dog", documents)
    for document, score, count in zip(documents, found.scores, found.token_counts):
        first, second = ids_of("the dog"), ids_of(document)[1:]
        ids = np.array([first + second], np.int32)
        types = np.array([[0] * len(first) + [1] * len(second)], np.int32)
        logit = float(np.asarray(model(Tokens(ids, ids >= 0, types)))[0, 0])  # type: ignore[arg-type]
        expected = logit if "sentence_transformers" in changes else 1 / (1 + np.exp(-logit))
        assert score == pytest.approx(expected, abs=1e-5) and count == ids.size
    with pytest.raises(InputError, match="reads no instruction"):
        ranker.rerank("a", ["b"], instruction="find")
    with pytest.raises(InputError, match="gives no embeddings"):
        ranker.embed(["a"])


def test_search_in_texts(tmp_path: Path) -> None:
    make_bert(tmp_path / "a")
    prompts = {"query": "query: "}
    add_modules(tmp_path / "a", {"pooling_mode": "mean"}, "Normalize", prompts=prompts)
    make_reranker(tmp_path / "b")
    embedder, ranker = predictor(tmp_path / "a"), predictor(tmp_path / "b")
    index = TextIndex(embedder, TEXTS[:3])
    cosines = embedder.embed(TEXTS[:3]).vectors @ embedder.embed(["the dog"], prompt_name="query").vectors[0]
    hits = index.search("the dog", top=2)
    assert [hit.index for hit in hits] == np.argsort(-cosines)[:2].tolist()
    assert [hit.score for hit in hits] == pytest.approx(np.sort(cosines)[::-1][:2], abs=1e-6)
    ranked = index.search("the dog", top=9, reranker=ranker)
    scores = ranker.rerank("the dog", TEXTS[:3]).scores
    assert [hit.text for hit in ranked] == [TEXTS[place] for place in np.argsort(-scores, kind="stable")]
    with pytest.raises(InputError, match="does not score pairs"):
        embedder.rerank("a", ["b"])


def test_folders_that_are_refused(tmp_path: Path) -> None:
    make_bert(tmp_path)
    add_modules(tmp_path, {"pooling_mode": "mean"}, "LayerNorm")
    cases: list[tuple[object, type[OarError], str]] = [
        (None, ConfigError, "module of the embedder is not known"),
        ([{"path": "", "type": "a.Transformer"}], ConfigError, "no module makes one vector"),
        ([{"path": "../x", "type": "a.Transformer"}], FormatError, "leads out of the folder"),
        ({}, FormatError, "lists no modules"),
    ]
    for rows, kind, message in cases:
        if rows is not None:
            write(tmp_path, "modules.json", rows)
        with pytest.raises(kind, match=message):
            read_sentence_folder(tmp_path)
    for pooling in ({"pooling_mode": ["cls", "mean"]}, {"pooling_mode": "median"}, {}):
        add_modules(tmp_path, pooling)
        with pytest.raises(ConfigError, match="pooled in a way"):
            read_sentence_folder(tmp_path)
    add_modules(tmp_path, {"pooling_mode": "mean", "include_prompt": False})
    with pytest.raises(ConfigError, match="left out of the pooling"):
        read_sentence_folder(tmp_path)
    add_modules(tmp_path, {"pooling_mode": "mean"}, "Dense")
    with pytest.raises(FormatError, match="has no weights"):
        read_sentence_folder(tmp_path)
    with pytest.raises(ConfigError, match="does to its number"):
        reranker_activation({"sentence_transformers": {"activation_fn": "torch.nn.Softsign"}})
    assert reranker_activation({}) is None and reranker_activation({"sentence_transformers": {}}) == "sigmoid"


def test_a_prompt_without_embeddings(tmp_path: Path) -> None:
    make_reranker(tmp_path)
    with pytest.raises(InputError, match="takes no prompt"):
        predictor(tmp_path, prompt="query")
    assert isinstance(predictor(tmp_path), TextAnalyzer)
