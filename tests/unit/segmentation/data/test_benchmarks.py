"""Cityscapes, ADE20K, Pascal VOC and CamVid, on folders of a few pixels; the real ones where they are there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import InputError
from segmentation.data.ade20k import ADE20K
from segmentation.data.camvid import CamVid
from segmentation.data.cityscapes import Cityscapes
from segmentation.data.custom import MaskFolder
from segmentation.data.pascal_voc import PascalVOC


def save(path: Path, values: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(path)


def mask(dataset: Any, index: int = 0) -> list[list[int]]:
    return dataset[index].mask.tolist()


def test_cityscapes_in_folders(tmp_path: Path) -> None:
    for city in ("ulm", "aachen"):
        save(tmp_path / f"leftImg8bit/train/{city}/{city}_0_leftImg8bit.png", np.zeros((1, 5, 3)))
    save(tmp_path / "gtFine/train/aachen/aachen_0_gtFine_labelIds.png", [[0, 7, 33, 10, 24]])
    save(tmp_path / "gtFine/train/ulm/ulm_0_gtFine_labelIds.png", [[0, 7, 33, 10, 24]])
    save(tmp_path / "gtFine/train/ulm/ulm_0_gtFine_labelTrainIds.png", [[0, 18, 255, 1, 2]])
    data = Cityscapes(tmp_path)
    assert len(data) == 2 and "aachen" in str(data[0].id)
    assert mask(data) == [[255, 0, 18, 255, 11]]
    assert mask(data, 1) == [[0, 18, 255, 1, 2]]
    assert len(data.class_names) == len(data.palette) == 19 and data.class_names[11] == "person"
    with pytest.raises(InputError, match="there are no images"):
        len(Cityscapes(tmp_path, "val"))
    save(tmp_path / "gtFine/train/aachen/aachen_0_gtFine_labelIds.png", [[0, 7, 33, 10, 34]])
    with pytest.raises(InputError, match="34: 1 pixels"):
        _ = data[0]
    (tmp_path / "gtFine/train/aachen/aachen_0_gtFine_labelIds.png").unlink()
    with pytest.raises(InputError, match="are not there"):
        len(Cityscapes(tmp_path))


def test_cityscapes_without_cities(tmp_path: Path) -> None:
    save(tmp_path / "leftImg8bit/val/a_leftImg8bit.png", np.zeros((1, 3, 3)))
    save(tmp_path / "gtFine/val/a_gtFine_labelIds.png", [[0, 7, 33]])
    assert mask(Cityscapes(tmp_path, "val")) == [[255, 0, 18]]
    (tmp_path / "label_colors.txt").write_text("0 0 0 background\n255 0 0 cat\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"classes of their own(?s:.*)MaskFolder, images: leftImg8bit/val"):
        len(Cityscapes(tmp_path, "val"))


@pytest.mark.parametrize("separator", [",", " "])
def test_cityscapes_by_list(tmp_path: Path, separator: str) -> None:
    save(tmp_path / "a.png", np.zeros((1, 2, 3)))
    save(tmp_path / "a_labelTrainIds.png", [[18, 255]])
    (tmp_path / "train.list").write_text(f"a.png{separator}a_labelTrainIds.png\n", encoding="utf-8")
    assert mask(Cityscapes(tmp_path, list_file=tmp_path / "train.list")) == [[18, 255]]


def test_ade20k(tmp_path: Path) -> None:
    save(tmp_path / "images/validation/b.jpg", np.zeros((1, 3, 3)))
    save(tmp_path / "annotations/validation/b.png", [[0, 1, 150]])
    data = ADE20K(tmp_path, "validation")
    assert mask(data) == [[255, 0, 149]]
    assert len(set(data.class_names)) == len(data.palette) == 150
    assert (data.class_names[0], data.class_names[-1]) == ("wall", "flag")
    with pytest.raises(InputError, match="there are no images"):
        len(ADE20K(tmp_path))


def test_pascal_voc(tmp_path: Path) -> None:
    for name in "abc":
        save(tmp_path / f"JPEGImages/{name}.jpg", np.zeros((1, 3, 3)))
    indexed = Image.new("P", (3, 1))
    indexed.putdata([0, 20, 255])
    indexed.putpalette(list(range(256)) * 3)
    (tmp_path / "SegmentationClass").mkdir()
    indexed.save(tmp_path / "SegmentationClass/a.png")
    save(tmp_path / "SegmentationClassAug/b.png", [[1, 2, 3]])
    save(tmp_path / "SegmentationClassAug/c.png", [[4, 5, 6]])
    lists = tmp_path / "ImageSets/Segmentation"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("a\n", encoding="utf-8")
    (lists / "aug.txt").write_text("b\n", encoding="utf-8")
    (lists / "two.txt").write_text("/JPEGImages/c.jpg /SegmentationClassAug/c.png\n", encoding="utf-8")
    data = PascalVOC(tmp_path, "train+aug")
    assert len(data) == 2 and mask(data) == [[0, 20, 255]] and mask(data, 1) == [[1, 2, 3]]
    assert mask(PascalVOC(tmp_path, "two")) == [[4, 5, 6]]
    assert len(data.class_names) == len(data.palette) == 21 and data.class_names[15] == "person"
    (lists / "val.txt").write_text("d\n", encoding="utf-8")
    with pytest.raises(InputError, match="2 of 2 files of the data set are not there"):
        len(PascalVOC(tmp_path, "val"))


def test_camvid(tmp_path: Path) -> None:
    save(tmp_path / "train/a.png", np.zeros((1, 4, 3)))
    save(tmp_path / "trainannot/a.png", [[0, 10, 11, 5]])
    # Sky, a child, void, a lane's marking.
    save(tmp_path / "L/a.png", [[[128, 128, 128], [192, 128, 64], [0, 0, 0], [128, 0, 192]]])
    for name, line in (
        ("train", "train/a.png trainannot/a.png"),
        ("test", "/SegNet/CamVid/train/a.png /SegNet/CamVid/trainannot/a.png"),
        ("colours", "train/a.png L/a.png"),
    ):
        (tmp_path / f"{name}.txt").write_text(line + "\n", encoding="utf-8")
    data = CamVid(tmp_path)
    assert mask(data) == mask(CamVid(tmp_path, "test")) == [[0, 10, 255, 5]]
    assert mask(CamVid(tmp_path, "colours")) == [[0, 9, 255, 3]]
    assert len(data.class_names) == len(data.palette) == 11
    save(tmp_path / "trainannot/a.png", [[0, 12, 11, 5]])
    with pytest.raises(InputError, match="12: 1 pixels"):
        _ = data[0]


def real(name: str) -> Path:
    shared = Path(os.environ.get("OAR_SHARED", Path(__file__).parents[5] / "shared"))
    if not (shared / "data" / name).is_dir():
        pytest.skip(f"{name} is not in {shared / 'data'}")
    return shared / "data" / name


def test_real_camvid() -> None:
    data = CamVid(real("camvid"), "test")
    assert len(data) == 20
    sample = data[0]
    assert sample.image.shape == (360, 480, 3) and sample.mask is not None
    assert set(np.unique(sample.mask)) <= {*range(11), 255}


def test_real_membrane() -> None:
    options: dict[str, Any] = {"images": "train/image", "masks": "train/label"}
    data = MaskFolder(real("membrane"), ("membrane", "cell"), label_map={"255": 1}, **options)
    sample = data[0]
    assert len(data) == 16 and sample.image.shape == (512, 512, 3) and sample.mask is not None
    assert set(np.unique(sample.mask)) == {0, 1}
    with pytest.raises(InputError, match="255 is ignored"):
        len(MaskFolder(real("membrane"), 2, **options))


def test_real_ade20k() -> None:
    data = ADE20K(real("ade20k_samples"), "")
    mask = data[0].mask
    assert mask is not None
    found = {data.class_names[index] for index in np.unique(mask) if index != 255}
    assert len(data) == 3 and {"building", "tree", "sky"} <= found
