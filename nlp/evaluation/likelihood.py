"""How probable texts are to a language model: many requests in batches of a few lengths, one program for each length.

Reference: lm-evaluation-harness 0.4 (lm_eval/api/model.py, lm_eval/models/huggingface.py): what is cut, and where a
    continuation begins
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from framework import nn
from framework.core.errors import ConfigError, InputError
from framework.text.tokenizer import Tokenizer
from nlp.token_scores import TokenScores, token_scores
from zoo.layers.decoder import Decoder

if TYPE_CHECKING:
    from nlp.llm import LanguageModel

_SHORTEST = 16  # tokens of the first bucket
_LOGITS = 1 << 24  # values of logits that are there at a time
_TOP = (0, 1, 5, 20)  # numbers of the most probable tokens for which there are programs


class Continuation(NamedTuple):
    """Tokens to be scored, behind others that are not."""

    context: tuple[int, ...]
    """At least one"""
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class TextScore:
    """How probable a text is.

    Attributes:
        ids: Tokens that were scored.
        log_likelihoods: [T] float64: log p of each, in nats.
        greedy: Each is the most probable token.
        top: [T, K] int32: The most probable tokens of each place, the best first, and their log p [T, K] float64;
            None: not asked for.
    """

    ids: tuple[int, ...]
    log_likelihoods: np.ndarray
    greedy: bool
    top: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def log_likelihood(self) -> float:
        """Of the whole text."""
        return float(self.log_likelihoods.sum())

    @property
    def perplexity(self) -> float:
        """e to the nats a token; 1 of a text without tokens."""
        return math.exp(min(-self.log_likelihood / max(1, len(self.ids)), 700.0))


class Scorer:
    """Scores continuations by a decoder. Not for several threads at once.

    Args:
        max_length: Tokens of a context and its continuation; of one that is longer the end is taken. None: the model's.
        batch_size: Continuations that run together.

    Raises:
        ConfigError: `max_length` or `batch_size` is below 1.
    """

    def __init__(self, model: Decoder, max_length: int | None = None, batch_size: int = 8) -> None:
        self.max_length = model.size.longest_text if max_length is None else max_length
        self.batch_size = batch_size
        if min(self.max_length, batch_size) < 1:
            raise ConfigError(
                "there is no room for a token",
                where="Scorer",
                received=f"max_length {self.max_length}, batch_size {batch_size}",
                allowed="1 or more each",
            )
        self._graphdef, params, buffers = nn.split(model)
        self._state = (params, buffers)
        self._vocab_size = model.size.vocab_size
        self._run = jax.jit(self._score, static_argnums=(3, 4))

    def _score(self, state: tuple, ids: jax.Array, targets: jax.Array, chunks: int, top: int) -> TokenScores:
        hidden = nn.apply(self._graphdef, *state, None, ids, method="hidden")[0]

        def logits(states: jax.Array) -> jax.Array:
            return nn.apply(self._graphdef, *state, None, states, method="logits")[0]

        return token_scores(hidden, targets, logits, chunks, top)

    def score(self, requests: Sequence[Continuation], top: int = 0) -> list[TextScore]:
        """One for each, in order.

        Args:
            top: So many of the most probable tokens are told of each place. There are programs for 0, 1, 5 and all of
                20.

        Raises:
            InputError: a context is empty, a continuation has more than `max_length` tokens, or a token is not in the
                vocabulary.
        """
        for number, request in enumerate(requests):
            self._check(request, number)
        lengths = [min(len(one.context) + len(one.ids) - 1, self.max_length) for one in requests]
        order = sorted(range(len(requests)), key=lambda index: -lengths[index])
        scores: dict[int, TextScore] = {}
        for first in range(0, len(order), self.batch_size):
            rows = order[first : first + self.batch_size]
            scores |= self._run_batch({row: requests[row] for row in rows}, lengths[rows[0]], top)
        return [scores[index] for index in range(len(requests))]

    def _check(self, request: Continuation, number: int) -> None:
        if not request.context or len(request.ids) > self.max_length:
            raise InputError(
                "a continuation cannot be scored",
                where=f"request {number}",
                received=f"{len(request.context)} tokens of context, {len(request.ids)} behind them",
                allowed=f"1 or more, and at most {self.max_length}",
            )
        tokens = (*request.context, *request.ids)
        if min(tokens) < 0 or max(tokens) >= self._vocab_size:
            raise InputError(
                "a token is not in the vocabulary of the model",
                where=f"request {number}",
                received=f"{min(tokens)} to {max(tokens)}",
                allowed=f"0 to {self._vocab_size - 1}",
            )

    def _run_batch(self, requests: dict[int, Continuation], longest: int, top: int) -> dict[int, TextScore]:
        length = min(max(_SHORTEST, 1 << max(0, longest - 1).bit_length()), self.max_length)
        ids = np.zeros((self.batch_size, length), np.int32)
        targets = np.full((self.batch_size, length), -1, np.int32)
        ends: dict[int, int] = {}
        for row, (index, request) in enumerate(requests.items()):
            whole = (request.context + request.ids)[-(self.max_length + 1) :]
            ends[index] = end = len(whole) - 1
            ids[row, :end] = whole[:-1]
            targets[row, end - len(request.ids) : end] = request.ids
        chunks = max(1, -(-ids.size * self._vocab_size // _LOGITS))
        most = min(next(one for one in _TOP if one >= top), self._vocab_size)
        scores_of_rows = self._run(self._state, ids, targets, min(chunks, length), most)
        logs, right = np.asarray(scores_of_rows.log_likelihood), np.asarray(scores_of_rows.right)
        scores = {}
        for row, (index, request) in enumerate(requests.items()):
            span = slice(ends[index] - len(request.ids), ends[index])
            best = scores_of_rows.top
            if best is not None:
                tokens, top_logs = (np.asarray(one)[row, span, :top] for one in best)
                best = tokens, top_logs.astype(np.float64)
            likelihoods = logs[row, span].astype(np.float64)
            scores[index] = TextScore(request.ids, likelihoods, bool(right[row, span].all()), best)
        return scores


def first_token(tokenizer: Tokenizer) -> int:
    """What stands before a text that has no context: bos, else eos. Raises: InputError, where there is neither."""
    token = tokenizer.eos_id if tokenizer.bos_id is None else tokenizer.bos_id
    if token is None:
        raise InputError(
            "the tokenizer has no token that begins a text",
            where="tokenizer",
            fix='name one as "bos_token" or "eos_token" in tokenizer_config.json',
        )
    return token


def encode_text(tokenizer: Tokenizer, text: str, add_special: bool = True) -> tuple[int, ...]:
    """The tokens of a text; one that spells its bos itself gets no second one."""
    if add_special and tokenizer.bos_id is not None:
        bos = tokenizer.token_of(tokenizer.bos_id)
        add_special = not (bos and text.startswith(bos))
    return tuple(tokenizer.encode(text, add_special=add_special).ids.tolist())


def encode_pair(tokenizer: Tokenizer, context: str, continuation: str) -> Continuation:
    """A context and what goes on from it.

    White space at the end of the context belongs to the continuation, whose tokens are those of both together behind
    those of the context alone; an empty context is bos, or eos. Where a token reaches over the end of the context, so
    that nothing is left behind it, the continuation is divided by itself.
    """
    if not context:
        first, ids = first_token(tokenizer), encode_text(tokenizer, continuation, add_special=False)
        return Continuation((first,), ids[1:] if ids[:1] == (first,) else ids)
    bare = context.rstrip()
    whole = encode_text(tokenizer, context + continuation)
    before = encode_text(tokenizer, bare)
    if not before:  # white space alone
        return Continuation((first_token(tokenizer),), whole)
    ids = whole[len(before) :]
    if not ids and continuation:
        ids = encode_text(tokenizer, context[len(bare) :] + continuation, add_special=False)
    return Continuation(before, ids)


def model_parts(model: LanguageModel) -> tuple[Decoder, Tokenizer]:
    """The network and the tokenizer. Raises: InputError, where there is no tokenizer, or the model has an encoder."""
    if not isinstance(model.model, Decoder):
        raise InputError(
            "only decoders are measured",
            where=str(model.folder),
            received=type(model.model).__name__,
            allowed="a model that goes on with a text, such as LLaMA or Qwen",
        )
    if model.tokenizer is None:
        raise InputError(
            "texts cannot be scored without a tokenizer",
            where=str(model.folder),
            allowed="a folder with tokenizer.json or tokenizer.model",
        )
    return model.model, model.tokenizer


def score_text(
    model: LanguageModel, text: str, context: str = "", max_length: int | None = None
) -> TextScore:
    """How probable a text is behind a context; without one, behind bos or eos. Raises: InputError."""
    decoder, tokenizer = model_parts(model)
    return Scorer(decoder, max_length, 1).score([encode_pair(tokenizer, context, text)])[0]
