"""What is counted over the tracks of a video: crossings of lines, stays in zones; as JSON, drawings and a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from framework.core.types import JSON
from framework.vision import draw

_FILL = 0.2  # opacity of zones in drawings


@dataclass(frozen=True)
class Crossing:
    """What happens in a frame: a track crosses a line ("in", "out"), enters a zone or leaves it, after `seconds`."""

    region: str
    event: str
    track_id: int
    label: str
    seconds: float | None = None


@dataclass(frozen=True)
class LineCount:
    """How many objects have crossed a line; `by_class` has "in" and "out" of each class."""

    name: str
    start: tuple[float, float]
    end: tuple[float, float]
    entered: int
    left: int
    by_class: Mapping[str, Mapping[str, int]]

    def to_dict(self) -> dict[str, JSON]:
        classes: dict[str, JSON] = {name: dict(counts) for name, counts in self.by_class.items()}
        return {"name": self.name, "in": self.entered, "out": self.left, "classes": classes}


@dataclass(frozen=True)
class ZoneCount:
    """How many objects are in a zone `now`, how many tracks have been (`total`), and the seconds that each track which
    has not been seen to leave it has spent there."""

    name: str
    points: tuple[tuple[float, float], ...]
    now: int
    total: int
    stays: Mapping[int, float]
    labels: Mapping[int, str]

    def to_dict(self) -> dict[str, JSON]:
        seconds: dict[str, JSON] = {str(track): round(stay, 3) for track, stay in self.stays.items()}
        return {"name": self.name, "now": self.now, "total": self.total, "seconds": seconds}


@dataclass(frozen=True)
class FrameCounts:
    """What is counted up to a frame, and what happens in it; `time` is that of the frame, seconds since the first."""

    lines: tuple[LineCount, ...] = ()
    zones: tuple[ZoneCount, ...] = ()
    events: tuple[Crossing, ...] = ()
    time: float = 0.0

    def to_dict(self) -> dict[str, JSON]:
        return {
            "lines": [one.to_dict() for one in self.lines],
            "zones": [one.to_dict() for one in self.zones],
        }

    def draw(self, image: np.ndarray) -> np.ndarray:
        """The lines and zones over an image, [H, W, 3] uint8 RGB, with their counts."""
        lines = [np.array([one.start, one.end]) for one in self.lines]
        labels = [f"{one.name}: {one.entered} in, {one.left} out" for one in self.lines]
        image = draw.polygons(image, lines, labels=labels, closed=False)
        zones = [np.array(one.points) for one in self.zones]
        names = [f"{one.name}: {one.now} now, {one.total} in all" for one in self.zones]
        numbers = range(len(lines), len(lines) + len(zones))
        return draw.polygons(image, zones, labels=names, ids=list(numbers), opacity=_FILL)


class CountedResult(Protocol):
    """A result with what is counted up to its frame."""

    @property
    def counts(self) -> FrameCounts | None: ...


class EventFile:
    """<name of the video>_events.csv: a line for each object that crosses a line, enters or leaves a zone. Of each
    `stride` frames one is read; frames are numbered as in the video.

    Behind the last frame come the tracks that were not seen to leave a zone, as "stay".
    """

    head = "frame,time,region,event,track_id,label,seconds\n"

    def __init__(self, stem: str, stride: int = 1) -> None:
        self.name, self.stride = f"{stem}_events.csv", stride
        self._last: tuple[int, FrameCounts] | None = None

    def text(self, result: CountedResult, number: int) -> str:
        """The lines of the frame of this number, from 0."""
        counts = result.counts or FrameCounts()
        self._last = number, counts
        return "".join(self._line(number, counts.time, event) for event in counts.events)

    @property
    def tail(self) -> str:
        number, counts = self._last or (0, FrameCounts())
        return "".join(
            self._line(number, counts.time, Crossing(zone.name, "stay", track, zone.labels[track], seconds))
            for zone in counts.zones
            for track, seconds in zone.stays.items()
        )

    def summary(self) -> list[str]:
        """A sentence for each line and zone."""
        counts = FrameCounts() if self._last is None else self._last[1]
        return [
            *(f"{one.name}: {one.entered} in, {one.left} out" for one in counts.lines),
            *(f"{one.name}: {one.total} objects, {one.now} in the last frame" for one in counts.zones),
        ]

    def _line(self, number: int, time: float, event: Crossing) -> str:
        seconds = "" if event.seconds is None else f"{event.seconds:.3f}"
        fields = event.region, event.event, event.track_id, event.label, seconds
        row = [number * self.stride, f"{time:.3f}", *fields]
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerow(row)
        return out.getvalue()
