"""Run one exported model of texts: texts in, typed results out, in batches of a few lengths, from several threads."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np

from framework.core.errors import ConfigError, InputError, OarError
from framework.inference.engine import Engine
from framework.io.collate import PadToBucket
from framework.text.sample import TextSample
from framework.workflow.domain.predictor import LanguagePredictor, Text
from framework.workflow.domain.result import TextResult
from framework.workflow.runners.batches import Batches

R = TypeVar("R", bound=TextResult)
R_co = TypeVar("R_co", covariant=True)
_AT_ONCE = 256  # texts whose parts share batches


class TextProcessor(Protocol[R_co]):
    """What goes from a text to the program, and from its outputs to a result. Safe to call from several threads."""

    @property
    def pairs(self) -> bool:
        """Whether it takes pairs of texts only."""
        ...

    def parts(self, sample: TextSample) -> Sequence[TextSample]:
        """What goes through the program for a text, with tokens: the text itself, or pieces of one that is too long."""
        ...

    def pack(self, part: TextSample) -> dict[str, np.ndarray]:
        """Arrays by name; those that are no inputs of the program are left out."""
        ...

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[dict[str, np.ndarray]]
    ) -> R_co:
        """Of the text, its parts and the outputs of each, padded as it was."""
        ...


class TextPredictor(LanguagePredictor[R]):
    """A text gives one result, a list of texts a list; a pair of texts is a tuple of two.

    What a text gives does not depend on the other texts of its batch.

    Args:
        processor: Makes of a text what the program takes, and results of what it gives.
        padding: What pads the arrays of the program's inputs, by name; an input that it does not name is not padded.
        buckets: The lengths that texts are padded to: for each one the program is compiled once.
        batch_size: Texts, or parts of them, that run together.

    Raises:
        ConfigError: `batch_size` is below 1, or the buckets are no ascending lengths.
    """

    def __init__(
        self,
        engine: Engine,
        processor: TextProcessor[R],
        padding: Mapping[str, float],
        buckets: Sequence[int],
        batch_size: int = 32,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(
                "a batch needs a text", where="batch_size", received=batch_size, allowed="1 or more"
            )
        self.engine, self.processor, self.batch_size = engine, processor, batch_size
        self.padding = {name: value for name, value in padding.items() if name in engine.inputs}
        self._batches = Batches(engine, batch_size, PadToBucket(tuple(buckets), self.padding))

    @property
    def pairs(self) -> bool:
        return self.processor.pairs

    def count_tokens(self, text: Text) -> int:
        samples = self.processor.parts(text_sample(text))
        return sum(0 if sample.ids is None else len(sample.ids) for sample in samples)

    def predict_stream(self, items: Iterable[Text]) -> Iterator[R]:
        for attempt in self.predict_attempts(items):
            if isinstance(attempt, OarError):
                raise attempt
            yield attempt

    def predict_attempts(self, texts: Iterable[Text]) -> Iterator[R | OarError]:
        waiting = iter(texts)
        while together := list(itertools.islice(waiting, _AT_ONCE)):
            cut = [self._cut(text) for text in together]
            windows = [part for one in cut if not isinstance(one, OarError) for part in one[1]]
            outputs = iter(self._outputs(windows))
            for one in cut:
                if isinstance(one, OarError):
                    yield one
                else:
                    yield self.processor.result(*one, [next(outputs) for _ in one[1]])

    def _cut(self, text: Text) -> tuple[TextSample, Sequence[TextSample]] | OarError:
        try:
            sample = text_sample(text)
            return sample, self.processor.parts(sample)
        except OarError as error:
            return error

    def _outputs(self, windows: Sequence[TextSample]) -> list[dict[str, np.ndarray]]:
        """What the program gives for each part, parts of about one length together."""
        packs = [
            {name: value for name, value in self.processor.pack(part).items() if name in self.engine.inputs}
            for part in windows
        ]
        lengths = [
            max((len(pack[name]) for name in self.padding if name in pack), default=0) for pack in packs
        ]
        order = sorted(range(len(packs)), key=lambda place: lengths[place])
        outputs: dict[int, dict[str, np.ndarray]] = {}
        for first in range(0, len(order), self.batch_size):
            batch = order[first : first + self.batch_size]
            outputs |= zip(batch, self._batches.run([packs[place] for place in batch]))
        return [outputs[place] for place in range(len(windows))]


def text_sample(source: object) -> TextSample:
    """A text, or a tuple of two, as a sample. Raises: InputError, where it is neither."""
    pair = None
    if isinstance(source, tuple) and len(source) == 2:
        source, pair = source
    if not isinstance(source, str) or not isinstance(pair, str | None):
        raise InputError(
            "an input must be text",
            received=type(source).__name__,
            allowed="str, or a tuple of two for a pair",
            fix="decode bytes first: data.decode('utf-8')" if isinstance(source, bytes) else None,
        )
    return TextSample(source, pair=pair)
