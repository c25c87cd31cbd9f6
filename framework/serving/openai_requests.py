"""Bodies of OpenAI's chat, completion and embedding requests, and of rankings: read and checked. Unknown fields are
refused.

Sources: OpenAI's API reference (names, types, ranges, defaults); vLLM's server (fields beyond it); Cohere's and Jina's
of rankings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from framework.core.types import JSON
from framework.serving.errors import BadRequestError
from framework.serving.openai_fields import Fields, check_names, field_error, get_int, get_value, model_name

_STOPS = 16
_PROMPTS = 64
_TEXTS = 128
SAMPLING = (
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
"""Fields that a model's options take by these names."""
_SHARED = ("model", "n", "stream", "stream_options", "max_tokens", "response_format", "logprobs", *SAMPLING)
_GUIDED = {
    "guided_json": "json_schema",
    "guided_regex": "regex",
    "guided_choice": "choice",
    "guided_grammar": "grammar",
}
_STRUCTURED = {"json": "json_schema", "regex": "regex", "choice": "choice", "grammar": "grammar"}
CONSTRAINTS = (*_GUIDED, "structured_outputs")
"""Fields that say what the text has to be, besides OpenAI's."""
_CHAT = (
    *("messages", "max_completion_tokens", "top_logprobs", "tools", "tool_choice", "documents"),
    *("chat_template_kwargs", "add_generation_prompt", "continue_final_message", "reasoning_effort"),
)
_COMPLETION = ("prompt", "echo", "best_of", "suffix")
_EMBEDDING = ("model", "input", "encoding_format", "dimensions")
_RANKING = ("model", "query", "documents", "top_n", "return_documents")
_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


@dataclass(frozen=True)
class TextWork:
    """What a request asks to be written.

    Attributes:
        options: For the model. max_tokens: None, where the request does not say; then it is `default_tokens`, or as
            many as the model's context has room for. 0: a completion is the prompt alone.
        constraint: What the text has to be; see TextGenerator.start.
        usage: Whether a stream ends with the number of tokens.
        continuous_usage: Whether each event of such a stream has the number so far.
        logprobs: Alternatives of each token, 0 or more; None: no logarithms.
    """

    model: str
    options: Mapping[str, object]
    n: int
    max_tokens: int | None
    default_tokens: int | None
    stream: bool
    usage: bool
    continuous_usage: bool
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
    check_names(fields, (*_SHARED, *_CHAT, *CONSTRAINTS))
    tools, choice = _read_tools(fields)
    template = dict(get_value(fields, "chat_template_kwargs", dict, {}))
    if bad := [name for name in template if name in ("chat_template", "messages", "tools")]:
        raise field_error("chat_template_kwargs", bad[0], "settings of the template")
    for name in ("add_generation_prompt", "continue_final_message"):
        if fields.get(name) is not None:
            template[name] = get_value(fields, name, bool, False)
    if fields.get("documents") is not None:
        template["documents"] = get_value(fields, "documents", list, [])
    if fields.get("reasoning_effort") is not None:
        template["reasoning_effort"] = get_value(fields, "reasoning_effort", str, "")
    logprobs, top = get_value(fields, "logprobs", bool, False), get_int(fields, "top_logprobs", 0, 20)
    if top and not logprobs:  # as vLLM has it: 0 asks for nothing
        raise field_error("top_logprobs", top, "logprobs to be true")
    most = get_int(fields, "max_completion_tokens", 1)
    shared = _read_shared(fields, most, (top or 0) if logprobs else None)
    if choice is not None and shared.constraint is not None:
        raise field_error("tool_choice", choice, "auto or none beside a response_format")
    return ChatWork(
        **vars(shared),
        messages=_read_messages(fields),
        tools=tools,
        tool_choice=choice,
        template=template,
    )


def read_completion(fields: Fields) -> CompletionWork:
    """A request of /v1/completions. Raises: BadRequestError."""
    check_names(fields, (*_SHARED, *_COMPLETION, *CONSTRAINTS))
    if fields.get("suffix"):
        raise field_error("suffix", fields["suffix"], "no suffix: texts are written from their beginning")
    shared = _read_shared(fields, None, get_int(fields, "logprobs", 0, 20), default=16, least=0)
    best = get_int(fields, "best_of", 1)
    if best is not None and best != shared.n:
        raise field_error("best_of", best, "n")
    return CompletionWork(
        **vars(shared),
        prompts=_read_prompts(fields.get("prompt")),
        echo=get_value(fields, "echo", bool, False),
    )


