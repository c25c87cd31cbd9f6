"""Rows of texts: what is cut where, what is kept on the disk, and what is told."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, FormatError, InputError
from framework.text.tokenizer import Tokenizer
from nlp.data.__main__ import main
from nlp.data.corpora import TextRows, TokenRows
from nlp.data.packing import IGNORED
from nlp.data.token_files import read_token_file, write_token_file

LETTERS = "abcdefghij \n"


@pytest.fixture
def words(tmp_path: Path, monkeypatch) -> str:
    monkeypatch.setenv("OAR_HOME", str(tmp_path / "home"))
    return str(Tokenizer.train("spaced_characters", [LETTERS], 32).save(tmp_path / "tokenizer.json"))


def test_every_character_is_a_token_and_comes_back(words: str) -> None:
    tokenizer = Tokenizer.from_file(words)
    text = "a  b\n\nc j"
    encoding = tokenizer.encode(text)
    assert tokenizer.decode(encoding.ids) == text and (~encoding.special).sum() == len(text)


def test_rows_are_the_text_in_order(words: str, tmp_path: Path, caplog) -> None:
    (tmp_path / "x.txt").write_text("abcdefghij" * 3, encoding="utf-8")
    dataset = TextRows((tmp_path / "x.txt",), words, 8)
    with caplog.at_level(logging.INFO, "oar"):
        assert len(dataset) == 3  # 31 tokens with the end; each row needs the one behind it
    assert "6 tokens at the end fill no row" in caplog.text
    tokenizer = Tokenizer.from_file(words)
    assert "".join(tokenizer.decode(row.ids) for row in dataset) == ("abcdefghij" * 3)[:24]
    np.testing.assert_array_equal(dataset[0].targets[:-1], dataset[0].ids[1:])
    assert dataset[0].targets[-1] == dataset[1].ids[0] and dataset[1].text_bytes == 8
    np.testing.assert_array_equal(dataset[2].ids, dataset[-1].ids)


def test_texts_of_a_row_are_told_apart(words: str, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(
        "\n".join(json.dumps({"text": text}) for text in ("abc", "de", "fgh")), "utf-8"
    )
    row = TextRows((tmp_path / "x.jsonl",), words, 9)[0]
    np.testing.assert_array_equal(row.segments, [1, 1, 1, 1, 2, 2, 2, 3, 3])
    np.testing.assert_array_equal(row.positions, [0, 1, 2, 3, 0, 1, 2, 0, 1])
    end = Tokenizer.from_file(words).sep_id
    assert row.targets[2] == end and row.targets[3] == IGNORED and row.targets[6] == IGNORED
    joined = TextRows((tmp_path / "x.jsonl",), words, 9, separate=False)[0]
    assert joined.segments is None and joined.targets[3] == row.ids[4]


def test_tokens_are_kept_until_a_file_changes(words: str, tmp_path: Path, caplog) -> None:
    path = tmp_path / "x.txt"
    path.write_text("abcdefghij", encoding="utf-8")
    caplog.set_level(logging.INFO, "oar")
    first = TextRows((path,), words, 4)[0]
    again = TextRows((path,), words, 4)[0]
    assert caplog.text.count("into tokens, once") == 1
    np.testing.assert_array_equal(first.ids, again.ids)
    path.write_text("jihgfedcba", encoding="utf-8")
    assert TextRows((path,), words, 4)[0].ids[0] != first.ids[0]


def test_divisions_and_shares(words: str, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("ab\ncd\n\nef\n" * 4, encoding="utf-8")
    counts = {}
    for division in ("file", "blank_line", "line"):
        counts[division] = len(TextRows((tmp_path / "x.txt",), words, 1, division=division).source)  # pyright: ignore[reportArgumentType]
    assert counts == {"file": 1, "blank_line": 5, "line": 12}
    parts = [
        TextRows((tmp_path / "x.txt",), words, 1, share=share).source for share in ((0, 0.75), (0.75, 1.0))
    ]
    assert [len(part.tokens) for part in parts] == [31, 11]


def test_parquet_files_are_read_in_groups(words: str, tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"body": ["abc", None, "def"] * 5})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=4)
    source = TextRows((tmp_path / "x.parquet",), words, 4, column="body").source
    assert len(source) == 10 and len(source.tokens) == 40
    with pytest.raises(FormatError, match="no such column"):
        TextRows((tmp_path / "x.parquet",), words, 4).source  # noqa: B018


def test_a_column_of_parquet_that_holds_no_texts_is_refused(words: str, tmp_path: Path) -> None:
    """Lists and numbers were learned as Python spells them."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"text": [["ab", "c"], ["d"]], "n": [1, 2]}), tmp_path / "x.parquet")
    for column in ("text", "n"):
        with pytest.raises(FormatError, match="the row has no text"):
            TextRows((tmp_path / "x.parquet",), words, 4, column=column).source  # noqa: B018


def test_files_of_tokens_and_their_shares(words: str, tmp_path: Path) -> None:
    write_token_file(tmp_path / "t", [np.full(5, number) for number in range(10)], "<u2")
    row = TokenRows(tmp_path / "t", 10)[1]
    np.testing.assert_array_equal(row.ids, [2] * 5 + [3] * 5)
    np.testing.assert_array_equal(row.positions, [0, 1, 2, 3, 4] * 2)
    assert row.targets[4] == IGNORED and row.targets[9] == IGNORED and row.text_bytes == 0
    held = TokenRows(tmp_path / "t", 4, share=(0.8, 1.0), separate=False)
    assert held[0].ids[0] == 8 and len(held) == 2


def test_the_command_writes_what_is_read(words: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "x.txt").write_text("abc\ndef\n", encoding="utf-8")
    output = tmp_path / "out" / "corpus"
    arguments = ["tokens", "--tokenizer", words, "--input", str(tmp_path / "x.txt"), "--division", "line"]
    assert main([*arguments, "--output", str(output)]) == 0
    assert "2 texts, 8 tokens" in capsys.readouterr().out
    file = read_token_file(output)
    assert Tokenizer.from_file(words).decode(file.document(1)) == "def"
    assert main([*arguments[:3], "--input", str(tmp_path / "none.txt"), "--output", str(output)]) == 2


def test_what_cannot_be_read(words: str, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("ab", encoding="utf-8")
    (tmp_path / "bad.txt").write_bytes(b"ab\xff")
    (tmp_path / "x.jsonl").write_text('{"text": "abcdef"}\n{"body": "abc"}\n', "utf-8")
    (tmp_path / "y.jsonl").write_text("{\n", "utf-8")
    (tmp_path / "empty").mkdir()
    for name, error, message in (
        ("short.txt", InputError, "fewer tokens"),
        ("bad.txt", FormatError, "not UTF-8"),
        ("x.jsonl", FormatError, "line 2"),
        ("y.jsonl", FormatError, "no JSON"),
        ("empty", InputError, "no texts"),
        ("none.txt", InputError, "none.txt"),
    ):
        with pytest.raises(error, match=message):
            len(TextRows((tmp_path / name,), words, 4))
    for settings in ({"max_length": 0}, {"share": (0.5, 0.5)}, {"paths": ()}):
        with pytest.raises(ConfigError):
            TextRows(**{"paths": (tmp_path,), "tokenizer": words, "max_length": 4, **settings})
    (tmp_path / "long.txt").write_text("abcdefghij", encoding="utf-8")
    with pytest.raises(ConfigError, match="no token"):
        len(TextRows((tmp_path / "long.txt",), words, 4, end="<eos>"))
