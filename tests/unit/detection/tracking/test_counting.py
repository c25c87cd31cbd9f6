"""detection.tracking.counting: directions and limits as in supervision's LineZone, stays in zones, what is written."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from unittest.mock import MagicMock

import numpy as np
import pytest

from detection.counts import EventFile
from detection.detector import DetectionOptions, ObjectDetector
from detection.results import Box, DetectionResult
from detection.tracking.counting import (
    Anchor,
    CountLine,
    CountOptions,
    CountZone,
    RegionCounter,
    anchor_points,
    count_regions,
    inside_zone,
    parse_line,
    parse_zone,
    sides_of_line,
)
from framework.core.errors import ConfigError, InputError
from framework.workflow import ImageItem


def box(x: float, y: float, track: int | None = 1, label: str = "car", size: float = 10) -> Box:
    half = size / 2
    return Box(label, 0, 0.9, (x - half, y - half, x + half, y + half), track)


def walk(options: CountOptions, *frames: list[Box], rate: float = 10.0) -> list[DetectionResult]:
    images = (
        DetectionResult(tuple(boxes), width=200, height=200, image=np.zeros((200, 200, 3), np.uint8))
        for boxes in frames
    )
    return list(count_regions(images, options, rate))


def counts_of(result: DetectionResult) -> tuple[int, int]:
    assert result.counts is not None
    return result.counts.lines[0].entered, result.counts.lines[0].left


def test_up_is_in_and_down_is_out() -> None:
    """As supervision: the line from left to right, an object from below it to above it comes in."""
    line = CountOptions((parse_line("0,100,200,100"),))
    assert counts_of(walk(line, [box(50, 150)], [box(50, 100)], [box(50, 50)])[-1]) == (1, 0)
    assert counts_of(walk(line, [box(50, 50)], [box(50, 150)])[-1]) == (0, 1)
    turned = CountOptions((parse_line("200,100,0,100"),))
    assert counts_of(walk(turned, [box(50, 50)], [box(50, 150)])[-1]) == (1, 0)
    upright = CountOptions((parse_line("100,0,100,200"),))
    assert counts_of(walk(upright, [box(50, 50)], [box(150, 50)])[-1]) == (1, 0)


def test_boxes_on_the_line_and_beyond_its_ends_do_not_count() -> None:
    line = CountOptions((parse_line("40,100,120,100"),))
    assert counts_of(walk(line, [box(80, 150)], [box(80, 103)])[-1]) == (0, 0)
    assert counts_of(walk(line, [box(150, 150)], [box(150, 50)])[-1]) == (0, 0)
    assert counts_of(walk(line, [box(118, 150)], [box(118, 50)])[-1]) == (
        0,
        0,
    )  # half of it is beyond the end
    centred = replace(line, line_anchor="center")
    assert counts_of(walk(centred, [box(118, 150)], [box(118, 50)])[-1]) == (1, 0)
    assert counts_of(walk(line, [box(80, 150, None)], [box(80, 50, None)])[-1]) == (0, 0)


def test_there_and_back_counts_twice_and_a_flicker_not_at_all() -> None:
    line = CountOptions((parse_line("gate=0,100,200,100"),))
    frames = [[box(50, y)] for y in (150, 50, 150, 50)]
    assert counts_of(walk(line, *frames)[-1]) == (2, 1)
    held = replace(line, frames=2)
    assert counts_of(walk(held, *frames)[-1]) == (0, 0)
    assert counts_of(walk(held, *[[box(50, y)] for y in (150, 50, 50, 150, 150)])[-1]) == (1, 1)
    result = walk(line, [box(50, 150), box(90, 50, 2, "bus")], [box(50, 50), box(90, 150, 2, "bus")])[-1]
    assert result.to_dict()["counts"] == {
        "lines": [
            {
                "name": "gate",
                "in": 1,
                "out": 1,
                "classes": {"bus": {"in": 0, "out": 1}, "car": {"in": 1, "out": 0}},
            }
        ],
        "zones": [],
    }


def test_who_is_hidden_at_the_line_is_counted_where_he_appears() -> None:
    line = CountOptions((parse_line("0,100,200,100"),))
    assert counts_of(walk(line, [box(50, 150)], [], [], [], [box(50, 50)])[-1]) == (1, 0)


def test_stays_in_a_zone() -> None:
    zone = CountOptions(zones=(parse_zone("till=0,0,100,100"),))
    results = walk(
        zone, [box(150, 50)], [box(50, 50)], [box(60, 50), box(20, 20, 2)], [box(150, 50), box(20, 20, 2)], []
    )
    assert [result.counts.zones[0].now for result in results if result.counts] == [0, 1, 2, 1, 0]
    last = results[-1].counts
    assert last is not None and last.zones[0].total == 2 and last.zones[0].stays == {2: 0.2}
    file = EventFile("clip")
    text = file.head + "".join(file.text(result, number) for number, result in enumerate(results)) + file.tail
    assert text.splitlines() == [
        "frame,time,region,event,track_id,label,seconds",
        "1,0.100,till,enter,1,car,",
        "2,0.200,till,enter,2,car,",
        "3,0.300,till,leave,1,car,0.200",
        "4,0.400,till,stay,2,car,0.200",
    ]
    assert file.name == "clip_events.csv" and file.summary() == ["till: 2 objects, 0 in the last frame"]
    assert (results[2].overlay()[:100, :100] > 0).any(axis=-1).mean() > 0.9  # the zone is tinted


def test_frames_that_last_differently_long() -> None:
    """openmpf#1313, PySceneDetect#168: the seconds of a video of variable frame rate are those of its timestamps."""
    zone = CountOptions(zones=(parse_zone("till=0,0,100,100"),))
    times, inside, outside = [0.0, 0.1, 5.0, 5.5, 7.0], [box(50, 50)], [box(150, 50)]
    images = (
        DetectionResult(tuple(boxes), width=200, height=200)
        for boxes in (outside, inside, inside, outside, inside)
    )
    results = list(count_regions(images, zone, 10.0, deque(times)))
    file = EventFile("clip", stride=2)
    text = "".join(file.text(result, number) for number, result in enumerate(results)) + file.tail
    assert text.splitlines() == [
        "2,0.100,till,enter,1,car,",
        "6,5.500,till,leave,1,car,5.400",
        "8,7.000,till,enter,1,car,",
        "8,7.000,till,stay,1,car,0.100",  # the last frame: as long as the rate says
    ]


