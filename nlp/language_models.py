"""Which models write texts, and what a server may set of them. Opens none and loads no model code."""

from __future__ import annotations

from pathlib import Path

from framework.interop.weights.model_folder import is_model_folder, read_settings
from framework.workflow.domain.text_generation import TextGeneration, TextGenerator
from nlp.generation.settings import PROGRAMS, TextGenerationOptions
from nlp.model_folders import entry_name

_WRITERS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "LMHead")
_EMBEDDER = "modules.json"  # of sentence-transformers


def accepts_source(source: str) -> bool:
    """Whether this is the folder of a decoder or of programs, a file of llama.cpp, or a name of the hub. Reads only
    config.json, and fetches nothing."""
    folder = Path(source).expanduser()
    if (folder.suffix.lower() == ".gguf" and folder.is_file()) or (folder / PROGRAMS).is_file():
        return True
    if not folder.exists():
        return entry_name(source) is not None
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
    from nlp.open_generator import open_generator

    assert isinstance(options, TextGenerationOptions)
    return open_generator(source, options)


TEXT_GENERATION = TextGeneration(TextGenerationOptions, accepts_source, open_source)
