from __future__ import annotations

import pickle

import numpy as np
import pytest

from framework.core.errors import ConfigError
from framework.core.transform import WindowTransform
from framework.io.dataset import WindowedDataset, split_windows
from framework.io.device import without_texts


class Letters(WindowTransform[str]):
    def split_windows(self, word: str) -> list[str]:
        return list(word) or [""]


WORDS = ["ab", "", "c", "def"]


def test_parts_of_samples() -> None:
    data, rest = split_windows(WORDS, (Letters(), str.upper))
    assert list(data) == ["a", "b", "", "c", "d", "e", "f"] and len(data) == 7 and rest == (str.upper,)
    assert data[-1] == "f" and data[-7] == "a"
    for index in (7, -8):
        with pytest.raises(IndexError):
            data[index]
    assert list(pickle.loads(pickle.dumps(data))) == list(data)
    assert len(WindowedDataset([], list)) == 0


def test_other_transforms_are_left_alone() -> None:
    assert split_windows(WORDS, (str.upper,)) == (WORDS, (str.upper,))
    assert split_windows(WORDS, ()) == (WORDS, ())
    with pytest.raises(ConfigError, match=r"(?s)comes first.*Letters behind str"):
        split_windows(WORDS, ("x", Letters()))


def test_texts_stay_on_the_host() -> None:
    batch = {"ids": np.zeros(2, np.int32), "text": np.array(["a", "bc"]), "mask": np.ones(2, bool)}
    assert list(without_texts(batch)) == ["ids", "mask"]
