"""Folders and GGUF files of language models, written as folders with weights of few bits: `oar quantize`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from framework.core.bounded import DATASET, read_text
from framework.core.disk import check_place
from framework.core.errors import ConfigError, InputError
from framework.interop.weights.model_folder import WEIGHTS, is_model_folder, read_settings
from framework.workflow.domain.capabilities import FolderQuantization, FolderQuantizer
from nlp.language_models import accepts_source

if TYPE_CHECKING:  # model code, which commands of other models do not load
    import numpy as np

    from nlp.llm import LanguageModel

METHODS = ("rtn", "awq", "gptq")
_DAMAGING = 0.2
"""Of the squares of a layer's outputs: what rounding rarely costs a layer that can be used."""


def accepts_folder(source: str) -> bool:
    """Whether this is a language model: a .gguf file, or a folder with the config.json of a decoder."""
    path = Path(source).expanduser()
    return (path.suffix.lower() == ".gguf" and path.is_file()) or (
        is_model_folder(path) and accepts_source(source)
    )


def write_folder(source: str, output: Path, options: FolderQuantization) -> Sequence[str]:
    """Round the weights of a language model and write its folder; what it cost, in lines.

    Raises:
        ConfigError: bits, groups or a method that there are not. InputError: a method without the examples that it
            needs, or a folder to write that is the source's.
        FormatError, WeightError: the model cannot be read.
    """
    from framework.nn.quantized import WeightScheme
    from nlp import llm
    from nlp.quantization import quantize_decoder
    from zoo.layers.decoder import Decoder

    if options.bits not in (4, 8):
        raise ConfigError(
            "weights of language models are not rounded to so many bits",
            where="--weight_bits",
            received=options.bits,
            allowed="4, 8",
        )
    path = Path(source).expanduser()
    if output.resolve() == path.resolve():
        raise InputError(
            "the model would overwrite itself",
            where="--output_dir",
            received=output,
            fix="name another folder",
        )
    check_place(output)  # before minutes are spent
    method = options.method or ("gptq" if options.bits == 4 and options.data is not None else "rtn")
    scheme = WeightScheme(4 if options.bits == 4 else 8, options.group)
    if method == "rtn":
        model = llm.load(path, weights=scheme)
        model.save(output)
        return [_sizes(path, output)]
    model = llm.load(path, dtype="float32")
    decoder = model.model
    if not isinstance(decoder, Decoder):
        raise InputError(
            "examples round decoders alone",
            where=f"--method {method}",
            received=f"{type(decoder).__name__}, which has an encoder",
            fix="--method rtn",
        )
    examples = list(_examples(model, options))
    reports = quantize_decoder(decoder, scheme, "awq" if method == "awq" else "gptq", examples)
    _narrow(model, path)
    model.save(output)
    measured = sorted((one for one in reports if not math.isnan(one.error)), key=lambda one: one.error)
    lines = [_sizes(path, output)]
    if measured:
        mean, worst = sum(one.error for one in measured) / len(measured), measured[-1]
        lines.append(
            f"{method}: {len(measured)} layers by {len(examples)} examples; error of their outputs {mean:.2%} on "
            f"average, {worst.error:.2%} at most ({worst.name})"
        )
        if worst.error > _DAMAGING:
            lines.append(f"more than {_DAMAGING:.0%} is lost there: measure the model before it is used")
    return lines


def _examples(model: LanguageModel, options: FolderQuantization) -> Iterator[np.ndarray]:
    """Rows of ids [length], spread evenly over the file of texts. Raises: InputError."""
    import numpy as np

    if options.data is None or model.tokenizer is None:
        raise InputError(
            "this method rounds weights by examples",
            where="--data",
            received="no file" if options.data is None else "a model without a tokenizer",
            allowed="a text file such as the model will see; or --method rtn, which needs none",
        )
    text = read_text(options.data, DATASET, "text")
    ids = model.tokenizer.encode(text, add_special=False).ids
    length = min(options.length, model.model.size.longest_text, len(ids))
    if length < 2:
        raise InputError(
            "the examples are too short",
            where=options.data,
            received=f"{len(ids)} tokens",
            allowed="2 and more",
        )
    starts = np.linspace(0, len(ids) - length, min(options.examples, max(1, len(ids) // length)))
    for start in starts.astype(int):
        yield ids[start : start + length]


def _narrow(model: LanguageModel, path: Path) -> None:
    """Arrays that stay in floats get the type that they have in the source."""
    import jax.numpy as jnp
    import numpy as np

    from framework.nn.quantized import QUANTIZED

    settings = read_settings(path) if path.is_dir() else {"dtype": "float16"}
    dtype = settings.get("dtype", settings.get("torch_dtype"))
    if dtype not in ("bfloat16", "float16"):
        return
    kind = np.dtype(jnp.dtype(dtype))
    for layer in model.model.sublayers(include_self=True):
        for name, parameter in layer._parameters.items():
            if parameter.dtype == np.float32 and (name == "bias" or not isinstance(layer, QUANTIZED)):
                parameter.dtype = kind
                parameter.set_value(parameter.value.astype(kind))


def _sizes(source: Path, output: Path) -> str:
    before, after = (_megabytes(one) for one in (source, output))
    return f"{before:.1f} MB of weights before, {after:.1f} MB after"


def _megabytes(path: Path) -> float:
    if path.is_file():
        return path.stat().st_size / 1e6
    names = {name.split(".")[0] for name in WEIGHTS}
    files = (file for file in path.iterdir() if file.name.split(".")[0].split("-")[0] in names)
    return sum(file.stat().st_size for file in files if file.suffix != ".json") / 1e6


FOLDER_QUANTIZER = FolderQuantizer(METHODS, accepts_folder, write_folder)
