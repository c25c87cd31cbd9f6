"""From a text to the program and from its outputs to a result: what a task's `processor` gives to `nlp.predictor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from framework.core.errors import ConfigError, FormatError
from framework.core.transform import WindowTransform
from framework.text.sample import TextSample
from framework.text.tokenizer import Tokenizer
from framework.text.transforms import Tokenize
from framework.text.words import sentence_ends
from framework.workflow.domain.samples import apply_transforms
from nlp.packing import count_left_out, count_tokens, first_tokens, pack_tokens
from nlp.results import Span, Tagged, TextLabels, labelled, marks_spans, tagged

Outputs = dict[str, np.ndarray]
_UNLIMITED = 1 << 30


@dataclass(frozen=True)
class ProcessorContext:
    """What an artifact, and who asks, tell a processor.

    Attributes:
        transforms: Make tokens of a text.
        labels: The names of the classes; none where there are no classes.
        limit: The most tokens that the program takes.
        top: How many classes or candidates a result holds at most.
    """

    transforms: tuple[Any, ...]
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
    """Of "scores" [num_classes]. A blank text, such as an empty line of a file, has no class.

    Args:
        threshold: Classes of a lower probability are none of the text.
    """

    def __init__(self, context: ProcessorContext, threshold: float = 0.0) -> None:
        super().__init__(context)
        self.threshold = threshold

    def result(
        self, sample: TextSample, parts: Sequence[TextSample], outputs: Sequence[Outputs]
    ) -> TextLabels:
        blank = not (sample.text + (sample.pair or "")).strip()
        best = () if blank else labelled(outputs[0]["scores"], self.context.labels, self.context.top)
        classes = tuple(label for label in best if label.score >= self.threshold)
        return TextLabels(sample.text, classes, sample.pair, count_tokens(parts), count_left_out(parts))


class TagProcessor(TextProcessor):
    """Of "tags" [T] and "scores" [T]. A text goes through whole, as in training; one of more tokens than the program
    takes is read sentence by sentence, and a sentence that is too long itself is divided at spaces, or anywhere where
    it has none."""

    def __init__(self, context: ProcessorContext) -> None:
        super().__init__(context)
        self.joined = marks_spans(context.labels)
        self.limit = min([context.limit, *filter(None, map(_most_tokens, context.transforms))])
        self._whole = tuple(
            one if _most_tokens(one) is None else replace(one, max_length=_UNLIMITED)
            for one in context.transforms
        )

    def parts(self, sample: TextSample) -> Sequence[TextSample]:
        return [self.tokenize_sample(sample.replace(text=text)) for text in self._cut(sample.text)]

    def _cut(self, text: str) -> list[str]:
        if self._fits(text):
            return [text]
        texts, start = [], 0
        for end in sentence_ends(text):
            while start < end:
                size = end - start
                while not self._fits(text[start : start + size]):
                    size = self._shorten(text[start : start + size])
                texts.append(text[start : start + size])
                start += size
        return texts

    def _fits(self, text: str) -> bool:
        return len(text) < 2 or len(self._starts(text)) <= self.limit

    def _shorten(self, text: str) -> int:
        """How many characters of a text that is too long to take: up to the first that has no room, a special token at
        the end taking one as well, and there up to the last space."""
        starts = self._starts(text)
        most = min(max(1, starts[max(0, self.limit - 1)]), len(text) - 1)
        return text.rfind(" ", 0, most) + 1 or most

    def _starts(self, text: str) -> list[int]:
        """Where each token of a text begins, special ones too; none of transforms that make none."""
        offsets = apply_transforms(TextSample(text), self._whole).offsets
        return [] if offsets is None else offsets[:, 0].tolist()

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


def _most_tokens(transform: object) -> int | None:
    """How many tokens a transform makes at most; None of one that cuts nothing."""
    most = getattr(transform, "max_length", None)
    return most if isinstance(most, int) else None
