"""The first runs of a model: programs are compiled before a client comes, and what a batch saves is measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from framework.text.lines import read_lines
from framework.vision import draw
from framework.workflow.domain.predictor import AnyPredictor, ImageItem, ImagePredictor, LanguagePredictor

_SIZE_HW = 480, 640
_RUNS = 3


@dataclass(frozen=True)
class BatchTimes:
    """Seconds of one item alone, and of a full batch, which is also what a batch of fewer takes: it is filled up."""

    alone: float = 0.0
    full: float = 0.0

    def is_faster_alone(self, count: int, size: int) -> bool:
        """Whether so many items of a batch of `size` run faster one after the other."""
        return count < size and 0 < count * self.alone < self.full


def measure(predictor: AnyPredictor, size: int, files: Sequence[str] = ()) -> BatchTimes:
    """Run the predictor on an item, and on a batch of `size`; the second and third time count.

    Args:
        files: Images or files of texts in the place of what is made.
    """
    if isinstance(predictor, LanguagePredictor):
        texts: Sequence[str] = [line for file in files for line in read_lines(Path(file))] or ["warm up"]
        items = [(text, text) if predictor.pairs else text for text in texts]
        for _ in range(2):
            list(predictor.predict_attempts(items))
            list(predictor.predict_attempts([items[0]] * size))
        return BatchTimes()
    if not isinstance(predictor, ImagePredictor):
        return BatchTimes()
    images = [predictor.read(file) for file in files] or [ImageItem(_page())]
    for image in images:
        list(predictor.predict_stream([image]))
    if size == 1:
        return BatchTimes()
    list(predictor.predict_stream([images[0]] * size))
    alone = _best(lambda: list(predictor.predict_stream([images[0]])))
    return BatchTimes(alone, _best(lambda: list(predictor.predict_stream([images[0]] * size))))


def _best(run: Callable[[], object]) -> float:
    seconds = []
    for _ in range(_RUNS):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _page() -> np.ndarray:
    """A white image with lines of words in boxes, so that stages behind the first one run too."""
    page = np.full((*_SIZE_HW, 3), 255, np.uint8)
    tops = np.arange(60, _SIZE_HW[0] - 20, 60)
    boxes = np.stack([np.full(len(tops), 40), tops, np.full(len(tops), 600), tops + 30], 1)
    return draw.boxes(page, boxes, labels=[f"Warm up {number} 0123456789" for number in range(len(tops))])
