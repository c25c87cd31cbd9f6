"""framework.vision.sample_transforms.checks, through the transforms that use them: each message and where it points."""

import pytest

from framework.core.errors import ConfigError
from framework.vision import sample_transforms as T
from framework.vision.sample_transforms import checks


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: T.RandomHorizontalFlip(p=1.5), r"Flip.p: the value is out of range[\s\S]*1.5[\s\S]*from 0 to 1"),
        (lambda: T.RandomVerticalFlip(p=-0.1), r"RandomVerticalFlip.p: [\s\S]*-0.1"),
        (lambda: T.RandomHorizontalFlip(p=float("nan")), r"out of range[\s\S]*nan"),
        (lambda: T.RandomExpand(max_ratio=float("inf")), r"RandomExpand.max_ratio: [\s\S]*inf[\s\S]*>= 1"),
        (lambda: T.RandomExpand(max_ratio=0.5), r"RandomExpand.max_ratio: "),
        (lambda: T.RandomScale(step=0), r"RandomScale.step: [\s\S]*> 0"),
        (lambda: T.RandomScale(scale=(2, 1)), r"RandomScale.scale: the range must be[\s\S]*\(2, 1\)[\s\S]*both > 0"),
        (lambda: T.RandomScale(scale=(0, 1)), r"RandomScale.scale: "),
        (lambda: T.RandomScale(scale=(1, float("inf"))), r"RandomScale.scale: "),
        (lambda: T.RandomResizedCrop((4, 4), scale=(0.5, 1.5)), r"RandomResizedCrop.scale: [\s\S]*above 0 to 1"),
        (lambda: T.RandomResizedCrop((4, 4), ratio=(-1, 1)), r"RandomResizedCrop.ratio: "),
        (lambda: T.RandomErasing(scale=(0, 1)), r"RandomErasing.scale: "),
        (lambda: T.RandomErasing(ratio=(3, 1)), r"RandomErasing.ratio: "),
        (lambda: T.RandomErasing(fill=300), r"RandomErasing.fill: pixels have no such value[\s\S]*300[\s\S]*0 to 255"),
        (lambda: T.CenterCrop((0, 4)), r"CenterCrop.size_hw: an image has no such size[\s\S]*\(0, 4\)[\s\S]*>= 1"),
        (lambda: T.RandomCrop((2.5, 4)), r"RandomCrop.size_hw: "),
        (lambda: T.RandomCrop((4, 4), padding=-1), r"RandomCrop.padding: "),
        (lambda: T.RandomCrop((4, 4), min_visible=2), r"RandomCrop.min_visible: "),
        (lambda: T.PadToSize((4,)), r"PadToSize.size_hw: "),
        (lambda: T.PadToSize((4, 4), fill=(0, 0, 256)), r"PadToSize.fill: "),
        (lambda: T.PadToSize((4, 4), fill=(0, 0)), r"PadToSize.fill: [\s\S]*three of them"),
        (lambda: T.PadToMultiple(0), r"PadToMultiple.multiple: "),
        (lambda: T.Pad((0, 0, -1, 0)), r"Pad.padding: a border cannot be negative[\s\S]*what to do: CenterCrop"),
        (lambda: T.Pad(-2), r"Pad.padding: "),
        (lambda: T.Resize((256, 320), mode="short"), r"Resize.size_hw: the short side has one length[\s\S]*fit"),
        (lambda: T.RandomRotation((10, -10)), r"RandomRotation.degrees: "),
        (lambda: T.RandomRotation(-5), r"RandomRotation.degrees: [\s\S]*received: -5"),
        (lambda: T.RandomAffine(shear=90), r"RandomAffine.shear: [\s\S]*from -89 to 89"),
        (lambda: T.RandomAffine(scale=(0, 1)), r"RandomAffine.scale: "),
        (lambda: T.RandomAffine(translate=(0, 1.5)), r"RandomAffine.translate: translate must be[\s\S]*\(0, 1.5\)"),
        (lambda: T.ColorJitter(brightness=-1), r"ColorJitter.brightness: "),
        (lambda: T.ColorJitter(contrast=(-0.5, 1)), r"ColorJitter.contrast: "),
        (lambda: T.ColorJitter(hue=0.6), r"ColorJitter.hue: [\s\S]*from -0.5 to 0.5"),
        (lambda: T.RandomGrayscale(p=2), r"RandomGrayscale.p: "),
        (lambda: T.GaussianBlur(4), r"GaussianBlur.kernel_size: a kernel with a centre has an odd side[\s\S]*4"),
        (lambda: T.GaussianBlur(3, sigma=(0, 1)), r"GaussianBlur.sigma: "),
        (lambda: T.RandAugment(magnitude=11), r"RandAugment.magnitude: "),
        (lambda: T.RandAugment(num_ops=-1), r"RandAugment.num_ops: "),
        (lambda: T.AutoAugment(fill=-1), r"AutoAugment.fill: "),
        (lambda: T.RandomApply(()), r"RandomApply.transforms: the list is empty"),
        (lambda: T.RandomChoice(()), r"RandomChoice.transforms: the list is empty"),
        (lambda: T.RandomChoice((T.Pad(1),), weights=(0.0,)), r"RandomChoice.weights: the weights do not fit"),
        (lambda: T.RandomChoice((T.Pad(1),), weights=(1.0, 1.0)), r"RandomChoice.weights: [\s\S]*1 finite"),
        (lambda: T.RandomHorizontalFlip(keypoint_flip_pairs=((1, 2), (2, 3))), r"these keypoints cannot change places"),
        (lambda: T.RandomVerticalFlip(keypoint_flip_pairs=((1, 1),)), r"RandomVerticalFlip.keypoint_flip_pairs: "),
        (lambda: T.RandomVerticalFlip(keypoint_flip_pairs=((-1, 1),)), r"each index once"),
    ],
)  # fmt: skip
def test_impossible_values(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_around():
    assert checks.around(3) == (-3, 3) and checks.around(0.25, 1.0) == (0.75, 1.25)
    assert checks.around((1, 2), 1.0) == (1, 2)


def test_the_limits_themselves_are_possible():
    T.RandomHorizontalFlip(p=0)
    T.RandomHorizontalFlip(p=1)
    T.RandomScale(scale=(1, 1))
    T.RandomResizedCrop((1, 1), scale=(1, 1), ratio=(1, 1))
    T.ColorJitter(hue=0.5, brightness=(0, 0), saturation=2.0)
    T.RandomAffine(translate=(1, 1))
    T.RandomErasing(fill="noise")
    T.Pad(0, fill=None)
