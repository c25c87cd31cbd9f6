"""Scores of models that write."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np


class LanguageScores:
    """{"perplexity", "nats" a token, "bits_per_byte", "accuracy"} over all tokens that have a target.

    Perplexity is e to the nats a token and depends on the tokenizer; bits per byte, nats / (ln 2 * bytes), do not. They
    are left out where the data set does not tell the bytes of its texts.
    """

    higher_is_better = False

    def __init__(self) -> None:
        self.surprise = 0.0
        self.tokens = self.right = self.size = 0

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self.surprise -= float(outputs["log_likelihood"].sum(dtype=np.float64))
        self.tokens += int(outputs["tokens"].sum())
        self.right += int(outputs["right"].sum())
        if "text_bytes" in batch:
            self.size += int(batch["text_bytes"].sum())

    def result(self) -> dict[str, float]:
        nats = self.surprise / max(1, self.tokens)
        scores = {"perplexity": math.exp(min(nats, 700.0)), "nats": nats}
        if self.size:
            scores["bits_per_byte"] = self.surprise / (math.log(2) * self.size)
        return {**scores, "accuracy": self.right / max(1, self.tokens)}
