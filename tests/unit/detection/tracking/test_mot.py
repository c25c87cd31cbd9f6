from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from detection.tracking.bytetrack import ByteTrack
from detection.tracking.mot import FrameTracks, MotScores, evaluate, mot_line, read_mot, total, write_mot
from framework.core.errors import FormatError, InputError


def frame(**places: float) -> FrameTracks:
    """Boxes 10 x 10 at x, by number: frame(_1=0, _2=30)."""
    ids = np.array([int(name[1:]) for name in places], np.int64)
    boxes = np.array([[x, 0, x + 10, 10] for x in places.values()], float).reshape(-1, 4)
    return FrameTracks(ids, boxes, np.ones(len(ids)))


# -- files -------------------------------------------------------------------------------------------------------------


def test_lines():
    assert mot_line(3, 7, (1, 2, 4.5, 8), 0.5) == "3,7,1.00,2.00,3.50,6.00,0.5000,-1,-1,-1\n"
    assert mot_line(1, -1, (0, 0, 1, 1), 1.0, 2) == "1,-1,0.00,0.00,1.00,1.00,1.0000,2,-1,-1\n"


def test_files_there_and_back(tmp_path: Path):
    tracks = {5: frame(_1=3.25), 2: frame(_1=0, _4=20.5)}
    write_mot(tmp_path / "a.txt", tracks)
    text = (tmp_path / "a.txt").read_text(encoding="utf-8")
    assert [line.split(",")[:3] for line in text.splitlines()] == [
        ["2", "1", "0.00"],
        ["2", "4", "20.50"],
        ["5", "1", "3.25"],
    ]
    again = read_mot(tmp_path / "a.txt")
    assert list(again) == [2, 5]
    for number, found in again.items():
        for got, expected in zip(found, tracks[number]):
            assert got.dtype == expected.dtype and (got == expected).all()
    write_mot(tmp_path / "none.txt", {})
    assert read_mot(tmp_path / "none.txt") == {}


def test_other_spellings(tmp_path: Path):
    (tmp_path / "gt.txt").write_text("1, 2, 10, 20, 5, 6, 0\n\n1 3 1 2 3 4\n", encoding="utf-8")
    both = read_mot(tmp_path / "gt.txt")[1]
    assert both.ids.tolist() == [2, 3] and both.scores.tolist() == [0, 1]
    assert both.boxes.tolist() == [[10, 20, 15, 26], [1, 2, 4, 6]]
    assert read_mot(tmp_path / "gt.txt", min_score=0.5)[1].ids.tolist() == [3]


@pytest.mark.parametrize("separator", [";", "\t", " ; "])
def test_files_as_spreadsheets_write_them(tmp_path: Path, separator: str):
    text = "\ufeff" + separator.join(["1", "2", "10", "20", "5", "6", "0.5"]) + "\r\n"
    (tmp_path / "a.csv").write_bytes(text.encode())
    assert read_mot(tmp_path / "a.csv")[1].boxes.tolist() == [[10, 20, 15, 26]]
    (tmp_path / "b.csv").write_bytes(text.encode("utf-16"))
    with pytest.raises(FormatError, match="line 1: the line is not of a MOT file"):
        read_mot(tmp_path / "b.csv")


@pytest.mark.parametrize("line", ["1,2,3,4,5", "1,2,a,4,5,6,7", "1,2,nan,4,5,6,7"])
def test_damaged_files(tmp_path: Path, line: str):
    (tmp_path / "a.txt").write_text(f"1,1,1,1,1,1\n{line}\n", encoding="utf-8")
    with pytest.raises(
        FormatError, match=r"a\.txt, line 2: the line is not of a MOT file\n  received: '1,2,"
    ):
        read_mot(tmp_path / "a.txt")
    with pytest.raises(InputError, match=r"no such|there is no"):
        read_mot(tmp_path / "no.txt")


# -- scores ------------------------------------------------------------------------------------------------------------


