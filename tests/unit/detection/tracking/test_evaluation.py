from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from detection.tracking.evaluation import score_files
from framework.commands.eval import main
from framework.core.errors import InputError


def write(path: Path, *rows: Sequence[float]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in rows), encoding="utf-8")
    return path


def box(frame: int, number: int, left: float, mark: float = 1, category: int = 1) -> tuple[float, ...]:
    """A line of ground truth: 10 x 10 pixels."""
    return frame, number, left, 0, 10, 10, mark, category, 1


def sequence(folder: Path, name: str, *rows: Sequence[float]) -> None:
    write(folder / name / "gt" / "gt.txt", *rows)


def test_scores_of_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Two frames; the second is found under another number, and a box beside."""
    truth = write(tmp_path / "gt.txt", box(1, 1, 0), box(2, 1, 0))
    tracks = write(tmp_path / "a.txt", box(1, 5, 0), box(2, 6, 0), box(2, 7, 40))
    out = tmp_path / "out"
    assert main(["--mot_truth", str(truth), "--tracks", str(tracks), "--output_dir", str(out)]) == 0
    printed = capsys.readouterr().out
    scores = json.loads(printed[: printed.rindex("}") + 1])
    assert scores == json.loads((out / "scores.json").read_text(encoding="utf-8"))
    counts = [scores[name] for name in ("objects", "found", "false_positives", "misses", "switches")]
    assert counts == [2, 3, 1, 0, 1] and (scores["mota"], scores["motp"], scores["idf1"]) == (0, 1, 0.4)
    assert scores["hota"] == pytest.approx((2 / 3 * 0.5) ** 0.5) and "sequences" not in scores


def test_several_sequences_are_scored_together(tmp_path: Path):
    sequence(tmp_path / "train", "one", box(1, 1, 0), box(2, 1, 0))
    sequence(tmp_path / "train", "two", box(1, 1, 0))
    (tmp_path / "train" / "test_part").mkdir()
    write(tmp_path / "tracks" / "one.txt", box(1, 1, 0), box(2, 1, 0))
    write(tmp_path / "tracks" / "two.txt")
    scores = score_files(tmp_path / "train", tmp_path / "tracks")
    assert scores["misses"] == 1 and scores["mota"] == pytest.approx(2 / 3)
    sequences = scores["sequences"]
    assert isinstance(sequences, dict) and list(sequences) == ["one", "two"]
    assert [one["mota"] for one in sequences.values() if isinstance(one, dict)] == [1, 0]
    alone = score_files(tmp_path / "train" / "one" / "gt" / "gt.txt", tmp_path / "tracks")
    assert alone == score_files(tmp_path / "train" / "one", tmp_path / "tracks") and alone["mota"] == 1


@pytest.mark.parametrize(
    ("name", "category", "mark", "errors"),
    [
        ("MOT17-02", 7, 0, 0),
        ("MOT17-02", 9, 0, 1),
        ("MOT17-02", 6, 0, 1),
        ("MOT20-01", 6, 0, 0),
        ("own", 7, 1, 0),
    ],
)
def test_who_follows_a_distractor_makes_no_error(
    tmp_path: Path, name: str, category: int, mark: int, errors: int
):
    """The classes of MOTChallenge: 7 stands still, 9 hides others, 6 is a vehicle. What is marked counts, of any."""
    sequence(tmp_path, name, box(1, 1, 0), box(1, 2, 40, mark, category))
    tracks = write(tmp_path / "tracks.txt", box(1, 5, 0), box(1, 6, 42))
    scores = score_files(tmp_path / name, tracks)
    assert (scores["false_positives"], scores["objects"]) == (errors, 1 + mark)


def test_what_cannot_be_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    sequence(tmp_path / "train", "one", box(1, 1, 0))
    sequence(tmp_path / "train", "two", box(1, 1, 0))
    tracks = write(tmp_path / "tracks" / "one.txt", box(1, 1, 0), box(1, 1, 40))
    with pytest.raises(InputError, match=r"1 of 2 sequences have no tracks(?s:.*)two\.txt"):
        score_files(tmp_path / "train", tmp_path / "tracks")
    with pytest.raises(InputError, match="several sequences need a folder"):
        score_files(tmp_path / "train", tracks)
    with pytest.raises(InputError, match=r"one\.txt, frame 1: the tracks have a number twice"):
        score_files(tmp_path / "train" / "one", tracks)
    with pytest.raises(InputError, match="no ground truth"):
        score_files(tmp_path / "nowhere", tracks)
    assert main(["--mot_truth", str(tracks)]) == 2 and "--tracks" in capsys.readouterr().err
