"""How well a model expects a text of any length: nats a token, perplexity, and bits a byte, which compares tokenizers.

Source: the rolling form of lm-evaluation-harness 0.4 (lm_eval/utils.py, get_rolling_token_windows with one token of
    context); the strided one of transformers' documentation, "Perplexity of fixed-length models"
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from framework.core.errors import ConfigError
from framework.text.tokenizer import Tokenizer
from nlp.evaluation.likelihood import Continuation, Scorer, encode_text, first_token

Form = Literal["rolling", "strided"]


@dataclass(frozen=True)
class Perplexity:
    """Of texts together.

    Attributes:
        log_likelihood: In nats.
        tokens, bytes, words: That were scored; words stand between white space.
    """

    log_likelihood: float
    tokens: int
    bytes: int
    words: int

    @property
    def nats(self) -> float:
        """A token"""
        return -self.log_likelihood / max(1, self.tokens)

    @property
    def bits_per_byte(self) -> float:
        return -self.log_likelihood / (math.log(2) * max(1, self.bytes))

    def to_dict(self) -> dict[str, float]:
        def raised(count: int) -> float:
            return math.exp(min(-self.log_likelihood / max(1, count), 700.0))

        return {
            "nats": self.nats,
            "perplexity": raised(self.tokens),
            "bits_per_byte": self.bits_per_byte,
            "byte_perplexity": raised(self.bytes),
            "word_perplexity": raised(self.words),
            "log_likelihood": self.log_likelihood,
            "tokens": self.tokens,
            "bytes": self.bytes,
            "words": self.words,
        }


def rolling_windows(ids: tuple[int, ...], first: int, length: int) -> list[Continuation]:
    """Windows that score `length` tokens each, none twice. Before the first of them stands `first`, before the next one
    the token before it; the last one, which is shorter, sees what fills its window up."""
    windows = []
    for start in range(0, len(ids), length):
        end = min(start + length, len(ids))
        context = ids[max(0, end - length - 1) : start] if start else (first,)
        windows.append(Continuation(context, ids[start:end]))
    return windows


def strided_windows(ids: tuple[int, ...], first: int, length: int, stride: int) -> list[Continuation]:
    """Windows of `length` tokens, the next `stride` behind: of each the tokens that the one before has not are scored.

    `first` stands before the text, where it does not begin with it.

    Raises:
        ConfigError: the stride is no step of 1 to `length` tokens.
    """
    if not 1 <= stride <= length:
        raise ConfigError(
            "a stride longer than the window leaves tokens out",
            where="stride",
            received=stride,
            allowed=f"1 to {length}",
        )
    whole = ids if ids[:1] == (first,) else (first, *ids)
    windows, scored = [], 1
    for start in range(0, len(whole), stride):
        end = min(start + length, len(whole))
        if end > scored:
            # One that begins where the last one ended sees the token before it, so that none is left out.
            windows.append(Continuation(whole[min(start, scored - 1) : scored], whole[scored:end]))
            scored = end
        if end == len(whole):
            break
    return windows


def measure_perplexity(
    scorer: Scorer,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    form: Form = "rolling",
    stride: int | None = None,
) -> Perplexity:
    """The perplexity of texts, each from its beginning.

    Args:
        form: "rolling": windows of `scorer.max_length` that do not overlap, as lm-eval measures; "strided": windows
            that do, so that each token has max_length - stride tokens before it, which costs more and is lower.
        stride: Of the second form; None: half the window.
    """
    total, tokens, size, words = 0.0, 0, 0, 0
    first, length = first_token(tokenizer), scorer.max_length
    for text in texts:
        ids = encode_text(tokenizer, text)
        if form == "strided":
            windows = strided_windows(ids, first, length, max(1, length // 2) if stride is None else stride)
        else:
            windows = rolling_windows(ids, first, length)
        for score in scorer.score(windows):
            total += score.log_likelihood
            tokens += len(score.ids)
        size += len(text.encode("utf-8", "surrogatepass"))
        words += len(re.split(r"\s+", text))
    return Perplexity(total, tokens, size, words)
