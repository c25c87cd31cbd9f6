"""Label files of lines and pages: every format, mixing, and what is said of lines that are none."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.vision import image
from ocr.data.directions import TextLineDirections
from ocr.data.labels import mix_files, read_page_labels, read_regions
from ocr.data.lines import LinesOfPages, TextLineImages
from ocr.data.pages import TextPageFiles, TextPages
from ocr.text.label_files import read_line_labels

QUAD = [[1, 2], [31, 2], [31, 12], [1, 12]]


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_lines_keep_their_spaces_and_tabs_end_the_name_alone(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", 'a b.jpg\t x  y\t\n["1.png", "2.png"]\tZ\n\n漢.png\t文　字\n')
    found = read_line_labels(path)
    assert [(one.image, one.text) for one in found] == [
        ("a b.jpg", " x  y\t"),
        ("1.png", "Z"),
        ("2.png", "Z"),
        ("漢.png", "文　字"),
    ]
    assert found[3].place == f"{path}:4"
    (nested,) = read_line_labels(write(tmp_path / "b.txt", f"{'[' * 100_000}\tx\n"))
    assert nested.image.startswith("[[[")  # no list, so a name


@pytest.mark.parametrize("line", ["a.jpg text", "a.jpg\t", "\ttext", "a.jpg\t  "])
def test_a_line_without_a_label_names_file_and_line(
    tmp_path: Path, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "a.txt", f"ok.jpg\tfine\n{line}\n")
    with pytest.raises(FormatError, match=r"a\.txt:2: this line is no label"):
        read_line_labels(path)
    with caplog.at_level(logging.WARNING, "oar"):
        assert [one.text for one in read_line_labels(path, "skip")] == ["fine"]
    assert "1 lines are no labels" in caplog.text and "a.txt:2" in caplog.text


def test_a_file_of_wrong_lines_alone_is_an_error_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"a\.txt:1"):
        read_line_labels(write(tmp_path / "a.txt", "nothing\nhere\n"), "skip")
    with pytest.raises(InputError):
        read_line_labels(tmp_path / "none.txt")


def test_pages_of_paddleocr(tmp_path: Path) -> None:
    regions = [
        {"transcription": "TOTAL", "points": QUAD},
        {"transcription": "###", "points": [*QUAD, [0, 5]]},
    ]
    path = write(tmp_path / "a.txt", f"p.jpg\t{json.dumps(regions)}\nempty.jpg\t[]\n")
    first, second = read_page_labels(path)
    assert [(one.text, one.readable, one.polygon.shape) for one in first.regions] == [
        ("TOTAL", True, (4, 2)),
        ("###", False, (5, 2)),
    ]
    assert second.regions == ()


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{}",
        '[{"points": [[0,0],[1,0],[1,1],[0,1]]}]',
        '[{"transcription": "a", "points": [[0,0],[1,1]]}]',
        "7",
        pytest.param("[" * 100_000, id="nested"),
    ],
)
def test_a_page_that_is_no_label(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"a\.txt:1: this line is no label"):
        read_page_labels(write(tmp_path / "a.txt", f"p.jpg\t{text}\n"))


def test_files_of_icdar_and_sroie(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", "\ufeff1,2,31,2,31,12,1,12,RM 1,250.00\n1,2,3,4,5,6,7,8,###\n")
    first, second = read_regions(path)
    assert first.text == "RM 1,250.00" and first.polygon.tolist() == QUAD and first.readable
    assert not second.readable
    assert read_regions(write(tmp_path / "b.txt", "")) == ()
    boxes = '1, 2, 31, 12, "RM 1,250.00"\r\n1 2 31 12 "a "b""\n1,2,31,12,"###"\n'
    commas, blanks, unreadable = read_regions(write(tmp_path / "2013.txt", boxes))
    assert [one.text for one in (commas, blanks)] == ["RM 1,250.00", 'a "b"'] and not unreadable.readable
    assert commas.polygon.tolist() == blanks.polygon.tolist() == QUAD
    with pytest.raises(FormatError, match=r"c\.txt:1.*"):
        read_regions(write(tmp_path / "c.txt", "1,2,3,text\n"))


def test_regions_of_a_detector_need_no_text_and_their_corners_no_order(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    corners = np.array(QUAD)
    orders = ([0, 1, 2, 3], [0, 1, 3, 2], [0, 3, 1, 2], [0, 2, 1, 3], [0, 3, 2, 1])
    regions = [{"transcription": "", "points": corners[order].tolist()} for order in orders]
    path = write(tmp_path / "a.txt", f"p.jpg\t{json.dumps(regions)}\n")
    (page,) = read_page_labels(path)
    assert [one.polygon.tolist() for one in page.regions[:4]] == [QUAD] * 4
    assert (
        page.regions[4].polygon.tolist() == corners[[0, 3, 2, 1]].tolist()
    )  # an order that does not cross stays
    assert "corners of 3 quads" in caplog.text
    assert all(one.readable and not one.has_text for one in page.regions)
    assert len(LinesOfPages(TextPages(tmp_path, (path,)))) == 0


def test_a_transcription_of_null_is_one_that_is_not_said(tmp_path: Path) -> None:
    regions = [{"transcription": None, "points": QUAD}, {"transcription": 52207, "points": QUAD}]
    (page,) = read_page_labels(write(tmp_path / "a.txt", f"p.jpg\t{json.dumps(regions)}\n"))
    assert [(one.text, one.readable, one.has_text) for one in page.regions] == [
        ("", True, False),
        ("52207", True, True),
    ]


def test_lines_of_boxes_that_were_drawn_from_the_right_are_not_mirrored(tmp_path: Path) -> None:
    pixels = np.zeros((20, 40, 3), np.uint8)
    pixels[:, 20:, 0] = 255  # red on the right
    image.write(tmp_path / "p.png", pixels)
    corners = np.array([[4, 4], [36, 4], [36, 16], [4, 16]])
    # as PPOCRLabel writes a box that was drawn from each of its corners to the opposite one
    drawn = [[0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0], [0, 3, 2, 1], [2, 3, 0, 1]]
    regions = [{"transcription": "a", "points": corners[order].tolist()} for order in drawn]
    path = write(tmp_path / "a.txt", f"p.png\t{json.dumps(regions)}\n")
    crops = [sample.image for sample in LinesOfPages(TextPages(tmp_path, (path,)))]
    reds = [(int(crop[6, 4, 0]), int(crop[6, -4, 0])) for crop in crops]
    assert reds == [(0, 255)] * 4 + [(255, 0)]  # the last runs clockwise: text on its head


def test_ratios_take_parts_and_multiples() -> None:
    mixed = mix_files([list("abcdefghij"), ["x", "y"]], [0.3, 2])
    assert len(mixed) == 7 and mixed[3:] == ["x", "y", "x", "y"] and set(mixed[:3]) <= set("abcdefghij")
    assert mixed == mix_files([list("abcdefghij"), ["x", "y"]], [0.3, 2])
    with pytest.raises(ConfigError, match="ratio"):
        TextLineImages(Path(), (Path("a"), Path("b")), (1.0,))
    with pytest.raises(ConfigError, match="nothing to read"):
        TextPages(Path(), ())


def test_lines_are_cut_out_of_pages(tmp_path: Path) -> None:
    pixels = np.zeros((40, 60, 3), np.uint8)
    pixels[2:12, 1:31] = 200
    image.write(tmp_path / "img" / "p.png", pixels)
    (tmp_path / "box").mkdir()
    write(
        tmp_path / "box" / "p.csv", "1,2,31,2,31,12,1,12,AB\n40,0,50,0,50,30,40,30,I\n0,0,9,0,9,9,0,9,###\n"
    )
    pages = TextPageFiles(tmp_path, Path("img"), Path("box"))
    lines = LinesOfPages(pages)
    assert [text for text, _ in lines.labels_of_lines()] == ["AB", "I"]
    assert [lines[n].image.shape[:2] == lines.size_hw(n) for n in range(2)] == [True, True]
    assert lines[0].image.mean() > 190 and lines[1].size_hw == (10, 30)  # the tall one is turned
    (tmp_path / "box" / "p.csv").unlink()
    with pytest.raises(InputError, match=r"no p\.txt, gt_p\.txt or p\.csv"):
        len(TextPageFiles(tmp_path, Path("img"), Path("box")))


def test_a_missing_image_names_the_file(tmp_path: Path) -> None:
    write(tmp_path / "a.txt", "none.jpg\tx\n")
    lines = TextLineImages(tmp_path, (Path("a.txt"),))
    for read in (lambda: lines[0], lambda: lines.size_hw(0)):
        with pytest.raises(InputError, match=r"none\.jpg"):
            read()
    image.write(tmp_path / "none.jpg", np.zeros((4, 5, 3), np.uint8))
    with pytest.raises(InputError, match=r"(?s)a\.txt:1.*'x'.*0 or 180"):
        TextLineDirections(tmp_path, (Path("a.txt"),))[0]
