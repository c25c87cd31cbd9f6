"""`oar data synthesize`: files in PaddleOCR's formats, continued after an interruption, refused where they differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import ImageFont

from framework.commands.data import main
from framework.core.errors import FormatError, InputError
from framework.vision import image
from framework.workflow.data.synthesize import synthesize
from ocr.data.synthetic.lines import SyntheticTextLines
from ocr.data.synthetic.pages import SyntheticPages


@pytest.fixture
def font(tmp_path: Path) -> Path:
    loaded: Any = ImageFont.load_default(20)
    (tmp_path / "own.ttf").write_bytes(loaded.path.getvalue())
    return tmp_path / "own.ttf"


def settings(font: Path, count: int) -> list[str]:
    return [f"count={count}", f"fonts=[{json.dumps(str(font))}]", "height=[20, 24]"]


def test_lines_are_written_as_image_and_text(font: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    report = synthesize("SyntheticTextLines", out, settings(font, 5), suffix=".png")
    dataset = SyntheticTextLines(count=5, fonts=(font,), height=(20, 24))
    rows = [line.split("\t") for line in report.labels.read_text(encoding="utf-8").splitlines()]
    assert [text for _, text in rows] == [dataset[index].text for index in range(5)]
    for index, (name, _) in enumerate(rows):
        assert name == f"images/{index:08d}.png"
        assert np.array_equal(image.read(out / name), dataset[index].image)


def test_pages_are_written_as_json_of_their_polygons(font: Path, tmp_path: Path) -> None:
    given = [f"fonts=[{json.dumps(str(font))}]", "height=[90, 120]", "width=[90, 120]", "count=4"]
    report = synthesize("SyntheticPages", tmp_path / "out", given)
    dataset = SyntheticPages(count=4, fonts=(font,), height=(90, 120), width=(90, 120))
    unreadable = 0
    for index, line in enumerate(report.labels.read_text(encoding="utf-8").splitlines()):
        name, _, text = line.partition("\t")
        sample, rows = dataset[index], json.loads(text)
        assert (tmp_path / "out" / name).is_file() and len(rows) == len(sample.text or ())
        for row, polygon, own, valid in zip(rows, sample.polygons or (), sample.text or (), sample.valid):
            assert row["transcription"] == (own if valid else "###")
            np.testing.assert_allclose(row["points"], polygon, atol=0.051)
            unreadable += not valid
    assert unreadable


def test_an_interrupted_run_is_continued(font: Path, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    synthesize("SyntheticTextLines", whole, settings(font, 7))
    synthesize("SyntheticTextLines", part, settings(font, 4))
    labels = part / "labels.txt"
    labels.write_bytes(labels.read_bytes()[:-3])  # the last line is cut off
    report = synthesize("SyntheticTextLines", part, settings(font, 7))
    assert (report.written, report.before) == (4, 3)
    assert labels.read_bytes() == (whole / "labels.txt").read_bytes()
    for path in (whole / "images").iterdir():
        assert path.read_bytes() == (part / "images" / path.name).read_bytes()
    assert synthesize("SyntheticTextLines", part, settings(font, 7)).written == 0


def test_other_output_is_not_written_over(font: Path, tmp_path: Path) -> None:
    synthesize("SyntheticTextLines", tmp_path / "out", settings(font, 2))
    with pytest.raises(InputError, match="other settings"):
        synthesize("SyntheticTextLines", tmp_path / "out", [*settings(font, 2), "seed=1"])
    with pytest.raises(InputError, match="other settings"):
        synthesize("SyntheticTextLines", tmp_path / "out", settings(font, 2), suffix=".png")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "labels.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="there already"):
        synthesize("SyntheticTextLines", tmp_path / "mine", settings(font, 2))
    (tmp_path / "out" / "labels.txt").write_text("images/7.jpg\ta\n", encoding="utf-8")
    with pytest.raises(FormatError, match="not those that were written"):
        synthesize("SyntheticTextLines", tmp_path / "out", settings(font, 3))


def test_nothing_is_written_where_there_is_nothing_to_draw_with(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such font"):
        synthesize("SyntheticTextLines", tmp_path / "out", ["fonts=[absent.ttf]"])
    assert not (tmp_path / "out").exists()


def test_the_command_takes_its_settings(
    font: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    given = ["synthesize", "lines", str(out), "--count", "3", "--fonts", str(font), "--characters", "ab"]
    assert main([*given, "-o", "height=[20,20]", "style.p_blur=0"]) == 0
    assert "labels.txt: 3 images" in capsys.readouterr().out
    texts = [line.split("\t")[1] for line in (out / "labels.txt").read_text(encoding="utf-8").splitlines()]
    assert set("".join(texts)) <= {"a", "b"}
    assert {image.read(path).shape[0] for path in (out / "images").iterdir()} == {20}
    assert (
        main(["synthesize", "lines", str(tmp_path / "other"), "--fonts", str(font), "--characters", "漢"])
        != 0
    )
    assert "in none of the fonts" in capsys.readouterr().err
