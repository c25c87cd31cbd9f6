"""The transform that hides tokens for a model to guess: what encoders are pre-trained with.

Papers: Devlin et al. 2019, https://arxiv.org/abs/1810.04805, section 3.1; Cui et al. 2019 (whole words),
https://arxiv.org/abs/1906.08101; Sun et al. 2019 (ERNIE 1.0: phrases and entities), https://arxiv.org/abs/1904.09223;
Joshi et al. 2020 (SpanBERT: spans of geometric length), https://arxiv.org/abs/1907.10529
Reference: create_masked_lm_predictions in create_pretraining_data.py of https://github.com/google-research/bert
Differs: [UNK] is neither hidden nor put in the place of another token, nor is any other special token; in a text whose
    words are all longer than the share of it the shortest word is hidden, where the reference hides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from framework.config.registry import register
from framework.core.errors import ConfigError, InputError
from framework.core.transform import Transform
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import check_vocabulary, load_tokenizer

_CONTINUES = "##"  # how WordPiece writes a token that goes on with a word


@register("transform")
@dataclass(frozen=True)
class MaskTokens(Transform[TextSample]):
    """Hides some tokens of the first text: most become the mask token, some another token, and the rest stay.

    What is hidden together is a unit. "tokens": each token. "words": the tokens of one word, which are those that a
    tokenizer wrote with "##", and those that belong to one word of the sample (`Tokenize.unit`, or words that the data
    set knows). "spans": the words of a phrase or an entity, where the sample has `spans`; else runs of words, whose
    number is drawn from a geometric distribution. A span becomes the mask token as a whole, or other tokens, or stays;
    of a word each token by itself.

    Attributes:
        tokenizer: As that of `Tokenize`, which comes before.
        share: Of the tokens that may be hidden, so many are, and one at least.
        max_positions: At most so many tokens are.
        masked, changed: Shares of the hidden tokens that become the mask token, and any other one of the vocabulary.
        span_end: The probability that a span ends behind a word.
        span_words: A span has at most so many words.

    Raises:
        ConfigError: the shares are none; at the first text, the tokenizer has no mask token.
        InputError: a text has no tokens yet.
    """

    tokenizer: str
    unit: Literal["tokens", "words", "spans"] = "tokens"
    share: float = 0.15
    max_positions: int = 20
    masked: float = 0.8
    changed: float = 0.1
    span_end: float = 0.2
    span_words: int = 10

    def __post_init__(self) -> None:
        shares = (self.share, self.masked, self.changed, self.span_end)
        if not (min(shares) >= 0 and self.share <= 1 and self.masked + self.changed <= 1) or not (
            0 < self.span_end <= 1 and min(self.max_positions, self.span_words) >= 1
        ):
            raise ConfigError(
                "tokens cannot be hidden so",
                where="MaskTokens",
                received=f"share {self.share}, masked {self.masked}, changed {self.changed}, span_end {self.span_end}, "
                f"max_positions {self.max_positions}, span_words {self.span_words}",
                allowed="shares from 0 to 1, masked and changed together up to 1, span_end above 0, numbers from 1",
            )

    def __call__(self, sample: TextSample, rng: np.random.Generator) -> TextSample:
        if sample.ids is None or sample.word_ids is None:
            raise InputError(
                "the text was not divided into tokens",
                where=sample.id,
                fix="put Tokenize before MaskTokens",
            )
        tokenizer = load_tokenizer(self.tokenizer)
        ids, vocabulary = sample.ids.copy(), _vocabulary(tokenizer)
        may = (sample.word_ids >= 0) & vocabulary.ordinary[ids]
        count = min(self.max_positions, max(1, round(self.share * int(may.sum()))))
        units = self._choose_units(sample, may, vocabulary, count, rng)
        lengths = [len(unit) for unit in units]
        hidden = np.concatenate([np.empty(0, np.int32), *units]).astype(np.int32)
        draws = (
            np.repeat(rng.random(len(units)), lengths) if self.unit == "spans" else rng.random(len(hidden))
        )
        others = rng.choice(vocabulary.numbers, len(hidden))
        changed = np.where(draws < self.masked + self.changed, others, ids[hidden])
        ids[hidden] = np.where(draws < self.masked, tokenizer.mask_id, changed)
        positions = np.sort(hidden)
        return sample.replace(ids=ids, positions=positions, target_ids=sample.ids[positions])

    def check(self, model: object) -> None:
        """As `Tokenize.check`: other tokens are drawn from this vocabulary."""
        check_vocabulary(self.tokenizer, model, "MaskTokens.tokenizer")

    def _choose_units(
        self,
        sample: TextSample,
        may: np.ndarray,
        vocabulary: _Vocabulary,
        count: int,
        rng: np.random.Generator,
    ) -> list[np.ndarray]:
        """Places of the tokens of each unit that is hidden: `count` together or a few less, one unit at least."""
        assert sample.ids is not None and sample.word_ids is not None and sample.offsets is not None
        positions = np.flatnonzero(may)
        if self.unit == "tokens" or not len(positions):
            units = list(positions[:, None])
        else:
            goes_on = vocabulary.continues[sample.ids[positions]] | (
                np.diff(sample.word_ids[positions], prepend=-1) == 0
            )
            # What is not hidden, such as [UNK], divides; so does nothing else between two places.
            goes_on &= np.diff(positions, prepend=-2) == 1
            units = np.split(positions, np.flatnonzero(~goes_on)[1:])
        if self.unit == "spans" and sample.spans is not None:
            units = _merge_spans(units, sample.offsets, sample.spans)
        runs = self.unit == "spans" and sample.spans is None
        selection = list(self._draw_runs(units, count, rng) if runs else _draw_units(units, count, rng))
        if not selection and units and len(shortest := min(units, key=len)) <= self.max_positions:
            return [shortest]
        return selection

    def _draw_runs(
        self, words: list[np.ndarray], count: int, rng: np.random.Generator
    ) -> Iterator[np.ndarray]:
        """Runs of words, each as one unit, `count` tokens together, or a few less."""
        free, left = np.ones(len(words), bool), count
        for first in rng.permutation(len(words)):
            if not left:
                return
            length = min(int(rng.geometric(self.span_end)), self.span_words)
            run: list[np.ndarray] = []
            for word in range(first, min(first + length, len(words))):
                adjoins = not run or words[word][0] == run[-1][-1] + 1
                if not free[word] or not adjoins or len(words[word]) > left:
                    break
                run.append(words[word])
                free[word] = False
                left -= len(words[word])
            if run:
                yield np.concatenate(run)


def _draw_units(units: list[np.ndarray], count: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Units in random order, `count` tokens together, or a few less."""
    left = count
    for index in rng.permutation(len(units)):
        if not left:
            return
        if len(units[index]) <= left:
            left -= len(units[index])
            yield units[index]


