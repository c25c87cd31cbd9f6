"""Whether two readings of one page are the same, line by line."""

from __future__ import annotations

from framework.workflow.domain.comparison import Comparison
from ocr.results.geometry import line_box
from ocr.results.pages import Page

_PIXELS = (
    4.0  # that the box of a line may be off: the detector's map is thresholded, and a pixel of it may turn
)


def compare_pages(reference: Page, other: Page) -> Comparison:
    """Lines with the same text whose boxes lie within four pixels are equal, each once."""
    free = [(line.text, line_box(line), line.score) for line in other.lines]
    equal, pixels, scores = 0, 0.0, 0.0
    for line in reference.lines:
        box = line_box(line)
        rivals = [
            (max(abs(a - b) for a, b in zip(box, one[1])), index)
            for index, one in enumerate(free)
            if one[0] == line.text
        ]
        apart, index = min(rivals, default=(float("inf"), -1))
        if apart > _PIXELS:
            continue
        _, _, score = free.pop(index)
        pixels, scores, equal = max(pixels, apart), max(scores, abs(score - line.score)), equal + 1
    return Comparison(equal, max(len(reference.lines), len(other.lines)), {"px": pixels, "score": scores})
