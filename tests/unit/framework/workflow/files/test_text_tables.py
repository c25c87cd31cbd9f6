"""Texts to predict from tables and JSON: which column is read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from framework.core.errors import FormatError, InputError
from framework.workflow.files.text_tables import read_table_texts


def read(folder: Path, name: str, content: str, pairs: bool = False) -> object:
    (folder / name).write_text(content, encoding="utf-8")
    return read_table_texts(folder / name, pairs)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'id,Text,label\n1,"good, really",pos\n2,"two\nlines",neg\n'),
        ("a.csv", '\ufeff"id";"text"\n1;good, really\n2;"two\nlines"\n'),
        ("a.csv", ',sentence,label\n0,"good, really",1\n1,"two\nlines",0\n\n'),  # as pandas writes its index
        ("a.csv", '"good, really"\n"two\nlines"\n'),
        ("a.tsv", 'label\ttext\n1\tgood, really\n0\t"two\nlines"\n'),
        ("a.jsonl", '{"text": "good, really", "label": 1}\n\n{"text": "two\\nlines"}\n'),
        ("a.json", '["good, really", "two\\nlines"]'),
        ("a.json", '{"text": {"0": "good, really", "1": "two\\nlines"}, "label": {"0": 1, "1": 0}}'),
    ],
)
def test_the_column_of_the_texts_is_read(tmp_path: Path, name: str, content: str) -> None:
    assert read(tmp_path, name, content) == ["good, really", "two\nlines"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "sentence1,sentence2,label\none,two,1\nthree,,0\n"),
        (
            "a.csv",
            "question,id,context\ntwo,7,one\n,8,three\n",
        ),  # a model is given the context before the question
        ("a.csv", "one,two\nthree,\n"),
        ("a.jsonl", '{"query": "one", "title": "two"}\n{"query": "three", "title": ""}\n'),
        ("a.jsonl", '["one", "two"]\n["three", ""]\n'),
    ],
)
def test_two_columns_are_read_where_the_model_takes_pairs(tmp_path: Path, name: str, content: str) -> None:
    assert read(tmp_path, name, content, pairs=True) == [("one", "two"), ("three", "")]


def test_an_empty_field_keeps_its_place_and_other_files_are_lines(tmp_path: Path) -> None:
    assert read(tmp_path, "a.csv", "text,label\na,1\n,0\nb,1\n") == ["a", "", "b"]
    assert read(tmp_path, "a.txt", "text,label\na,1\n") is None
    assert read(tmp_path, "a.tsv", "one\ttwo\n", pairs=True) is None


def test_what_names_no_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no column is named as the texts\n.*received: id, remark"):
        read(tmp_path, "a.csv", "id,remark\n1,good\n")
    with pytest.raises(InputError, match=r"two texts of a pair\n.*received: text, label, score"):
        read(tmp_path, "a.csv", "text,label,score\na,1,2\n", pairs=True)
    with pytest.raises(InputError, match=r"line 2: no column is named"):
        read(tmp_path, "a.jsonl", '{"text": "a"}\n{"label": 1}\n')
    with pytest.raises(FormatError, match=r"line 1: the entry has no text"):
        read(tmp_path, "a.jsonl", "3\n")
