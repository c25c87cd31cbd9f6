"""Some of the classes of masks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.vision import image, masks
from segmentation.data.custom import MaskFolder
from segmentation.data.selected import SelectedClasses

MASK = np.array([[0, 1, 2, 3], [255, 3, 2, 0]], np.uint8)


@pytest.fixture
def dataset(tmp_path: Path) -> MaskFolder:
    image.write(tmp_path / "images" / "a.png", np.zeros((2, 4, 3), np.uint8))
    masks.write_classes(tmp_path / "masks" / "a.png", MASK, np.zeros((256, 3), np.uint8))
    return MaskFolder(tmp_path, ("ground", "car", "tree", "sky"))


def test_pixels_of_other_classes_are_ignored(dataset: MaskFolder) -> None:
    some = SelectedClasses(dataset, ("sky", "car"))
    assert some.class_names == ("sky", "car") and len(some) == 1
    expected = [[255, 1, 255, 0], [255, 0, 255, 255]]
    assert some.read_mask(0).tolist() == expected
    mask = some[0].mask
    assert mask is not None and mask.tolist() == expected
    assert np.array_equal(some.palette, dataset.palette[[3, 1]])
    assert some.count_pixels().tolist() == [2, 1]


def test_pixels_of_other_classes_are_background(dataset: MaskFolder) -> None:
    some = SelectedClasses(dataset, ("ground", "car"), others="ground")
    assert some.read_mask(0).tolist() == [[0, 1, 0, 0], [255, 0, 0, 0]]


def test_an_ignore_index_beyond_a_byte_stays_what_it_is(dataset: MaskFolder) -> None:
    some = SelectedClasses(dataset, ("sky", "car"), ignore_index=65535)
    assert some.read_mask(0).tolist() == [[65535, 1, 65535, 0], [65535, 0, 65535, 65535]]
    assert some.count_pixels().tolist() == [2, 1]


def test_names_that_do_not_fit(dataset: MaskFolder) -> None:
    with pytest.raises(InputError, match=r"no such class(?s:.)*did you mean 'car'"):
        _ = SelectedClasses(dataset, ("ground", "cars")).class_names
    with pytest.raises(ConfigError, match="two or more"):
        SelectedClasses(dataset, ("car",))
    with pytest.raises(ConfigError, match="or ignored"):
        SelectedClasses(dataset, ("car", "sky"), others="tree")
    with pytest.raises(ConfigError, match="number of a class"):
        SelectedClasses(dataset, ("car", "sky"), ignore_index=1)
