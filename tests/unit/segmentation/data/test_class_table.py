"""Tables of classes beside masks, and the data sets of CVAT, Datumaro, Roboflow and others that have one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework.config.bind import bind
from framework.core.errors import FormatError, InputError
from framework.engine.experiment import LoaderConfig
from segmentation.data.camvid import CamVid
from segmentation.data.class_table import read_class_table
from segmentation.data.custom import MaskFolder, MaskListFile
from segmentation.data.pascal_voc import PascalVOC

RED, GREEN, BLACK = (128, 0, 0), (0, 128, 0), (0, 0, 0)


def save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(path)


def table(folder: Path, text: str, name: str = "table.txt") -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("text", "names", "colors"),
    [
        (  # CVAT's
            "# label:color_rgb:parts:actions\nbackground:0,0,0::\ncat:250,50,83::\ntraffic light:9,8,7:head,foot:\n",
            ("background", "cat", "traffic light"),
            (BLACK, (250, 50, 83), (9, 8, 7)),
        ),
        ("# label:color_rgb:parts:actions\nbackground:::\ncat:::\n", ("background", "cat"), (BLACK, RED)),
        ("cat:::\ndog:::\n", ("background", "cat", "dog"), (BLACK, RED, GREEN)),
        ("64 128 64\tAnimal\n0 0 0 Void\n", ("Animal", "Void"), ((64, 128, 64), BLACK)),  # CamVid's
        (" RBC\n White cell\n", ("background", "RBC", "White cell"), (BLACK, RED, GREEN)),  # Datumaro's
        ("road 1 2 3\nsky 4 5 6\n", ("road", "sky"), ((1, 2, 3), (4, 5, 6))),
        ("__ignore__\n_background_\ncat\n", ("_background_", "cat"), (BLACK, RED)),  # labelme's
        (
            "name,r,g,b\nurban land,0,255,255\nwater,0,0,255\n",
            ("urban land", "water"),
            ((0, 255, 255), (0, 0, 255)),
        ),
    ],
)
def test_names_and_colours(tmp_path: Path, text: str, names: tuple[str, ...], colors: Any) -> None:
    read = read_class_table(table(tmp_path, "\ufeff" + text))
    assert (read.names, read.colors, read.values) == (names, colors, None)


def test_numbers_of_classes(tmp_path: Path) -> None:
    read = read_class_table(table(tmp_path, "Pixel Value, Class\n0, background\n1, cat\n"))
    assert read.names == ("background", "cat") and read.values is None
    read = read_class_table(table(tmp_path, "id,name\n7,road\n0,void\n"))
    assert read.names == ("road", "void") and read.values == {7: 0, 0: 1}
    read = read_class_table(table(tmp_path, "cat:\x1c1,2,3::\ndog:1,2,4::\n"))
    assert read.colors == ((1, 2, 3), (1, 2, 4))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no name of its own"),
        ("cat:1,2,3::\n", "two or more"),
        ("cat:1,2,3::\ncat:3,2,1::\n", "no name of its own"),
        ("cat:1,2,3::\ndog:::\n", "some have none"),
        ("cat:1,2,3::\ndog:1,2,3::\n", "same colour"),
        ("cat:1,2::\n", "no colour"),
        ("cat:1,2,²::\n", "no colour"),
        ("cat:1,2,300::\n", "no colour"),
        ("name,r,g,b\ncat,1,2\n", "too few columns"),
        ("value,name\nx,cat\n", "no number"),
        ("value,name\n1,cat\n1,dog\n", "same value"),
    ],
)
def test_what_is_no_table(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        read_class_table(table(tmp_path, text))


def voc(folder: Path, suffix: str = ".jpg") -> None:
    save(folder / f"JPEGImages/a{suffix}", np.zeros((1, 3, 3)))
    save(folder / "SegmentationClass/a.png", [[RED, BLACK, GREEN]])
    (folder / "ImageSets/Segmentation").mkdir(parents=True)
    (folder / "ImageSets/Segmentation/default.txt").write_text("a\n", encoding="utf-8")


@pytest.mark.parametrize("suffix", [".jpg", ".png"])
def test_own_classes_in_the_format_of_voc(tmp_path: Path, suffix: str) -> None:
    voc(tmp_path, suffix)
    table(tmp_path, "background:0,0,0::\ndog:0,128,0::\ncat:128,0,0::\n", "labelmap.txt")
    data = PascalVOC(tmp_path, "default")
    assert data.class_names == ("background", "dog", "cat") and data.palette.tolist()[1] == list(GREEN)
    mask = data[0].mask
    assert mask is not None and mask.tolist() == [[2, 0, 1]]
    (tmp_path / "labelmap.txt").unlink()
    assert len(PascalVOC(tmp_path, "default").class_names) == 21


def test_own_classes_in_the_format_of_camvid(tmp_path: Path) -> None:
    for name in ("a", "a b"):
        save(tmp_path / f"default/{name}.png", np.zeros((1, 3, 3)))
        save(tmp_path / f"defaultannot/{name}.png", [[RED, BLACK, GREEN]])
    (tmp_path / "default.txt").write_text("/default/a.png defaultannot/a.png\n", encoding="utf-8")
    (tmp_path / "blanks.txt").write_text("/default/a b.png defaultannot/a b.png\n", encoding="utf-8")
    table(tmp_path, " cat\n dog\n", "label_colors.txt")
    data = CamVid(tmp_path, "default")
    assert data.class_names == ("background", "cat", "dog") and len(data.palette) == 3
    mask = data[0].mask
    assert mask is not None and mask.tolist() == [[1, 0, 2]]
    listed = MaskListFile(tmp_path, "label_colors.txt", list_file=tmp_path / "blanks.txt")
    mask = listed[0].mask
    assert mask is not None and mask.tolist() == [[1, 0, 2]]
    table(tmp_path, "0 0 0\tVoid\n128 0 0\tBuilding\n", "label_colors.txt")  # CamVid's own
    assert len(CamVid(tmp_path, "default").class_names) == 11


def test_a_table_in_the_place_of_names(tmp_path: Path) -> None:
    save(tmp_path / "train/a.jpg", np.zeros((1, 3, 3)))
    save(tmp_path / "train/a_mask.png", [[0, 4, 255]])
    (tmp_path / "train/_classes.csv").write_text(
        "Pixel Value, Class\n0, background\n4, cat\n", encoding="utf-8"
    )
    config = {"type": "MaskFolder", "root": str(tmp_path / "train"), "images": ".", "masks": "."}
    config |= {"mask_suffix": "_mask", "classes": "_classes.csv"}
    data = bind({"dataset": config}, LoaderConfig, ("segmentation",)).dataset
    assert isinstance(data, MaskFolder) and data.class_names == ("background", "cat")
    mask = data[0].mask
    assert mask is not None and mask.tolist() == [[0, 1, 255]]
    (tmp_path / "train/_classes.csv").rename(tmp_path / "_classes.csv")  # of all parts
    assert (
        MaskFolder(tmp_path / "train", "_classes.csv", masks=".", images=".").class_names == data.class_names
    )
    with pytest.raises(InputError, match=r"other\.csv"):
        _ = MaskFolder(tmp_path / "train", "other.csv").class_names


def test_two_classes_stored_as_0_and_255_are_told_with_a_table_too(tmp_path: Path) -> None:
    save(tmp_path / "images/a.png", np.zeros((1, 2, 3)))
    save(tmp_path / "masks/a.png", [[0, 255]])
    table(tmp_path, "background\ncat\n", "labels.txt")
    with pytest.raises(InputError, match="0 and 255 alone"):
        len(MaskFolder(tmp_path, "labels.txt"))
    save(tmp_path / "masks/a.png", [[[0, 0, 0], [255, 255, 255]]])
    table(tmp_path, "background:0,0,0::\ncat:255,255,255::\n", "labels.txt")
    mask = MaskFolder(tmp_path, "labels.txt")[0].mask
    assert mask is not None and mask.tolist() == [[0, 1]]
