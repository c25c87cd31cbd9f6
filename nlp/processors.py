"""From a text to the program and from its outputs to a result: what a task's `processor` gives to `nlp.predictor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from framework.core.errors import ConfigError, FormatError
from framework.core.transform import Transform, WindowTransform
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from framework.text.words import pieces
from framework.workflow.domain.samples import apply_transforms
from nlp.packing import first_tokens, pack_tokens
from nlp.results import Span, Tagged, TextLabels, labelled, marks_spans, tagged

Outputs = dict[str, np.ndarray]


@dataclass(frozen=True)
class ProcessorContext:
    """What an artifact, and who asks, tell a processor.

    Attributes:
        transforms: Make tokens of a text.
        labels: The names of the classes; none where there are no classes.
        limit: The most tokens that the program takes.
        top: How many classes or candidates a result holds at most.
    """

    transforms: tuple[Transform[TextSample], ...]
    labels: tuple[str, ...]
    limit: int
    top: int


class TextProcessor:
    """Base of the processors, as framework/workflow/runners/text_predictor.py asks for them: a text goes through whole.

    A subclass has `result`.

    Attributes:
        pairs: It takes pairs of texts only.
    """

    pairs: ClassVar[bool] = False

    def __init__(self, context: ProcessorContext) -> None:
        self.context = context

    def tokenize_sample(self, sample: TextSample) -> TextSample:
        """The sample with its tokens."""
        return apply_transforms(sample, self.context.transforms)

    def parts(self, sample: TextSample) -> Sequence[TextSample]:
        first, *rest = self.context.transforms or (None,)
        if not isinstance(first, WindowTransform):
            return [self.tokenize_sample(sample)]
        return [apply_transforms(part, rest) for part in first.split_windows(sample)]

    def pack(self, part: TextSample) -> dict[str, np.ndarray]:
        return pack_tokens(part)


def tokenizer_of(context: ProcessorContext) -> tuple[Tokenize, Tokenizer]:
    """The transform that makes tokens, and its tokenizer. Raises: ConfigError, where there is none."""
    for transform in context.transforms:
        if isinstance(transform, Tokenize):
            return transform, transform.source()
    raise ConfigError(
        "this task writes tokens, and no transform has a tokenizer",
        where="predict.transforms",
        received=", ".join(type(transform).__name__ for transform in context.transforms) or "no transforms",
        allowed="Tokenize",
    )


class ClassProcessor(TextProcessor):
    """Of "scores" [num_classes]. A blank text, such as an empty line of a file, has no class."""

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> TextLabels:
        blank = not (sample.text + (sample.pair or "")).strip()
        classes = () if blank else labelled(outputs[0]["scores"], self.context.labels, self.context.top)
        return TextLabels(sample.text, classes, sample.pair)


class TagProcessor(TextProcessor):
    """Of "tags" [T] and "scores" [T]. A text with more characters than the program takes tokens, the special ones left
    out, is read sentence by sentence."""

    def __init__(self, context: ProcessorContext) -> None:
        super().__init__(context)
        self.joined = marks_spans(context.labels)
        tokenizers = [one.source() for one in context.transforms if isinstance(one, Tokenize)]
        special = sum(item != "A" for tokenizer in tokenizers for item, _ in tokenizer.single)
        self.room = max(1, context.limit - special)

    def parts(self, sample: TextSample) -> Sequence[TextSample]:
        cut = pieces(sample.text, self.room)
        return [self.tokenize_sample(sample.replace(text=text)) for _, text in cut]

    def result(self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]) -> Tagged:
        all_spans: list[Span] = []
        start = 0
        for window, rows in zip(parts, outputs):
            spans = self._spans(window, rows)
            all_spans += [replace(span, start=span.start + start, end=span.end + start) for span in spans]
            start += len(window.text)
        return Tagged(sample.text, tuple(all_spans))

    def _spans(self, window: TextSample, outputs: Outputs) -> tuple[Span, ...]:
        assert window.word_ids is not None and window.offsets is not None
        words = window.word_ids
        first = np.flatnonzero(first_tokens(words))
        last = [np.flatnonzero(words == words[place])[-1] for place in first]
        offsets = np.stack([window.offsets[first, 0], window.offsets[last, 1]], axis=1)
        predicted, labels = outputs["tags"][first], self.context.labels
        if predicted.size and int(predicted.max()) >= len(labels):
            raise FormatError(
                "the program gives a tag that has no name",
                where="labels",
                received=f"tag {int(predicted.max())} of {len(labels)} labels",
                fix="the artifact's labels are those of another model: export it again",
            )
        tags = [labels[tag] for tag in predicted]
        return tagged(window.text, offsets, tags, outputs["scores"][first], self.joined)
