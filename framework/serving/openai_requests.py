"""Bodies of OpenAI's chat, completion and embedding requests, and of rankings: read and checked. Unknown fields are
refused.

Sources: OpenAI's API reference (names, types, ranges, defaults); vLLM's server (fields beyond it); Cohere's and Jina's
of rankings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from framework.core.errors import did_you_mean
from framework.core.types import JSON
from framework.serving.errors import BadRequestError

T = TypeVar("T")
Fields = Mapping[str, JSON]
_STOPS = 16
_PROMPTS = 64
_TEXTS = 128
# Fields that a model's options take by these names.
_OPTIONS = (
    *("temperature", "top_p", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "stop"),
    *(
        "top_k",
        "min_p",
        "typical_p",
        "repetition_penalty",
        "no_repeat_ngram_size",
        "min_tokens",
        "stop_token_ids",
    ),
    *(
        "ignore_eos",
        "skip_special_tokens",
        "include_stop_str_in_output",
        "bad_words",
        "truncate_prompt_tokens",
    ),
)
_SHARED = ("model", "n", "stream", "stream_options", "max_tokens", "response_format", "logprobs", *_OPTIONS)
_GUIDED = {
    "guided_json": "json_schema",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
}
_STRUCTURED = {"json": "json_schema", "regex": "regex", "choice": "choice", "grammar": "grammar"}
_CHAT = (
    *("messages", "max_completion_tokens", "top_logprobs", "tools", "tool_choice", "documents"),
    *("chat_template_kwargs", "add_generation_prompt", "continue_final_message", "reasoning_effort"),
)
_COMPLETION = ("prompt", "echo", "best_of", "suffix")
_EMBEDDING = ("model", "input", "encoding_format", "dimensions")
_RANKING = ("model", "query", "documents", "top_n", "return_documents")
# Fields that say nothing about the text.
_IGNORED = (
    *(
        "user",
        "metadata",
        "store",
        "service_tier",
        "parallel_tool_calls",
        "safety_identifier",
        "prompt_cache_key",
    ),
    *("priority", "request_id", "verbosity", "prompt_cache_retention"),
)
_REPLACED = {"functions": "tools", "function_call": "tool_choice"}
"""What OpenAI's API took before, and what it takes now."""
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_UNANSWERED = {
    "modalities": (None, ["text"]),
    "audio": (None,),
    "prediction": (None,),
    "web_search_options": (None,),
}


@dataclass(frozen=True)
class TextWork:
    """What a request asks to be written.

    Attributes:
        options: For the model. max_tokens: None, where the request does not say; then it is `default_tokens`, or as
            many as the model's context has room for.
        constraint: What the text has to be; see TextGenerator.start.
        usage: Whether a stream ends with the number of tokens.
        logprobs: Alternatives of each token, 0 or more; None: no logarithms.
    """

    model: str
    options: Mapping[str, object]
    n: int
    max_tokens: int | None
    default_tokens: int | None
    stream: bool
    usage: bool
    logprobs: int | None
    constraint: tuple[str, JSON] | None


@dataclass(frozen=True)
class ChatWork(TextWork):
    """A request of chat.

    Attributes:
        tool_choice: The name of the function that has to be called, "required": any, None: none has to.
        template: What the model's template takes besides.
    """

    messages: Sequence[Mapping[str, JSON]] = ()
    tools: Sequence[Mapping[str, JSON]] = ()
    tool_choice: str | None = None
    template: Mapping[str, JSON] = field(default_factory=dict)


@dataclass(frozen=True)
class CompletionWork(TextWork):
    """A request of completion, of one prompt or several."""

    prompts: Sequence[str | Sequence[int]] = ()
    echo: bool = False


@dataclass(frozen=True)
class EmbeddingWork:
    """A request of embeddings."""

    model: str
    texts: Sequence[str]
    base64: bool
    dimensions: int | None


@dataclass(frozen=True)
class RankingWork:
    """A request of ranking.

    Attributes:
        top: So many of the best; None: all.
        returned: Whether the answer repeats the documents.
    """

    model: str
    query: str
    documents: Sequence[str]
    top: int | None
    returned: bool