def read_embedding(fields: Fields) -> EmbeddingWork:
    """A request of /v1/embeddings. Raises: BadRequestError."""
    check_names(fields, _EMBEDDING)
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
        raise field_error("input", content, "a text, or a list of texts, none of them empty")
    if len(texts) > 2048:
        raise field_error("input", f"{len(texts)} texts", "at most 2048")
    form = get_value(fields, "encoding_format", str, "float")
    if form not in ("float", "base64"):
        raise field_error("encoding_format", form, "float or base64")
    dimensions = get_int(fields, "dimensions", 1)
    return EmbeddingWork(model_name(fields), [str(one) for one in texts], form == "base64", dimensions)


def read_ranking(fields: Fields) -> RankingWork:
    """A request of /v1/rerank. Raises: BadRequestError."""
    check_names(fields, _RANKING)
    query, documents = fields.get("query"), get_value(fields, "documents", list, [])
    if not isinstance(query, str) or not query:
        raise field_error("query", query, "a text")
    texts = [one.get("text") if isinstance(one, dict) else one for one in documents]
    if not texts or not all(isinstance(one, str) for one in texts):
        raise field_error("documents", documents, 'a list of texts, or of {"text": a text}')
    if len(texts) > 2048:
        raise field_error("documents", f"{len(texts)} texts", "at most 2048")
    top = get_int(fields, "top_n", 1)
    returned = get_value(fields, "return_documents", bool, True)
    return RankingWork(model_name(fields), query, [str(one) for one in texts], top, returned)


def _read_shared(
    fields: Fields, most: int | None, logprobs: int | None, default: int | None = None, least: int = 1
) -> TextWork:
    max_tokens = get_int(fields, "max_tokens", least)
    options = {name: fields[name] for name in SAMPLING if fields.get(name) is not None}
    stops = options.get("stop")
    if isinstance(stops, list) and len(stops) > _STOPS:
        raise field_error("stop", f"{len(stops)} texts", f"at most {_STOPS}")
    if stops == [] or stops == "":
        del options["stop"]
    stream = get_value(fields, "stream", bool, False)
    stream_options = get_value(fields, "stream_options", dict, {})
    if fields.get("stream_options") is not None and not stream:
        raise field_error("stream_options", stream_options, "stream to be true")
    if unknown := set(stream_options) - {"include_usage", "continuous_usage_stats", "include_obfuscation"}:
        raise field_error("stream_options", sorted(unknown)[0], "include_usage, continuous_usage_stats")
    usage = get_value(stream_options, "include_usage", bool, False)
    continuous = get_value(stream_options, "continuous_usage_stats", bool, False)
    return TextWork(
        model=model_name(fields),
        options=options,
        n=get_int(fields, "n", 1, _TEXTS) or 1,
        max_tokens=max_tokens if most is None else most,
        default_tokens=default,
        stream=stream,
        usage=usage,
        continuous_usage=usage and continuous,  # as vLLM has it: alone it asks for nothing
        logprobs=logprobs,
        constraint=_read_constraint(fields),
    )


def _read_constraint(fields: Fields) -> tuple[str, JSON] | None:
    constraints: list[tuple[str, JSON]] = []
    form = get_value(fields, "response_format", dict, {})
    kind = form.get("type", "text")
    if kind == "json_object":  # with a schema beside it, as Fireworks, Together and llama.cpp have it
        schema = form.get("schema")
        if not isinstance(schema, dict | bool | None):
            raise field_error("response_format.schema", schema, "a JSON schema")
        constraints.append(("json_schema", {"type": "object"} if schema is None else schema))
    elif kind == "json_schema":
        inner = form.get("json_schema", form)
        if not isinstance(inner, dict) or not isinstance(inner.get("schema"), dict | bool):
            raise field_error(
                "response_format", form, '{"type": "json_schema", "json_schema": {"name": …, "schema": {…}}}'
            )
        constraints.append(("json_schema", inner["schema"]))
    elif kind != "text":
        raise field_error("response_format", kind, "text, json_object or json_schema")
    structured = get_value(fields, "structured_outputs", dict, {})
    constraints += [(ours, fields[name]) for name, ours in _GUIDED.items() if fields.get(name) is not None]
    constraints += [
        (ours, structured[name]) for name, ours in _STRUCTURED.items() if structured.get(name) is not None
    ]
    if len(constraints) > 1:
        raise field_error("response_format", "several constraints", "one")
    return constraints[0] if constraints else None


