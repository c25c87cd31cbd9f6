"""Counts over tracks: objects that cross a line, and objects in a zone with the time that they stay there.

Directions and limits of lines are those of supervision's LineZone, so that counts can be compared, but for boxes that
the edge of the image cuts: it counts none of them where a line is nearer to the edge than a box is high. Zones are
exact polygons with their edges; supervision's are the pixels that they cover and touch, and points in it are rounded to
whole pixels. So the two differ for points that are less than a pixel from an edge: there supervision says that they are
in.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from detection.counts import Crossing, FrameCounts, LineCount, ZoneCount
from detection.results import Box, DetectionResult
from framework.core.errors import ConfigError, InputError
from framework.workflow import ImageItem

_CUT = 0.005  # of a side of the image: boxes that end so near to its edge are cut by it
_ON_EDGE = 1e-3  # pixels
_ANGLES = np.radians(np.arange(10, 370, 45))  # not along the edges of most zones
_AROUND = 20 * _ON_EDGE * np.stack([np.cos(_ANGLES), np.sin(_ANGLES)], axis=-1)[None]  # [1, 8, 2]
Anchor = Literal["corners", "center", "bottom"]
"""The points of a box that tell where it is: its corners, its centre, or the middle of its lower side."""


@dataclass(frozen=True)
class CountLine:
    """A line from `start` to `end`, in pixels. Who comes from its right to its left, as seen from `start`, comes in.

    A line from left to right of the image thus counts what goes up as in, and what goes down as out.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    name: str = ""


@dataclass(frozen=True)
class CountZone:
    """A polygon of three points or more, in pixels."""

    points: tuple[tuple[float, float], ...]
    name: str = ""


@dataclass(frozen=True)
class CountOptions:
    """What is counted.

    Attributes:
        line_anchor, zone_anchor: What of a box has to be on a side of a line, or in a zone: all of these points.
        frames: For how many frames in which it is seen an object must be on the other side of a line.

    Raises:
        ConfigError: `frames` is below 1.
    """

    lines: tuple[CountLine, ...] = ()
    zones: tuple[CountZone, ...] = ()
    line_anchor: Anchor = "corners"
    zone_anchor: Anchor = "bottom"
    frames: int = 1

    def __post_init__(self) -> None:
        if self.frames < 1:
            raise ConfigError(
                "frames is out of range", where="CountOptions", received=self.frames, allowed="1 or more"
            )


def parse_line(text: str) -> CountLine:
    """The line of "x1,y1,x2,y2", or with a name "gate=x1,y1,x2,y2". Raises: ConfigError."""
    name, values = _parse(text)
    if len(values) != 4 or values[:2] == values[2:] or _are_shares(values):
        raise _misfit(
            "a line", text, "x1,y1,x2,y2, two different points in pixels, not in shares of the image"
        )
    return CountLine((values[0], values[1]), (values[2], values[3]), name)


def parse_zone(text: str) -> CountZone:
    """The zone of "x1,y1,x2,y2,x3,y3,…", or with a name "till=…"; four numbers are corners of a rectangle.

    Raises:
        ConfigError: these are no such numbers.
    """
    name, values = _parse(text)
    if len(values) == 4:
        x0, y0, x1, y1 = values
        values = [x0, y0, x1, y0, x1, y1, x0, y1]
    points = tuple(zip(values[::2], values[1::2]))
    if len(values) % 2 or len(set(points)) < 3 or _are_shares(values):
        allowed = "x1,y1,x2,y2,x3,y3,… of three points or more, or x1,y1,x2,y2, in pixels, not in shares of the image"
        raise _misfit("a zone", text, allowed)
    return CountZone(points, name)


def _parse(text: str) -> tuple[str, list[float]]:
    name, _, numbers = text.rpartition("=")
    try:
        values = [float(value) for value in numbers.replace(" ", "").split(",")]
    except ValueError:
        return name, []
    return name, values if all(map(math.isfinite, values)) else []


def _are_shares(values: Sequence[float]) -> bool:
    """Whether numbers are shares of the sides of an image: in pixels they would all be in one."""
    return all(0 <= value <= 1 for value in values)


def _misfit(what: str, text: str, allowed: str) -> ConfigError:
    return ConfigError(f"this is not {what}", received=text, allowed=f"{allowed}; a name before it: gate=…")


def anchor_points(boxes: np.ndarray, anchor: Anchor) -> np.ndarray:
    """[A, K, 2]: the anchors of boxes [K, 4] xyxy."""
    x0, y0, x1, y1 = boxes.reshape(-1, 4).T
    points = {
        "corners": ((x0, y0), (x1, y0), (x0, y1), (x1, y1)),
        "center": (((x0 + x1) / 2, (y0 + y1) / 2),),
        "bottom": (((x0 + x1) / 2, y1),),
    }[anchor]
    return np.array([np.stack(pair, axis=-1) for pair in points], np.float64).reshape(len(points), -1, 2)


