"""Whether two segmentations of one image are the same, pixel by pixel."""

from __future__ import annotations

from framework.workflow.domain.comparison import Comparison
from segmentation.results import Segmentation


def compare_segmentations(reference: Segmentation, other: Segmentation) -> Comparison:
    """Pixels of the same class are equal; those of images of other sizes are not."""
    if reference.labels.shape != other.labels.shape:
        return Comparison(0, max(reference.labels.size, other.labels.size))
    same = int((reference.labels == other.labels).sum())
    return Comparison(same, reference.labels.size, {"pixels": float(reference.labels.size - same)})
