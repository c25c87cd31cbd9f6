"""Options of requests as arrays a row, so that one program serves a batch whose rows have different options."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

import jax
import numpy as np

from framework.core.errors import ConfigError
from nlp.generation.options import GenerationOptions

SUPPRESS, BEGIN_SUPPRESS, END, FORCED_END = 1, 2, 4, 8  # bits of `flags`
_NEVER = 2**30  # a length that no text reaches


class RowSettings(NamedTuple):
    """B rows' settings. Lengths count tokens of prompt and text; L, W are what the longest list takes."""

    key: jax.Array
    """[B, 2] uint32: of the request's random numbers"""
    do_sample: jax.Array
    """[B] bool"""
    temperature: jax.Array
    """[B] float32, as the next ones"""
    top_p: jax.Array
    min_p: jax.Array
    typical_p: jax.Array
    epsilon_cutoff: jax.Array
    eta_cutoff: jax.Array
    repetition_penalty: jax.Array
    presence_penalty: jax.Array
    frequency_penalty: jax.Array
    decay_factor: jax.Array
    top_k: jax.Array
    """[B] int32, as the next ones; 0: all"""
    min_retained: jax.Array
    """What no filter goes below"""
    ngram_size: jax.Array
    prompt_length: jax.Array
    min_length: jax.Array
    """The text does not end before"""
    limit: jax.Array
    """The text has no more tokens"""
    decay_start: jax.Array
    begin_length: jax.Array
    """Where `BEGIN_SUPPRESS` counts"""
    forced_bos: jax.Array
    """A token, or -1"""
    logprobs: jax.Array
    """How many alternatives are reported; -1: no logarithm at all"""
    flags: jax.Array
    """[B, V] uint8: bits SUPPRESS, BEGIN_SUPPRESS, END, FORCED_END of each token"""
    bias: jax.Array
    """[B, V] float32: added to scores"""
    prefixes: jax.Array
    """[B, W, L] int32: tokens before a biased one, the last first; -1 is any"""
    last_tokens: jax.Array
    """[B, W] int32: the biased ones; V where there is none"""
    sequence_bias: jax.Array
    """[B, W] float32"""


def token_sequences(
    options: GenerationOptions, words: Sequence[tuple[int, ...]]
) -> dict[tuple[int, ...], float]:
    """{tokens: bias of the last one}, of `sequence_bias` and bad words.

    Args:
        words: The bad words as tokens. One that ends the text is allowed, as transformers has it.
    """
    ends = {(token,) for token in options.end_tokens}
    return {**options.sequence_bias, **{word: -np.inf for word in words if word not in ends}}


