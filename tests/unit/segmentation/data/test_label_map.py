from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import ConfigError, InputError
from segmentation.data.label_map import LabelMap, name_classes

RGB = (((255, 0, 0), 0), ((0, 0, 255), 1), ((0, 0, 0), 255))


@pytest.fixture
def save(tmp_path: Path):
    def save(values: object, name: str = "a.png") -> Path:
        Image.fromarray(np.asarray(values)).save(tmp_path / name)
        return tmp_path / name

    return save


def u8(*rows: list[int]) -> np.ndarray:
    return np.array(rows, np.uint8)


def test_values_are_classes_or_ignored(save) -> None:
    mask = LabelMap(3).read(save(u8([0, 1], [2, 255])))
    assert mask.dtype == np.uint8 and mask.tolist() == [[0, 1], [2, 255]]


def test_values_that_stand_for_others(save) -> None:
    label_map = LabelMap(3, values={0: 255, 1: 0, 2: 1, 3: 2})
    assert label_map.read(save(u8([0, 1, 2, 3]))).tolist() == [[255, 0, 1, 2]]


def test_sixteen_bits(save) -> None:
    label_map = LabelMap(300, ignore_index=65535, values={1000: 299})
    mask = label_map.read(save(np.array([[0, 299], [65535, 1000]], np.uint16)))
    assert mask.dtype == np.int32 and mask.tolist() == [[0, 299], [65535, 299]]
    mask = LabelMap(3).read(save(np.array([[0, 2], [255, 1]], np.uint16)))
    assert mask.dtype == np.uint8 and mask.tolist() == [[0, 2], [255, 1]]


def test_values_outside_are_counted(save) -> None:
    path = save(u8([0, 7, 7], [7, 9, 255]))
    with pytest.raises(InputError, match="values outside the classes") as caught:
        LabelMap(3, values={8: 0}).read(path)
    text = str(caught.value)
    assert str(path) in text and "7: 3 pixels, 9: 1 pixels" in text and "0 to 2, 255 to ignore, and 8" in text


@pytest.mark.parametrize("dtype", [np.uint16, np.int64])
def test_wide_values_outside_are_counted(tmp_path: Path, dtype: type) -> None:
    values = np.array([[0, 300], [300, 1]], dtype)
    if dtype == np.int64:
        values[0, 0], values[1, 1] = -1, 70000
    np.save(tmp_path / "a.npy", values)
    with pytest.raises(InputError) as caught:
        LabelMap(3).read(tmp_path / "a.npy")
    assert "300: 2 pixels" in str(caught.value)
    assert dtype == np.uint16 or "-1: 1 pixels, 70000: 1 pixels" in str(caught.value)


def test_many_values_are_cut(save) -> None:
    with pytest.raises(InputError, match="and 92 more values"):
        LabelMap(2).read(save(np.arange(100, 200, dtype=np.uint8)[None]))


def test_what_to_do_is_told(save, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"label_map: \{255: 1\}"):
        LabelMap(2, ignore_index=100).read(save(u8([0, 255])))
    noise = np.random.default_rng(0).integers(0, 2, (16, 16)).astype(np.uint8) * 100
    with pytest.raises(InputError, match="JPEG changes values"):
        LabelMap(2, values={100: 1}).read(save(noise, "a.jpg"))


def test_colours(save) -> None:
    pixels = np.array([[[255, 0, 0], [0, 0, 255]], [[0, 0, 0], [0, 0, 255]]], np.uint8)
    assert LabelMap(2, colors=RGB).read(save(pixels)).tolist() == [[0, 1], [255, 1]]
    pixels[0, 0] = (0, 255, 0)
    with pytest.raises(InputError, match="colours that stand for no class") as caught:
        LabelMap(2, colors=RGB).read(save(pixels))
    assert "#00ff00: 1 pixels" in str(caught.value) and "#000000, #0000ff, #ff0000" in str(caught.value)
    with pytest.raises(InputError, match="nothing says what they stand for") as caught:
        LabelMap(2).read(save(pixels))
    assert "#0000ff: 2 pixels" in str(caught.value)


def test_grey_that_is_stored_as_colours(save) -> None:
    assert LabelMap(3).read(save(np.repeat(u8([0, 2], [1, 255])[..., None], 3, axis=2))).tolist() == [
        [0, 2],
        [1, 255],
    ]


def test_a_palette_is_not_looked_at(tmp_path: Path) -> None:
    indexed = Image.new("P", (2, 1))
    indexed.putpalette([9, 9, 9, 128, 0, 0] + [0] * 762)
    indexed.putpixel((1, 0), 1)
    indexed.save(tmp_path / "a.png")
    assert LabelMap(2).read(tmp_path / "a.png").tolist() == [[0, 1]]


def test_settings_that_do_not_fit() -> None:
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"ignore_index": 2}, "ignore_index is the number of a class"),
        ({"values": {7: 3}}, "stand for classes that are not there"),
        ({"colors": (((0, 0, 0), 3),)}, "stand for classes that are not there"),
        ({"values": {70000: 1}}, "masks have no such values"),
        ({"colors": (((0, 0, 0), 0), ((0, 0, 0), 1))}, "a different colour for each class"),
        ({"colors": (((0, 0, 256), 0),)}, "a different colour for each class"),
    )
    for options, message in wrong:
        with pytest.raises(ConfigError, match=message):
            LabelMap(3, **options)


def test_names() -> None:
    assert name_classes(3, "X") == ("0", "1", "2") and name_classes(["a", "b"], "X") == ("a", "b")
    for classes in (1, ["a"], 0):
        with pytest.raises(ConfigError, match="cannot be told from any other") as caught:
            name_classes(classes, "X")
        assert "X.classes" in str(caught.value) and "[background, object]" in str(caught.value)
    with pytest.raises(ConfigError, match="same name"):
        name_classes(["a", "b", "a"], "X")
