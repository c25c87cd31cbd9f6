"""Whether two readings of one page are the same, line by line, and how many of their words are."""

from __future__ import annotations

import collections
import re

from framework.workflow.domain.comparison import Comparison
from ocr.results.geometry import line_box
from ocr.results.pages import Page

# A character of Chinese or Japanese, else letters and digits as far as they go.
_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
)
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


def compare_words(reference: Page, other: Page) -> Comparison:
    """Words of letters and digits that stand in both, wherever they stand; of scripts without spaces each character.
    The share is the F1 of the other's words."""
    expected, words = (collections.Counter(_WORD.findall(page.text)) for page in (reference, other))
    return Comparison(2 * (expected & words).total(), expected.total() + words.total())
