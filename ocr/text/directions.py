"""Which way up lines of text stand, by a classifier of single lines, by how well they read, and by their page.

The classifier errs on one line in a hundred, and nobody can tell of a single 66 whether it is a 99 on its head. So the
lines of a page vote: a page stands upright unless what can be told apart says that it stands on its head, and a line
is turned against its page only where it reads badly as the page stands and well the other way.

Lines that run up or down the page are a group of their own: both directions are usual there, even on one page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from framework.vision.image import rotate90

SURE = 0.9  # mean probability of a line's characters: text on its head hardly reaches it
DECISIVE = 0.05  # two readings of a line whose scores are closer tell nothing
_QUESTIONED = (
    0.25  # of the lines of which the classifier is sure: if it turns so many, the page may stand on its head
)
_SAMPLE = 48  # lines that are read both ways then: those that tell most
_FEW = 4  # numbers such as 66 and 99, of which the surer reading is an accident
_ROTATABLE = frozenset("0125689 HINOSXZosxzl+-=.,:%/()[]")
"""Characters that are themselves or one another on their heads. Not b and q: words of such letters alone are rare."""


class Scored(Protocol):
    """What a line says, and the mean probability of its characters."""

    @property
    def text(self) -> str: ...
    @property
    def score(self) -> float: ...


T = TypeVar("T", bound=Scored)
Reading = tuple[T, int, float]
Read = Callable[[Sequence[np.ndarray]], list[Reading[T]]]


@dataclass
class _Readings:
    """Lines read as they are (0) or turned by 180 degrees (1); each way at most once."""

    crops: Sequence[np.ndarray]
    read: Callable[[Sequence[np.ndarray]], list[Reading]]
    found: tuple[dict[int, Reading], dict[int, Reading]]

    def add(self, upright: Sequence[int], turned: Sequence[int]) -> None:
        """Read these lines as they are, and those on their heads, all in one go."""
        upright = [i for i in dict.fromkeys(upright) if i not in self.found[0]]
        turned = [i for i in dict.fromkeys(turned) if i not in self.found[1]]
        if not upright and not turned:
            return
        texts = self.read([*(self.crops[i] for i in upright), *(rotate90(self.crops[i], 2) for i in turned)])
        self.found[0].update(zip(upright, texts))
        self.found[1].update(zip(turned, texts[len(upright) :]))

    def add_ways(self, lines: Sequence[int], ways: np.ndarray) -> None:
        """Read each of these lines the way that `ways` [N] says of it, 0 or 1."""
        self.add([i for i in lines if not ways[i]], [i for i in lines if ways[i]])

    def score(self, line: int, way: int) -> float:
        return self.found[way][line][0].score

    def is_rotatable(self, line: int) -> bool:
        """Whether the line says as much on its head, as far as it was read."""
        return all(_ROTATABLE.issuperset(found[line][0].text) for found in self.found if line in found)

    def evidence(self, lines: Sequence[int]) -> float:
        """How much better the lines, which were read both ways, read on their heads; negative: worse.

        Of those that say as much on their heads one or two are no evidence.
        """
        gains = [(self.score(i, 1) - self.score(i, 0), self.is_rotatable(i)) for i in lines]
        gains = [(gain, rotatable) for gain, rotatable in gains if abs(gain) >= DECISIVE]
        few = sum(rotatable for _, rotatable in gains) < _FEW
        return sum(gain for gain, rotatable in gains if not (rotatable and few))


def read_directed(
    crops: Sequence[np.ndarray],
    probabilities: np.ndarray,
    tall: np.ndarray,
    read: Callable[[Sequence[np.ndarray]], list[Reading[T]]],
    thresh: float,
) -> tuple[list[Reading[T]], np.ndarray]:
    """What each line says, the right way up, and bool [N]: which stand on their heads.

    Args:
        crops: N images of lines [h, w, 3].
        probabilities: [N, 2] of the classifier: upright, and on its head.
        tall: bool [N], the crops that were turned by a quarter since their lines run up or down the page.
        read: Reads images of lines.
        thresh: The probability from which the classifier is sure.
    """
    readings = _Readings(crops, read, ({}, {}))
    head, upright = probabilities[:, 1] > thresh, probabilities[:, 0] > thresh
    ways = np.zeros(len(crops), bool)
    level, rising = np.flatnonzero(~tall).tolist(), np.flatnonzero(tall).tolist()
    # The first reading of all lines is one call of the recogniser: batches are fuller.
    questioned = _begin_level(level, head, upright, ways)
    _begin_rising(rising, probabilities, head, upright, ways)
    doubtful = [i for i in level if (upright if ways[i] else head)[i]]
    first, second = ([i for i, way in enumerate(ways) if way == turned] for turned in (False, True))
    readings.add(
        [*first, *(i for i in doubtful if ways[i])], [*second, *(i for i in doubtful if not ways[i])]
    )
    if questioned:
        ratios = [crop.shape[1] / crop.shape[0] for crop in crops]
        telling = sorted(level, key=lambda i: (readings.is_rotatable(i), -ratios[i]))[:_SAMPLE]
        readings.add(telling, telling)
        ways[level] = readings.evidence(telling) > 0
        readings.add_ways(level, ways)
    _turn_against_page(level, head, upright, ways, readings)
    _finish_rising(rising, head, upright, ways, readings)
    return [readings.found[int(way)][i] for i, way in enumerate(ways)], ways


def _begin_level(lines: Sequence[int], head: np.ndarray, upright: np.ndarray, ways: np.ndarray) -> bool:
    """Sets `ways` to how the page probably stands; whether that is in question."""
    turned, sure = int(head[lines].sum()), int((head | upright)[lines].sum())
    ways[lines] = 2 * turned > sure
    return turned > 0 and turned >= _QUESTIONED * sure


def _turn_against_page(
    lines: Sequence[int], head: np.ndarray, upright: np.ndarray, ways: np.ndarray, readings: _Readings
) -> None:
    """Turns lines that read badly as the page stands, and well the other way."""
    # Of lines of which the classifier is sure only those are read the other way that it sees there.
    weak = [i for i in lines if readings.score(i, int(ways[i])) < SURE]
    weak = [i for i in weak if not (head if ways[i] else upright)[i]]
    readings.add_ways(weak, ~ways)
    for i in weak:
        own, other = (readings.score(i, int(way)) for way in (ways[i], not ways[i]))
        # One of which nobody is sure has to read well.
        least = own + DECISIVE if (head | upright)[i] else max(SURE, own + DECISIVE)
        if other >= least and not readings.is_rotatable(i):
            ways[i] = not ways[i]


def _begin_rising(
    lines: Sequence[int], probabilities: np.ndarray, head: np.ndarray, upright: np.ndarray, ways: np.ndarray
) -> None:
    """Sets `ways` to what the classifier says, and where it is not sure to what it says of the others."""
    votes = np.clip(np.log((probabilities[lines, 1] + 1e-6) / (probabilities[lines, 0] + 1e-6)), -3, 3)
    ways[lines] = votes.sum() > 0
    ways[[i for i in lines if head[i]]] = True
    ways[[i for i in lines if upright[i]]] = False


def _finish_rising(
    lines: Sequence[int], head: np.ndarray, upright: np.ndarray, ways: np.ndarray, readings: _Readings
) -> None:
    """Lines that may as well run the other way are read both ways; those that tell nothing follow the others."""

    def is_open(i: int) -> bool:
        text, score = readings.found[int(ways[i])][i][0].text, readings.score(i, int(ways[i]))
        return (score < SURE and not (head | upright)[i]) or _ROTATABLE.issuperset(text)

    open_lines = [i for i in lines if is_open(i)]
    mixed = ways[lines].any() and not ways[lines].all()
    fewer = bool(2 * ways[lines].sum() <= len(lines)) if mixed else False
    # Where the classifier turns some lines and others not, the fewer must be confirmed.
    minority = [i for i in lines if ways[i] == fewer] if mixed else []
    both = list(dict.fromkeys((*open_lines, *minority)))
    readings.add_ways(both, ~ways)
    evidence = readings.evidence(both)
    decided = [i for i in lines if i not in open_lines]
    page = evidence > 0 if evidence else 2 * ways[decided].sum() > len(decided)
    for i in both:
        gain = readings.score(i, 1) - readings.score(i, 0)
        if abs(gain) >= DECISIVE:
            ways[i] = gain > 0
        elif i in open_lines and (evidence or decided):
            ways[i] = page
    readings.add_ways(lines, ways)
