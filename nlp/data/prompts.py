"""Prompts that a model answers itself, with what a reward needs to judge its answers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, FormatError
from framework.core.sample import Sample
from framework.io.dataset import LazyDataset
from framework.text.plain_content import encode_broken
from framework.text.transforms import load_tokenizer
from nlp.data.chat import ChatValues, break_chat, open_renderer
from nlp.data.conversations import as_messages, read_tools
from nlp.data.corpora import bos_ids
from nlp.data.json_files import present_fields, read_objects


@dataclass(frozen=True, eq=False)
class PromptSample(Sample):
    """A prompt up to where an answer begins."""

    text: str
    ids: np.ndarray
    """[T] int32"""
    expected: str = ""
    """What a reward compares answers with"""


@register("dataset")
@dataclass(frozen=True)
class Prompts(LazyDataset):
    """Prompts from .jsonl, or a list in .json: {"prompt": "…" or messages, "answer": "…"}, or "question" and "answer";
    "tools" beside them are functions that the assistant may call.

    Attributes:
        tokenizer: As in Tokenize, or the folder of a model.
        max_prompt_length: Tokens of a prompt. An entry with more is refused: cut, it would be another question.
        template: As in Chats; with "plain" an answer goes on right behind the prompt.
        plain_content: As in Chats.

    Raises:
        InputError, FormatError: at the first use, a file is missing, an entry is no prompt, or too long.
    """

    paths: tuple[Path, ...]
    tokenizer: str
    max_prompt_length: int = 256
    template: str | None = None
    plain_content: bool = False

    def __post_init__(self) -> None:
        if self.max_prompt_length < 1:
            raise ConfigError(
                "a prompt needs tokens",
                where="max_prompt_length",
                received=self.max_prompt_length,
                allowed="1 or more",
            )

    @cached_property
    def prompts(self) -> list[PromptSample]:
        tokenizer, renderer = load_tokenizer(self.tokenizer), open_renderer(self.template, self.tokenizer)
        prompts = []
        for path in self.paths:
            for where, fields in read_objects(path):
                fields = present_fields(fields)
                prompt = fields.get("prompt", fields.get("question"))
                expected = fields.get("answer", fields.get("solution", ""))
                if not isinstance(prompt, str | list) or not isinstance(expected, str | int | float):
                    raise FormatError(
                        "the entry is no prompt",
                        where=where,
                        received=f"keys {', '.join(fields) or 'none'}",
                        allowed="prompt (a text or messages) and answer (a text or a number)",
                    )
                values = ChatValues(as_messages(prompt, "user", where), read_tools(fields, where))
                if self.plain_content:
                    values = break_chat(tokenizer, values.messages, values.tools)
                text = renderer.render(values.messages, values.tools, add_generation_prompt=True)
                first = bos_ids(tokenizer) if renderer.adds_bos else np.zeros(0, np.int32)
                ids = np.concatenate([first, encode_broken(tokenizer, text, values.mark).ids])
                text = text.replace(values.mark, "") if values.mark else text
                if not 0 < len(ids) <= self.max_prompt_length:
                    raise FormatError(
                        "a prompt does not fit",
                        where=where,
                        received=f"{len(ids)} tokens",
                        allowed=f"1 to {self.max_prompt_length}, max_prompt_length",
                        fix="a larger max_prompt_length, or leave the entry out",
                    )
                prompts.append(PromptSample(text, ids, str(expected), id=where))
        if not prompts:
            raise FormatError("there is no prompt in the files", where=", ".join(map(str, self.paths)))
        return prompts

    def __len__(self) -> int:
        return len(self.prompts)

    def __getitem__(self, index: int) -> PromptSample:
        return self.prompts[index]
