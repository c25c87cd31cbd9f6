"""Language: classes, tags and entities of texts.

from nlp import predictor

tag = predictor("lexical_analysis")
print(tag("今天天气很好。").words)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nlp.api import predictor as predictor


def __getattr__(name: str) -> Any:
    if name == "predictor":
        from nlp.api import predictor

        return predictor
    raise AttributeError(f"module 'nlp' has no attribute {name!r}")
