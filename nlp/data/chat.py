"""Chats for fine-tuning: what the assistant says is learned, the end of its turn with it."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, Protocol, cast

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.core.types import JSON
from framework.io.dataset import LazyDataset
from framework.text.plain_content import break_special, encode_broken
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import load_tokenizer
from nlp.data.conversations import Message, read_conversation, skipped_answers
from nlp.data.corpora import bos_ids, check_length, end_token
from nlp.data.json_files import read_objects
from nlp.data.packing import TokenSample, TokenText, pack_best_fit, row_of

_log = logging.getLogger("oar")


class Segment(NamedTuple):
    """Some text of a rendered chat."""

    text: str
    is_assistant: bool


class ChatRenderer(Protocol):
    """A chat as the text that a model reads: framework.text.chat_template.ChatTemplate, or one of those below."""

    @property
    def adds_bos(self) -> bool:
        """Whether the tokens of a text begin as the tokenizer begins texts: chat templates write that themselves."""
        ...

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        add_generation_prompt: bool = False,
    ) -> str:
        """The text; with `add_generation_prompt` up to where an answer begins."""
        ...

    def render_answers(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        *,
        skipped: Collection[int] = (),
    ) -> Sequence[Sequence[tuple[str, bool]]]:
        """The texts that hold all answers, the chat last, each in segments: what the assistant wrote and is learned,
        its end token included, is True. Not learned are the messages of the numbers `skipped`."""
        ...


class _BuiltIn:
    """Base of formats that need no file."""

    def turn(self, message: Message) -> tuple[str, str]:
        """What stands before a message, and the message with its end."""
        raise NotImplementedError(f"{type(self).__name__}.turn")

    answer = ""
    adds_bos = False

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        add_generation_prompt: bool = False,
    ) -> str:
        text = "".join(text for text, _ in self.render_with_masks(messages, tools))
        return text + self.answer if add_generation_prompt else text

    def render_with_masks(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        skipped: Collection[int] = (),
    ) -> Sequence[tuple[str, bool]]:
        calls = sum(bool(message.get("tool_calls")) for message in messages)
        if tools or calls:
            raise ConfigError(
                "this format has no tools",
                where="template",
                received=f"{len(tools or ())} tools, {calls} messages that call one",
                allowed="the folder of a model whose template takes them",
            )
        segments = []
        for number, message in enumerate(messages):
            if not isinstance(message["content"], str):
                raise FormatError(
                    "a message is no text", where="template", received=repr(message["content"])[:80]
                )
            before, content = self.turn(message)
            is_learned = message["role"] == "assistant" and number not in skipped
            segments += [Segment(before, False), Segment(content, is_learned)]
        return segments

    def render_answers(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        *,
        skipped: Collection[int] = (),
    ) -> Sequence[Sequence[tuple[str, bool]]]:
        return [self.render_with_masks(messages, tools, skipped)]


class PlainText(_BuiltIn):
    """What was said and nothing else; an answer ends with the tokenizer's end.

    A text begins as the tokenizer of a decoder begins texts, such as LLaMA's with its bos: so begin prompts that are
    no chats, which the model is then asked with.
    """

    adds_bos = True

    def __init__(self, end: str) -> None:
        self.end = end

    def turn(self, message: Message) -> tuple[str, str]:
        return "", str(message["content"]) + (self.end if message["role"] == "assistant" else "")


class ChatML(_BuiltIn):
    """<|im_start|>role, a line end, what was said, <|im_end|> and a line end, which belongs to no message. Of Qwen."""

    answer = "<|im_start|>assistant\n"

    def turn(self, message: Message) -> tuple[str, str]:
        return f"<|im_start|>{message['role']}\n", f"{message['content']}<|im_end|>"

    def render_with_masks(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        skipped: Collection[int] = (),
    ) -> Sequence[tuple[str, bool]]:
        segments = super().render_with_masks(messages, tools, skipped)
        return [one for pair in zip(segments[::2], segments[1::2]) for one in (*pair, Segment("\n", False))]


def open_renderer(template: str | None, tokenizer: str) -> ChatRenderer:
    """What a config's `template` names: "plain", "chatml", a model's folder; None: the folder of its tokenizer.

    Raises:
        ConfigError: there is no template.
    """
    if template == "chatml":
        return ChatML()
    if template == "plain":
        words = load_tokenizer(tokenizer)
        return PlainText(words.token_of(end_token(words)) or "")
    from framework.text.chat_template import ChatTemplate  # which needs jinja2

    path = Path(template or tokenizer).expanduser()
    chat_template = ChatTemplate.from_folder(path if path.is_dir() else path.parent)
    if chat_template is None:
        raise ConfigError(
            "there is no chat template",
            where="template",
            received=str(path),
            allowed='a folder with chat_template.jinja or tokenizer_config.json; "chatml"; "plain"',
        )
    return chat_template


class ChatValues(NamedTuple):
    """What a template is given."""

    messages: Sequence[Message]
    tools: Sequence[Mapping[str, JSON]] | None = None
    mark: str = ""
    """What breaks special tokens within them (framework/text/plain_content.py)"""


def break_chat(
    tokenizer: Tokenizer, messages: Sequence[Message], tools: Sequence[Mapping[str, JSON]] | None = None
) -> ChatValues:
    """A chat whose special tokens become characters. Raises: InputError, as `break_special`."""
    broken = break_special(tokenizer, messages, tools)
    first, second = broken.values
    return ChatValues(
        cast(Sequence[Message], first), cast(Sequence[Mapping[str, JSON]] | None, second), broken.mark
    )


def tokens_of_chat(
    tokenizer: Tokenizer,
    segments: Sequence[tuple[str, bool]],
    only_last: bool = False,
    adds_bos: bool = False,
    mark: str = "",
) -> TokenText:
    """The tokens of a rendered chat; learned are those with a character that the assistant wrote.

    The text is divided as a whole: what stands at the border of two segments may be one token, such as the space that
    ends a prompt with the first word of its answer. `mark`: that of a chat by `break_chat`.
    """
    text = "".join(span_text for span_text, _ in segments)
    ids, offsets, _ = encode_broken(tokenizer, text, mark)
    starts, ends = offsets.T
    spoken = np.zeros(len(text) + 1, bool)
    offset, answers = 0, []
    for span_text, is_assistant in segments:
        if is_assistant and span_text:
            answers.append((offset, offset + len(span_text)))
        offset += len(span_text)
    for start, end in answers[-1:] if only_last else answers:
        spoken[start:end] = True
    before = np.concatenate([[0], np.cumsum(spoken)])  # characters of the assistant
    learned = before[np.maximum(ends, starts + 1)] > before[starts]
    first = bos_ids(tokenizer) if adds_bos else np.zeros(0, np.int32)
    return TokenText(
        np.concatenate([first, ids.astype(np.int32)]), np.concatenate([np.zeros(len(first), bool), learned])
    )


@register("dataset")
@dataclass(frozen=True)
class Chats(LazyDataset):
    """Conversations and instructions (nlp/data/conversations.py has the forms) as rows of tokens.

    Attributes:
        paths: .jsonl files, or .json with a list.
        tokenizer: As in Tokenize, or the folder of a model.
        max_length: Tokens of a row. What is longer is cut at its end; a chat that then has nothing to learn, or each
            that is too long with `too_long: leave_out`, is left out. Both are counted in the log.
        template: How a chat becomes a text: a folder with a chat template, "chatml", or "plain", which writes only what
            was said; None: that of the tokenizer's folder.
        packed: Several chats share a row, and none sees another. Else each has a row of its own length: give `buckets`.
        learn: "all" that the assistant says, or its "last" answer alone.
        plain_content: Special tokens in messages and tools are characters: what a stranger wrote ends no turn.

    Raises:
        InputError, FormatError: at the first use, a file is missing, or an entry is no conversation.
    """

    paths: tuple[Path, ...]
    tokenizer: str
    max_length: int
    template: str | None = None
    packed: bool = True
    too_long: Literal["cut", "leave_out"] = "cut"
    learn: Literal["all", "last"] = "all"
    plain_content: bool = False

    def __post_init__(self) -> None:
        check_length(self.max_length)

    @cached_property
    def texts(self) -> list[TokenText]:
        """The chats as tokens."""
        texts, cut, left_out = [], 0, 0
        for path in self.paths:
            for where, fields in read_objects(path):
                for text in self._tokens_of(fields, where):
                    if len(text.ids) > self.max_length:
                        text = TokenText(text.ids[: self.max_length], text.learned[: self.max_length])
                        cut += 1
                        if self.too_long == "leave_out" or not text.learned[1:].any():
                            left_out += 1
                            continue
                    texts.append(text)
        if cut:
            _log.warning(
                f"{self.paths[0]}: {cut} of {len(texts) + left_out} chats have more than {self.max_length} tokens: "
                f"{cut - left_out} are cut at their end, {left_out} are left out"
            )
        if not texts:
            raise FormatError("there is no chat in the files", where=", ".join(map(str, self.paths)))
        return texts

    def _tokens_of(self, fields: Mapping[str, object], where: str) -> list[TokenText]:
        """The texts of an entry. Raises: FormatError, where nothing of one is learned."""
        chat, only_last = read_conversation(fields, where), self.learn == "last"
        tokenizer, values = load_tokenizer(self.tokenizer), ChatValues(chat.messages, chat.tools)
        if self.plain_content:
            values = break_chat(tokenizer, *values[:2])
        skipped = skipped_answers(chat.messages)
        rendered = self._renderer.render_answers(values.messages, values.tools, skipped=skipped)
        texts = [
            tokens_of_chat(tokenizer, one, only_last, self._renderer.adds_bos, values.mark)
            for one in (rendered[-1:] if only_last else rendered)
        ]
        if not all(text.learned[1:].any() for text in texts):
            raise FormatError(
                "there is nothing to learn from the chat",
                where=where,
                received="no token of the assistant"
                + (f", {len(skipped)} of its messages marked" if skipped else ""),
                fix="the template must say what the assistant writes ({% generation %}), or take another one; a "
                "message with weight 0 is not learned",
            )
        return texts

    @cached_property
    def _renderer(self) -> ChatRenderer:
        return open_renderer(self.template, self.tokenizer)

    @cached_property
    def rows(self) -> list[list[int]]:
        """The chats of each row."""
        if not self.packed:
            return [[index] for index in range(len(self.texts))]
        rows = pack_best_fit([len(text.ids) for text in self.texts], self.max_length)
        total = sum(len(text.ids) for text in self.texts)
        _log.info(
            f"{len(self.texts)} chats in {len(rows)} rows: {total / (len(rows) * self.max_length):.0%} are tokens"
        )
        return rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> TokenSample:
        texts = [self.texts[number] for number in self.rows[index]]
        length = self.max_length if self.packed else len(texts[0].ids)
        row = row_of(texts, length)
        learned = row.targets[row.targets >= 0]
        size = len(load_tokenizer(self.tokenizer).decode(learned).encode("utf-8", "replace"))
        return row.replace(id=f"row {index}", text_bytes=size)
