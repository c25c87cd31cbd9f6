"""Opens what generates texts, by a name, a folder or a file."""

from __future__ import annotations

from pathlib import Path

from framework.core.errors import ConfigError
from nlp import llm
from nlp.generation.settings import PROGRAMS, TextGenerationOptions
from nlp.text_generator import EngineGenerator


def open_generator(source: str, options: TextGenerationOptions) -> EngineGenerator:
    """The language model of a folder, a .gguf file or a folder of programs, ready for requests.

    Raises: OarError, where it cannot be opened.
    """
    folder = Path(source).expanduser()
    if not (folder / PROGRAMS).is_file():
        return llm.load(source, options.dtype, options.weights).make_generator(options)
    if options.dtype is not None or options.weights is not None:
        raise ConfigError(
            "the weights of programs are as they were exported", where=source, received="dtype or weights"
        )
    return llm.load_programs(folder).make_generator(options)
