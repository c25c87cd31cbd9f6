from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework.config.bind import bind
from framework.core.errors import ConfigError, InputError
from framework.engine.experiment import LoaderConfig
from segmentation.data.custom import MaskFolder, MaskListFile


def save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, values) if path.suffix == ".npy" else Image.fromarray(np.asarray(values, np.uint8)).save(
        path
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, value in (("a", 1), ("b", 2), ("sub/c", 255)):
        save(tmp_path / "images" / f"{name}.png", np.full((4, 6, 3), 50))
        save(tmp_path / "masks" / f"{name}.png", [[0] * 5 + [value]] * 4)
    return tmp_path


def test_a_folder(root: Path) -> None:
    data = MaskFolder(root, ("sky", "road", "car"))
    assert len(data) == 3 and data.class_names == ("sky", "road", "car") and data.ignore_index == 255
    assert data.palette.shape == (3, 3)
    sample = data[2]
    assert sample.image.shape == (4, 6, 3) and sample.mask is not None and sample.mask.dtype == np.uint8
    assert sample.mask[0].tolist() == [0] * 5 + [255]
    assert sample.id == str(root / "images" / "sub" / "c.png") and sample.source_size == (4, 6)
    assert len(pickle.loads(pickle.dumps(data))) == 3


def test_folders_behind_links(root: Path) -> None:
    for kind in ("images", "masks"):
        (root / f"more/{kind}").parent.mkdir(exist_ok=True)
        (root / kind / "sub").rename(root / f"more/{kind}")
        (root / kind / "sub").symlink_to(root / f"more/{kind}", target_is_directory=True)
    assert MaskFolder(root, 3)[2].id == str(root / "images" / "sub" / "c.png")


def test_pixels_are_counted_from_the_masks_alone(root: Path) -> None:
    data = MaskFolder(root, ("sky", "road", "car"))
    (root / "images" / "a.png").write_bytes(b"no image")  # is not read
    assert data.count_pixels().tolist() == [3 * 20, 4, 4]  # the 4 of value 255 have no class
    save(root / "masks" / "b.png", [[0] * 5 + [7]] * 4)
    with pytest.raises(InputError, match=r"b\.png[\s\S]*7: 4 pixels"):
        MaskFolder(root, ("sky", "road", "car")).count_pixels()


def test_masks_with_an_ending_of_their_own(tmp_path: Path) -> None:
    save(tmp_path / "a.jpg", np.zeros((2, 2, 3)))
    save(tmp_path / "labels" / "a_mask.png", [[0, 1], [1, 1]])
    save(tmp_path / "labels" / "b_mask.png", [[0, 1], [1, 1]])
    save(tmp_path / "images" / "a.jpg", np.zeros((2, 2, 3)))
    data = MaskFolder(tmp_path, 2, images="images", masks="labels", mask_suffix="_mask")
    assert len(data) == 1 and data.class_names == ("0", "1")
    with pytest.raises(InputError, match="1 of 1 images have no mask") as caught:
        len(MaskFolder(tmp_path, 2, images="images", masks="labels"))
    assert "a.jpg" in str(caught.value) and "mask_suffix" in str(caught.value)


def test_masks_beside_their_images_and_images_with_an_ending(tmp_path: Path) -> None:
    for name in ("a", "b"):  # Roboflow's folder
        save(tmp_path / "flat" / f"{name}.jpg", np.zeros((2, 2, 3)))
        save(tmp_path / "flat" / f"{name}_mask.png", [[0, 1], [1, 1]])
    data = MaskFolder(tmp_path / "flat", 2, images="", masks="", mask_suffix="_mask")
    assert [pair.image.name for pair in data.pairs] == ["a.jpg", "b.jpg"]
    assert [pair.mask.name for pair in data.pairs] == ["a_mask.png", "b_mask.png"]
    save(tmp_path / "leftImg8bit" / "x_leftImg8bit.png", np.zeros((2, 2, 3)))  # Cityscapes'
    for ending in ("labelIds", "color"):
        save(tmp_path / "gtFine" / f"x_gtFine_{ending}.png", [[0, 1], [1, 1]])
    endings = {"image_suffix": "_leftImg8bit", "mask_suffix": "_gtFine_labelIds"}
    data = MaskFolder(tmp_path, 2, images="leftImg8bit", masks="gtFine", **endings)
    assert [pair.mask.name for pair in data.pairs] == ["x_gtFine_labelIds.png"]


def test_a_list(root: Path) -> None:
    file = root / "train.txt"
    file.write_text("\ufeffimages/a.png masks/a.png\n\nimages/b.png\tmasks/b.png\r\n", encoding="utf-8")
    data = MaskListFile(root, 3, file)
    assert [data[index].id for index in range(len(data))] == [
        str(root / f"images/{name}.png") for name in "ab"
    ]
    save(root / "my masks/1, (2).png", [[0] * 6] * 4)
    for separator in (None, ","):  # pandas quotes what holds the separator
        text = f'"images/a.png"{separator or " "}"my masks/1, (2).png"'
        (root / "quoted.txt").write_text(text, encoding="utf-8")
        pair = MaskListFile(root, 3, root / "quoted.txt", separator).pairs[0]
        assert pair == (root / "images/a.png", root / "my masks/1, (2).png")
    (root / "my train.csv").write_text("images/a.png, masks/a.png", encoding="utf-8")
    assert len(MaskListFile(root, 3, root / "my train.csv", separator=",")) == 1


def test_lists_that_cannot_be_used(root: Path) -> None:
    file = root / "train.txt"
    for text, message, detail in (
        ("\n \n", "the list is empty", "a line a sample"),
        (
            "images/a.png\nimages/a.png masks/a.png",
            "1 lines of the list are no image and mask",
            "images/a.png",
        ),
        ("images/x.png masks/a.png", "1 of 2 files of the data set are not there", "x.png"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message) as caught:
            len(MaskListFile(root, 3, file))
        assert detail in str(caught.value)
    file.write_bytes(b"\xff\xfe\xff images")
    with pytest.raises(InputError, match="the list is not UTF-8"):
        len(MaskListFile(root, 3, file))
    with pytest.raises(InputError, match="no such list file"):
        len(MaskListFile(root, 3, root / "none.txt"))


def test_images_and_masks_that_cannot_be_used(root: Path) -> None:
    data = MaskFolder(root, 3)
    assert len(data) == 3
    save(root / "masks" / "a.png", [[0, 1]])
    with pytest.raises(InputError, match="another size than its image") as caught:
        _ = data[0]
    assert "1 high and 2 wide" in str(caught.value) and "4 high and 6 wide" in str(caught.value)
    assert str(root / "masks" / "a.png") in str(caught.value) and str(root / "images" / "a.png") in str(
        caught.value
    )
    (root / "images" / "b.png").write_bytes(b"GIF89a")
    with pytest.raises(InputError, match="an image of the data set cannot be read") as caught:
        _ = data[1]
    assert "b.png" in str(caught.value)
    (root / "masks" / "sub" / "c.png").write_bytes(b"")
    with pytest.raises(InputError, match="the mask is empty") as caught:
        _ = data[2]
    assert "c.png" in str(caught.value)


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there are no images"):
        len(MaskFolder(tmp_path, 2))


def test_255_as_the_second_class(tmp_path: Path) -> None:
    for name in "abc":
        save(tmp_path / "images" / f"{name}.png", np.zeros((2, 2, 3)))
        save(tmp_path / "masks" / f"{name}.png", [[0, 255], [0, 0]])
    with pytest.raises(InputError, match="255 is ignored") as caught:
        len(MaskFolder(tmp_path, 2))
    assert "label_map: {255: 1}" in str(caught.value) and "mIoU 0.5" in str(caught.value)
    for label_map in ({"255": 1}, {255: 1}):
        mask = MaskFolder(tmp_path, 2, label_map=label_map)[0].mask  # pyright: ignore[reportArgumentType]
        assert mask is not None and mask.tolist() == [[0, 1], [0, 0]]
    mask = MaskFolder(tmp_path, 2, label_map={"255": 255})[0].mask
    assert mask is not None and mask.tolist() == [[0, 255], [0, 0]]
    assert len(MaskFolder(tmp_path, 3)) == 3
    save(tmp_path / "masks" / "b.png", [[0, 255], [0, 1]])
    assert len(MaskFolder(tmp_path, 2)) == 3


def test_colours_are_the_palette(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.png", np.zeros((1, 2, 3)))
    save(tmp_path / "masks" / "a.png", [[[9, 0, 0], [0, 9, 0]]])
    data = MaskFolder(tmp_path, 2, colors=((0, 9, 0), (9, 0, 0)))
    assert data.palette.tolist() == [[0, 9, 0], [9, 0, 0]]
    mask = data[0].mask
    assert mask is not None and mask.tolist() == [[1, 0]]


def test_images_of_many_channels(tmp_path: Path) -> None:
    save(tmp_path / "images" / "a.npy", np.full((2, 3, 6), 60000, np.uint16))
    save(tmp_path / "masks" / "a.png", [[0, 1, 1]] * 2)
    image = MaskFolder(tmp_path, 2, channels=6)[0].image
    assert image.dtype == np.uint16 and image.shape == (2, 3, 6) and image[0, 0, 0] == 60000
    with pytest.raises(InputError, match="another number of channels") as caught:
        _ = MaskFolder(tmp_path, 2, channels=4)[0]
    assert "[2, 3, 6]" in str(caught.value)
    with pytest.raises(InputError, match=r"transpose\(1, 2, 0\)"):
        _ = MaskFolder(tmp_path, 2, channels=2)[0]


def test_settings_that_do_not_fit(tmp_path: Path) -> None:
    for options, message in (
        ({"classes": 1}, "cannot be told from any other"),
        ({"colors": ((0, 0, 0),)}, "1 colours"),
        ({"channels": 0}, "an image has channels"),
        ({"label_map": {"x": 1}}, "masks have no such values"),
        ({"label_map": {"9": 5}}, "classes that are not there"),
    ):
        with pytest.raises(ConfigError, match=message):
            MaskFolder(tmp_path, **({"classes": 2} | options))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="the separator is empty"):
        MaskListFile(tmp_path, 2, tmp_path / "a.txt", separator="")


def test_settings_in_a_file(root: Path) -> None:
    packages = ("segmentation", "zoo", "framework")
    settings = {"type": "MaskFolder", "root": str(root), "classes": ["a", "b", "c"], "label_map": {7: 1}}
    data = bind({"dataset": settings}, LoaderConfig, packages).dataset
    assert isinstance(data, MaskFolder) and data.label_map == {"7": 1} and len(data) == 3
    settings = {
        "type": "MaskListFile",
        "root": str(root),
        "classes": 3,
        "list_file": "x",
        "colors": [[0, 0, 0]] * 3,
    }
    with pytest.raises(ConfigError, match="a different colour for each class"):
        bind({"dataset": settings}, LoaderConfig, packages)
