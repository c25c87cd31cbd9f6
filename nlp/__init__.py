"""Language: classes, tags and entities of texts.

from nlp import predictor

tag = predictor("lexical_analysis")
print(tag("今天天气很好。").words)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nlp.analyzer import TextAnalyzer

    predictor: Callable[..., TextAnalyzer]


def __getattr__(name: str) -> object:
    if name == "predictor":
        from nlp.domain import predictor

        return predictor
    raise AttributeError(f"module 'nlp' has no attribute {name!r}")