def _merge_spans(
    units: list[np.ndarray], offsets: np.ndarray, spans: Iterable[tuple[int, int]]
) -> list[np.ndarray]:
    """Words that a span touches as one unit, the others as they are."""
    owner = [-1] * len(units)
    bounds = [(offsets[unit[0], 0], offsets[unit[-1], 1]) for unit in units]
    for number, (start, end) in enumerate(spans):
        for index, (first, last) in enumerate(bounds):
            if first < end and last > start and owner[index] < 0:
                owner[index] = number
    joined: list[np.ndarray] = []
    before = -1
    for unit, span in zip(units, owner):
        if span >= 0 and span == before:
            joined[-1] = np.concatenate([joined[-1], unit])
        else:
            joined.append(unit)
        before = span
    return joined


@dataclass(frozen=True, eq=False)
class _Vocabulary:
    """[V] bool: tokens that are not special, and those that go on with a word; the numbers of the first."""

    ordinary: np.ndarray
    continues: np.ndarray
    numbers: np.ndarray


@lru_cache(maxsize=16)
def _vocabulary(tokenizer: Tokenizer) -> _Vocabulary:
    tokens = [tokenizer.token_of(number) for number in range(tokenizer.vocab_size)]
    special = set(tokenizer.roles.values())
    ordinary = np.array([token is not None and token not in special for token in tokens])
    continues = np.array([token is not None and token.startswith(_CONTINUES) for token in tokens])
    return _Vocabulary(ordinary, continues, np.flatnonzero(ordinary).astype(np.int32))
