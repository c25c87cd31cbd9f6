from __future__ import annotations

from pathlib import Path
from typing import Literal
from unicodedata import normalize

import numpy as np
import pytest

from framework.core.errors import InputError
from framework.vision import image
from framework.vision.annotations.image_index import ImageIndex
from framework.vision.dataset_files import (
    abbreviate,
    find_missing,
    image_path,
    listed_path,
    read_image,
    read_lines,
    split_columns,
    usable_region,
)

Form = Literal["NFC", "NFD"]


def test_images(tmp_path: Path) -> None:
    pixels = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    image.write(tmp_path / "a.png", pixels)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png", tmp_path / "a.png"), pixels)
    np.testing.assert_array_equal(read_image((tmp_path / "a.png").read_bytes(), tmp_path), pixels)
    np.save(tmp_path / "a.npy", np.zeros((5, 4, 3)))
    assert read_image(tmp_path / "a.npy", tmp_path / "a.npy", 3).shape == (5, 4, 3)
    with pytest.raises(
        InputError, match=r"another number of channels[\s\S]*allowed: 5 channels[\s\S]*come last"
    ):
        read_image(tmp_path / "a.npy", tmp_path / "a.npy", 5)
    with pytest.raises(InputError, match=r"cannot be read[\s\S]*repair the file, or delete it"):
        read_image(b"", tmp_path / "b.png", otherwise="delete it")


def test_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa b\r\n\nc")
    assert read_lines(tmp_path / "a.txt", "list") == ["a b", "", "c"]
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="the list is not UTF-8"):
        read_lines(tmp_path / "a.txt", "list")
    with pytest.raises(InputError):
        read_lines(tmp_path / "none.txt", "list")


def test_missing_files(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    (tmp_path / "sub").mkdir()
    paths = [tmp_path / "a.png", tmp_path / "b.png", str(tmp_path / "none" / "a.png")]
    assert find_missing(paths) == [1, 2]
    assert find_missing([]) == []


def test_long_lists() -> None:
    assert abbreviate(list("abcde")) == "a, b, c, d, e"
    assert abbreviate(list("abcdefg"), "; ") == "a; b; c; d; e; and 2 more"


def test_a_polygon_without_its_list() -> None:
    flat = [5, 5, 25, 5, 25, 25.5]
    assert usable_region(flat) == ([flat], None)
    assert usable_region([5, 5, 25, 5])[0] is None and usable_region([5, 5, 25, 5, 25, "a"])[0] is None


def test_names_of_images_of_other_machines(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for name in ("a.png", "sub/b c.png"):
        (tmp_path / name).touch()
    for name in (
        "a.png",
        "images/a.png",  # of a folder that is this one
        "..\\label\\a.png",
        "../../data/media/upload/1/a.png",  # Label Studio's own place
        "/home/me/a.png",
        "https://host/x/a.png?sig=1",
    ):
        assert image_path(tmp_path, name) == tmp_path / "a.png", name
    assert image_path(tmp_path, "https://host/sub/b%20c.png") != tmp_path / "sub/b c.png"
    assert image_path(tmp_path / "sub", "https://host/sub/b%20c.png") == tmp_path / "sub/b c.png"
    for name in ("none.png", "images/none.png", "sub/a.png"):  # a folder that is there is meant
        assert image_path(tmp_path, name) == tmp_path / name


def test_names_of_a_list(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/b (2).png").touch()
    for name in ("sub/b (2).png", "sub\\b (2).png", "/sub/b (2).png"):
        assert listed_path(tmp_path, name) == tmp_path / "sub/b (2).png"
    assert (
        listed_path(tmp_path, "x\\b (2).png") == tmp_path / "x\\b (2).png"
    )  # another folder's file is not taken
    line = "sub\\b (2).png sub\\b (2).png"
    assert split_columns(line, tmp_path) == ("sub\\b (2).png", "sub\\b (2).png")


@pytest.mark.parametrize("written, there", [("NFC", "NFD"), ("NFD", "NFC"), ("NFC", "NFC")])
def test_names_in_another_form_of_unicode(tmp_path: Path, written: Form, there: Form) -> None:
    """macOS and its archives keep a letter and its accent apart; lists and annotations are written by others."""
    name = f"{normalize(written, 'Über')}/{normalize(written, 'é')}.png"
    image.write(path := tmp_path / normalize(there, name), np.zeros((2, 2, 3), np.uint8))
    assert image_path(tmp_path, name) == listed_path(tmp_path, name) == path
    assert image_path(tmp_path, f"C:\\{name}".replace("/", "\\")) != path
    last = name.rpartition("/")[2]
    assert image_path(path.parent, f"C:\\set\\{last}") == path
    assert ImageIndex(tmp_path).look_up(last) == ImageIndex(tmp_path).look_up(name) == path
    assert not image_path(tmp_path, "ö.png").exists()