def _read_tools(fields: Fields) -> tuple[list[Mapping[str, JSON]], str | None]:
    """The tools that the model sees, and the one that has to be called."""
    tools: list[Mapping[str, JSON]] = []
    for number, tool in enumerate(get_value(fields, "tools", list, [])):
        function = tool.get("function") if isinstance(tool, dict) and tool.get("type") == "function" else None
        if (
            not isinstance(tool, dict)
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            raise field_error(
                f"tools[{number}]", tool, '{"type": "function", "function": {"name": …, "parameters": {…}}}'
            )
        if not isinstance(function.get("parameters"), dict | None):
            raise field_error(f"tools[{number}].function.parameters", function["parameters"], "a JSON schema")
        # Templates ask whether there is a description: null, as clients write what they were not given, is none.
        present = {key: value for key, value in function.items() if value is not None}
        tools.append({**tool, "function": present})
    names = [str(tool["function"]["name"]) for tool in tools if isinstance(tool["function"], dict)]
    choice = fields.get("tool_choice")
    if isinstance(choice, dict):
        function = choice.get("function")
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(name, str) or name not in names:
            raise field_error("tool_choice", choice, ", ".join(names) or "the name of one of the tools")
        return tools, name
    if choice not in (None, "none", "auto", "required"):
        raise field_error(
            "tool_choice", choice, 'none, auto, required or {"type": "function", "function": {"name": …}}'
        )
    if choice == "required" and not tools:
        raise field_error("tool_choice", choice, "tools beside it")
    return ([], None) if choice == "none" else (tools, "required" if choice == "required" else None)


def _read_messages(fields: Fields) -> list[Mapping[str, JSON]]:
    messages = fields.get("messages")
    if not isinstance(messages, list) or not messages:
        raise field_error("messages", messages, '[{"role": "user", "content": "…"}, …]')
    return [_read_message(message, f"messages[{number}]") for number, message in enumerate(messages)]


def _read_message(message: JSON, where: str) -> Mapping[str, JSON]:
    if not isinstance(message, dict):
        raise field_error(where, message, '{"role": "user", "content": "…"}')
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        raise field_error(f"{where}.role", role, ", ".join(_ROLES))
    calls = message.get("tool_calls")
    if content is None and not (
        role == "assistant" and (calls or message.get("reasoning_content") is not None)
    ):
        raise field_error(f"{where}.content", content, "a text")
    if isinstance(content, list):
        content = "".join(
            _text_of(block, f"{where}.content[{number}]") for number, block in enumerate(content)
        )
    elif not isinstance(content, str | None):
        raise field_error(f"{where}.content", content, "a text, or a list of texts")
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
    raise field_error(where, block, '{"type": "text", "text": "…"}: models here read texts')


def _read_calls(calls: JSON, where: str) -> list[JSON]:
    """Calls with arguments as data, which templates write as JSON; clients send them as text."""
    from framework.text.chat_answer import read_arguments

    if not isinstance(calls, list):
        raise field_error(where, calls, "a list")
    result: list[JSON] = []
    for number, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if (
            not isinstance(call, dict)
            or not isinstance(function, dict)
            or not isinstance(function.get("name"), str)
        ):
            raise field_error(
                f"{where}[{number}]", call, '{"id", "type": "function", "function": {"name", "arguments"}}'
            )
        arguments = function.get("arguments", {})
        if isinstance(arguments, str):
            arguments = read_arguments(arguments, f"{where}[{number}]")
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
            raise field_error("prompt", f"{len(prompt)} prompts", f"at most {_PROMPTS}")
        prompts: list[str | Sequence[int]] = []
        for one in prompt:
            if isinstance(one, str):
                prompts.append(one)
            elif isinstance(one, list) and one and all(_is_token(token) for token in one):
                prompts.append(tuple(int(token) for token in one if isinstance(token, int)))
            else:
                raise field_error("prompt", one, allowed)
        return prompts
    raise field_error("prompt", prompt, allowed)


def _is_token(value: JSON) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