def test_a_detector_counts_by_the_times_of_its_frames() -> None:
    class Still(ObjectDetector):
        def detect(self, items: Iterable[ImageItem]) -> Iterator[DetectionResult]:
            return (DetectionResult((box(50, 50, None),), width=200, height=200) for _ in items)

    options = DetectionOptions(tracker="bytetrack", zone=("0,0,100,100",))
    detector = Still(MagicMock(), ("car",), tracking=options.make_tracking())
    detector.counting = options.make_counting()
    frames = [
        ImageItem(np.zeros((200, 200, 3), np.uint8), "", n, time=t) for n, t in enumerate((0.0, 0.5, 9.0))
    ]
    last = list(detector.predict_video(iter(frames), 10.0))[-1].counts
    assert last is not None and last.time == 9.0 and last.zones[0].stays == {1: 9.1}


@pytest.mark.parametrize(("y", "down"), [(10, True), (10, False), (710, True), (710, False), (360, True)])
def test_a_line_nearer_to_the_edge_than_a_box_is_high(y: int, down: bool) -> None:
    """supervision#1838: a car of 100 pixels comes into the image over a line 10 pixels from its edge."""
    counter = RegionCounter(CountOptions((parse_line(f"0,{y},1296,{y}"),)))
    tops = range(-95, 715, 20)
    cars = [Box("car", 0, 0.9, (500, max(top, 0), 620, min(top + 100, 720)), 1) for top in tops]
    counts = [counter.update([car], size_hw=(720, 1296)) for car in (cars if down else reversed(cars))]
    assert (counts[-1].lines[0].entered, counts[-1].lines[0].left) == ((0, 1) if down else (1, 0))


def test_a_box_that_the_image_cuts_beside_the_line_is_on_it() -> None:
    upright, across = CountLine((100, 0), (100, 200)), CountLine((0, 100), (200, 100))
    size_hw = (200, 200)

    def side(line: CountLine, *bbox: float) -> int:
        return int(sides_of_line(line, anchor_points(np.array([bbox]), "corners"), size_hw)[0])

    assert side(upright, 50, 120, 150, 200) == 0  # its corners on either side are not all at the edge
    assert side(across, 50, 0, 150, 200) == 0  # cut on both sides
    assert side(across, 50, 40, 150, 199.5) == -1 and side(across, 50, 40, 150, 190) == 0
    assert side(across, 50, 120, 150, 200) == -1 and side(across, 50, 0, 150, 60) == 1


def test_the_middle_of_the_lower_side_tells_the_zone() -> None:
    zone = CountOptions(zones=(parse_zone("0,0,100,100"),))
    inside = [RegionCounter(zone).update([box(50, y)]).zones[0].now for y in (50, 94, 96)]
    assert inside == [1, 1, 0]
    corners = replace(zone, zone_anchor="corners")
    assert RegionCounter(corners).update([box(3, 50)]).zones[0].now == 0


@pytest.mark.parametrize("text", ["0.5,0,0.5,1", "gate=0,0,1,1"])
def test_shares_of_the_image_are_refused(text: str) -> None:
    for parse in (parse_line, parse_zone):
        with pytest.raises(ConfigError, match="in pixels, not in shares of the image"):
            parse(text)


