"""What `nlp.predictor` gives: answers one question on texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from framework.core.errors import OarError
from framework.workflow import LanguagePredictor, TextResult
from framework.workflow.domain.predictor import Text
from framework.workflow.runners.text_predictor import TextPredictor
from nlp.results import Tagged

# What a task's name makes of the typed result; None leaves it as it is.
VIEWS: dict[str, Callable[[Any], Any]] = {
    "words": lambda result: _tagged(result).words,
    "pairs": lambda result: tuple((span.text, span.label) for span in _tagged(result).spans),
}


def _tagged(result: TextResult) -> Tagged:
    assert isinstance(result, Tagged)
    return result


class TextAnalyzer(LanguagePredictor[Any]):
    """A call takes a text, a pair of texts as a tuple, or a list of them, which gives a list.

    Made by `predictor`. Safe to call from several threads.

    Args:
        model: Gives the typed results of nlp/results.py.
        view: One of VIEWS, or None.
    """

    def __init__(self, model: TextPredictor[Any], view: str | None = None) -> None:
        self.model, self.view = model, view

    @property
    def pairs(self) -> bool:
        return self.model.pairs

    def count_tokens(self, text: Text) -> int:
        return self.model.count_tokens(text)

    def predict_stream(self, items: Iterable[Text]) -> Iterator[Any]:
        results = self.model.predict_stream(items)
        return results if self.view is None else map(VIEWS[self.view], results)

    def predict_attempts(self, texts: Iterable[Text]) -> Iterator[TextResult | OarError]:
        """The typed results, whatever the task's name makes of them."""
        return self.model.predict_attempts(texts)
