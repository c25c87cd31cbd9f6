"""Language models that write: open one, and let it go on with a text.

from nlp import llm

model = llm.load("models/qwen3-0.6b")
print(model.generate("Once upon a time", max_new_tokens=64, top_p=0.9, stop=["\\n"]).text)
print(model.chat([{"role": "user", "content": "Why is the sky blue?"}], max_new_tokens=100))

`python -m nlp.chat_command MODEL` is `oar chat MODEL`.
"""

from __future__ import annotations

import functools
import shutil
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from framework.core.errors import InputError
from framework.core.types import JSON
from framework.interop.weights.gguf import read_gguf
from framework.interop.weights.model_folder import is_model_folder
from framework.nn.quantized import WeightScheme
from framework.text.chat_template import TEMPLATES_FOLDER, ChatTemplate
from framework.text.gguf_tokenizer import gguf_tokenizer
from framework.text.tokenizer import Tokenizer
from nlp.generation.exported import ExportedFunctions
from nlp.generation.settings import PROGRAMS, TextGenerationOptions
from nlp.model_folders import fetch_model
from zoo.layers.decoder_weights import AnyDecoder, is_gguf, load_decoder, save_decoder

if TYPE_CHECKING:
    from nlp.chat import ChatAnswer
    from nlp.evaluation.likelihood import TextScore
    from nlp.generation.engine import Engine
    from nlp.generation.prompts import Prompt, PromptWriter
    from nlp.generation.request import Chunk, GenerationResult
    from nlp.text_generator import EngineGenerator

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "spiece.model",
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
)
"""Files of a folder that are copied beside the weights."""
_GGUF_TEMPLATE = "tokenizer.chat_template"


@dataclass(frozen=True, eq=False)
class TextModel:
    """A model with its tokenizer, which generates texts and answers chats: of layers, or of exported programs."""

    model: AnyDecoder | ExportedFunctions
    tokenizer: Tokenizer | None
    """None where the folder has none: texts are then given as ids"""
    folder: Path | None = None
    """Where it was read from"""
    template: ChatTemplate | None = None
    """How chats are written; None: the model only goes on with texts"""

    @property
    def generator(self) -> EngineGenerator:
        """What writes chats, a text at a time. Raises: InputError, where there is no tokenizer."""
        engine = self.writer.engine(1)
        if engine not in self._generators:
            self._generators.clear()
            self._generators[engine] = self.make_generator(TextGenerationOptions(slots=1), engine)
        return self._generators[engine]

    @functools.cached_property
    def _generators(self) -> dict[Engine, EngineGenerator]:
        return {}

    def make_generator(self, options: TextGenerationOptions, engine: Engine | None = None) -> EngineGenerator:
        """What writes texts of several clients at once. Raises: InputError, where there is no tokenizer."""
        from nlp.text_generator import make_engine_generator

        about = (self.model.size, self.tokenizer, self.folder, self.template)
        return make_engine_generator(self.model, *about, options, engine)

    def chat(
        self,
        messages: Sequence[Mapping[str, JSON]],
        tools: Sequence[Mapping[str, JSON]] | None = None,
        template: Mapping[str, JSON] | None = None,
        **options: object,
    ) -> ChatAnswer:
        """The assistant's next message.

        Args:
            messages: {"role": "system" | "user" | "assistant" | "tool", "content": text} each.
            tools: JSON schemas of functions that it may call: {"type": "function", "function": {…}}.
            template: What the chat template takes besides, such as {"enable_thinking": False}.
            options: Those of GenerationOptions. Without, generation_config.json says how, and else tokens are drawn at
                temperature 1, until the model ends.

        Raises:
            InputError: there is no chat template, it refuses the messages, or they are too long. ConfigError: an option
            is unknown or out of range.
        """
        from nlp.chat import answer_chat

        return answer_chat(self.generator, messages, tools, template, **options)

    @functools.cached_property
    def writer(self) -> PromptWriter:
        """What generates texts; `writer.close()` frees its caches."""
        from nlp.generation.prompts import PromptWriter

        writer = PromptWriter(self.model, self.tokenizer, self.folder)
        # Engines have threads and caches: they end with the model that nobody has any more.
        weakref.finalize(self, writer.close).atexit = False
        return writer

    def generate(
        self, prompt: Prompt | Sequence[Prompt], **options: object
    ) -> GenerationResult | list[GenerationResult] | list[list[GenerationResult]]:
        """The text with which a prompt goes on; of an encoder-decoder, what it makes of it.

        Args:
            prompt: A text, or its tokens; or a list of such, which are written side by side.
            options: See `GenerationOptions`; by default those of generation_config.json.

        Returns:
            One of a single prompt, else a list; with `num_return_sequences` above 1 a list for each prompt.

        Raises:
            InputError: a prompt is empty or too long, or a constraint cannot be followed. ConfigError: an option is
                unknown or out of range.
        """
        return self.writer.generate(prompt, **options)

    def stream(self, prompt: Prompt, **options: object) -> Iterator[Chunk]:
        """As `generate`, token by token. Who stops to iterate ends the text."""
        return self.writer.stream(prompt, **options)


