"""Class names of data and of weights: which is which, what is said, and what becomes of packed arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.engine.label_alignment import AlignedPack, align_labels, infer_classes
from framework.text.sample import TextSample
from nlp.tasks import SequenceClassification


def test_the_same_names_are_no_change() -> None:
    same = align_labels(("a", "b"), ("a", "b"))
    assert same.labels == ("a", "b") and same.indices == (0, 1) and same.describe() == ""
    assert align_labels(("a", "b"), ("b", "a")).indices == (1, 0)


def test_names_that_differ_are_said_in_one_line() -> None:
    found = align_labels(("a", "b", "c"), ("x", "c", "a"))
    assert found.labels == ("a", "b", "c", "x") and found.indices == (3, 2, 0)
    assert (found.unknown, found.missing) == (("x",), ("b",))
    assert found.describe() == (
        "classes unknown to the model, each counted as an error: 1 (x); known to the model, but not in the data: 1 (b)"
    )
    many = align_labels(("a",), ("a", *map(str, range(12)))).describe()
    assert many.endswith("12 (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)")


def test_what_is_no_class_stays() -> None:
    alignment = align_labels(("a", "b", "c"), ("x", "c", "a"))
    classes = np.array([[0, 1, 2], [-1, 255, -100]], np.int32)
    found = alignment.remap(classes)
    assert found.tolist() == [[3, 2, 0], [-1, 255, -100]] and found.dtype == np.int32
    assert alignment.remap(np.asarray(1, np.int32)).tolist() == 2
    assert alignment.remap(np.zeros((0,), np.int32)).shape == (0,)


def test_without_names_on_one_side_there_is_nothing_to_align() -> None:
    assert align_labels((), ("a", "b")).labels == ("a", "b")
    assert align_labels(("a", "b"), ()).remap(np.array([0, 1])).tolist() == [0, 1]


def test_names_without_anything_in_common_go_by_number_where_they_are_as_many() -> None:
    found = align_labels(("tench", "goldfish"), ("n01440764", "n01443537"))
    assert found.labels == ("tench", "goldfish") and found.indices == (0, 1)
    with pytest.raises(InputError, match=r"knows none of the classes(.|\n)*1 \(x\)(.|\n)*2 \(a, b\)"):
        align_labels(("a", "b"), ("x",))


def test_a_pack_can_be_sent_to_a_worker() -> None:
    pack = AlignedPack(SequenceClassification(), ("label",), align_labels(("b", "a"), ("a", "b")))
    for one in (pack, pickle.loads(pickle.dumps(pack))):
        packed = one(TextSample("a", label=1, ids=np.array([5, 6])))
        assert packed["label"] == 0 and packed["label"].dtype == np.int32 and packed["mask"].all()


def test_data_that_declare_no_classes_stay() -> None:
    data = object()
    assert infer_classes(data) is data
