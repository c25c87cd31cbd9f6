"""Which symbols a recogniser learns: texts as its classes, and the rows of a head that pretrained weights know."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np

from framework.core.errors import ConfigError
from framework.nn.layer import Layer
from ocr.text.characters import CharacterSet
from ocr.text.dictionary import Dictionary

log = logging.getLogger("oar")
_START, _END = 2, 3  # of the tokens of the guiding decoder; the symbol of class c is token c + 3


@dataclass(frozen=True)
class Alphabet:
    """The symbols of a task; see the settings of `TextRecognition` of the same names."""

    dictionary: Dictionary | None
    pretrained_dictionary: Dictionary | None = None
    max_text_length: int = 25
    lower_case: bool = False
    unknown: Literal["error", "skip", "drop"] = "error"

    @cached_property
    def characters(self) -> CharacterSet:
        """The symbols with their classes. Raises: ConfigError, where the task has no dictionary."""
        if self.dictionary is None:
            raise ConfigError(
                "a recogniser is trained and scored with a dictionary",
                where="task.characters",
                received="none",
                allowed="file, weights, symbols, blocks or labels",
                fix="-o task.characters.file=dict.txt",
            )
        return self.dictionary.read()

    @cached_property
    def pretrained(self) -> CharacterSet | None:
        """The symbols of the pretrained weights; None where they are the same."""
        return None if self.pretrained_dictionary is None else self.pretrained_dictionary.read()

    @cached_property
    def is_new(self) -> np.ndarray:
        """[num_classes] bool: the classes of symbols that the pretrained weights lack."""
        known = set() if self.pretrained is None else set(self.pretrained.symbols)
        return np.array([symbol not in known for symbol in self.characters.symbols])

    def written(self, text: str) -> str:
        """A label as the model is to write it."""
        return text.lower() if self.lower_case else text

    def encode(self, text: str) -> tuple[np.ndarray, bool]:
        """Classes of a text as the model writes it, and whether it counts in training."""
        known = all(symbol in self.characters.classes for symbol in text)
        target = self.characters.encode(text, skip_unknown=True)
        counts = 0 < len(target) <= self.max_text_length and (known or self.unknown == "drop")
        return target[: self.max_text_length], counts

    def begin_head(self, state: dict[str, np.ndarray], model: Layer) -> dict[str, np.ndarray]:
        """The weights of a model of the pretrained symbols as `model`, of these, takes them."""
        old, new = self.pretrained, self.characters
        if old is None:
            return state
        rows = {symbol: row for row, symbol in enumerate(old.symbols)}
        shared = [(row, rows[symbol]) for row, symbol in enumerate(new.symbols) if symbol in rows]
        log.info(
            "the head begins with the rows of %d of %d symbols of %s",
            len(shared),
            new.num_classes,
            old.source,
        )
        begun = {name: np.array(value) for name, value in model.state_dict().items()}
        to, source = (np.array(side) for side in zip(*shared, strict=True))
        for name, value in begun.items():
            weight = state[name]
            if weight.shape == value.shape:
                begun[name] = weight
                continue
            axis = next(n for n, (one, other) in enumerate(zip(value.shape, weight.shape)) if one != other)
            fresh, old_rows = np.moveaxis(value, axis, 0), np.moveaxis(weight, axis, 0)
            # Of a decoder or a head whose own tokens come first. The guiding decoder has a row behind the symbols, too.
            shift = min(value.shape[axis] - new.num_classes, _END)
            if shift:
                fresh[: shift + 1] = old_rows[: shift + 1]
            # A new symbol begins as the mean of all: with values of its own it would win against known ones.
            fresh[shift + 1 :] = old_rows[shift + 1 :].mean(axis=0)
            fresh[to + shift] = old_rows[source + shift]
        return begun


def guide_tokens(target: jax.Array, length: jax.Array) -> jax.Array:
    """Targets [N, L] as the guiding decoder takes them [N, L + 2]: start, characters, end, padding 0."""
    position = jnp.arange(target.shape[1] + 2)[None]
    shifted = jnp.pad(target, ((0, 0), (1, 1))) + _END
    inside = (position > 0) & (position <= length[:, None])
    tokens = jnp.where(inside, shifted, 0)
    tokens = jnp.where(position == 0, _START, tokens)
    return jnp.where(position == length[:, None] + 1, _END, tokens)
