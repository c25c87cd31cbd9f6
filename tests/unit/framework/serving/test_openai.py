"""OpenAI's API: the official client against a server in this process, with a tiny language model."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from framework.serving.settings import Limits, ModelSettings
from tests.unit.framework.serving.live_server import live
from tests.unit.nlp.tiny_decoder import LENGTH, write_folder

openai = pytest.importorskip("openai")
pytest.importorskip("llguidance")
MESSAGES: list[Any] = [{"role": "user", "content": "hello"}]
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "switch",
        "parameters": {
            "type": "object",
            "properties": {"on": {"type": "boolean"}},
            "required": ["on"],
            "additionalProperties": False,
        },
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("writer") / "tiny")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    model = ModelSettings(str(folder), "tiny", options={"slots": 4})
    with live(folder, models=(model,)) as address:
        yield address


@pytest.fixture(scope="module")
def client(url: str) -> Any:
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)


def ask(client: Any, **settings: Any) -> Any:
    return client.chat.completions.create(
        **{"model": "tiny", "messages": MESSAGES, "max_tokens": 8, **settings}
    )


def stream_text(client: Any, **settings: Any) -> str:
    chunks = ask(client, stream=True, **settings)
    return "".join(one.delta.content or "" for chunk in chunks for one in chunk.choices)


def test_models(client: Any) -> None:
    assert [(model.id, model.object) for model in client.models.list().data] == [("tiny", "model")]
    assert client.models.retrieve("tiny").owned_by == "oar"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("none")


def test_chat(client: Any) -> None:
    answer = ask(client, seed=3, n=2)
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert [choice.index for choice in answer.choices] == [0, 1]
    texts = [choice.message.content for choice in answer.choices]
    assert texts[0] != texts[1]
    assert answer.usage.prompt_tokens > 8 and answer.usage.completion_tokens == 16
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 16
    again = ask(client, seed=3)
    assert again.choices[0].message.content == texts[0]
    assert again.choices[0].finish_reason == "length"
    assert stream_text(client, seed=3) == texts[0]


def test_a_stream(client: Any) -> None:
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}, n=2, seed=1))
    assert {chunk.object for chunk in chunks} == {"chat.completion.chunk"}
    assert [chunk.choices[0].delta.role for chunk in chunks[:2]] == ["assistant"] * 2
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 16
    assert all(chunk.usage is None for chunk in chunks[:-1])
    reasons = [one.finish_reason for chunk in chunks for one in chunk.choices if one.finish_reason]
    assert reasons == ["length", "length"]


@pytest.mark.parametrize("usage", [True, False])
def test_a_stream_counts_in_each_event_where_it_is_asked_to(client: Any, usage: bool) -> None:
    options = {"include_usage": usage, "continuous_usage_stats": True}
    asked = {"n": 2, "max_tokens": 4, "extra_body": {"ignore_eos": True}}  # a sampled text may end before
    counts = [one.usage for one in ask(client, stream=True, stream_options=options, **asked)]
    if not usage:  # as vLLM has it
        assert counts == [None] * len(counts)
        return
    completions = [one.completion_tokens for one in counts]
    assert completions == sorted(completions) and completions[0] == 0 and completions[-2:] == [8, 8]
    assert len({one.prompt_tokens for one in counts}) == 1 and counts[0].prompt_tokens > 8


def test_logprobs(client: Any) -> None:
    answer = ask(client, seed=3, logprobs=True, top_logprobs=2, max_tokens=3)
    scores = answer.choices[0].logprobs.content
    assert len(scores) == 3 and all(score.logprob < 0 and len(score.top_logprobs) == 2 for score in scores)
    assert bytes(scores[0].bytes).decode("utf-8", "replace") == scores[0].token
    streamed = [
        score
        for chunk in ask(client, seed=3, logprobs=True, max_tokens=3, stream=True)
        for one in chunk.choices
        if one.logprobs
        for score in one.logprobs.content
    ]
    assert [score.token for score in streamed] == [score.token for score in scores]
    with pytest.raises(openai.BadRequestError, match="top_logprobs"):
        ask(client, top_logprobs=2)


def test_greedy_and_stop(client: Any) -> None:
    whole = ask(client, temperature=0, max_tokens=24).choices[0].message.content
    stop = whole[4:6]
    answer = ask(client, temperature=0, max_tokens=24, stop=[stop]).choices[0]
    assert answer.finish_reason == "stop" and answer.message.content == whole[: whole.index(stop)]
    assert stream_text(client, temperature=0, max_tokens=24, stop=stop) == answer.message.content


def test_completions(client: Any) -> None:
    answer = client.completions.create(model="tiny", prompt=["hi", "yo"], max_tokens=4, echo=True, seed=1)
    assert answer.object == "text_completion"
    assert [choice.text[:2] for choice in answer.choices] == ["hi", "yo"]
    assert client.completions.create(model="tiny", prompt="hi", seed=1).usage.completion_tokens == 16
    one = client.completions.create(model="tiny", prompt=[5, 6], max_tokens=2, logprobs=1, seed=1).choices[0]
    assert len(one.logprobs.tokens) == len(one.logprobs.token_logprobs) == 2
    # A token that is no whole character is told by its bytes, and is one sign of the text.
    assert one.logprobs.tokens[0].startswith("bytes:") and one.logprobs.text_offset == [0, 1]
    streamed = client.completions.create(
        model="tiny", prompt="hi", max_tokens=4, echo=True, seed=1, stream=True
    )
    assert "".join(chunk.choices[0].text for chunk in streamed) == answer.choices[0].text


def test_the_logarithms_of_a_prompt(client: Any, folder: Path) -> None:
    from nlp import llm
    from nlp.evaluation.likelihood import Continuation, Scorer, model_parts

    ids = [5, 9, 44, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]
    settings = {"model": "tiny", "prompt": ids, "logprobs": 2, "echo": True, "temperature": 0}
    alone = client.completions.create(**settings, max_tokens=0).choices[0]
    scores = alone.logprobs
    model, _ = model_parts(llm.load(str(folder)))
    expected = Scorer(model).score([Continuation((ids[0],), tuple(ids[1:]))])[0].log_likelihoods
    assert scores.token_logprobs[0] is None and scores.top_logprobs[0] is None
    assert scores.token_logprobs[1:] == pytest.approx(expected.tolist(), abs=1e-5)
    assert len(scores.tokens) == len(ids) and alone.finish_reason == "length"
    best = [max(one.values()) for one in scores.top_logprobs[1:]]
    assert all(top >= log for top, log in zip(best, scores.token_logprobs[1:], strict=True))
    longer = client.completions.create(**settings, max_tokens=3).choices[0]
    assert longer.text.startswith(alone.text)
    assert longer.logprobs.token_logprobs[: len(ids)] == scores.token_logprobs
    assert len(longer.logprobs.tokens) == len(ids) + 3
    for most, whole in ((0, alone), (3, longer)):
        chunks = [
            one.choices[0] for one in client.completions.create(**settings, max_tokens=most, stream=True)
        ]
        assert "".join(one.text for one in chunks) == whole.text
        logs = [log for one in chunks for log in one.logprobs.token_logprobs]
        assert logs == whole.logprobs.token_logprobs
    # What comes behind one more token is how probable the model's own next one is.
    again = client.completions.create(
        model="tiny", prompt=ids, max_tokens=1, temperature=0, logprobs=1
    ).choices[0]
    assert longer.logprobs.token_logprobs[len(ids)] == pytest.approx(
        again.logprobs.token_logprobs[0], abs=1e-5
    )


def test_structured_output(client: Any) -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    schema["additionalProperties"] = False
    form = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
    for seed in range(3):
        content = ask(client, response_format=form, max_tokens=200, seed=seed).choices[0].message.content
        assert json.loads(content)["a"] in ("x", "y")
    choice = ask(client, extra_body={"guided_choice": ["left", "right"]}, max_tokens=20)
    assert choice.choices[0].message.content in ("left", "right")
    pattern = ask(client, extra_body={"structured_outputs": {"regex": "[ab]{3}"}}, max_tokens=20)
    assert set(pattern.choices[0].message.content) <= {"a", "b"}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "switch"}}])
def test_a_call_that_has_to_be(client: Any, choice: Any) -> None:
    answer = ask(client, tools=[TOOL], tool_choice=choice, max_tokens=200, seed=1, temperature=0.1).choices[0]
    if answer.finish_reason == "length":  # spaces without end are valid JSON, too
        assert answer.message.tool_calls is None
        return
    (call,) = answer.message.tool_calls
    assert answer.finish_reason == ("tool_calls" if choice == "required" else "stop")
    assert answer.message.content is None
    assert call.function.name == "switch" and isinstance(json.loads(call.function.arguments)["on"], bool)
    chunks = ask(
        client, tools=[TOOL], tool_choice=choice, max_tokens=200, seed=1, temperature=0.1, stream=True
    )
    deltas = [one.delta for chunk in chunks for one in chunk.choices if one.delta.tool_calls]
    assert [delta.tool_calls[0].function.arguments for delta in deltas] == [call.function.arguments]


def test_a_chat_with_calls_is_read(client: Any) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "switch", "arguments": '{"on": true}'}}
    messages = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ]
    assert ask(client, messages=messages, tools=[TOOL]).usage.prompt_tokens > 40


def test_the_async_client(url: str) -> None:
    async def main() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:

            async def one(seed: int) -> str:
                stream = await client.chat.completions.create(
                    model="tiny", messages=MESSAGES, max_tokens=8, seed=seed, stream=True
                )
                return "".join([c.choices[0].delta.content or "" async for c in stream if c.choices])

            return list(await asyncio.gather(*(one(seed) for seed in range(4))))

    texts = asyncio.run(main())
    assert len(set(texts)) == 4


def test_texts_of_many_clients_are_those_made_alone(client: Any) -> None:
    settings = [
        {
            "seed": number,
            "max_tokens": 3 + 5 * (number % 4),
            "temperature": 0.5 + number % 3,
            "top_k": 20 * (number % 2),
        }
        for number in range(16)
    ]
    messages = [[{"role": "user", "content": "the fox " * (1 + 3 * number)}] for number in range(16)]

    def run(number: int) -> str:
        chosen = dict(settings[number])
        return stream_text(
            client, messages=messages[number], extra_body={"top_k": chosen.pop("top_k")}, **chosen
        )

    alone = [run(number) for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(run, range(16))) == alone
    assert len(set(alone)) == 16


def running(url: str) -> float:
    text = httpx.get(f"{url}/metrics").text
    lines = [line for line in text.splitlines() if line.startswith("oar_requests_under_way")]
    return sum(float(line.split()[-1]) for line in lines)


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_frees_its_slot(client: Any, url: str, stream: bool) -> None:
    body = {"model": "tiny", "messages": MESSAGES, "ignore_eos": True, "stream": stream, "n": 4}
    with httpx.Client() as http:
        if stream:
            with http.stream("POST", f"{url}/v1/chat/completions", json=body) as answer:
                chunks = answer.iter_bytes()
                next(chunks)
                assert running(url) == 4
        else:
            with pytest.raises(httpx.ReadTimeout):
                http.post(f"{url}/v1/chat/completions", json=body, timeout=0.05)
    ends = time.monotonic() + 20
    while running(url):
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert ask(client).choices[0].finish_reason


HOSTILE: dict[str, dict[str, Any]] = {
    "no model": {"model": "none"},
    "model of another type": {"model": 3},
    "no messages": {"messages": []},
    "messages of another type": {"messages": "hello"},
    "message without a role": {"messages": [{"content": "a"}]},
    "unknown role": {"messages": [{"role": "king", "content": "a"}]},
    "no content": {"messages": [{"role": "user", "content": None}]},
    "an image": {
        "messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "a"}}]}]
    },
    "temperature": {"temperature": "hot"},
    "negative temperature": {"temperature": -1},
    "infinite top_p": {"top_p": 1e999},
    "max_tokens": {"max_tokens": 10**9},
    "no tokens": {"max_tokens": 0},
    "tokens of another type": {"max_tokens": "8"},
    "n": {"n": 10**6},
    "n beyond the queue": {"n": 100},
    "no n": {"n": 0},
    "a long prompt": {"messages": [{"role": "user", "content": "a " * 1_000_000}]},
    "stops": {"stop": ["a"] * 99},
    "seed": {"seed": "x"},
    "seed too large": {"seed": 2**70},
    "unknown field": {"foo": 1},
    "template": {"chat_template": "{% for i in range(9**9) %}{% endfor %}"},
    "template of the settings": {"chat_template_kwargs": {"chat_template": "x"}},
    "messages of the settings": {"chat_template_kwargs": {"messages": []}},
    "tools": {"tools": [{"type": "x"}]},
    "tool of no name": {"tools": [{"type": "function", "function": {}}]},
    "choice of no tool": {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "no"}}},
    "choice": {"tool_choice": "all"},
    "required without tools": {"tool_choice": "required"},
    "form": {"response_format": {"type": "xml"}},
    "form without a schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}},
    "schema that is none": {"guided_json": {"type": "nothing"}},
    "endless schema": {"guided_json": {"$ref": "#"}},
    "pattern": {"guided_regex": "((((("},
    "no choices": {"guided_choice": []},
    "two constraints": {"guided_regex": "a", "guided_choice": ["a"]},
    "bias": {"logit_bias": {"999999": 1}},
    "bias of another type": {"logit_bias": [1]},
    "beams": {"num_beams": 4},
    "stream": {"stream": "yes"},
    "stream options": {"stream_options": {"include_usage": True}},
    "logprobs": {"logprobs": True, "top_logprobs": 50},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused(url: str, name: str) -> None:
    body = json.dumps({"model": "tiny", "messages": MESSAGES, **HOSTILE[name]})
    answer = httpx.post(f"{url}/v1/chat/completions", content=body, timeout=60)
    error = answer.json()["error"]
    assert 400 <= answer.status_code < 500, answer.text
    assert error["message"] and error["type"] and "code" in error and "param" in error
    assert httpx.get(f"{url}/readyz").status_code == 200


SCHEMA_BOMB: dict[str, Any] = {"type": "object", "properties": {}}
for _ in range(40):
    SCHEMA_BOMB = {"anyOf": [{"type": "object", "properties": {"a": SCHEMA_BOMB}}, {"type": "array"}]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"model": "tiny", "messages": [{"role": "user", "content": "\xff\xfe"}]}',
        b'{"model": "tiny", "messages": ' + b"[" * 10_000,
        b'{"model": NaN}',
        b"\x00" * 100,
        json.dumps({"model": "tiny", "messages": MESSAGES, "guided_json": SCHEMA_BOMB}).encode(),
    ],
)
def test_bodies_that_are_no_requests(url: str, body: bytes) -> None:
    for path in ("/v1/chat/completions", "/v1/completions", "/v1/embeddings"):
        answer = httpx.post(f"{url}{path}", content=body, timeout=60)
        assert 400 <= answer.status_code < 500, answer.text
        assert answer.json()["error"]["type"]
    assert httpx.get(f"{url}/readyz").status_code == 200


def test_lone_surrogates_are_read(url: str) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "a\ud83d"}], "max_tokens": 2}
    assert httpx.post(f"{url}/v1/chat/completions", content=json.dumps(body)).status_code == 200


def test_a_long_prompt_says_so_as_openai_does(client: Any) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, messages=[{"role": "user", "content": "a " * 2100}])
    assert caught.value.code == "context_length_exceeded" and caught.value.param == "max_tokens"
    assert f"at most {LENGTH - 1:,} tokens of the prompt" in str(caught.value)  # fewer max_tokens do not help
    with pytest.raises(openai.BadRequestError) as caught:
        client.completions.create(model="tiny", prompt="a " * 1_000_000)
    assert caught.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, messages=[{"role": "user", "content": "a " * 5000}], max_tokens=None)
    assert caught.value.code == "context_length_exceeded"


def test_a_text_ends_where_the_context_does(client: Any) -> None:
    answer = ask(client, max_tokens=None, extra_body={"ignore_eos": True})
    assert answer.usage.total_tokens == LENGTH and answer.choices[0].finish_reason == "length"


def test_a_full_queue(folder: Path) -> None:
    model = ModelSettings(str(folder), "tiny", options={"slots": 1})
    with live(folder, models=(model,), limits=Limits(queue=2)) as url:
        body = {"model": "tiny", "messages": MESSAGES, "ignore_eos": True, "stream": True}
        with (
            httpx.Client() as http,
            http.stream("POST", f"{url}/v1/chat/completions", json={**body, "n": 2}) as answer,
        ):
            chunks = answer.iter_bytes()
            next(chunks)
            refused = httpx.post(f"{url}/v1/chat/completions", json=body)
            assert refused.status_code == 503 and int(refused.headers["retry-after"]) >= 1
            assert refused.json()["error"]["type"] == "server_error"


def test_deadlines_and_keys(folder: Path) -> None:
    model = ModelSettings(str(folder), "tiny", options={"slots": 1})
    limits = Limits(text_deadline=0.01)
    with live(folder, models=(model,), limits=limits, api_keys=("secret",)) as url:
        with pytest.raises(openai.AuthenticationError) as caught:
            ask(openai.OpenAI(base_url=f"{url}/v1", api_key="wrong"))
        assert caught.value.code == "invalid_api_key"
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="secret", max_retries=0)
        with pytest.raises(openai.InternalServerError, match="deadline"):
            ask(client, max_tokens=2000, extra_body={"ignore_eos": True})
        with pytest.raises(openai.APIError, match="deadline"):
            stream_text(client, max_tokens=2000, extra_body={"ignore_eos": True})


def test_a_changed_folder_is_opened_anew(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "tiny")
    model = ModelSettings(str(folder), "tiny", options={"slots": 2})
    with live(folder, models=(model,), reload_seconds=0.1) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        before = ask(client, temperature=0).choices[0].message.content
        long = ask(client, stream=True, max_tokens=1500, extra_body={"ignore_eos": True})
        next(iter(long))
        write_folder(folder, seed=2)
        ends = time.monotonic() + 240
        while ask(client, temperature=0).choices[0].message.content == before:
            assert time.monotonic() < ends
            time.sleep(0.1)
        assert [chunk.choices[0].finish_reason for chunk in long][-1] == "length"


def test_metrics(client: Any, url: str) -> None:
    ask(client)
    text = httpx.get(f"{url}/metrics").text
    assert 'oar_tokens_total{kind="generated",model="tiny"}' in text
    assert 'oar_first_token_seconds_count{model="tiny"}' in text
    assert 'oar_texts{model="tiny",state="running"} 0.0' in text
    assert 'oar_request_seconds_count{model="tiny",route="/v1/chat/completions"}' in text


def test_other_routes_say_what_the_model_is_for(url: str) -> None:
    answer = httpx.post(f"{url}/v1/models/tiny:predict", json={"text": "a"})
    assert answer.status_code == 404 and "/v1/chat/completions" in answer.text
    answer = httpx.post(f"{url}/v1/embeddings", json={"model": "tiny", "input": "a"})
    assert answer.status_code == 404


def test_a_model_without_a_template(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "plain")
    (folder / "tokenizer_config.json").write_text("{}", encoding="utf-8")
    with live(folder, models=(ModelSettings(str(folder), "plain"),)) as url:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none")
        with pytest.raises(openai.BadRequestError, match="no chat template"):
            ask(client, model="plain")
        assert client.completions.create(model="plain", prompt="a").choices[0].finish_reason
        assert httpx.get(f"{url}/v1/models/plain").json()["takes"] == "prompt"


def test_threads_end(folder: Path) -> None:
    before = threading.active_count()
    with live(folder, models=(ModelSettings(str(folder), "tiny", options={"slots": 1}),)) as url:
        ask(openai.OpenAI(base_url=f"{url}/v1", api_key="none"))
    ends = time.monotonic() + 20
    while threading.active_count() > before + 1:
        assert time.monotonic() < ends, [thread.name for thread in threading.enumerate()]
        time.sleep(0.05)