def test_perfect_tracks():
    truth = {1: frame(_1=0, _2=50), 2: frame(_1=5, _2=55)}
    scores = evaluate(truth, {1: frame(_8=0, _9=50), 2: frame(_8=5, _9=55)})
    assert scores == MotScores(4, 4, 0, 0, 0, 4.0, 4)
    assert (scores.mota, scores.motp, scores.idf1, scores.idp, scores.idr) == (1, 1, 1, 1, 1)


def test_misses_false_positives_and_a_switch():
    truth = {n: frame(_1=0, _2=50) for n in (1, 2, 3, 4)}
    found = {
        1: frame(_1=0, _2=50),
        2: frame(_1=0),  # object 2 is missed
        3: frame(_1=0, _3=50, _4=200),  # object 2 is now 3; 4 is nothing
        4: frame(_1=0, _3=55),  # 5 / 15 of overlap are not enough: a miss and a false positive
    }
    scores = evaluate(truth, found)
    assert scores == MotScores(8, 8, 2, 2, 1, 6.0, 5)
    assert scores.mota == 1 - 5 / 8 and scores.motp == 1
    assert (scores.idp, scores.idr, scores.idf1) == (5 / 8, 5 / 8, 10 / 16)


def test_motp_is_the_mean_overlap():
    scores = evaluate({1: frame(_1=0, _2=50)}, {1: frame(_1=2, _2=50)})
    np.testing.assert_allclose(scores.motp, (8 / 12 + 1) / 2)
    assert evaluate({1: frame(_1=0)}, {1: frame(_1=2)}, iou_threshold=0.7).misses == 1


def test_a_match_is_kept_while_it_overlaps():
    # Track 2 comes closer to the object than track 1, which it was matched with and still overlaps by 6 / 14 + ...
    truth = {1: frame(_1=0), 2: frame(_1=0)}
    found = {1: frame(_1=1), 2: frame(_1=3, _2=0)}
    scores = evaluate(truth, found)
    assert scores.switches == 0 and scores.false_positives == 1
    np.testing.assert_allclose(scores.overlap, 9 / 11 + 7 / 13)


def test_a_match_is_kept_from_the_frame_before_alone():
    """A track that was lost for a frame has no right to its object (py-motmetrics#41): TrackEval 1.3 gives the nearer
    one, and a switch."""
    truth = {n: frame(_1=0) for n in (1, 2, 4)}
    found = {1: frame(_1=0), 2: frame(_1=50), 4: frame(_1=3, _2=0)}
    scores = evaluate(truth, found)
    assert (scores.switches, scores.misses, scores.false_positives) == (1, 1, 2)
    np.testing.assert_allclose(scores.overlap, 2.0)
    scores = evaluate(truth, {1: frame(_1=0), 4: frame(_1=3, _2=0)})  # nothing was found in the frame between
    assert (scores.switches, scores.misses, scores.false_positives) == (0, 1, 1)


def test_a_switch_is_counted_over_a_gap_and_back():
    truth = {n: frame(_1=0) for n in range(1, 6)}
    found = {1: frame(_1=0), 3: frame(_2=0), 5: frame(_1=0)}
    scores = evaluate(truth, found)
    assert (scores.switches, scores.misses, scores.identified) == (2, 2, 2)


def test_most_matches_before_the_largest_overlap():
    # Object 1 overlaps both tracks, object 2 only track 7: the pairs (1, 8), (2, 7) are two, (1, 7) alone is one.
    scores = evaluate({1: frame(_1=0, _2=4)}, {1: frame(_7=1, _8=-3)})
    assert (scores.misses, scores.false_positives) == (0, 0)


def test_one_track_is_no_match_for_two_objects():
    # Both were matched with track 5 once, and both overlap it now.
    truth = {1: frame(_1=0), 2: frame(_2=2), 3: frame(_1=0, _2=2)}
    scores = evaluate(truth, {n: frame(_5=1) for n in (1, 2, 3)})
    assert (scores.misses, scores.false_positives, scores.switches) == (1, 0, 0)