def read_chat(fields: Fields) -> ChatWork:
    """A request of /v1/chat/completions. Raises: BadRequestError."""
    _check_names(fields, (*_SHARED, *_CHAT))
    tools, choice = _read_tools(fields)
    template = dict(_get(fields, "chat_template_kwargs", dict, {}))
    if bad := [name for name in template if name in ("chat_template", "messages", "tools")]:
        raise _error("chat_template_kwargs", bad[0], "settings of the template")
    for name in ("add_generation_prompt", "continue_final_message"):
        if fields.get(name) is not None:
            template[name] = _get(fields, name, bool, False)
    if fields.get("documents") is not None:
        template["documents"] = _get(fields, "documents", list, [])
    if fields.get("reasoning_effort") is not None:
        template["reasoning_effort"] = _get(fields, "reasoning_effort", str, "")
    logprobs, top = _get(fields, "logprobs", bool, False), _get_int(fields, "top_logprobs", 0, 20)
    if top is not None and not logprobs:
        raise _error("top_logprobs", top, "logprobs to be true")
    most = _get_int(fields, "max_completion_tokens", 1)
    shared = _read_shared(fields, most, (top or 0) if logprobs else None)
    if choice is not None and shared.constraint is not None:
        raise _error("tool_choice", choice, "auto or none beside a response_format")
    return ChatWork(
        **vars(shared),
        messages=_read_messages(fields),
        tools=tools,
        tool_choice=choice,
        template=template,
    )


def read_completion(fields: Fields) -> CompletionWork:
    """A request of /v1/completions. Raises: BadRequestError."""
    _check_names(fields, (*_SHARED, *_COMPLETION))
    if fields.get("suffix"):
        raise _error("suffix", fields["suffix"], "no suffix: texts are written from their beginning")
    shared = _read_shared(fields, None, _get_int(fields, "logprobs", 0, 20), default=16)
    best = _get_int(fields, "best_of", 1)
    if best is not None and best != shared.n:
        raise _error("best_of", best, "n")
    echo = _get(fields, "echo", bool, False)
    if echo and shared.logprobs is not None:
        raise _error("echo", True, "false beside logprobs: those of prompts are not computed")
    return CompletionWork(**vars(shared), prompts=_read_prompts(fields.get("prompt")), echo=echo)


def read_embedding(fields: Fields) -> EmbeddingWork:
    """A request of /v1/embeddings. Raises: BadRequestError."""
    _check_names(fields, _EMBEDDING)
    content = fields.get("input")
    texts = [content] if isinstance(content, str) else content
    if isinstance(texts, list) and any(isinstance(one, int | list) for one in texts):
        raise BadRequestError(
            "embeddings are of texts, not of tokens, which may be of another vocabulary than the model's",
            where="input",
            received=repr(content)[:100],
            allowed="a text, or a list of texts",
            fix="send texts; LangChain's OpenAIEmbeddings does with check_embedding_ctx_length=False",
        )
    if not isinstance(texts, list) or not texts or not all(isinstance(one, str) and one for one in texts):
        raise _error("input", content, "a text, or a list of texts, none of them empty")
    if len(texts) > 2048:
        raise _error("input", f"{len(texts)} texts", "at most 2048")
    form = _get(fields, "encoding_format", str, "float")
    if form not in ("float", "base64"):
        raise _error("encoding_format", form, "float or base64")
    dimensions = _get_int(fields, "dimensions", 1)
    return EmbeddingWork(_model(fields), [str(one) for one in texts], form == "base64", dimensions)


def read_ranking(fields: Fields) -> RankingWork:
    """A request of /v1/rerank. Raises: BadRequestError."""
    _check_names(fields, _RANKING)
    query, documents = fields.get("query"), _get(fields, "documents", list, [])
    if not isinstance(query, str) or not query:
        raise _error("query", query, "a text")
    texts = [one.get("text") if isinstance(one, dict) else one for one in documents]
    if not texts or not all(isinstance(one, str) for one in texts):
        raise _error("documents", documents, 'a list of texts, or of {"text": a text}')
    if len(texts) > 2048:
        raise _error("documents", f"{len(texts)} texts", "at most 2048")
    top = _get_int(fields, "top_n", 1)
    returned = _get(fields, "return_documents", bool, True)
    return RankingWork(_model(fields), query, [str(one) for one in texts], top, returned)


