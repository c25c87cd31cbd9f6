"""What the augmentations of lines do to pixels, texts and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from framework.core.errors import ConfigError, ShapeError
from framework.vision import image
from framework.vision.normalize import Normalize
from framework.vision.sample import Sample
from framework.vision.warp import Warp
from ocr.data.transforms.lines import ConcatenateLines, RandomLineDistortion, RandomTurn180
from ocr.data.transforms.resize import ResizeLine
from ocr.tasks.text import TextRecognition
from ocr.text.dictionary import Dictionary
from ocr.text.preprocess import pack_lines

NEVER = dict.fromkeys(("p_warp", "p_crop", "p_blur", "p_hsv", "p_noise", "p_invert"), 0.0)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def line(height: int = 32, width: int = 120, text: str = "abc", **fields: Any) -> Sample:
    """Grey with a black bar in the middle."""
    made = np.full((height, width, 3), (200, 180, 160), np.uint8)
    made[height // 3 : 2 * height // 3, width // 10 : -(width // 10)] = 0
    return Sample(made, text=text, **fields)


def only(**chosen: float) -> RandomLineDistortion:
    return RandomLineDistortion(**(NEVER | chosen))


def test_nothing_chosen_changes_nothing() -> None:
    sample = line()
    assert np.array_equal(only()(sample, rng()).image, sample.image)


def test_cropping_takes_one_to_eight_rows_off_one_edge() -> None:
    sample, seen = line(), set()
    for seed in range(80):
        out = only(p_crop=1)(sample, rng(seed)).image
        rows = 32 - len(out)
        at_top = np.array_equal(out, sample.image[rows:])
        assert 1 <= rows <= 8 and (at_top or np.array_equal(out, sample.image[:-rows]))
        seen.add((rows, at_top))
    assert {rows for rows, _ in seen} == set(range(1, 9)) and {top for _, top in seen} == {True, False}


def test_inverting_gives_the_opposite_colours() -> None:
    sample = line()
    assert np.array_equal(only(p_invert=1)(sample, rng()).image, 255 - sample.image)


def test_warping_keeps_size_and_text_in_the_frame() -> None:
    sample, images = line(), set()
    for seed in range(30):
        out = only(p_warp=1)(sample, rng(seed))
        assert out.image.shape == sample.image.shape and out.text == "abc"
        ink = out.image[..., 0] < 60
        columns = np.flatnonzero(ink.any(axis=0))
        assert ink[:, columns[0] : columns[-1] + 1].any(axis=0).all()  # the bar is in one piece
        assert columns[-1] - columns[0] > 50 and out.image[..., 0].max() == 200  # edge pixels outside
        images.add(out.image.tobytes())
    assert len(images) == 30


def test_the_way_back_to_the_file_goes_where_geometry_changes() -> None:
    warp = Warp.identity((32, 120))
    sample = line(warp=warp, source_size=(32, 120))
    assert only(p_warp=1)(sample, rng()).warp is None and only(p_crop=1)(sample, rng()).source_size is None
    assert only(p_noise=1)(sample, rng()).warp is warp


@pytest.mark.parametrize("name", ["p_blur", "p_hsv", "p_noise"])
def test_colours_change_a_little(name: str) -> None:
    sample = line()
    out = only(**{name: 1})(sample, rng()).image
    change = np.abs(out.astype(int) - sample.image).mean()
    assert out.shape == sample.image.shape and 0.5 < change < 50


def test_small_lines_are_neither_bent_nor_cut() -> None:
    sample = line(19, 60)
    assert np.array_equal(only(p_crop=1)(sample, rng()).image, sample.image)


def test_each_step_has_its_probability() -> None:
    sample = line()
    inverted = sum((only(p_invert=0.4)(sample, rng(seed)).image[0, 0, 0] == 55) for seed in range(500))
    assert 160 < inverted < 240


def test_samples_with_objects_are_refused() -> None:
    page = line().replace(text=("a",), polygons=(np.zeros((4, 2), np.float32),))
    for transform in (RandomLineDistortion(), RandomTurn180()):
        with pytest.raises(ShapeError, match="no single line"):
            transform(page, rng())
    with pytest.raises(ShapeError, match="has no text"):
        RandomLineDistortion()(line().replace(text=None), rng())
    with pytest.raises(ShapeError, match="8-bit RGB"):
        RandomLineDistortion()(line().replace(image=np.zeros((9, 9, 1), np.uint8)), rng())
    with pytest.raises(ConfigError):
        RandomLineDistortion(p_crop=1.5)


def test_two_lines_become_one() -> None:
    first, second = line(32, 64, "ab", id=7), line(64, 96, "cde")
    out = ConcatenateLines(p=1)(first, rng(), [second])
    assert out.text == "abcde" and out.id == 7 and out.image.shape == (32, 64 + 48, 3)
    assert np.array_equal(out.image[:, :64], first.image)
    assert np.array_equal(out.image[:, 64:], image.resize(second.image, (32, 48)))
    assert ConcatenateLines(p=1, right_to_left=True)(first, rng(), [second]).text == "cdeab"


def test_lines_that_would_be_too_long_stay_apart() -> None:
    first, second = line(32, 160, "ab"), line(32, 160, "cde")
    for settings, joined in (
        ({"max_text_length": 5, "max_ratio": 10.0}, True),
        ({"max_text_length": 4, "max_ratio": 10.0}, False),
        ({"max_text_length": 5, "max_ratio": 9.9}, False),
        ({"p": 0.0}, False),
    ):
        out = ConcatenateLines(**({"p": 1} | settings))(first, rng(), [second])
        assert (out is not first) == joined
    times = sum(ConcatenateLines(p=0.3)(first, rng(seed), [second]) is not first for seed in range(400))
    assert 90 < times < 150


def test_lines_of_other_types_are_not_joined() -> None:
    with pytest.raises(ShapeError, match="cannot be joined"):
        ConcatenateLines(p=1)(line(), rng(), [Sample(np.zeros((32, 40, 1), np.uint8), text="a")])


def test_turned_lines_say_so() -> None:
    sample, found = line(), []
    for seed in range(200):
        out = RandomTurn180()(sample, rng(seed))
        turned = int(out.labels)
        found.append(turned)
        assert out.labels.shape == () and out.labels.dtype == np.int32 and out.text == "abc"
        wanted = sample.image[::-1, ::-1] if turned else sample.image
        assert np.array_equal(out.image, wanted)
    assert 70 < sum(found) < 130


def test_a_label_changes_with_the_direction() -> None:
    upside_down = line(labels=np.array(1))
    assert RandomTurn180(p=1)(upside_down, rng()).labels == 0
    assert RandomTurn180(p=0)(upside_down, rng()).labels == 1
    with pytest.raises(ShapeError, match="no direction"):
        RandomTurn180()(line(labels=np.array(2)), rng())


def test_a_recogniser_tells_its_reader_how_wide_lines_are() -> None:
    resize = ResizeLine(32, 640, width_scale=1.25)
    task = TextRecognition(Normalize((0.5,) * 3, (0.5,) * 3), Dictionary(symbols="abc"), 32, width_scale=1.25)
    options = task.describe_stage(None)["options"]
    assert (options["height"], options["width_scale"]) == (32, 1.25)
    batch, widths = pack_lines(
        [line(40, 101).image], 160, options["height"], width_scale=options["width_scale"]
    )
    resized = resize(line(40, 101), rng())
    assert resized.image.shape[1] == resize.line_width((40, 101)) == widths[0] == 101
    np.testing.assert_array_equal(resized.image, batch[0, :, :101])
    with pytest.raises(ConfigError, match="above 0"):
        ResizeLine(width_scale=0)


@pytest.mark.parametrize(("columns", "wanted"), [(40, 40), (120, 64)])
def test_padded_columns_are_no_line_for_a_recogniser(columns: int, wanted: int) -> None:
    task = TextRecognition(Normalize((0.5,) * 3, (0.5,) * 3), Dictionary(symbols="abc"), max_text_length=4)
    sample = line(32, columns, "cab", source_size=(32, columns), warp=Warp.identity((32, columns)))
    packed = task.pack(ResizeLine(32, 64, pad=True)(sample, rng()))
    assert packed["image"].shape == (32, 64, 3) and packed["width"] == wanted
    assert not packed["image"][:, wanted:].any() and packed["image"][:, :wanted].any()