def test_boxes_without_a_track_match_too():
    scores = evaluate({1: frame(_1=0)}, {1: FrameTracks(np.array([-1]), frame(_1=0).boxes, np.ones(1))})
    assert (scores.misses, scores.false_positives, scores.switches) == (0, 0, 0)


def test_empty():
    assert evaluate({}, {}) == MotScores() and MotScores().mota == 1 and MotScores().idf1 == 0
    assert evaluate({1: frame()}, {1: frame(_1=0)}).false_positives == 1
    assert evaluate({1: frame(_1=0)}, {}).misses == 1


def test_what_is_found_where_nothing_is_is_no_perfect_score():
    """As TrackEval's, max(1, objects) below; py-motmetrics#8 has minus infinity."""
    scores = evaluate({}, {1: frame(_1=0, _2=50)})
    assert (scores.mota, scores.idf1, scores.motp) == (-2, 0, 0)


def test_scores_of_several_videos_add_up():
    one, other = MotScores(10, 8, 1, 3, 1, 6.0, 5), MotScores(30, 30, 0, 0, 0, 30.0, 30)
    assert total([one, other]) == MotScores(40, 38, 1, 3, 1, 36.0, 35)
    assert total([one, other]).mota == 1 - 5 / 40 and total([]) == MotScores()


# Identity scores and counts of a tracker's real output. TUD-Campus as py-motmetrics counts it: in frame 68 two objects
# overlap the track that both were matched with, and one of them stays without.
@pytest.mark.parametrize(
    ("name", "counts", "mota", "idf1"),
    [("TUD-Campus", (13, 150, 7), 0.526, 0.558), ("TUD-Stadtmitte", (45, 452, 7), 0.564, 0.645)],
)
def test_real_tracks(shared: Path, name: str, counts: tuple[int, int, int], mota: float, idf1: float):
    folder = shared / "data" / "mot_tracks"
    if not folder.is_dir():
        pytest.skip("no shared/data/mot_tracks")
    truth = read_mot(folder / name / "gt" / "gt.txt")
    scores = evaluate(truth, read_mot(folder / "results" / f"{name}.txt"))
    assert (scores.false_positives, scores.misses, scores.switches) == counts
    assert (round(scores.mota, 3), round(scores.idf1, 3)) == (mota, idf1)


def test_bytetrack_on_real_boxes(shared: Path):
    folder = shared / "data" / "mot_tracks"
    if not folder.is_dir():
        pytest.skip("no shared/data/mot_tracks")
    scores = []
    for name in ("TUD-Campus", "TUD-Stadtmitte"):
        truth = read_mot(folder / name / "gt" / "gt.txt")
        tracker, found = ByteTrack(), {}
        for number in range(1, max(truth) + 1):
            _, boxes, seen = truth.get(number, frame())
            ids = tracker.update(boxes, 0.9 * seen, np.zeros(len(boxes), int))
            found[number] = FrameTracks(ids[ids > 0], boxes[ids > 0], seen[ids > 0])
        scores.append(evaluate(truth, found))
    both = total(scores)
    assert both.switches <= 1 and both.misses <= 5 and both.false_positives == 0
    assert both.mota > 0.99 and both.idf1 > 0.97


def test_a_number_twice_in_a_frame_is_refused():
    """The identity scores would be above 1 (TrackEval#151)."""
    one, twice = {1: frame(_1=0)}, {1: FrameTracks(np.array([1, 1]), frame(_1=0, _2=30).boxes, np.ones(2))}
    with pytest.raises(InputError, match="the tracks have a number twice"):
        evaluate(one, twice)
    with pytest.raises(InputError, match="the labels have a number twice"):
        evaluate(twice, one)


def test_boxes_of_no_track_are_not_one_track():
    untracked = FrameTracks(np.array([-1, 7, -1]), frame(_1=0, _2=30, _3=60).boxes, np.ones(3))
    scores = evaluate({1: frame(_1=0, _2=30), 2: frame(_1=0, _2=30)}, {1: untracked, 2: frame(_4=0, _7=30)})
    assert (scores.found, scores.misses, scores.false_positives, scores.switches) == (5, 0, 1, 0)
    assert scores.identified == 3
