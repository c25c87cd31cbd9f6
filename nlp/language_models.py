"""Which models write texts, and what a server may set of them. Opens none and loads no model code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from framework.core.errors import InputError
from framework.interop.weights.model_folder import is_model_folder, read_settings
from framework.workflow.domain.options import option
from framework.workflow.domain.text_generation import TextGeneration, TextGenerator

_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "LMHead")
_EMBEDDER = "modules.json"  # of sentence-transformers


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

    def __post_init__(self) -> None:
        for name in ("slots", "chunk"):
            if getattr(self, name) < 1:
                raise InputError(
                    "the value is too small", where=name, received=getattr(self, name), allowed="1 or more"
                )


def accepts_source(source: str) -> bool:
    """Whether this is the folder of a decoder, or a file of llama.cpp. Opens nothing but a config.json."""
    folder = Path(source).expanduser()
    if folder.suffix.lower() == ".gguf" and folder.is_file():
        return True
    if not is_model_folder(folder) or (folder / _EMBEDDER).is_file():
        return False
    settings = read_settings(folder)
    names = settings.get("architectures") or [_WRITERS[0]]
    if not any(isinstance(name, str) and name.endswith(_WRITERS) for name in names):
        return False
    from zoo.layers.decoder_config import decoder_families

    return str(settings.get("model_type")) in decoder_families()


def open_source(source: str, options: object) -> TextGenerator:
    """The language model of a folder, ready for requests. Raises: OarError, where it cannot be opened."""
    from nlp.text_generator import open_generator

    assert isinstance(options, TextGenerationOptions)
    return open_generator(source, options)


TEXT_GENERATION = TextGeneration(TextGenerationOptions, accepts_source, open_source)
