"""paddle.text.datasets: samples of published files, or of files that are given. They are kept in OAR_HOME/datasets."""

from __future__ import annotations

import os
import re
import string
import tarfile
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from framework.core.errors import FormatError, HubError
from framework.paddle._kernel import dtypes as types
from framework.paddle._kernel.modules import complete as _complete
from framework.paddle.io import Dataset
from framework.paddle.vision.datasets.files import RemoteFile, check_mode, find_file

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
_WMT14 = RemoteFile(
    "wmt14", "http://paddlemodels.bj.bcebos.com/wmt/wmt14.tgz", "0791583d57d5beb693b9414c5b36798c"
)
_WMT16 = RemoteFile(
    "wmt16", "http://paddlemodels.bj.bcebos.com/wmt/wmt16.tar.gz", "0c38be43600334966403524a40dcd81e"
)
_MOVIELENS = RemoteFile(
    "movielens", "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"
)
_UNKNOWN = 2  # the number of <unk>
PathLike = str | os.PathLike[str]


class UCIHousing(Dataset):
    """Housing prices of Boston: (13 features, price [1]), features relative to their mean and range. The first four
    fifths are for training.

    Raises:
        HubError: the file is not here. FormatError: it has no rows of 14 numbers.
    """

    def __init__(self, data_file: PathLike | None = None, mode: str = "train", download: bool = True) -> None:
        self.mode = check_mode(mode, ("train", "test"), "UCIHousing")
        self.data_file = find_file(data_file, _HOUSING, download, "UCIHousing.data_file")
        try:
            rows = np.fromstring(Path(self.data_file).read_text(encoding="utf-8"), sep=" ").reshape(-1, 14)
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


def _numbered(counts: Counter[Any], least: int) -> dict[Any, int]:
    """Words that are more frequent than `least`, the most frequent first, and "<unk>" last. As in Paddle words are
    bytes and marks are texts."""

    def order(word: bytes | str) -> tuple[int, bytes]:
        return -counts[word], word.encode() if isinstance(word, str) else word

    kept = sorted((word for word, n in counts.items() if n > least), key=order)
    return {word: number for number, word in enumerate([*kept, "<unk>"])}


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
        self.word_idx = _numbered(words, cutoff)
        unknown = self.word_idx["<unk>"]
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


class _Rows(Dataset):
    """Samples of several arrays."""

    data: list[Any]

    def __getitem__(self, idx: int) -> tuple[np.ndarray, ...]:
        return tuple(np.array(part) for part in self.data[idx])

    def __len__(self) -> int:
        return len(self.data)


class Imikolov(_Rows):
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
        counts: Counter[bytes | str] = Counter()
        for name in ("train", "valid"):
            counts = self.word_count(self._lines(name), counts)
        self.word_idx = _numbered(counts, min_word_freq)
        self.data = list(self._samples())

    def word_count(
        self, f: Iterable[bytes], word_freq: Counter[bytes | str] | None = None
    ) -> Counter[bytes | str]:
        """How often words stand in these lines; each line has a start mark <s> and an end mark <e>."""
        counts = Counter() if word_freq is None else word_freq
        for line in f:
            counts.update([*line.split(), "<s>", "<e>"])
        return counts

    def _lines(self, name: str) -> Iterator[bytes]:
        for content in _members(self.data_file, rf"(\./)?simple-examples/data/ptb\.{name}\.txt$"):
            yield from content.splitlines()

    def _samples(self) -> Iterator[tuple[int, ...] | tuple[list[int], list[int]]]:
        unknown = self.word_idx["<unk>"]
        for line in self._lines(self.mode):
            words = ["<s>", *line.split(), "<e>"]
            numbers = [self.word_idx.get(word, unknown) for word in words]
            if self.data_type == "NGRAM":
                for end in range(self.window_size, len(numbers) + 1):
                    yield tuple(numbers[end - self.window_size : end])
            elif self.window_size <= 0 or len(numbers) - 1 <= self.window_size:
                yield numbers[:-1], numbers[1:]


