"""Numbers of tokens as LaTeX: the tokenizer of formulas, and where a formula ends. Imports no jax."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from framework.core.errors import InputError
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import load_tokenizer
from ocr.formulas.latex import tidy_latex
from ocr.formulas.tokenizer_files import find_tokenizer_file

END = 2  # the token that ends a formula, in UniMERNet's tokenizer as in MBart's


def cut_tokens(tokens: np.ndarray) -> np.ndarray:
    """The tokens [T] until the first END, which is left out."""
    ends = np.flatnonzero(tokens == END)
    return tokens[: ends[0]] if len(ends) else tokens


def decode_latex(tokenizer: Tokenizer, tokens: Sequence[int]) -> str:
    """What the tokens say."""
    return tidy_latex(tokenizer.decode(tokens))


def find_tokenizer(source: str) -> Tokenizer:
    """The tokenizer of formulas: of a tokenizer.json, of a folder with one, or beside weights of this name in the hub.

    Raises:
        InputError: there is none. HubError: it cannot be fetched. FormatError: it is damaged.
        MissingExtraError: without the package tokenizers.
    """
    if source.startswith("{"):
        return load_tokenizer(source)
    file = find_tokenizer_file(source, "tokenizer")
    if file is not None:
        return load_tokenizer(str(file))
    raise InputError(
        "there is no tokenizer of formulas",
        where="tokenizer",
        received=source,
        allowed="a tokenizer.json, a folder with one, or weights that have one, such as pp_formulanet_s",
        fix="copy tokenizer.json of the weights' folder, or of PaddleOCR's ppocr/utils/dict/unimernet_tokenizer, there",
    )
