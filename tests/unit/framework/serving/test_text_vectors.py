"""Embeddings and rankings over HTTP, by folders of sentence-transformers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("openai")

import openai

from framework.config import build
from framework.interop import write_safetensors
from framework.serving.settings import ModelSettings
from nlp import predictor
from nlp.models.sequence_classification import SequenceClassifierConfig
from nlp.pretrained import encoder_config
from tests.unit.framework.serving.live_server import live
from tests.unit.nlp.test_embedder_folders import SETTINGS, add_modules, make_bert, make_reranker, torch_arrays

LABELS = {str(number): f"class {number}" for number in range(7)}
TEXTS = ["the cat sat", "dogs", "the dog sat on the mat"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("vectors")
    make_bert(folder / "embedder")
    add_modules(folder / "embedder", {"pooling_mode_mean_tokens": True}, "Normalize")
    make_bert(folder / "plain")
    add_modules(folder / "plain", {"pooling_mode_mean_tokens": True}, prompts={"query": "the cat "})
    make_reranker(folder / "reranker")
    identity = {"activation_fn": "torch.nn.modules.linear.Identity"}
    make_reranker(folder / "numbers", sentence_transformers=identity)
    make_bert(folder / "classes", architectures=["BertForSequenceClassification"], id2label=LABELS)
    model = build(SequenceClassifierConfig(encoder_config(SETTINGS), 7)).eval()
    write_safetensors(folder / "classes" / "model.safetensors", torch_arrays(model), {"format": "pt"})
    return {path.name: path for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def url(folders: dict[str, Path]) -> Iterator[str]:
    models = tuple(ModelSettings(str(folder), name) for name, folder in folders.items())
    with live(folders["embedder"], models=models) as url:
        yield url


@pytest.mark.parametrize("form", ["float", "base64"])
def test_embeddings(folders: dict[str, Path], url: str, form: str) -> None:
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
    answer = client.embeddings.create(model="embedder", input=TEXTS, encoding_format=form)
    rows = [row.embedding for row in answer.data]
    if form == "base64":
        rows = [np.frombuffer(base64.b64decode(row), "<f4") for row in rows]
    expected = predictor(folders["embedder"]).embed(TEXTS)
    np.testing.assert_allclose(rows, expected.vectors, atol=1e-6)
    assert answer.usage.prompt_tokens == expected.token_counts.sum()
    short = client.embeddings.create(model="embedder", input=TEXTS[0], dimensions=3).data[0].embedding
    np.testing.assert_allclose(
        short, expected.vectors[0][:3] / np.linalg.norm(expected.vectors[0][:3]), atol=1e-6
    )


def test_rankings(folders: dict[str, Path], url: str) -> None:
    body = {"model": "reranker", "query": "the dog", "documents": [*TEXTS[:2], {"text": TEXTS[2]}]}
    answer = httpx.post(f"{url}/v1/rerank", json=body, timeout=60).json()
    scores = predictor(folders["reranker"]).rerank("the dog", TEXTS).scores
    order = np.argsort(-scores).tolist()
    assert [row["index"] for row in answer["results"]] == order
    np.testing.assert_allclose(
        [row["relevance_score"] for row in answer["results"]], scores[order], atol=1e-6
    )
    assert [row["document"]["text"] for row in answer["results"]] == [TEXTS[index] for index in order]
    body |= {"top_n": 1, "return_documents": False}
    (best,) = httpx.post(f"{url}/v1/rerank", json=body, timeout=60).json()["results"]
    assert best["index"] == order[0] and "document" not in best


def post(url: str, path: str, body: dict[str, object]) -> Any:
    answer = httpx.post(f"{url}/{path}", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_vectors_as_text_embeddings_inference_gives_them(folders: dict[str, Path], url: str) -> None:
    plain = predictor(folders["plain"]).embed(TEXTS).vectors
    lengths = np.linalg.norm(plain, axis=1, keepdims=True)
    np.testing.assert_allclose(post(url, "embed?model=plain", {"inputs": TEXTS}), plain / lengths, atol=1e-6)
    body = {"inputs": TEXTS[1], "normalize": False, "truncate": None}
    np.testing.assert_allclose(post(url, "embed?model=plain", body), plain[1:2], atol=1e-6)
    body |= {"dimensions": 3}
    np.testing.assert_allclose(post(url, "embed?model=plain", body), plain[1:2, :3], atol=1e-6)
    asked = predictor(folders["plain"]).embed(TEXTS[:1], prompt_name="query").vectors
    body = {"inputs": TEXTS[0], "normalize": False, "prompt_name": "query"}
    np.testing.assert_allclose(post(url, "embed?model=plain", body), asked, atol=1e-6)
    first = predictor(folders["embedder"]).embed(TEXTS).vectors
    np.testing.assert_allclose(post(url, "embed", {"inputs": TEXTS}), first, atol=1e-6)
    inputs = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}
    np.testing.assert_allclose(post(url, "similarity", {"inputs": inputs}), first[1:] @ first[0], atol=1e-6)


def test_ranks_as_text_embeddings_inference_gives_them(folders: dict[str, Path], url: str) -> None:
    body = {"query": "the dog", "texts": TEXTS, "raw_scores": False}
    for name in ("reranker", "numbers"):  # the same network, of which one gives the number before the sigmoid
        scores = predictor(folders["reranker"]).rerank("the dog", TEXTS).scores
        order = np.argsort(-scores).tolist()
        rows = post(url, f"rerank?model={name}", body)
        assert [row["index"] for row in rows] == order and "text" not in rows[0]
        np.testing.assert_allclose([row["score"] for row in rows], scores[order], atol=1e-6)
    raw = predictor(folders["numbers"]).rerank("the dog", TEXTS).scores
    rows = post(url, "rerank?model=numbers", {**body, "raw_scores": True, "return_text": True})
    np.testing.assert_allclose([row["score"] for row in rows], raw[order], atol=1e-6)
    assert [row["text"] for row in rows] == [TEXTS[index] for index in order]


def test_classes_as_text_embeddings_inference_gives_them(folders: dict[str, Path], url: str) -> None:
    expected = predictor(folders["classes"], top=9)(TEXTS)
    rows = post(url, "predict", {"inputs": [[text] for text in TEXTS]})
    assert [[row["label"] for row in each] for each in rows] == [
        [one.label for one in each.classes] for each in expected
    ]
    assert len(rows[0]) == 7 and rows[0][0]["score"] == pytest.approx(expected[0].classes[0].score, abs=1e-5)
    assert post(url, "predict", {"inputs": TEXTS[1]}) == rows[1]
    pair = predictor(folders["classes"], top=9)((TEXTS[0], TEXTS[1]))
    assert [row["label"] for row in post(url, "predict", {"inputs": TEXTS[:2]})] == [
        one.label for one in pair.classes
    ]


@pytest.mark.parametrize(
    ("path", "body", "status", "kind", "message"),
    [
        ("embed", {"inputs": []}, 422, "Validation", "none of them empty"),
        ("embed", {"inputs": [[1, 2]]}, 422, "Validation", "a text"),
        ("embed", {"inputs": "a", "prompt_name": "nothing"}, 422, "Validation", "nothing"),
        ("embed", {"inputs": "a", "normalise": True}, 422, "Validation", "did you mean 'normalize'"),
        ("embed", {"inputs": "a", "dimensions": 99}, 422, "Validation", "at most"),
        ("embed", {"inputs": "cat " * 900}, 413, "Validation", '"truncate": true'),
        ("embed", {"inputs": "cat " * 900, "truncate": True, "truncation_direction": "Left"}, 422, "Validation", "end"),
        ("embed?model=reranker", {"inputs": "a"}, 424, "Backend", "does not answer"),
        ("embed?model=none", {"inputs": "a"}, 404, "Backend", "no model of this name"),
        ("rerank", {"query": "a", "texts": []}, 422, "Validation", "texts"),
        ("rerank?model=reranker", {"query": "a", "texts": ["b"], "raw_scores": True}, 422, "Validation", "raw_scores"),
        ("predict", {"inputs": ["a", "b", "c"]}, 422, "Validation", "3 texts"),
        ("tokenize", {"inputs": [3]}, 422, "Validation", "a list of texts"),
        ("decode", {"ids": [-1]}, 422, "Validation", "numbers of tokens from 0"),
        ("", {"inputs": 3}, 422, "Validation", "a list of texts"),
        ("similarity", {"inputs": {"sentences": ["a"]}}, 422, "Validation", "source_sentence"),
    ],
)  # fmt: skip
def test_errors_as_text_embeddings_inference_writes_them(
    url: str, path: str, body: dict[str, object], status: int, kind: str, message: str
) -> None:
    answer = httpx.post(f"{url}/{path}", json=body, timeout=60)
    assert (answer.status_code, answer.json()["error_type"]) == (status, kind), answer.text
    assert message in answer.json()["error"]


def test_long_texts_are_cut_where_that_is_asked_for(url: str) -> None:
    (vector,) = post(url, "embed", {"inputs": "cat " * 900, "truncate": True})
    assert np.linalg.norm(vector) == pytest.approx(1)


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("rerank", {"model": "reranker", "query": "", "documents": ["a"]}, 400, "query"),
        ("rerank", {"model": "reranker", "query": "a", "documents": []}, 400, "documents"),
        ("rerank", {"model": "reranker", "query": "a", "documents": [3]}, 400, "documents"),
        (
            "rerank",
            {"model": "reranker", "query": "a", "documents": ["a"], "top": 3},
            400,
            "did you mean 'top_n'",
        ),
        ("rerank", {"model": "embedder", "query": "a", "documents": ["a"]}, 415, "ranks no documents"),
        ("embeddings", {"model": "reranker", "input": "a"}, 415, "gives no embeddings"),
        ("embeddings", {"model": "embedder", "input": ["a"], "dimensions": 99}, 400, "fewer dimensions"),
    ],
)
def test_bad_requests(url: str, path: str, body: dict[str, object], status: int, message: str) -> None:
    answer = httpx.post(f"{url}/v1/{path}", json=body, timeout=60)
    assert answer.status_code == status and message in answer.json()["error"]["message"], answer.text


def test_tokens_as_text_embeddings_inference_gives_them(folders: dict[str, Path], url: str) -> None:
    (tokens,) = post(url, "tokenize", {"inputs": "the Çat dogs"})
    tokenizer = predictor(folders["embedder"]).tokenizer
    encoding = tokenizer.encode("the Çat dogs")
    assert [one["id"] for one in tokens] == encoding.ids.tolist()
    ends = {"special": True, "start": None, "stop": None}
    assert tokens[0] == {"id": tokenizer.cls_id, "text": "[CLS]", **ends}
    assert tokens[-1] == {"id": tokenizer.sep_id, "text": "[SEP]", **ends}
    words = [(one["text"], one["start"], one["stop"]) for one in tokens[1:-1]]
    assert words[0] == ("the", 0, 3)
    assert words[-1][2] == len("the Çat dogs".encode())  # bytes
    assert b"".join("the Çat dogs".encode()[start:stop] for _, start, stop in words) == "theÇatdogs".encode()
    plain = post(url, "tokenize", {"inputs": ["the", ""], "add_special_tokens": False})
    assert [[one["text"] for one in row] for row in plain] == [["the"], []]
    (asked,) = post(url, "tokenize?model=plain", {"inputs": "dogs", "prompt_name": "query"})
    (whole,) = post(url, "tokenize?model=plain", {"inputs": "the cat dogs"})
    assert asked == whole
    ids = [[one["id"] for one in whole], [asked[1]["id"]]]
    assert post(url, "decode?model=plain", {"ids": ids}) == ["the cat dogs", "the"]
    assert post(url, "decode", {"ids": ids[1]}) == ["the"]
    assert post(url, "decode", {"ids": ids[0], "skip_special_tokens": False})[0].startswith("[CLS]")


def test_facts_as_text_embeddings_inference_gives_them(url: str) -> None:
    facts = httpx.get(f"{url}/info?model=embedder", timeout=60).json()
    assert facts["model_type"] == {"embedding": {"pooling": "mean"}} and facts["model_dtype"] == "float32"
    assert facts["served_model_name"] == "embedder" and facts["max_input_length"] > 8
    numbers = ("max_concurrent_requests", "max_batch_tokens", "max_client_batch_size", "tokenization_workers")
    assert all(isinstance(facts[name], int) for name in numbers)
    kind = httpx.get(f"{url}/info?model=classes", timeout=60).json()["model_type"]
    assert kind["classifier"]["id2label"] == LABELS and kind["classifier"]["label2id"]["class 3"] == 3
    assert "reranker" in httpx.get(f"{url}/info?model=reranker", timeout=60).json()["model_type"]


def test_an_address_without_a_route_takes_the_texts_of_each(url: str) -> None:
    vectors = post(url, "embed", {"inputs": TEXTS})
    assert post(url, "", {"inputs": TEXTS}) == vectors
    pairs = {"source_sentence": TEXTS[0], "sentences": TEXTS[1:]}
    assert post(url, "", {"inputs": pairs}) == post(url, "similarity", {"inputs": pairs})
    ranks = {"query": "the dog", "texts": TEXTS}
    assert post(url, "?model=reranker", ranks) == post(url, "rerank?model=reranker", ranks)
    classes = post(url, "predict", {"inputs": TEXTS[0]})
    body = {"inputs": TEXTS[0], "parameters": {}}  # as huggingface_hub sends it
    assert post(url, "?model=classes", body) == classes
    assert post(url, "predict", {**body, "parameters": {"top_k": 2}}) == classes[:2]


def test_texts_without_a_route_need_a_key_where_the_page_needs_none(folders: dict[str, Path]) -> None:
    with live(folders["embedder"], api_keys=("secret",)) as url:
        assert httpx.get(url, timeout=60).status_code == 200
        assert httpx.post(url, json={"inputs": "a"}, timeout=60).status_code == 401
        assert httpx.get(f"{url}/info", timeout=60).status_code == 401
        headers = {"Authorization": "Bearer secret"}
        assert httpx.post(url, json={"inputs": "a"}, headers=headers, timeout=60).status_code == 200
