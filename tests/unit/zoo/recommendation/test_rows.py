"""Files of rows in every format, streams of them, and the hash of features."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.io.loader import DataLoader
from zoo.recommendation.data import hashing
from zoo.recommendation.data.formats import RowFormat, expand_names
from zoo.recommendation.data.rows import Rows, RowStream


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8", newline="\n")
    return str(folder / name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0xEF46DB3751D8E999),
        ("a", 0xD24EC4F1A98C6E5B),
        ("abc", 0x44BC2CF5AD770999),
        ("Nobody inspects the spammish repetition", 0xFBCEA83C8A378BF1),
    ],
)
def test_xxh64_has_the_published_values(text: str, value: int) -> None:
    assert hashing.xxh64(text.encode()) == value


def test_a_field_and_its_value_decide_about_the_row() -> None:
    rows = {(field, value): hashing.hash_feature(field, value, 1000) for field in "AB" for value in "123"}
    assert len(set(rows.values())) == 6 and min(rows.values()) >= 2
    assert rows["A", "1"] == 2 + hashing.xxh64(b"A\x1f1") % 998
    assert hashing.hash_feature("A1", "1", 1000) != hashing.hash_feature("A", "11", 1000)
    with pytest.raises(ConfigError, match="row 0 is padding"):
        hashing.hash_feature("A", "1", 2)


@pytest.mark.parametrize(
    ("name", "text", "options", "rows"),
    [
        ("a.csv", 'x,y\n1,"b, c"\n2,"line\nbreak"\n', {}, [{"x": "1", "y": "b, c"}, {"x": "2", "y": "line\nbreak"}]),
        ("a.csv", 'x; y \n1,5;"b;c"\n', {}, [{"x": "1,5", "y": "b;c"}]),
        ("a.csv", '"a;b;c",y\n1,2\n', {}, [{"a;b;c": "1", "y": "2"}]),
        ("a.tsv", "x\ty\n1\t\n", {}, [{"x": "1", "y": ""}]),
        ("a.dat", "1::9::5::3\n", {"columns": ("u", "i", "r", "t")}, [{"u": "1", "i": "9", "r": "5", "t": "3"}]),
        ("a.txt", "1;2;3\n", {"columns": ("x1..x3",), "separator": ";"}, [{"x1": "1", "x2": "2", "x3": "3"}]),
        ("a.txt", "click:1 d:0.5 d:2 7:99\n", {"format": "slot"}, [{"click": "1", "d": ["0.5", "2"], "7": "99"}]),
        ("a.txt", "8,1,12:5,12:6\n", {"format": "slot", "columns": ("id", "click"), "separator": ","},
         [{"id": "8", "click": "1", "12": ["5", "6"]}]),
        ("a.txt", "1 0 2 7 8\n", {"format": "multislot", "columns": ("y", "s")}, [{"y": "0", "s": ["7", "8"]}]),
        ("a.inter", "u:token\th:token_seq\n5\ta b\n", {}, [{"u": "5", "h": ["a", "b"]}]),
        ("a.jsonl", '{"x": 1, "h": ["a"]}\n\n', {}, [{"x": 1, "h": ["a"]}]),
    ],
)  # fmt: skip
def test_formats(tmp_path: Path, name: str, text: str, options: dict, rows: list) -> None:
    path = write(tmp_path, name, text)
    dataset = Rows((path,), **options)
    assert [sample.values for sample in (dataset[i] for i in range(len(dataset)))] == rows
    if "line\nbreak" not in text:
        assert RowFormat(**options).count(Path(path)) == len(rows)


def test_packed_files_are_read_as_they_are(tmp_path: Path) -> None:
    """Criteo's days come as .gz."""
    packed = gzip.compress(b"x,y\n" + b"1,2\n" * 3000)
    (tmp_path / "a.csv.gz").write_bytes(packed)
    (tmp_path / "cut.csv.gz").write_bytes(packed[:-9])
    stream = RowStream((str(tmp_path / "a.csv.gz"),), window=2)
    assert [sample.values for sample in stream] == [{"x": "1", "y": "2"}] * 3000 and len(stream) == 3000
    assert len(Rows((str(tmp_path / "a.csv.gz"),))) == 3000
    for dataset in (Rows, RowStream):
        with pytest.raises(FormatError, match=r"cut\.csv\.gz: this is no file of gzip, or a cut one"):
            len(dataset((str(tmp_path / "cut.csv.gz"),)))


