"""ONNX's Cast between numbers and text, on the host."""

from __future__ import annotations

import re

import numpy as np

from framework.core.errors import InputError
from framework.interop.graph.operator import Call
from framework.interop.graph.values import Item

_WHOLE = re.compile(r"\s*([+-]?\d+)")


def format_numbers(call: Call, x: Item) -> np.ndarray:
    """Numbers as text: 8 digits of a float, 1 and 0 for true and false."""
    array = call.static(x, "the numbers to be written as text")
    if array.dtype.kind in "biu":
        return array.astype(np.int64 if array.dtype.kind == "b" else array.dtype).astype(np.str_)
    texts = [f"{number:.8g}" for number in array.astype(np.float64).ravel().tolist()]
    names = {"nan": "NaN", "inf": "INF", "-inf": "-INF"}
    return np.asarray([names.get(text, text) for text in texts], np.str_).reshape(array.shape)


def parse_numbers(call: Call, x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Text as numbers; of a whole number what stands at the beginning. Raises: InputError, where there is none."""
    is_whole = dtype.kind not in "fV"
    numbers: list[float] = []
    for text in x.ravel().tolist():
        try:
            if not is_whole:
                numbers.append(float(text))
            elif match := _WHOLE.match(text):
                numbers.append(int(match.group(1)))
            else:
                raise ValueError
        except ValueError:
            raise call.error(
                "this text is no number", InputError, received=repr(text[:50]), fix=None
            ) from None
    return np.asarray(numbers, np.int64 if is_whole else np.float64).reshape(x.shape).astype(dtype)
