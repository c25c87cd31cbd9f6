"""`predictor(...)`: the short way in to models of texts.

from nlp import predictor

tag = predictor("lexical_analysis")
print(tag("今天天气很好。").words)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from framework.config import Kind, bind
from framework.core.errors import InputError
from framework.export import Artifact
from framework.export.artifact import load_assets
from framework.inference import engine_of
from framework.inference.cache import ROOT
from framework.inference.text_predictor import TextPredictor
from nlp.pretrained_artifact import folder_artifact, is_pretrained
from nlp.processors import ProcessorContext
from nlp.results import Tagged
from zoo.api import find_artifact

CONFIGS = ROOT / "configs" / "nlp"
PACKAGES = ("nlp", "zoo", "framework")


class TaskAlias(NamedTuple):
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
    "lexical_analysis": TaskAlias("bigru_crf_words_zh", _itself),
    "word_segmentation": TaskAlias("bigru_crf_words_zh", _words),
    "pos_tagging": TaskAlias("bigru_crf_words_zh", _pairs),
    "pos_tagging_en": TaskAlias("bigru_crf_pos_en", _pairs),
    "intent": TaskAlias("text_cnn_snips", _itself),
    # No weights of these come with the package: their data are for research only.
    "sentiment_analysis": TaskAlias("text_cnn_chnsenticorp", _itself),
    "text_similarity": TaskAlias("simnet_bow_lcqmc", _itself),
    "ner": TaskAlias("bigru_crf_ner_resume", _pairs),
}


class TextAnalyzer:
    """Made by `predictor`. A call takes a text, a pair of texts as a tuple, or a list of them, which gives a list.

    Safe to call from several threads.
    """

    def __init__(self, model: TextPredictor[Any], view: Callable[[Any], Any]) -> None:
        self.model, self.view = model, view

    @property
    def pairs(self) -> bool:
        """Whether it takes pairs only, so that a line of a file holds two texts with a tab between them."""
        return self.model.reader.pairs

    def __call__(self, source: Any) -> Any:
        if isinstance(source, list):
            return list(self.results(source))
        return next(self.results([source]))

    def results(self, texts: Iterable[Any]) -> Iterator[Any]:
        """One result for each text, in order."""
        return (self.view(result) for result in self.texts(texts))

    def texts(self, texts: Iterable[Any]) -> Iterator[Any]:
        """`results` as the typed results of nlp/results.py, whatever the task's name makes of them."""
        return self.model.results(texts)

    def attempts(self, texts: Iterable[Any]) -> Iterator[Any]:
        """`texts`, with the error of a text that cannot be read in its place."""
        return self.model.attempts(texts)


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
        model: The name of a task (lexical_analysis, word_segmentation, pos_tagging, pos_tagging_en, intent; and
            sentiment_analysis, text_similarity and ner, whose weights you train) or of a config in configs/nlp, a
            config file, an artifact folder, or the folder of a fine-tuned model of transformers or PaddleNLP.
        device: "cpu", "gpu", "gpu:1", …; None is jax's default.
        precision: "float32", "bfloat16" or "auto".
        top: How many classes or candidates a result holds at most.
        batch_size: Texts that run together.
        overrides: Settings of the config, as `-o` of the tools.

    Raises:
        InputError: no such model. HubError: weights are neither here nor reachable.
    """
    name, view = TASKS.get(str(model), TaskAlias(str(model), _itself))
    artifact = find_artifact(
        name, CONFIGS, tuple(overrides), "is no model of texts", export_artifact, foreign=folder_artifact
    )
    config = artifact.config
    task = bind(config["task"], Annotated[Any, Kind("task")], PACKAGES)
    transforms = bind(config["transforms"], tuple[Annotated[Any, Kind("transform")], ...], PACKAGES)
    context = ProcessorContext(
        load_assets(transforms, artifact.files), tuple(config["labels"]), max(config["buckets"]), top
    )
    texts = TextPredictor(
        engine_of(artifact, device, precision),
        task.processor(context),
        task.padding,
        config["buckets"],
        config["batch_size"] if batch_size is None else batch_size,
    )
    return TextAnalyzer(texts, view)


def is_foreign(folder: Path) -> bool:
    """Whether `predictor` reads this folder, which is no artifact: a model as transformers or PaddleNLP writes it."""
    return is_pretrained(folder)


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
        raise InputError("a text has no shape of images", received="--input_shape", fix="leave it out")
    return export_experiment(Path(config), overrides)
