from __future__ import annotations

import json
from pathlib import Path

import pytest

from framework.core.errors import FormatError, InputError
from framework.text.tokenizer import Tokenizer
from nlp.data.__main__ import main
from nlp.data.check import Columns, validate


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def test_a_table(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tsv",
        "good film\tpos\nbad\tneg\n\ngood film\tpos\nbad\tpos\n \tpos\nno class\nvery long text\tneg\n",
    )
    report = validate(path)
    assert report.texts == 6
    assert report.classes == (("pos", 4), ("neg", 2))
    assert report.lengths == (1, 3, 9, 14)
    assert report.duplicates == ("line 4, as line 1: good film",)
    assert report.contradictory == ("line 5, as line 2: bad",)
    assert report.empty == ("line 6",)
    assert report.broken == ("line 7: a column is missing: column 1",)
    assert not report.is_clean
    page = str(report).splitlines()
    assert page[0] == "6 texts of 1 to 14 characters; half have up to 3, 95% up to 9"
    assert page[2] == "pos          4  66.7%"
    assert "1 blank texts" in page


def test_lines_that_are_no_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xef\xbb\xbftext,label\r\nok,a\r\n\xff\xfe,b\r\n")
    report = validate(path, columns=Columns(separator=",", header=True))
    assert report.broken == ("line 3: byte 0xff is not UTF-8",)
    assert report.classes == (("a", 1),)


def test_names_of_the_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "id\tsentence\tlabel\n1\tgood\tpos\n2\n3\tbad\tneg\n")
    report = validate(path, columns=Columns(text="sentence", label="label"))
    assert report.classes == (("neg", 1), ("pos", 1))
    assert report.broken == ("line 3: a column is missing: column 1",)
    with pytest.raises(FormatError, match="the header has no such column"):
        validate(path, columns=Columns(text="text", label="label"))


def test_json_lines(tmp_path: Path) -> None:
    rows = [json.dumps(row) for row in ({"t": ["a", "b"], "l": 1}, {"t": 3, "l": 1}, {"l": 1})]
    path = write(tmp_path / "a.jsonl", "\n".join([*rows, "{"]) + "\n")
    report = validate(path, columns=Columns(text="t", label="l"))
    assert report.classes == (("1", 1),) and report.lengths == (3, 3, 3, 3)
    assert report.broken[:2] == ("line 2: int is no text", "line 3: a column is missing: column 't'")
    assert report.broken[2] == "line 4: this is no JSON: {"


def test_tagged_sentences(tmp_path: Path) -> None:
    conllu = "# text = a b\n1\ta\t_\tX\n1-2\tab\t_\t_\n2\tb\t_\tY\n\n1\ta\t_\tX\n2\tb\t_\tX\n\n3\tc\n\n"
    report = validate(write(tmp_path / "a.conllu", conllu))
    assert report.unit == "words" and report.texts == 2 and report.lengths == (2, 2, 2, 2)
    assert report.classes == (("X", 3), ("Y", 1))
    assert report.contradictory == ("line 6, as line 1: a b",)
    assert report.broken == ("line 9: a column is missing: column 3",)
    report = validate(write(tmp_path / "a.bmes", "今 B\n天 E\n\n坏\n"))
    assert report.classes == (("B", 1), ("E", 1))
    assert report.broken == ("line 4: a word has no tag: '坏'",)


def test_tagged_json_lines(tmp_path: Path) -> None:
    rows = [{"w": ["a"], "t": ["X"]}, {"w": ["a"], "t": []}, {"w": ["a"], "t": ["X"]}]
    path = write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows) + "no\n")
    report = validate(path, "tagged", Columns(word="w", tag="t"))
    assert report.duplicates == ("line 3, as line 1: a",)
    assert report.broken[0] == "line 2: words and tags are two lists of one length"
    assert len(report.broken) == 2


def test_an_empty_file_has_no_texts(tmp_path: Path) -> None:
    report = validate(write(tmp_path / "a.txt", ""))
    assert report.texts == 0 and report.is_clean
    assert str(report).startswith("0 texts")


def test_lists_are_cut_short(tmp_path: Path) -> None:
    report = validate(write(tmp_path / "a.txt", "same\n" * 13))
    assert len(report.duplicates) == 12
    assert "  ... and 2 more" in str(report).splitlines()
    rows = "".join(f"{number}\t{number:0100d}\n" for number in range(103))
    page = str(validate(write(tmp_path / "b.tsv", rows))).splitlines()
    assert "... and 3 more classes" in page
    assert max(map(len, page[1:])) == 40 + 16


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.tsv", "a\tx\nb\ty\n")
    assert main(["check", str(path)]) == 0
    assert "2 texts of 1 to 1 characters" in capsys.readouterr().out
    assert main(["check", str(path), "--label", "2"]) == 1
    assert main(["check", str(tmp_path / "no.tsv")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    with pytest.raises(InputError, match="the text file cannot be read"):
        validate(tmp_path)


@pytest.mark.parametrize("kind", ["characters", "words", "wordpiece", "bpe", "unigram"])
def test_a_tokenizer_from_files(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tokenizers")
    pytest.importorskip("sentencepiece")
    first = write(tmp_path / "a.txt", "The cat sat\nthe dog\n" * 5)
    second = write(tmp_path / "b.jsonl", '{"text": ["big", "cats"]}\n' * 5)
    output = tmp_path / "new" / "tokenizer.json"
    command = ["tokenizer", "--kind", kind, "--vocab_size", "300", "--lower", "--output", str(output)]
    assert main([*command, "--input", str(first), str(second)]) == 0
    assert "tokens" in capsys.readouterr().out
    tokenizer = Tokenizer.from_file(output)
    assert tokenizer.encode("The").ids.tolist() == tokenizer.encode("the").ids.tolist()
    assert tokenizer.unk_id not in tokenizer.encode("big cats").ids


def test_a_column_of_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "a.tsv", "1\tgood\n0\tbad\n")
    command = ["tokenizer", "--kind", "words", "--vocab_size", "100", "--output", str(tmp_path / "t.json")]
    assert main([*command, "--input", str(path), "--column", "1"]) == 0
    assert Tokenizer.from_file(tmp_path / "t.json").vocab_size == 7
    assert main([*command, "--input", str(path), "--column", "2"]) == 2
    assert "a column is missing" in capsys.readouterr().err
    path = write(tmp_path / "a.jsonl", '{"text": 3}\n')
    assert main([*command, "--input", str(path)]) == 2
    assert "an entry must be a text" in capsys.readouterr().err
