"""OpenAI's Responses API: the official client against a server in this process, with a tiny language model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from framework.serving.errors import BadRequestError, UnknownResponseError
from framework.serving.openai_answers import AnswerReader, Usage
from framework.serving.responses_answers import ResponseAnswer, ResponseStore
from framework.serving.responses_requests import read_response
from framework.serving.settings import ModelSettings
from framework.text.chat_answer import AnswerParser
from framework.workflow.domain.text_generation import TextDelta
from tests.unit.framework.serving.live_server import live
from tests.unit.nlp.tiny_decoder import write_folder

openai = pytest.importorskip("openai")
pytest.importorskip("llguidance")
PARAMETERS: Any = {
    "type": "object",
    "properties": {"on": {"type": "boolean"}},
    "required": ["on"],
    "additionalProperties": False,
}
TOOL: Any = {"type": "function", "name": "switch", "parameters": PARAMETERS, "strict": True}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = write_folder(tmp_path_factory.mktemp("writer") / "tiny")
    with live(folder, models=(ModelSettings(str(folder), "tiny", options={"slots": 4}),)) as address:
        yield openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0)


def ask(client: Any, **settings: Any) -> Any:
    return client.responses.create(
        **{"model": "tiny", "input": "hello", "max_output_tokens": 8, "temperature": 0, **settings}
    )


def test_a_response_is_what_a_chat_answers(client: Any) -> None:
    answer = ask(client, instructions="Be short.", metadata={"a": "b"})
    chat = client.chat.completions.create(
        model="tiny",
        messages=[{"role": "system", "content": "Be short."}, {"role": "user", "content": "hello"}],
        max_tokens=8,
        temperature=0,
    )
    assert answer.output_text == chat.choices[0].message.content
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert (answer.instructions, answer.metadata, answer.object) == ("Be short.", {"a": "b"}, "response")
    assert answer.usage.input_tokens == chat.usage.prompt_tokens and answer.usage.output_tokens == 8
    item = answer.output[0]
    assert (item.type, item.role, item.status) == ("message", "assistant", "completed")


def test_a_stream_adds_up_to_the_response(client: Any) -> None:
    events = list(ask(client, stream=True))
    kinds = [event.type for event in events]
    assert kinds[:4] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last = events[-1].response
    assert text == last.output_text == ask(client).output_text
    assert last.usage.total_tokens == last.usage.input_tokens + 8
    with client.responses.stream(model="tiny", input="hello", max_output_tokens=8, temperature=0) as stream:
        added = [event.snapshot for event in stream if event.type == "response.output_text.delta"]
    assert added[-1] == text  # what the client itself adds up
    assert [one.type for one in last.output] == ["message"]


def test_a_conversation_goes_on(client: Any) -> None:
    first = ask(client, instructions="Be short.")
    second = ask(client, input="more", previous_response_id=first.id)
    items = [
        {"role": "user", "content": "hello"},
        *[item.model_dump(exclude_none=True) for item in first.output],
        {"role": "user", "content": [{"type": "input_text", "text": "more"}]},
    ]
    assert ask(client, input=items).output_text == second.output_text
    assert second.previous_response_id == first.id
    assert client.responses.retrieve(first.id).output_text == first.output_text
    client.responses.delete(first.id)
    for wrong in (lambda: client.responses.retrieve(first.id), lambda: ask(client, previous_response_id="x")):
        with pytest.raises(openai.NotFoundError, match="there is no such response"):
            wrong()
    unstored = ask(client, store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(unstored.id)


def test_functions_are_called_and_answered(client: Any) -> None:
    choice = {"type": "function", "name": "switch"}
    answer = ask(client, tools=[TOOL], tool_choice=choice, max_output_tokens=40)
    (call,) = answer.output
    assert (call.type, call.name, answer.status) == ("function_call", "switch", "completed")
    assert set(json.loads(call.arguments)) == {"on"}
    events = list(ask(client, tools=[TOOL], tool_choice=choice, max_output_tokens=40, stream=True))
    assert "response.function_call_arguments.done" in [event.type for event in events]
    assert events[-1].response.output[0].arguments == call.arguments
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "done"}
    assert ask(client, input=[output], previous_response_id=answer.id, tools=[TOOL]).output
    items = [{"role": "user", "content": "hello"}, call.model_dump(exclude_none=True), output]
    assert ask(client, input=items, tools=[TOOL]).output


def test_texts_of_a_schema_and_logprobs(client: Any) -> None:
    form = {"format": {"type": "json_schema", "name": "a", "schema": PARAMETERS, "strict": True}}
    answer = ask(client, text=form, max_output_tokens=40, top_logprobs=2)
    assert '"on"' in answer.output_text and answer.status == "completed"
    scores = answer.output[0].content[0].logprobs
    assert len(scores) == answer.usage.output_tokens - 1 or len(scores) == answer.usage.output_tokens
    assert all(len(score.top_logprobs) == 2 for score in scores)


def test_a_pattern_holds(client: Any) -> None:
    answer = ask(client, extra_body={"guided_regex": "[a-z]{5}"})
    assert re.fullmatch("[a-z]{5}", answer.output_text) and answer.status == "completed"


def test_what_was_read_before_is_counted(client: Any) -> None:
    long = "the same beginning of all, " * 6
    chat = {"model": "tiny", "messages": [{"role": "user", "content": long}], "max_tokens": 2}
    client.chat.completions.create(**chat)
    again = client.chat.completions.create(**chat).usage
    cached = again.prompt_tokens_details.cached_tokens
    assert cached % 64 == 0 and 64 <= cached < again.prompt_tokens
    assert ask(client, input=long).usage.input_tokens_details.cached_tokens == cached


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"input": []}, "input"),
        ({"input": [{"type": "computer_call"}]}, r"input\[0\].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, r"input\[0\].content\[0\]"),
        ({"tools": [{"type": "web_search"}]}, r"tools\[0\]"),
        ({"tool_choice": {"type": "mcp"}}, "tool_choice"),
        ({"truncation": "auto"}, "truncation"),
        ({"background": True}, "background"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"messages": []}, "messages"),
    ],
)
def test_wrong_requests(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequestError, match=message):
        read_response({"model": "tiny", "input": "a", **fields}, lambda number: [])


def test_thoughts_are_items_and_go_back_to_the_template() -> None:
    stored: list[Any] = []
    reader = AnswerReader(AnswerParser("hermes", thinking=True), None)
    answer = ResponseAnswer("tiny", reader, {}, False, lambda response, messages: stored.extend(messages))
    kinds = [event["type"] for event in answer.add(0, TextDelta("why", 1))]
    assert kinds[-1] == "response.reasoning_text.delta"
    for text, reason in (("</think>", None), ("so", "stop")):
        answer.add(0, TextDelta(text, 1, (), reason))  # type: ignore[arg-type]
    response: Any = answer.whole(Usage())
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert stored == [{"role": "assistant", "content": "so", "reasoning_content": "why"}]
    work = read_response(
        {"model": "tiny", "input": [*response["output"], {"role": "user", "content": "?"}]}, lambda number: []
    )
    assert [dict(one) for one in work.messages[:1]] == stored
    assert reader.reasoning_tokens == 1


def test_the_store_forgets_what_was_used_longest_ago() -> None:
    store = ResponseStore(characters=200)
    for number in ("a", "b"):
        store.add({"id": number}, [{"role": "user", "content": "x" * 40}])
    store.response("a")
    store.add({"id": "c"}, [{"role": "user", "content": "x" * 40}])
    assert store.response("a") == {"id": "a"} and store.conversation("c")
    with pytest.raises(UnknownResponseError):
        store.response("b")
