"""`oar data lines`: lines of pages and cropped lines as data to train on, with labels or with the model's readings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.commands.data import main
from framework.core.errors import ConfigError, FormatError, InputError
from framework.inference import Runtime
from framework.vision import image
from framework.workflow.data.lines import LineOptions, write_lines
from framework.workflow.domain.domain import find_domain
from ocr.data.lines import TextLineImages
from ocr.domain import DOMAIN, OCROptions
from tests.unit.ocr.pipeline.test_text_pipeline import (
    FakeEngine,
    artifact,
    line,
    orientation,
    page,
    text_map,
    words,
)

THREE = ((20, 20, line(1)), (20, 80, line(2)), (20, 140, line(3)))  # "aa", "bb", "cc"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A stand-in for every model; gives the calls that opened it."""
    calls: list[dict[str, Any]] = []

    def open_predictor(name: object, **given: Any) -> object:
        of = artifact("猫犬鳥魚虫馬") if name == "columns" else artifact()
        kept = of.stages["recognizer"] if name == "recognizer" else of
        if name == "recognizer":
            kept.config["kind"] = "recognizer"
        answers = {"detector": text_map, "orientation": orientation}
        engines = {id(stage): FakeEngine(answers.get(name, words)) for name, stage in of.stages.items()}
        monkeypatch.setattr(Runtime, "open", lambda self, stage: engines[id(stage)])
        calls.append({"model": name, **given})
        return DOMAIN.open(kept, OCROptions(**given["options"]), Runtime("cpu"))

    monkeypatch.setattr("ocr.domain.open_predictor", open_predictor)
    return calls


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    """Two pages: of the second the lower line is not labelled, and the label of the middle one is twice as wide."""
    folder = tmp_path / "pages"
    for name in ("one.png", "two.png"):
        image.write(folder / name, page(*THREE))
    return folder


def region(text: str, top: int, width: int = 120, left: int = 20) -> dict[str, Any]:
    corners = [[left, top], [left + width, top], [left + width, top + 24], [left, top + 24]]
    return {"transcription": text, "points": corners}


ONE = [region("AA", 20), region("BC", 80), region("CC", 140)]
TWO = [
    region("A", 20, 60),
    region("A", 20, 60, 80),
    region("B", 80, 240),
    region("###", 140),
    region("D", 200),
]


def write_labels(path: Path, **of_pages: list[dict[str, Any]]) -> str:
    rows = [f"{name}.png\t{json.dumps(regions)}\n" for name, regions in of_pages.items()]
    path.write_text("".join(rows), encoding="utf-8")
    return str(path)


def texts(path: Path) -> list[tuple[str, str]]:
    return [tuple(row.split("\t")) for row in path.read_text(encoding="utf-8").splitlines()]  # type: ignore[misc]


