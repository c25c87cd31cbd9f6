"""Answers that somebody judged: pairs of a better and a worse one, and single ones that are right or wrong.

Forms of an entry, in .jsonl or a list in .json:
    trl             {"prompt": "…" or messages, "chosen": "…" or messages, "rejected": "…" or messages}, or without a
                    prompt, whose place the common beginning of the two takes; {"prompt", "completion", "label": true}
    PaddleNLP       {"src": ["…"], "tgt": ["…"], "response": ["…", "…"], "sort": [1, 0]}; one response for KTO
    LLaMA-Factory   {"conversations": […], "chosen": {"from": "gpt", "value": "…"}, "rejected": {…}}; "kto_tag": true
"tools" beside them are functions that the assistant may call. Answers that repeat the prompt before them, as those of
UltraFeedback do, have it once.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.core.sample import Sample
from framework.core.types import JSON
from framework.io.dataset import LazyDataset
from framework.text.transforms import load_tokenizer
from nlp.data.chat import ChatRenderer, ChatValues, break_chat, open_renderer, tokens_of_chat
from nlp.data.conversations import Message, as_messages, chat_messages, read_tools
from nlp.data.json_files import present_fields, read_objects
from nlp.data.packing import TokenText

_log = logging.getLogger("oar")


@dataclass(frozen=True, eq=False)
class AnswerPair(Sample):
    """Two answers to one prompt, each with the prompt before it; what is learned is the answer."""

    preferred: TokenText
    rejected: TokenText


@dataclass(frozen=True, eq=False)
class JudgedAnswer(Sample):
    """An answer with its prompt before it, and the next one's answer to the same prompt, by which KTO tells how far a
    model is from its reference."""

    answer: TokenText
    mismatched: TokenText
    desirable: bool


class JudgedEntry(NamedTuple):
    """An entry of a file: its prompt, and answers with whether each is the better one, or right."""

    prompt: list[Message]
    answers: list[tuple[list[Message], bool]]
    where: str
    tools: tuple[Mapping[str, JSON], ...] | None = None


def read_pair(fields: Mapping[str, object], where: str) -> JudgedEntry:
    """Raises: FormatError, where the entry is no pair."""
    fields = present_fields(fields)
    if "response" in fields and "sort" in fields:
        prompt, answers = _paddle_answers(fields, where)
        if len(answers) != 2 or answers[0][1] == answers[1][1]:
            raise FormatError(
                "the entry does not say which answer is better",
                where=where,
                received=f"{len(answers)} responses, sort {fields['sort']}",
                allowed="two responses with different numbers in sort, the larger the better",
            )
        answers = sorted(answers, key=lambda one: not one[1])
        return JudgedEntry(prompt, answers, where, read_tools(fields, where))
    if "chosen" not in fields or "rejected" not in fields:
        raise FormatError(
            "the entry is no pair of answers",
            where=where,
            received=f"keys {', '.join(fields) or 'none'}",
            allowed="prompt, chosen and rejected; src, response and sort; conversations, chosen and rejected",
        )
    preferred, rejected = (_answer(fields[name], where) for name in ("chosen", "rejected"))
    prompt = _prompt(fields, where)
    if prompt is None:
        common = 0
        while common < min(len(preferred), len(rejected)) - 1 and preferred[common] == rejected[common]:
            common += 1
        prompt, preferred, rejected = preferred[:common], preferred[common:], rejected[common:]
    else:
        preferred, rejected = (_behind(prompt, answer) for answer in (preferred, rejected))
    return JudgedEntry(prompt, [(preferred, True), (rejected, False)], where, read_tools(fields, where))


def _behind(prompt: Sequence[Message], answer: list[Message]) -> list[Message]:
    """An answer without the end of the prompt, where it begins with it."""
    for count in range(min(len(prompt), len(answer) - 1), 0, -1):
        if [_role_and_text(one) for one in prompt[-count:]] == [
            _role_and_text(one) for one in answer[:count]
        ]:
            return answer[count:]
    return answer


def _role_and_text(message: Message) -> tuple[object, object]:
    return message["role"], message["content"]


def read_judged(fields: Mapping[str, object], where: str) -> JudgedEntry:
    """Raises: FormatError, where the entry is no answer with a label."""
    fields = present_fields(fields)
    if "response" in fields and "sort" in fields:
        prompt, answers = _paddle_answers(fields, where)
        if len(answers) == 1:
            return JudgedEntry(prompt, answers, where, read_tools(fields, where))
    label = fields.get("label", fields.get("kto_tag"))
    answer = next((fields[name] for name in ("completion", "response", "output") if name in fields), None)
    prompt = _prompt(fields, where)
    if (
        answer is None and prompt and prompt[-1]["role"] == "assistant"
    ):  # a conversation that ends with the answer
        prompt, answer = prompt[:-1], [dict(prompt[-1])]
    if answer is None or prompt is None or label not in (False, True):
        raise FormatError(
            "the entry is no answer with a label",
            where=where,
            received=f"keys {', '.join(fields) or 'none'}; label {label!r}"[:160],
            allowed="prompt, completion and label (true or false); src, response and sort; messages and kto_tag",
        )
    answers = [(_behind(prompt, _answer(answer, where)), bool(label))]
    return JudgedEntry(prompt, answers, where, read_tools(fields, where))


def _paddle_answers(
    fields: Mapping[str, object], where: str
) -> tuple[list[Message], list[tuple[list[Message], bool]]]:
    """src and tgt are the turns before, of which src has one more: the question that `response` answers."""
    questions, replies = _listed(fields.get("src")), _listed(fields.get("tgt"))
    responses = _listed(fields["response"])
    order = [rank for rank in _listed(fields["sort"]) if isinstance(rank, int | float)]
    if len(questions) != len(replies) + 1 or len(responses) != len(order) or not responses:
        raise FormatError(
            "the entry does not fit together",
            where=where,
            received=f"src {questions!r}, tgt {replies!r}, sort {order!r}"[:160],
            allowed="one more of src than of tgt, and a number of sort for each response",
        )
    prompt: list[Message] = []
    for number, question in enumerate(questions):
        prompt += as_messages(question, "user", where)
        prompt += as_messages(replies[number], "assistant", where) if number < len(replies) else []
    best = max(order) if len(order) > 1 else 1
    answers = [(as_messages(text, "assistant", where), rank == best) for text, rank in zip(responses, order)]
    return prompt, answers


def _listed(value: object) -> list[object]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def _prompt(fields: Mapping[str, object], where: str) -> list[Message] | None:
    system = fields.get("system")
    first = as_messages(system, "system", where) if isinstance(system, str) and system.strip() else []
    for name in ("prompt", "question"):
        if name in fields:
            return first + as_messages(fields[name], "user", where)
    for name in ("messages", "conversations", "conversation"):
        turns = fields.get(name)
        if isinstance(turns, list):
            return first + chat_messages(turns, where)
    instruction, more = fields.get("instruction"), fields.get("input")
    if isinstance(instruction, str):
        text = "\n".join(one for one in (instruction, more) if isinstance(one, str) and one)
        return first + as_messages(text, "user", where)
    return None


def _answer(value: object, where: str) -> list[Message]:
    return as_messages([value] if isinstance(value, dict) else value, "assistant", where)


@dataclass(frozen=True)
class JudgedAnswers(LazyDataset):
    """Base of the data sets of answers. The fields are those of `Preferences`."""

    paths: tuple[Path, ...]
    tokenizer: str
    max_length: int = 2048
    max_prompt_length: int = 1024
    template: str | None = None
    plain_content: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.max_prompt_length < self.max_length:
            raise ConfigError(
                "there is no room for an answer",
                where="max_prompt_length",
                received=f"{self.max_prompt_length} of {self.max_length} tokens",
                allowed="above 0, below max_length",
            )

    def read(self, fields: Mapping[str, object], where: str) -> JudgedEntry:
        """An entry of a file."""
        raise NotImplementedError(f"{type(self).__name__}.read")

    @cached_property
    def entries(self) -> list[tuple[JudgedEntry, list[TokenText]]]:
        """Each entry with the tokens of its answers, the prompt before each."""
        entries, cut = [], 0
        for path in self.paths:
            for where, fields in read_objects(path):
                entry = self.read(fields, where)
                texts = [self.text_of(entry, answer) for answer, _ in entry.answers]
                cut += any(was_cut for _, was_cut in texts)
                entries.append((entry, [text for text, _ in texts]))
        if not entries:
            raise FormatError("there is no answer in the files", where=", ".join(map(str, self.paths)))
        if cut:
            _log.warning(
                f"{self.paths[0]}: {cut} of {len(entries)} entries are cut: prompts at their beginning to "
                f"{self.max_prompt_length} tokens, answers at their end to {self.max_length} with the prompt"
            )
        return entries

    def text_of(self, entry: JudgedEntry, answer: Sequence[Message]) -> tuple[TokenText, bool]:
        """The tokens of an entry's prompt and an answer, of which the answer is learned; and whether they had to be
        cut."""
        tokenizer = load_tokenizer(self.tokenizer)
        values = ChatValues([*entry.prompt, *answer], entry.tools)
        if self.plain_content:
            values = break_chat(tokenizer, values.messages, values.tools)
        segments = self._renderer.render_answers(values.messages, values.tools)[-1]
        ids, learned = tokens_of_chat(tokenizer, segments, True, self._renderer.adds_bos, values.mark)
        start = int(np.argmax(learned)) if learned.any() else len(ids)
        if start == len(ids):
            raise FormatError(
                "an answer has no tokens",
                where=entry.where,
                received=repr(answer)[:80],
                fix="the template must say what the assistant writes ({% generation %}), or take another one",
            )
        first = max(0, start - self.max_prompt_length)
        last = first + self.max_length
        return TokenText(ids[first:last], learned[first:last]), first > 0 or last < len(ids)

    @cached_property
    def _renderer(self) -> ChatRenderer:
        return open_renderer(self.template, self.tokenizer)

    def __len__(self) -> int:
        return len(self.entries)


@register("dataset")
@dataclass(frozen=True)
class Preferences(JudgedAnswers):
    """Pairs of answers to a prompt, of which one is preferred.

    Attributes:
        paths: .jsonl files, or .json with a list.
        tokenizer: As in Tokenize, or the folder of a model.
        max_length: Tokens of a prompt and an answer; the answer is cut at its end.
        max_prompt_length: Tokens of a prompt, which is cut at its beginning. Both cuts are counted in the log.
        template, plain_content: As in Chats.

    Raises:
        InputError, FormatError: at the first use, a file is missing, or an entry is no pair.
    """

    def read(self, fields: Mapping[str, object], where: str) -> JudgedEntry:
        return read_pair(fields, where)

    def __getitem__(self, index: int) -> AnswerPair:
        entry, (preferred, rejected) = self.entries[index]
        return AnswerPair(preferred, rejected, id=entry.where)


@register("dataset")
@dataclass(frozen=True)
class LabelledAnswers(JudgedAnswers):
    """Single answers that are desirable or not, for KTO. The fields are those of Preferences."""

    def read(self, fields: Mapping[str, object], where: str) -> JudgedEntry:
        return read_judged(fields, where)

    def __getitem__(self, index: int) -> JudgedAnswer:
        entry, (answer,) = self.entries[index]
        other = self.entries[(index + 1) % len(self)][0].answers[0][0]
        mismatched, _ = self.text_of(entry, other)
        return JudgedAnswer(answer, mismatched, entry.answers[0][1], id=entry.where)
