"""`predictor(...)`: the short way in to models of texts.

from nlp import predictor

tag = predictor("lexical_analysis")
print(tag("今天天气很好。").words)
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np

from framework.config import Kind, bind
from framework.core.errors import InputError
from framework.export import Artifact
from framework.export.artifact import restored
from framework.inference import engine_of
from framework.inference.cache import ROOT
from framework.inference.text_predictor import TextPredictor
from framework.text.sample import TextSample
from framework.text.words import pieces
from nlp.results import Span, Tagged, TextLabels, labelled, marks_spans, tagged
from nlp.tasks import TokenClassification, first_tokens, packed
from zoo.api import find_artifact

CONFIGS = ROOT / "configs" / "nlp"
PACKAGES = ("nlp", "zoo", "framework")
_TOGETHER = 256  # texts whose pieces share batches


class Named(NamedTuple):
    """A task by its name: the config that answers it, and what is done with the answer."""

    config: str
    view: Callable[[Any], Any]


def _itself(result: Any) -> Any:
    return result


def _words(result: Tagged) -> tuple[str, ...]:
    return result.words


def _pairs(result: Tagged) -> tuple[tuple[str, str], ...]:
    return tuple((span.text, span.label) for span in result.spans)


# Names of PaddleNLP's Taskflow, and what they answer here.
TASKS = {
    "lexical_analysis": Named("bigru_crf_words_zh", _itself),
    "word_segmentation": Named("bigru_crf_words_zh", _words),
    "pos_tagging": Named("bigru_crf_words_zh", _pairs),
    "pos_tagging_en": Named("bigru_crf_pos_en", _pairs),
    "intent": Named("text_cnn_snips", _itself),
}


class TextAnalyzer:
    """Made by `predictor`. A call takes a text, a pair of texts as a tuple, or a list of them, which gives a list.

    Safe to call from several threads.

    Args:
        limit: A text with more characters is read in pieces, sentence by sentence; None: what is too long is cut off.
    """

    def __init__(self, model: TextPredictor[Any], view: Callable[[Any], Any], limit: int | None) -> None:
        self.model, self.view, self.limit = model, view, limit

    def __call__(self, source: Any) -> Any:
        if isinstance(source, list):
            return list(self.results(source))
        return next(self.results([source]))

    def results(self, texts: Iterable[Any]) -> Iterator[Any]:
        """One result for each text, in order."""
        return (self.view(result) for result in self.texts(texts))

    def texts(self, texts: Iterable[Any]) -> Iterator[Any]:
        """`results` as Tagged or TextLabels, whatever the task's name makes of them."""
        if self.limit is None:
            yield from self.model.results(texts)
            return
        waiting = iter(texts)
        while together := list(itertools.islice(waiting, _TOGETHER)):
            cut = [pieces(text, self.limit) if isinstance(text, str) else [(0, text)] for text in together]
            results = self.model.results(part for parts in cut for _, part in parts)
            for text, parts in zip(together, cut):
                found: list[Span] = []
                for (start, _), result in zip(parts, results):
                    found += [replace(s, start=s.start + start, end=s.end + start) for s in result.spans]
                yield Tagged(text, tuple(found))


def predictor(
    model: str | os.PathLike[str],
    *,
    device: str | None = None,
    precision: str = "auto",
    top: int = 5,
    batch_size: int | None = None,
    overrides: Sequence[str] = (),
) -> TextAnalyzer:
    """An object that answers one question on texts: `tag("…")`, of a list a list.

    Args:
        model: The name of a task (lexical_analysis, word_segmentation, pos_tagging, pos_tagging_en, intent) or of a
            config in configs/nlp, a config file, or an artifact folder.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16" or "auto".
        top: How many classes a result of a classifier holds.
        batch_size: Texts that run together.
        overrides: Settings of the config, as `-o` of the tools.

    Raises:
        InputError: no such model. HubError: weights are neither here nor reachable.
    """
    name, view = TASKS.get(str(model), Named(str(model), _itself))
    artifact = find_artifact(name, CONFIGS, tuple(overrides), "is no model of texts", export_artifact)
    task = bind(artifact.config["task"], Annotated[Any, Kind("task")], PACKAGES)
    labels = tuple(artifact.config["labels"])
    interpret, limit = _classes(labels, top), None
    if isinstance(task, TokenClassification):
        interpret, limit = _tags(labels), max(artifact.config["buckets"])
    transforms = bind(artifact.config["transforms"], tuple[Annotated[Any, Kind("transform")], ...], PACKAGES)
    texts = TextPredictor(
        engine_of(artifact, device, precision),
        restored(transforms, artifact.files),
        lambda sample: {
            name: value for name, value in packed(sample).items() if name in artifact.config["inputs"]
        },
        interpret,
        {name: value for name, value in task.padding.items() if name in artifact.config["inputs"]},
        artifact.config["buckets"],
        artifact.config["batch_size"] if batch_size is None else batch_size,
    )
    return TextAnalyzer(texts, view, limit)


def _classes(labels: tuple[str, ...], top: int) -> Any:
    def interpret(outputs: dict[str, np.ndarray], sample: TextSample) -> TextLabels:
        return TextLabels(sample.text, labelled(outputs["scores"], labels, top), sample.pair)

    return interpret


def _tags(labels: tuple[str, ...]) -> Any:
    joined = marks_spans(labels)

    def interpret(outputs: dict[str, np.ndarray], sample: TextSample) -> Tagged:
        assert sample.word_ids is not None and sample.offsets is not None
        words = sample.word_ids
        first = np.flatnonzero(first_tokens(words))
        last = [np.flatnonzero(words == words[place])[-1] for place in first]
        offsets = np.stack([sample.offsets[first, 0], sample.offsets[last, 1]], axis=1)
        tags = [labels[tag] for tag in outputs["tags"][first]]
        return Tagged(sample.text, tagged(sample.text, offsets, tags, outputs["scores"][first], joined))

    return interpret


def open_predictor(
    config: str | None,
    model_dir: str | None,
    device: str | None,
    precision: str,
    overrides: tuple[str, ...],
    *,
    batch_size: int | None = None,
) -> TextAnalyzer:
    """What tools/infer.py runs; the keyword is its option of the same name."""
    chosen = model_dir if model_dir is not None else str(config)
    return predictor(chosen, device=device, precision=precision, batch_size=batch_size, overrides=overrides)


def export_artifact(
    config: str, overrides: tuple[str, ...], input_shape: tuple[int, ...] | None = None
) -> Artifact:
    """What tools/export_model.py writes."""
    from zoo.export import export_experiment

    if input_shape is not None:
        raise InputError("a text has no shape of pictures", received="--input_shape", fix="leave it out")
    return export_experiment(Path(config), overrides)
