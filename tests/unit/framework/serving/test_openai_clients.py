"""What LangChain and litellm send to servers of OpenAI's API, and read of their answers; texts of encoder-decoders."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jax.numpy as jnp
import numpy as np
import pytest

from framework.config import build
from framework.serving.settings import ModelSettings
from nlp import llm
from tests.unit.framework.serving.live_server import live
from tests.unit.nlp.test_embedder_folders import add_modules, make_bert, make_reranker
from tests.unit.nlp.tiny_decoder import write_folder
from zoo.decoder.bart import BartConfig
from zoo.decoder.t5 import T5Config
from zoo.layers.decoder_weights import save_decoder

MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
SMALL: dict[str, Any] = {
    "vocab_size": 330,
    "hidden_size": 32,
    "num_layers": 2,
    "num_heads": 4,
    "intermediate_size": 64,
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("clients")
    folders = {name: folder / name for name in ("tiny", "embedder", "reranker", "t5", "bart")}
    write_folder(folders["tiny"])
    make_bert(folders["embedder"])
    add_modules(folders["embedder"], {"pooling_mode_mean_tokens": True}, "Normalize")
    make_reranker(folders["reranker"])
    draws = np.random.default_rng(0)
    for name, config in (("t5", T5Config(**SMALL)), ("bart", BartConfig(**SMALL))):
        model = build(config).eval()
        for parameter in model.parameters():  # so wide that texts depend on their prompts
            if len(parameter.shape) > 1:
                values = draws.standard_normal(parameter.shape)
                parameter.set_value(jnp.asarray(0.4 * values, jnp.float32))
        save_decoder(model, folders[name])
        shutil.copyfile(folders["tiny"] / "tokenizer.json", folders[name] / "tokenizer.json")
        (folders[name] / "tokenizer_config.json").write_text('{"eos_token": "<|im_end|>"}', encoding="utf-8")
    return folders


@pytest.fixture(scope="module")
def url(folders: dict[str, Path]) -> Iterator[str]:
    models = tuple(
        ModelSettings(str(path), name, options={"slots": 2} if name in ("tiny", "t5", "bart") else {})
        for name, path in folders.items()
    )
    with live(folders["tiny"], models=models) as address:
        yield address


def post(url: str, path: str, **body: Any) -> httpx.Response:
    return httpx.post(f"{url}{path}", json=body, timeout=120)


def chat(url: str, **body: Any) -> httpx.Response:
    return post(
        url, "/v1/chat/completions", **{"model": "tiny", "messages": MESSAGES, "max_tokens": 90, **body}
    )


@pytest.mark.parametrize(
    "form",
    [
        {"type": "json_object", "schema": ANSWER},
        {"type": "json_schema", "schema": ANSWER},
        {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER, "strict": True}},
    ],
)
def test_each_form_of_a_schema_is_followed(url: str, form: dict[str, Any]) -> None:
    pytest.importorskip("llguidance")
    for seed in range(2):
        answer = chat(url, response_format=form, max_tokens=300, seed=seed, temperature=0.1).json()
        assert set(json.loads(answer["choices"][0]["message"]["content"])) == {"ok"}


def test_a_schema_that_is_none_is_refused(url: str) -> None:
    for form in ({"type": "json_object", "schema": "x"}, {"type": "json_schema", "schema": 3}):
        answer = chat(url, response_format=form)
        assert answer.status_code == 400 and "response_format" in answer.json()["error"]["param"]


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("words", [2010, 900_000])
def test_clients_tell_a_long_prompt_by_the_message(url: str, stream: bool, words: int) -> None:
    answer = chat(url, messages=[{"role": "user", "content": "a " * words}], stream=stream)
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["code"] == "context_length_exceeded"
    assert "context_length_exceeded" in error["message"]  # LangChain
    assert "requested token count exceeds the model's maximum context length" in error["message"]  # litellm


def test_another_error_is_not_told_as_a_long_prompt(url: str) -> None:
    assert "context_length_exceeded" not in chat(url, temperature=-1).text


def test_old_fields_say_what_stands_for_them_now(url: str) -> None:
    answer = chat(url, functions=[{"name": "f", "parameters": {}}])
    assert answer.status_code == 400 and "send tools" in answer.json()["error"]["message"]
    assert "send tool_choice" in chat(url, function_call={"name": "f"}).json()["error"]["message"]


def test_bytes_of_tokens_make_the_text(url: str) -> None:
    """Parts of characters too, of which a text of U+FFFD says nothing."""
    scores = []
    for seed in range(4):
        answer = chat(url, logprobs=True, top_logprobs=5, seed=seed, max_tokens=30, ignore_eos=True).json()
        (choice,) = answer["choices"]
        data = b"".join(bytes(score["bytes"]) for score in choice["logprobs"]["content"])
        text = choice["message"]["content"]
        assert data.decode("utf-8", "replace") == text or data.decode("utf-8", "replace").startswith(
            text.rstrip("\ufffd")
        )
        scores += choice["logprobs"]["content"]
    parts = [score for score in scores if "\ufffd" in score["token"]]
    assert parts and all(bytes(score["bytes"]) != "\ufffd".encode() for score in parts)
    for score in scores:
        assert len({bytes(one["bytes"]) for one in score["top_logprobs"]}) == 5


def test_parts_of_characters_are_apart_in_completions(url: str) -> None:
    body = {"model": "tiny", "prompt": "hello", "max_tokens": 30, "logprobs": 5, "seed": 1}
    logprobs = post(url, "/v1/completions", **body).json()["choices"][0]["logprobs"]
    assert all(len(top) == 5 for top in logprobs["top_logprobs"])
    assert any(key.startswith("bytes:\\x") for top in logprobs["top_logprobs"] for key in top)


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank"])
def test_paths_of_rankings(url: str, path: str) -> None:
    answer = post(url, path, model="reranker", query="the dog", documents=["a dog", "cat"]).json()
    assert len(answer["results"]) == 2 and answer["id"].startswith("rerank-")
    error = post(url, path, model="reranker", query="").json()["error"]
    assert error["type"] == "invalid_request_error" and "query" in error["message"]


@pytest.mark.parametrize("content", [[5, 6], [[5, 6], [7]]])
def test_tokens_of_embeddings_are_refused_with_advice(url: str, content: Any) -> None:
    answer = post(url, "/v1/embeddings", model="embedder", input=content)
    assert answer.status_code == 400 and "check_embedding_ctx_length" in answer.json()["error"]["message"]


# -- encoder-decoders --------------------------------------------------------------------------------------------------


def streamed(url: str, **body: Any) -> str:
    with httpx.stream("POST", f"{url}/v1/completions", json={**body, "stream": True}, timeout=120) as answer:
        lines = [line.removeprefix("data: ") for line in answer.iter_lines() if line]
    assert lines[-1] == "[DONE]"
    return "".join(one["text"] for line in lines[:-1] for one in json.loads(line)["choices"])


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_texts_of_encoder_decoders(folders: dict[str, Path], url: str, name: str) -> None:
    prompts = ["the quick brown fox", "hello world, hello dog"]
    body = {"model": name, "max_tokens": 12, "temperature": 0, "ignore_eos": True}
    answer = post(url, "/v1/completions", prompt=prompts, **body).json()
    expected = llm.load(folders[name]).generate(prompts, max_new_tokens=12, ignore_eos=True, do_sample=False)
    assert isinstance(expected, list)
    texts = [choice["text"] for choice in answer["choices"]]
    assert texts == [one.text for one in expected]  # type: ignore[union-attr]
    assert texts[0] != texts[1] and answer["usage"]["completion_tokens"] == 24
    assert [streamed(url, prompt=prompt, **body) for prompt in prompts] == texts
    drawn = {"model": name, "prompt": prompts[0], "max_tokens": 12, "seed": 3, "logprobs": 2}
    first = post(url, "/v1/completions", **drawn).json()["choices"][0]
    assert first == post(url, "/v1/completions", **drawn).json()["choices"][0]
    assert len(first["logprobs"]["tokens"]) <= 12


@pytest.mark.parametrize("name", ["t5", "bart"])
def test_requests_that_encoder_decoders_refuse(url: str, name: str) -> None:
    answer = post(url, "/v1/chat/completions", model=name, messages=MESSAGES)
    assert answer.status_code == 400 and "no chat template" in answer.json()["error"]["message"]
    answer = post(url, "/v1/completions", model=name, prompt="a " * 100_000)
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "context_length_exceeded"
    assert post(url, "/v1/completions", model=name, prompt="hello", max_tokens=4).status_code == 200