class _Pairs(_Rows):
    """Sentences of two languages: (source, target, target one word on), each [T] int64."""

    def _add(self, source: list[int], target: list[int], marks: tuple[int, int]) -> None:
        start, end = marks
        self.data.append(([start, *source, end], [start, *target], [*target, end]))


def _only(archive: Path, pattern: str) -> bytes:
    found = next(_members(archive, pattern), None)
    if found is None:
        raise FormatError("the archive has not the file", where=str(archive), received=pattern)
    return found


class WMT14(_Pairs):
    """English to French: pairs of sentences up to 80 words, with the dictionaries of the archive.

    Args:
        dict_size: so many words of each dictionary.

    Raises:
        HubError: the archive is not here. FormatError: it is damaged.
    """

    def __init__(
        self,
        data_file: PathLike | None = None,
        mode: str = "train",
        dict_size: int = -1,
        download: bool = True,
    ) -> None:
        self.mode = check_mode(mode, ("train", "test", "gen"), "WMT14")
        if dict_size <= 0:
            raise FormatError("the dictionaries have a size", where="WMT14.dict_size", received=dict_size)
        self.dict_size = dict_size
        self.data_file = find_file(data_file, _WMT14, download, "WMT14.data_file")
        self.src_dict, self.trg_dict = (self._words(name) for name in ("src", "trg"))
        self.data = []
        marks = self.trg_dict["<s>"], self.trg_dict["<e>"]
        for content in _members(self.data_file, rf".*{self.mode}/{self.mode}$"):
            for line in content.decode().splitlines():
                parts = line.strip().split("\t")
                if len(parts) != 2:
                    continue
                source = [self.src_dict.get(word, _UNKNOWN) for word in parts[0].split()]
                target = [self.trg_dict.get(word, _UNKNOWN) for word in parts[1].split()]
                if len(source) <= 78 and len(target) <= 80:  # the source has two marks
                    self._add(source, target, marks)

    def _words(self, name: str) -> dict[str, int]:
        lines = _only(self.data_file, rf".*{name}\.dict$").decode().splitlines()[: self.dict_size]
        return {word.strip(): number for number, word in enumerate(lines)}

    def get_dict(
        self, reverse: bool = False
    ) -> tuple[dict[str, int], dict[str, int]] | tuple[dict[int, str], dict[int, str]]:
        """The two dictionaries: word -> number, or back."""
        if not reverse:
            return self.src_dict, self.trg_dict
        src, trg = ({number: word for word, number in d.items()} for d in (self.src_dict, self.trg_dict))
        return src, trg


class WMT16(_Pairs):
    """English and German of Multi30K; the dictionaries are the most frequent words of the training part.

    Args:
        src_dict_size, trg_dict_size: with the three marks <s>, <e> and <unk>.
        lang: language of the source, "en" or "de".

    Raises:
        HubError: the archive is not here. FormatError: it is damaged.
    """

    def __init__(
        self,
        data_file: PathLike | None = None,
        mode: str = "train",
        src_dict_size: int = -1,
        trg_dict_size: int = -1,
        lang: str = "en",
        download: bool = True,
    ) -> None:
        self.mode = check_mode(mode, ("train", "test", "val"), "WMT16")
        self.lang = check_mode(lang, ("en", "de"), "WMT16.lang")
        if min(src_dict_size, trg_dict_size) <= 0:
            raise FormatError(
                "the dictionaries have a size", where="WMT16", received=f"{src_dict_size}, {trg_dict_size}"
            )
        self.data_file = find_file(data_file, _WMT16, download, "WMT16.data_file")
        self._column = 0 if self.lang == "en" else 1
        self.src_dict = self._words(self._column, src_dict_size)
        self.trg_dict = self._words(1 - self._column, trg_dict_size)
        self.data = []
        for parts in self._lines(self.mode):
            source = [self.src_dict.get(word, 2) for word in parts[self._column].split()]
            target = [self.trg_dict.get(word, 2) for word in parts[1 - self._column].split()]
            self._add(source, target, (0, 1))

    def _lines(self, mode: str) -> Iterator[list[str]]:
        for line in _only(self.data_file, rf"(\./)?wmt16/{mode}$").decode().splitlines():
            parts = line.strip().split("\t")
            if len(parts) == 2:
                yield parts

    def _words(self, column: int, size: int) -> dict[str, int]:
        counts = Counter(word for parts in self._lines("train") for word in parts[column].split())
        words = ["<s>", "<e>", "<unk>", *(word for word, _ in counts.most_common(max(size - 3, 0)))]
        return {word: number for number, word in enumerate(words)}

    def get_dict(self, lang: str, reverse: bool = False) -> dict[str, int] | dict[int, str]:
        """The dictionary of a language: word -> number, or back."""
        words = self.src_dict if lang == self.lang else self.trg_dict
        return {number: word for word, number in words.items()} if reverse else words


