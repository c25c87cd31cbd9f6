"""Back to the image's own pixels."""

import numpy as np
import pytest

from framework.core.errors import FormatError
from framework.vision.sample import Sample
from framework.vision.sample_transforms.crop import CenterCrop
from framework.vision.sample_transforms.pad import PadToMultiple
from framework.vision.sample_transforms.resize import LetterBox, Resize
from framework.workflow.domain.samples import apply_transforms
from segmentation.restore import labels_at_source, resize_to_source

RNG = np.random.default_rng(0)


def sample(size_hw, *transforms):
    image = np.zeros((*size_hw, 3), np.uint8)
    return apply_transforms(Sample(image, source_size=size_hw), transforms)


@pytest.mark.parametrize("align", ["top_left", "center"])
def test_what_was_filled_up_is_cut_off(align):
    one = sample((5, 7), PadToMultiple(8, align=align))
    labels = np.zeros((8, 8), np.uint8)
    top = 1 if align == "center" else 0
    labels[top : top + 5, :7] = np.arange(35).reshape(5, 7)
    np.testing.assert_array_equal(resize_to_source({"labels": labels}, one), np.arange(35).reshape(5, 7))


def test_nothing_was_done():
    labels = RNG.integers(0, 5, (8, 8)).astype(np.uint8)
    np.testing.assert_array_equal(
        resize_to_source({"labels": labels}, sample((8, 8), PadToMultiple(8))), labels
    )
    scores = RNG.random((3, 4, 5)).astype(np.float32)
    np.testing.assert_array_equal(labels_at_source(scores, sample((3, 4))), scores.argmax(-1))


def test_scores_are_interpolated_before_a_class_is_chosen():
    """Two columns to four, centres at 0.25 0.75 1.25 1.75 of the wide pixels: weights 1, .75, .25, 0 of the left."""
    scores = np.array([[[1.0, 0.6], [0.0, 0.6]]], np.float32)
    found = resize_to_source({"scores": scores}, sample((1, 4), Resize(size_hw=(1, 2))))
    np.testing.assert_array_equal(found, [[0, 0, 1, 1]])  # 1, .75 against .6, then .25, 0
    assert found.dtype == np.uint8


def test_many_classes_need_two_bytes():
    scores = np.zeros((2, 2, 300), np.float32)
    scores[..., 299] = 1
    assert (
        resize_to_source({"scores": scores}, sample((4, 4), Resize(size_hw=(2, 2)))).tolist()
        == [[299] * 4] * 4
    )
    assert resize_to_source({"scores": scores}, sample((2, 2))).dtype == np.uint16


def test_letterbox_and_crop_come_back_to_the_size():
    scores = RNG.random((16, 16, 4)).astype(np.float32)
    scores[..., 3] = 2
    assert (resize_to_source({"scores": scores}, sample((5, 11), LetterBox((16, 16)))) == 3).all()
    cropped = resize_to_source({"scores": scores}, sample((20, 30), CenterCrop((16, 16))))
    assert cropped.shape == (20, 30) and (cropped == 3).all()


def test_other_outputs():
    with pytest.raises(FormatError, match=r"does not segment[\s\S]*boxes"):
        resize_to_source({"boxes": np.zeros((1, 4))}, sample((4, 4)))