def _read_shared(
    fields: Fields, most: int | None, logprobs: int | None, default: int | None = None
) -> TextWork:
    max_tokens = _get_int(fields, "max_tokens", 1)
    options = {name: fields[name] for name in _OPTIONS if fields.get(name) is not None}
    stops = options.get("stop")
    if isinstance(stops, list) and len(stops) > _STOPS:
        raise _error("stop", f"{len(stops)} texts", f"at most {_STOPS}")
    if stops == [] or stops == "":
        del options["stop"]
    stream = _get(fields, "stream", bool, False)
    stream_options = _get(fields, "stream_options", dict, {})
    if fields.get("stream_options") is not None and not stream:
        raise _error("stream_options", stream_options, "stream to be true")
    if unknown := set(stream_options) - {"include_usage", "continuous_usage_stats", "include_obfuscation"}:
        raise _error("stream_options", sorted(unknown)[0], "include_usage")
    return TextWork(
        model=_model(fields),
        options=options,
        n=_get_int(fields, "n", 1, _TEXTS) or 1,
        max_tokens=max_tokens if most is None else most,
        default_tokens=default,
        stream=stream,
        usage=_get(stream_options, "include_usage", bool, False),
        logprobs=logprobs,
        constraint=_read_constraint(fields),
    )


def _model(fields: Fields) -> str:
    name = fields.get("model")
    if not isinstance(name, str) or not name:
        raise _error("model", name, "the name of a model of GET /v1/models")
    return name


def _read_constraint(fields: Fields) -> tuple[str, JSON] | None:
    constraints: list[tuple[str, JSON]] = []
    form = _get(fields, "response_format", dict, {})
    kind = form.get("type", "text")
    if kind == "json_object":  # with a schema beside it, as Fireworks, Together and llama.cpp have it
        schema = form.get("schema")
        if not isinstance(schema, dict | bool | None):
            raise _error("response_format.schema", schema, "a JSON schema")
        constraints.append(("json_schema", {"type": "object"} if schema is None else schema))
    elif kind == "json_schema":
        inner = form.get("json_schema", form)
        if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict | bool):
            raise _error(
                "response_format", form, '{"type": "json_schema", "json_schema": {"name": …, "schema": {…}}}'
            )
        constraints.append(("json_schema", inner["schema"]))
    elif kind != "text":
        raise _error("response_format", kind, "text, json_object or json_schema")
    structured = _get(fields, "structured_outputs", dict, {})
    constraints += [(ours, fields[name]) for name, ours in _GUIDED.items() if fields.get(name) is not None]
    constraints += [
        (ours, structured[name]) for name, ours in _STRUCTURED.items() if structured.get(name) is not None
    ]
    if len(constraints) > 1:
        raise _error("response_format", "several constraints", "one")
    return constraints[0] if constraints else None


