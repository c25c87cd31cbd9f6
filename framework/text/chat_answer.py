"""What an assistant's text says: thoughts, content and calls of tools, also while the text still comes.

Sources: the forms in which models write calls: Hermes and Qwen (`<tool_call>` around JSON, or around XML of
Qwen3-Coder), Llama 3 (JSON as the whole answer), Mistral (`[TOOL_CALLS]` and a list, or a name, `[ARGS]` and JSON);
thoughts stand in `<think>`.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from framework.core.bounded import parse_json
from framework.core.errors import FormatError
from framework.core.types import JSON

log = logging.getLogger("oar")
ToolForm = Literal["hermes", "llama3", "mistral"]
_THINK, _THOUGHT = "<think>", "</think>"
_HERMES, _HERMES_END = "<tool_call>", "</tool_call>"
_MISTRAL, _MISTRAL_ARGS, _MISTRAL_ID = "[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"
_LLAMA = "<|python_tag|>"
_FUNCTION = re.compile(r"<function=([^>\n]+)>(.*?)(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter=([^>\n]+)>\n?(.*?)\n?(?:</parameter>|\Z)", re.DOTALL)
_ID_CHARACTERS = string.ascii_letters + string.digits


@dataclass(frozen=True)
class ToolCall:
    """A call of a function, `arguments` as JSON."""

    name: str
    arguments: str
    id: str


@dataclass(frozen=True)
class AnswerDelta:
    """What some more text adds to an answer."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.content or self.reasoning or self.tool_calls)

    def __add__(self, other: AnswerDelta) -> AnswerDelta:
        return AnswerDelta(
            self.content + other.content,
            self.reasoning + other.reasoning,
            self.tool_calls + other.tool_calls,
        )


Answer = AnswerDelta
"""A whole answer is the sum of its deltas."""


def find_tool_form(template: str) -> ToolForm:
    """The form in which a model with this chat template writes calls; Hermes where it does not say."""
    if _HERMES in template:
        return "hermes"
    if _MISTRAL in template:
        return "mistral"
    if _LLAMA in template or ("ipython" in template and '"parameters"' in template):
        return "llama3"
    return "hermes"


@dataclass
class AnswerParser:
    """Takes an answer apart as it comes.

    Args:
        form: How calls are written; None: the text is not searched for calls.
        tools: Their JSON schemas, which say the types of arguments that are written as plain text.
        thinking: Whether the answer begins within thoughts: the prompt has opened them.
        reasoning: Whether thoughts are set apart.
    """

    form: ToolForm | None = None
    tools: Sequence[Mapping[str, JSON]] = ()
    thinking: bool = False
    reasoning: bool = True
    _held: str = field(default="", init=False)
    _state: Literal["start", "thought", "content", "call"] = field(default="start", init=False)
    _written: bool = field(default=False, init=False)  # thoughts
    _begun: bool = field(default=False, init=False)  # content that is no call
    _called: bool = field(default=False, init=False)
    _behind: bool = field(default=False, init=False)  # thoughts, at line breaks before the content

    def __post_init__(self) -> None:
        self._state = "thought" if self.thinking and self.reasoning else "start"

    def feed(self, text: str) -> AnswerDelta:
        """What more text adds that can be told by now."""
        self._held += text
        return self._advance(last=False)

    def finish(self) -> AnswerDelta:
        """What was held back, at the end of the text."""
        return self._advance(last=True)

    def _advance(self, last: bool) -> AnswerDelta:
        total = AnswerDelta()
        while True:
            state, held = self._state, self._held
            reader = {"start": self._read_start, "thought": self._read_thought, "call": self._read_call}
            total += reader.get(state, self._read_content)(last)
            if state == self._state and (held == self._held or not self._held or state == "content"):
                return total

    def _read_start(self, last: bool) -> AnswerDelta:
        text = self._held.lstrip()
        if self.reasoning and text.startswith(_THINK):
            self._state, self._held = "thought", text.removeprefix(_THINK)
        elif last or not (self.reasoning and _THINK.startswith(text)):
            self._state = "content"
        return AnswerDelta()

    def _read_thought(self, last: bool) -> AnswerDelta:
        thought, end, rest = self._held.partition(_THOUGHT)
        if end:
            self._state, self._held, self._behind = "content", rest, True
            return self._thought(thought.rstrip("\n"))
        size = 0 if last else _overlap(thought, _THOUGHT)
        ready = thought[: len(thought) - size]
        if not last:
            ready = ready.rstrip("\n")  # they may stand before the end
        self._held = thought[len(ready) :]
        return self._thought(ready)

    def _thought(self, text: str) -> AnswerDelta:
        if not self._written:
            text = text.lstrip("\n")
            self._written = bool(text)
        return AnswerDelta(reasoning=text)

    def _read_content(self, last: bool) -> AnswerDelta:
        if self._behind:
            self._held = self._held.lstrip("\n")
            self._behind = not self._held
        text = self._held
        if self.form is None:
            self._held = ""
            return AnswerDelta(content=text)
        if self.form == "llama3":
            start = text.lstrip()
            if not start and not last:
                return AnswerDelta()
            if not self._begun and (start.startswith(("{", _LLAMA)) or (start and _LLAMA.startswith(start))):
                self._state = "call"
                return AnswerDelta()
            self._begun, self._held = True, ""
            return AnswerDelta(content=text)
        marker = _HERMES if self.form == "hermes" else _MISTRAL
        content, mark, rest = text.partition(marker)
        if mark:
            self._state, self._held = "call", rest
            return AnswerDelta(content=content.rstrip())
        ready = content if last else content[: len(content) - _overlap(content, marker)].rstrip()
        self._held = "" if last else content[len(ready) :]
        if last and self._called and not ready.strip():
            ready = ""
        return AnswerDelta(content=ready)

    def _read_call(self, last: bool) -> AnswerDelta:
        text = self._held
        if self.form == "hermes":
            body, end, rest = text.partition(_HERMES_END)
            if not end and not last:
                return AnswerDelta()
            self._state, self._held = "content", rest
            calls, raw = self._parse_hermes(body), f"{_HERMES}{body}{end}"
        elif not last:
            return AnswerDelta()
        else:
            self._state, self._held = "content", ""
            calls = parse_llama(text) if self.form == "llama3" else parse_mistral(text)
            raw = text if self.form == "llama3" else _MISTRAL + text
            self._begun = True
        self._called = True
        return AnswerDelta(tool_calls=calls) if calls else AnswerDelta(content=raw)

    def _parse_hermes(self, body: str) -> tuple[ToolCall, ...]:
        if "<function=" in body:
            return tuple(
                _make_call(name.strip(), self._typed(name.strip(), dict(_PARAMETER.findall(inner))))
                for name, inner in _FUNCTION.findall(body)
            )
        return _calls_of(_read_json(body))

    def _typed(self, name: str, texts: Mapping[str, str]) -> Mapping[str, JSON]:
        """Arguments that are written as plain text, by the types of the tool's schema."""
        functions = (tool.get("function", tool) for tool in self.tools)
        schema = next((one for one in functions if isinstance(one, Mapping) and one.get("name") == name), {})
        parameters = schema.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        values: dict[str, JSON] = {}
        for key, text in texts.items():
            kind = properties.get(key) if isinstance(properties, Mapping) else None
            is_text = isinstance(kind, Mapping) and kind.get("type") == "string"
            value = None if is_text else _read_json(text)
            values[key] = text if value is None and (is_text or text.strip() != "null") else value
        return values


