from __future__ import annotations

import numpy as np
import pytest

from detection.tracking.bytetrack import ByteTrack, ByteTrackOptions, assign
from framework.core.errors import ConfigError


def step(tracker: ByteTrack, *objects: tuple[float, ...]) -> list[int]:
    """One frame; objects are (x, y of the centre of a 40 x 80 box, score = 0.9, class = 0)."""
    padded = [(*values, *(0.9, 0)[len(values) - 2 :]) for values in objects]
    boxes = [[x - 20, y - 40, x + 20, y + 40] for x, y, _, _ in padded]
    return tracker.update(
        np.array(boxes, float).reshape(-1, 4),
        np.array([score for *_, score, _ in padded]),
        np.array([label for *_, label in padded], int),
    ).tolist()


def test_assign():
    cost = np.array([[0.1, 0.2, 0.9], [0.15, 0.7, 0.9]])
    rows, columns = assign(cost, 0.8)  # 0.2 + 0.15 is less than 0.1 + 0.7
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    # Below the limit 0.5, the pair (0, 0) alone saves 0.4; (0, 1) and (1, 0) save 0.3 + 0.35
    rows, columns = assign(cost, 0.5)
    assert (rows.tolist(), columns.tolist()) == ([0, 1], [1, 0])
    rows, columns = assign(cost, 0.2)  # 0.2 itself is not below
    assert (rows.tolist(), columns.tolist()) == ([0], [0])
    assert assign(np.ones((2, 1)), 0.8)[0].size == 0


def test_objects_keep_their_numbers():
    tracker = ByteTrack()
    for frame in range(20):
        assert step(tracker, (100 + 3 * frame, 100), (400 - 3 * frame, 300)) == [1, 2]
    for frame in range(20, 40):  # the order of the boxes does not matter
        assert step(tracker, (400 - 3 * frame, 300), (100 + 3 * frame, 100)) == [2, 1]


def test_frames_without_objects():
    tracker = ByteTrack()
    assert step(tracker) == [] and step(tracker) == []
    assert step(tracker, (50, 50)) == [-1]
    assert step(tracker, (50, 50)) == [1]
    assert step(tracker) == []


def test_a_false_alarm_gets_no_number():
    tracker = ByteTrack()
    assert step(tracker, (100, 100)) == [1]
    assert step(tracker, (100, 100), (500, 500)) == [1, -1]  # begins
    assert step(tracker, (100, 100)) == [1]  # not seen again: forgotten
    assert step(tracker, (100, 100), (500, 500)) == [1, -1]  # begins anew
    assert step(tracker, (100, 100), (500, 500)) == [1, 2]


def test_scores_decide_what_a_box_may_do():
    tracker = ByteTrack()
    assert step(tracker, (100, 100, 0.9), (300, 100, 0.55), (500, 100, 0.3)) == [1, -1, -1]  # 0.6 to begin
    assert step(tracker, (100, 100, 0.3), (300, 100, 0.55), (500, 100, 0.3)) == [1, -1, -1]  # 0.3 continues
    assert step(tracker, (100, 100, 0.05)) == [-1]  # nothing at all below 0.1
    assert step(tracker, (100, 100, 0.5)) == [1]


def test_crossing_objects_keep_their_numbers():
    tracker = ByteTrack()
    for frame in range(61):  # they meet at x = 220, y apart by 30 of a height of 80
        right, left = (100 + 4 * frame, 100), (340 - 4 * frame, 130)
        assert step(tracker, right, left) == [1, 2], frame


def test_an_occluded_object_comes_back_under_its_number():
    tracker = ByteTrack()
    for frame in range(15):
        assert step(tracker, (100 + 4 * frame, 100)) == [1]
    for _ in range(10):
        assert step(tracker) == []
    for frame in range(25, 30):  # where its motion leads
        assert step(tracker, (100 + 4 * frame, 100)) == [1]


def test_low_scores_carry_a_track_through_an_occlusion():
    def last(scores: list[float]) -> int:
        tracker = ByteTrack(ByteTrackOptions(buffer=3))
        found = [-1]
        for frame, score in enumerate([0.9] * 10 + scores + [0.9] * 3):
            found = step(tracker, (100 + 6 * frame, 100, score))
        return found[0]

    assert last([0.2] * 8) == 1
    assert last([0.05] * 8) == 2  # without them the track is given up


def test_a_doubtful_box_does_not_bring_a_lost_track_back():
    tracker = ByteTrack()
    assert step(tracker, (100, 100)) == [1]
    step(tracker)
    assert step(tracker, (100, 100, 0.3)) == [-1]
    assert step(tracker, (100, 100)) == [1]


@pytest.mark.parametrize(
    ("frame_rate", "hidden", "number"), [(30, 6, 1), (30, 7, 2), (60, 12, 1), (60, 13, 2)]
)
def test_how_long_a_track_waits(frame_rate: float, hidden: int, number: int):
    tracker = ByteTrack(ByteTrackOptions(buffer=6, frame_rate=frame_rate))
    assert step(tracker, (100, 100)) == [1]
    for _ in range(hidden):
        step(tracker)
    first, second = step(tracker, (100, 100)), step(tracker, (100, 100))
    assert second == [number] and first == ([1] if number == 1 else [-1])


def test_classes():
    for per_class, expected in ((True, -1), (False, 1)):
        tracker = ByteTrack(ByteTrackOptions(per_class=per_class))
        assert step(tracker, (100, 100, 0.9, 0)) == [1]
        assert step(tracker, (100, 100, 0.9, 1)) == [expected]
    tracker = ByteTrack()
    for _ in range(3):  # two classes at one place are two objects
        assert step(tracker, (100, 100, 0.9, 0), (101, 100, 0.9, 1)) == [1, 2]


def test_of_twins_the_longer_track_stays():
    tracker = ByteTrack()
    for _ in range(20):
        assert step(tracker, (100, 100)) == [1]
    # A second box beside it begins a track; then the first one is lost and the second moves to its place.
    assert step(tracker, (100, 100), (125, 100)) == [1, -1]
    assert step(tracker, (100, 100), (120, 100)) == [1, 2]
    assert [step(tracker, (x, 100)) for x in (116, 112, 108)] == [[2]] * 3
    for x in (105, 103, 101):
        step(tracker, (x, 100))
    assert step(tracker, (100, 100)) == [1]


def test_numbers_are_those_of_one_video():
    assert step(ByteTrack(), (1, 1)) == [1] and step(ByteTrack(), (1, 1)) == [1]


def test_ground_truth_that_jumps_does_not_stop_the_tracker():
    rng = np.random.default_rng(0)
    tracker = ByteTrack()
    for _ in range(50):
        count = int(rng.integers(0, 12))
        boxes = rng.uniform(0, 400, (count, 4)) * rng.choice([0, 1], (count, 1))  # some without an area
        ids = tracker.update(boxes, rng.uniform(0, 1, count), rng.integers(0, 3, count))
        found = ids[ids > 0]
        assert len(ids) == count and len(set(found.tolist())) == len(found)


@pytest.mark.parametrize(
    "settings", [{"low": 0.6}, {"new": 0.4}, {"new": 1.1}, {"buffer": -1}, {"frame_rate": 0.0}, {"low": -0.1}]
)
def test_options_that_make_no_sense(settings: dict):
    with pytest.raises(ConfigError, match=r"ByteTrackOptions: tracks cannot(.*\n)+.*low <= high <= new"):
        ByteTrackOptions(**settings)
