"""Run one exported model of texts: texts in, typed results out, in batches of a few lengths, from several threads."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from framework.core.errors import ConfigError, InputError
from framework.inference.engine import Engine
from framework.io.collate import PadToBucket
from framework.text.sample import TextSample

R = TypeVar("R")
Interpret = Callable[[dict[str, np.ndarray], TextSample], R]
_AT_ONCE = 1024  # texts that are sorted by length together
_ONE_SHOT = np.random.default_rng(0)  # transforms of inference draw nothing from it


class TextPredictor(Generic[R]):
    """Calls: a text gives one result, a list of texts a list; a pair of texts is a tuple of two.

    What a text gives does not depend on the other texts of its batch.

    Args:
        interpret: Of the outputs of one text, padded as it was, and the sample as the program saw it.
        transforms: What is done to a text before the program; they make its tokens.
        pack: Arrays of a sample, by the names of the program's inputs.
        padding: What pads these arrays, by name.
        buckets: The lengths that texts are padded to: for each one the program is compiled once.
        batch_size: Texts that run together.

    Raises:
        ConfigError: `batch_size` is below 1, or the buckets are no ascending lengths.
    """

    def __init__(
        self,
        engine: Engine,
        transforms: Sequence[Any],
        pack: Callable[[TextSample], dict[str, np.ndarray]],
        interpret: Interpret[R],
        padding: dict[str, Any],
        buckets: Sequence[int],
        batch_size: int = 32,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(
                "a batch needs a text", where="batch_size", received=batch_size, allowed="1 or more"
            )
        self.engine, self.transforms, self.pack, self.interpret = engine, tuple(transforms), pack, interpret
        self.padding, self.batch_size = padding, batch_size
        self.collate = PadToBucket(tuple(buckets), padding)

    def __call__(self, source: Any) -> Any:
        if isinstance(source, list):
            return list(self.results(source))
        return next(self.results([source]))

    def results(self, texts: Iterable[Any]) -> Iterator[R]:
        """One result for each text, in order. Memory does not grow with their number."""
        numbered = iter(texts)
        while chunk := list(itertools.islice(numbered, _AT_ONCE)):
            yield from self._chunk([self.sample(text) for text in chunk])

    def sample(self, source: Any) -> TextSample:
        """The text with its tokens. Raises: InputError, where it is no text."""
        pair = None
        if isinstance(source, tuple) and len(source) == 2:
            source, pair = source
        if not isinstance(source, str) or not isinstance(pair, str | None):
            raise InputError(
                "this is no text",
                received=type(source).__name__,
                allowed="str, or a tuple of two for a pair",
                fix="decode bytes first: data.decode('utf-8')" if isinstance(source, bytes) else None,
            )
        sample = TextSample(source, pair=pair)
        for transform in self.transforms:
            sample = transform(sample, _ONE_SHOT)
        return sample

    def _chunk(self, samples: list[TextSample]) -> list[R]:
        packs = [self.pack(sample) for sample in samples]
        lengths = [
            max((len(pack[name]) for name in self.padding if name in pack), default=0) for pack in packs
        ]
        order = sorted(range(len(packs)), key=lambda place: lengths[place])
        results: dict[int, R] = {}
        for first in range(0, len(order), self.batch_size):
            places = order[first : first + self.batch_size]
            for place, row in zip(places, self._run([packs[place] for place in places])):
                results[place] = self.interpret(row, samples[place])
        return [results[place] for place in range(len(samples))]

    def _run(self, packs: list[dict[str, np.ndarray]]) -> list[dict[str, np.ndarray]]:
        """Full batches and single texts are the two sizes that are compiled for a length."""
        count = len(packs)
        if 1 < count < self.batch_size:
            packs = packs + packs[-1:] * (self.batch_size - count)
        outputs = self.engine(self.collate(packs))
        return [{name: value[place] for name, value in outputs.items()} for place in range(count)]
