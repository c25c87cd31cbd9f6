from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.io import default_collate
from framework.io.collate import PadToBucket
from framework.vision.sample import Sample


def test_arrays_are_stacked() -> None:
    out = default_collate([np.array([1, 2], np.uint8), np.array([3, 4], np.uint8)])
    assert out.tolist() == [[1, 2], [3, 4]] and out.dtype == np.uint8
    assert default_collate([np.zeros((0, 3))]).shape == (1, 0, 3)
    assert default_collate([jnp.ones(2), jnp.zeros(2)]).tolist() == [[1, 1], [0, 0]]


def test_numbers_become_one_array() -> None:
    assert default_collate([1, 2]).tolist() == [1, 2] and default_collate([1, 2]).dtype == np.int64
    assert default_collate([1.5]).dtype == np.float64
    assert default_collate([True, False]).dtype == np.bool_
    assert default_collate([np.float32(1), np.float32(2)]).dtype == np.float32
    assert default_collate([np.bool_(True)]).dtype == np.bool_


def test_structures_are_gone_through() -> None:
    samples = [
        {"image": np.zeros((1, 1, 3)), "label": 4, "name": "a", "boxes": (np.zeros(2), [1, 2])},
        {"image": np.ones((1, 1, 3)), "label": 5, "name": "b", "boxes": (np.ones(2), [3, 4])},
    ]
    out = default_collate(samples)
    assert out["image"].shape == (2, 1, 1, 3) and out["label"].tolist() == [4, 5]
    assert out["name"] == ["a", "b"]
    boxes, pair = out["boxes"]
    assert boxes.tolist() == [[0, 0], [1, 1]] and [field.tolist() for field in pair] == [[1, 3], [2, 4]]
    assert default_collate([b"x", b"y"]) == [b"x", b"y"]


def test_shapes_must_agree() -> None:
    samples = [{"image": np.zeros((2, 3))}] * 2 + [{"image": np.zeros((2, 4))}]
    with pytest.raises(ShapeError, match=r"(?s)^image: .*\[2, 3\] in the first.*\[2, 4\] in sample 3"):
        default_collate(samples)


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ([{"a": 1}, {"b": 1}], r"^sample: .*different keys"),
        ([{"a": 1}, 1], r"^sample: .*different keys"),
        ([(1, 2), (1,)], r"^sample: .*different numbers of fields"),
        ([{"a": (1,)}, {"a": 1}], r"^a: .*different numbers of fields"),
    ],
)
def test_structures_must_agree(samples: list[Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        default_collate(samples)


@pytest.mark.parametrize("value", [None, Sample(np.zeros((1, 1, 3), np.uint8))])
def test_other_things_want_pack(value: Any) -> None:
    with pytest.raises(ConfigError, match=r"(?s)cannot be put into a batch.*`pack`"):
        default_collate([value])


def test_texts_are_padded_to_the_bucket_of_the_longest() -> None:
    collate = PadToBucket((2, 4, 8), {"ids": 7, "mask": False})
    samples = [
        {"ids": np.array([1, 2, 3]), "mask": np.ones((3, 2), bool), "label": np.int32(5)},
        {"ids": np.array([4]), "mask": np.ones((1, 2), bool), "label": np.int32(6)},
    ]
    batch = collate(samples)
    assert batch["ids"].tolist() == [[1, 2, 3, 7], [4, 7, 7, 7]]
    assert batch["mask"].shape == (2, 4, 2) and batch["mask"].sum() == 8
    assert batch["label"].tolist() == [5, 6]
    assert collate([{"ids": np.zeros(0, int)}])["ids"].shape == (1, 2)
    with pytest.raises(ShapeError, match=r"(?s)length 9.*up to 8"):
        collate([{"ids": np.zeros(9, int)}])
    with pytest.raises(ConfigError, match="buckets must be ascending lengths"):
        PadToBucket((), {})