_AGES = (1, 18, 25, 35, 45, 50, 56)


class Movielens(_Rows):
    """Ratings of films: user, sex (0 male), age group, job, film, categories, words of the title, rating (-3 to 5).

    Args:
        test_ratio: share of the ratings that are for testing, drawn with `rand_seed`.

    Raises:
        HubError: the archive is not here. FormatError: it is damaged.
    """

    def __init__(
        self,
        data_file: PathLike | None = None,
        mode: str = "train",
        test_ratio: float = 0.1,
        rand_seed: int = 0,
        download: bool = True,
    ) -> None:
        self.mode = check_mode(mode, ("train", "test"), "Movielens")
        self.data_file = find_file(data_file, _MOVIELENS, download, "Movielens.data_file")
        try:
            with zipfile.ZipFile(self.data_file) as archive:
                read = {
                    name: [
                        line.split("::")
                        for line in archive.read(f"ml-1m/{name}.dat").decode("latin-1").splitlines()
                    ]
                    for name in ("movies", "users", "ratings")
                }
        except (zipfile.BadZipFile, KeyError) as error:
            raise FormatError(
                "this is no archive of ml-1m", where=str(self.data_file), received=str(error)
            ) from None
        films = {
            row[0]: (re.sub(r"\s*\(\d+\)$", "", row[1]).lower().split(), row[2].split("|"))
            for row in read["movies"]
        }
        words = sorted({word for title, _ in films.values() for word in title})
        kinds = sorted({kind for _, own in films.values() for kind in own})
        self.movie_title_dict = {word: number for number, word in enumerate(words)}
        self.categories_dict = {kind: number for number, kind in enumerate(kinds)}
        users = {
            row[0]: [[int(row[0])], [int(row[1] != "M")], [_AGES.index(int(row[2]))], [int(row[3])]]
            for row in read["users"]
        }
        drawn = np.random.RandomState(rand_seed).random_sample(len(read["ratings"])) < test_ratio
        self.data = []
        for is_test, (user, film, rating, _) in zip(drawn, read["ratings"], strict=True):
            if is_test == (self.mode == "test"):
                title, own = films[film]
                parts = [[int(film)], [self.categories_dict[k] for k in own]]
                parts.append([self.movie_title_dict[word] for word in title])
                self.data.append([*users[user], *parts, [float(rating) * 2 - 5.0]])


def Conll05st(*args: object, **kwargs: object) -> NoReturn:
    """Semantic roles of CoNLL 2005.

    Raises:
        HubError: always: they are not read yet.
    """
    raise HubError(
        "this data set is not read yet",
        where="paddle.text.datasets.Conll05st",
        received="a call",
        fix="read its files with a paddle.io.Dataset of your own",
    )


_complete(__name__)
