"""Shards, their files, and runs that go on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from framework.core.errors import ConfigError, InputError
from framework.workflow.batch.inputs import SourceRef, list_inputs, read_sources
from framework.workflow.batch.parts import Attempts, PartFolder, Shard, compute_shard, make_shards
from framework.workflow.batch.rows import ResultRow


def references(*names: str) -> list[SourceRef]:
    return [SourceRef(name, f"/{name}") for name in names]


def predict(sources: Sequence[SourceRef]) -> Iterator[ResultRow]:
    return (ResultRow(one.name, {"name": one.name}) for one in sources)


def test_a_run_that_goes_on_has_the_shards_of_the_one_before() -> None:
    all_sources = references(*"abcdefgh")
    first = list(make_shards(all_sources, frozenset(), 3))
    assert [len(one.references) for one in first] == [3, 3, 2] and len({one.name for one in first}) == 3
    assert list(make_shards(all_sources, frozenset("abc"), 3)) == first[1:]
    grown = list(make_shards(references(*"0abcdefgh"), frozenset("abc"), 3))
    assert [one.name for shard in grown for one in shard.references] == list("0defgh")
    assert Shard.from_json(first[0].to_json()) == first[0]
    odd = Shard("x", (SourceRef("a\\udcff", "/a\udcff", None), SourceRef("t#3", "/t", 3)))
    assert Shard.from_json(odd.to_json()) == odd
    assert list(make_shards(all_sources, frozenset("abcdefgh"), 3)) == []


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_files_of_rows(tmp_path: Path, format: str) -> None:
    if format == "parquet":
        pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `ray`")
    folder = PartFolder(tmp_path / "out", format)  # type: ignore[arg-type]
    shard = Shard("one", tuple(references("a", "b", "c\\xff")))
    rows = [ResultRow("a", {"ä": 1}), ResultRow("b", None, "broken"), ResultRow("c\\xff", [], None, ("w",))]
    with folder.open({"model": "m"}):
        assert folder.finished() == frozenset()
        folder.write(shard, rows)
        folder.write(shard, rows)  # again, as its worker died
        assert folder.finished() == {"a", "b", "c\\xff"}
        with pytest.raises(InputError, match="another run writes"), folder.open({"model": "m"}):
            pass
    with folder.open({"model": "m"}):
        pass
    with pytest.raises(ConfigError, match="model: other"), folder.open({"model": "other"}):
        pass
    (part,) = folder.path.glob("part-*")
    if format == "jsonl":
        lines = [json.loads(line) for line in part.read_text(encoding="utf-8").splitlines()]
        assert lines[0] == {"source": "a", "result": {"ä": 1}, "error": None, "warnings": []}
    else:
        import pyarrow.parquet as parquet

        table = parquet.read_table(part).to_pylist()
        assert parquet.read_table(folder.path).to_pylist() == table  # all parts are one data set
        assert [one["result"] for one in table] == ['{"ä": 1}', None, "[]"]
        assert [one["error"] for one in table] == [None, "broken", None] and table[2]["warnings"] == ["w"]
    assert folder.errors(shard) == [("b", "broken")]
    assert folder.drop_failed() == 1 and folder.finished() == {"a", "c\\xff"} and folder.drop_failed() == 0
    folder.write(Shard("two", shard.references), rows[1:2])
    assert folder.drop_failed() == 1 and [part] == list(folder.path.glob("part-*"))
    with pytest.raises(ConfigError, match="something else"):
        (folder.path / "_batch.json").unlink()
        with folder.open({}):
            pass


def test_a_source_that_kills_its_worker_is_left_out_at_last(tmp_path: Path) -> None:
    folder, shard = PartFolder(tmp_path, "jsonl"), Shard("s", tuple(references("a", "bad", "c")))
    calls: list[list[str]] = []

    class Death(BaseException):
        pass

    def dies(sources: Sequence[SourceRef]) -> Iterator[ResultRow]:
        calls.append([one.name for one in sources])
        if "bad" in calls[-1]:
            raise Death
        return predict(sources)

    for _ in range(3):
        with pytest.raises(Death):
            compute_shard(folder, "run", shard, dies)
    rows = compute_shard(folder, "run", shard, dies)
    assert rows is not None and [row.error is None for row in rows] == [True, False, True]
    assert "2 times while it read this" in str(rows[1].error)
    assert calls == [["a", "bad", "c"], ["a"], ["bad"], ["a"], ["bad"], ["a"], ["c"]]
    assert compute_shard(folder, "run", shard, dies) is None  # it has its file
    assert Attempts(folder, "run", shard).is_first
    # What another run noted does not count: its driver may have been killed, and no file is to blame.
    Attempts(folder, "before", Shard("t", shard.references)).note("all")
    again = compute_shard(folder, "now", Shard("t", tuple(references("a", "c"))), dies)
    assert again is not None and calls[-1] == ["a", "c"]


def test_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    photos = tmp_path / "photos"
    (photos / "deep").mkdir(parents=True)
    for name in ("a.png", "deep/b.JPG", "c.pdf", "notes.doc", ".hidden.png"):
        (photos / name).write_bytes(b"x")
    (photos / "list.txt").write_text("a.png\n\n deep/b.JPG \n/no/such.png\na.png\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    inputs = list_inputs(["photos"], tmp_path / "out")
    assert [Path(one.name).name for one in inputs.references] == ["a.png", "c.pdf", "b.JPG"]
    assert all(Path(one.name).is_absolute() for one in inputs.references)
    assert "2 files are not read" in inputs.notes[0]
    listed = list_inputs(["photos/list.txt", "photos/a.png"], tmp_path / "out")
    assert [one.name for one in listed.references] == [
        str(photos / "a.png"), str(photos / "deep" / "b.JPG"), "/no/such.png",
    ]  # fmt: skip
    assert listed.notes == ("2 sources are named more than once, and read once",)
    assert next(one.content for one in read_sources(listed.references)) == photos / "a.png"
    for name in ("-", "https://example.com/a.png", "s3://bucket/photos"):
        with pytest.raises(InputError, match="that its workers can read"):
            list_inputs([name], tmp_path / "out")


def test_tables(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow comes with the extra `ray`")
    import pyarrow.parquet as parquet

    def table(name: str, **columns: list[object]) -> str:
        parquet.write_table(pyarrow.table(columns), tmp_path / name, row_group_size=2)
        return str(tmp_path / name)

    data = table("bytes.parquet", id=[1, 2, 3, 4, 5], bytes=[b"1", b"2", None, b"4", b"5"])
    inputs = list_inputs([data], tmp_path / "out")
    assert [one.name for one in inputs.references] == [f"{data}#{row}" for row in range(5)]
    sources = list(read_sources(inputs.references[1:]))
    assert [one.content for one in sources if one.problem is None] == [b"2", b"4", b"5"]
    assert sources[1].problem == "the row has nothing in its column bytes"
    (tmp_path / "x.png").write_bytes(b"png")
    paths = list_inputs(
        [table("paths.parquet", path=["x.png", None, "/no.png"])], tmp_path / "out"
    ).references
    assert [Path(one.name).name for one in paths] == ["x.png", "paths.parquet#1", "no.png"]
    assert [one.problem is None for one in read_sources(paths)] == [True, False, True]
    image = [{"bytes": b"7", "path": "a"}, {"bytes": None, "path": "x.png"}]
    images = list_inputs([table("image.parquet", image=image, label=[0, 1])], tmp_path / "out").references
    assert [one.content for one in read_sources(images)] == [b"7", tmp_path / "x.png"]
    texts = list_inputs(
        [table("text.parquet", text=["a", "b"], pair=["c", None])], tmp_path / "out"
    ).references
    assert [one.content for one in read_sources(texts) if not one.problem] == [("a", "c")]
    other = list_inputs([table("other.parquet", jpg=[b"9"])], tmp_path / "out", "jpg").references
    assert [one.content for one in read_sources(other, "jpg")] == [b"9"]
    with pytest.raises(InputError, match="no column of files"):
        list_inputs([str(tmp_path / "other.parquet")], tmp_path / "out")
    with pytest.raises(InputError, match="no such column"):
        list_inputs([data], tmp_path / "out", "jpg")
    (tmp_path / "bytes.parquet").write_bytes(b"PAR1")
    gone = list(read_sources(inputs.references))
    assert len(gone) == 5 and all(one.problem and "cannot be read" in one.problem for one in gone)
