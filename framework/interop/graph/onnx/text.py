"""ONNX operators of text. Arrays of text are numpy's: what reads or makes them runs on the host, never compiled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from framework.core.errors import ShapeError
from framework.interop.graph.onnx.ml import on_host
from framework.interop.graph.operator import Call, Table, registrar
from framework.interop.graph.values import Item, Value

OPERATORS: Table = {}
operator = registrar(OPERATORS)


def _texts(call: Call, x: Item) -> np.ndarray:
    array = on_host(call, x)
    if array.dtype.kind != "U":
        raise call.error("the operator takes text", ShapeError, received=array.dtype)
    return array


@operator("StringConcat", style="values", grows=True)
def _concat(call: Call, x: Item, y: Item) -> Item:
    return np.asarray(np.char.add(_texts(call, x), _texts(call, y)))


@operator("RegexFullMatch", style="values", grows=True)
def _full_match(call: Call, x: Item) -> Item:
    array, pattern = _texts(call, x), re.compile(call.required("pattern"))
    matches = [pattern.fullmatch(text) is not None for text in array.reshape(-1).tolist()]
    return np.asarray(matches, bool).reshape(array.shape)


@operator("StringSplit", style="values", grows=True)
def _split(call: Call, x: Item) -> tuple[Item, Item]:
    array, most = _texts(call, x), call.attr("maxsplit", -1)
    rows = [t.split(call.attr("delimiter") or None, most) for t in array.reshape(-1).tolist()]
    filled = _padded(rows, "").reshape(*array.shape, -1) if rows else np.zeros((*array.shape, 0), np.str_)
    return filled, np.asarray([len(row) for row in rows], np.int64).reshape(array.shape)


def _padded(rows: Sequence[Sequence[str]], filler: str) -> np.ndarray:
    longest = max(map(len, rows), default=0)
    return np.asarray([[*row, *[filler] * (longest - len(row))] for row in rows], np.str_).reshape(
        len(rows), longest
    )


@operator("StringNormalizer", style="values", grows=True)
def _normalize(call: Call, x: Item) -> Item:
    """Words [C] or [1, C] without the stop words, in one case."""
    array, case = _texts(call, x), call.attr("case_change_action", "NONE")
    exact, stops = bool(call.attr("is_case_sensitive", 0)), set(call.attr("stopwords", ()))
    stops = stops if exact else {word.lower() for word in stops}
    words = [w for w in array.reshape(-1).tolist() if (w if exact else w.lower()) not in stops]
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case, str)
    if not words and stops:
        words = [""]
    return np.asarray([change(w) for w in words], np.str_).reshape((1, -1) if array.ndim == 2 else -1)


@operator("com.microsoft.Tokenizer", style="values", grows=True)
def _tokenize(call: Call, x: Item) -> Item:
    """Texts [C] or [N, C] as their tokens [..., longest], filled up with `pad_value`."""
    array, least = _texts(call, x), call.attr("mincharnum", 1)
    expression, separators = call.attr("tokenexp"), tuple(call.attr("separators", ()))
    rows = []
    for text in array.reshape(-1).tolist():
        if expression:
            tokens = [match.group(0) for match in re.finditer(expression, text)]
        elif separators in ((), ("",)):
            tokens = list(text)
        else:
            tokens = re.split("|".join(f"(?:{s})" for s in separators), text)
        tokens = [token for token in tokens if len(token) >= least]
        rows.append(["\x02", *tokens, "\x03"] if call.attr("mark", 0) else tokens)
    return _padded(rows, str(call.attr("pad_value", "#"))).reshape(*array.shape, -1)


@operator("TfIdfVectorizer", style="values", grows=True)
def _count_grams(call: Call, x: Item) -> Item:
    """How often each n-gram of the pool stands in a row [C] or [N, C], or its weight, or both multiplied."""
    array = on_host(call, x)
    pool = call.attr("pool_strings") or call.attr("pool_int64s") or ()
    starts, columns = call.required("ngram_counts"), call.required("ngram_indexes")
    low, high, skips = (call.required(n) for n in ("min_gram_length", "max_gram_length", "max_skip_count"))
    grams: dict[tuple, int] = {}
    for n, (start, stop) in enumerate(zip(starts, (*starts[1:], len(pool)), strict=True), 1):
        for at in range(start, stop, n):
            grams[tuple(pool[at : at + n])] = len(grams)
    table = np.zeros((1 if array.ndim < 2 else len(array), max(columns) + 1), np.float32)
    weights, mode = (
        np.asarray(call.attr("weights", (1.0,) * len(columns)), np.float32),
        call.attr("mode", "TF"),
    )
    for row, words in zip(table, array.reshape(len(table), -1).tolist(), strict=True):
        for number, times in _grams(words, grams, (low, high), skips).items():
            weight = 1 if mode == "TF" else weights[number]
            row[columns[number]] = weight * (1 if mode == "IDF" else times)
    return Value.of(jnp.asarray(table if array.ndim > 1 else table[0]))


def _grams(words: list, grams: dict[tuple, int], lengths: tuple[int, int], skips: int) -> Counter[int]:
    counts: Counter[int] = Counter()
    for n in range(lengths[0], lengths[1] + 1):
        for step in range(1, 2 if n == 1 else skips + 2):
            for start in range(len(words) - step * (n - 1)):
                number = grams.get(tuple(words[start : start + step * n : step][:n]))
                if number is not None:
                    counts[number] += 1
    return counts
