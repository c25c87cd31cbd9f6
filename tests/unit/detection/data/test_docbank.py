"""detection.data.docbank: a page by hand, what makes a block, and every message."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from detection.data.docbank import DOCBANK_CLASSES, DocBank, Token, merge_tokens, read_tokens
from framework.core.errors import ConfigError, FormatError, InputError
from framework.vision import image

SHARED = Path(os.environ.get("OAR_SHARED", Path(__file__).resolve().parents[5] / "shared")) / "data"
HEIGHT, WIDTH = 400, 200  # pixels: a coordinate is 0.2 pixels across and 0.4 down
TITLE = ("A", (100, 50, 300, 80), "title"), ("title", (320, 50, 500, 80), "title")
# Two columns of two lines, whose gap is narrower than it is between words of a table
LEFT = tuple(
    (
        f"w{n}",
        (50 + 100 * (n % 4), 200 + 20 * (n // 4), 130 + 100 * (n % 4), 214 + 20 * (n // 4)),
        "paragraph",
    )
    for n in range(8)
)
RIGHT = tuple((text, (x0 + 440, y0, x1 + 440, y1), label) for text, (x0, y0, x1, y1), label in LEFT)
TABLE = (
    ("##LTLine##", (100, 500, 700, 500), "table"),
    ("Name", (110, 510, 200, 524), "table"),
    ("Price", (500, 510, 600, 524), "table"),
    ("Tea", (110, 530, 160, 544), "table"),
    ("##LTLine##", (100, 550, 700, 550), "table"),
)
FIGURE = (("##LTFigure##", (100, 600, 900, 800), "figure"),)
RULE = (("##LTLine##", (50, 900, 300, 900), "paragraph"),)  # above footnotes


def rows(*tokens: tuple[str, tuple[int, int, int, int], str]) -> str:
    return "".join(
        "\t".join([text, *map(str, box), "0", "0", "0", "ABCDEF+CMR10", label]) + "\r\n"
        for text, box, label in tokens
    )


def write(folder: Path, name: str, text: str, suffix: str = ".jpg") -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_bytes(text.encode("utf-8"))
    image.write(folder / f"{name}{suffix}", np.full((HEIGHT, WIDTH, 3), 255, np.uint8))


def test_a_page(tmp_path: Path) -> None:
    write(tmp_path, "p_0", rows(*TITLE, *LEFT, *RIGHT, *TABLE, *FIGURE, *RULE))
    data = DocBank(tmp_path)
    assert data.class_names == DOCBANK_CLASSES and len(data) == 1 and not data.problems
    sample = data[0]
    assert sample.id == "p_0" and sample.image.shape == (HEIGHT, WIDTH, 3)
    assert sample.boxes is not None and sample.labels is not None and sample.valid is not None
    found = [(DOCBANK_CLASSES[n], box) for n, box in zip(sample.labels, sample.boxes.tolist(), strict=True)]
    wanted = [
        ("title", (100, 50, 500, 80)),
        ("paragraph", (50, 200, 430, 234)),
        ("paragraph", (490, 200, 870, 234)),
        ("table", (100, 500, 700, 550)),  # as far as its lines
        ("figure", (100, 600, 900, 800)),
    ]
    assert [label for label, _ in found] == [label for label, _ in wanted]
    scale = np.array([WIDTH, HEIGHT] * 2) / 1000
    np.testing.assert_allclose(
        [box for _, box in found], np.array([box for _, box in wanted]) * scale, rtol=1e-5
    )
    assert sample.valid.all()


def test_what_stands_apart_is_of_two_blocks() -> None:
    def blocks(*boxes: tuple[int, int, int, int], label: str = "reference") -> int:
        return len(list(merge_tokens([Token("a", box, label) for box in boxes], (1000, 1000))))

    line = (100, 100, 300, 110)
    assert blocks(line, (311, 100, 400, 110)) == 1 and blocks(line, (313, 100, 400, 110)) == 2
    assert blocks(line, (100, 121, 300, 131)) == 1 and blocks(line, (100, 122, 300, 132)) == 2
    assert blocks(line, (301, 108, 400, 118)) == 2  # no line has both
    assert blocks(line, (355, 100, 400, 110), label="table") == 1
    # In pixels of a page that is twice as high as wide the same lines stand further apart across.
    ((_, box),) = merge_tokens([Token("a", line, "title")], (2000, 1000))
    assert box == (100, 200, 300, 220)
    # Boxes that overlap when they are made are one.
    around = [(100, 100, 300, 110), (100, 112, 110, 160), (102, 158, 300, 168), (290, 140, 300, 150)]
    assert blocks(*around) == 1
    assert list(merge_tokens([], (10, 10))) == []


def test_folders_and_names_of_the_published_set(tmp_path: Path) -> None:
    write(tmp_path / "txt", "b_1", rows(*TITLE))
    write(tmp_path / "txt", "a_2", rows(*FIGURE))
    for name in ("a_2_ori.jpg", "a_2.jpg", "b_1_ori.jpg"):
        (tmp_path / "img").mkdir(exist_ok=True)
        image.write(
            tmp_path / "img" / name, np.full((HEIGHT, WIDTH, 3), 200 if "ori" in name else 9, np.uint8)
        )
    data = DocBank(tmp_path, "txt", "img", classes=("figure", "table"))
    assert [sample.id for sample in data] == ["a_2", "b_1"]
    assert [labels.tolist() for labels in data.read_labels()] == [[0], []]
    assert data[0].image.mean() > 150


def test_boxes_without_an_area_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "a", rows(("i", (100, 50, 100, 80), "title"), *FIGURE))
    data = DocBank(tmp_path)
    assert len(data[0].labels) == 1  # type: ignore[arg-type]
    assert len(data.problems) == 1 and "a.txt (title): box" in data.problems[0] and "no area" in caplog.text


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("word\t1\t2\t3\t4\ttitle", r"no token of DocBank\n  received: 6 columns: 'word"),
        ("word\t1\t2\t3\tx\t0\t0\t0\tF\ttitle", r"has no box\n  received: 1, 2, 3, x"),
        ("word\t1\t2\t3\t1001\t0\t0\t0\tF\ttitle", "has no box"),
        ("word\t5\t2\t3\t10\t0\t0\t0\tF\ttitle", "has no box"),
        ("word\t-1\t2\t3\t10\t0\t0\t0\tF\ttitle", "has no box"),
        ("word\t1\t2\t3\t4\t0\t0\t0\tF\ttitel", r"unknown label(.|\n)*did you mean 'title'"),
    ],
)
def test_a_line_that_is_no_token_is_named(tmp_path: Path, line: str, said: str) -> None:
    write(tmp_path, "a", rows(*TITLE) + "\n" + line + "\n")
    with pytest.raises(FormatError, match=rf"a.txt, line 4: .*{said}"):
        len(DocBank(tmp_path))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no pages"):
        len(DocBank(tmp_path))
    write(tmp_path, "a", rows(*TITLE))
    (tmp_path / "b.txt").write_text(rows(*TITLE), encoding="utf-8")
    with pytest.raises(InputError, match=r"1 of 2 images are not there(.|\n)*b_ori.jpg"):
        len(DocBank(tmp_path))
    (tmp_path / "b.png").write_bytes(b"no image")
    with pytest.raises(InputError, match="the image cannot be read"):
        len(DocBank(tmp_path))
    with pytest.raises(InputError):
        read_tokens(tmp_path / "c.txt")


@pytest.mark.parametrize(
    ("classes", "said"),
    [((), "each once"), (("title", "title"), "each once"), (("figure", "tabel"), "did you mean 'table'")],
)
def test_classes_are_labels_each_once(tmp_path: Path, classes: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=rf"classes must be labels of DocBank(.|\n)*{said}"):
        DocBank(tmp_path, classes=classes)


@pytest.mark.skipif(not (SHARED / "docbank").is_dir(), reason="needs shared/data/docbank")
def test_published_pages() -> None:
    data = DocBank(SHARED / "docbank" / "val")
    assert len(data) == 6 and not data.problems
    for sample in data:
        assert sample.boxes is not None and 2 <= len(sample.boxes) <= 30