def sides_of_line(line: CountLine, points: np.ndarray, size_hw: tuple[int, int] | None = None) -> np.ndarray:
    """[K]: 1 where all points [A, K, 2] are left of the line (in), -1 where all are right of it, and 0 for the rest:
    boxes on the line, and those beyond its ends, between whose perpendiculars it counts.

    With the size of the image, a box on the line whose points on one side are all at the edge of the image is on that
    side: the object goes on beyond the edge, and is never seen wholly there.
    """
    start, end = np.array(line.start), np.array(line.end)
    along = end - start
    offset = points - start
    share = offset @ along
    beside = ((share > 0) & (share < along @ along)).all(axis=0)
    left = along[0] * offset[..., 1] - along[1] * offset[..., 0] < 0  # y points down
    is_left, is_right = left.all(axis=0), ~left.any(axis=0)
    if size_hw is not None:
        cut, on_line = _at_edge(points, size_hw), ~is_left & ~is_right
        cut_left, cut_right = (cut | ~left).all(axis=0), (cut | left).all(axis=0)
        is_left = is_left | (on_line & cut_left & ~cut_right)
        is_right = is_right | (on_line & cut_right & ~cut_left)
    return np.where(beside & is_left, 1, np.where(beside & is_right, -1, 0))


def _at_edge(points: np.ndarray, size_hw: tuple[int, int]) -> np.ndarray:
    """[A, K] bool: which points [A, K, 2] are at the edge of the image or beyond it."""
    size = np.array(size_hw[::-1], np.float64)
    return np.asarray(((points <= _CUT * size) | (points >= (1 - _CUT) * size)).any(axis=-1))


def inside_zone(zone: CountZone, points: np.ndarray) -> np.ndarray:
    """[K] bool: whether all points [A, K, 2] are inside, by the even-odd rule, or on an edge: a box that the image cuts
    has its lower side there, and so has a zone that reaches to the end of the image."""
    inside, on_edge = _locate(zone, points)
    return np.asarray((inside | on_edge).all(axis=0))


def inside_zones(zones: Sequence[CountZone], points: np.ndarray) -> np.ndarray:
    """[Z, K] bool: `inside_zone` of each zone. A single anchor (A is 1) on an edge that zones share is on one side of
    it, that of most zones: zones side by side count an object once, those that overlap count it each."""
    inside = np.array([inside_zone(zone, points) for zone in zones], bool).reshape(
        len(zones), points.shape[1]
    )
    if len(points) > 1:
        return inside  # the corners of a box are never all in two zones that only touch
    for number in np.flatnonzero(inside.sum(axis=0) > 1):
        around = points[:, [number]] + _AROUND
        sides = np.array([_locate(zone, around)[0][0] for zone in zones])
        best = sides[:, sides.sum(axis=0).argmax()]
        if best.any():
            inside[:, number] = best
    return inside


