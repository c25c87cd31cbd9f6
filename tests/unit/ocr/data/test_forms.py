"""Labelled pages in four formats: what samples hold, and what is said of files that are wrong."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.vision import image
from ocr.data.forms import (
    FUNSD,
    XFUND,
    FormFiles,
    FormPages,
    Segment,
)
from ocr.data.receipts import SROIE, locate_fields
from ocr.fields.forms import FormSample


def _line(text: str, box: list[int], label: str, number: int, *links: list[int]) -> dict[str, Any]:
    x1, y1, x2, y2 = box
    points = [[x1, y1], [x2, y1], [x2, y2], [x1, y2]]
    return {"transcription": text, "points": points, "label": label, "id": number, "linking": list(links)}


LINES = [
    _line("Name", [0, 0, 20, 10], "question", 7, [7, 8]),
    _line("Ann", [30, 0, 50, 10], "Answer", 8, [7, 8]),
    _line(" ", [0, 20, 9, 30], "answer", 9, [7, 9]),
    _line("x", [-4, 30, 9, 44], "ignore", 10),
]


def _all(data: FormPages) -> list[FormSample]:
    return [data[place] for place in range(len(data))]


def write_page(folder: Path, name: str = "a.png") -> None:
    image.write(folder / name, np.full((40, 60, 3), 90, np.uint8))


def form_files(folder: Path, lines: Any = LINES, **options: Any) -> FormFiles:
    write_page(folder)
    text = lines if isinstance(lines, str) else json.dumps(lines)
    (folder / "labels.txt").write_text(f"a.png\t{text}\n", encoding="utf-8")
    return FormFiles(folder, (Path("labels.txt"),), **options)


def changed(place: int, **values: Any) -> list[dict[str, Any]]:
    """The lines with values of one of them changed; None takes a key out."""
    lines = [dict(line) for line in LINES]
    for key, value in values.items():
        if value is None:
            del lines[place][key]
        else:
            lines[place][key] = value
    return lines


def test_a_page_of_paddleocrs_labels(tmp_path: Path) -> None:
    data = form_files(tmp_path)
    assert data.class_names == (
        "O",
        "B-QUESTION",
        "I-QUESTION",
        "B-ANSWER",
        "I-ANSWER",
        "B-HEADER",
        "I-HEADER",
    )
    (sample,) = _all(data)
    assert sample.text == ("Name", "Ann", "x") and sample.id == "a.png"
    assert sample.labels is not None and sample.labels.tolist() == [1, 3, 0]
    assert sample.boxes is not None
    assert sample.boxes.tolist() == [
        [0, 0, 20, 10],
        [30, 0, 50, 10],
        [0, 30, 9, 40],
    ]  # cut at the page's sides
    assert sample.links is not None and sample.links.tolist() == [[0, 1]]  # once, and none to the empty line
    assert sample.size_hw == (40, 60) and (sample.image == 255).all()
    (read,) = _all(form_files(tmp_path, read_images=True))
    assert (read.image == 90).all()
    assert pickle.loads(pickle.dumps(data))[0].text == sample.text


def test_labels_as_ppocrlabel_writes_them(tmp_path: Path) -> None:
    lines = [{**line, "key_cls": line.pop("label"), "difficult": False} for line in map(dict, LINES)]
    lines[3]["key_cls"] = "None"
    (sample,) = _all(form_files(tmp_path, lines))
    assert sample.labels is not None and sample.labels.tolist() == [1, 3, 0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (changed(0, label=None), "lacks 'label'"),
        (changed(1, transcription=None), "lacks 'transcription'"),
        (changed(0, points=[[1, 2]]), "no box"),
        (changed(0, points=[["a", "b"]]), "no line"),
        (changed(0, points=[[100, 0], [120, 0], [120, 9], [100, 9]]), "outside of its page"),
        (changed(0, points=[[3, 3], [3, 3]]), "is empty"),
        (changed(0, label="qestion"), "did you mean 'question'"),
        (changed(0, label=3), "are texts"),
        (changed(0, linking=[[7, 99]]), "leads to nothing"),
        (changed(2, id=8, transcription="y"), "leads to several lines"),
        (changed(0, linking=[7]), "no line"),
        (changed(0, id="x"), "no line"),
        (changed(0, id=float("inf")), "no line"),
        (changed(0, points=[0, 0, float("nan"), 9]), "no box"),
        ([1], "no line"),
        ({"transcription": "x"}, "no page"),
        ("[{", "not JSON"),
    ],
)
def test_wrong_labels_are_named_with_their_place(lines: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(FormatError) as caught:
        _all(form_files(tmp_path, lines))
    assert said in str(caught.value) and "labels.txt:1" in str(caught.value)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such label file"):
        len(FormFiles(tmp_path, (Path("labels.txt"),)))
    data = form_files(tmp_path)
    (tmp_path / "a.png").unlink()
    with pytest.raises(InputError, match="image of the data set"):
        data[0]
    (tmp_path / "labels.txt").write_text("a.png [] \n", encoding="utf-8")
    with pytest.raises(FormatError, match="this line is no label"):
        len(FormFiles(tmp_path, (Path("labels.txt"),)))
    (tmp_path / "labels.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(InputError, match="no pages"):
        len(FormFiles(tmp_path, (Path("labels.txt"),)))


@pytest.mark.parametrize("classes", [(), ("a", "A"), ("other", "a")])
def test_classes_are_labels_each_once(classes: tuple[str, ...], tmp_path: Path) -> None:
    for make in (
        lambda: FormFiles(tmp_path, (), classes=classes),
        lambda: XFUND(tmp_path, Path("x"), classes=classes),
        lambda: FUNSD(tmp_path, classes=classes),
    ):
        with pytest.raises(ConfigError, match="these are no classes"):
            make()


def xfund(folder: Path, documents: Any) -> XFUND:
    (folder / "zh_train_images").mkdir(exist_ok=True)
    write_page(folder / "zh_train_images", "z.png")
    (folder / "zh.train.json").write_text(json.dumps(documents), encoding="utf-8")
    return XFUND(folder, Path("zh.train.json"))


def test_xfund(tmp_path: Path) -> None:
    lines = [
        {
            "text": "姓名",
            "box": [0, 0, 20, 10],
            "label": "question",
            "id": 0,
            "linking": [[0, 1]],
            "words": [],
        },
        {"text": "安", "box": [30, 0, 50, 10], "label": "answer", "id": 1, "linking": [[0, 1]], "words": []},
    ]
    page = {"id": "z", "img": {"fname": "z.png", "width": 60, "height": 40}, "document": lines}
    (sample,) = _all(xfund(tmp_path, {"lang": "zh", "documents": [page]}))
    assert sample.text == ("姓名", "安") and sample.labels is not None and sample.labels.tolist() == [1, 3]
    assert sample.links is not None and sample.links.tolist() == [[0, 1]] and sample.size_hw == (40, 60)
    with pytest.raises(FormatError, match="no file of XFUND"):
        len(xfund(tmp_path, {"form": []}))
    with pytest.raises(FormatError, match="no document of XFUND"):
        len(xfund(tmp_path, {"documents": [{"img": {"fname": "z.png"}, "document": []}]}))


def test_funsd(tmp_path: Path) -> None:
    for name in ("annotations", "images"):
        (tmp_path / name).mkdir()
    write_page(tmp_path / "images", "f.png")
    line = {"text": "TO:", "box": [0, 0, 20, 10], "label": "question", "id": 0, "linking": [], "words": []}
    path = tmp_path / "annotations" / "f.json"
    path.write_text(json.dumps({"form": [line]}), encoding="utf-8")
    (sample,) = _all(FUNSD(tmp_path))
    assert sample.text == ("TO:",) and sample.labels is not None and sample.labels.tolist() == [1]
    path.write_text(json.dumps({"documents": []}), encoding="utf-8")
    with pytest.raises(FormatError, match="no page of FUNSD"):
        len(FUNSD(tmp_path))
    with pytest.raises(InputError, match="no pages"):
        len(FUNSD(tmp_path / "images"))


def sroie(folder: Path, rows: list[str], fields: Any) -> SROIE:
    for name in ("img", "box", "key"):
        (folder / name).mkdir(exist_ok=True)
    image.write(folder / "img" / "1.jpg", np.full((100, 200, 3), 200, np.uint8))
    lines = [
        f"0,{20 * n},100,{20 * n},100,{20 * n + 10},0,{20 * n + 10},{text}" for n, text in enumerate(rows)
    ]
    (folder / "box" / "1.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "key" / "1.json").write_text(json.dumps(fields), encoding="utf-8")
    return SROIE(folder)


def test_the_fields_of_a_receipt_are_found_in_its_lines(tmp_path: Path) -> None:
    rows = ["ACME LTD", "DATE: 01/02/2018 10:15", "TOTAL 9.50", "CASH 9.50"]
    fields = {"company": "ACME LTD", "date": "01/02/2018", "total": "9.50", "address": ""}
    (sample,) = _all(sroie(tmp_path, rows, fields))
    assert sample.text is not None and sample.labels is not None and sample.boxes is not None
    labelled = [(text, label) for text, label in zip(sample.text, sample.labels.tolist()) if label]
    assert labelled == [("ACME LTD", 1), ("01/02/2018", 3), ("9.50", 7)]
    cut = sample.boxes[sample.text.index("01/02/2018")]
    np.testing.assert_allclose(cut, [600 / 22, 20, 1600 / 22, 30], rtol=1e-5)
    with pytest.raises(FormatError, match="these are no fields"):
        len(sroie(tmp_path, rows, ["x"]))


def segments(*texts: str) -> list[Segment]:
    return [Segment(text, (0, 20 * n, 100, 20 * n + 10), "other", n) for n, text in enumerate(texts)]


def labels(found: tuple[Segment, ...]) -> list[tuple[str, str]]:
    return [(segment.text, segment.label) for segment in found if segment.label != "other"]


def test_where_values_stand() -> None:
    lines = segments("12 HIGH ST,", "LONDON", "REF 19.50", "TOTAL: 9.50", "9.50 TOTAL")
    found = locate_fields(lines, {"address": "12, High St, London", "total": "9.50"})
    assert labels(found) == [
        ("12 HIGH ST,", "address"),
        ("LONDON", "address"),
        ("9.50", "total"),
        ("9.50", "total"),
    ]
    # 9.50 within 19.50 is another number; without a word of sums the last place counts.
    assert labels(locate_fields(segments("19.50", "9.50", "9.50 X"), {"total": "9.50"})) == [
        ("9.50", "total")
    ]
    # A value that a recogniser misread is found by the lines that say about the same.
    near = locate_fields(segments("ACNE TRADING", "LIMITED", "RECEIPT"), {"company": "ACME TRADING LIMITED"})
    assert labels(near) == [("ACNE TRADING", "company"), ("LIMITED", "company")]
    assert labels(locate_fields(lines, {"company": "NOBODY AT ALL"})) == []
    assert locate_fields([], {"total": "1.00"}) == ()


def test_an_image_without_pixels(tmp_path: Path) -> None:
    about = {"fname": "z.png", "width": -1, "height": 40}
    with pytest.raises(FormatError, match="no document of XFUND"):
        len(xfund(tmp_path, {"documents": [{"img": about, "document": []}]}))
