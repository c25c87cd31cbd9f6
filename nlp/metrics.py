"""Scores of taggers, of classifiers of texts and of translations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from framework.config import register
from framework.core.errors import MissingExtraError
from framework.engine.details import ClassReport, Details, class_table
from framework.text.spans import Span, spans, split_tag
from framework.text.transforms import load_tokenizer


@register("metric")
@dataclass(frozen=True)
class TagAccuracy:
    """The share of tokens whose tag is right: {"accuracy"}."""

    def start(self, labels: tuple[str, ...]) -> _TagAccuracy:
        return _TagAccuracy(labels)


class _TagAccuracy:
    higher_is_better = True

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.right = self.count = 0
        self._report = ClassReport(labels)

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        labelled = batch["mask"] & (batch["tags"] >= 0)
        self.right += int((outputs["tags"] == batch["tags"])[labelled].sum())
        self.count += int(labelled.sum())
        self._report.count(batch["tags"][labelled], outputs["tags"][labelled])

    def result(self) -> dict[str, float]:
        return {"accuracy": self.right / max(1, self.count)}

    def details(self) -> Details:
        """Of each tag, in tokens."""
        return self._report.details()


@register("metric")
@dataclass(frozen=True)
class MaskedPerplexity:
    """How well hidden tokens are guessed: {"perplexity", "masked_accuracy"}, over all of them.

    The perplexity is e to the mean of -log p of what stood there.
    """

    def start(self, labels: tuple[str, ...]) -> _MaskedPerplexity:
        return _MaskedPerplexity()


class _MaskedPerplexity:
    higher_is_better = False

    def __init__(self) -> None:
        self.surprise = 0.0
        self.right = self.count = 0

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        hidden = batch["words"] >= 0
        self.surprise -= float(outputs["log_likelihood"][hidden].sum(dtype=np.float64))
        self.right += int((outputs["candidates"][..., 0] == batch["words"])[hidden].sum())
        self.count += int(hidden.sum())

    def result(self) -> dict[str, float]:
        count = max(1, self.count)
        return {"perplexity": float(np.exp(self.surprise / count)), "masked_accuracy": self.right / count}


@register("metric")
@dataclass(frozen=True)
class SpanF1:
    """Precision, recall and F1 of whole spans, by `framework.text.spans`: {"f1", "precision", "recall"}, over all
    classes.

    With `labelled` False only where spans begin and end counts, such as the words that a segmenter finds: {"span_f1",
    "span_precision", "span_recall"}.

    Source: seqeval's default mode, which is conlleval's; micro average.
    """

    labelled: bool = True

    def start(self, labels: tuple[str, ...]) -> _SpanF1:
        return _LabelledSpanF1(labels) if self.labelled else _SpanF1(labels)


class _SpanF1:
    """Where spans begin and end; their labels do not count."""

    higher_is_better = True
    prefix = "span_"

    def __init__(self, labels: tuple[str, ...]) -> None:
        self.labels = labels
        self.right: Counter[str] = Counter()  # by label
        self.predicted: Counter[str] = Counter()
        self.expected: Counter[str] = Counter()

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        labelled = batch["mask"] & (batch["tags"] >= 0)
        for tags, truth, real in zip(outputs["tags"], batch["tags"], labelled):
            predicted, expected = self._spans(tags[real]), self._spans(truth[real])
            self.right.update(label for *_, label in predicted & expected)
            self.predicted.update(label for *_, label in predicted)
            self.expected.update(label for *_, label in expected)

    def _spans(self, tags: np.ndarray) -> set[Span]:
        return {(start, end, "") for start, end, _ in spans([self.labels[tag] for tag in tags])}

    def result(self) -> dict[str, float]:
        right, predicted, expected = self.right.total(), self.predicted.total(), self.expected.total()
        precision, recall = right / max(1, predicted), right / max(1, expected)
        f1 = 2 * precision * recall / max(1e-12, precision + recall)
        return {
            f"{self.prefix}f1": f1,
            f"{self.prefix}precision": precision,
            f"{self.prefix}recall": recall,
        }


class _LabelledSpanF1(_SpanF1):
    """A span is right where its label is, too."""

    prefix = ""

    def _spans(self, tags: np.ndarray) -> set[Span]:
        return set(spans([self.labels[tag] for tag in tags]))

    def details(self) -> Details:
        """Of each label, in spans."""
        tags = [split_tag(tag) or ("", tag) for tag in self.labels if tag != "O"]
        names = list(dict.fromkeys(label for _, label in tags))
        right, predicted, expected = (
            np.array([counts[name] for name in names], np.int64)
            for counts in (self.right, self.predicted, self.expected)
        )
        return Details(class_table([name or "span" for name in names], right, expected, predicted))


class LabelCollector:
    """Collects an output [N, ...] and the classes over an evaluation; `compute` makes the scores of both at its end."""

    higher_is_better = True

    def __init__(self, output: str, compute: Callable[[np.ndarray, np.ndarray], dict[str, float]]) -> None:
        self.output, self.compute = output, compute
        self.predicted: list[np.ndarray] = []
        self.expected: list[np.ndarray] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self.predicted.append(np.asarray(outputs[self.output]))
        self.expected.append(np.asarray(batch["label"]))

    def result(self) -> dict[str, float]:
        if not self.predicted:
            return self.compute(np.zeros(0), np.zeros(0, int))
        return self.compute(np.concatenate(self.predicted), np.concatenate(self.expected))


def class_counts(
    predicted: np.ndarray, expected: np.ndarray, kinds: np.ndarray
) -> list[tuple[int, int, int]]:
    """Of each class: how many texts [M] are rightly found to be of it, how many are found, and how many wanted."""
    return [
        (
            np.sum((predicted == kind) & (expected == kind)),
            np.sum(predicted == kind),
            np.sum(expected == kind),
        )
        for kind in kinds
    ]


@register("metric")
@dataclass(frozen=True)
class TextAccuracy:
    """The share of texts whose class is right, and the mean F1 of the classes: {"accuracy", "macro_f1"}.

    A class that is neither found nor wanted is left out of the mean.
    """

    def start(self, labels: tuple[str, ...]) -> LabelCollector:
        return LabelCollector("scores", self._compute)

    @staticmethod
    def _compute(scores: np.ndarray, expected: np.ndarray) -> dict[str, float]:
        if not len(expected):
            return {"accuracy": 0.0, "macro_f1": 0.0}
        predicted = scores.argmax(axis=-1)
        counts = class_counts(predicted, expected, np.union1d(predicted, expected))
        of_class = [2 * right / (own + known) for right, own, known in counts]
        return {"accuracy": float((predicted == expected).mean()), "macro_f1": float(np.mean(of_class))}


@register("metric")
@dataclass(frozen=True)
class BLEU:
    """How many runs of one to four words are those of the reference: {"bleu"}, 0 to 100, by sacrebleu, as texts are.

    References are what `tokenizer` makes of their tokens again: the very texts with "bpe" of `Tokenizer.train`, as long
    as `max_length` cut nothing off; other kinds change spaces or letters.

    Attributes:
        tokenizer: That of the translations, as in Tokenize.
        words: sacrebleu's way to words: "13a" for languages with spaces, "zh" for Chinese, "char" for characters.

    Source: Papineni et al. 2002; Post 2018 (arXiv 1804.08771).
    """

    tokenizer: str
    words: Literal["13a", "intl", "zh", "char"] = "13a"

    def start(self, labels: tuple[str, ...]) -> _TranslationScore:
        try:
            from sacrebleu.metrics.bleu import BLEU as Score
        except ImportError as error:
            raise MissingExtraError("sacrebleu", "nlp", "BLEU, the score of translations") from error
        return _TranslationScore("bleu", Score(tokenize=self.words), self.tokenizer)


@register("metric")
@dataclass(frozen=True)
class ChrF:
    """How many runs of one to six characters are those of the reference: {"chrf"}, 0 to 100, by sacrebleu, as texts
    are. It needs no words, so it serves languages without spaces and with many endings; references are those of `BLEU`.

    Attributes:
        tokenizer: That of the translations, as in Tokenize.
        word_order: 2 counts runs of one and two words too, which is chrF++.

    Source: Popović 2015 (chrF), 2017 (chrF++).
    """

    tokenizer: str
    word_order: Literal[0, 1, 2] = 0

    def start(self, labels: tuple[str, ...]) -> _TranslationScore:
        try:
            from sacrebleu.metrics.chrf import CHRF as Score
        except ImportError as error:
            raise MissingExtraError("sacrebleu", "nlp", "chrF, the score of translations") from error
        return _TranslationScore("chrf", Score(word_order=self.word_order), self.tokenizer)


class _CorpusScore(Protocol):
    """A score of sacrebleu, of texts and lists of as many references."""

    def corpus_score(self, hypotheses: Sequence[str], references: list[list[str]]) -> _Scored: ...


class _Scored(Protocol):
    @property
    def score(self) -> float: ...


class _TranslationScore:
    higher_is_better = True

    def __init__(self, name: str, score: _CorpusScore, tokenizer: str) -> None:
        self.name, self.score = name, score
        self.tokenizer = load_tokenizer(tokenizer)
        self.predicted: list[str] = []
        self.expected: list[str] = []

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self.predicted += [self.tokenizer.decode(ids) for ids in outputs["ids"]]
        self.expected += [self.tokenizer.decode(ids[ids >= 0]) for ids in batch["next_ids"]]

    def result(self) -> dict[str, float]:
        if not self.predicted:
            return {self.name: 0.0}
        return {self.name: self.score.corpus_score(self.predicted, [self.expected]).score}


@register("metric")
@dataclass(frozen=True)
class Perplexity:
    """e to the mean cross-entropy of the reference's tokens, each given those before it: {"perplexity"}."""

    def start(self, labels: tuple[str, ...]) -> _Perplexity:
        return _Perplexity()


class _Perplexity:
    higher_is_better = False

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def update(self, outputs: Mapping[str, np.ndarray], batch: Mapping[str, np.ndarray]) -> None:
        self.total += float(outputs["losses"].sum(dtype=np.float64))
        self.count += int((batch["next_ids"] >= 0).sum())

    def result(self) -> dict[str, float]:
        return {"perplexity": float(np.exp(min(700.0, self.total / max(1, self.count))))}