def _locate(zone: CountZone, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[A, K] bool each: which points [A, K, 2] are inside by the even-odd rule, and which are on an edge."""
    x, y = points[..., 0], points[..., 1]
    inside, on_edge = np.zeros(x.shape, bool), np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(zone.points, (*zone.points[1:], zone.points[0])):
        length = math.hypot(x1 - x0, y1 - y0)
        if length == 0:
            continue
        across = ((x1 - x0) * (y - y0) - (y1 - y0) * (x - x0)) / length
        along = ((x1 - x0) * (x - x0) + (y1 - y0) * (y - y0)) / length
        on_edge |= (np.abs(across) <= _ON_EDGE) & (along >= -_ON_EDGE) & (along <= length + _ON_EDGE)
        if y0 != y1:
            crosses = (y0 <= y) != (y1 <= y)
            inside ^= crosses & (x < x0 + (y - y0) * (x1 - x0) / (y1 - y0))
    return inside, on_edge


@dataclass
class _Line:
    region: CountLine
    name: str
    sides: dict[int, int] = field(default_factory=dict)
    """By track: the side on which it is known to be."""
    runs: dict[int, int] = field(default_factory=dict)
    """By track: for how many frames it has been on the other one."""
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By class and direction."""


@dataclass
class _Sighting:
    frame: int
    label: str
    until: float
    """The time of the frame after it, in seconds; while there is none, as the rate of the video says."""


@dataclass
class _Zone:
    region: CountZone
    name: str
    since: dict[int, float] = field(default_factory=dict)
    """By track that is inside: the time of the frame in which it entered."""
    last_seen: dict[int, _Sighting] = field(default_factory=dict)
    """By track that is inside: when it was seen there last."""
    visitors: set[int] = field(default_factory=set)


class RegionCounter:
    """Counts over the frames of one video; call `update` with the boxes of each frame, in order.

    An object is counted by its track. A track that is lost for a while keeps its side and its time: who is hidden while
    it crosses a line is counted where it appears again. (supervision forgets a track after two frames.)

    Args:
        frame_rate: Frames per second of the video: the mean, where they last differently long.
    """

    def __init__(self, options: CountOptions, frame_rate: float = 30.0) -> None:
        self.options, self.frame_rate = options, frame_rate
        self._frame, self._time = -1, 0.0
        self._lines = [
            _Line(one, one.name or f"line {number}") for number, one in enumerate(options.lines, start=1)
        ]
        self._zones = [
            _Zone(one, one.name or f"zone {number}") for number, one in enumerate(options.zones, start=1)
        ]

    def update(
        self, boxes: Sequence[Box], time: float | None = None, size_hw: tuple[int, int] | None = None
    ) -> FrameCounts:
        """What is counted up to this frame; boxes without a track count nowhere.

        Args:
            boxes: Of the frame.
            time: Of the frame, in seconds; by default the frames follow one another at `frame_rate`.
            size_hw: (height, width) of the frame, so that objects that leave it over a line near its edge are counted.

        Raises:
            InputError: a line or a zone lies beyond the frame, where nothing is ever counted.
        """
        if size_hw is not None and self._frame < 0:
            self._check_inside(size_hw)
        self._frame += 1
        self._time = self._frame / self.frame_rate if time is None else time
        tracked = [box for box in boxes if box.track_id is not None]
        xyxy = np.array([box.bbox for box in tracked], np.float64).reshape(-1, 4)
        events: list[Crossing] = []
        for line in self._lines:
            points = anchor_points(xyxy, self.options.line_anchor)
            sides = sides_of_line(line.region, points, size_hw)
            for box, side in zip(tracked, sides.tolist()):
                if side and (event := self._cross(line, box, side)):
                    events.append(event)
        anchors = anchor_points(xyxy, self.options.zone_anchor)
        for zone, inside in zip(self._zones, inside_zones(self.options.zones, anchors)):
            for sighting in zone.last_seen.values():
                if sighting.frame == self._frame - 1:
                    sighting.until = self._time
            for box, is_in in zip(tracked, inside.tolist()):
                events += self._visit(zone, box, is_in)
        return FrameCounts(
            tuple(self._count_line(line) for line in self._lines),
            tuple(self._count_zone(zone) for zone in self._zones),
            tuple(events),
            self._time,
        )

    def _check_inside(self, size_hw: tuple[int, int]) -> None:
        height, width = size_hw
        for one, points in (
            *((line, (line.region.start, line.region.end)) for line in self._lines),
            *((zone, zone.region.points) for zone in self._zones),
        ):
            x, y = zip(*points)
            if min(x) > width or max(x) < 0 or min(y) > height or max(y) < 0:
                raise InputError(
                    f"{one.name} lies beyond the frames of this video",
                    received=", ".join(f"{side:g}" for point in points for side in point),
                    allowed=f"pixels of a frame {width} wide and {height} high",
                )

    def _cross(self, line: _Line, box: Box, side: int) -> Crossing | None:
        track = box.track_id or 0
        if line.sides.setdefault(track, side) == side:
            line.runs[track] = 0
            return None
        line.runs[track] = line.runs.get(track, 0) + 1
        if line.runs[track] < self.options.frames:
            return None
        line.sides[track], line.runs[track] = side, 0
        direction = "in" if side > 0 else "out"
        line.counts[box.label, direction] += 1
        return Crossing(line.name, direction, track, box.label)

    def _visit(self, zone: _Zone, box: Box, is_in: bool) -> Iterator[Crossing]:
        track = box.track_id or 0
        if is_in:
            if track not in zone.since:
                zone.since[track] = self._time
                zone.visitors.add(track)
                yield Crossing(zone.name, "enter", track, box.label)
            until = self._time + 1 / self.frame_rate
            zone.last_seen[track] = _Sighting(self._frame, box.label, until)
        elif track in zone.since:
            seconds = zone.last_seen.pop(track).until - zone.since.pop(track)
            yield Crossing(zone.name, "leave", track, box.label, seconds)

    def _count_line(self, line: _Line) -> LineCount:
        by_class: dict[str, dict[str, int]] = {}
        for (label, direction), count in sorted(line.counts.items()):
            by_class.setdefault(label, {"in": 0, "out": 0})[direction] = count
        entered, left = (sum(one[way] for one in by_class.values()) for way in ("in", "out"))
        return LineCount(line.name, line.region.start, line.region.end, entered, left, by_class)

    def _count_zone(self, zone: _Zone) -> ZoneCount:
        stays = {track: one.until - zone.since[track] for track, one in zone.last_seen.items()}
        now = sum(one.frame == self._frame for one in zone.last_seen.values())
        labels = {track: one.label for track, one in zone.last_seen.items()}
        return ZoneCount(zone.name, zone.region.points, now, len(zone.visitors), stays, labels)


def count_regions(
    results: Iterable[DetectionResult],
    options: CountOptions,
    frame_rate: float,
    times: deque[float | None] | None = None,
) -> Iterator[DetectionResult]:
    """The results of the frames of one video, in order, with what is counted up to each; the times of the frames that
    are known, in seconds, are taken from the left of `times`."""
    counter = RegionCounter(options, frame_rate)
    for result in results:
        time = times.popleft() if times else None
        yield replace(result, counts=counter.update(result.boxes, time, result.size_hw))


def note_times(frames: Iterable[ImageItem], times: deque[float | None]) -> Iterator[ImageItem]:
    """The frames; `times` gains that of each."""
    for frame in frames:
        times.append(frame.time)
        yield frame
