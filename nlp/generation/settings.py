"""Settings of a language model that is served, or talked to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from framework.core.errors import InputError
from framework.workflow.domain.options import option

PROGRAMS = "programs.json"
"""Of a folder of compiled programs: nlp/generation/exported.py"""


@dataclass(frozen=True)
class TextGenerationOptions:
    """Settings of a served language model. Raises: InputError, where one is out of range."""

    slots: int = option(8, "texts that are written at once; others wait")
    max_length: int | None = option(
        None, "tokens of a prompt and its text; default: the model's, 8192 at most"
    )
    dtype: str | None = option(None, "of weights: float32, bfloat16, float16; default: that of the file")
    weights: Literal["int8", "int4"] | None = option(None, "quantise the weights when the model is opened")
    chunk: int = option(512, "tokens of a prompt that are read between two steps of the other texts")
    prefix_tokens: int = option(8192, "tokens of earlier prompts whose keys and values are stored")
    plain_content: bool = option(
        False,
        "special tokens that stand in the messages of a chat are characters: content yields no control tokens",
    )

    def __post_init__(self) -> None:
        for name in ("slots", "chunk"):
            if getattr(self, name) < 1:
                raise InputError(
                    "the value is too small", where=name, received=getattr(self, name), allowed="1 or more"
                )
