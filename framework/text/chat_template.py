"""Chat templates: messages as the text that a language model was trained on.

Source: transformers 5.23: apply_chat_template and the files that it reads. The text is equal to its text.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from framework.core import bounded
from framework.core.errors import FormatError, InputError
from framework.core.types import JSON

if TYPE_CHECKING:
    from framework.text.template_sandbox import SandboxedTemplate

Message = Mapping[str, object]
"""{"role": "system" | "user" | "assistant" | "tool" …, "content": a text or a list of {"type": "text", "text": …}}; of
answers also "tool_calls" and "reasoning_content"."""
_SETTINGS = "tokenizer_config.json"
_FILE = "chat_template.jinja"
TEMPLATES_FOLDER = "additional_chat_templates"
"""Of the folder of a model: named templates besides the one that is taken without a name."""
_PROCESSOR = "chat_template.json"
_TOKENS = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_REASONING = ("reasoning_content", "thinking", "reasoning")
_GENERATION = re.compile(r"\{%[-+]?\s*generation\s*[-+]?%\}")
_TOOLS = "tool_use"
_DEFAULT = "default"
_DEPTH = 100
_END = "CONTINUE_FINAL_MESSAGE_TAG "


class Segment(NamedTuple):
    """Some text of a rendered chat, and whether the assistant wrote it."""

    text: str
    is_assistant: bool


class ChatTemplate:
    """Renders chats. Safe to call from several threads; templates are programs of strangers and run in a sandbox.

    Args:
        templates: Jinja, by name: "default", and others such as "tool_use", which is taken where there are tools.
        special_tokens: What templates see as `bos_token`, `eos_token` and so on.
        where: The file, for messages.

    Raises:
        FormatError: there is no template.
    """

    adds_bos = False
    """A template writes what begins a text itself."""

    def __init__(
        self,
        templates: str | Mapping[str, str],
        special_tokens: Mapping[str, str] | None = None,
        where: object = "chat template",
    ) -> None:
        self.templates = {_DEFAULT: templates} if isinstance(templates, str) else dict(templates)
        self.special_tokens, self.where = dict(special_tokens or {}), where
        if not self.templates:
            raise FormatError("there is no chat template", where=where)
        self._compile = functools.cache(self._compile_named)

    @classmethod
    def from_folder(cls, folder: str | Path) -> ChatTemplate | None:
        """The template of a model's folder: of chat_template.jinja and additional_chat_templates, else of
        tokenizer_config.json (a text, or a list of named templates), else of chat_template.json. None: there is none.

        Raises: FormatError: a file is damaged, or the template is no text.
        """
        folder = Path(folder)
        settings = _read_object(folder / _SETTINGS)
        templates = _named(settings.get("chat_template"), folder / _SETTINGS)
        where = folder / _SETTINGS
        if not templates and (folder / _PROCESSOR).is_file():
            where = folder / _PROCESSOR
            templates = _named(_read_object(where).get("chat_template"), where)
        if (folder / _FILE).is_file():
            where = folder / _FILE
            templates = {_DEFAULT: bounded.read_text(where, bounded.SETTINGS, "chat template")}
            for path in sorted((folder / TEMPLATES_FOLDER).glob("*.jinja")):
                templates[path.stem] = bounded.read_text(path, bounded.SETTINGS, "chat template")
        if not templates:
            return None
        return cls(templates, _special_tokens(settings, folder), where)

    def save(self, folder: str | Path) -> None:
        """Write chat_template.jinja and, of named templates, additional_chat_templates, as transformers reads them."""
        folder = Path(folder)
        for name, source in self.templates.items():
            path = folder / _FILE if name == _DEFAULT else folder / TEMPLATES_FOLDER / f"{name}.jinja"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(source, encoding="utf-8", newline="")

    # -- rendering -----------------------------------------------------------------------------------------------------

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        add_generation_prompt: bool = False,
        documents: Sequence[Mapping[str, JSON]] | None = None,
        continue_final_message: bool = False,
        **kwargs: object,
    ) -> str:
        """The text of a chat, to be tokenized without special tokens around it.

        Args:
            tools: JSON schemas of functions: {"type": "function", "function": {"name", "description", "parameters"}}.
            add_generation_prompt: Whether the text ends with the beginning of an answer.
            continue_final_message: Whether it ends with the last message, which the model goes on with.
            documents: {"title", "text"} each, for templates that take them.
            kwargs: What the template takes besides, such as `enable_thinking`; `chat_template` names a template.

        Raises:
            InputError: the template refuses the messages, or they are none. FormatError: there is no such template, it
            is none, or was stopped.
        """
        if continue_final_message:
            if add_generation_prompt:
                raise InputError(
                    "a text ends with the last message or with the beginning of an answer",
                    received="continue_final_message and add_generation_prompt",
                )
            return self._continue(messages, tools, documents, kwargs)
        return self._render(messages, tools, add_generation_prompt, documents, kwargs)[0]

    def render_with_masks(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        documents: Sequence[Mapping[str, JSON]] | None = None,
        **kwargs: object,
    ) -> list[Segment]:
        """The text of a chat in segments, those that the assistant wrote apart: what a model is trained to write.

        Templates with `{% generation %}` say it themselves. Of others it is what each answer adds behind the
        beginning of an answer, with what ends it.

        Raises: as `render_answers`. FormatError: an answer does not stand in the text as it was given, such as one
        without the thoughts that the template takes away.
        """
        changed, whole = self._cut_answers(messages, tools, documents, kwargs)
        if changed:
            raise self._unmarked("an answer does not stand in the chat as it stands at its end")
        return whole

    def render_answers(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        documents: Sequence[Mapping[str, JSON]] | None = None,
        *,
        skipped: Collection[int] = (),
        **kwargs: object,
    ) -> list[list[Segment]]:
        """The texts that a model is trained on to give all answers of a chat, each as by `render_with_masks`.

        That is the chat; and before it, for each answer that is told otherwise once the chat goes on (Qwen 3 takes the
        thoughts of earlier ones away), the chat up to this answer, which alone is the assistant's there. Of messages
        whose numbers are `skipped` nothing is trained.

        Raises: as `render`. FormatError: the template has no `{% generation %}`, and changes what stands before an
        answer.
        """
        changed, whole = self._cut_answers(messages, tools, documents, kwargs, skipped)
        return [*changed, whole] if not changed or any(segment.is_assistant for segment in whole) else changed

    def _cut_answers(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None,
        documents: Sequence[Mapping[str, JSON]] | None,
        kwargs: Mapping[str, object],
        skipped: Collection[int] = (),
    ) -> tuple[list[list[Segment]], list[Segment]]:
        """Texts up to answers that the chat as a whole tells otherwise, and the chat."""
        text, marked = self._render(messages, tools, False, documents, kwargs)
        if self.marks_answers:
            for number in sorted(skipped, reverse=True):
                first = self._count_marked(messages[:number], tools, documents, kwargs)
                del marked[first : self._count_marked(messages[: number + 1], tools, documents, kwargs)]
            return [], _cut(text, marked)
        changed, spans = [], []
        for number, message in enumerate(messages):
            if message.get("role") != "assistant" or number in skipped:
                continue
            until, span = self._find_answer(messages, number, tools, documents, kwargs)
            if text.startswith(until):
                spans.append(span)
            else:
                changed.append(_cut(until, [span]))
        return changed, _cut(text, spans)

    def _count_marked(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None,
        documents: Sequence[Mapping[str, JSON]] | None,
        kwargs: Mapping[str, object],
    ) -> int:
        """How many spans the template marks in the beginning of a chat."""
        return len(self._render(messages, tools, False, documents, kwargs)[1]) if messages else 0

    @property
    def marks_answers(self) -> bool:
        """Whether the template has `{% generation %}`."""
        return _GENERATION.search(self.templates.get(_DEFAULT, "")) is not None

    def source(self, with_tools: bool = False) -> str:
        """The template that is taken for chats with tools, or without."""
        return self.templates[self._choose(None, with_tools)]

    def _render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None,
        add_generation_prompt: bool,
        documents: Sequence[Mapping[str, JSON]] | None,
        kwargs: Mapping[str, object],
    ) -> tuple[str, list[tuple[int, int]]]:
        others = dict(kwargs)
        template = self._compile(self._choose(others.pop("chat_template", None), tools is not None))
        values: dict[str, object] = {
            **self.special_tokens,
            **{name: plain_value(value) for name, value in others.items()},
            "messages": _plain_messages(messages),
            "tools": plain_value(tools),
            "documents": plain_value(documents),
            "add_generation_prompt": add_generation_prompt,
        }
        return template.render(values, _measure(values))

    def _choose(self, name: object, with_tools: bool) -> str:
        if name is None:
            name = _TOOLS if with_tools and _TOOLS in self.templates else _DEFAULT
        if not isinstance(name, str) or name not in self.templates:
            raise FormatError(
                "there is no chat template of this name",
                where=self.where,
                received=str(name)[:100],
                allowed=", ".join(self.templates),
            )
        return name

    def _compile_named(self, name: str) -> SandboxedTemplate:
        from framework.text.template_sandbox import SandboxedTemplate  # which needs jinja2

        where = self.where if name == _DEFAULT else f"{self.where} ({name})"
        return SandboxedTemplate(self.templates[name], where)

    def _continue(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None,
        documents: Sequence[Mapping[str, JSON]] | None,
        kwargs: Mapping[str, object],
    ) -> str:
        """The text up to the end of the last message: a mark is put behind it, and found again."""
        plain = _plain_messages(messages)
        content = plain[-1].get("content") if plain else None
        if isinstance(content, list):
            texts = [block for block in content if isinstance(block, dict) and "text" in block]
            if texts:
                texts[-1]["text"] = f"{texts[-1]['text']}{_END}"
            content = texts[-1]["text"].removesuffix(_END) if texts else None
        elif isinstance(content, str):
            plain[-1]["content"] = content + _END
        if not isinstance(content, str):
            raise InputError("the last message has no text to go on with", received=repr(content)[:100])
        text = self._render(plain, tools, False, documents, kwargs)[0]
        at = text.rfind(_END.strip())
        if at < 0 or content.strip() not in text:
            raise InputError(
                "the last message cannot be continued: the template changes it", where=self.where
            )
        return text[:at] if text.startswith(_END, at) else text[:at].rstrip()

    def _find_answer(
        self,
        messages: Sequence[Message],
        number: int,
        tools: Sequence[Mapping[str, JSON]] | None,
        documents: Sequence[Mapping[str, JSON]] | None,
        kwargs: Mapping[str, object],
    ) -> tuple[str, tuple[int, int]]:
        """The chat up to the answer `number`, and where that stands in it, with its end."""
        before = self._render(messages[:number], tools, True, documents, kwargs)[0]
        until = self._render(messages[: number + 1], tools, False, documents, kwargs)[0]
        start = len(before) if until.startswith(before) else _common_length(before, until)
        if start < len(before):  # a beginning of answers may open thoughts, which given answers do not have
            history = self._render(messages[:number], tools, False, documents, kwargs)[0]
            if start < len(history):
                raise self._unmarked(f"what stands before message {number + 1} is another text without it")
        end_token = self.special_tokens.get("eos_token", "")
        stop = until.rfind(end_token, start) if end_token else -1
        return until, (start, len(until) if stop < 0 else stop + len(end_token))

    def _unmarked(self, received: str) -> FormatError:
        return FormatError(
            "the template does not say what the assistant wrote",
            where=self.where,
            received=received,
            fix="put {% generation %} … {% endgeneration %} around what the assistant writes",
        )


def _common_length(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(first, second))
    return next((index for index, (one, other) in pairs if one != other), min(len(first), len(second)))


def _cut(text: str, spans: Sequence[tuple[int, int]]) -> list[Segment]:
    """A text in segments, of which those of `spans` are the assistant's."""
    segments, end = [], 0
    for start, stop in spans:
        segments += [Segment(text[end:start], False), Segment(text[start:stop], True)]
        end = stop
    return [segment for segment in (*segments, Segment(text[end:], False)) if segment.text]


