"""The formula network at run time: the image of a formula becomes LaTeX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from framework.inference import Engine
from framework.text.tokenizer import Tokenizer
from framework.vision.normalize import Normalize
from ocr.formulas.image import prepare_formula
from ocr.formulas.text import cut_tokens, decode_latex


@dataclass(frozen=True)
class FormulaOptions:
    """How a network sees a formula.

    Attributes:
        normalize: What the program does to the pixels.
        size_hw: Of the input; a formula without its margins is fitted into it.
    """

    normalize: Normalize
    size_hw: tuple[int, int] = (384, 384)


class FormulaText(NamedTuple):
    """LaTeX without its delimiters, and the mean probability of its tokens."""

    latex: str
    score: float


class FormulaRecognizer:
    """LaTeX of images of one formula each."""

    buckets = 1

    def __init__(self, engine: Engine, options: FormulaOptions, tokenizer: Tokenizer) -> None:
        self.engine, self.options, self.tokenizer = engine, options, tokenizer

    def __call__(self, image: np.ndarray) -> FormulaText:
        """image [H, W, 3] uint8 RGB. Raises: InputError, where it has no pixels."""
        found = self.engine({"image": prepare_formula(image, self.options.size_hw)[None]})
        tokens = cut_tokens(np.asarray(found["tokens"])[0])
        probabilities = np.asarray(found["probabilities"])[0, : max(len(tokens), 1)]
        return FormulaText(decode_latex(self.tokenizer, tokens.tolist()), float(probabilities.mean()))