@dataclass(frozen=True, eq=False)
class LanguageModel(TextModel):
    """A decoder with its tokenizer, in evaluation mode."""

    model: AnyDecoder

    def score(self, text: str, context: str = "", max_length: int | None = None) -> TextScore:
        """How probable a text is behind a context; without one, behind bos or eos.

        Args:
            max_length: Tokens of both, at most, of which the last count; None: as many as the model was made for.

        Raises:
            InputError: there is no tokenizer, or the text has more tokens than that.
        """
        from nlp.evaluation.likelihood import score_text

        return score_text(self, text, context, max_length)

    def save(self, folder: str | Path) -> Path:
        """Write a folder that transformers and `load` open: config.json, weights, and the files of the tokenizer."""
        folder = Path(folder)
        save_decoder(self.model, folder)
        if self.folder is not None:
            copy_tokenizer(self.folder, folder)
            return folder
        if self.tokenizer is not None:
            self.tokenizer.save(folder)
        if self.template is not None:
            self.template.save(folder)
        return folder


def copy_tokenizer(source: Path, folder: Path) -> None:
    """The files of a tokenizer and its chat templates, as they are, from one folder of a model into another one."""
    templates = (
        f"{TEMPLATES_FOLDER}/{path.name}" for path in sorted((source / TEMPLATES_FOLDER).glob("*.jinja"))
    )
    for name in (*TOKENIZER_FILES, *templates):
        path, copy = source / name, folder / name
        if path.is_file() and path.resolve() != copy.resolve():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def load(
    name: str | Path, dtype: str | None = None, weights: str | WeightScheme | None = None
) -> LanguageModel:
    """The language model of a folder of Hugging Face or PaddleNLP, or of a GGUF file.

    Args:
        name: The folder: config.json, weights, and a tokenizer. Weights may be quantised by GPTQ, AWQ, FP8,
            bitsandbytes or compressed-tensors. Or a file of llama.cpp, whose name ends in .gguf; or a name of the hub,
            such as "qwen3-0.6b", whose files are fetched once.
        dtype: What weights are kept in: "float32", "bfloat16" or "float16"; None: as in the file.
        weights: "int8", "int4" or a scheme: matrices are kept in so many bits, see
            docs/llm_low_precision.md; None: in floats.

    Raises:
        InputError: there is no such folder and no such name. HubError: the files of a name cannot be had.
        FormatError, ConfigError, WeightError: it holds no decoder, or a file is damaged.
    """
    folder = Path(name).expanduser()
    if (folder / PROGRAMS).is_file():
        raise InputError(
            "these are exported programs of a language model, and no layers",
            where="llm.load",
            received=str(name),
            fix="llm.load_programs opens them, to generate and to chat; or load the folder that they were made of",
        )
    if is_gguf(folder):
        return _load_gguf(folder, dtype, weights)
    if not is_model_folder(folder):
        if folder.exists():
            raise InputError(
                "there is no language model here",
                where="llm.load",
                received=str(name),
                allowed="a folder with config.json and weights, as save_pretrained of transformers writes it",
            )
        folder = fetch_model(str(name))
    model = load_decoder(folder, dtype, weights)
    return LanguageModel(model, _read_tokenizer(folder), folder, ChatTemplate.from_folder(folder))


def load_programs(folder: str | Path) -> TextModel:
    """The language model of a folder of programs that `oar export-programs` wrote. Its weights are as they were
    exported; it is neither scored nor saved.

    Raises: FormatError: a file is missing or damaged.
    """
    folder = Path(folder).expanduser()
    return TextModel(
        ExportedFunctions(folder), _read_tokenizer(folder), folder, ChatTemplate.from_folder(folder)
    )


def _read_tokenizer(folder: Path) -> Tokenizer | None:
    """That of a folder; None, where it has none."""
    names = (one for one in TOKENIZER_FILES if one[:4] in ("toke", "voca", "spie"))
    return Tokenizer.from_file(folder) if any((folder / one).is_file() for one in names) else None


def _load_gguf(path: Path, dtype: str | None, weights: str | WeightScheme | None) -> LanguageModel:
    """The model of a GGUF file, with the tokenizer that is in it."""
    metadata = read_gguf(path).metadata
    text, source = gguf_tokenizer(metadata, str(path)), metadata.get(_GGUF_TEMPLATE)
    tokenizer = Tokenizer.from_json(text, path) if text is not None else None
    template = None
    if tokenizer is not None and isinstance(source, str):
        roles = {"bos_token": "cls", "eos_token": "sep", "unk_token": "unk", "pad_token": "pad"}
        tokens = {name: tokenizer.roles[role] for name, role in roles.items() if role in tokenizer.roles}
        for name in ("bos", "eos"):
            number = metadata.get(f"tokenizer.ggml.{name}_token_id")
            token = tokenizer.token_of(number) if isinstance(number, int) else None
            tokens |= {} if token is None else {f"{name}_token": token}
        template = ChatTemplate(source, tokens, path)
    return LanguageModel(load_decoder(path, dtype, weights), tokenizer, template=template)