@pytest.mark.parametrize(
    "options",
    [
        CountOptions((CountLine((5000, 0), (5000, 200)),)),
        CountOptions(zones=(CountZone(((0, 201), (100, 201), (50, 300))),)),
    ],
)
def test_regions_beyond_the_frame_are_refused(options: CountOptions) -> None:
    """They counted nothing without a word; those at the edge, such as 0,200,200,200, do count."""
    with pytest.raises(
        InputError, match=r"1 lies beyond the frames of this video\n.*\n.*200 wide and 200 high"
    ):
        walk(options, [box(50, 50)])
    walk(CountOptions((CountLine((0, 200), (200, 200)),)), [box(50, 50)])


def test_a_polygon_with_a_bay() -> None:
    bay = parse_zone("0,0,100,0,100,100,50,20,0,100")
    points = np.array([[[50.0, 10.0], [50.0, 60.0], [90.0, 60.0], [-1.0, 5.0]]])
    assert inside_zone(bay, points).tolist() == [True, False, True, False]


def test_edges_are_in_the_zone() -> None:
    whole = CountOptions(zones=(parse_zone("0,0,640,480"),))
    cut = box(320, 0, 1)
    assert RegionCounter(whole).update([replace(cut, bbox=(300, 400, 340, 480))]).zones[0].now == 1
    turned = parse_zone("10,0,20,10,10,20,0,10")
    points = np.array([[[15.0, 5.0], [10.0, 20.0], [15.1, 4.9], [25.0, 15.0], [0.0, 10.0]]])
    assert inside_zone(turned, points).tolist() == [True, True, False, False, True]


def zones_of(anchor: Anchor, bbox: tuple[float, float, float, float], *zones: str) -> list[int]:
    options = CountOptions(zones=tuple(parse_zone(zone) for zone in zones), zone_anchor=anchor)
    counts = RegionCounter(options).update([Box("car", 0, 0.9, bbox, 1)])
    return [zone.now for zone in counts.zones]


@pytest.mark.parametrize("bbox", [(90, 50, 110, 70), (90, 150, 110, 200), (90, -20, 110, 0)])
def test_an_object_on_the_common_edge_of_two_zones_is_in_one(bbox: tuple[float, float, float, float]) -> None:
    """supervision#1991: an object is not in two zones that lie side by side."""
    assert sum(zones_of("bottom", bbox, "0,0,100,200", "100,0,200,200")) == 1
    quarters = ("0,0,100,70", "100,0,200,70", "0,70,100,200", "100,70,200,200")
    assert sum(zones_of("bottom", bbox, *quarters)) == 1
    slanted = ("0,0,200,0,0,400", "200,0,200,400,0,400")
    assert sum(zones_of("center", (90, 190, 110, 210), *slanted)) == 1


def test_a_box_is_not_cut_to_a_zone_before_it_is_looked_for_there() -> None:
    zones = ("0,167,457,427", "458,67,1011,309")
    assert zones_of("bottom", (441, 258, 718, 713), *zones) == [0, 0]
    assert zones_of("center", (441, 158, 718, 413), *zones) == [0, 1]


def test_zones_that_overlap_count_an_object_each() -> None:
    bbox = (90, 150, 110, 200)  # cut by the lower end of the image
    assert zones_of("bottom", bbox, "0,0,200,200", "50,100,150,200") == [1, 1]
    assert zones_of("bottom", (90, 50, 110, 100), "0,0,200,200", "50,100,150,200") == [1, 1]
    assert zones_of("corners", (100, 20, 140, 60), "0,0,100,200", "100,0,200,200") == [0, 1]
    assert zones_of("corners", (60, 20, 100, 60), "0,0,100,200", "100,0,200,200") == [1, 0]


@pytest.mark.parametrize("text", ["1,2,3", "1,2,1,2", "a,b,c,d", "1,2,3,inf", ""])
def test_what_is_no_line(text: str) -> None:
    with pytest.raises(ConfigError, match=r"this is not a line(?s:.)*x1,y1,x2,y2"):
        DetectionOptions(tracker="bytetrack", count_line=(text,))


@pytest.mark.parametrize("text", ["1,2,3", "1,2,3,4,5", "1,2,1,2,1,2", "x"])
def test_what_is_no_zone(text: str) -> None:
    with pytest.raises(ConfigError, match="this is not a zone"):
        parse_zone(text)


def test_options_of_what_is_not_asked_for() -> None:
    with pytest.raises(ConfigError, match=r"lines and zones count tracks(?s:.)*--tracker bytetrack"):
        DetectionOptions(zone=("0,0,9,9",))
    with pytest.raises(ConfigError, match="nothing is counted"):
        DetectionOptions(tracker="bytetrack", count_frames=2)
    with pytest.raises(ConfigError, match="--save_conf belongs to --save_txt"):
        DetectionOptions(save_conf=True)
    with pytest.raises(ConfigError, match="--agnostic_iou belongs to --agnostic_nms"):
        DetectionOptions(agnostic_iou=0.4)
    with pytest.raises(InputError, match="agnostic_iou is out of range"):
        DetectionOptions(agnostic_nms=True, agnostic_iou=2)
    with pytest.raises(ConfigError, match="frames is out of range"):
        DetectionOptions(tracker="bytetrack", zone=("0,0,9,9",), count_frames=0)
