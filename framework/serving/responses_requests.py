"""Bodies of OpenAI's Responses API, read as chats: items are messages, and a request may go on from a stored response.

Source: OpenAI's API reference, "Create a model response".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from framework.core.types import JSON
from framework.serving.errors import BadRequestError
from framework.serving.openai_fields import Fields, check_names, field_error, get_int, get_value
from framework.serving.openai_requests import CONSTRAINTS, SAMPLING, ChatWork, read_chat

Message: TypeAlias = dict[str, JSON]
_FIELDS = (
    *("model", "input", "instructions", "max_output_tokens", "previous_response_id", "reasoning", "store"),
    *("stream", "stream_options", "text", "tool_choice", "tools", "top_logprobs", "include", "truncation"),
    *("max_tool_calls", "background", "chat_template_kwargs", *SAMPLING, *CONSTRAINTS),
)
_LOGPROBS = "message.output_text.logprobs"
_ITEMS = (
    "message, function_call, function_call_output and reasoning: models here read texts and call functions"
)
# What the answer repeats, with OpenAI's defaults.
_REPEATED: Mapping[str, JSON] = {
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "temperature": 1.0,
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
}


@dataclass(frozen=True)
class ResponseWork(ChatWork):
    """A request of /v1/responses.

    Attributes:
        conversation: The messages without the instructions, which hold for one response alone.
        stored: Whether later requests may go on from the answer.
        repeated: Fields of the request that the answer has, too.
    """

    conversation: Sequence[Mapping[str, JSON]] = ()
    stored: bool = True
    repeated: Mapping[str, JSON] = field(default_factory=dict)


def read_response(fields: Fields, find: Callable[[str], Sequence[Mapping[str, JSON]]]) -> ResponseWork:
    """A request of /v1/responses.

    Args:
        find: The conversation of a stored response, with its answer.

    Raises: BadRequestError. What `find` raises.
    """
    check_names(fields, _FIELDS)
    _refuse(fields)
    previous = get_value(fields, "previous_response_id", str, "")
    conversation: list[Message] = [dict(one) for one in find(previous)] if previous else []
    _add_input(conversation, fields.get("input"))
    instructions = get_value(fields, "instructions", str, "")
    system: list[Message] = [{"role": "system", "content": instructions}] if instructions else []
    chat: dict[str, JSON] = {
        name: fields[name]
        for name in ("model", "stream", "chat_template_kwargs", *SAMPLING, *CONSTRAINTS)
        if name in fields
    }
    chat["messages"] = [*system, *conversation]
    chat["max_completion_tokens"] = get_int(fields, "max_output_tokens", 1)
    chat["tools"], chat["tool_choice"] = _read_tools(fields)
    chat["response_format"] = _read_format(fields)
    chat["reasoning_effort"] = _read_effort(fields)
    top = get_int(fields, "top_logprobs", 0, 20)
    if top or _LOGPROBS in get_value(fields, "include", list, []):
        chat |= {"logprobs": True, "top_logprobs": top or 0}
    repeated = {
        name: default if fields.get(name) is None else fields[name] for name, default in _REPEATED.items()
    }
    text = get_value(fields, "text", dict, {})
    repeated["text"] = {"format": {"type": "text"}, **{key: value for key, value in text.items() if value}}
    repeated["reasoning"] = {"effort": chat["reasoning_effort"], "summary": None}
    return ResponseWork(
        **vars(read_chat(chat)),
        conversation=conversation,
        stored=get_value(fields, "store", bool, True),
        repeated=repeated,
    )


def _refuse(fields: Fields) -> None:
    if fields.get("background"):
        raise field_error("background", True, "false: the answer comes with this request")
    if fields.get("truncation") not in (None, "disabled"):
        raise field_error("truncation", fields["truncation"], "disabled: no item is dropped silently")


def _add_input(messages: list[Message], content: JSON) -> None:
    if isinstance(content, str):
        messages.append({"role": "user", "content": content})
        return
    if not isinstance(content, list) or not content:
        raise field_error("input", content, 'a text, or a list such as [{"role": "user", "content": "…"}]')
    for number, item in enumerate(content):
        where = f"input[{number}]"
        if not isinstance(item, dict):
            raise field_error(where, item, '{"role": "user", "content": "…"}')
        _add_item(messages, item, where)


def _add_item(messages: list[Message], item: Mapping[str, JSON], where: str) -> None:
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        message: Message = {"role": item.get("role"), "content": _read_content(item.get("content"), where)}
        if message["role"] == "assistant":
            _assistant(messages, "content")["content"] = message["content"]
        else:
            messages.append(message)
    elif kind == "function_call":
        name, arguments = _text(item, "name", where), _text(item, "arguments", where)
        calls = _assistant(messages, "").setdefault("tool_calls", [])
        assert isinstance(calls, list)
        function: JSON = {"name": name, "arguments": arguments}
        calls.append({"id": _text(item, "call_id", where), "type": "function", "function": function})
    elif kind == "function_call_output":
        output = _read_content(item.get("output"), f"{where}.output")
        messages.append({"role": "tool", "tool_call_id": _text(item, "call_id", where), "content": output})
    elif kind == "reasoning":
        thoughts = item.get("content") or item.get("summary") or []
        _assistant(messages, "reasoning_content")["reasoning_content"] = _read_content(thoughts, where)
    else:
        raise field_error(f"{where}.type", kind, _ITEMS)


def _assistant(messages: list[Message], key: str) -> Message:
    """The message that an item of the assistant belongs to: one message is thoughts, content and calls."""
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant" or last.get(key) or (key and "tool_calls" in last):
        last = Message(role="assistant", content="")
        messages.append(last)
    return last


def _read_content(content: JSON, where: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise field_error(f"{where}.content", content, "a text, or a list of texts")
    texts = []
    for number, block in enumerate(content):
        text = block.get("text", block.get("refusal")) if isinstance(block, dict) else block
        if not isinstance(text, str):
            raise field_error(
                f"{where}.content[{number}]",
                block,
                '{"type": "input_text", "text": "…"}: models here read texts',
            )
        texts.append(text)
    return "".join(texts)


def _text(item: Mapping[str, JSON], name: str, where: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise field_error(f"{where}.{name}", value, "a text")
    return value


def _read_tools(fields: Fields) -> tuple[list[JSON], JSON]:
    """Tools and the choice among them as chats have them: with their functions a level deeper."""
    tools: list[JSON] = []
    for number, tool in enumerate(get_value(fields, "tools", list, [])):
        where = f"tools[{number}]"
        if not isinstance(tool, dict) or tool.get("type") != "function":
            raise field_error(
                where, tool, '{"type": "function", "name": …, "parameters": {…}}: the client runs it'
            )
        function: Message = {"name": _text(tool, "name", where)}
        if not isinstance(tool.get("parameters"), dict | None):
            raise field_error(f"{where}.parameters", tool["parameters"], "a JSON schema")
        function |= {key: tool[key] for key in ("description", "parameters") if tool.get(key) is not None}
        tools.append({"type": "function", "function": function})
    choice = fields.get("tool_choice")
    if isinstance(choice, dict):
        if choice.get("type") != "function":
            raise field_error(
                "tool_choice", choice, 'none, auto, required or {"type": "function", "name": …}'
            )
        choice = {"type": "function", "function": {"name": choice.get("name")}}
    return tools, choice


def _read_format(fields: Fields) -> JSON:
    text = get_value(fields, "text", dict, {})
    form = get_value(text, "format", dict, {})
    kind = form.get("type", "text")
    if kind not in ("text", "json_object", "json_schema"):
        raise field_error("text.format.type", kind, "text, json_object or json_schema")
    if kind == "json_schema" and not isinstance(form.get("schema"), dict | bool):
        raise field_error("text.format", form, '{"type": "json_schema", "name": …, "schema": {…}}')
    return dict(form)


def _read_effort(fields: Fields) -> JSON:
    effort = get_value(fields, "reasoning", dict, {}).get("effort")
    if not isinstance(effort, str | None):
        raise BadRequestError(
            "the request is not valid", where="reasoning.effort", received=repr(effort)[:100]
        )
    return effort
