"""paddle.text.datasets: samples of published files, or of files that are given. They are kept in OAR_HOME/datasets."""

from __future__ import annotations

import os
import re
import string
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from framework.core.errors import FormatError, HubError
from framework.paddle import dtypes as types
from framework.paddle.io import Dataset
from framework.vision.datasets.files import RemoteFile, check_mode, find_file

_HOUSING = RemoteFile(
    "uci_housing",
    "http://paddlemodels.bj.bcebos.com/uci_housing/housing.data",
    "d4accdce7a25600298819f8e28e8d593",
)
_IMDB = RemoteFile(
    "imdb", "https://dataset.bj.bcebos.com/imdb%2FaclImdb_v1.tar.gz", "7c2ac02c03563afcf9b574c7e56c153a"
)
_IMIKOLOV = RemoteFile(
    "imikolov",
    "https://dataset.bj.bcebos.com/imikolov%2Fsimple-examples.tgz",
    "30177ea32e27c525793142b6bf2c8e2d",
)
PathLike = str | os.PathLike[str]


class UCIHousing(Dataset):
    """House prices of Boston: (13 features, price [1]), features relative to their mean and range. The first four
    fifths are for training.

    Raises:
        HubError: the file is not here. FormatError: it has no rows of 14 numbers.
    """

    def __init__(self, data_file: PathLike | None = None, mode: str = "train", download: bool = True) -> None:
        self.mode = check_mode(mode, ("train", "test"), "UCIHousing")
        self.data_file = find_file(data_file, _HOUSING, download, "UCIHousing.data_file")
        try:
            rows = np.fromstring(Path(self.data_file).read_text(), sep=" ").reshape(-1, 14)
        except (ValueError, UnicodeDecodeError):
            raise FormatError("the file has no rows of 14 numbers", where=str(self.data_file)) from None
        features = rows[:, :-1]
        rows[:, :-1] = (features - features.mean(0)) / (features.max(0) - features.min(0))
        split = int(len(rows) * 0.8)
        self.data = rows[:split] if self.mode == "train" else rows[split:]
        self.dtype = types.default_numpy()

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        row = self.data[idx].astype(self.dtype)
        return row[:-1], row[-1:]

    def __len__(self) -> int:
        return len(self.data)


def _members(archive: Path, pattern: str) -> Iterator[bytes]:
    """The contents of an archive's files whose names match, in the archive's order."""
    wanted = re.compile(pattern)
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile() and wanted.match(member.name) and (file := tar.extractfile(member)):
                    yield file.read()
    except (tarfile.TarError, EOFError) as error:
        raise FormatError("this is no whole archive", where=str(archive), received=str(error)) from None


def _numbered(counts: Counter[Any], least: int, unknown: Any) -> dict[Any, int]:
    """Words that are more frequent than `least`, the most frequent first, and the unknown word last."""
    kept = sorted((word for word, n in counts.items() if n > least), key=lambda word: (-counts[word], word))
    return {word: number for number, word in enumerate([*kept, unknown])}


class Imdb(Dataset):
    """Reviews of films: (word numbers [T] int64, label [1] int64), 0 for positive and 1 for negative ones.

    Args:
        cutoff: words of the dictionary are more frequent.

    Raises:
        HubError: the archive is not here. FormatError: it is damaged.
    """

    def __init__(
        self, data_file: PathLike | None = None, mode: str = "train", cutoff: int = 150, download: bool = True
    ) -> None:
        self.mode = check_mode(mode, ("train", "test"), "Imdb")
        self.data_file = find_file(data_file, _IMDB, download, "Imdb.data_file")
        words = Counter(word for text in self._texts("(train|test)/(pos|neg)") for word in text)
        self.word_idx = _numbered(words, cutoff, b"<unk>")
        unknown = self.word_idx[b"<unk>"]
        self.docs, self.labels = [], []
        for label, kind in enumerate(("pos", "neg")):
            for text in self._texts(f"{self.mode}/{kind}"):
                self.docs.append([self.word_idx.get(word, unknown) for word in text])
                self.labels.append(label)

    def _texts(self, folder: str) -> Iterator[list[bytes]]:
        for content in _members(self.data_file, rf"(\./)?aclImdb/{folder}/.*\.txt$"):
            yield content.rstrip(b"\n\r").translate(None, string.punctuation.encode()).lower().split()

    def __getitem__(self, idx: int) -> tuple[np.ndarray, np.ndarray]:
        return np.array(self.docs[idx]), np.array([self.labels[idx]])

    def __len__(self) -> int:
        return len(self.docs)