def make_row(
    options: GenerationOptions,
    words: Sequence[tuple[int, ...]],
    prompt_length: int,
    limit: int,
    key: np.ndarray,
    vocab_size: int,
    table: tuple[int, int],
) -> RowSettings:
    """The settings of one row, without axis B; numpy arrays.

    Args:
        words: The bad words as tokens.
        limit: The most tokens of prompt and text.
        key: [2] uint32.
        table: (W, L); see `table_size`.

    Raises:
        ConfigError: a token of an option is not below `vocab_size`.
    """
    sampled = options.do_sample
    flags = np.zeros(vocab_size, np.uint8)
    bias = np.zeros(vocab_size, np.float32)
    marks = (
        (options.suppress_tokens, SUPPRESS, "suppress_tokens"),
        (options.begin_suppress_tokens, BEGIN_SUPPRESS, "begin_suppress_tokens"),
        (options.end_tokens, END, "eos_token_id"),
        (options.forced_eos_token_id, FORCED_END, "forced_eos_token_id"),
    )
    for tokens, bit, name in marks:
        _check_tokens(name, tokens, vocab_size)
        flags[list(tokens)] |= bit
    _check_tokens("logit_bias", options.logit_bias, vocab_size)
    for token, value in options.logit_bias.items():
        bias[token] += value
    prefixes = np.full((table[0], table[1]), -1, np.int32)
    last_tokens = np.full(table[0], vocab_size, np.int32)
    sequence_bias = np.zeros(table[0], np.float32)
    row = 0
    for tokens, value in token_sequences(options, words).items():
        _check_tokens("sequence_bias, bad_words", tokens, vocab_size)
        if len(tokens) == 1:
            bias[tokens[0]] += value
            continue
        prefixes[row, : len(tokens) - 1] = tokens[-2::-1]
        last_tokens[row], sequence_bias[row] = tokens[-1], value
        row += 1
    forced_bos = -1 if options.forced_bos_token_id is None else options.forced_bos_token_id
    _check_tokens("forced_bos_token_id", [max(forced_bos, 0)], vocab_size)
    decay = options.exponential_decay_length_penalty
    begin = prompt_length if prompt_length > 1 or forced_bos < 0 else prompt_length + 1
    # As transformers: the number of new tokens takes precedence.
    least = prompt_length + options.min_new_tokens if options.min_new_tokens else options.min_length
    number, integer = np.float32, np.int32
    arrays = dict(
        key=np.asarray(key, np.uint32),
        do_sample=np.bool_(sampled),
        temperature=number(options.temperature if sampled else 1.0),
        top_p=number(options.top_p if sampled else 1.0),
        min_p=number(options.min_p if sampled else 0.0),
        typical_p=number(options.typical_p if sampled else 1.0),
        epsilon_cutoff=number(
            options.epsilon_cutoff % 1.0 if sampled else 0.0
        ),  # 1 is off, as in transformers
        eta_cutoff=number(options.eta_cutoff % 1.0 if sampled else 0.0),
        repetition_penalty=number(options.repetition_penalty),
        presence_penalty=number(options.presence_penalty),
        frequency_penalty=number(options.frequency_penalty),
        decay_factor=number(decay[1] if decay else 1.0),
        top_k=integer(min(options.top_k, vocab_size) if sampled else 0),
        min_retained=integer(1 if options.num_beams == 1 else max(len(options.end_tokens) + 1, 2)),
        ngram_size=integer(min(options.no_repeat_ngram_size, _NEVER)),
        prompt_length=integer(prompt_length),
        min_length=integer(min(least, _NEVER)),
        limit=integer(limit),
        decay_start=integer(min(prompt_length + decay[0], _NEVER) if decay else _NEVER),
        begin_length=integer(begin),
        forced_bos=integer(forced_bos),
        logprobs=integer(-1 if options.logprobs is None else options.logprobs),
        flags=flags,
        bias=bias,
        prefixes=prefixes,
        last_tokens=last_tokens,
        sequence_bias=sequence_bias,
    )
    return RowSettings(**cast("dict[str, jax.Array]", arrays))  # of numpy, until a program takes them


def _check_tokens(name: str, tokens: Iterable[int], size: int) -> None:
    beyond = [token for token in tokens if token >= size]
    if beyond:
        raise ConfigError(
            "a token of an option of generation is not in the vocabulary",
            where=name,
            received=beyond[:10],
            allowed=f"numbers below {size}",
        )


def table_size(options: GenerationOptions, words: Sequence[tuple[int, ...]]) -> tuple[int, int]:
    """(W, L) that the sequences of a request need, each a power of two, so that programs are few."""
    longer = [len(tokens) - 1 for tokens in token_sequences(options, words) if len(tokens) > 1]
    return _power(len(longer)), _power(max(longer, default=0))


def _power(number: int) -> int:
    return 1 << max(number - 1, 0).bit_length()


def neutral_rows(rows: int, vocab_size: int, table: tuple[int, int]) -> RowSettings:
    """Settings of rows without a request: greedy and at their limit."""
    row = make_row(GenerationOptions(), (), 0, 0, np.zeros(2, np.uint32), vocab_size, table)
    return RowSettings(
        *cast("list[jax.Array]", [np.repeat(np.asarray(array)[None], rows, axis=0) for array in row])
    )


def fit_table(settings: RowSettings, row: RowSettings) -> tuple[RowSettings, RowSettings]:
    """The settings of a batch and those of a row, without axis B, with room for the longer sequences of either; the
    same objects where nothing changes."""
    wide, long = settings.prefixes.shape[-2:]
    table = max(wide, row.prefixes.shape[-2]), max(long, row.prefixes.shape[-1])
    return _widen(settings, table), _widen(row, table)


def _widen(settings: RowSettings, table: tuple[int, int]) -> RowSettings:
    wide, long = settings.prefixes.shape[-2:]
    if (wide, long) == table:
        return settings
    more, longer = table[0] - wide, table[1] - long
    rows = [(0, 0)] * (settings.prefixes.ndim - 2)
    padded = (
        np.pad(settings.prefixes, [*rows, (0, more), (0, longer)], constant_values=-1),
        np.pad(settings.last_tokens, [*rows, (0, more)], constant_values=settings.flags.shape[-1]),
        np.pad(settings.sequence_bias, [*rows, (0, more)]),
    )
    prefixes, last_tokens, sequence_bias = cast("list[jax.Array]", list(padded))
    return settings._replace(prefixes=prefixes, last_tokens=last_tokens, sequence_bias=sequence_bias)
