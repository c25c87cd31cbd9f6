"""Language models that write: open one, and let it go on with a text.

from nlp import llm

model = llm.load("models/qwen3-0.6b")
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from framework.core.errors import InputError
from framework.interop.weights.gguf import read_gguf
from framework.interop.weights.model_folder import is_model_folder
from framework.nn.quantized import WeightScheme
from framework.text.gguf_tokenizer import gguf_tokenizer
from framework.text.tokenizer import Tokenizer
from zoo.layers.decoder import Decoder
from zoo.layers.decoder_weights import is_gguf, load_decoder, save_decoder

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
    "generation_config.json",
)
"""Files of a folder that are copied beside the weights."""


@dataclass(frozen=True, eq=False)
class LanguageModel:
    """A decoder with its tokenizer, in evaluation mode."""

    model: Decoder
    tokenizer: Tokenizer | None
    """None where the folder has none: texts are then given as ids"""
    folder: Path | None = None
    """Where it was read from"""

    def save(self, folder: str | Path) -> Path:
        """Write a folder that transformers and `load` open: config.json, weights, and the files of the tokenizer."""
        folder = Path(folder)
        save_decoder(self.model, folder)
        for name in TOKENIZER_FILES:
            if self.folder is not None and (self.folder / name).is_file():
                if (self.folder / name).resolve() != (folder / name).resolve():
                    shutil.copyfile(self.folder / name, folder / name)
            elif self.folder is None and name == TOKENIZER_FILES[0] and self.tokenizer is not None:
                self.tokenizer.save(folder)
        return folder


def load(
    name: str | Path, dtype: str | None = None, weights: str | WeightScheme | None = None
) -> LanguageModel:
    """The language model of a folder of Hugging Face or PaddleNLP, or of a GGUF file.

    Args:
        name: The folder: config.json, weights, and a tokenizer. Weights may be quantised by GPTQ, AWQ, FP8,
            bitsandbytes or compressed-tensors. Or a file of llama.cpp, whose name ends in .gguf.
        dtype: What weights are kept in: "float32", "bfloat16" or "float16"; None: as in the file.
        weights: "int8", "int4" or a scheme: matrices are kept in so many bits, see
            docs/llm_low_precision.md; None: in floats.

    Raises:
        InputError: there is no such folder.
        FormatError, ConfigError, WeightError: it holds no decoder, or a file is damaged.
    """
    folder = Path(name).expanduser()
    if is_gguf(folder):
        return _load_gguf(folder, dtype, weights)
    if not is_model_folder(folder):
        raise InputError(
            "there is no language model here",
            where="llm.load",
            received=str(name),
            allowed="a folder with config.json and weights, as save_pretrained of transformers writes it",
        )
    model = load_decoder(folder, dtype, weights)
    has_tokenizer = any(
        (folder / one).is_file() for one in TOKENIZER_FILES if one[:4] in ("toke", "voca", "spie")
    )
    return LanguageModel(model, Tokenizer.from_file(folder) if has_tokenizer else None, folder)


def _load_gguf(path: Path, dtype: str | None, weights: str | WeightScheme | None) -> LanguageModel:
    """The model of a GGUF file, with the tokenizer that is in it."""
    text = gguf_tokenizer(read_gguf(path).metadata, str(path))
    tokenizer = Tokenizer.from_json(text, path) if text is not None else None
    return LanguageModel(load_decoder(path, dtype, weights), tokenizer)