class Imikolov(Dataset):
    """Sentences of the Penn Treebank in word numbers: n-grams, or pairs (from the start mark on, up to the end mark).

    Args:
        data_type: "NGRAM" with `window_size`, or "SEQ"; there a positive `window_size` drops longer sentences.
        min_word_freq: words of the dictionary are more frequent.

    Raises:
        HubError: the archive is not here. FormatError: it is damaged.
    """

    def __init__(
        self,
        data_file: PathLike | None = None,
        data_type: str = "NGRAM",
        window_size: int = -1,
        mode: str = "train",
        min_word_freq: int = 50,
        download: bool = True,
    ) -> None:
        self.data_type = check_mode(data_type, ("ngram", "seq"), "Imikolov.data_type").upper()
        self.mode = check_mode(mode, ("train", "test"), "Imikolov")
        self.window_size, self.min_word_freq = window_size, min_word_freq
        if self.data_type == "NGRAM" and window_size < 1:
            raise FormatError("n-grams have a window", where="Imikolov.window_size", received=window_size)
        self.data_file = find_file(data_file, _IMIKOLOV, download, "Imikolov.data_file")
        counts: Counter[bytes] = Counter()
        for name in ("train", "valid"):
            counts = self.word_count(self._lines(name), counts)
        counts.pop(b"<unk>", None)
        self.word_idx = _numbered(counts, min_word_freq, b"<unk>")
        self.data = list(self._samples())

    def word_count(self, f: Iterable[bytes], word_freq: Counter[bytes] | None = None) -> Counter[bytes]:
        """How often words stand in these lines; each line has a start mark <s> and an end mark <e>."""
        counts = Counter() if word_freq is None else word_freq
        for line in f:
            counts.update([*line.split(), b"<s>", b"<e>"])
        return counts

    def _lines(self, name: str) -> Iterator[bytes]:
        for content in _members(self.data_file, rf"(\./)?simple-examples/data/ptb\.{name}\.txt$"):
            yield from content.splitlines()

    def _samples(self) -> Iterator[tuple[Any, ...]]:
        unknown = self.word_idx[b"<unk>"]
        for line in self._lines("train" if self.mode == "train" else "valid"):
            words = [b"<s>", *line.split(), b"<e>"]
            numbers = [self.word_idx.get(word, unknown) for word in words]
            if self.data_type == "NGRAM":
                for end in range(self.window_size, len(numbers) + 1):
                    yield tuple(numbers[end - self.window_size : end])
            elif self.window_size <= 0 or len(numbers) - 1 <= self.window_size:
                yield numbers[:-1], numbers[1:]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array(part) for part in self.data[idx])

    def __len__(self) -> int:
        return len(self.data)


def _absent(name: str) -> Callable[..., NoReturn]:
    def make(*args: Any, **kwargs: Any) -> NoReturn:
        raise HubError(
            "this data set is not read yet",
            where=f"paddle.text.datasets.{name}",
            received="a call",
            allowed="UCIHousing, Imdb, Imikolov",
            fix="read its files with a paddle.io.Dataset of your own",
        )

    return make


Conll05st = _absent("Conll05st")
Movielens = _absent("Movielens")
WMT14 = _absent("WMT14")
WMT16 = _absent("WMT16")