def parse_answer(
    text: str,
    form: ToolForm | None = None,
    tools: Sequence[Mapping[str, JSON]] = (),
    thinking: bool = False,
) -> Answer:
    """Thoughts, content and calls of a whole answer. Arguments: as of AnswerParser."""
    parser = AnswerParser(form, tools, thinking)
    return parser.feed(text) + parser.finish()


def parse_llama(text: str) -> tuple[ToolCall, ...]:
    """Calls of an answer that is JSON: {"name", "parameters"}, several with `;` between them; () where it is none."""
    text = text.strip().removeprefix(_LLAMA).strip()
    calls: list[ToolCall] = []
    decoder = json.JSONDecoder()
    while text:
        try:
            value, end = decoder.raw_decode(text)
        except (ValueError, RecursionError):
            return ()
        more_calls = _calls_of(value)
        if not more_calls:
            return ()
        calls += more_calls
        text = text[end:].lstrip("; \n")
    return tuple(calls)


def parse_mistral(text: str) -> tuple[ToolCall, ...]:
    """Calls of what stands behind `[TOOL_CALLS]`; () where they cannot be read."""
    if _MISTRAL_ARGS in text:
        calls = []
        for entry in text.split(_MISTRAL):
            name, _, arguments = entry.partition(_MISTRAL_ARGS)
            value = _read_json(arguments)
            if not isinstance(value, dict):
                return ()
            calls.append(_make_call(name.partition(_MISTRAL_ID)[0].strip(), value, 9))
        return tuple(calls)
    try:
        value, _ = json.JSONDecoder().raw_decode(text.strip())
    except (ValueError, RecursionError):
        return ()
    return _calls_of(value, 9)


def _calls_of(value: JSON, size: int = 24) -> tuple[ToolCall, ...]:
    calls = []
    for entry in value if isinstance(value, list) else [value]:
        if not isinstance(entry, dict) or not isinstance(name := entry.get("name"), str):
            return ()
        arguments = entry.get("arguments", entry.get("parameters", {}))
        call_id = entry.get("id")
        call = _make_call(name, arguments, size)
        calls.append(
            ToolCall(name, call.arguments, call_id) if isinstance(call_id, str) and call_id else call
        )
    return tuple(calls)


def _make_call(name: str, arguments: JSON | Mapping[str, JSON], size: int = 24) -> ToolCall:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(name, text, make_call_id(size))


def make_call_id(size: int = 24) -> str:
    """A new id of a call; models of Mistral take nine characters."""
    text = "".join(secrets.choice(_ID_CHARACTERS) for _ in range(size))
    return text if size < 10 else f"call_{text}"


def read_arguments(text: str, where: str) -> JSON:
    """The arguments of an earlier call as the object that templates go through; none for "" and null.

    A model can write what is no object (an answer that was cut, quotes without a backslash), and clients send the
    call again with every later message: it stands under `INVALID_JSON`, so that the chat goes on and the model sees
    what it wrote. `where` names the call in the log, which does not repeat its text.

    Source: Anthropic's guide to tool use (the key).
    """
    try:
        value = parse_json(text or "{}", where, "text of arguments")
    except FormatError as error:
        value, reason = text, str(error.received)
    else:
        reason = f"a {type(value).__name__}"
    if isinstance(value, dict) or value is None:
        return value or {}
    log.warning("%s: the arguments are no JSON object, the model sees them as text: %s", where, reason)
    return {"INVALID_JSON": text}


def _read_json(text: str) -> JSON:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _overlap(text: str, marker: str) -> int:
    """How many characters at the end of a text may begin the marker."""
    return next(
        (size for size in range(min(len(marker) - 1, len(text)), 0, -1) if text.endswith(marker[:size])), 0
    )
