"""Pages in four directions: data sets, and the parts of pages that a classifier learns from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from framework.core.errors import ConfigError, InputError
from framework.vision import image
from framework.vision.sample import Sample
from ocr.data.directions import PageDirections, PageFolder, TurnedPages
from ocr.data.transforms.patches import PagePatch, RandomPagePatch
from ocr.text.preprocess import choose_patches, resize_short_hw

PAGE = np.arange(4 * 6 * 3, dtype=np.uint8).reshape(4, 6, 3)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    image.write(tmp_path / "a.png", PAGE)
    (tmp_path / "below").mkdir()
    image.write(tmp_path / "below" / "b.png", np.zeros((3, 3, 3), np.uint8))
    return tmp_path


def test_a_folder_of_pages(folder: Path) -> None:
    pages = PageFolder(folder)
    assert len(pages) == 2 and pages.class_names == () and pages[0].labels is None
    np.testing.assert_array_equal(pages[0].image, PAGE)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder holds no image"):
        len(PageFolder(tmp_path))


def test_turned_pages_are_turned_clockwise(folder: Path) -> None:
    turned = TurnedPages(PageFolder(folder))
    assert len(turned) == 8 and turned.class_names == ("0", "90", "180", "270")
    for turns in range(4):
        sample = turned[turns]
        assert int(sample.labels) == turns
        np.testing.assert_array_equal(sample.image, np.rot90(PAGE, -turns))
    assert turned[1].image.shape == (6, 4, 3) and str(turned[1].id).endswith("turned by 90")
    assert [int(label[0]) for label in turned.read_labels()] == [0, 1, 2, 3] * 2
    assert int(turned[-1].labels) == 3
    with pytest.raises(IndexError, match="index 8 of 8 turned pages"):
        turned[8]


def test_listed_directions(folder: Path) -> None:
    (folder / "a.txt").write_text("a.png\t270\na.png\t0\n", encoding="utf-8")
    listed = PageDirections(folder, (Path("a.txt"),))
    assert [int(listed[i].labels) for i in range(2)] == [3, 0]
    assert [int(label[0]) for label in listed.read_labels()] == [3, 0]
    (folder / "b.txt").write_text("a.png\t45\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"(?s)b\.txt:1: this is no direction.*'45'.*0 or 90 or 180 or 270"):
        PageDirections(folder, (Path("b.txt"),)).read_labels()


def test_parts_with_edges_are_chosen() -> None:
    page = np.full((100, 90, 3), 255, np.uint8)
    page[60:90:2, 50:80] = 0  # lines in the lower right
    (place,) = choose_patches(page, (40, 40), 1)
    assert place == (60, 50)  # of tops 0, 30, 60 and lefts 0, 25, 50
    assert len(choose_patches(page, (40, 40), 99)) == 9
    assert choose_patches(page, (100, 90), 4) == [(0, 0)]


@pytest.mark.parametrize(
    ("size_hw", "wanted"),
    [((200, 400), (64, 128)), ((400, 200), (128, 64)), ((64, 64), (64, 64)), ((10, 4000), (64, 25600))],
)
def test_the_shorter_side_decides(size_hw: tuple[int, int], wanted: tuple[int, int]) -> None:
    assert resize_short_hw(size_hw, 64, (32, 32)) == wanted


def test_an_image_is_never_smaller_than_what_is_seen() -> None:
    assert resize_short_hw((100, 50), 20, (32, 48)) == (96, 48)


def test_the_part_for_evaluation_is_the_one_with_the_most_edges() -> None:
    page = np.full((80, 80, 3), 255, np.uint8)
    page[40:80:2, :40] = 0
    sample = PagePatch((40, 40), 80)(Sample(page), np.random.default_rng(0))
    np.testing.assert_array_equal(sample.image, page[40:, :40])


def test_random_parts_are_of_the_size_and_depend_on_the_generator_alone() -> None:
    page = np.random.default_rng(1).integers(0, 256, (90, 130, 3)).astype(np.uint8)
    for make in (RandomPagePatch((32, 48)), RandomPagePatch((200, 200), (0.2, 0.3))):
        sample = Sample(page, labels=np.array(2, np.int32))
        one, other = (make(sample, np.random.default_rng(5)) for _ in range(2))
        assert one.size_hw == make.size_hw and int(one.labels) == 2
        np.testing.assert_array_equal(one.image, other.image)
    assert not np.array_equal(one.image, make(sample, np.random.default_rng(6)).image)


def test_of_several_parts_that_with_edges_is_taken() -> None:
    page = np.full((64, 640, 3), 255, np.uint8)
    page[::2, 600:] = 0
    plain = {name: 0.0 for name in ("p_coarse", "p_blur", "p_noise", "p_jpeg", "p_invert", "p_grey")}
    found = {tries: 0 for tries in (1, 40)}
    for tries in found:
        make = RandomPagePatch((64, 64), (1.0, 1.0), tries, **plain)
        for seed in range(10):
            found[tries] += int((make(Sample(page), np.random.default_rng(seed)).image < 255).any())
    assert found[40] == 10 > found[1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"size_hw": (0, 5)}, "no such size"),
        ({"scale": (0.0, 1.0)}, "two ascending numbers"),
        ({"tries": 0}, "out of range"),
        ({"p_jpeg": 1.5}, "out of range"),
    ],
)
def test_settings_out_of_range(given: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        RandomPagePatch(**given)
    with pytest.raises(ConfigError, match="out of range"):
        PagePatch(short_side=0)
