"""Whether two classifications of one image are the same."""

from __future__ import annotations

from framework.workflow.domain.comparison import Comparison
from zoo.classification.results import Classification


def compare_classifications(reference: Classification, other: Classification) -> Comparison:
    """Equal are those with the same best class; of classes that both hold the scores are compared."""
    scores = {one.category_id: one.score for one in other.classes}
    apart = [
        abs(one.score - scores[one.category_id]) for one in reference.classes if one.category_id in scores
    ]
    return Comparison(int(reference.label == other.label), 1, {"score": max(apart, default=0.0)})
