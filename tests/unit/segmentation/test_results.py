"""Results by hand: counts, drawings, files."""

import json

import numpy as np
import pytest
from PIL import Image

from framework.core.errors import ConfigError, ShapeError
from framework.vision import image as vision_image
from framework.vision import masks
from segmentation import palettes
from segmentation.background import Background, background_class, read_background
from segmentation.results import Segmentation

GREY = np.full((2, 3, 3), 100, np.uint8)


def result(labels, names=("background", "cat"), **more):
    labels = np.array(labels, np.uint8)
    image = GREY if labels.shape == (2, 3) else np.full((*labels.shape, 3), 100, np.uint8)
    colours = np.array([[0, 0, 0], [200, 0, 0], [0, 200, 0]], np.uint8)
    height, width = labels.shape
    return Segmentation(
        labels, names, colours, source="a/b.jpg", width=width, height=height, image=image, **more
    )


def test_classes_are_counted():
    data = result([[0, 1, 1], [0, 0, 0]]).to_dict()
    assert data == {
        "source": "a/b.jpg",
        "width": 3,
        "height": 2,
        "classes": {
            "background": {"pixels": 4, "share": 0.6667, "color": [0, 0, 0]},
            "cat": {"pixels": 2, "share": 0.3333, "color": [200, 0, 0]},
        },
    }
    assert list(data["classes"]) == ["background", "cat"]


def test_a_class_without_a_name_has_its_number():
    assert result([[2]], names=("a",)).class_pixels == {"2": 1}


def test_colours_lie_over_the_image():
    drawn = result([[0, 1, 2], [0, 0, 0]]).overlay()
    np.testing.assert_array_equal(drawn[0], [[60, 60, 60], [140, 60, 60], [60, 140, 60]])  # 0.6 and 0.4
    clear = result([[0, 1, 2], [0, 0, 0]], opacity=0.0).overlay()
    np.testing.assert_array_equal(clear, GREY)


def test_a_legend_names_the_classes_that_are_there():
    labels = np.zeros((120, 200), np.uint8)
    labels[:40] = 2
    shown = result(labels, names=("background", "cat", "dog"))
    drawn = shown.draw()
    np.testing.assert_array_equal(drawn[:120], shown.overlay())
    legend = drawn[120:].reshape(-1, 3).tolist()
    assert [0, 200, 0] in legend and [0, 0, 0] in legend and [200, 0, 0] not in legend


def test_files(tmp_path):
    paths = result([[0, 1, 2], [0, 0, 1]]).save(tmp_path)
    assert [path.name for path in paths] == ["b.png", "b_label.png", "b.json"]
    assert vision_image.read(paths[0]).shape == (2, 3, 3)  # too narrow for a legend
    with Image.open(paths[1]) as label:
        assert label.mode == "P"
        np.testing.assert_array_equal(np.asarray(label), [[0, 1, 2], [0, 0, 1]])
        np.testing.assert_array_equal(np.asarray(label.convert("RGB"))[0, 1], [200, 0, 0])
    facts = json.loads(paths[2].read_text(encoding="utf-8"))
    assert (facts["width"], facts["height"]) == (3, 2)
    assert result([[0]]).save(tmp_path, "c")[0].name == "c.png"


def test_many_classes_are_stored_in_16_bits(tmp_path):
    masks.write_classes(tmp_path / "a.png", np.array([[300, 2]], np.uint16), palettes.of_classes(301))
    with Image.open(tmp_path / "a.png") as label:
        np.testing.assert_array_equal(np.asarray(label), [[300, 2]])
    with pytest.raises(ShapeError, match="class indices of this dtype fit no PNG"):
        masks.write_classes(tmp_path / "a.png", np.zeros((1, 1), np.int32), palettes.voc(1))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_the_foreground_on_a_colour():
    labels = np.zeros((9, 9), np.uint8)
    labels[:, 5:] = 1
    drawn = result(labels, background=Background((0, 255, 0))).overlay()
    np.testing.assert_array_equal(drawn[4, 0], [0, 255, 0])
    np.testing.assert_array_equal(drawn[4, 8], [100, 100, 100])
    assert 0 < drawn[4, 5, 0] < 100  # the edge is soft


def test_the_foreground_on_an_image_that_is_cut_to_size(tmp_path):
    image = np.zeros((4, 40, 3), np.uint8)
    image[:, 18:22] = 255  # its middle is white
    vision_image.write(tmp_path / "b.png", image)
    background = read_background(str(tmp_path / "b.png"))
    drawn = result(np.zeros((4, 4), np.uint8), background=background).overlay()
    np.testing.assert_array_equal(drawn, np.full((4, 4, 3), 255))
    assert result(np.zeros((9, 7), np.uint8), background=background).overlay().shape == (9, 7, 3)


def test_a_blurred_background_keeps_its_mean():
    image = np.zeros((64, 64, 3), np.uint8)
    image[:, ::2] = 200
    drawn = Background().behind(image, np.zeros((64, 64), bool))
    assert abs(int(drawn[32, 32, 0]) - 100) < 45 and np.ptp(drawn[32, 16:48, 0].astype(int)) < 100
    np.testing.assert_array_equal(Background().behind(image, np.ones((64, 64), bool)), image)


@pytest.mark.parametrize(
    ("text", "colour"), [("green", (0, 177, 64)), ("#0A0b0C", (10, 11, 12)), ("1,2,255", (1, 2, 255))]
)
def test_colours_are_read(text, colour):
    assert read_background(text).colour == colour
    assert read_background("blur").colour is None


@pytest.mark.parametrize("text", ["gren", "#12", "1,2,256", "no/such.png", ""])
def test_no_background(text):
    with pytest.raises(ConfigError, match=r"unknown background[\s\S]*blur"):
        read_background(text)


def test_the_class_of_the_background():
    assert background_class(("cat", "Background")) == 1
    assert background_class(("road", "car")) == 0


def test_palettes():
    np.testing.assert_array_equal(palettes.voc(4), [[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0]])
    np.testing.assert_array_equal(palettes.voc(256)[[15, 255]], [[192, 128, 128], [224, 224, 192]])
    assert len(palettes.of_classes(300)) == 300 and len(palettes.voc(0)) == 0
    assert [len(p) for p in (palettes.CITYSCAPES, palettes.CAMVID, palettes.ADE20K, palettes.PASCAL_VOC)] == [
        *(19, 11, 150, 21)
    ]
    with pytest.raises(ConfigError, match="not so many colours"):
        palettes.voc(257)
