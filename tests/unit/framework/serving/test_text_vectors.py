"""Embeddings and rankings over HTTP, by folders of sentence-transformers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

pytest.importorskip("openai")

import openai

from framework.serving.settings import ModelSettings
from nlp import predictor
from tests.unit.framework.serving.live_server import live
from tests.unit.nlp.test_embedder_folders import add_modules, make_bert, make_reranker

TEXTS = ["the cat sat", "dogs", "the dog sat on the mat"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("vectors")
    make_bert(folder / "embedder")
    add_modules(folder / "embedder", {"pooling_mode_mean_tokens": True}, "Normalize")
    make_reranker(folder / "reranker")
    return {"embedder": folder / "embedder", "reranker": folder / "reranker"}


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