# -- files -------------------------------------------------------------------------------------------------------------


def _read_object(path: Path) -> Mapping[str, object]:
    if not path.is_file():
        return {}
    value = bounded.read_json(path, bounded.VOCABULARY)
    if not isinstance(value, dict):
        raise FormatError("the file holds no settings", where=path, received=type(value).__name__)
    return value


def _named(value: object, where: object) -> dict[str, str]:
    """The templates of a text, or of a list of {"name", "template"}."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {_DEFAULT: value}
    if isinstance(value, dict):
        value = [{"name": name, "template": template} for name, template in value.items()]
    if isinstance(value, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("template"), str)
        for entry in value
    ):
        return {entry["name"]: entry["template"] for entry in value}
    raise FormatError(
        "chat_template is neither a text nor a list of named templates",
        where=where,
        received=repr(value)[:100],
        allowed='"…", or [{"name": "default", "template": "…"}]',
    )


def _special_tokens(settings: Mapping[str, object], folder: Path) -> dict[str, str]:
    both = {**_read_object(folder / "special_tokens_map.json"), **settings}
    tokens = {}
    for name in _TOKENS:
        value = both.get(f"{name}_token")
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str):
            tokens[f"{name}_token"] = value
    return tokens


# -- values that templates see -----------------------------------------------------------------------------------------


def _plain_messages(messages: Sequence[Message]) -> list[dict[str, object]]:
    """Copies of plain values, with reasoning under the names that templates read.

    Raises: InputError, where a message is no mapping.
    """
    plain = plain_value(messages)
    if not isinstance(plain, list | tuple) or not all(isinstance(message, dict) for message in plain):
        raise InputError(
            "these are no messages",
            received=repr(messages)[:200],
            allowed='[{"role": "user", "content": "…"}, …]',
        )
    result = []
    for message in plain:
        reasoning = next((message[key] for key in _REASONING if message.get(key) is not None), None)
        if reasoning is not None:
            message = {"thinking": reasoning, **message, "reasoning_content": reasoning}
        result.append(message)
    return result


def plain_value(value: object, depth: int = 0) -> object:
    """Texts, numbers, lists and mappings alone: a template may call the methods of what it sees."""
    if depth > _DEPTH:
        raise InputError("the messages are nested too deeply", allowed=f"{_DEPTH} levels")
    if value is None or type(value) in (str, int, float, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, Mapping):
        return {plain_value(key, depth + 1): plain_value(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return (
            type(value)(plain_value(item, depth + 1) for item in value)
            if type(value) in (list, tuple)
            else [plain_value(item, depth + 1) for item in value]
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: plain_value(getattr(value, field.name), depth + 1)
            for field in dataclasses.fields(value)
        }
    if callable(item := getattr(value, "item", None)) and getattr(value, "shape", None) == ():
        return plain_value(item(), depth + 1)
    if callable(
        dump := getattr(value, "model_dump", None)
    ):  # of pydantic, as clients of OpenAI's API give them
        return plain_value(dump(), depth + 1)
    return f"<{type(value).__name__}>"


def _measure(value: object) -> int:
    """About the characters that plain values hold."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(len(str(key)) + _measure(item) + 1 for key, item in value.items())
    if isinstance(value, list | tuple):
        return sum(map(_measure, value)) + 56 * len(value)
    return 1
