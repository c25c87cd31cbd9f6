"""How near the LaTeX that was read is to the right one."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from framework.text.tokenizer import Tokenizer
from ocr.formulas.cdm import CDMScores, can_draw
from ocr.formulas.latex import bleu, split_latex, tidy_latex
from ocr.formulas.text import cut_tokens, decode_latex
from ocr.text.scores import edit_distance

Arrays = Mapping[str, np.ndarray]
_NEAR = (1, 2, 3)


class FormulaScores:
    """Both sides without needless spaces: `exp_rate`, the share that is right; `exp_rate_1` to `_3`, with up to so many
    wrong characters; `edit_distance`, the mean over the longer length, 0 is best; `bleu`, 0 to 1, of LaTeX's tokens
    over all formulas. Where matplotlib is installed (the extra "formulas"), what `ocr.formulas.cdm.CDMScores` says too.

    Source: PaddleOCR ppocr/metrics/rec_metric.py (LaTeXOCRMetric), which takes BLEU of characters, formula by formula
    """

    higher_is_better = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._distances: list[int] = []
        self._shares: list[float] = []
        self._tokens: list[tuple[list[str], list[str]]] = []
        self._drawn = CDMScores() if can_draw() else None

    def update(self, outputs: Arrays, batch: Arrays) -> None:
        for tokens, wanted in zip(outputs["tokens"], batch["text"].tolist(), strict=True):
            self.add(decode_latex(self.tokenizer, cut_tokens(tokens).tolist()), wanted)

    def add(self, found: str, wanted: str) -> None:
        """Take in one formula."""
        found, wanted = tidy_latex(found), tidy_latex(wanted)
        if self._drawn is not None:
            self._drawn.add(found, wanted)
        distance = edit_distance(found, wanted)
        self._distances.append(distance)
        self._shares.append(distance / max(len(found), len(wanted), 1))
        self._tokens.append((split_latex(found), split_latex(wanted)))

    def result(self) -> dict[str, float]:
        count, distances = max(len(self._distances), 1), np.array(self._distances, int)
        rates = {f"exp_rate_{n}": int((distances <= n).sum()) / count for n in _NEAR}
        return {
            "exp_rate": int((distances == 0).sum()) / count,
            **rates,
            "edit_distance": sum(self._shares) / count,
            "bleu": bleu(self._tokens),
            **({} if self._drawn is None else self._drawn.result()),
        }
