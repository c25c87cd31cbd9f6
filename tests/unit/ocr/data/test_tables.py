"""Tables from PubTabNet's files and drawn ones: what is in their samples, and damaged files."""

import json

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.vision import image
from framework.vision.normalize import Normalize
from framework.vision.sample_transforms.pad import PadToSize
from framework.vision.sample_transforms.resize import Resize
from ocr.data.synthesize import synthesize
from ocr.data.synthetic.tables import SyntheticTables
from ocr.data.tables import PubTabNet, read_table_label
from ocr.tables.grid import read_grid
from ocr.tables.html import read_structure
from ocr.tables.structure import place_cells, structure_tokens
from ocr.tasks.tables import TableGrid

TOKENS = ["<tbody>", "<tr>", "<td>", "</td>", "<td", ' colspan="2"', ">", "</td>", "</tr>", "</tbody>"]
LABEL = {
    "filename": "a.png",
    "split": "train",
    "html": {
        "structure": {"tokens": TOKENS},
        "cells": [{"tokens": ["<b>", "a", "&", "</b>"], "bbox": [1, 2, 5, 6]}, {"tokens": []}],
    },
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train").mkdir()
    image.write(tmp_path / "train" / "a.png", np.full((10, 20, 3), 255, np.uint8))
    lines = [LABEL, {**LABEL, "split": "val"}]
    text = "\n".join(json.dumps(line) for line in lines)
    (tmp_path / "labels.jsonl").write_text(text + "\n\n", encoding="utf-8")
    return tmp_path


def test_samples_of_pubtabnet(folder):
    data = PubTabNet(folder, "labels.jsonl", "train")  # type: ignore[arg-type]
    (sample,) = (data[i] for i in range(len(data)))
    assert sample.text == '<table><tbody><tr><td><b>a&amp;</b></td><td colspan="2"></td></tr></tbody></table>'
    assert sample.boxes is not None and sample.boxes.tolist() == [[1, 2, 5, 6], [0, 0, 1, 1]]
    assert sample.valid is not None and sample.valid.tolist() == [True, False]
    assert sample.id == "train/a.png" and data.class_names == ()
    assert len(PubTabNet(folder, "labels.jsonl")) == 2  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "bbox",
    [
        [1, 2, 5, 2, 5, 6, 1, 6],
        [[1, 2], [5, 2], [5, 6], [1, 6]],
        [[[1, 2], [3, 2], [3, 6], [1, 6]], [[3, 2], [5, 2], [5, 6], [3, 6]]],
    ],
)
def test_boxes_as_points_and_boxes_of_empty_cells(tmp_path, bbox):
    """As PPOCRLabel writes them (PaddleOCR#7430, #10317)."""
    cells = [{"tokens": ["a"], "bbox": bbox}, {"tokens": [], "bbox": bbox}]
    line = json.dumps({"filename": "a.png", "html": {"structure": {"tokens": TOKENS}, "cells": cells}})
    assert read_table_label(line, "labels:1", None, tmp_path).boxes == [[1, 2, 5, 6], None]


@pytest.mark.parametrize(
    ("line", "error", "message"),
    [
        ("{", FormatError, "no label of a table"),
        ("[]", FormatError, "no label of a table"),
        ('{"filename": "a.png"}', FormatError, "no label of a table"),
        (json.dumps(LABEL).replace("[1, 2, 5, 6]", '"NaN"'), FormatError, "no label of a table"),
        (json.dumps(LABEL).replace("[1, 2, 5, 6]", "[1, 2, 5, 6, 7, 8]"), FormatError, "no label of a table"),
        (json.dumps(LABEL).replace("[1, 2, 5, 6]", "[[1, 2], [5]]"), FormatError, "no label of a table"),
        (json.dumps(LABEL).replace(', {"tokens": []}', ""), FormatError, "differ in number"),
        ("", InputError, "there are no tables"),
        ("\udcff", InputError, "cannot be read"),
    ],
)
def test_damaged_labels(tmp_path, line, error, message):
    (tmp_path / "labels.jsonl").write_bytes(line.encode("utf-8", "surrogateescape"))
    with pytest.raises(error, match=message):
        len(PubTabNet(tmp_path, "labels.jsonl"))  # type: ignore[arg-type]


def test_no_file_and_long_tables(folder, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        len(PubTabNet(tmp_path, "none.jsonl"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no line of split 'test'"):
        len(PubTabNet(folder, "labels.jsonl", "test"))  # type: ignore[arg-type]
    assert len(PubTabNet(folder, "labels.jsonl", None, 9)) == 2  # type: ignore[arg-type]
    with pytest.raises(InputError, match="there are no tables"):
        len(PubTabNet(folder, "labels.jsonl", None, 8))  # type: ignore[arg-type]


def test_drawn_tables_are_the_same_each_time_and_their_boxes_hold_ink():
    data = SyntheticTables(count=12, seed=3, scan=0.0)
    spans = heads = 0
    for index in range(len(data)):
        sample = data[index]
        assert np.array_equal(sample.image, data[index].image) and sample.text == data[index].text
        assert sample.boxes is not None and sample.valid is not None and isinstance(sample.text, str)
        cells = place_cells(read_structure(sample.text))
        assert len(cells) == len(sample.boxes) == len(sample.valid)
        assert max(sample.image.shape) <= data.longest
        spans += any(cell.colspan > 1 or cell.rowspan > 1 for cell in cells)
        heads += cells[0].header
        for (left, top, right, bottom), filled in zip(sample.boxes.astype(int).tolist(), sample.valid):
            if filled:
                part = sample.image[top:bottom, left:right]
                assert part.size and np.ptp(part) > 30
    assert 0 < spans < 12 and heads > 8
    with pytest.raises(IndexError):
        data[12]


@pytest.mark.parametrize("field", [{"count": 0}, {"rows": 0}, {"columns": 1}, {"scan": 2}, {"longest": 10}])
def test_numbers_out_of_range(field):
    with pytest.raises(ConfigError):
        SyntheticTables(**field)


def test_targets_of_drawn_tables_give_their_structure_again():
    data, task = SyntheticTables(count=15, seed=1), TableGrid(Normalize((0.5,) * 3, (0.5,) * 3))
    rng, counted = np.random.default_rng(0), 0
    for index in range(len(data)):
        sample = PadToSize((384, 384))(Resize((384, 384), "fit")(data[index], rng), rng)
        packed = task.pack(sample)
        if packed["target_counts"]:
            found = read_grid(
                {name.removeprefix("target_"): value for name, value in packed.items()}, tuple(packed["size"])
            )
            assert structure_tokens(found.cells, found.rows) == read_structure(str(sample.text))
            counted += 1
    assert counted > 10


def test_written_tables_are_read_as_pubtabnet(tmp_path):
    report = synthesize("SyntheticTables", tmp_path / "t", ("count=2",), suffix=".png")
    assert report.written == 2 and report.labels.name == "labels.jsonl"
    assert synthesize("SyntheticTables", tmp_path / "t", ("count=3",), suffix=".png").before == 2
    data, drawn = PubTabNet(tmp_path / "t", "labels.jsonl"), SyntheticTables(count=3)  # type: ignore[arg-type]
    assert len(data) == 3
    for index in range(3):
        assert np.array_equal(data[index].image, drawn[index].image)
        assert data[index].text == drawn[index].text
        np.testing.assert_allclose(data[index].boxes, drawn[index].boxes, atol=0.06)  # type: ignore[arg-type]