def test_criteo_rows_have_no_header(tmp_path: Path) -> None:
    line = "\t".join(["1", *(str(n) for n in range(13)), *(f"c{n}" for n in range(26))])
    row = Rows((write(tmp_path, "train.txt", line + "\n"),), format="criteo")[0].values
    assert row["label"] == "1" and row["I13"] == "12" and row["C26"] == "c25"
    test = Rows((write(tmp_path, "test.txt", line.partition("\t")[2] + "\n"),), format="criteo")[0].values
    assert "label" not in test and test["I1"] == "0" and test["C26"] == "c25"


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.csv", "x,y\n1\n", {}, "another number of columns"),
        ("a.csv", "1,2\n3,4\n", {}, "does not name the columns"),
        ("a.txt", "click 1\n", {"format": "slot"}, "this is no slot"),
        ("a.txt", "2 7\n", {"format": "multislot", "columns": ("s",)}, "as many values as it says"),
        ("a.txt", "1 7 1 8\n", {"format": "multislot", "columns": ("s",)}, "more slots than names"),
        ("a.txt", "1 7\n", {"format": "multislot"}, "do not name their slots"),
        ("a.jsonl", "[1]\n", {}, "a line is no row"),
        ("a.json", '[{"x": 1}]\n', {}, "a line is no row"),
        ("a.csv", "x\n\udcff\n", {}, "UTF-8"),
    ],
)
def test_lines_that_are_no_rows(tmp_path: Path, name: str, text: str, options: dict, message: str) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(FormatError, match=message):
        Rows((str(tmp_path / name),), **options)[0]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "a.csv",
            'x,y\n1\n2,b\n3,"c\n4,d\n"5","e\nf"\n\udcff,g\n\n6,h,i\n7,j\n8,"k\n9,l\n',
            ["columns", "2", "a quote is not closed", "4", "5", "not UTF-8", "columns", "7", "a quote", "9"],
        ),
        ("a.csv", 'x,"y\n1,a\n2,b\n', ["1", "2"]),
        ("a.tsv", "x\ty\n1\n2\tb\n\udcff\tc\n3\td\n", ["columns", "2", "not UTF-8", "3"]),
        ("a.txt", "x::y\n1\n2::b\n", ["columns", "2"]),
        ("a.jsonl", '[1]\n{"x": "2"}\n{\n\udcff\n{"x": "3"}\n', ["no row", "2", "no JSON", "not UTF-8", "3"]),
    ],
)
def test_a_line_that_is_no_row_leaves_the_others(
    tmp_path: Path, name: str, text: str, expected: list[str]
) -> None:
    (tmp_path / name).write_bytes(text.encode("utf-8", "surrogateescape"))
    attempts = [attempt for _, attempt in RowFormat().read_attempts(tmp_path / name)]
    assert len(attempts) == len(expected)
    for attempt, wanted in zip(attempts, expected):
        assert wanted in str(attempt) if isinstance(attempt, FormatError) else wanted == attempt["x"]


def test_parquet_is_read_by_row_groups(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"x": list(range(10)), "h": [["a", "b"]] * 10})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=4)
    stream = RowStream((str(tmp_path / "a.parquet"),), window=2)
    assert len(stream) == 10
    assert sorted(int(str(sample.values["x"])) for sample in stream) == list(range(10))


def test_a_stream_reads_each_row_once_in_an_order_of_its_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("zoo.recommendation.data.formats.BLOCK", 1)
    for name, first in (("a.csv", 0), ("b.csv", 500)):
        write(tmp_path, name, "x,label\n" + "".join(f"{n},1\n" for n in range(first, first + 500)))
    stream = RowStream((str(tmp_path / "*.csv"),), readers=4, window=16)
    blocks = RowFormat().blocks(tmp_path / "a.csv", 97)
    lines = [row["x"] for block in blocks for _, row in RowFormat().read(block)]
    assert (
        lines == [str(n) for n in range(500)] and len(blocks) > 20
    )  # no line lost or read twice between blocks
    orders = []
    for epoch in (0, 1, 0):
        stream.set_epoch(epoch)
        orders.append([str(sample.values["x"]) for sample in stream])
    assert orders[0] == orders[2] != orders[1]
    assert sorted(map(int, orders[0])) == list(range(1000)) and len(stream) == 1000
    assert [str(sample.values["x"]) for sample in RowStream(stream.paths, shuffle=False)] == [
        str(n) for n in range(1000)
    ]


def test_memory_of_a_stream_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "x\n" + "".join(f"{n}\n" for n in range(2000)))
    read: list[int] = []
    stream = iter(RowStream((path,), window=10, readers=1))
    for _ in range(5):
        read.append(int(str(next(stream).values["x"])))
    assert max(read) < 40


def test_an_epoch_of_a_stream_has_as_many_batches_as_its_length_says(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", "x\n" + "1\n" * 10)
    for drop_last, count in ((True, 2), (False, 3)):
        loader = DataLoader(
            RowStream((path,)),
            batch_size=4,
            drop_last=drop_last,
            pack=lambda sample: {"x": np.float32(sample.values["x"])},
        )
        assert len(loader) == len(list(loader)) == count
    with pytest.raises(InputError, match="fewer rows than was said"):
        list(RowStream((path,), rows=11))
    assert len(list(RowStream((path,), rows=7))) == 7
    with pytest.raises(InputError, match="no file matches"):
        len(RowStream((str(tmp_path / "*.tsv"),)))


def test_ranges_of_names() -> None:
    assert expand_names(("I1..I3", "x", "7..9")) == ("I1", "I2", "I3", "x", "7", "8", "9")


def test_hashes_do_not_depend_on_the_process() -> None:
    """Python's `hash` of texts differs from process to process; a table that is served must not."""
    rows = [hashing.hash_feature("C1", str(n), 1_000_001) for n in range(1000)]
    digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
    assert digest == "15600ad22114b4d0"


@pytest.mark.parametrize("text", ["user\ra,item\n1,2\n", "user,item\n1,2\ra\n"])
def test_a_carriage_return_inside_of_a_line_is_told(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "rows.csv", text)
    with pytest.raises(FormatError, match=r"rows\.csv"):
        list(RowStream((path,), shuffle=False))
