"""paddle.text.datasets and paddle.hub, on small files made here."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from framework import paddle
from framework.core.errors import FormatError, HubError


def _archive(path: Path, files: Mapping[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_housing_is_split_and_scaled(tmp_path: Path) -> None:
    rows = np.arange(70, dtype=float).reshape(5, 14)
    path = tmp_path / "housing.data"
    path.write_text("\n".join(" ".join(map(str, row)) for row in rows), encoding="utf-8")
    train, test = (paddle.text.UCIHousing(path, mode) for mode in ("train", "test"))
    assert (len(train), len(test)) == (4, 1)
    features, price = test[0]
    np.testing.assert_allclose(features, np.full(13, 0.5))
    assert price.tolist() == [69.0] and price.dtype == np.float32
    path.write_text("1 2 3", encoding="utf-8")
    with pytest.raises(FormatError):
        paddle.text.UCIHousing(path)


def test_reviews_become_word_numbers(tmp_path: Path) -> None:
    path = _archive(
        tmp_path / "imdb.tar.gz",
        {
            "aclImdb/train/pos/0.txt": b"Good, good film!\n",
            "aclImdb/train/neg/0.txt": b"bad film",
            "aclImdb/test/pos/0.txt": b"film unseen",
        },
    )
    train = paddle.text.Imdb(path, cutoff=1)
    assert train.word_idx == {b"film": 0, b"good": 1, "<unk>": 2}
    assert [(words.tolist(), label.tolist()) for words, label in train] == [([1, 1, 0], [0]), ([2, 0], [1])]


def test_sentences_become_windows_or_sequences(tmp_path: Path) -> None:
    path = _archive(
        tmp_path / "ptb.tgz",
        {
            "./simple-examples/data/ptb.train.txt": b"a b a\nb\n",
            "./simple-examples/data/ptb.valid.txt": b"a c\n",
            "./simple-examples/data/ptb.test.txt": b"a c\n",
        },
    )
    grams = paddle.text.Imikolov(path, "NGRAM", 3, min_word_freq=1)
    # Three sentences have three marks each, a stands three times, b twice, c once.
    assert grams.word_idx == {"<e>": 0, "<s>": 1, b"a": 2, b"b": 3, "<unk>": 4}
    assert [tuple(int(x) for x in sample) for sample in grams] == [(1, 2, 3), (2, 3, 2), (3, 2, 0), (1, 3, 0)]
    pairs = paddle.text.Imikolov(path, "SEQ", mode="test", min_word_freq=1)
    assert [part.tolist() for part in pairs[0]] == [[1, 2, 4], [2, 4, 0]]


def test_pairs_of_sentences(tmp_path: Path) -> None:
    words = b"<s>\n<e>\n<unk>\na\nb\n"
    path = _archive(
        tmp_path / "wmt14.tgz",
        {"wmt14/src.dict": words, "wmt14/trg.dict": words, "wmt14/test/test": b"a b\tb zz\nonly one part\n"},
    )
    pairs = paddle.text.WMT14(path, "test", dict_size=5)
    assert [[part.tolist() for part in sample] for sample in pairs] == [[[0, 3, 4, 1], [0, 4, 2], [4, 2, 1]]]
    assert pairs.get_dict(reverse=True)[0][3] == "a"
    path = _archive(tmp_path / "wmt16.tgz", {"wmt16/train": b"a b a\tx y\n", "wmt16/val": b"b q\tx\n"})
    pairs = paddle.text.WMT16(path, "val", 5, 4, lang="de")
    assert pairs.get_dict("de") == {"<s>": 0, "<e>": 1, "<unk>": 2, "x": 3, "y": 4}
    assert [part.tolist() for part in pairs[0]] == [[0, 3, 1], [0, 2, 2], [2, 2, 1]]


def test_ratings_of_films(tmp_path: Path) -> None:
    path = tmp_path / "ml-1m.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("ml-1m/movies.dat", "7::Blue Velvet (1986)::Drama|Crime\n")
        archive.writestr("ml-1m/users.dat", "3::F::25::15::55117\n")
        archive.writestr("ml-1m/ratings.dat", "3::7::4::978300760\n" * 20)
    train, test = (paddle.text.Movielens(path, mode, test_ratio=0.5) for mode in ("train", "test"))
    assert len(train) + len(test) == 20 and len(train) and len(test)
    assert [part.tolist() for part in train[0]] == [[3], [1], [2], [15], [7], [1, 0], [0, 1], [3.0]]


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(HubError, match="not read yet"):
        paddle.text.Conll05st()
    with pytest.raises(HubError, match="not on this machine"):
        paddle.text.Imdb(download=False)


def test_hub_takes_entries_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text(
        'def net(size=1):\n    "A net."\n    return size + 1\n', encoding="utf-8"
    )
    folder = str(tmp_path)
    assert paddle.hub.list(folder, source="local") == ["net"]
    assert paddle.hub.help(folder, "net", source="local") == "A net."
    assert paddle.hub.load(folder, "net", source="local", size=4) == 5
    for call in (
        lambda: paddle.hub.load("a/b", "net"),
        lambda: paddle.hub.load(folder, "no", source="local"),
    ):
        with pytest.raises(HubError):
            call()