def _read_tools(fields: Fields) -> tuple[list[Mapping[str, JSON]], str | None]:
    """The tools that the model sees, and the one that has to be called."""
    tools: list[Mapping[str, JSON]] = []
    for number, tool in enumerate(_get(fields, "tools", list, [])):
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if (
            not isinstance(tool, dict)
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            raise _error(
                f"tools[{number}]", tool, '{"type": "function", "function": {"name": …, "parameters": {…}}}'
            )
        if not isinstance(function.get("parameters", {}), dict):
            raise _error(f"tools[{number}].function.parameters", function["parameters"], "a JSON schema")
        tools.append(tool)
    names = [str(tool["function"]["name"]) for tool in tools if isinstance(tool["function"], dict)]
    choice = fields.get("tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or name not in names:
            raise _error("tool_choice", choice, ", ".join(names) or "the name of one of the tools")
        return tools, name
    if choice not in (None, "none", "auto", "required"):
        raise _error(
            "tool_choice", choice, 'none, auto, required or {"type": "function", "function": {"name": …}}'
        )
    if choice == "required" and not tools:
        raise _error("tool_choice", choice, "tools beside it")
    return ([], None) if choice == "none" else (tools, "required" if choice == "required" else None)


def _read_messages(fields: Fields) -> list[Mapping[str, JSON]]:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _error("messages", messages, '[{"role": "user", "content": "…"}, …]')
    return [_read_message(message, f"messages[{number}]") for number, message in enumerate(messages)]


def _read_message(message: JSON, where: str) -> Mapping[str, JSON]:
    if not isinstance(message, dict):
        raise _error(where, message, '{"role": "user", "content": "…"}')
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise _error(f"{where}.role", role, ", ".join(_ROLES))
    calls = message.get("tool_calls")
    if content is None and not (
        role == "assistant" and (calls or message.get("reasoning_content") is not None)
    ):
        raise _error(f"{where}.content", content, "a text")
    if isinstance(content, list):
        content = "".join(
            _text_of(block, f"{where}.content[{number}]") for number, block in enumerate(content)
        )
    elif not isinstance(content, str | None):
        raise _error(f"{where}.content", content, "a text, or a list of texts")
    result: dict[str, JSON] = {
        **message,
        "role": "system" if role == "developer" else role,
        "content": content or "",
    }
    if calls is None:
        result.pop("tool_calls", None)
    else:
        result["tool_calls"] = _read_calls(calls, f"{where}.tool_calls")
    return result


def _text_of(block: JSON, where: str) -> str:
    if isinstance(block, str):
        return block
    if isinstance(block, dict) and block.get("type") in ("text", "refusal", "input_text"):
        text = block.get("text", block.get("refusal"))
        if isinstance(text, str):
            return text
    raise _error(where, block, '{"type": "text", "text": "…"}: models here read texts')


def _read_calls(calls: JSON, where: str) -> list[JSON]:
    """Calls with arguments as data, which templates write as JSON; clients send them as text."""
    from framework.core.bounded import parse_json

    if not isinstance(calls, list):
        raise _error(where, calls, "a list")
    result: list[JSON] = []
    for number, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if (
            not isinstance(call, dict)
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            raise _error(
                f"{where}[{number}]", call, '{"id", "type": "function", "function": {"name", "arguments"}}'
            )
        arguments = function.get("arguments", {})
        if isinstance(arguments, str):
            arguments = parse_json(arguments or "{}", f"{where}[{number}]", "arguments", BadRequestError)
        result.append({**call, "function": {**function, "arguments": arguments}})  # type: ignore[dict-item]
    return result


def _read_prompts(prompt: JSON) -> list[str | Sequence[int]]:
    allowed = "a text, a list of texts, a list of tokens, or a list of such lists"
    if isinstance(prompt, str):
        return [prompt]
    if isinstance(prompt, list) and prompt:
        if all(_is_token(one) for one in prompt):
            return [tuple(int(one) for one in prompt if isinstance(one, int))]
        if len(prompt) > _PROMPTS:
            raise _error("prompt", f"{len(prompt)} prompts", f"at most {_PROMPTS}")
        prompts: list[str | Sequence[int]] = []
        for one in prompt:
            if isinstance(one, str):
                prompts.append(one)
            elif isinstance(one, list) and one and all(_is_token(token) for token in one):
                prompts.append(tuple(int(token) for token in one if isinstance(token, int)))
            else:
                raise _error("prompt", one, allowed)
        return prompts
    raise _error("prompt", prompt, allowed)


def _is_token(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_names(fields: Fields, names: Sequence[str]) -> None:
    allowed = (*names, *_GUIDED, "structured_outputs") if "prompt" in names or "messages" in names else names
    for name, value in fields.items():
        if name in allowed or name in _IGNORED or value is None or value in _UNANSWERED.get(name, ()):
            continue
        raise BadRequestError(
            "the request has a field that is not known",
            where=name[:100],
            received=repr(value)[:100],
            allowed=", ".join(sorted(allowed)),
            fix=f"send {_REPLACED[name]}" if name in _REPLACED else did_you_mean(name[:100], allowed),
        )


def _get(fields: Fields, name: str, kind: type[T], default: T) -> T:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, kind):
        words: dict[type, str] = {bool: "true or false", str: "a text", list: "a list", dict: "an object"}
        raise _error(name, value, words[kind])
    return value


def _get_int(fields: Fields, name: str, low: int, high: int | None = None) -> int | None:
    value = fields.get(name)
    if value is None:
        return None
    allowed = f"a whole number from {low}" + ("" if high is None else f" to {high}")
    if (
        isinstance(value, bool)
        or not isinstance(value, int)
        or value < low
        or (high is not None and value > high)
    ):
        raise _error(name, value, allowed)
    return value


def _error(where: str, value: object, allowed: str) -> BadRequestError:
    received = value if isinstance(value, str) else repr(value)
    return BadRequestError("the request is not valid", where=where, received=received[:200], allowed=allowed)