def test_lines_of_labelled_pages(model: list, pages: Path, tmp_path: Path) -> None:
    labels = write_labels(pages / "train.txt", one=ONE, two=TWO)
    out = tmp_path / "out"
    report = write_lines(pages, out, LineOptions(labels=(labels,), text="recased"))
    assert texts(out / "labels.txt") == [
        ("images/one_0.png", "aa"),
        ("images/one_1.png", "bc"),
        ("images/one_2.png", "cc"),
        ("images/two_0.png", "a a"),
    ]
    assert texts(out / "misread.txt") == [("images/one_1.png", "bc"), ("images/two_0.png", "a a")]
    rows = texts(out / "readings.tsv")
    assert rows[0] == ("image", "text", "reading", "score", "left_out")
    assert rows[2] == ("images/one_1.png", "bc", "bb", "0.9500", "")
    assert rows[5:] == [
        ("two.png", "", "bb", "0.9500", "cut otherwise"),
        ("two.png", "", "cc", "0.9500", "unreadable"),
    ]
    summary = report.summary()
    assert report.exit_code == 0 and f"3 files in {out}\n4 lines\n2 of them read otherwise" in summary
    assert "left out: 1 cut otherwise" in summary
    assert "2 of 7 labelled regions are in no line" in summary  # B and D
    dataset = TextLineImages(out, (Path("labels.txt"),))
    assert dataset[1].text == "bc"
    height, width = dataset[1].image.shape[:2]
    assert abs(height - 24) <= 6 and abs(width - 120) <= 6
    assert abs(int(dataset[1].image[height // 2, width // 2, 1]) - 80) < 5  # the green of "b"
    assert model[0]["model"] == "pp_ocrv6_small" and sorted(p.name for p in tmp_path.iterdir()) == [
        "out",
        "pages",
    ]


def test_files_of_regions_are_read_from_a_folder(model: list, pages: Path, tmp_path: Path) -> None:
    (tmp_path / "box").mkdir()
    for name, regions in (("one", ONE), ("two", TWO)):
        rows = [
            ",".join(str(value) for point in r["points"] for value in point) + f",{r['transcription']}\n"
            for r in regions
        ]
        (tmp_path / "box" / f"{name}.csv").write_text("".join(rows), encoding="utf-8")
    write_lines(pages, tmp_path / "out", LineOptions(labels=(str(tmp_path / "box"),)))
    assert [text for _, text in texts(tmp_path / "out" / "labels.txt")] == ["AA", "BC", "CC", "A A"]


def test_labels_that_are_left_out(model: list, pages: Path, tmp_path: Path) -> None:
    wrong = [region("AA", 20), region("TOTAL", 80), region("***", 140)]
    options = LineOptions(labels=(write_labels(pages / "a.txt", one=wrong),), max_cer=0.5, max_run=2)
    report = write_lines(pages, tmp_path / "out", options)
    assert texts(tmp_path / "out" / "labels.txt") == [("images/one_0.png", "AA")]
    assert [row[-1] for row in texts(tmp_path / "out" / "readings.tsv")[1:]] == [
        "", "says another", "run of signs",
    ]  # fmt: skip
    assert "2 of 3 labelled regions" in report.summary()


def test_images_that_cannot_be_read_do_not_stop_the_others(model: list, pages: Path, tmp_path: Path) -> None:
    (pages / "bad.png").write_bytes(b"no image")
    labels = write_labels(pages / "train.txt", absent=ONE, bad=ONE, one=ONE)
    report = write_lines(pages, tmp_path / "out", LineOptions(labels=(labels,)))
    assert report.exit_code == 1 and len(report.failed) == 2
    assert "absent.png" in report.failed[0][1] and "bad.png" in report.failed[1][1]
    assert [name for name, _ in texts(tmp_path / "out" / "labels.txt")] == [
        f"images/one_{n}.png" for n in range(3)
    ]


def test_readings_are_the_labels_of_pages_without_any(model: list, tmp_path: Path) -> None:
    badly = line(2)
    badly[..., 2] = 0  # neither way up: 0.6
    image.write(tmp_path / "in" / "deep" / "a.png", page((20, 20, line(1)), (20, 80, badly)))
    out = tmp_path / "out"
    report = write_lines(tmp_path / "in", out, LineOptions(min_score=0.7))
    assert texts(out / "labels.txt") == [("images/a_0.png", "aa")]
    assert texts(out / "readings.tsv")[2] == ("deep/a.png", "bb", "bb", "0.6000", "low score")
    assert not (out / "misread.txt").exists() and "regions" not in report.summary()
    write_lines(tmp_path / "in", tmp_path / "all")
    assert [text for _, text in texts(tmp_path / "all" / "labels.txt")] == ["aa", "bb"]


def test_a_column_is_cut_as_it_is_read(model: list, tmp_path: Path) -> None:
    image.write(tmp_path / "in" / "a.png", page((200, 60, np.rot90(line(2, width=60, height=30), -1))))
    write_lines(tmp_path / "in", tmp_path / "out", model="columns")
    assert texts(tmp_path / "out" / "labels.txt") == [("images/a_0.png", "犬犬")]
    pixels = image.read(tmp_path / "out" / "images" / "a_0.png")
    assert pixels.shape[1] > 1.5 * pixels.shape[0]
    assert np.diff(pixels[pixels.shape[0] // 2, 8:-8, 2].astype(int)).mean() > 2  # blue rises to the right


@pytest.mark.parametrize("name", ["pipeline", "recognizer"])
def test_images_that_are_lines_already(model: list, tmp_path: Path, name: str) -> None:
    root = tmp_path / "words"
    for letter in (1, 2):
        image.write(root / f"{letter}.jpg", line(letter))
    (root / "train.txt").write_text("1.jpg\tAA\n2.jpg\tBC\nabsent.jpg\tD\n", encoding="utf-8")
    own = write_lines(root, tmp_path / "own", LineOptions(cropped=True), model=name)
    assert texts(tmp_path / "own" / "labels.txt") == [("images/1.jpg", "aa"), ("images/2.jpg", "bb")]
    assert (tmp_path / "own" / "images" / "1.jpg").read_bytes() == (root / "1.jpg").read_bytes()
    assert own.exit_code == 0
    listed = LineOptions(cropped=True, labels=("train.txt",), text="recased")
    report = write_lines(root, tmp_path / "recased", listed, model=name)
    assert texts(tmp_path / "recased" / "misread.txt") == [("images/2.jpg", "bc")]
    assert report.exit_code == 1 and "absent.jpg" in report.failed[0][1]
    replaced = LineOptions(cropped=True, labels=("train.txt",), text="predicted")
    write_lines(root, tmp_path / "replaced", replaced, model=name)
    assert [text for _, text in texts(tmp_path / "replaced" / "labels.txt")] == ["aa", "bb"]


def test_output_that_is_there(
    model: list, pages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_lines(pages, out)
    with pytest.raises(InputError, match=r"there already(.|\n)*--overwrite"):
        write_lines(pages, out)
    (pages / "two.png").unlink()
    before = (out / "labels.txt").read_bytes()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):  # in the middle of a page
        patch.setattr(
            "ocr.pipeline.line_files.image.write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt)
        )
        write_lines(pages, out, overwrite=True)
    assert (out / "labels.txt").read_bytes() == before
    write_lines(pages, out, overwrite=True)
    assert len(texts(out / "labels.txt")) == 3 == len(list((out / "images").iterdir()))
    (out / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="other files than are written here"):
        write_lines(pages, out, overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pages"]


def test_what_cannot_be_read(model: list, pages: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(InputError, match="no such folder"):
        write_lines(tmp_path / "absent", out)
    with pytest.raises(InputError, match=r"absent\.txt"):
        write_lines(pages, out, LineOptions(labels=("absent.txt",)))
    with pytest.raises(FormatError, match=r"words\.txt:1: this line is no label"):
        (pages / "words.txt").write_text("one.png\taa\n", encoding="utf-8")
        write_lines(pages, out, LineOptions(labels=("words.txt",)))
    with pytest.raises(InputError, match="a folder"):
        write_lines(pages, out, LineOptions(labels=(str(pages),), cropped=True))
    assert not model  # none of it needs the model
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there is no image"):
        write_lines(tmp_path / "empty", out)
    labels = (write_labels(pages / "none.txt", one=[region("A", 260)]),)
    with pytest.raises(InputError, match=r"no line is left(.|\n)*left out: 3 without a label"):
        write_lines(pages, out, LineOptions(labels=labels))
    with pytest.raises(FormatError, match=r"finds no lines on pages(.|\n)*--cropped"):
        write_lines(pages, out, model="recognizer")
    with pytest.raises(ConfigError, match="cuts no lines"):
        find_domain("nlp").write_lines(pages, out, LineOptions(), None, Runtime())
    assert not out.exists()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"min_score": 1.5}, "min_score is out of range"),
        ({"max_cer": -0.1}, "max_cer is too small"),
        ({"max_cer": float("nan")}, "max_cer is too small"),
        ({"max_run": 0}, "max_run is too small"),
        ({"text": "recased"}, "there are no labels"),
    ],
)
def test_options_out_of_range(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LineOptions(**given)


def test_the_command(model: list, pages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_labels(pages / "a.txt", one=ONE)
    write_labels(pages / "b.txt", two=TWO)
    out = tmp_path / "out"
    given = ["lines", str(pages), str(out), "--labels", "a.txt", "b.txt", "--text", "recased"]
    settings = ["-o", "pipeline.detector.options.max_aspect=6", "--device", "cpu"]
    assert main([*given, "-c", "pp_ocrv6_tiny", "--max_cer", "0.2", *settings]) == 0
    assert "4 lines\n2 of them read otherwise" in capsys.readouterr().out
    (call,) = model
    assert call["model"] == "pp_ocrv6_tiny" and call["runtime"].device == "cpu"
    assert call["overrides"] == ("pipeline.detector.options.max_aspect=6",)
    assert main(given) == 2 and "--overwrite" in capsys.readouterr().err
    (pages / "one.png").write_bytes(b"no image")
    assert main([*given, "--overwrite"]) == 1 and "1 failed" in capsys.readouterr().err
    assert texts(out / "labels.txt") == [("images/two_0.png", "a a")]
